"""Tokens of the dialects whose frames have names, numbers and blocks: known by the bytes around them, or read in full."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.dialects import DIALECTS
from headwater.dialects.base import Decoder, Head
from headwater.events import Completed, DialectName, ReasoningDelta, RunEnded, TextDelta
from headwater.mould import Around
from headwater.sse import Frame
from headwater.turn import TurnEnd, TurnReader
from tests.test_mould import by_bytes, grouped, mould

NAMED: list[DialectName] = ["messages", "responses"]
EARLIER = "abcdefghijklmnopqrst"
"""So many that it is worth while to learn anew what stands around them."""


class Counted:
    """A decoder that counts how many frames it was asked to read."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.evidence = decoder.evidence
        self.whole = decoder.whole
        self.end = decoder.end
        self.around_text = decoder.around_text
        self.frames = 0

    def feed(self, frame: Frame, out: list[Any]) -> None:
        self.frames += 1
        self._decoder.feed(frame, out)


def read(dialect: DialectName, pieces: list[bytes]) -> tuple[TurnEnd, str, int]:
    accumulator = Accumulator()
    decoder = Counted(DIALECTS[dialect].decoder("call"))
    reader = TurnReader(decoder, accumulator)
    events = [event for piece in pieces for event in reader.feed(piece)]
    end = reader.end("clean")
    return TurnEnd(events + end.events, end.outcome), accumulator.text(), decoder.frames


@pytest.mark.parametrize("dialect", NAMED)
def test_most_of_an_answer_is_known_without_its_decoder(dialect: DialectName) -> None:
    encoder = DIALECTS[dialect].encoder(Head("run_1", 1, "m"), include_usage=True, style="error")
    said = [TextDelta(f" word{n}") for n in range(100)]
    pieces = [*map(encoder.encode, said), encoder.encode(RunEnded(Completed()))]
    end, text, frames = read(dialect, pieces)
    assert isinstance(end.outcome, Completed)
    assert text == "".join(token.text for token in said)
    assert frames < 20
    assert read(dialect, by_bytes(pieces))[:2] == (end, text)


def frame(kind: str, *, ascii: bool = True, named: bool = True, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=ascii, separators=(",", ":"))
    return (f"event: {kind}\n" if named else "").encode() + f"data: {data}\n\n".encode()


texts = st.sampled_from(
    ["a", " word", "", "probe", '"', "\\", "<think>", "</think>", "\ud83d", "\ude42", "é", "a\ud83d", "\ude42b"]
)
few = st.sampled_from([0, 0, 0, 0, 1])
named = st.sampled_from([True, True, True, False])


def messages_delta(delta: dict[str, Any], index: int, named: bool) -> bytes:
    return frame("content_block_delta", named=named, index=index, delta=delta)


