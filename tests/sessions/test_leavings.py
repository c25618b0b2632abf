"""What a run leaves in its session."""

import pytest

from headwater.conversation import Assistant, Message, Reasoning, Text, ToolCall, ToolOutput
from headwater.dialects.base import STOP
from headwater.dialects.history import UNKNOWN_OUTCOME
from headwater.events import (
    AttemptEnded,
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolResult,
    ToolRunStarted,
    Usage,
    UsageReported,
)
from headwater.records import Run
from headwater.sessions.leavings import Left, answered_by, left
from tests.sessions.talks import CUT, ORDERLY, call, folded, ids, ran

ASKED: list[Event] = [AttemptStarted("openai", "gpt-5")]
TEXT: list[Event] = [TextDelta("t0 "), TextDelta("t1 ")]
USAGE = Usage(7, 2, source="provider")
CUT_IDS = [f"{type(outcome).__name__}-{outcome.reason}" for outcome in CUT]


def leave(*events: Event, outcome: Outcome = Completed(), continues: str | None = None) -> Left:
    run = Run(id="run_1", owner="ann", model="fast", created_at=0.0, parent_id="msg_q", continues=continues)
    return left(run, folded([*ASKED, *events]), outcome, now=5.0, make_id=ids())


def codes(kept: Left) -> list[str]:
    return [notice.code for notice in kept.notices]


def test_an_answer_is_kept_as_complete_and_without_a_notice() -> None:
    """C46."""
    kept = leave(ReasoningDelta("Hm."), *TEXT, UsageReported(USAGE))
    (message,) = kept.messages
    assert message.message == Assistant((Reasoning("Hm."), Text("t0 t1 ")), origin="openai")
    assert (message.status, message.outcome, message.usage) == ("complete", Completed(), USAGE)
    assert (message.id, message.run_id, message.model, message.answered_by) == (
        "msg_0001",
        "run_1",
        "fast",
        "openai/gpt-5",
    )
    assert message.created_at == 5.0
    assert kept.notices == ()
    assert kept.output == (message.message,)


@pytest.mark.parametrize("outcome", CUT, ids=CUT_IDS)
def test_text_before_a_cut_is_kept_once_as_partial_and_the_notice_follows(outcome: Outcome) -> None:
    """C43, C45."""
    kept = leave(*TEXT, outcome=outcome)
    (message,) = kept.messages
    assert message.message == Assistant((Text("t0 t1 "),), origin="openai")
    assert (message.status, message.outcome) == ("partial", outcome)
    (notice,) = kept.notices
    assert notice.code == outcome.__struct_config__.tag
    assert not notice.for_model


@pytest.mark.parametrize("outcome", CUT, ids=CUT_IDS)
@pytest.mark.parametrize(
    "events",
    [
        [],
        [ReasoningDelta("Hm.")],
        [TextDelta("")],
        [ReasoningDelta("Hm."), ProviderState("chat", {"type": STOP, "service_tier": "default"})],
    ],
    ids=["nothing", "reasoning", "empty", "remark"],
)
def test_where_nothing_was_visible_there_is_the_notice_alone(events: list[Event], outcome: Outcome) -> None:
    """C44."""
    kept = leave(*events, outcome=outcome)
    assert kept.messages == ()
    assert kept.output == ()
    assert codes(kept) == [outcome.__struct_config__.tag]


def test_a_line_break_that_somebody_may_have_seen_is_kept() -> None:
    """C43."""
    assert leave(TextDelta("\n"), outcome=Stopped("user")).output == (Assistant((Text("\n"),), origin="openai"),)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Stopped("user"), "Stopped by you."),
        (Stopped("disconnect"), "Stopped: the connection that it was for was closed."),
        (Stopped("replaced"), "Stopped: another message came in its place."),
        (Failed("stalled", "The upstream fell silent."), "The upstream fell silent."),
        (Interrupted("crash"), "Interrupted: the server went down."),
        (Interrupted("shutdown"), "Interrupted: the server was shut down."),
        (Interrupted("store"), "Interrupted: what came could not be stored."),
    ],
)
def test_a_notice_says_what_happened(outcome: Outcome, text: str) -> None:
    """C45."""
    assert [notice.text for notice in leave(outcome=outcome).notices] == [text]


