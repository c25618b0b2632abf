"""How a stream ended: every combination of the evidence, and what an upstream may call an error (C10-C14)."""

import itertools
from typing import Any, get_args

import pytest

from headwater.errors import FrameTooLarge, FrameUnreadable
from headwater.events import Completed, Failed, Incomplete, Outcome
from headwater.judge import (
    Delivered,
    ErrorObject,
    Evidence,
    Finish,
    Rules,
    Transport,
    judge,
    passing_status,
    read_error,
)

NOTHING = Delivered()
TEXT = Delivered(text=True)
CALL = Delivered(calls=("look",))
TORN = Delivered(text=True, calls=("look", "write"), torn=("write",))

FINISHES: tuple[Finish | None, ...] = (None, *get_args(Finish))
ALL = list(
    itertools.product(
        FINISHES,
        (None, "network_error"),
        (False, True),  # delivered after the finish
        (False, True),  # terminated
        (None, "an item never ended"),  # contradiction
        (None, ErrorObject("On fire")),
        (None, FrameTooLarge(10), FrameUnreadable("no JSON", b"x")),
        (NOTHING, TEXT, CALL, TORN),
        get_args(Transport),
        (Rules(), Rules(needs_finish_reason=False), Rules(allow_empty=True)),
    )
)


def verdict(case: tuple[Any, ...], fault: Failed | None = None) -> Outcome:
    *evidence, delivered, transport, rules = case
    return judge(Evidence(*evidence), delivered, transport, rules, fault)


def test_success_is_proven() -> None:
    """Over all evidence there can be: `completed` only with a finish, or a terminator that may stand for one."""
    completed = [case for case in ALL if isinstance(verdict(case), Completed)]
    assert completed
    for finish, unknown, after, terminated, contradiction, error, unreadable, delivered, _, rules in completed:
        assert contradiction is None
        assert unknown is None
        assert error is None
        assert unreadable is None
        assert not delivered.torn
        assert finish in ("stop", "tool_calls") or (finish is None and terminated and not rules.needs_finish_reason)
        assert terminated or not after
        assert delivered.text or delivered.calls or rules.allow_empty


def test_incomplete_needs_the_upstreams_word() -> None:
    for case in ALL:
        if isinstance(outcome := verdict(case), Incomplete):
            assert outcome.reason == case[0]


def test_every_failure_has_words() -> None:
    for case in ALL:
        if isinstance(outcome := verdict(case), Failed):
            assert outcome.message.endswith((".", "On fire"))
            assert ("Not called" in outcome.message) == bool(case[7].calls)


@pytest.mark.parametrize(
    ("evidence", "delivered", "outcome"),
    [
        (Evidence(finish="stop"), TEXT, Completed("stop")),
        (Evidence(finish="stop"), CALL, Completed("tool_calls")),
        (Evidence(finish="tool_calls"), CALL, Completed("tool_calls")),
        (Evidence(finish="length"), NOTHING, Incomplete("length")),
        (Evidence(finish="content_filter"), TEXT, Incomplete("content_filter")),
        (Evidence(finish="turn_limit"), TEXT, Incomplete("turn_limit")),
    ],
)
def test_orderly_ends(evidence: Evidence, delivered: Delivered, outcome: Outcome) -> None:
    assert judge(evidence, delivered, "clean", Rules()) == outcome
    # The finish is the proof: what happens to the connection after it can't take it back.
    assert judge(evidence, delivered, "broken", Rules()) == outcome


def test_the_callers_fault_stands_only_where_the_evidence_proves_no_other_end() -> None:
    fault = Failed("stalled", "Silent for 60 s.", retryable=True)
    for case in ALL:
        outcome, with_fault = verdict(case), verdict(case, fault)
        if with_fault != outcome:
            assert isinstance(outcome, Failed)
            assert isinstance(with_fault, Failed)
            assert (outcome.reason, with_fault.reason) == ("upstream_truncated", "stalled")
    assert judge(Evidence(), TEXT, "broken", Rules(), fault) == fault
    assert judge(Evidence(finish="stop"), TEXT, "broken", Rules(), fault) == Completed("stop")


