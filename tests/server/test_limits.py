"""What a key may do holds on the routes of all dialects, and a server that has no time says when to come again."""

from typing import Any

import pytest
from msgspec.structs import replace

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings, ModelSettings
from headwater.events import DialectName
from tests.server.house import DIALECTS, PATHS, House, Line, asking, eventually, open_house, settings_for

pytestmark = pytest.mark.anyio

KEY = "k" * 20
EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS)


def a_key(**limits: Any) -> KeySettings:
    return KeySettings(owner="ann", key=Secret(KEY), **limits)


async def ask(house: House, dialect: DialectName) -> Line:
    line = await house.line()
    line.ask(PATHS[dialect], asking(dialect, f"{dialect}/sim/tokens-5,stall-after-1", stream=True), f"x-api-key: {KEY}")
    return line


@EVERY_DIALECT
async def test_a_key_has_as_many_runs_at_a_time_as_it_may(dialect: DialectName) -> None:
    async with open_house(keys=(a_key(concurrent_runs=2),)) as house:
        lines = []
        for _ in range(2):
            # One after the other: the simulator is to know them by their numbers.
            lines.append(await ask(house, dialect))
            await lines[-1].until(b"t0 ")
        refused = await (await ask(house, dialect)).answer()
        assert b" 429 " in refused.partition(b"\r\n")[0]
        assert b"\r\nretry-after: 5\r\n" in refused
        assert b"2 at a time" in refused
        # It was never asked: whoever tries again is not billed twice.
        assert b"x-should-retry" not in refused
        assert len(house.simulator.requests) == 2
        lines[0].reset()
        await house.simulator.wait_for_close(0)
        await eventually(lambda: house.services.runs.running() == 1)
        await (await ask(house, dialect)).until(b"t0 ")


@EVERY_DIALECT
async def test_more_requests_than_allowed_are_told_when_to_come_again(dialect: DialectName) -> None:
    async with open_house(keys=(a_key(requests_per_minute=1),)) as house:
        await (await ask(house, dialect)).until(b"t0 ")
        refused = await (await ask(house, dialect)).answer()
        assert b" 429 " in refused.partition(b"\r\n")[0]
        assert b"\r\nretry-after: " in refused


ROUTES: list[tuple[str, str, object]] = [
    *(("POST", PATHS[dialect], asking(dialect, "demo/echo")) for dialect in DIALECTS),
    ("POST", "/api/runs", {"model": "demo/echo", "input": "Hi"}),
    ("POST", "/api/sessions/s/messages", {"model": "demo/echo", "content": "Hi"}),
    ("POST", "/api/groups", {"models": ["demo/echo"], "content": "Hi"}),
]
"""All that begin something."""


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_one_that_drains_says_when_to_come_again(house: House, method: str, path: str, body: object) -> None:
    await house.http.post("/api/sessions", json={"id": "s"})
    house.services.drain()
    answer = await house.http.request(method, path, json=body)
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    assert "shutting" in answer.text
    # What is there can still be looked at.
    assert (await house.http.get("/api/sessions/s")).status_code == 200
    assert (await house.http.get("/v1/models")).status_code == 200


@EVERY_DIALECT
async def test_the_first_thing_said_gives_a_session_its_title(house: House, dialect: DialectName) -> None:
    async def title() -> str | None:
        session = await house.services.store.session("local", "s")
        assert session is not None
        return session.title

    await house.post(dialect, f"{dialect}/sim/tokens-1", text="What is a river?", session_id="s")
    assert await title() == "What is a river?"
    await house.post(dialect, f"{dialect}/sim/tokens-1", text="And what is a lake?", session_id="s")
    assert await title() == "What is a river?"


@EVERY_DIALECT
@pytest.mark.parametrize("stream", [False, True])
async def test_what_did_not_fit_into_the_context_is_noted(house: House, dialect: DialectName, stream: bool) -> None:
    small = ModelSettings(name="small", upstream=dialect, model="sim/tokens-1", context_tokens=400)
    house.services.reload(replace(settings_for(house.simulator), models=(small,)))
    for _ in range(2):
        answer = await house.post(dialect, "small", text="word " * 200, session_id="s", stream=stream)
        assert answer.status_code == 200
    assert "not fit into this model's context" in answer.text
    assert '"notes":[' in answer.text