@pytest.mark.parametrize("outcome", ORDERLY, ids=lambda outcome: outcome.reason)
def test_an_orderly_end_leaves_a_complete_message_that_says_its_outcome(outcome: Outcome) -> None:
    """C65."""
    kept = leave(*TEXT, outcome=outcome)
    assert [(message.status, message.outcome) for message in kept.messages] == [("complete", outcome)]
    assert kept.notices == ()


@pytest.mark.parametrize("outcome", ORDERLY, ids=lambda outcome: outcome.reason)
def test_an_orderly_end_without_an_answer_leaves_a_notice(outcome: Outcome) -> None:
    kept = leave(ReasoningDelta("Hm."), outcome=outcome)
    assert kept.messages == ()
    assert codes(kept) == ["incomplete"]


@pytest.mark.parametrize("events", [[], [ReasoningDelta("Hm.")]], ids=["nothing", "reasoning"])
def test_an_empty_answer_that_is_allowed_is_an_answer(events: list[Event]) -> None:
    """C12, C46."""
    kept = leave(*events)
    assert [message.status for message in kept.messages] == ["complete"]
    assert kept.notices == ()


# ------------------------------------------------------------------------ calls

LOOK = ToolCall("c1", "look", '{"at":1}')
FOUND = ToolOutput("c1", (Text("found"),))


def test_a_torn_call_is_kept_and_said_to_be_dropped() -> None:
    """C26."""
    torn = call(0, "c1")[:2]
    kept = leave(*TEXT, *torn, outcome=Failed("upstream_truncated", "It broke."))
    assert kept.output == (Assistant((Text("t0 t1 "), ToolCall("c1", "look", '{"at')), origin="openai"),)
    assert codes(kept) == ["tool_call_dropped", "failed"]
    assert (kept.notices[0].tools, kept.notices[0].for_model) == (("look",), True)


def test_a_drop_that_the_log_tells_of_is_told_once() -> None:
    """C26."""
    told = Notice("tool_call_dropped", "As the log has it.", ("look",), for_model=True)
    kept = leave(*call(0, "c1"), told, outcome=Stopped("user"))
    assert [notice.text for notice in kept.notices] == ["As the log has it.", "Stopped by you."]


def test_a_drop_in_an_attempt_of_which_nothing_stands_is_no_ones_business() -> None:
    told = Notice("tool_call_dropped", "As the log has it.", ("look",), for_model=True)
    kept = leave(*call(0, "c1"), told, AttemptStarted("openai", "gpt-5", reason="retry"), *TEXT)
    assert kept.notices == ()


def test_calls_for_a_client_to_run_are_left_to_it() -> None:
    kept = leave(*call(0, "c1"), outcome=Completed("tool_calls"))
    assert kept.output == (Assistant((LOOK,), origin="openai"),)
    assert kept.notices == ()


def test_a_run_of_several_turns_leaves_them_all() -> None:
    kept = leave(*call(0, "c1"), *ran("c1"), AttemptStarted("other", "m", turn=1), *TEXT, UsageReported(USAGE))
    expected: list[Message] = [
        Assistant((LOOK,), origin="openai"),
        FOUND,
        Assistant((Text("t0 t1 "),), origin="other"),
    ]
    assert [message.message for message in kept.messages] == expected
    assert [message.outcome for message in kept.messages] == [None, None, Completed()]
    assert [message.usage is not None for message in kept.messages] == [False, False, True]
    assert [message.answered_by for message in kept.messages] == ["other/m", None, "other/m"]


