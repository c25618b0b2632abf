"""Whatever came, and wherever it was cut: what is kept is what the log has, and every provider takes what is made of it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headwater.checks import check_chat, check_messages, check_responses
from headwater.conversation import Assistant, Request, Target, Text, ToolOutput, User
from headwater.dialects import chat, messages, responses
from headwater.events import Completed, Failed, Interrupted, RunEnded, Stopped
from headwater.sessions.context import REMARK, context
from headwater.sessions.leavings import left
from headwater.sessions.view import AnswerItem, NoticeItem, view
from tests.sessions.talks import Log, Talk, endings, logs, texts

CUTS = Stopped | Failed | Interrupted
LATER = Request((User((Text("And?"),)),))


@st.composite
def talks(draw: st.DrawFn) -> tuple[Talk, list[Log]]:
    """Some questions, each answered as it may be, and a last one that is not answered yet."""
    talk = Talk()
    told = draw(st.lists(logs(), min_size=1, max_size=3))
    for log in told:
        run = talk.say("Go on.")
        fold, outcome = draw(endings(log))
        talk.leave(run, left(run, fold, outcome, now=1.0, make_id=talk.make_id))
    return talk, told


@given(logs(), st.data())
def test_what_is_kept_is_what_the_log_has(log: Log, data: st.DataObject) -> None:
    """C25, C43, C44, C46."""
    fold, outcome = data.draw(endings(log))
    talk = Talk()
    run = talk.say("Hi")
    kept = left(run, fold, outcome, now=1.0, make_id=talk.make_id)
    assert texts(kept.output) == log.text
    assert tuple(message.message for message in kept.messages) == kept.output
    partial = [message for message in kept.messages if message.status == "partial"]
    assert len(partial) == (isinstance(outcome, CUTS) and any(isinstance(m, Assistant) for m in kept.output))
    codes = [notice.code for notice in kept.notices]
    assert len(codes) == len(set(codes))
    assert codes[-1:] == [outcome.__struct_config__.tag] or not isinstance(outcome, CUTS)
    if isinstance(outcome, Completed):
        assert kept.messages
        assert not codes


@given(logs(), st.data())
def test_it_makes_no_difference_whether_the_fold_has_seen_the_end(log: Log, data: st.DataObject) -> None:
    fold, outcome = data.draw(endings(log))
    run = Talk().say("Hi")
    before = left(run, fold, outcome, now=1.0, make_id=Talk().make_id)
    fold.apply(RunEnded(outcome))
    assert left(run, fold, outcome, now=1.0, make_id=Talk().make_id) == before


def complaints(request: Request, *, own: bool) -> list[str]:
    """Of all providers; with `own`, each is sent what one of its kind has written before as its own."""

    def target(origin: str) -> Target:
        return Target(model="m", origin=origin if own else "elsewhere")

    return [
        *check_chat(msgspec.json.decode(chat.render(request, target("c")))),
        *check_messages(msgspec.json.decode(messages.render(request, target("m")))),
        *check_responses(msgspec.json.decode(responses.render(request, target("r")))),
    ]


@given(talks(), st.booleans())
def test_every_provider_takes_the_context(told: tuple[Talk, list[Log]], own: bool) -> None:
    """C44, C45."""
    talk, _ = told
    run = talk.say("And?")
    assert complaints(context(talk.transcript(), run, LATER).request, own=own) == []


@given(talks(), st.integers(1, 200))
def test_every_provider_takes_a_trimmed_context(told: tuple[Talk, list[Log]], window_tokens: int) -> None:
    talk, _ = told
    run = talk.say("And?")
    built = context(talk.transcript(), run, LATER, window_tokens)
    assert built.request.messages[-1] == LATER.messages[0]
    assert complaints(built.request, own=True) == []


@given(talks())
def test_the_model_is_told_every_word_and_no_notice_but_of_dropped_calls(told: tuple[Talk, list[Log]]) -> None:
    """C26, C45."""
    talk, answers = told
    run = talk.say("And?")
    history = context(talk.transcript(), run, LATER).request.messages
    assert texts(history) == "".join(log.text for log in answers)
    said = [message.parts[0] for message in history if isinstance(message, User)]
    remarks = [REMARK.format(notice.text) for notice in talk.notices if notice.for_model]
    assert [part.text for part in said if isinstance(part, Text) and part.text not in ("Go on.", "And?")] == remarks


@given(talks())
def test_no_call_is_told_that_was_dropped_and_no_result_without_its_call(told: tuple[Talk, list[Log]]) -> None:
    """C26."""
    talk, _ = told
    run = talk.say("And?")
    asked: list[str] = []
    for message in context(talk.transcript(), run, LATER).request.messages:
        if isinstance(message, Assistant):
            asked = [call.id for call in message.tool_calls]
        elif isinstance(message, ToolOutput):
            asked.remove(message.call_id)


@given(talks())
def test_people_see_every_word_and_every_notice(told: tuple[Talk, list[Log]]) -> None:
    talk, answers = told
    items = view(talk.transcript()).items
    answered = [item for item in items if isinstance(item, AnswerItem)]
    assert "".join(item.content for item in answered) == "".join(log.text for log in answers)
    assert [item.id for item in items if isinstance(item, NoticeItem)] == [notice.id for notice in talk.notices]
    shown = {item.id for item in items}
    assert all(getattr(item, "parent_id", None) in {None, *shown} for item in items)
