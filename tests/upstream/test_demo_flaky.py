"""`demo/flaky`: every word that it knows, and what becomes of it."""

import pytest

from headwater.events import Completed, Failed, FailureReason, Incomplete, Notice, TextDelta
from headwater.policy import Retry as TryAgain
from headwater.policy import RetryLimits, Situation, decide
from headwater.upstream import demo
from headwater.upstream.demo.flaky import FAULTS
from headwater.upstream.demo.steps import Cut, End, Hang
from tests.upstream.demo_turns import WEATHER, Turn, ask

FAILURES: dict[str, tuple[FailureReason, str]] = {
    "torn tool call": ("upstream_truncated", "Not called: look_up."),
    "unknown finish": ("upstream_error", "network_error"),
    "no finish": ("upstream_truncated", "without a finish reason"),
    "cut": ("upstream_truncated", "broke before the answer was complete"),
    "close": ("upstream_truncated", "closed the connection before"),
    "stall": ("upstream_truncated", "before the answer was complete"),
    "error": ("upstream_error", "overloaded"),
    "refuse": ("upstream_error", "refuse"),
    "garbage": ("upstream_error", "can't be read"),
    "empty": ("empty", "without an answer"),
}


def tokens(turn: Turn) -> int:
    return sum(isinstance(event, TextDelta) for event in turn.events)


@pytest.mark.parametrize("words", FAILURES)
def test_a_failure_that_is_asked_for_happens(words: str) -> None:
    turn = ask("flaky", f"Hello! Please {words.upper()}, if you like")
    assert isinstance(turn.outcome, Failed)
    reason, said = FAILURES[words]
    assert turn.outcome.reason == reason
    assert said in turn.outcome.message


def test_every_word_is_tried_here() -> None:
    assert {fault.words for fault in FAULTS} == {*FAILURES, "length", "filter", "slow"}


@pytest.mark.parametrize(("words", "reason"), [("length", "length"), ("filter", "content_filter")])
def test_an_answer_can_be_incomplete(words: str, reason: str) -> None:
    turn = ask("flaky", words)
    assert turn.outcome == Incomplete(reason)  # type: ignore[arg-type]
    assert turn.message.text


@pytest.mark.parametrize("words", ["cut", "close", "stall", "error", "refuse", "garbage", "length", "filter"])
@pytest.mark.parametrize("after", [1, 7, 50])
def test_it_fails_after_as_many_tokens_as_it_is_told(words: str, after: int) -> None:
    turn = ask("flaky", f"{words} after {after}")
    assert tokens(turn) == after
    assert turn.outcome != Completed("stop")


def test_more_tokens_than_there_are_is_at_the_end() -> None:
    turn = ask("flaky", "cut after 9999")
    assert turn.message.text.endswith("broke off.")
    assert isinstance(turn.steps[-1], Cut)


def test_a_limit_of_tokens_comes_before_a_fault_that_is_further_on() -> None:
    assert ask("flaky", "cut after 30", max_tokens=10).outcome == Incomplete("length")
    assert isinstance(ask("flaky", "cut after 10", max_tokens=30).outcome, Failed)


@pytest.mark.parametrize(("words", "last"), [("cut", Cut), ("close", End), ("stall", Hang)])
def test_the_connection_ends_as_it_is_told(words: str, last: type) -> None:
    assert isinstance(ask("flaky", words).steps[-1], last)


def test_an_error_before_the_first_token_is_tried_again_and_a_refusal_is_not() -> None:
    for words, again in [("error", True), ("refuse", False), ("cut after 0", True)]:
        turn = ask("flaky", words)
        assert tokens(turn) == 0
        assert isinstance(turn.outcome, Failed)
        decision = decide(turn.outcome, Situation(attempt=1), RetryLimits(), jitter=0.5)
        assert isinstance(decision, TryAgain) == again


def test_a_stall_is_found_out_sooner_than_elsewhere() -> None:
    assert demo.SETTINGS.idle_timeout_s <= 10


def test_slow_is_slow_and_comes_to_an_end() -> None:
    turn = ask("flaky", "slow")
    assert turn.outcome == Completed("stop")
    assert tokens(turn) / turn.seconds < 2.5


def test_a_torn_call_is_of_a_tool_that_was_offered() -> None:
    """C26"""
    turn = ask("flaky", "torn tool call", tools=(WEATHER,))
    assert [event.tools for event in turn.events if isinstance(event, Notice)] == [("get_weather",)]


def test_without_a_word_that_it_knows_it_names_them_all_and_is_cut() -> None:
    turn = ask("flaky", "Hello")
    assert all(f"**{fault.words}" in turn.message.text for fault in FAULTS)
    assert isinstance(turn.steps[-1], Cut)
    assert isinstance(turn.outcome, Failed)


@pytest.mark.parametrize("prompt", ["Hello", "cut after 20", "length", "stall after 3", "no finish"])
def test_an_answer_that_broke_is_gone_on_with_to_its_end(prompt: str) -> None:
    """C27"""
    begun = ask("flaky", prompt).message.text
    rest = ask("flaky", prompt, begun=begun)
    assert rest.outcome == Completed("stop")
    assert rest.message.text
    assert not rest.message.text.startswith(begun)
