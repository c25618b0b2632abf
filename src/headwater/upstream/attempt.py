"""One request to an upstream, read to its end.

The bytes come in the socket's callback and go straight through the reader into the sink. What the attempt came to is
a value; whether there is another one is for `model` to say.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from headwater.clock import Clock
from headwater.dialects.base import Decoder
from headwater.errors import UpstreamError
from headwater.events import AttemptEnded, DialectName, Event, Failed, Outcome, TextDelta, UsageReported
from headwater.judge import Rules, Transport
from headwater.policy import StallLimits, StallWatch
from headwater.source import Sink
from headwater.turn import TurnReader
from headwater.upstream import faults
from headwater.upstream.exchange import Exchange, Opener
from headwater.upstream.mask import Mask
from headwater.upstream.sweep import Sweep

_START_BYTES = 2048
"""Of an answer, kept to tell what it was if it was none."""
_REFUSAL_BYTES = 64 * 1024


class Call(Struct, frozen=True, kw_only=True):
    """What is asked of whom, and how patiently."""

    name: str
    """The upstream's."""
    dialect: DialectName
    opener: Opener
    body: bytes
    key: str | None
    mask: Mask
    decoder: Decoder
    rules: Rules
    think_tags: bool
    limit_bytes: int
    stall: StallLimits


class Report(Struct, frozen=True):
    outcome: Outcome
    last: Sequence[Event]
    """What came with the end, in the fold and not taken yet."""
    retry_after_s: float | None = None


