"""Keeps what an upstream sent, byte for byte and with its timing: `record = true`. A bug report becomes a file."""

import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from headwater import recording
from headwater.clock import Clock
from headwater.errors import UpstreamError
from headwater.events import DialectName
from headwater.judge import Transport
from headwater.recording import HowEnded
from headwater.upstream.exchange import Exchange, OnBytes, OnEnd, Opener
from headwater.upstream.mask import Mask, ended

_log = logging.getLogger("headwater.upstream")


class Recorder:
    """An `Opener` that keeps all that passes through another. One file an exchange, for its owner's eyes only."""

    def __init__(
        self, opener: Opener, folder: Path, upstream: str, dialect: DialectName, mask: Mask, clock: Clock
    ) -> None:
        self._opener = opener
        self._folder = folder
        self._upstream = upstream
        self._dialect = dialect
        self._mask = mask
        self._clock = clock
        self._count = 0

    async def open(self, body: bytes, key: str | None) -> Exchange:
        try:
            tape = self._tape(body)
        except OSError as error:
            _log.warning("there is no recording in %s: %s", self._folder, error)
            return await self._opener.open(body, key)
        exchange: Exchange | None = None
        try:
            exchange = await self._opener.open(body, key)
        except UpstreamError as error:
            tape.no_answer("closed", str(error))
            raise
        finally:
            if exchange is None:
                tape.no_answer("abandoned")
        tape.head(exchange.status, exchange.headers)
        return RecordedExchange(exchange, tape)

    def _tape(self, body: bytes) -> "Tape":
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._count += 1
        at = self._clock.unix_s()
        name = re.sub(r"[^\w.-]+", "_", f"{self._upstream}-{at:.3f}-{self._count}")
        return Tape(self._folder / f"{name}.jsonl", self._upstream, self._dialect, body, self._mask, self._clock)


class Tape:
    """One file. It is written as it goes: a crash leaves what had come."""

    def __init__(self, path: Path, upstream: str, dialect: DialectName, body: bytes, mask: Mask, clock: Clock) -> None:
        self._path = path
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0)
        self._upstream = upstream
        self._dialect: DialectName = dialect
        self._request = msgspec.json.decode(body)
        self._mask = mask
        self._held = b""
        """What may be the beginning of something that is not to be kept."""
        self._clock = clock
        self._began_s = clock.now_s()
        self._began_unix_s = clock.unix_s()

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        line = recording.write_head(
            dialect=self._dialect,
            upstream=self._upstream,
            model=str(self._request.get("model", "")),
            request=self._request,
            at_unix_s=self._began_unix_s,
            t_ms=self._t_ms(),
            status=status,
            headers=[(str(name), self._mask.text(value)) for name, value in headers.items()],
        )
        self._write(line)

    def no_answer(self, how: HowEnded, detail: str | None = None) -> None:
        if not self._file.closed:
            self.head(0, {})
            self.end(how, detail and self._mask.text(detail))

    def piece(self, data: bytes) -> None:
        """As it came, but for what is secret."""
        data, self._held = self._mask.piece(self._held + data)
        if data:
            self._write(recording.write_piece(self._t_ms(), data))

    def end(self, how: HowEnded, detail: str | None = None) -> None:
        if self._held:
            held, self._held = ended(self._held), b""
            self._write(recording.write_piece(self._t_ms(), held))
        if not self._file.closed:
            self._write(recording.write_end(self._t_ms(), how, detail))
            self._file.close()

    def _write(self, line: bytes) -> None:
        if self._file.closed:
            return
        try:
            self._file.write(line)
        except OSError as error:
            # What is recorded is for looking at later; what is answered is wanted now.
            _log.warning("the recording %s ends here: %s", self._path, error)
            self._file.close()

    def _t_ms(self) -> float:
        return (self._clock.now_s() - self._began_s) * 1000


class RecordedExchange:
    def __init__(self, exchange: Exchange, tape: Tape) -> None:
        self._exchange = exchange
        self._tape = tape
        self.pause: Callable[[], None] = exchange.pause
        self.resume: Callable[[], None] = exchange.resume

    @property
    def status(self) -> int:
        return self._exchange.status

    @property
    def was_reset(self) -> bool:
        return self._exchange.was_reset

    @property
    def headers(self) -> Mapping[str, str]:
        return self._exchange.headers

    def listen(self, on_bytes: OnBytes, on_end: OnEnd) -> None:
        def kept(data: bytes) -> None:
            self._tape.piece(data)
            on_bytes(data)

        def ended(transport: Transport) -> None:
            broken: HowEnded = "reset" if self._exchange.was_reset else "closed"
            self._tape.end("complete" if transport == "clean" else broken)
            on_end(transport)

        self._exchange.listen(kept, ended)

    def finish(self) -> None:
        self._tape.end("complete")
        self._exchange.finish()

    def close(self) -> None:
        self._tape.end("abandoned")
        self._exchange.close()
