"""A store that can't be written to: what clients are told, and who notices nothing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import anthropic
import openai
import pytest

from headwater.events import Interrupted
from headwater.server.callers import KNOWN_S
from headwater.testing import ManualClock
from tests.server.house import DIALECTS, House, eventually, open_house

pytestmark = pytest.mark.anyio

UNKEPT: Final[dict[str, dict[str, Any]]] = {"responses": {"store": False}}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(f"sqlite:{tmp_path / 'h.db'}") as opened:
        yield opened


def refuse_writes(house: House, refuse: bool) -> None:
    """On the connection that writes: as near to a read-only disk as one gets without a disk."""
    house.services.store._database._writer.pragma("query_only", int(refuse))  # type: ignore[attr-defined]


def refuse_reads(house: House) -> None:
    house.services.store._database._reader.close()  # type: ignore[attr-defined]


async def test_a_recorded_stream_is_broken_off_and_never_looks_complete(house: House) -> None:
    line = await house.raw("chat", "chat/sim/tokens-40@40", stream=True, session_id="s")
    head = await line.until(b"t1 ")
    run_id = head.partition(b"x-run-id: ")[2].partition(b"\r\n")[0].decode()
    refuse_writes(house, True)
    rest = await line.until(b"0\r\n\r\n")
    assert b"run_interrupted" in rest
    assert b"[DONE]" not in rest
    # And nothing more is paid for.
    assert (await house.simulator.wait_for_close(0)).closed in ("client_fin", "client_reset")
    refuse_writes(house, False)
    await house.services.runs.settle()
    run = await house.services.store.run("local", run_id)
    assert run is not None
    assert run.outcome == Interrupted("store")


async def test_an_unrecorded_stream_notices_nothing(house: House) -> None:
    line = await house.raw("chat", "chat/sim/tokens-20@40", stream=True)
    await line.until(b"t1 ")
    refuse_writes(house, True)
    assert b"t19 " in await line.until(b"[DONE]")
    refuse_writes(house, False)


async def test_nothing_that_is_to_be_kept_is_begun(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_writes(house, True)
    for dialect in DIALECTS:
        answer = await house.post(dialect, "chat/sim/tokens-3", session_id="s")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        # What kind of trouble it is, and not where the store is: that is for the server's log.
        assert "The store: read_only." in answer.text
        assert str(tmp_path) not in answer.text
    assert house.simulator.requests == []
    ready = await house.http.get("/readyz")
    assert (ready.status_code, ready.text) == (503, "the store: read_only\n")
    told = [record.getMessage() for record in caplog.records if record.name == "headwater.server"]
    assert len([message for message in told if str(tmp_path) in message]) == 4
    refuse_writes(house, False)
    assert (await house.http.get("/readyz")).status_code == 200


async def test_what_is_not_kept_is_answered_also_if_who_may_come_can_not_be_asked(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_house(f"sqlite:{tmp_path / 'h.db'}", clock) as house:
        assert (await house.post("chat", "chat/sim/tokens-1")).status_code == 200
        refuse_reads(house)
        for _ in range(2):
            await clock.advance(KNOWN_S)
            for dialect in DIALECTS:
                assert len(await house.events(dialect, "chat/sim/tokens-2", **UNKEPT.get(dialect, {}))) > 2


def lose_keys(house: House) -> None:
    """Nobody can be told from anybody else any more, as if the store could not be reached."""
    house.services.store._database._writer.execute("ALTER TABLE key RENAME TO lost")  # type: ignore[attr-defined]


async def test_whoever_asks_for_models_of_a_store_that_is_away_is_told_so(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lose_keys(house)
    for path in ("/v1/models", "/v1/models/demo/echo"):
        answer = await house.http.get(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["error"]["code"] == "store_unavailable"
        assert str(tmp_path) not in answer.text
    with pytest.raises(openai.InternalServerError, match="The store: unreachable"):
        await house.openai.with_options(max_retries=0).models.list()
    with pytest.raises(anthropic.InternalServerError, match="The store: unreachable") as refused:
        await house.anthropic.with_options(max_retries=0).models.list()
    assert refused.value.type == "overloaded_error"
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def test_a_log_that_vanishes_under_its_follower_is_no_success(house: House) -> None:
    answer = await house.openai.responses.create(model="chat/sim/tokens-5", input="Hi", background=True)
    run_id = answer.id.replace("resp_", "run_")
    await eventually(lambda: house.services.runs.live(run_id) is None)
    assert await house.services.store.delete_run("local", run_id) is None
    assert (await house.http.get(f"/v1/responses/{answer.id}?stream=true")).status_code == 404
