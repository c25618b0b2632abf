"""OpenTelemetry: a span for each run, with its attempts and its tools' calls inside it.

Wrapped around what a run pumps, so that a server without it pays nothing. A run that waits for somebody has a span for
each stretch that it works. Names and attributes are those of OpenTelemetry's conventions for generative AI where it has
them. Nothing of what is said is in them. Where they are sent is for its own variables to say (`OTEL_…`).

Importable only with `headwater[otel]`.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry import context, propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from starlette.types import ASGIApp, Receive, Scope, Send

import headwater
from headwater.accumulate import Accumulator
from headwater.events import (
    AttemptEnded,
    AttemptStarted,
    Completed,
    Event,
    Incomplete,
    Interrupted,
    Outcome,
    Stopped,
    ToolCallStarted,
    ToolResult,
    ToolRunStarted,
)
from headwater.records import Run
from headwater.runs.habits import MakeSource
from headwater.runs.observing import told
from headwater.server.semantics import error_type, operation
from headwater.source import Ended, Sink, Source, Straight, Suspended

_FLUSH_MS: Final = 5000


class Tracing:
    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        named = "OTEL_SERVICE_NAME" in environ or "service.name" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        about = {} if named else {"service.name": "headwater"}
        self._provider = TracerProvider(resource=Resource.create({"service.version": headwater.__version__, **about}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("headwater", headwater.__version__)

    def around(self, make_source: MakeSource) -> MakeSource:
        async def traced(run: Run) -> Source:
            span = self._tracer.start_span(_name(run), kind=SpanKind.SERVER, attributes=_asked(run))
            try:
                return _Traced(self._tracer, span, await make_source(run))
            except BaseException as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                span.end()
                raise

        return traced

    def caused(self, app: ASGIApp) -> ASGIApp:
        return Caused(app)

    async def close(self) -> None:
        """What was not sent yet is, if somebody takes it."""
        await asyncio.to_thread(self._provider.force_flush, _FLUSH_MS)
        await asyncio.to_thread(self._provider.shutdown)


class Caused:
    """An application in which a request's runs belong to the trace that its client has begun (`traceparent`)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        token = context.attach(propagate.extract(headers))
        try:
            await self._app(scope, receive, send)
        finally:
            context.detach(token)


def _name(run: Run) -> str:
    return f"{operation(run)} {run.agent or run.model}"


def _asked(run: Run) -> dict[str, str]:
    asked = {
        "gen_ai.operation.name": operation(run),
        "gen_ai.request.model": run.model,
        "gen_ai.conversation.id": run.session_id,
        "headwater.run.id": run.id,
        "headwater.route": run.route,
    }
    return {name: value for name, value in asked.items() if value is not None}


class _Traced:
    """A `Source`."""

    def __init__(self, tracer: Tracer, span: Span, source: Source) -> None:
        self._tracer = tracer
        self._span = span
        self._source = source
        self.pause = source.pause
        self.resume = source.resume
        self.unwind_s = source.unwind_s

    async def run(self, sink: Sink) -> Ended | Suspended:
        watching = _Watching(self._tracer, self._span, sink)
        end: Ended | Suspended | None = None
        try:
            end = await self._source.run(watching)
            if isinstance(end, Ended):
                watching.see(end.last)
            return end
        finally:
            watching.close()
            # What was asked for stands, whatever the source made of it.
            self._tell(sink.stopping or (end.outcome if isinstance(end, Ended) else None), sink.fold)
            if end is None and sink.stopping is None:
                self._span.set_status(StatusCode.ERROR, "raised")
            self._span.end()

    def _tell(self, outcome: Outcome | None, fold: Accumulator) -> None:
        span, usage = self._span, fold.usage
        if usage.source == "provider":
            span.set_attribute("gen_ai.usage.input_tokens", usage.input_tokens or 0)
            span.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens or 0)
        if outcome is None:
            return
        span.set_attribute("headwater.outcome", told(outcome)[0])
        if (error := error_type(outcome)) is not None:
            span.set_attribute("error.type", error)
            span.set_status(StatusCode.ERROR, error)
        elif isinstance(outcome, Completed | Incomplete):
            span.set_attribute("gen_ai.response.finish_reasons", (outcome.reason,))


class _Watching:
    """A `Sink` that sees attempts and tools come and go."""

    def __init__(self, tracer: Tracer, span: Span, sink: Sink) -> None:
        self._tracer = tracer
        self._inside = trace.set_span_in_context(span)
        self._sink = sink
        self._attempt: Span | None = None
        self._tools: dict[str, Span] = {}
        self._names: dict[str, str] = {}
        self.kept = sink.kept

    @property
    def fold(self) -> Accumulator:
        return self._sink.fold

    @property
    def stopping(self) -> Stopped | Interrupted | None:
        return self._sink.stopping

    @property
    def straight(self) -> Straight | None:
        return self._sink.straight

    def take(self, events: Sequence[Event]) -> None:
        self.see(events)
        self._sink.take(events)

    def see(self, events: Sequence[Event]) -> None:
        for event in events:
            self._see(event)

    def close(self) -> None:
        self._end_attempt()
        for span in self._tools.values():
            span.set_status(StatusCode.ERROR, "cut short")
            span.end()

    def _see(self, event: Event) -> None:
        match event:
            case AttemptStarted():
                self._end_attempt()
                self._attempt = self._begin(f"chat {event.model}", SpanKind.CLIENT, {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": event.upstream,
                    "gen_ai.request.model": event.model,
                    "headwater.attempt.reason": event.reason,
                })  # fmt: skip
            case AttemptEnded():
                self._end_attempt(event)
            case ToolCallStarted():
                self._names[event.id] = event.name
            case ToolRunStarted():
                name = self._names.get(event.call_id, "")
                about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
                self._tools[event.call_id] = self._begin(f"execute_tool {name}", SpanKind.INTERNAL, about)
            case ToolResult() if (span := self._tools.pop(event.call_id, None)) is not None:
                if event.state != "done":
                    span.set_status(StatusCode.ERROR, event.state)
                span.end()
            case _:
                pass

    def _begin(self, name: str, kind: SpanKind, about: dict[str, str]) -> Span:
        return self._tracer.start_span(name, context=self._inside, kind=kind, attributes=about)

    def _end_attempt(self, ended: AttemptEnded | None = None) -> None:
        span, self._attempt = self._attempt, None
        if span is None:
            return
        if ended is not None and ended.status is not None:
            span.set_attribute("http.response.status_code", ended.status)
        if ended is not None and ended.failed is not None:
            span.set_attribute("error.type", ended.failed.reason)
            span.set_status(StatusCode.ERROR, ended.failed.reason)
        span.end()
