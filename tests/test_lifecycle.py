"""The states of a run."""

import itertools

import pytest

from headwater.events import Stopped
from headwater.lifecycle import TRANSITIONS, IllegalTransition, RunState, Signal, advance, status


@pytest.mark.parametrize(("state", "signal"), list(itertools.product(RunState, Signal)))
def test_every_pair_is_in_the_table_or_raises(state: RunState, signal: Signal) -> None:
    if (state, signal) in TRANSITIONS:
        assert advance(state, signal) is TRANSITIONS[state, signal]
    else:
        with pytest.raises(IllegalTransition, match=state.value):
            advance(state, signal)


def test_what_has_ended_stays_ended() -> None:
    assert not [signal for state, signal in TRANSITIONS if state is RunState.ENDED]


def test_recovery_ends_only_what_was_running() -> None:
    """C51: queued and waiting runs are still queued and waiting."""
    assert [state for state, signal in TRANSITIONS if signal is Signal.ABANDONED] == [RunState.RUNNING]


def test_a_stop_ends_whatever_has_not_ended() -> None:
    """C42, C48."""
    for state in set(RunState) - {RunState.ENDED}:
        assert advance(state, Signal.STOPPED) is RunState.ENDED


def test_the_status_is_the_state_or_the_ending() -> None:
    assert status(RunState.QUEUED, None) == "queued"
    assert status(RunState.ENDED, Stopped("user")) == "stopped"
