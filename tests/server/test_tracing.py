"""OpenTelemetry's spans, as a collector gets them: one for each run, its attempts and tools inside it."""

import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headwater.accumulate import Accumulator
from headwater.config.settings import ModelSettings
from headwater.errors import CallerError
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Interrupted,
    Stopped,
    ToolCallStarted,
    ToolResult,
    ToolRunStarted,
)
from headwater.records import Run
from headwater.server.tracing import Tracing
from headwater.source import Ended, Sink, Source, Straight, Suspended
from tests.server.house import House, asking, eventually, open_house, settings_for

pytestmark = pytest.mark.anyio


class Collector:
    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
                for resource in body.resource_spans:
                    collector.resources.append(attributes(resource.resource))
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def inside(self, parent: Any) -> list[Any]:
        found = [span for span in self.spans if span.parent_span_id == parent.span_id]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    def of_run(self, run_id: str) -> Any:
        [span] = [span for span in self.spans if attributes(span).get("headwater.run.id") == run_id]
        return span


def attributes(of: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server.server_port}")
    yield collector
    collector.server.shutdown()
    collector.server.server_close()
    collector.thread.join()


def with_fallback(house: House) -> None:
    settings = settings_for(house.simulator)
    first = ModelSettings(name="first", upstream="chat", model="sim/status-500", fallbacks=("second",))
    second = ModelSettings(name="second", upstream="messages", model="sim/tokens-3")
    house.services.reload(replace(settings, models=(first, second)))


async def test_a_run_is_a_span_with_its_attempts_inside(collector: Collector) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    caused = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    async with open_house(traces=True) as house:
        with_fallback(house)
        body = asking("chat", "first", "my secret prompt", session_id="s")
        good = await house.http.post("/v1/chat/completions", json=body, headers=caused)
        assert good.status_code == 200
        bad = await house.post("chat", "chat/sim/tokens-5,cut-after-2")
        line = await house.raw("chat", "chat/sim/tokens-9,stall-after-1", stream=True)
        await line.until(b"t0 ")
        line.reset()
        await eventually(lambda: house.services.runs.running() == 0)
    assert collector.resources[0]["service.name"] == "headwater"
    span = collector.of_run(good.headers["x-run-id"])
    assert (span.name, span.trace_id.hex()) == ("chat first", trace_id)
    said = attributes(span)
    assert said["gen_ai.conversation.id"] == "s"
    assert said["headwater.outcome"] == "completed"
    assert said["gen_ai.usage.output_tokens"] == 3
    failed, answered = collector.inside(span)
    assert attributes(failed)["gen_ai.provider.name"] == "chat"
    assert attributes(failed)["http.response.status_code"] == 500
    assert failed.status.code == 2
    assert attributes(answered)["headwater.attempt.reason"] == "fallback"
    assert (answered.status.code, answered.kind) == (0, 3)
    assert span.start_time_unix_nano <= failed.start_time_unix_nano <= failed.end_time_unix_nano
    assert answered.end_time_unix_nano <= span.end_time_unix_nano
    cut = collector.of_run(bad.headers["x-run-id"])
    assert (attributes(cut)["error.type"], cut.status.code) == ("upstream_truncated", 2)
    [stopped] = [span for span in collector.spans if attributes(span).get("headwater.outcome") == "stopped"]
    assert stopped.status.code == 0
    assert [span.name for span in collector.inside(stopped)] == ["chat sim/tokens-9,stall-after-1"]
    assert "secret prompt" not in str(collector.spans)


# ------------------------------------------------------- what a source may do besides

RUN = Run(id="run_1", owner="ann", model="fast", created_at=0.0, agent="helper")


class Taken:
    """A `Sink` that only listens."""

    def __init__(self, stopping: Stopped | Interrupted | None = None) -> None:
        self.fold = Accumulator()
        self.straight: Straight | None = None
        self.stopping = stopping
        self.events: list[Event] = []

    def take(self, events: Sequence[Event]) -> None:
        self.events += events

    async def kept(self) -> None:
        pass


class Scripted:
    """A `Source` that says this, and then ends so."""

    unwind_s: float | None = None

    def __init__(self, events: Sequence[Event], end: Ended | Suspended | BaseException) -> None:
        self._events = events
        self._end = end
        self.told: list[str] = []

    async def run(self, sink: Sink) -> Ended | Suspended:
        assert sink.stopping is None
        assert sink.fold is not None
        await sink.kept()
        sink.take(self._events)
        if isinstance(self._end, BaseException):
            raise self._end
        return self._end

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")


async def traced(source: Source, sink: Taken) -> None:
    tracing = Tracing({"OTEL_SERVICE_NAME": "mine"})

    async def make_source(run: Run) -> Source:
        return source

    wrapped = await tracing.around(make_source)(RUN)
    wrapped.pause()
    wrapped.resume()
    try:
        await wrapped.run(sink)
    finally:
        await tracing.close()


async def test_tools_are_spans_and_what_is_cut_short_says_so(collector: Collector) -> None:
    events: list[Event] = [
        AttemptStarted("up", "m"),
        AttemptStarted("up", "m", reason="retry"),
        *(ToolCallStarted(index, f"c{index}", name) for index, name in enumerate(("look", "write", "wait"))),
        *(ToolRunStarted(f"c{index}") for index in range(3)),
        ToolResult("c0", "what it found"),
        ToolResult("c1", "no", state="failed"),
        ToolResult("c9", "of nothing that was begun"),
    ]
    source, sink = Scripted(events, Ended(Completed())), Taken()
    await traced(source, sink)
    assert sink.events == events
    assert source.told == ["pause", "resume"]
    span = collector.of_run("run_1")
    assert span.name == "invoke_agent helper"
    status = {one.name: one.status.message for one in collector.inside(span)}
    assert status == {
        "chat m": "",
        "execute_tool look": "",
        "execute_tool write": "failed",
        "execute_tool wait": "cut short",
    }
    assert "what it found" not in str(collector.spans)


async def test_a_run_that_waits_ends_its_span_without_an_outcome(collector: Collector) -> None:
    await traced(Scripted([], Suspended()), Taken())
    assert "headwater.outcome" not in attributes(collector.of_run("run_1"))


async def test_what_raises_is_an_error(collector: Collector) -> None:
    with pytest.raises(ValueError, match="broke"):
        await traced(Scripted([], ValueError("broke")), Taken())
    assert collector.of_run("run_1").status.code == 2


async def test_what_can_not_be_begun_is_an_error(collector: Collector) -> None:
    tracing = Tracing()

    async def make_source(run: Run) -> Source:
        raise CallerError("The session was deleted.", status=404, code="not_found")

    with pytest.raises(CallerError):
        await tracing.around(make_source)(RUN)
    await tracing.close()
    assert collector.of_run("run_1").status.message == "CallerError"
