"""Framing: any cut of the bytes, linear time, bounded memory."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sse import Decoder, Frame, comment, encode

line_ends = st.sampled_from(["\n", "\r", "\r\n"])
# Everything that means something to the framing, and something that does not.
soup = st.lists(
    st.sampled_from(
        [b"data", b":", b" ", b"\n", b"\r", b"event", b"id", b"retry", b"7", b"x", b"\xef\xbb\xbf", b"\xc3"]
    )
)


def decode(*pieces: bytes, limit_bytes: int = 1000) -> list[Frame]:
    decoder = Decoder(limit_bytes)
    return [frame for piece in pieces for frame in decoder.feed(piece)] + decoder.end()


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b"data: a\n\n", [Frame(b"a")]),
        (b"data:a\n\n", [Frame(b"a")]),
        (b"data:  a\n\n", [Frame(b" a")]),
        (b"data\n\n", [Frame(b"")]),
        (b"data: a\ndata: b\n\n", [Frame(b"a\nb")]),
        (b"data: a\rdata: b\r\r", [Frame(b"a\nb")]),
        (b"data: a\r\ndata: b\r\n\r\n", [Frame(b"a\nb")]),
        (b"data: a\rdata: b\n\n", [Frame(b"a\nb")]),
        (b"event: e\ndata: a\n\n", [Frame(b"a", "e")]),
        (b"event:\ndata: a\n\n", [Frame(b"a")]),
        (b"data: a\n\nevent: \ndata: b\n\n", [Frame(b"a"), Frame(b"b")]),
        (b"data: a\n\nevent: e\n\ndata: b\n\n", [Frame(b"a"), Frame(b"b")]),
        (b"data: a\nevent: e\n\n", [Frame(b"a", "e")]),
        (b"event: e\n\ndata: a\n\n", [Frame(b"a")]),
        (b"id: 1\ndata: a\n\ndata: b\n\n", [Frame(b"a", None, "1"), Frame(b"b", None, "1")]),
        (b"id: 1\0\ndata: a\n\n", [Frame(b"a")]),
        (b": hello\n\ndata: a\n\n", [Frame(b"a")]),
        (b": hello\ndata: a\n\n", [Frame(b"a")]),
        (b"unknown: x\nnonsense\n\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", [Frame(b"a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"\n\n\ndata: a\n\n\n", [Frame(b"a")]),
        (b"data: a\n\ndata: b", [Frame(b"a"), Frame(b"b")]),
        (b"data: a\n\ndata: b\n", [Frame(b"a"), Frame(b"b")]),
        (b"\xef\xbb", []),
        (b"", []),
        ("data: é\n\n".encode(), [Frame("é".encode())]),
        (b"event: \xff\ndata: a\n\n", [Frame(b"a", "�")]),
    ],
)
def test_decoding(data: bytes, frames: list[Frame]) -> None:
    assert decode(data) == frames
    assert decode(b"\n", data) == frames or data.startswith(b"\xef")
    assert decode(*(bytes([byte]) for byte in data)) == frames


@pytest.mark.parametrize(("value", "retry_ms"), [(b"3000", 3000), (b"x", None), (b"-1", None), (b"9" * 5000, None)])
def test_retry_is_read(value: bytes, retry_ms: int | None) -> None:
    decoder = Decoder()
    decoder.feed(b"retry: " + value + b"\n\n")
    assert decoder.retry_ms == retry_ms


@given(soup.map(b"".join), st.lists(st.integers(0, 60)).map(sorted))
def test_cuts_never_change_the_frames(data: bytes, cuts: list[int]) -> None:
    pieces = [data[a:b] for a, b in itertools.pairwise([0, *cuts, len(data)])]
    assert decode(*pieces) == decode(data)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"])),
            st.sampled_from([None, "e"]),
            st.none() | st.integers(0, 9),
        )
    ),
)
def test_what_was_encoded_is_decoded(written: list[tuple[str, str | None, int | None]]) -> None:
    data = b"".join(encode(text.encode(), event=event, id=id) for text, event, id in written)
    frames = decode(data, limit_bytes=10**6)
    assert [frame.event for frame in frames] == [event for _, event, _ in written]
    lines = [text.replace("\r\n", "\n").replace("\r", "\n") for text, _, _ in written]
    assert [frame.data.decode() for frame in frames] == lines
    last_id: str | None = None
    for frame, (_, _, id) in zip(frames, written, strict=True):
        last_id = last_id if id is None else str(id)
        assert frame.id == last_id


def test_line_breaks_are_kept() -> None:
    assert encode(b"a\nb\r\nc\r", id=7, event="e") == b"id: 7\nevent: e\ndata: a\ndata: b\ndata: c\ndata: \n\n"


def test_comments_are_invisible() -> None:
    assert decode(comment("keep-alive") + b"data: a\n\n" + comment()) == [Frame(b"a")]


@pytest.mark.parametrize("piece_bytes", [1, 7, 1000])
@pytest.mark.parametrize("data", [b"data: " + b"x" * 200, b"data: x\n" * 200, b": " + b"x" * 200, b"x" * 200])
def test_an_endless_frame_is_an_error_and_holds_no_more_than_the_limit(data: bytes, piece_bytes: int) -> None:
    decoder = Decoder(limit_bytes=100)
    assert decoder.feed(b"data: before\n\n") == [Frame(b"before")]
    for start in range(0, len(data), piece_bytes):
        assert decoder.feed(data[start : start + piece_bytes]) == []
    assert decoder.error is not None
    assert "more than 100 bytes" in str(decoder.error)
    assert len(decoder._line) + len(decoder._data) <= 100
    assert decoder.feed(b"\n\ndata: after\n\n") == []
    assert decoder.end() == []


@given(st.integers(80, 120), st.integers(1, 40))
def test_the_limit_does_not_depend_on_the_cuts(size: int, piece_bytes: int) -> None:
    data = b"data: a\n\ndata: " + b"x" * (size - 6) + b"\n\ndata: b\n\n"
    whole, cut = Decoder(100), Decoder(100)
    whole.feed(b"\n")
    frames = whole.feed(data)
    assert [frame for n in range(0, len(data), piece_bytes) for frame in cut.feed(data[n : n + piece_bytes])] == frames
    assert (cut.error is None) == (whole.error is None) == (size <= 100)
