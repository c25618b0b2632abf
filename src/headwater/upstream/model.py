"""A model's turn: attempts, until one has answered or there is no sense in another.

Asks, reads what became of it, and does what `policy` decides. All that happens is an event: who was asked, why
again, and what of what came before stands.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final, Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.clock import Clock
from headwater.conversation import Assistant, Request
from headwater.dialects.base import CONTINUED, NOT_CARRIED, Decoder, Note
from headwater.dialects.carry import notes
from headwater.errors import CallerError
from headwater.events import AttemptStarted, Failed, Notice
from headwater.policy import AskWhole, Continue, Decision, FallBack, GiveUp, Prefill, Retry, Situation, decide
from headwater.source import Ended, Sink, emit
from headwater.upstream.attempt import Attempt, Call, Report
from headwater.upstream.continuation import Seamed, continued, trailing_space, with_prefix_flag
from headwater.upstream.endpoint import Route
from headwater.upstream.sweep import Sweep
from headwater.upstream.unique import UniqueIds

Reason = Literal["first", "retry", "fallback", "continue", "not_streaming"]
_BY_KEY: Final = (401, 403, 429)
"""With another key the answer may be another."""


class Model:
    """What a client's name for a model leads to: a route, and others for when it fails."""

    def __init__(
        self,
        routes: Sequence[Route],
        clock: Clock,
        sweep: Sweep,
        jitter: Callable[[], float] = random.random,
        context_tokens: int | None = None,
    ) -> None:
        self.routes = routes
        self.context_tokens = context_tokens
        """What fits into its context; None: not known."""
        self.clock = clock
        self.sweep = sweep
        self.jitter = jitter
        self._noted: tuple[Route, Request, list[Note]] | None = None

    def check(self, request: Request) -> None:
        """`CallerError` for what the model's own upstream can't be asked. A fallback that can't is passed over."""
        for note in self.notes(self.routes[0], request):
            if note.refuse:
                raise CallerError(f"{note.field}: {note.text}", code="unsupported_parameter", param=note.field)

    def notes(self, route: Route, request: Request) -> list[Note]:
        """What the route will not be told of it. Found once: it is asked for before the run, for it, and within it."""
        if self._noted is None or self._noted[0] is not route or self._noted[1] is not request:
            self._noted = (route, request, notes(request, route.target, route.endpoint.dialect.name))
        return self._noted[2]

    def turn(
        self,
        request: Request,
        *,
        call_id_prefix: str,
        turn: int = 0,
        may_continue: bool = False,
        goes_on: Assistant | None = None,
        taken: frozenset[str] | None = None,
    ) -> "ModelTurn":
        """`goes_on`: an earlier message that was cut, which this turn goes on with in one of its own.

        `taken`: ids of calls that the run has had already, for one whose calls are told apart by them.
        """
        self.check(request)
        return ModelTurn(self, request, call_id_prefix, turn, may_continue, goes_on, taken)


class _Plan(Struct):
    """Where the turn stands: what the next attempt is."""

    route: Route
    others: list[Route]
    """Whom to fall back to."""
    reason: Reason = "first"
    because: str | None = None
    streamed: bool = True
    at_route: int = 0
    """Attempts that count, at this route."""
    key: str | None = None
    keys_refused: int = 0
    """At this route."""
    first_failure: Failed | None = None
    """What the turn fails with in the end: what came of the other routes is in their attempts (C20)."""


