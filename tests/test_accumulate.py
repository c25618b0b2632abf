"""The fold of a run's events."""

from datetime import UTC, datetime

import pytest

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Image, Opaque, Reasoning, Text, ToolCall, ToolOutput
from headwater.events import (
    EVENT_TYPES,
    ApprovalAsked,
    ApprovalGiven,
    AttemptEnded,
    AttemptStarted,
    Event,
    Failed,
    Interrupted,
    Notice,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolProgress,
    ToolResult,
    ToolRunStarted,
    Usage,
    UsageReported,
)
from headwater.judge import Delivered

CALL: list[Event] = [
    ToolCallStarted(0, "c1", "look"),
    ToolArgsDelta(0, '{"at":'),
    ToolArgsDelta(0, "1}"),
    ToolCallEnded(0),
]
USAGE = Usage(7, 2, 0, 0, "provider")


def folded(*events: Event) -> Accumulator:
    accumulator = Accumulator()
    for event in events:
        accumulator.apply(event)
    return accumulator


def test_every_event_is_understood() -> None:
    from headwater.accumulate import _APPLY

    assert set(_APPLY) == set(EVENT_TYPES)


def test_parts_are_kept_in_their_order() -> None:
    """C4, C8."""
    message = folded(
        ReasoningDelta("Let me "),
        ReasoningDelta("think."),
        TextDelta("One "),
        TextDelta("two."),
        *CALL,
        TextDelta("Three."),
        TextDelta("No.", refusal=True),
        ProviderState("responses", {"type": "web_search_call"}),
    ).message()
    assert message == Assistant(
        (
            Reasoning("Let me think."),
            Text("One two."),
            ToolCall("c1", "look", '{"at":1}'),
            Text("Three."),
            Text("No.", refusal=True),
            Opaque("responses", {"type": "web_search_call"}),
        )
    )
    assert message.text == "One two.Three.No."
    assert message.reasoning == "Let me think."


def test_a_seal_belongs_to_the_reasoning_before_it() -> None:
    seal = ProviderState("messages", {"signature": "s"}, of="reasoning")
    sealed = Reasoning("a", "messages", {"signature": "s"})
    assert folded(ReasoningDelta("a"), seal, ReasoningDelta("b")).message().parts == (sealed, Reasoning("b"))
    alone = Reasoning("", "messages", {"signature": "s"})
    assert folded(seal).message().parts == (alone,)
    assert folded(TextDelta("t"), seal).message().parts == (Text("t"), alone)
    assert folded(ReasoningDelta("a"), seal, seal).message().parts == (sealed, alone)


def test_provider_extras_stay_with_their_call() -> None:
    """C3."""
    accumulator = folded(ToolCallStarted(0, "c", "t", {"a": 1}), ToolCallEnded(0, {"b": 2}))
    assert accumulator.message().tool_calls == (ToolCall("c", "t", "", {"a": 1, "b": 2}),)


@pytest.mark.parametrize(
    ("arguments", "torn"),
    [
        ("", False),
        ("{}", False),
        ('{"a":1}', False),
        ('{"a":', True),
        ('{"a":"x', True),
        ('{"a":"\\"', True),
        ("[1,", True),
        ('{"a":"}"', True),
        ("{'a': 1}", False),
        ('{"a":1,}', False),
        ('{"a":1}}', False),
        ('{"a":"\\ud83d"}', False),
        ("[" * 5000, True),
        ('{"a":"' + '\\"' * 20_000, True),
        ('{"a":"\\', True),
    ],
)
def test_torn_is_cut_off_not_badly_written(arguments: str, torn: bool) -> None:
    """C26."""
    accumulator = folded(ToolCallStarted(0, "c", "t"), ToolArgsDelta(0, arguments), ToolCallEnded(0))
    assert accumulator.delivered() == Delivered(calls=("t",), torn=("t",) if torn else ())


def test_a_call_that_was_never_ended_is_torn() -> None:
    assert folded(*CALL[:-1]).delivered().torn == ("look",)


@pytest.mark.parametrize(
    ("event", "counts"),
    [
        (TextDelta("x"), True),
        (TextDelta(" \n"), False),
        (TextDelta("No.", refusal=True), True),
        (ReasoningDelta("x"), False),
    ],
)
def test_only_text_that_can_be_seen_is_an_answer(event: Event, counts: bool) -> None:
    """C12."""
    accumulator = folded(event)
    assert accumulator.delivered().text == counts
    assert accumulator.delivered_anything


def test_after_a_retry_nothing_of_the_failed_attempt_stands() -> None:
    accumulator = folded(
        AttemptStarted("a", "m"),
        *CALL,
        UsageReported(USAGE),
        AttemptEnded(503, "req_1", failed=Failed("upstream_error", "Busy.", 503, True)),
        AttemptStarted("b", "m", reason="fallback"),
        TextDelta("Hi"),
    )
    assert accumulator.message() == Assistant((Text("Hi"),), origin="b")
    assert accumulator.calls == []
    assert accumulator.usage == Usage()
    assert [attempt.started.upstream for attempt in accumulator.attempts] == ["a", "b"]
    first, second = accumulator.attempts
    assert first.ended is not None
    assert first.ended.request_id == "req_1"
    assert second.ended is None


