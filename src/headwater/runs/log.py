"""A run's log as the worker that has the run sees it: its newest part, and how much of that may be shown.

Pure. What is older than the tail is in the store; what is not committed is nobody's to see.
"""

from collections.abc import Sequence
from typing import Final

from headwater.events import PLACED, PLAIN_TEXT, Entry, Event, decode_entry, encode_entry

_BEFORE, _AFTER = PLAIN_TEXT
_BEFORE_BYTES: Final = len(_BEFORE)
_AFTER_BYTES: Final = len(_AFTER)


class Log:
    """`append`, hand the lines over, `show` what was committed."""

    def __init__(self, last_seq: int = -1, *, tail_bytes: int = 64 * 1024) -> None:
        """`last_seq`: where the log stands already, in the store."""
        self._entries: list[Entry | None] = []
        """None: it was written as a plain text, and nobody has asked for it as an event yet."""
        self._lines: list[bytes] = []
        self._first_seq = last_seq + 1
        """Of `_entries`."""
        self._tail_bytes = tail_bytes
        self._bytes = 0
        """Of `_lines`."""
        self._plain_seq = last_seq + 1
        """From here on, all are plain texts."""
        self.last_seq = last_seq
        self.shown_seq = last_seq

    def skip(self, count: int) -> None:
        """So many go by, straight to whom they are for: in a log that no store has."""
        self.last_seq += count
        self.shown_seq = self.last_seq
        self._first_seq = self._plain_seq = self.last_seq + 1

    def append(self, events: Sequence[Event], t_ms: float) -> list[Entry]:
        added = [Entry(seq, t_ms, event) for seq, event in enumerate(events, self.last_seq + 1)]
        self._entries += added
        self.last_seq += len(added)
        self._plain_seq = self.last_seq + 1
        return added

    def write(self, events: Sequence[Event], t_ms: float) -> Sequence[bytes]:
        """`append`, and the stored form of what was."""
        if len(events) != 1 or len(self._lines) != len(self._entries):
            self.append(events, t_ms)
            return self.lines(self.last_seq - len(events))
        # Nearly always: half the functions of the way above, which are cold each time.
        self.last_seq += 1
        self._plain_seq = self.last_seq + 1
        entry = Entry(self.last_seq, t_ms, events[0])
        self._entries.append(entry)
        line = encode_entry(entry)
        self._lines.append(line)
        self._bytes += len(line)
        return (line,)

    def write_plain(self, body: bytes, t_ms: float) -> Sequence[bytes]:
        """The same of a text between `PLAIN_TEXT`, as it stands: nobody looks into it."""
        self.last_seq += 1
        line = PLACED % (self.last_seq, t_ms, body)
        self._entries.append(None)
        self._lines.append(line)
        self._bytes += len(line)
        return (line,)

    def lines(self, after_seq: int) -> list[bytes]:
        """The stored form of all that comes after; made once."""
        for entry in self._entries[len(self._lines) :]:
            assert entry is not None
            line = encode_entry(entry)
            self._lines.append(line)
            self._bytes += len(line)
        return self._lines[after_seq + 1 - self._first_seq :]

    def show(self, seq: int) -> None:
        """It is committed so far. Of that, a tail stays here."""
        if seq > self.shown_seq:
            self.shown_seq = seq
        if self._bytes > 2 * self._tail_bytes:
            # Not at every token: a list is cut from its front in the time that its rest takes to move.
            self._cut()

    def forget(self, seq: int) -> None:
        """Nobody will ask for what is up to here: for logs that no store has."""
        count = seq + 1 - self._first_seq
        if count > 0:
            del self._entries[:count]
            self._first_seq += count
            if self._lines:
                self._bytes -= sum(map(len, self._lines[:count]))
                del self._lines[:count]

    @property
    def first_seq(self) -> int:
        """Of what is here."""
        return self._first_seq

    def after(self, seq: int) -> list[Entry] | None:
        """All that may be shown after the cursor. None: the first of it is no longer here."""
        start, end = seq + 1 - self._first_seq, self.shown_seq + 1 - self._first_seq
        return None if start < 0 else [self._entries[n] or self._read(n) for n in range(start, end)]

    def plain_after(self, seq: int) -> list[bytes] | None:
        """The same as texts in JSON, without their quotes. None: not all are plain texts, or the first is gone."""
        if seq + 1 < self._plain_seq or seq + 1 < self._first_seq:
            return None
        lines = self._lines[seq + 1 - self._first_seq : self.shown_seq + 1 - self._first_seq]
        if len(lines) == 1:
            line = lines[0]
            return [line[line.index(_BEFORE) + _BEFORE_BYTES : -_AFTER_BYTES]]
        return [line[line.index(_BEFORE) + _BEFORE_BYTES : -_AFTER_BYTES] for line in lines]

    def _read(self, n: int) -> Entry:
        entry = self._entries[n] = decode_entry(self._lines[n])
        return entry

    def _cut(self) -> None:
        count, shown, over_bytes = 0, self.shown_seq + 1 - self._first_seq, self._bytes - self._tail_bytes
        while count < shown and over_bytes > 0:
            over_bytes -= len(self._lines[count])
            count += 1
        self.forget(self._first_seq + count - 1)