class ModelTurn:
    """A `Source`."""

    unwind_s: float | None = None

    def __init__(
        self,
        model: Model,
        request: Request,
        call_id_prefix: str,
        turn: int,
        may_continue: bool,
        goes_on: Assistant | None,
        taken: frozenset[str] | None,
    ) -> None:
        self._model = model
        self._taken = taken
        self._clock = model.clock
        self._request = request
        self._call_id_prefix = call_id_prefix
        self.turn = turn
        """Counts on when a cut message had to be continued by another."""
        self._may_continue = may_continue
        self._continuations = 0
        self._goes_on = goes_on
        self._partial: Assistant | None = None
        """What of this turn the next attempt goes on after."""
        self._attempts = 0
        self._told: set[Note] = set()
        self._attempt: Attempt | None = None
        self._paused = False

    async def run(self, sink: Sink) -> Ended:
        plan = self._plan()
        while True:
            report = await self._ask(plan, sink)
            failed = report.outcome
            if not isinstance(failed, Failed):
                plan.route.endpoint.health.succeeded()
                return Ended(failed, report.last)
            sink.take(report.last)
            plan.because = failed.message
            if failed.status in _BY_KEY and self._has_another_key(plan):
                plan.reason = "retry"
                continue
            plan.at_route += 1
            match self._decide(plan, failed, report.retry_after_s, sink.fold):
                case Retry(after_s=after_s):
                    plan.reason = "retry"
                    await self._clock.sleep(after_s)
                case AskWhole():
                    plan.route.endpoint.cannot_stream.learn(plan.route.model, self._clock.now_s())
                    plan.reason, plan.streamed, plan.at_route = "not_streaming", False, plan.at_route - 1
                case FallBack():
                    self._fall_back(plan, failed)
                case Continue(prefill=prefill, after_s=after_s):
                    plan.reason, plan.first_failure = "continue", plan.first_failure or failed
                    await self._clock.sleep(after_s)
                    self._go_on(prefill, sink)
                case GiveUp():
                    if failed.retryable:
                        plan.route.endpoint.health.failed(self._clock.now_s())
                    return Ended(plan.first_failure or failed)
                case unreachable:
                    assert_never(unreachable)

    def pause(self) -> None:
        self._paused = True
        if self._attempt is not None:
            self._attempt.pause()

    def resume(self) -> None:
        self._paused = False
        if self._attempt is not None:
            self._attempt.resume()

    # ---------------------------------------------------------------- deciding

    def _plan(self) -> _Plan:
        """Upstreams that keep failing come last, and fallbacks that can't be asked this not at all."""
        first, *rest = self._model.routes
        if not rest:
            return _Plan(first, [], streamed=self._streams(first))
        now_s = self._clock.now_s()
        able = [first, *(route for route in rest if not any(note.refuse for note in self._notes(route)))]
        route, *others = sorted(able, key=lambda route: route.endpoint.health.resting(now_s))
        plan = _Plan(route, others, streamed=self._streams(route))
        if route is not first:
            plan.reason = "fallback"
            plan.because = f"The upstream {first.endpoint.name!r} keeps failing, and is left alone for a while."
        return plan

    def _has_another_key(self, plan: _Plan) -> bool:
        """Each is tried once: how long one rests may be nothing at all."""
        keys = plan.route.endpoint.keys
        plan.keys_refused += 1
        return keys.refused(plan.key, self._clock.now_s()) and plan.keys_refused < len(keys)

    def _streams(self, route: Route) -> bool:
        return not route.endpoint.cannot_stream.knows(route.model, self._clock.now_s())

    def _decide(self, plan: _Plan, failed: Failed, retry_after_s: float | None, fold: Accumulator) -> Decision:
        situation = Situation(
            attempt=plan.at_route,
            delivered=fold.delivered_anything,
            call_begun=bool(fold.turn_calls),
            streamed=plan.streamed,
            has_fallback=bool(plan.others),
            may_continue=self._may_continue,
            continuations=self._continuations,
            prefill=plan.route.prefill,
        )
        limits = plan.route.endpoint.retry_limits
        return decide(failed, situation, limits, jitter=self._model.jitter(), retry_after_s=retry_after_s)

    def _fall_back(self, plan: _Plan, failed: Failed) -> None:
        plan.route.endpoint.health.failed(self._clock.now_s())
        plan.first_failure = plan.first_failure or failed
        plan.route = plan.others.pop(0)
        plan.keys_refused = 0
        plan.reason, plan.at_route, plan.streamed = "fallback", 0, self._streams(plan.route)

    def _go_on(self, prefill: Prefill, sink: Sink) -> None:
        self._continuations += 1
        partial = sink.fold.message()
        if prefill != "none" and partial.text.strip():
            self._partial = partial
            return
        text = "The answer was cut off. This model can't go on within it, and was asked to go on in a new message."
        emit(sink, Notice(CONTINUED, text))
        if self._goes_on is not None:
            self._request = continued(self._request, self._goes_on, "none")
        self._request = continued(self._request, partial, "none")
        self._partial = self._goes_on = None
        self.turn += 1

    # ------------------------------------------------------------------ asking

    async def _ask(self, plan: _Plan, sink: Sink) -> Report:
        route, partial = plan.route, self._partial
        endpoint = route.endpoint
        self._attempts += 1
        started = AttemptStarted(
            endpoint.name,
            route.model,
            self.turn,
            plan.reason,
            plan.because,
            "everything" if partial is not None else "nothing",
        )
        emit(sink, started, *self._not_carried(route))
        plan.key = endpoint.keys.take(self._clock.now_s())
        call = Call(
            name=endpoint.name,
            dialect=endpoint.dialect.name,
            opener=endpoint.opener,
            body=self._body(route, streamed=plan.streamed),
            key=plan.key,
            mask=endpoint.mask,
            decoder=self._decoder(route),
            rules=endpoint.rules,
            think_tags=endpoint.think_tags,
            limit_bytes=endpoint.limit_bytes,
            stall=endpoint.stall_limits(streamed=plan.streamed),
        )
        self._attempt = attempt = Attempt(call, sink, self._clock, self._model.sweep)
        if self._paused:
            attempt.pause()
        try:
            return await attempt.run()
        finally:
            self._attempt = None

    def _body(self, route: Route, *, streamed: bool) -> bytes:
        target = replace(route.target, stream=streamed)
        before = self._before()
        if before is None:
            return route.endpoint.dialect.render(self._request, target)
        body = route.endpoint.dialect.render(continued(self._request, before, route.prefill), target)
        return with_prefix_flag(body, route.prefix_flag) if route.prefill == "prefix_flag" else body

    def _before(self) -> Assistant | None:
        """The text that the next attempt goes on after: of an earlier message, and of this one."""
        if self._goes_on is None or self._partial is None:
            return self._goes_on or self._partial
        return replace(self._partial, parts=(*self._goes_on.parts, *self._partial.parts))

    def _decoder(self, route: Route) -> Decoder:
        decoder = route.endpoint.dialect.decoder(f"{self._call_id_prefix}{self._attempts}_")
        if self._taken is not None:
            decoder = UniqueIds(decoder, self._taken)
        before = self._before()
        # Only the messages dialect takes no white space at the end of what is to be gone on with.
        if before is None or route.prefill == "none" or route.endpoint.dialect.name != "messages":
            return decoder
        return Seamed(decoder, trailing_space(before.text))

    def _not_carried(self, route: Route) -> list[Notice]:
        fresh = [note for note in self._notes(route) if note not in self._told]
        if self.turn:
            # What the run itself has said goes back as it can: nobody has asked for that.
            fresh = [note for note in fresh if not note.field.startswith("messages.")]
        self._told.update(fresh)
        return [Notice(NOT_CARRIED, f"{note.field}: {note.text}") for note in fresh]

    def _notes(self, route: Route) -> list[Note]:
        return self._model.notes(route, self._request)