@pytest.mark.parametrize(
    ("evidence", "delivered", "reason"),
    [
        (Evidence(), TEXT, "upstream_truncated"),
        (Evidence(terminated=True), TEXT, "upstream_truncated"),
        (Evidence(finish="stop", delivered_after_finish=True), TEXT, "upstream_truncated"),
        (Evidence(finish="stop"), TORN, "upstream_truncated"),
        (Evidence(finish="stop"), NOTHING, "empty"),
        (Evidence(finish="tool_calls"), TEXT, "upstream_error"),
        (Evidence(finish="stop", contradiction="an item never ended"), TEXT, "upstream_error"),
        (Evidence(finish="stop", unknown_finish="abort"), TEXT, "upstream_error"),
        (Evidence(finish="stop", error=ErrorObject("x")), TEXT, "upstream_error"),
        (Evidence(finish="stop", unreadable=FrameUnreadable("no JSON", b"")), TEXT, "upstream_error"),
        (Evidence(finish="stop", unreadable=FrameTooLarge(9)), TEXT, "too_large"),
    ],
)
def test_failures(evidence: Evidence, delivered: Delivered, reason: str) -> None:
    outcome = judge(evidence, delivered, "clean", Rules())
    assert isinstance(outcome, Failed)
    assert outcome.reason == reason


def test_a_cut_names_the_tools_that_were_not_called() -> None:
    """C26: a client of a dialect has no other place to learn it."""
    for evidence in (
        Evidence(),
        Evidence(finish="stop"),
        Evidence(error=ErrorObject("Boom")),
        Evidence(unknown_finish="abort"),
        Evidence(unreadable=FrameTooLarge(9)),
    ):
        outcome = judge(evidence, TORN, "broken", Rules())
        assert isinstance(outcome, Failed)
        assert outcome.message.endswith(". Not called: look, write.")


def test_an_unknown_finish_is_named() -> None:
    """C14."""
    evidence = Evidence()
    evidence.finished("network_error", {"stop": "stop"})
    evidence.finished("stop", {"stop": "stop"})
    outcome = judge(evidence, TEXT, "clean", Rules())
    assert isinstance(outcome, Failed)
    assert "network_error" in outcome.message


@pytest.mark.parametrize(
    ("error", "read"),
    [
        ("model not loaded", ErrorObject("model not loaded")),
        ("", ErrorObject("The upstream reported an error and gave no message.")),
        (7, ErrorObject("The upstream reported an error and gave no message.")),
        ({"message": "m", "code": "429"}, ErrorObject("m", "429", 429)),
        ({}, ErrorObject("The upstream reported an error and gave no message.")),
        ({"message": "m", "type": "t", "code": "c"}, ErrorObject("m", "t c")),
        ({"message": "m", "code": 502}, ErrorObject("m", None, 502)),
        ({"message": "m", "code": 1}, ErrorObject("m")),
        ({"message": {"deep": 1}}, ErrorObject("The upstream reported an error and gave no message.")),
        ({"detail": "d"}, ErrorObject("d")),
        ({"type": "overloaded_error"}, ErrorObject("overloaded_error", "overloaded_error")),
        ({"type": "error", "error": {"message": "m"}}, ErrorObject("m")),
        ({"error": "m"}, ErrorObject("m")),
    ],
)
def test_errors_are_read_in_any_shape(error: Any, read: ErrorObject) -> None:
    assert read_error(error) == read


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (ErrorObject("Overloaded", "overloaded_error"), True),
        (ErrorObject("Rate limit reached"), True),
        (ErrorObject("The connection to the engine was lost"), True),
        (ErrorObject("Network connection lost."), True),
        (ErrorObject("upstream request timed out"), True),
        (ErrorObject("x", "server_error"), True),
        (ErrorObject("Too Many Requests"), True),
        (ErrorObject("Cut off", "upstream_error upstream_truncated"), True),
        (ErrorObject("The upstream reported an error and gave no message."), False),
        (ErrorObject("Invalid value for 'timeout'", "invalid_request_error"), False),
        (ErrorObject("No such model"), False),
        (ErrorObject("Overloaded", None, 400), False),
        (ErrorObject("x", None, 503), True),
    ],
)
def test_an_error_that_may_pass_is_retryable(error: ErrorObject, retryable: bool) -> None:
    """C20: an error object that means that the connection was lost."""
    outcome = judge(Evidence(error=error), NOTHING, "clean", Rules())
    assert outcome == Failed("upstream_error", error.message, error.status, retryable)


def test_statuses_that_may_pass() -> None:
    """C22."""
    assert [status for status in range(400, 600) if passing_status(status)] == [408, 409, 429, *range(500, 600)]
