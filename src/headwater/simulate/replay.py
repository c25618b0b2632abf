"""Recordings, played back as they were: head, bytes and timing."""

from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from headwater.events import DialectName
from headwater.recording import HowEnded, Recording
from headwater.simulate.http import head
from headwater.simulate.steps import End, Send, Silence, Steps, Wait


class Replays:
    """Requests get the recordings of their dialect one by one, and then the last one again and again."""

    def __init__(self, recordings: Sequence[Recording] = (), *, speed: float = 1.0) -> None:
        self._recordings = recordings
        self._speed = speed
        self._used: Counter[DialectName] = Counter()

    def __bool__(self) -> bool:
        return bool(self._recordings)

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(recording.head.model for recording in self._recordings))

    @property
    def dialects(self) -> tuple[DialectName, ...]:
        return tuple(dict.fromkeys(recording.head.dialect for recording in self._recordings))

    def clear(self) -> None:
        self._used.clear()

    def take(self, dialect: DialectName) -> tuple[int, Steps] | None:
        """The status, and the steps."""
        mine = [recording for recording in self._recordings if recording.head.dialect == dialect]
        if not mine:
            return None
        recording = mine[min(self._used[dialect], len(mine) - 1)]
        self._used[dialect] += 1
        return recording.head.status, play(recording, self._speed)


def play(recording: Recording, speed: float) -> Steps:
    scale = 1 / (1000 * speed)
    start, t = recording.head, recording.head.t
    yield Wait(t * scale)
    if start.status:
        yield Send(head(start.status, (*start.headers, ("transfer-encoding", "chunked"))))
    for piece in recording.pieces:
        yield Wait(max(0.0, piece.t - t) * scale)
        t = max(t, piece.t)
        if piece.data:
            yield Send(b"%x\r\n%b\r\n" % (len(piece.data), piece.data))
    if recording.end is not None:
        yield Wait(max(0.0, recording.end.t - t) * scale)
    yield from _end(recording.end.end if recording.end is not None else "closed")


def _end(how: HowEnded) -> Steps:
    match how:
        case "complete":
            yield Send(b"0\r\n\r\n")
            yield End("answered")
        case "closed":
            yield End("fin")
        case "reset":
            yield End("reset")
        case "abandoned":
            yield Silence()
        case unreachable:
            assert_never(unreachable)
