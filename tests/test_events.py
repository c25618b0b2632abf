"""One JSON form for every value, in the store and on the wire."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events import (
    EVENT_TYPES,
    Completed,
    Entry,
    Event,
    Failed,
    Outcome,
    RunEnded,
    RunStarted,
    TextDelta,
    Usage,
    decode_entry,
    encode_entry,
    make_id,
    wire_name,
)
from tests.outcomes import OUTCOMES, outcome_id

any_text = st.text(st.characters(exclude_categories=["Cs"]))
json_objects = st.dictionaries(any_text, st.none() | st.booleans() | st.integers(-9, 9) | any_text, max_size=3)
moments = st.datetimes(timezones=st.just(UTC))
# Where a field's type alone would say too little.
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "outcome": st.sampled_from(OUTCOMES),
    "data": json_objects,
    "extra": st.none() | json_objects,
    "at": moments,
    "expires_at": st.none() | moments,
    "text": any_text,
    "done": st.none() | st.floats(0, 1),
    "total": st.none() | st.floats(0, 1),
}


def built(kind: type[Event]) -> st.SearchStrategy[Event]:
    return st.builds(kind, **{name: FIELDS[name] for name in kind.__struct_fields__ if name in FIELDS})


events: st.SearchStrategy[Event] = st.one_of([built(kind) for kind in EVENT_TYPES])


@given(events, st.integers(0), st.integers(0, 10**9))
def test_an_entry_reads_back_as_it_was_written(event: Event, seq: int, tenths: int) -> None:
    entry = Entry(seq, tenths / 10, event)
    data = encode_entry(entry)
    assert decode_entry(data) == entry
    assert b"\n" not in data


def test_an_entry_is_one_flat_object() -> None:
    assert json.loads(encode_entry(Entry(7, 1234.5, TextDelta("t3 ")))) == {
        "seq": 7,
        "type": "text",
        "text": "t3 ",
        "t": 1234.5,
    }


@pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
def test_an_ending_is_named_for_its_outcome(outcome: Outcome) -> None:
    kind = type(outcome).__name__.lower()
    assert wire_name(RunEnded(outcome)) == f"run.{kind}"
    written = json.loads(encode_entry(Entry(0, 0, RunEnded(outcome))))
    assert written["outcome"]["type"] == kind
    assert written["outcome"]["reason"] == outcome.reason


def test_a_failure_carries_its_facts() -> None:
    failed = Failed("upstream_error", "On fire", 502, retryable=True)
    assert json.loads(encode_entry(Entry(0, 0, RunEnded(failed))))["outcome"] == {
        "type": "failed",
        "reason": "upstream_error",
        "message": "On fire",
        "status": 502,
        "retryable": True,
    }


def test_other_events_are_named_for_their_type() -> None:
    started = RunStarted("run_1", "fast", datetime(2026, 1, 2, tzinfo=UTC))
    assert [wire_name(event) for event in (started, TextDelta("x"))] == ["run.started", "run.text"]
    assert b'"at":"2026-01-02T00:00:00Z"' in encode_entry(Entry(0, 0, started))


def test_unknown_usage_is_never_zero() -> None:
    known = Usage(7, 2, 1, 0, "provider")
    assert known + known == Usage(14, 4, 2, 0, "provider")
    assert known + Usage() == Usage()
    assert known + Usage(1, 1, source="estimated") == Usage(8, 3, source="estimated")


def test_ids_sort_by_time_and_differ_by_entropy() -> None:
    ids = [make_id("run", ms, bytes([n] * 16)) for ms, n in ((1, 9), (2, 0), (2, 1), (1 << 40, 0))]
    assert ids == sorted(set(ids))
    assert all(len(id) == len("run_") + 26 for id in ids)
    assert make_id("run", 0x1234567, bytes(range(240, 256))) == "run_00000j6hb7ghjkmnpqrstvwxyz"
    with pytest.raises(ValueError, match="16 bytes"):
        make_id("run", 1, b"short")


def test_a_completed_run_needs_no_more_than_its_reason() -> None:
    assert encode_entry(Entry(1, 0.0, RunEnded(Completed()))) == (
        b'{"seq":1,"t":0.0,"type":"ended","outcome":{"type":"completed","reason":"stop"}}'
    )
