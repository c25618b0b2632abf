"""What a run's committed log amounts to: never more than is kept, whatever its worker has in memory."""

from headwater.accumulate import Accumulator
from headwater.events import Entry, ReasoningDelta, TextDelta, ToolArgsDelta, ToolCallStarted, decode_entry
from headwater.records import Run
from headwater.store.base import Store


class Folded:
    def __init__(self) -> None:
        self.fold = Accumulator()
        self.last_seq = -1
        self.t_ms: float | None = None
        """Of the last entry."""
        self.first_token_ms: float | None = None
        self.last_token_ms: float | None = None

    def apply(self, entry: Entry) -> None:
        self.fold.apply(entry.event)
        self.last_seq, self.t_ms = entry.seq, entry.t
        if isinstance(entry.event, TextDelta | ReasoningDelta | ToolCallStarted | ToolArgsDelta):
            self.last_token_ms = entry.t
            if self.first_token_ms is None:
                self.first_token_ms = entry.t


async def folded(store: Store, owner: str | None, run_id: str) -> tuple[Run, Folded] | None:
    """The run and all of its log, as of one moment. None: there is no such run, or it is another's."""
    found, amount = await store.read(owner, run_id), Folded()
    while found is not None:
        for batch in found.batches:
            for line in batch.after(amount.last_seq):
                amount.apply(decode_entry(line))
        if amount.last_seq >= found.last_seq or not found.batches:
            # One that was not recorded, or whose log was dropped, has none.
            return found.run, amount
        found = await store.read(owner, run_id, amount.last_seq)
    return None