messages_frames = st.one_of(
    st.builds(messages_delta, texts.map(lambda text: {"type": "text_delta", "text": text}), few, named),
    st.builds(messages_delta, texts.map(lambda text: {"type": "text_delta", "text": text}), few, named),
    st.builds(messages_delta, texts.map(lambda text: {"type": "thinking_delta", "thinking": text}), few, named),
    st.builds(messages_delta, st.just({"type": "citations_delta", "citation": {"type": "x"}}), few, named),
    st.builds(messages_delta, st.just({"type": "input_json_delta", "partial_json": "{}"}), few, named),
    st.sampled_from(
        [
            frame("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            frame("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
            frame("content_block_start", index=1, content_block={"type": "tool_use", "id": "c", "name": "f"}),
            frame("content_block_stop", index=0),
            frame("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3}),
            frame("message_stop"),
            frame("ping"),
            b": comment\n\n",
            b"event: error\n",
            b"data: {",
        ]
    ),
)


def responses_delta(
    kind: str, text: str, output_index: int | None, content_index: int, number: Any, named: bool
) -> bytes:
    place: dict[str, Any] = {"item_id": "m", "output_index": output_index, "content_index": content_index}
    place = {name: value for name, value in place.items() if value is not None}
    return frame(f"response.{kind}.delta", named=named, sequence_number=number, **place, delta=text)


numbers = st.sampled_from([0, 1, 9, 10, 123, -1, 1.5, None, "7", 10**12])
responses_frames = st.one_of(
    st.builds(
        responses_delta, st.just("output_text"), texts, st.sampled_from([0, 0, None]), few, st.integers(0, 20), named
    ),
    st.builds(responses_delta, st.just("output_text"), texts, few, few, numbers, named),
    st.builds(responses_delta, st.sampled_from(["refusal", "reasoning_text"]), texts, few, few, numbers, named),
    st.builds(
        lambda text: frame("response.output_text.done", item_id="m", output_index=0, content_index=0, text=text),
        st.sampled_from(["", "a", "aa", "a word", "aaprobe"]),
    ),
    st.sampled_from(
        [
            frame("response.output_item.added", output_index=0, item={"type": "message", "id": "m"}),
            frame("response.output_item.added", output_index=1, item={"type": "message", "id": "n"}),
            frame("response.output_item.done", output_index=0, item={"type": "message", "id": "m", "content": []}),
            frame("response.completed", response={"status": "completed", "output": []}),
            frame("keepalive", sequence_number=3),
            b"data: [DONE]\n\n",
            b'data: {"type":"response.output_text.delta","output_index":0,"delta":"x","sequence_number":07}\n\n',
            b"id: 7\n",
            b"data: {",
        ]
    ),
)


@given(st.lists(messages_frames, max_size=20))
def test_messages_are_read_one_frame_a_read_as_byte_by_byte(pieces: list[bytes]) -> None:
    assert read("messages", pieces)[:2] == read("messages", by_bytes(pieces))[:2]


plain_messages = st.builds(messages_delta, st.just({"type": "text_delta", "text": " word"}), st.just(0), st.just(True))
begun = frame("content_block_start", index=0, content_block={"type": "text", "text": ""})


@given(
    st.lists(plain_messages | plain_messages | messages_frames, max_size=20), st.lists(st.integers(1, 6), max_size=6)
)
def test_messages_are_read_as_byte_by_byte_however_many_a_read_has(pieces: list[bytes], sizes: list[int]) -> None:
    pieces = [begun, *pieces]
    assert read("messages", grouped(pieces, sizes))[:2] == read("messages", by_bytes(pieces))[:2]


plain_responses = st.builds(
    responses_delta, st.just("output_text"), st.just(" word"), st.just(0), st.just(0), st.integers(0, 20), st.just(True)
)


@given(
    st.lists(plain_responses | plain_responses | responses_frames, max_size=20), st.lists(st.integers(1, 6), max_size=6)
)
def test_responses_are_read_as_byte_by_byte_however_many_a_read_has(pieces: list[bytes], sizes: list[int]) -> None:
    assert read("responses", grouped(pieces, sizes))[:2] == read("responses", by_bytes(pieces))[:2]


@given(st.lists(responses_frames, max_size=20))
def test_responses_are_read_one_frame_a_read_as_byte_by_byte(pieces: list[bytes]) -> None:
    assert read("responses", pieces)[:2] == read("responses", by_bytes(pieces))[:2]


def test_a_number_that_counts_the_frames_may_be_any_that_json_has() -> None:
    numbered = mould(1000, Around(b'{"sequence_number":7,"delta":"', b'"}'), b"event: x\n")
    known = b'event: x\ndata: {"sequence_number":%b,"delta":"a"}\n\n'
    assert [numbered.take(known % number) for number in (b"8", b"0", b"1234567")] == ["a"] * 3
    assert [numbered.take(known % number) for number in (b"-1", b"07", b"1.5", b'"8"', b"", b"8 ")] == [None] * 6
    assert numbered.take(b'data: {"sequence_number":8,"delta":"a"}\n\n') is None


def test_what_was_known_at_a_glance_is_not_repeated_by_the_whole_text() -> None:
    """A Responses upstream ends each part with all of it."""
    deltas = [responses_delta("output_text", text, 0, 0, n, True) for n, text in enumerate("abcdefgh")]
    done = frame("response.output_text.done", item_id="m", output_index=0, content_index=0, text="abcdefgh, and more")
    _, text, frames = read("responses", [*deltas, done])
    assert text == "abcdefgh, and more"
    assert frames < 6


@pytest.mark.parametrize("cut", ["a\ud83d", "a"])
@pytest.mark.parametrize("dialect", NAMED)
def test_half_a_character_is_never_followed_by_a_glance(dialect: DialectName, cut: str) -> None:
    if dialect == "messages":
        pieces = [frame("content_block_start", index=0, content_block={"type": "text", "text": ""})]
        pieces += [messages_delta({"type": "text_delta", "text": text}, 0, True) for text in (*EARLIER, cut, "b", "c")]
    else:
        said = enumerate((*EARLIER, cut, "b", "c"))
        pieces = [responses_delta("output_text", text, 0, 0, n, True) for n, text in said]
    assert read(dialect, pieces)[:2] == read(dialect, by_bytes(pieces))[:2]


def test_a_text_without_its_index_is_not_taken_for_that_of_another() -> None:
    pieces = [responses_delta("output_text", text, 0, 0, 1, True) for text in EARLIER]
    pieces += [responses_delta("output_text", text, None, 0, 1, True) for text in "def"]
    pieces += [frame("response.output_text.done", item_id="m", output_index=0, content_index=0, text=f"{EARLIER}.")]
    assert read("responses", pieces)[:2] == read("responses", by_bytes(pieces))[:2]


@given(
    st.text(
        st.characters(exclude_categories=("Cs", "Cc")).filter(lambda one: one.isprintable() and one not in '"\\\\'),
        min_size=1,
    )
)
@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_an_encoder_says_what_stands_around_a_plain_text(dialect: DialectName, text: str) -> None:
    """Those words, put there as they are, are what it would have written."""
    encoder = DIALECTS[dialect].encoder(Head("run_1", 1, "m"), include_usage=True, style="error")
    assert encoder.around_text() is None
    encoder.encode(TextDelta("first"))
    around = encoder.around_text()
    assert around is not None
    assert around[0] + text.encode() + around[1] == encoder.encode(TextDelta(text))


def test_no_encoder_says_so_where_a_text_does_more_than_its_frame() -> None:
    responses = DIALECTS["responses"].encoder(Head("run_1", 1, "m"), include_usage=True, style="error")
    responses.encode(TextDelta("first"))
    assert responses.around_text() is None
    messages = DIALECTS["messages"].encoder(Head("run_1", 1, "m"), include_usage=True, style="error")
    messages.encode(TextDelta("first"))
    messages.encode(ReasoningDelta("Hm."))
    assert messages.around_text() is None
