"""One attempt, from bytes to an outcome: limits, garbage, and nothing else than our own errors."""

import json
import re
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.dialects import DIALECTS
from headwater.dialects.base import Head
from headwater.dialects.chat.decode import ChatDecoder
from headwater.events import (
    Completed,
    DialectName,
    Entry,
    Event,
    Failed,
    Interrupted,
    Notice,
    ProviderState,
    RunEnded,
    Stopped,
    TextDelta,
    ToolCallStarted,
    decode_entry,
    encode_entry,
)
from headwater.judge import Transport
from headwater.sse import Frame
from headwater.turn import TurnEnd, TurnReader, dropped_calls
from tests.fixtures import FIXTURES

each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n'


def read(*pieces: bytes, transport: Transport = "clean", **limits: int) -> TurnEnd:
    reader = TurnReader(DIALECTS["chat"].decoder("call"), Accumulator(), **limits)  # type: ignore[arg-type]
    events = [event for piece in pieces for event in reader.feed(piece)]
    end = reader.end(transport)
    return TurnEnd(events + end.events, end.outcome)


@pytest.mark.parametrize("piece_bytes", [1, 1000, 10**6])
def test_an_answer_past_the_limit_is_too_large_and_what_came_before_is_kept(piece_bytes: int) -> None:
    data = TEXT * 20
    end = read(*(data[n : n + piece_bytes] for n in range(0, len(data), piece_bytes)), limit_bytes=3 * len(TEXT) + 5)
    assert end.events == [TextDelta("Hello")] * 3
    assert end.outcome == Failed("too_large", f"The upstream sent more than {3 * len(TEXT) + 5} bytes without an end.")


def test_what_was_held_back_can_be_had_without_a_verdict() -> None:
    """A stop ends the reading; "<thi" may have become a tag, and is text now."""
    reader = TurnReader(DIALECTS["chat"].decoder("call"), Accumulator())
    assert reader.feed(TEXT.replace(b"Hello", b"<thi")) == []
    assert reader.flush() == [TextDelta("<thi")]


def test_a_frame_past_the_limit_is_too_large() -> None:
    end = read(TEXT, b"data: " + b"x" * 200, frame_limit_bytes=150)
    assert end.events == [TextDelta("Hello")]
    assert end.outcome == Failed("too_large", "The upstream sent more than 150 bytes without an end.")


def test_what_ends_within_the_limit_is_no_worse_for_what_follows() -> None:
    good = TEXT + b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    assert read(good + b"x" * 100, limit_bytes=len(good)).outcome == Completed("stop")


def test_more_calls_than_anybody_makes_are_not_read() -> None:
    call = b'data: {"choices":[{"delta":{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"n"}}]}}]}\n\n'
    end = read(b"".join(call % (n, n) for n in range(1100)))
    assert isinstance(end.outcome, Failed)
    assert "1000 tool calls" in end.outcome.message


def test_a_whole_body_past_the_limit_is_too_large() -> None:
    end = read(b"{" + b" " * 200, limit_bytes=100)
    assert end.outcome == Failed("too_large", "The upstream sent more than 100 bytes without an end.")


def test_reading_closes_by_itself() -> None:
    reader = TurnReader(DIALECTS["chat"].decoder("call"), Accumulator())
    assert not reader.closed
    assert reader.feed(TEXT + b"data: [DONE]\n\n" + TEXT) == [TextDelta("Hello")]
    assert reader.closed
    assert reader.feed(TEXT) == []
    assert reader.activity == 2


def test_a_whole_body_is_activity_while_it_comes() -> None:
    reader = TurnReader(DIALECTS["chat"].decoder("call"), Accumulator())
    for piece in (b'{"choi', b'ces":', b"[]}"):
        reader.feed(piece)
    assert reader.activity == 3


class BottomlessDecoder(ChatDecoder):
    """As any decoder may turn out to be, for a frame that is nested deeply enough."""

    def feed(self, frame: Frame, out: list[Event]) -> None:
        raise RecursionError


@pytest.mark.parametrize("data", [b"data: {}\n\n", b"{}"])
def test_what_is_nested_too_deeply_is_unreadable(data: bytes) -> None:
    reader = TurnReader(BottomlessDecoder("call"), Accumulator())
    reader.feed(data)
    outcome = reader.end("clean").outcome
    assert isinstance(outcome, Failed)
    assert "nested too deeply" in outcome.message


