"""What was recorded is read as it was written, also after a crash in the midst of a line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.recording import End, HowEnded, Piece, RecordingUnreadable, read, write_end, write_head, write_piece


def head(**fields: Any) -> bytes:
    given: dict[str, Any] = {
        "dialect": "chat",
        "upstream": "openai",
        "model": "m",
        "request": {"model": "m", "messages": []},
        "at_unix_s": 1.8e9,
        "t_ms": 12.3456,
        "status": 200,
        "headers": [("content-type", "text/event-stream")],
    }
    return write_head(**given | fields)


times = st.integers(0, 10**7).map(lambda us: us / 1000)
pieces = st.lists(st.tuples(times, st.binary()))
ends: st.SearchStrategy[HowEnded] = st.sampled_from(["complete", "closed", "reset", "abandoned"])


@given(pieces, ends)
def test_what_is_written_is_read(written: list[tuple[float, bytes]], end: HowEnded) -> None:
    lines = [head(), *(write_piece(t, data) for t, data in written), write_end(9.5, end, "so")]
    recording = read(b"".join(lines))
    assert recording.pieces == tuple(Piece(t, data) for t, data in written)
    assert recording.end == End(9.5, end, "so")
    assert recording.head.t == 12.346
    assert recording.head.headers == (("content-type", "text/event-stream"),)


@given(st.lists(st.binary(), min_size=1), st.data())
def test_a_file_cut_anywhere_after_its_head_is_read_as_far_as_it_goes(
    written: list[bytes], data: st.DataObject
) -> None:
    start = head()
    whole = start + b"".join(write_piece(1, piece) for piece in written) + write_end(2, "complete")
    cut = data.draw(st.integers(len(start), len(whole) - 2))
    recording = read(whole[:cut])
    assert recording.end is None
    assert [piece.data for piece in recording.pieces] == written[: len(recording.pieces)]
    assert len(recording.pieces) in (whole[:cut].count(b"\n") - 1, whole[: cut + 1].count(b"\n") - 1)


def test_readable_bytes_are_readable_in_the_file() -> None:
    assert write_piece(1, "data: «é»\n\n".encode()) == '{"t":1,"data":"data: «é»\\n\\n"}\n'.encode()
    assert write_piece(1, b"\xff") == b'{"t":1,"base64":"/w=="}\n'


def test_no_secrets_are_kept() -> None:
    written = head(
        request={"model": "m", "api_key": "SECRET", "Authorization": "SECRET"},
        headers=[("Set-Cookie", "SECRET"), ("X-Api-Key", "SECRET"), ("x-request-id", "r1"), ("Content-Length", "3")],
    )
    assert b"SECRET" not in written
    recording = read(written)
    assert recording.head.headers == (("x-request-id", "r1"),)
    assert recording.head.request == {"model": "m"}
    assert read(head(request="text")).head.request == "text"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no recording"),
        (b"hello", "no recording"),
        (b'{"t":1,"data":"x"}\n', "no recording"),
        (head().replace(b'"headwater_recording":1', b'"headwater_recording":2'), "version 2"),
        (head() + b"{\n" + write_end(1, "complete"), "line 2"),
        (head() + b'{"t":1,"base64":"!"}\n' + write_end(1, "complete"), "line 2"),
    ],
)
def test_what_is_no_recording_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(RecordingUnreadable, match=complaint):
        read(data)
