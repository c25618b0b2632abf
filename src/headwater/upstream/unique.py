"""Call ids that a run has had already, made others.

Some servers count their calls anew with every turn, and some give two the same id. In an agent's run a call is known
by its id alone: what was approved, and what has run. Pure.
"""

from headwater.dialects.base import Decoder
from headwater.events import Event, ToolCallStarted
from headwater.judge import Evidence
from headwater.mould import Around
from headwater.sse import Frame


class UniqueIds:
    """A `Decoder` around another. The call and its result go back to the model under the same, new id."""

    def __init__(self, decoder: Decoder, taken: frozenset[str]) -> None:
        self._decoder = decoder
        self._taken = set(taken)

    @property
    def evidence(self) -> Evidence:
        return self._decoder.evidence

    def feed(self, frame: Frame, out: list[Event]) -> None:
        before = len(out)
        self._decoder.feed(frame, out)
        self._rename(out, before)

    def whole(self, body: bytes, out: list[Event]) -> None:
        before = len(out)
        self._decoder.whole(body, out)
        self._rename(out, before)

    def end(self, out: list[Event]) -> None:
        before = len(out)
        self._decoder.end(out)
        self._rename(out, before)

    def around_text(self, data: bytes) -> Around | None:
        return self._decoder.around_text(data)

    def _rename(self, out: list[Event], start: int) -> None:
        for n in range(start, len(out)):
            event = out[n]
            if type(event) is ToolCallStarted:
                out[n] = ToolCallStarted(event.index, self._free(event.id), event.name, event.extra)

    def _free(self, id: str) -> str:
        free, number = id, 1
        while free in self._taken:
            number += 1
            free = f"{id}_{number}"
        self._taken.add(free)
        return free