class Attempt:
    """`run` it once. Nothing of it reaches the sink after that, whatever still arrives (C30)."""

    __slots__ = (
        "_activity",
        "_call",
        "_clock",
        "_exchange",
        "_last",
        "_opening",
        "_over",
        "_paused",
        "_reader",
        "_rest",
        "_sink",
        "_stalled",
        "_start",
        "_sweep",
        "_watch",
        "_whole",
    )

    def __init__(self, call: Call, sink: Sink, clock: Clock, sweep: Sweep) -> None:
        self._call = call
        self._sink = sink
        self._clock = clock
        self._sweep = sweep
        self._reader = TurnReader(
            call.decoder, sink.fold, rules=call.rules, think_tags=call.think_tags, limit_bytes=call.limit_bytes
        )
        self._watch = StallWatch(call.stall, clock.now_s())
        self._exchange: Exchange | None = None
        self._start = b""
        self._activity = 0
        self._last: Event | None = None
        """Since the last tick. Silence is measured there, to a quarter of a second: no token reads a clock."""
        self._paused = False
        self._whole = False
        self._opening: asyncio.Task[object] | None = None
        self._stalled: Failed | None = None
        self._over: asyncio.Future[Outcome] | None = None
        self._rest: list[Event] | None = None
        """What the last read has brought, once there is no more."""

    async def run(self) -> Report:
        self._sweep.add(self._tick)
        try:
            outcome = self._masked(await self._outcome())
            if not isinstance(outcome, Failed):
                return Report(outcome, self._last_events(None))
            headers = {} if self._exchange is None else self._exchange.headers
            return Report(outcome, self._last_events(outcome), self._retry_after_s(headers))
        except asyncio.CancelledError:
            if self._rest is None:
                self._rest = self._reader.flush()
            self._sink.take(self._last_events(None))
            raise
        finally:
            self._sweep.discard(self._tick)
            if self._exchange is not None and not self._whole:
                self._exchange.close()

    def pause(self) -> None:
        self._paused = True
        self._watch.pause(self._clock.now_s())
        if self._exchange is not None:
            self._exchange.pause()

    def resume(self) -> None:
        self._paused = False
        self._watch.resume(self._clock.now_s())
        if self._exchange is not None:
            self._exchange.resume()

    # ------------------------------------------------------------------ phases

    async def _outcome(self) -> Outcome:
        try:
            self._exchange = exchange = await self._open()
        except UpstreamError as error:
            return error.failed
        if exchange.status >= 300:
            return await self._refused(exchange)
        if (encoding := exchange.headers.get("content-encoding", "identity")) != "identity":
            return faults.compressed(self._call.name, encoding)
        outcome = await self._read(exchange)
        self._whole = self._reader.closed and not isinstance(outcome, Failed)
        if self._whole:
            exchange.finish()
        return outcome

    async def _open(self) -> Exchange:
        """A stall here cancels us, as `asyncio.timeout` does; a cancel by anybody else is theirs."""
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        self._opening = task
        try:
            return await self._call.opener.open(self._call.body, self._call.key)
        except asyncio.CancelledError:
            if self._stalled is None or task.uncancel() > before:
                raise
            raise UpstreamError(self._stalled) from None
        finally:
            self._opening = None

    async def _refused(self, exchange: Exchange) -> Failed:
        """The status says no; the body says why, if it comes."""
        over = self._over = asyncio.get_running_loop().create_future()
        body = bytearray()

        def on_bytes(data: bytes) -> None:
            body.extend(data)
            if len(body) > _REFUSAL_BYTES:
                on_end("broken")

        def on_end(transport: Transport) -> None:
            if not over.done():
                over.set_result(Failed("refused", ""))

        exchange.listen(on_bytes, on_end)
        await over
        # Before it is shortened: a half of a secret would not be known for one.
        said = self._call.mask.body(bytes(body[:_REFUSAL_BYTES]))
        return faults.refusal(self._call.name, exchange.status, exchange.headers, said)

    async def _read(self, exchange: Exchange) -> Outcome:
        self._over = asyncio.get_running_loop().create_future()
        if self._paused:
            exchange.pause()
        exchange.listen(self._on_bytes, self._on_end)
        return await self._over

    def _last_events(self, failed: Failed | None) -> list[Event]:
        exchange = self._exchange
        if exchange is None:
            ended = AttemptEnded(failed=failed)
        else:
            headers = exchange.headers
            ended = AttemptEnded(exchange.status, faults.request_id(headers), faults.limits(headers), failed)
        self._sink.fold.apply(ended)
        return [*(self._rest or ()), ended]

    def _masked(self, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Failed):
            return outcome
        message = self._call.mask.text(outcome.message)
        return outcome if message == outcome.message else replace(outcome, message=message)

    def _retry_after_s(self, headers: Mapping[str, str]) -> float | None:
        return faults.retry_after_s(headers, datetime.fromtimestamp(self._clock.unix_s(), UTC))

    # --------------------------------------------------------------- callbacks

    def _on_bytes(self, data: bytes) -> None:
        over = self._over
        if over is None or over.done():
            return
        reader, sink = self._reader, self._sink
        try:
            if (text := reader.plain(data)) is not None:
                # Nearly every read there is, one by one.
                if (straight := sink.straight) is not None:
                    straight.write(b"%b%b%b" % (straight.before, text.encode(), straight.after))
                else:
                    sink.take([TextDelta(text)])
                return
            if len(self._start) < _START_BYTES:
                self._start += data[:_START_BYTES]
            events = reader.feed(data)
            if reader.closed:
                self._finish("clean", events=events)
            elif events:
                if type(events[-1]) is not UsageReported:
                    self._last = events[-1]
                sink.take(events)
        except Exception as error:
            # Ours, or the sink's: left to the event loop it would be taken for the upstream's, or for nothing.
            over.set_exception(error)

    def _on_end(self, transport: Transport) -> None:
        try:
            self._finish(transport)
        except Exception as error:
            assert self._over is not None
            self._over.set_exception(error)

    def _tick(self, now_s: float) -> None:
        if self._reader.activity != self._activity:
            self._activity = self._reader.activity
            self._watch.saw(self._last, now_s)
            self._last = None
        stalled = self._watch.tick(now_s)
        if stalled is None:
            return
        self._sweep.discard(self._tick)
        self._stalled = stalled
        if self._opening is not None:
            self._opening.cancel()
        else:
            self._finish("broken", stalled)

    def _finish(self, transport: Transport, fault: Failed | None = None, events: Sequence[Event] = ()) -> None:
        """`events`: what the last read has brought."""
        if self._over is None or self._over.done():
            return
        end = self._reader.end(transport, fault)
        self._rest = [*events, *end.events]
        outcome = end.outcome
        if isinstance(outcome, Failed) and not self._sink.fold.delivered_anything:
            outcome = faults.explained(outcome, self._call.name, self._call.dialect, self._start)
        self._over.set_result(outcome)