def test_turns_before_the_cut_one_are_complete() -> None:
    """C43."""
    turns = [*call(0, "c1"), *ran("c1"), AttemptStarted("openai", "gpt-5", turn=1)]
    kept = leave(*turns, *TEXT, outcome=Stopped("user"))
    assert [message.status for message in kept.messages] == ["complete", "complete", "partial"]
    kept = leave(*turns, ReasoningDelta("Hm."), outcome=Stopped("user"))
    assert [message.status for message in kept.messages] == ["partial", "complete"]


BROKE = Failed("upstream_truncated", "The connection broke.", retryable=True)
TOLD = Notice("continued", "It was asked to go on in a new message.")


def cut_off(turn: int = 1) -> list[Event]:
    return [
        AttemptEnded(200, failed=BROKE),
        TOLD,
        AttemptStarted("openai", "gpt-5", turn=turn, reason="continue"),
    ]


def test_a_half_that_another_message_goes_on_from_is_partial_and_a_notice_says_why() -> None:
    """C25, C27: the run is complete, and its first message is not."""
    kept = leave(*TEXT, *cut_off(1), *TEXT, *cut_off(2), TextDelta("t2"))
    assert [message.status for message in kept.messages] == ["partial", "partial", "complete"]
    assert [message.outcome for message in kept.messages] == [BROKE, BROKE, Completed()]
    (notice,) = kept.notices
    assert (notice.code, notice.text, notice.for_model) == (TOLD.code, TOLD.text, False)


def test_a_half_that_is_all_there_is_stays_partial_and_says_how_the_run_ended() -> None:
    kept = leave(*TEXT, *cut_off(), ReasoningDelta("Hm."), outcome=Incomplete("length"))
    assert [(message.status, message.outcome) for message in kept.messages] == [("partial", Incomplete("length"))]


def test_a_half_of_which_nothing_was_visible_is_no_message() -> None:
    """C44."""
    kept = leave(ReasoningDelta("Hm."), *cut_off(), *TEXT)
    assert kept.output == (Assistant((Text("t0 t1 "),), origin="openai"),)
    assert [message.status for message in kept.messages] == ["complete"]
    assert codes(kept) == ["continued"]


def test_a_tool_that_was_running_leaves_a_result_that_says_so_and_one_that_was_not_is_dropped() -> None:
    """C51: nothing says how it went, and it is not said that it went well."""
    kept = leave(*call(0, "c1"), *call(1, "c2"), ToolRunStarted("c1"), outcome=Interrupted("crash"))
    assert kept.output[1:] == (ToolOutput("c1", (Text(UNKNOWN_OUTCOME),), is_error=True),)
    assert codes(kept) == ["tool_call_dropped", "interrupted"]
    assert kept.notices[0].tools == ("look",)


def test_an_unknown_result_that_the_log_has_is_kept_once() -> None:
    """A tool that was abandoned: its loop had time to say so."""
    given_up = ToolResult("c1", "Abandoned.", state="unknown")
    kept = leave(*call(0, "c1"), ToolRunStarted("c1"), given_up, outcome=Stopped("user"))
    assert kept.output[1:] == (ToolOutput("c1", (Text("Abandoned."),), is_error=True),)
    assert codes(kept) == ["stopped"]


# ------------------------------------------------------------------------- more


def test_what_goes_on_from_a_partial_names_it() -> None:
    """C27."""
    kept = leave(*call(0, "c1"), *ran("c1"), continues="run_0")
    assert [message.continues for message in kept.messages] == ["msg_q", None]
    assert leave(continues="run_0", outcome=Stopped("user")).messages == ()


def test_that_the_context_was_trimmed_stays_to_be_seen_and_other_notices_do_not() -> None:
    trimmed = Notice("context_trimmed", "The 2 oldest messages do not fit.")
    before = Notice("context_trimmed", "The oldest message does not fit.")
    kept = leave(Notice("not_carried", "seed: no such parameter."), before, trimmed, *TEXT)
    assert [(notice.code, notice.text) for notice in kept.notices] == [(trimmed.code, trimmed.text)]


def test_a_run_that_asked_nobody_was_answered_by_nobody() -> None:
    assert answered_by(folded([])) is None
