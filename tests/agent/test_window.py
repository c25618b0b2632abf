"""What a loop that has outgrown its model's context is still told: less, visibly, and legally."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from headwater.agent.window import Fitted, fitted
from headwater.config.settings import ModelSettings
from headwater.conversation import Assistant, Message, Request, System, Text, Tool, ToolCall, ToolOutput, User
from headwater.events import ApprovalAsked, DialectName, Notice
from headwater.sessions.trim import tokens
from headwater.simulate import Fin
from headwater.testing import Simulator
from tests.agent.company import DIALECTS, DONE, Company, calls, serving, settings_of

pytestmark = pytest.mark.anyio

SYSTEM = System((Text("Be brief."),))
ASKED = User((Text("Go"),))


def exchange(n: int, size: int = 100) -> list[Message]:
    return [User((Text(f"u{n}"),)), Assistant((Text(f"a{n} " + "x" * 4 * size),))]


def step(n: int, size: int = 100, count: int = 1) -> list[Message]:
    """A turn of a loop: calls, and what came of them."""
    called = tuple(ToolCall(f"c{n}_{m}", "look", "{}") for m in range(count))
    return [Assistant(called), *(ToolOutput(call.id, (Text("y" * 4 * size),)) for call in called)]


def flat(*units: list[Message]) -> list[Message]:
    return [message for unit in units for message in unit]


def request_of(*units: list[Message], tools: tuple[Tool, ...] = ()) -> Request:
    return Request((SYSTEM, *flat(*units), ASKED), tools=tools)


def test_what_fits_is_told_as_it_is() -> None:
    request, so_far = request_of(exchange(1)), step(1)
    assert fitted(request, so_far, None) == fitted(request, so_far, 9000) == Fitted((*request.messages, *so_far))


def test_what_was_said_before_goes_first_then_the_oldest_steps() -> None:
    history, steps = [exchange(1, 300), exchange(2)], [step(1), step(2), step(3)]
    request, so_far = request_of(*history), flat(*steps)
    told = fitted(request, so_far, 700)
    assert list(told.messages) == [SYSTEM, *exchange(2), ASKED, *so_far]
    assert told.left_out == 2
    told = fitted(request, so_far, 300)
    *before, remark = told.messages[:3]
    assert before == [SYSTEM, ASKED]
    assert isinstance(remark, User)
    assert "2 earlier steps of yours" in str(remark.parts)
    assert list(told.messages[3:]) == step(3)
    assert told.left_out == 8


def test_what_was_asked_and_the_last_step_stay_whatever_they_take() -> None:
    told = fitted(request_of(exchange(1)), step(1, 5000), 100)
    assert list(told.messages) == [SYSTEM, ASKED, *step(1, 5000)]
    assert fitted(request_of(exchange(1, 5000)), [], 100).messages == (SYSTEM, ASKED)


def test_tools_take_their_room() -> None:
    tools = tuple(Tool(f"t{n}", "It does much. " * 20) for n in range(10))
    assert fitted(request_of(exchange(1)), [], 1000).left_out == 0
    assert fitted(request_of(exchange(1), tools=tools), [], 1000).left_out == 2


def test_a_message_that_is_gone_on_with_stays_with_its_question() -> None:
    cut, go_on = Assistant((Text("So far"),)), User((Text("Go on."),))
    request = Request((SYSTEM, *exchange(1), ASKED, cut, go_on))
    told = fitted(request, step(1), 200, asked_in=2)
    assert list(told.messages) == [SYSTEM, ASKED, cut, go_on, *step(1)]


SIZES = st.integers(0, 300)


@given(st.lists(SIZES, max_size=6), st.lists(st.tuples(SIZES, st.integers(1, 3)), max_size=6), st.integers(0, 3000))
def test_what_is_told_is_a_legal_end_of_what_was_said(
    before: list[int], after: list[tuple[int, int]], window_tokens: int
) -> None:
    history = [exchange(n, size) for n, size in enumerate(before)]
    steps = [step(n, *sizes) for n, sizes in enumerate(after)]
    request, so_far = request_of(*history), flat(*steps)
    told = fitted(request, so_far, window_tokens)
    kept = [message for message in told.messages if "A note from the server" not in str(message)]
    whole = [*request.messages, *so_far]
    assert told.left_out == len(whole) - len(kept)
    assert [message for message in whole if message in kept] == kept
    assert {SYSTEM, ASKED} <= set(kept)
    assert kept[-len(steps[-1]) :] == steps[-1] if steps else kept[-1] == ASKED
    called = [call.id for message in kept if isinstance(message, Assistant) for call in message.tool_calls]
    assert called == [message.call_id for message in kept if isinstance(message, ToolOutput)]
    must_stay = [SYSTEM, ASKED, *(steps[-1] if steps else ())]
    assert sum(map(tokens, kept)) <= window_tokens or kept == must_stay


# ------------------------------------------------------------------------ in a real loop


async def trimmed(one: Company, run_id: str) -> list[str]:
    found = [entry.event for entry in await one.log(run_id)]
    return [event.text for event in found if isinstance(event, Notice) and event.code == "context_trimmed"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_loop_that_outgrows_its_context_goes_on_with_less_and_says_so(
    dialect: DialectName, tmp_path: Path
) -> None:
    async with Simulator() as simulator:
        small = ModelSettings(name="small", upstream=dialect, model="m", context_tokens=6000)
        settings = settings_of(simulator, tmp_path / "j", helper={"model": "small", "approve": ("rogue.note",)})
        async with serving(replace(settings, models=(small,)), simulator, tmp_path / "j") as one:
            simulator.script("m", calls("long", "long", word="2000", times=9), calls("note"), DONE)
            session_id = await one.session()
            run_id = await one.say(session_id, content="A long task")
            # It goes on from its log alone, and does not say again what it has said.
            await one.until(run_id, ApprovalAsked)
            await one.approve(run_id)
            assert (await one.ended(run_id))["status"] == "completed"
            said = await trimmed(one, run_id)
            assert said == sorted(set(said), key=lambda text: int(text.split()[1]))
            assert len(said) > 1
            assert one.complaints == []
            assert max(len(str(request.body)) for request in simulator.requests) < 6000 * 4
            assert "A long task" in str(simulator.requests[-1].body)
            assert "earlier steps of yours are left out" in str(simulator.requests[-1].body)
            # Nothing is lost but to the model; and nothing was run again.
            items = await one.items(session_id)
            assert len([call for item in items for call in item.get("tool_calls", ())]) == 19
            assert [item["text"] for item in items if item["kind"] == "notice"] == said[-1:]
            assert one.journal == [*["long 2000"] * 18, "note w0"]


async def test_what_no_longer_fits_at_the_beginning_is_said_once(tmp_path: Path) -> None:
    async with Simulator() as simulator:
        small = ModelSettings(name="small", upstream="chat", model="m", context_tokens=6000)
        settings = settings_of(simulator, tmp_path / "j", helper={"model": "small"})
        async with serving(replace(settings, models=(small,)), simulator, tmp_path / "j") as one:
            cut = replace(DONE, text="So far, so good", faults=(Fin(tokens=1),), times=4)
            simulator.script("m", DONE, DONE, cut, calls("note"), DONE)
            session_id = await one.session()
            for word in ("river", "lake"):
                await one.ended(await one.say(session_id, content=f"{word} " * 2500))
            run_id = await one.say(session_id, content="And now?")
            assert (await one.ended(run_id))["status"] == "failed"
            assert len(await trimmed(one, run_id)) == 1
            assert "river" not in str(one.sent(3))
            # What is gone on with takes its room, too, before and after its tools.
            again = (await one.post(f"/api/runs/{run_id}/continue"))["run"]["id"]
            assert (await one.ended(again))["status"] == "completed"
            assert len(await trimmed(one, again)) == 1
            assert "And now?" in str(one.sent(-1))
            assert one.complaints == []
