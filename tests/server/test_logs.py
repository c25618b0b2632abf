"""Lines for whoever operates it: whose run, which session; never a key, never what was said."""

import asyncio
import io
import json
import logging
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.events import Failed, Stopped, Usage
from headwater.records import Run
from headwater.runs.observing import CURRENT
from headwater.server.logs import RunLog, configure, formatter
from headwater.testing import Simulator
from tests.server.house import Line, asking, eventually
from tests.server.test_process import post, serve, upstream

pytestmark = pytest.mark.anyio

RUN = Run(id="run_7", owner="ann", model="fast", created_at=0.0, session_id="ses_7")


@pytest.fixture
def restored() -> Iterator[None]:
    """Logging is the process's: what a test sets is taken back."""
    root, ours = logging.getLogger(), logging.getLogger("headwater")
    handlers, level = list(root.handlers), ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = True


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_a_line_has_the_run_and_the_session_of_its_task(restored: None) -> None:
    stream = io.StringIO()
    configure("info", "auto", stream)
    log = logging.getLogger("headwater.agents.mine")

    async def work() -> None:
        CURRENT.set(RUN)
        log.info("from within %s", "an agent")
        # As a connection's callback does, which has the context of whoever opened it.
        asyncio.get_running_loop().call_soon(log.warning, "from a callback")
        await asyncio.sleep(0)

    await asyncio.create_task(work())
    log.warning("by itself", extra={"run_id": "run_8"})
    log.debug("too fine")
    first, second, third = lines(stream.getvalue())
    assert first | {"timestamp": ""} == {
        "event": "from within an agent",
        "level": "info",
        "logger": "headwater.agents.mine",
        "run_id": "run_7",
        "session_id": "ses_7",
        "timestamp": "",
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", first["timestamp"])
    assert "run_id" not in second
    assert third["run_id"] == "run_8"


def test_set_again_it_replaces_what_it_had_set(restored: None) -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("info", "json", first)
    configure("warning", "json", second)
    logging.getLogger("headwater").info("quiet")
    logging.getLogger("headwater").warning("loud")
    assert first.getvalue() == ""
    assert [line["event"] for line in lines(second.getvalue())] == ["loud"]


def test_a_filter_is_asked_and_a_stream_that_breaks_breaks_nothing_else(
    restored: None, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    log = logging.getLogger("headwater")
    (ours,) = [handler for handler in logging.getLogger().handlers if handler.name == "headwater"]
    ours.addFilter(lambda record: "secret" not in record.getMessage())
    log.info("a secret")
    log.info("no such thing")
    assert [line["event"] for line in lines(stream.getvalue())] == ["no such thing"]
    ours.filters.clear()
    stream.close()
    log.info("nobody hears it")
    assert "I/O operation on closed file" in capsys.readouterr().err


@pytest.mark.parametrize("terminal", [True, False])
def test_what_clients_name_moves_no_cursor(terminal: bool) -> None:
    odd = "\x1b[2J\x9b1m\r\nfaked \x7f\u202e\ud800 größer 雪"
    try:
        raise ValueError(odd)
    except ValueError as error:
        told = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("headwater", logging.INFO, "", 0, "said %s", (odd,), told)
    record.session_id = "\x1b[2J\x07雪"
    text = formatter("text", terminal=terminal).format(record)
    # But for the colours, which are ours.
    plain = re.sub(r"\x1b\[\d*m", "", text)
    first, *rest = plain.split("\n")
    assert r"said \x1b[2J\x9b1m\r\nfaked \x7f\u202e\ud800 größer 雪" in first
    assert r"session_id=\x1b[2J\x07雪" in first
    assert rest[0] == "Traceback (most recent call last):"
    assert all(line.isprintable() for line in plain.split("\n"))
    assert rest[-1] == r"faked \x7f\u202e\ud800 größer 雪"


@pytest.mark.parametrize(("format", "terminal"), [("text", False), ("auto", True), ("json", True), ("auto", False)])
def test_a_traceback_has_no_values_of_variables(format: Any, terminal: bool) -> None:
    prompt = "my secret" + " prompt"
    try:
        raise ValueError(f"of {len(prompt)} characters")
    except ValueError as error:
        record = logging.LogRecord("x", 40, "x.py", 1, "it %s", ("broke",), (ValueError, error, error.__traceback__))
    said = formatter(format, terminal=terminal).format(record)
    assert "it broke" in said
    assert "of 16 characters" in said
    assert "secret" not in said.replace('"my secret" + " prompt"', "")
    if format == "json" or not (terminal or format == "text"):
        assert "\n" not in said
        assert "Traceback" in json.loads(said)["exception"]


def test_what_json_can_not_hold_is_written_somehow() -> None:
    record = logging.LogRecord("x", 20, "x.py", 1, "hm", (), None)
    record.thing = {1, 2}
    record.other = object()
    assert "object object" in json.loads(formatter("json", terminal=False).format(record))["other"]


def test_the_line_of_a_run_is_a_record_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    failed = Failed("upstream_error", "Its own words.", status=529)
    run = replace(RUN, outcome=failed, started_at=10.0, first_token_at=10.25, ended_at=12.5, usage=Usage(3, 4))
    with caplog.at_level(logging.INFO, "headwater.runs"):
        RunLog().ended(run, None)
        RunLog().ended(replace(run, outcome=Stopped("user"), usage=Usage(3, None, source="provider")), None)
    first, second = caplog.records
    line = json.loads(formatter("json", terminal=False).format(first))
    assert list(line) == [
        *("timestamp", "level", "logger", "event", "run_id", "session_id", "owner", "route", "model"),
        *("outcome", "reason", "status", "duration_s", "first_token_s"),
    ]
    assert line == json.loads(formatter("json", terminal=False).format(logging.makeLogRecord(vars(first))))
    assert (line["timestamp"], line["level"], line["status"]) == ("1970-01-01T00:00:12.500000+00:00", "warning", 529)
    shown = logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s: %(outcome)s after %(duration_s)s")
    assert shown.format(first).endswith(":12,500 headwater.runs WARNING run ended: failed after 2.5")
    assert "outcome=failed" in formatter("text", terminal=False).format(first)
    assert second.relativeCreated == pytest.approx(first.relativeCreated)
    about = {"outcome": "stopped", "reason": "user", "level": "info", "input_tokens": 3}
    said = json.loads(formatter("json", terminal=False).format(second))
    assert about.items() <= said.items()
    assert {"status", "output_tokens"}.isdisjoint(said)


async def test_a_server_says_how_each_run_ended_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    key, secret = "k" * 20, "u" * 24
    config = '[[server.keys]]\nowner = "ann"\nkey = "env:A_KEY"\n'
    async with Simulator() as simulator:
        environ = {"A_KEY": key, "UP_KEY": secret, "HEADWATER_SERVER__LOG_LEVEL": "debug"}
        up = upstream(simulator, more='api_key = "env:UP_KEY"\n')
        async with serve(tmp_path, config + up, environ) as served:
            for model in ("sim/tokens-2", "sim/tokens-5,cut-after-2", "sim/tokens-5,error-after-1", "sim/status-401"):
                body = asking("chat", f"up/{model}", "my secret prompt", session_id="chat-1")
                await post(served, "/v1/chat/completions", headers={"x-api-key": key}, **body)
            await post(served, "/v1/chat/completions", headers={"x-api-key": "wrong" * 5}, **body)
            await post(served, "/v1/chat/completions", headers={"x-api-key": key}, **body, nonsense="secret prompt")
            line = await Line.open(served.url)
            line.ask(
                "/v1/chat/completions", asking("chat", "up/sim/stall-after-1", "secret prompt"), f"x-api-key: {key}"
            )
            await eventually(lambda: len(simulator.requests) == 5)
            line.reset()
            await simulator.wait_for_close(4)
            served.signal(signal.SIGTERM)
            code, err = await served.end()
    assert code == 0
    ended = [line for line in lines(err) if line["event"] == "run ended"]
    told = [(line["outcome"], line["reason"], line["level"], line.get("session_id")) for line in ended]
    assert told == [
        ("completed", "stop", "info", "chat-1"),
        ("failed", "upstream_truncated", "warning", "chat-1"),
        ("failed", "upstream_error", "warning", "chat-1"),
        ("failed", "refused", "warning", "chat-1"),
        ("stopped", "disconnect", "info", None),
    ]
    assert {line["owner"] for line in ended} == {"ann"}
    assert all(line["run_id"].startswith("run_") for line in ended)
    assert ended[0]["output_tokens"] == 2
    for never in ("secret prompt", key, secret, "wrongwrong", "t0 t1"):
        assert never not in err