def test_a_stop_drops_the_calls_that_were_asked_for() -> None:
    """C26: whatever ended the turn."""
    accumulator = Accumulator()
    assert dropped_calls(Stopped("user"), accumulator) == []
    accumulator.apply(ToolCallStarted(0, "a", "look"))
    (notice,) = dropped_calls(Stopped("user"), accumulator)
    assert isinstance(notice, Notice)
    assert notice.tools == ("look",)
    assert notice.for_model
    assert dropped_calls(Completed("tool_calls"), accumulator) == []
    accumulator.apply(notice)
    assert dropped_calls(Interrupted("crash"), accumulator) == []


# ---------------------------------------------------------------------- fuzz

DEEP: Any = "x"
for _ in range(400):
    DEEP = [{"text": DEEP}]
ODD: list[Any] = [
    None,
    True,
    -1,
    1e300,
    float("inf"),
    float("nan"),
    "",
    "\ud83d",
    "\ude00x",
    "null",
    [],
    {},
    ["\ud800"],
]
ODD += [{"\ud800": "\udc00"}, {"error": {"error": "\ud800"}}, [[]], {"type": "text", "text": ["\ud800"]}, DEEP]


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def writable(events: list[Event]) -> None:
    """Whatever was read can be kept, read back as it is, and shown in every dialect."""
    for seq, event in enumerate(events):
        assert decode_entry(encode_entry(Entry(seq, 0.0, event))).event == event
    for dialect in DIALECTS.values():
        encoder = dialect.encoder(Head("run_1", 1760000000, "m"), include_usage=True, style="error")
        for event in events:
            encoder.encode(event)


_WORDS = [
    b"data: ",
    b"event: error\n",
    b"event: ping\n",
    b"\n\n",
    b"\r\n",
    b"[DONE]",
    b"{",
    b"}",
    b"[",
    b'"',
    b"\xff",
    b"<html>",
]
_JSON = [
    b'{"choices":[{"index":0,"delta":{"content":"x","tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"{"}}]}}]}',
    b'{"choices":[{"delta":{"content":[{"type":"text","text":7}]},"finish_reason":"stop"}]}',
    b'{"choices":[{"message":{"tool_calls":[{"index":null,"function":"f"},{"id":[],"function":{"arguments":{}}}]}}]}',
    b'{"error":{"message":null,"code":{}}}',
    b'{"usage":{"prompt_tokens":"x","completion_tokens":-1,"prompt_tokens_details":7},"choices":null}',
    b'{"choices":[{"delta":{"reasoning_details":[{"text":{}},{"summary":[1]}],"content":"\\ud800"}}]}',
    b"[]",
    b"[1]",
    b"7",
    b"null",
]
garbage = st.lists(st.sampled_from(_WORDS + _JSON) | st.binary(max_size=8), max_size=30).map(b"".join)


@each_dialect
@given(data=garbage, cut=st.integers(0, 200), transport=st.sampled_from(["clean", "broken"]))
def test_garbage_gives_an_outcome_and_never_an_exception(
    dialect: str, data: bytes, cut: int, transport: Transport
) -> None:
    whole = TurnReader(DIALECTS[dialect].decoder("call"), Accumulator())  # type: ignore[index]
    pieces = TurnReader(DIALECTS[dialect].decoder("call"), Accumulator())  # type: ignore[index]
    one = whole.feed(data)
    two = pieces.feed(data[:cut]) + pieces.feed(data[cut:])
    assert one == two
    end = whole.end(transport)
    assert end == pieces.end(transport)
    writable([*one, *end.events, RunEnded(end.outcome)])


