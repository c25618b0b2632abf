"""What `make bench` measures still runs, with little of everything: no figure is looked at."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvloop
from bench.contenders import Stage, free_port, running

from bench import gateways, reading, report, runs

FEW = gateways.Load("few", streams=2, requests=4, tokens=20)


@pytest.fixture(scope="module")
def upstream_port() -> Iterator[int]:
    port = free_port()
    with running([sys.executable, "-m", "bench.upstream", str(port)], port):
        yield port


@pytest.mark.parametrize("reader", reading.READERS)
def test_readers_read_every_word(reader: str, upstream_port: int) -> None:
    assert uvloop.run(reading.measure(reader, upstream_port, reading.Load("few", 2, 20, 0))) > 0


def test_each_token_of_a_recorded_run_has_a_delay_and_ends_have_none(tmp_path: Path) -> None:
    figures = uvloop.run(runs.measure(runs.Load(3, 100, seconds=0.2, stored=2), tmp_path))
    assert 0 < figures.p50_ms <= figures.p99_ms


def test_gateways_are_compared_and_held_against_their_budgets(tmp_path: Path) -> None:
    with ExitStack() as stack:
        stage = Stage(stack, tmp_path)
        ours = stage.headwater(report.OURS), stage.headwater(report.RECORDED, on_disconnect="continue")
        found = gateways.measured([stage.direct(), *ours], FEW, 1)
    assert found[report.RECORDED].commits > 0
    page = report.page({load.name: found for load in gateways.LOADS}, 1)
    assert "| a request, unrecorded, without its tokens |" in page
    assert report.plot({load.name: found for load in gateways.LOADS}).count(report.OURS) == 2
