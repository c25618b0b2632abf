"""A token that is known by the bytes around it is read as it would be without that."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.dialects.base import STOP
from headwater.dialects.chat.decode import ChatDecoder
from headwater.events import Event, ProviderState, ToolArgsDelta
from headwater.mould import Around, Mould
from headwater.sse import Frame
from headwater.turn import DEFAULT_LIMIT_BYTES, TurnEnd, TurnReader
from tests.fixtures import FIXTURES, Fixture

BEFORE, AFTER = b'{"choices":[{"delta":{"content":"', b'"}}]}'


class SlowDecoder(ChatDecoder):
    """Takes no short way."""

    __slots__ = ()

    def feed(self, frame: Frame, out: list[Event]) -> None:
        self._flows = False
        super().feed(frame, out)


def frame(delta: dict[str, Any], *, ascii: bool = False, tier: str | None = None, **more: Any) -> bytes:
    chunk: dict[str, Any] = {"service_tier": tier} if tier is not None else {}
    chunk |= {"choices": [{"index": 0, "delta": delta, **more}]}
    return b"data: %b\n\n" % json.dumps(chunk, ensure_ascii=ascii, separators=(",", ":")).encode()


def read(
    pieces: list[bytes], kind: type[ChatDecoder] = ChatDecoder, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> tuple[TurnEnd, str, int]:
    accumulator = Accumulator()
    reader = TurnReader(kind("call"), accumulator, limit_bytes=limit_bytes)
    events = [event for piece in pieces for event in reader.feed(piece)]
    end = reader.end("clean")
    return TurnEnd(events + end.events, end.outcome), accumulator.text(), reader.activity


def mould(
    limit_bytes: int, around: Around = Around(BEFORE, AFTER), name: bytes = b"", *, room_bytes: int = 10**6
) -> Mould:
    return Mould(around, limit_bytes, name, room_bytes=room_bytes, keep=str)


def by_bytes(pieces: list[bytes]) -> list[bytes]:
    return [bytes([byte]) for piece in pieces for byte in piece]


def grouped(pieces: list[bytes], sizes: list[int]) -> list[bytes]:
    """So many to a read, and the rest one by one."""
    reads, start = [], 0
    for size in [*sizes, *[1] * len(pieces)]:
        reads.append(b"".join(pieces[start : start + size]))
        start += size
    return [read for read in reads if read]


@pytest.mark.parametrize("text", ["river", " the", "Grüße", "河", "🙂", "{[,:]}", "data: ", "a b"])
def test_plain_text_is_read(text: str) -> None:
    assert mould(1000).take(b"data: " + BEFORE + text.encode() + AFTER + b"\n\n") == text


@pytest.mark.parametrize(
    "raw", [b"", b"\\n", b'","x":"', b"\n", b"\r", b"\\u0041", b"\xff", b"\xe6\xb2", b'"}}]}\n\ndata: {"choices":[]}']
)
def test_anything_unusual_is_left_to_the_decoder(raw: bytes) -> None:
    assert mould(1000).take(b"data: " + BEFORE + raw + AFTER + b"\n\n") is None


def test_start_and_end_may_not_overlap() -> None:
    assert mould(1000, Around(b'"', b'"')).take(b'data: "\n\n') is None


def test_a_frame_past_the_limit_is_left_to_the_decoder() -> None:
    data = b"data: " + BEFORE + b"x" * 100 + AFTER + b"\n\n"
    assert mould(len(data)).take(data) == "x" * 100
    assert mould(len(data) - 1).take(data) is None


def test_what_is_taken_is_kept_and_counted_as_far_as_there_is_room() -> None:
    data = b"data: " + BEFORE + b"word" + AFTER + b"\n\n"
    kept: list[str] = []
    taking = Mould(Around(BEFORE, AFTER), 1000, room_bytes=2 * len(data) + 1, keep=kept.append)
    assert [taking.take(data) for _ in range(3)] == ["word", "word", None]
    assert (taking.count, taking.room, kept) == (2, 1, ["word", "word"])


def test_several_frames_of_a_read_are_several_texts() -> None:
    data = b"data: " + BEFORE + b"word" + AFTER + b"\n\n"
    kept: list[str] = []
    said: list[str] = []
    taking = Mould(Around(BEFORE, AFTER, said.append), 1000, room_bytes=5 * len(data) + 1, keep=kept.append)
    assert taking.take_some(data * 3) == (["word"] * 3, b"")
    assert taking.take_some(data * 3) == ([], data * 3)
    assert taking.take_some(data * 2) == (["word"] * 2, b"")
    assert (taking.count, taking.room, "".join(kept), said) == (5, 1, "word" * 5, ["word"] * 5)


@pytest.mark.parametrize("between", [b"", b": ping\n\n", b"id: 7\n", b"data: {}\n\n", b"data: "])
@pytest.mark.parametrize("raw", [b"", b"\\n", b'"', b"\x7f"])
def test_of_several_the_first_that_is_unusual_and_what_follows_is_left_to_the_decoder(
    raw: bytes, between: bytes
) -> None:
    plain, odd = (b"data: " + BEFORE + text + AFTER + b"\n\n" for text in ("Grüße".encode(), raw))
    taking = mould(2000)
    assert taking.take_some(plain + between + odd) == (["Grüße"], between + odd)
    assert taking.take_some(plain + plain + odd + plain) == (["Grüße"] * 2, odd + plain)
    assert taking.take_some(plain + between + plain) == (
        (["Grüße"], between + plain) if between else (["Grüße"] * 2, b"")
    )
    assert taking.take_some(plain + plain[:-3]) == (["Grüße"], plain[:-3])
    assert taking.take_some(odd + plain) == ([], odd + plain)
    assert taking.take_some(plain[1:] + plain) == ([], plain[1:] + plain)
    assert taking.take_some(plain * 50) == ([], plain * 50)


def test_bytes_that_are_no_text_leave_all_to_the_decoder() -> None:
    plain, odd = (b"data: " + BEFORE + text + AFTER + b"\n\n" for text in (b"a", b"\xff"))
    assert mould(1000).take_some(plain + odd + plain) == ([], plain + odd + plain)


def test_an_answer_of_many_frames_a_read_is_known_at_a_glance() -> None:
    pieces = [frame({"content": f"word{n} "}) for n in range(90)]
    counted: list[bytes] = []

    class Counted(ChatDecoder):
        def feed(self, frame: Frame, out: list[Event]) -> None:
            counted.append(frame.data)
            super().feed(frame, out)

    assert read(grouped(pieces, [5] * 18), Counted)[1:] == ("".join(f"word{n} " for n in range(90)), 90)
    # The first word: what opens an answer may be a tag.
    assert len(counted) == 1


def test_in_a_read_that_is_a_whole_answer_the_plain_words_are_known_at_a_glance() -> None:
    counted: list[bytes] = []

    class Counted(ChatDecoder):
        def feed(self, frame: Frame, out: list[Event]) -> None:
            counted.append(frame.data)
            super().feed(frame, out)

    words = [f"word{n} " for n in range(40)]
    words[25] = "\n"
    end = [frame({}, finish_reason="stop"), b"data: [DONE]\n\n"]
    pieces = [frame({"role": "assistant", "content": ""}), *(frame({"content": word}) for word in words), *end]
    found = read([b"".join(pieces)], Counted)
    assert found == read(pieces, SlowDecoder)
    assert found[1] == "".join(words)
    # What opens it and what ends it, the first word, and the line break.
    assert len(counted) == 5


def test_a_read_of_many_stretches_is_read_to_its_end() -> None:
    words = (["word "] * 20 + ["\n"]) * 12
    pieces = [frame({"content": word}) for word in words]
    assert read([b"".join(pieces)]) == read(pieces, SlowDecoder)


def test_what_keeps_a_connection_alive_is_no_word_whatever_is_in_it() -> None:
    ping = b"event: ping\n" + frame({"content": "ping"})
    assert read([frame({"content": "a"}), frame({"content": "b"}) + ping, ping, ping])[1] == "ab"


ODD = ['"', "\\", "\n", "\u2028", "<think>", "\x7f", "Grüße", "河", "🙂", ",", '","']


@given(
    st.lists(st.one_of(*[st.just("word")] * 4, st.sampled_from(ODD)), max_size=80),
    st.lists(st.integers(1, 40), max_size=6),
    st.sampled_from([b"", b": ping\n\n", b"event: ping\ndata: {}\n\n", b"id: 7\n"]),
    st.integers(0, 80),
)
def test_however_many_words_a_read_has_it_is_read_as_if_it_had_one(
    words: list[str], sizes: list[int], between: bytes, place: int
) -> None:
    pieces = [frame({"content": word}, ascii=word == "河") for word in words]
    pieces[place:place] = [between] if between else []
    pieces += [frame({}, finish_reason="stop"), b"data: [DONE]\n\n"]
    expected = read(by_bytes(pieces), SlowDecoder)
    assert read([b"".join(pieces)]) == expected
    assert read(grouped(pieces, sizes)) == expected


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_every_recorded_stream_is_the_same_one_frame_a_read(fixture: Fixture) -> None:
    pieces = [piece + b"\n\n" for piece in fixture.data.split(b"\n\n")]
    end = fixture.read([*pieces[:-1], pieces[-1][:-2]])
    assert end.events == fixture.events
    assert end.outcome == fixture.outcome


texts = st.text(max_size=6) | st.sampled_from(["<think>", "</think>", "\ud83d", "\ude42", '"', "\\", "probe", " word"])
deltas = st.one_of(
    texts.map(lambda text: {"content": text}),
    texts.map(lambda text: {"content": text}),
    st.fixed_dictionaries({"reasoning_content": texts}),
    st.fixed_dictionaries({"content": texts, "refusal": texts}),
    st.fixed_dictionaries({"content": texts, "tool_calls": st.just([{"index": 0, "function": {"arguments": "1"}}])}),
    st.just({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "2"}}]}),
    st.fixed_dictionaries({"content": texts, "annotations": st.just([{"type": "url_citation"}])}),
    st.fixed_dictionaries({"content": texts, "images": st.just([{"type": "image_url"}])}),
    st.fixed_dictionaries({"content": texts, "reasoning_details": st.just([{"text": "r"}])}),
)
tiers = st.sampled_from([None, None, "default", "default", "flex", ""])
frames = st.one_of(
    st.builds(frame, deltas, ascii=st.just(True), tier=tiers),
    st.builds(frame, deltas.filter(lambda delta: "\\ud" not in json.dumps(delta)), tier=tiers),
    st.builds(frame, texts.map(lambda text: {"content": text}), ascii=st.just(True), finish_reason=st.just("stop")),
    st.sampled_from([b": ping\n\n", b"data: [DONE]\n\n", b"event: ", b"id: 7\n", b"data: {\n", b"data: x"]),
)


@given(st.lists(frames, max_size=12))
def test_one_frame_a_read_is_read_as_byte_by_byte(pieces: list[bytes]) -> None:
    whole, cut = read(pieces), read(by_bytes(pieces))
    assert whole[:2] == cut[:2]


plain = st.builds(frame, st.sampled_from(["a", " word", "Grüße"]).map(lambda text: {"content": text}))


@given(st.lists(plain | plain | frames, max_size=20), st.lists(st.integers(1, 6), max_size=6))
def test_however_many_frames_a_read_has_they_are_read_as_byte_by_byte(pieces: list[bytes], sizes: list[int]) -> None:
    whole, cut = read(grouped(pieces, sizes)), read(by_bytes(pieces))
    assert whole[:2] == cut[:2]


@given(st.lists(frames, max_size=12))
def test_however_it_is_cut_it_is_read_as_without_a_short_way(pieces: list[bytes]) -> None:
    slow = read(by_bytes(pieces), SlowDecoder)[:2]
    assert [read(cut)[:2] for cut in (pieces, [b"".join(pieces)])] == [slow, slow]


@pytest.mark.parametrize("remark", ["annotations", "images"])
def test_what_stands_beside_a_flowing_text_is_kept(remark: str) -> None:
    pieces = [frame({"content": "a"})] * 3 + [frame({"content": "b", remark: [{"n": 1}]}), frame({"content": "c"})]
    events = read(pieces)[0].events
    assert [event.data[remark] for event in events if isinstance(event, ProviderState)] == [[{"n": 1}]]


def test_a_tier_that_changes_under_a_flowing_text_is_seen() -> None:
    pieces = [*[frame({"content": "a"}, tier="default")] * 3, frame({"content": "b"}, tier="flex")]
    assert ProviderState("chat", {"type": STOP, "service_tier": "flex"}) in read(pieces)[0].events


def test_every_known_token_counts_as_activity() -> None:
    assert read([frame({"content": f"word{n}"}) for n in range(10)])[2] == 10


def test_a_text_elsewhere_in_the_frame_is_not_taken_for_the_answer() -> None:
    decoys = [
        b'data: {"x":{"content":"no"},"choices":[{"delta":{"content": "a"}}]}\n\n',
        b'data: {"x":{"content":"never"},"choices":[{"delta":{"content": "a"}}]}\n\n',
    ]
    assert read(decoys * 5)[1] == "a" * 10


def test_half_a_character_is_joined_with_what_comes_next() -> None:
    tokens = [frame({"content": text}) for text in "abc"]
    half, rest = frame({"content": "d\ud83d"}, ascii=True), frame({"content": "\ude42"}, ascii=True)
    assert read([*tokens, half, rest, *tokens])[1] == "abcd🙂abc"
    assert read([*tokens, half, *tokens])[1] == "abcd\ufffdabc"


def test_the_beginning_of_a_frame_is_not_forgotten() -> None:
    tokens = [frame({"content": text}) for text in "abc"]
    pieces = [*tokens, tokens[0] + b"data: ", tokens[1]]
    assert read(pieces)[:2] == read(by_bytes(pieces))[:2]
    assert read(pieces)[1] == "abca"


def test_what_comes_along_with_the_text_is_not_forgotten() -> None:
    arguments = {"tool_calls": [{"index": 0, "function": {"arguments": "1"}}]}
    named = frame({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]})
    end = read([frame({"content": "a"}), *[frame({"content": "a", **arguments})] * 9, named])[0]
    assert ToolArgsDelta(0, "1" * 9) in end.events


def test_where_no_two_frames_are_alike_learning_is_given_up() -> None:
    """Some servers pad each frame with noise: the answer is the same."""
    pieces = [frame({"content": "x"}, noise="n" * (n % 7)) for n in range(40)]
    assert read(pieces)[1] == "x" * 40


def test_a_read_past_the_answers_limit_is_cut_there() -> None:
    token = frame({"content": "word"})
    end, text, _ = read([token] * 5, limit_bytes=len(token) * 4)
    assert (text, end.outcome.__class__.__name__) == ("word" * 4, "Failed")
