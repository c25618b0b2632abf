"""Plain text goes straight from the upstream's read to the client, or to the log and from there: in the same words."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from headwater.events import DialectName, Event, RunEnded, TextDelta
from headwater.server.encoding import Streamed
from headwater.simulate import Answer, Pace
from tests.server.house import DIALECTS, SAFETY_S, House, frames, open_house, texts

pytestmark = pytest.mark.anyio

PLAIN = [f" word{n}" for n in range(40)]
ODD = [' "quoted"', " back\\slash", " new\nline", " ümläut", " 🌊", " tab\t", " </think>", " <", "&", " \x7f"]
TEXT = "".join(PLAIN + ODD + PLAIN)


def scripted(house: House) -> None:
    house.simulator.script("odd", Answer(text=TEXT, pace=Pace(tokens_per_s=400)))


def unrecorded(dialect: DialectName) -> dict[str, Any]:
    return {"store": False} if dialect == "responses" else {}


_OF_ITS_OWN = ("id", "item_id", "created", "created_at", "completed_at", "store")


def alike(value: Any) -> Any:
    """Without what differs between any two answers."""
    if isinstance(value, list):
        return [alike(one) for one in value]
    if isinstance(value, dict):
        return {name: alike(one) for name, one in value.items() if name not in _OF_ITS_OWN}
    return value


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_it_says_what_a_recorded_run_says(dialect: DialectName, upstream: DialectName) -> None:
    """C5."""
    async with open_house() as house:
        scripted(house)
        straight = await house.events(dialect, f"{upstream}/odd", **unrecorded(dialect))
        recorded = await house.events(dialect, f"{upstream}/odd", on_disconnect="continue")
        assert texts(dialect, straight) == TEXT
        assert [(one.event, alike(one.data)) for one in straight] == [(one.event, alike(one.data)) for one in recorded]


@pytest.mark.parametrize("dialect", ["chat", "messages"])
async def test_a_recorded_run_says_what_is_in_its_log(dialect: DialectName) -> None:
    """Each text is an event of its own in both, though neither was made from the other."""
    async with open_house() as house:
        scripted(house)
        answer = await house.post(dialect, "chat/odd", stream=True, on_disconnect="continue")
        run_id = answer.headers["x-run-id"]
        told = [text for frame in frames(answer.content) if (text := texts(dialect, [frame]))]
        kept = [event async for event in house.services.runs.follow(None, run_id)]
        assert told == [event.text for event in kept if isinstance(event, TextDelta)]
        assert "".join(told) == TEXT


@pytest.mark.parametrize("dialect", ["chat", "messages"])
async def test_it_is_in_use_while_words_flow_and_not_any_more_when_the_client_is_gone(dialect: DialectName) -> None:
    """C41."""
    async with open_house() as house:
        house.simulator.script("long", Answer(text="word " * 4000, pace=Pace(tokens_per_s=200)))
        line = await house.raw(dialect, "chat/long", stream=True)
        head = await line.until(b"\r\n\r\n")
        run_id = head.partition(b"x-run-id: ")[2].partition(b"\r\n")[0].decode()
        live = house.services.runs.live(run_id)
        assert live is not None
        words = 0
        # Two in one read have to be taken apart.
        while words - live.log.last_seq < 50:
            await line.until(b"word")
            words += 1
        assert live.straight is not None
        line.reset()
        await asyncio.wait({live.over}, timeout=SAFETY_S)
        assert live.straight is None
        assert live.run.outcome is not None
        assert live.fold.text().startswith("word word word")


@pytest.mark.parametrize("dialect", ["chat", "messages"])
async def test_words_that_go_straight_are_no_silence(dialect: DialectName) -> None:
    """C69: a heartbeat is for when nothing else comes."""
    async with open_house(heartbeat_s=0.3) as house:
        house.simulator.script("steady", Answer(text="word " * 300, pace=Pace(tokens_per_s=200)))
        answer = await house.post(dialect, "chat/steady", stream=True)
        assert texts(dialect, frames(answer.content)) == "word " * 300
        assert b"keep-alive" not in answer.content
        assert b"event: ping" not in answer.content


@pytest.mark.parametrize("breaks", [TextDelta, RunEnded])
@pytest.mark.parametrize("more", [{}, {"session_id": "s"}], ids=["unrecorded", "recorded"])
async def test_what_can_not_be_told_breaks_the_answer_off(
    monkeypatch: pytest.MonkeyPatch, breaks: type[Event], more: dict[str, str]
) -> None:
    """No hole before a success, and no client that waits for an end."""
    encode = Streamed.encode

    def breaking(self: Streamed, events: Sequence[Event]) -> bytes:
        if any(isinstance(event, breaks) for event in events):
            raise ValueError("no words for it")
        return encode(self, events)

    monkeypatch.setattr(Streamed, "encode", breaking)
    async with open_house() as house:
        line = await house.raw("chat", "chat/sim/tokens-5@50", stream=True, **more)
        with contextlib.suppress(ConnectionError):
            heard = await line.rest()
            assert b"[DONE]" not in heard
            assert not heard.endswith(b"0\r\n\r\n")
        await house.services.runs.settle(SAFETY_S)