@given(data=st.data())
def test_damaged_streams_give_an_outcome_and_never_an_exception(data: st.DataObject) -> None:
    fixture = data.draw(st.sampled_from(FIXTURES))
    damaged = bytearray(fixture.data)
    for _ in range(data.draw(st.integers(1, 5))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    end = fixture.read([bytes(damaged)])
    writable([*end.events, RunEnded(end.outcome)])


@each_dialect
@given(data=st.data())
def test_odd_values_anywhere_give_an_outcome_and_events_that_can_be_kept(dialect: str, data: st.DataObject) -> None:
    """One value of one frame of a recorded stream is replaced by something that nobody expects there."""
    fixture = data.draw(st.sampled_from([fixture for fixture in FIXTURES if fixture.dialect == dialect]))
    frames = [json.loads(line) for line in re.findall(rb"data: (\{.*\})", fixture.data) if is_json(line)]
    if frames:
        frame = data.draw(st.sampled_from(frames))
        place: Any = frame
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
                place[key] = data.draw(st.sampled_from(ODD))
                break
            place = place[key]
        end = fixture.read([b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames])
        writable([*end.events, RunEnded(end.outcome)])


def fed_without_end(dialect: DialectName, piece: bytes, limit_bytes: int) -> tuple[TurnReader, int]:
    """Four times the limit, in many small pieces; and the most memory that was in use meanwhile."""
    reader = TurnReader(
        DIALECTS[dialect].decoder("call"),
        Accumulator(),
        limit_bytes=limit_bytes,
        frame_limit_bytes=limit_bytes // 2,
    )
    tracemalloc.start()
    try:
        for _ in range(4 * limit_bytes // 500):
            reader.feed(piece * (500 // len(piece)))
        return reader, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@each_dialect
@pytest.mark.parametrize("piece", [b"x" * 497, b"\n", b"data: x\n", b"data: ", b" ", b"{", b"\r", b": x\n"])
def test_an_endless_answer_takes_no_more_memory_than_the_limit(dialect: DialectName, piece: bytes) -> None:
    limit_bytes = 200_000
    # Others of the process (who counts lines, who talks to the other workers) take memory, too, but not each time.
    for _ in range(3):
        reader, peak = fed_without_end(dialect, piece, limit_bytes)
        assert reader.closed
        assert isinstance(reader.end("clean").outcome, Failed)
        if peak < 3.5 * limit_bytes:
            break
    # A growing buffer may be half empty, and is held twice while it moves.
    assert peak < 3.5 * limit_bytes


def test_events_are_the_same_objects_that_were_accumulated() -> None:
    accumulator = Accumulator()
    reader = TurnReader(DIALECTS["chat"].decoder("call"), accumulator)
    events: list[Event] = reader.feed(TEXT)
    assert accumulator.text() == "".join(event.text for event in events if isinstance(event, TextDelta))


NESTED: list[tuple[DialectName, str]] = [
    ("chat", '{"choices":[{"index":0,"delta":{"content":"Hi","annotations":[{"x":@}]}}]}'),
    ("responses", '{"type":"response.output_item.done","output_index":0,"item":{"type":"x_call","x":@}}'),
    ("messages", '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"a","x":@}}'),
]


@pytest.mark.parametrize("depth", [250, 500, 960, 2_000, 100_000])
@pytest.mark.parametrize("form", [b"data: %b\n\n", b"data: Hi\n\ndata: %b", b"%b"])
@pytest.mark.parametrize(("dialect", "frame"), NESTED)
def test_what_could_not_be_written_again_is_not_read(dialect: DialectName, frame: str, form: bytes, depth: int) -> None:
    """Else a stored event, or a client's frame, would fail where nobody expects it."""
    reader = TurnReader(DIALECTS[dialect].decoder("call_x"), Accumulator())
    events = reader.feed(form % frame.replace("@", "[" * depth + "]" * depth).encode())
    end = reader.end("clean")
    assert isinstance(end.outcome, Failed)
    assert [event for event in events + end.events if isinstance(event, ProviderState | ToolCallStarted)] == []


def test_many_brackets_are_not_deep_ones() -> None:
    reader = TurnReader(DIALECTS["chat"].decoder("call_x"), Accumulator())
    many = b'{"choices":[{"index":0,"delta":{"content":"Hi"}}],"x":[%b]}' % b",".join([b"[]"] * 300)
    assert reader.feed(b"data: %b\n\n" % many) == [TextDelta("Hi")]
    # Bad JSON is the decoder's to judge: it may know what is meant.
    assert reader.feed(b"data: %b\n\n" % many.replace(b'"x"', b'"\\ud800"')) == [TextDelta("Hi")]