def test_a_continuation_goes_on_where_the_text_was_cut() -> None:
    """C27: and what was cut off was paid for, too."""
    accumulator = folded(
        AttemptStarted("a", "m"),
        TextDelta("Hel"),
        UsageReported(USAGE),
        AttemptStarted("a", "m", reason="continue", stands="everything"),
        TextDelta("lo"),
        UsageReported(USAGE),
    )
    assert accumulator.message().parts == (Text("Hello"),)
    assert accumulator.usage == Usage(14, 4, 0, 0, "provider")


def test_turns_add_up() -> None:
    accumulator = folded(
        AttemptStarted("a", "m"),
        TextDelta("Looking. "),
        *CALL,
        UsageReported(USAGE),
        ToolRunStarted("c1"),
        ToolProgress("c1", "half"),
        ToolResult("c1", "found", images=("data:image/png;base64,AA==",)),
        AttemptStarted("a", "m", turn=1),
        *CALL,
        UsageReported(USAGE),
        ToolRunStarted("c1"),
        ToolResult("c1", "broke", state="failed"),
        AttemptStarted("a", "m", turn=2),
        ReasoningDelta("So."),
        TextDelta("Done."),
    )
    call = ToolCall("c1", "look", '{"at":1}')
    assert accumulator.messages() == [
        Assistant((Text("Looking. "), call), origin="a"),
        ToolOutput("c1", (Text("found"), Image("data:image/png;base64,AA=="))),
        Assistant((call,), origin="a"),
        ToolOutput("c1", (Text("broke"),), is_error=True),
        Assistant((Reasoning("So."), Text("Done.")), origin="a"),
    ]
    assert accumulator.text() == "Looking. Done."
    assert accumulator.reasoning() == "So."
    assert [call.state for call in accumulator.calls] == ["done", "failed"]
    assert accumulator.turn_calls == []
    # Two turns are known, the third is not yet: so the sum is not.
    assert accumulator.usage == Usage()
    accumulator.apply(UsageReported(USAGE))
    assert accumulator.usage == Usage(21, 6, 0, 0, "provider")


def test_usage_of_one_turn_is_replaced_not_added() -> None:
    assert folded(UsageReported(Usage(7, 1, source="provider")), UsageReported(USAGE)).usage == USAGE


ASKED = ApprovalAsked("c1", "look", '{"at":1}', "digest")


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([], "asked"),
        ([ASKED], "waiting"),
        ([ASKED, ApprovalGiven("c1", "yes")], "asked"),
        ([ToolRunStarted("c1")], "running"),
        ([ToolRunStarted("c1"), ToolResult("c1", "x")], "done"),
        ([ToolRunStarted("c1"), ToolResult("c1", "x", state="failed")], "failed"),
        ([ToolRunStarted("c1"), ToolResult("c1", "x", state="unknown")], "unknown"),
        ([Notice("tool_call_dropped", "…")], "dropped"),
        ([Notice("other", "…")], "asked"),
        ([ToolRunStarted("c1"), RunEnded(Interrupted("crash"))], "unknown"),
        ([RunEnded(Interrupted("crash"))], "asked"),
    ],
)
def test_the_state_of_a_call(events: list[Event], state: str) -> None:
    """Started and never answered is unknown: it may have run."""
    assert folded(*CALL, *events).calls[0].state == state


def test_a_dropped_call_is_one_that_never_ran() -> None:
    """What was started may have run: it stays unknown, and what is done stays done."""
    calls: list[Event] = [ToolCallStarted(n, id, id) for n, id in enumerate(["pay", "look", "wait", "ask"])]
    ran: list[Event] = [ToolRunStarted("pay"), ToolRunStarted("look"), ToolResult("look", "ok")]
    asked = ApprovalAsked("wait", "wait", "{}", "digest")
    ended: list[Event] = [Notice("tool_call_dropped", "…"), RunEnded(Interrupted("crash"))]
    states = {call.id: call.state for call in folded(*calls, *ran, asked, *ended).calls}
    assert states == {"pay": "unknown", "look": "done", "wait": "dropped", "ask": "dropped"}


def test_the_rest_is_there_to_be_read() -> None:
    started = RunStarted("run_1", "fast", datetime(2026, 1, 1, tzinfo=UTC))
    notice = Notice("stopped", "Stopped by you.")
    accumulator = folded(started, notice, RunEnded(Interrupted("crash")))
    assert accumulator.started is started
    assert accumulator.notices == [notice]
    assert accumulator.outcome == Interrupted("crash")
    assert accumulator.messages() == []
    assert not accumulator.delivered_anything


def test_a_remark_on_the_end_is_nothing_delivered() -> None:
    """C20: a stream that brought no more than that may be tried again."""
    accumulator = Accumulator()
    accumulator.apply(ProviderState("messages", {"type": "headwater.stop", "usage": {"service_tier": "standard"}}))
    assert not accumulator.delivered_anything
    accumulator.apply(ProviderState("messages", {"type": "server_tool_use", "id": "srv_1"}))
    assert accumulator.delivered_anything
    assert folded(ToolCallStarted(0, "c1", "look")).delivered_anything
