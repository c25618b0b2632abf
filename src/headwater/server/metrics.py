"""What `/metrics` tells: how runs went, for Prometheus. Written once a run and once a commit, never once a token.

Names and buckets are those of OpenTelemetry's conventions for generative AI where it has them, with the units that its
exporter for Prometheus puts behind them; the others are ours. Several workers on one address count together, in files:
whichever of them is asked tells of all.
"""

import collections
import os
from bisect import bisect_left
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

import headwater
from headwater.events import Outcome
from headwater.records import Run
from headwater.runs.observing import told
from headwater.server.semantics import error_type, operation

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
"""A variable that names the folder in which several workers count; to be set before this module is imported."""
OTHER: Final = "other"
_MOST_SERIES: Final = 1000
"""That are remembered. They are found again."""
_MOST_NAMES: Final = 200
"""Of models: a client may ask an upstream for any name, and each would be a series for ever."""

_TO_FIRST_TOKEN_S: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
)  # fmt: skip
_PER_TOKEN_S: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_DURATION_S: Final = tuple(0.01 * 2**n for n in range(14))
_TOKENS: Final = tuple(float(4**n) for n in range(14))
_STOP_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
_COMMIT_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5)
_ABOUT: Final = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")


class _Observed:
    """What is to be added to a histogram, together: its own `observe` takes a lock for each, and where workers share
    it a write to a file."""

    __slots__ = ("_histogram", "_values", "add")

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._values: list[float] = []
        self.add = self._values.append

    def hand_on(self) -> None:
        if not self._values:
            return
        histogram = self._histogram
        histogram._sum.inc(sum(self._values))
        buckets = map(partial(bisect_left, histogram._upper_bounds), self._values)
        for bucket, count in collections.Counter(buckets).items():
            histogram._buckets[bucket].inc(count)
        self._values.clear()


class _Series(Struct, eq=False):
    """Where a run is counted. Found once for all that are alike: finding them costs more than adding to them."""

    runs: Counter
    duration: _Observed
    first_token: _Observed
    per_token: _Observed
    tokens_in: _Observed
    tokens_out: _Observed
    ended: int = 0
    """Not handed on yet."""

    def hand_on(self) -> None:
        self.runs.inc(self.ended)
        self.ended = 0
        for observed in (self.duration, self.first_token, self.per_token, self.tokens_in, self.tokens_out):
            observed.hand_on()


class Metrics:
    """An `Observer` of runs. What it was told shows once it has been handed on."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._shared = os.environ.get(SHARED)
        if self._shared is None:
            ProcessCollector(registry=registry)
            GCCollector(registry)
        build = Gauge(
            "headwater_build_info", "What is running.", ("version",), registry=registry, multiprocess_mode="livemax"
        )
        build.labels(headwater.__version__).set(1)
        self._first_token = Histogram(
            "gen_ai_server_time_to_first_token_seconds",
            "From the start of a run to its first text, reasoning or tool call.",
            _ABOUT,
            buckets=_TO_FIRST_TOKEN_S,
            registry=registry,
        )
        self._per_token = Histogram(
            "gen_ai_server_time_per_output_token_seconds",
            "Per token after the first, of runs whose tokens the provider has counted.",
            _ABOUT,
            buckets=_PER_TOKEN_S,
            registry=registry,
        )
        self._duration = Histogram(
            "gen_ai_server_request_duration_seconds",
            "From the start of a run to its end; error_type is empty for an answer and for a stop.",
            (*_ABOUT, "error_type"),
            buckets=_DURATION_S,
            registry=registry,
        )
        self._tokens = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of a run, as the provider has counted them.",
            (*_ABOUT, "gen_ai_token_type"),
            buckets=_TOKENS,
            registry=registry,
        )
        self._ours(registry)
        self._series: dict[tuple[str, bool, str, str | None, type[Outcome], str], _Series] = {}
        self._models: set[str] = set()
        self._pending: set[_Series] = set()
        """What of them is not handed on yet."""

    def _ours(self, registry: CollectorRegistry) -> None:
        self._runs = Counter(
            "headwater_runs", "Runs that have ended.", ("route", "outcome", "reason"), registry=registry
        )
        self._stops = Histogram(
            "headwater_stop_seconds",
            "From a stop to the moment that the run's upstream connection is closed.",
            buckets=_STOP_S,
            registry=registry,
        )
        self._resumes = Counter(
            "headwater_resumes", "Streams that were followed on from a cursor.", ("route",), registry=registry
        )
        self._recovered = Counter(
            "headwater_recovered_runs", "Runs of dead workers that this one has ended.", registry=registry
        )
        commits = Histogram(
            "headwater_store_commit_seconds",
            "Transactions of runs: starts, what they say, ends.",
            buckets=_COMMIT_S,
            registry=registry,
        )
        self._commits = _Observed(commits)
        self._going_on = Gauge(
            "headwater_runs_going_on", "Runs at this moment.", registry=registry, multiprocess_mode="livesum"
        )

    def text(self) -> bytes:
        self.hand_on()
        if self._shared is None:
            return bytes(generate_latest(self._registry))
        _forget_dead(Path(self._shared))
        together = CollectorRegistry()
        MultiProcessCollector(together, self._shared)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(together))

    # ------------------------------------------------------------------- what went on

    def ended(self, run: Run, stopped_in_s: float | None) -> None:
        assert run.outcome is not None
        if stopped_in_s is not None:
            self._stops.observe(stopped_in_s)
        started_at, first_at, ended_at = run.started_at, run.first_token_at, run.ended_at
        if started_at is None or ended_at is None:
            # It never began.
            self._runs_of(run).inc()
            return
        alike = (run.route, run.agent is None, run.model, run.answered_by, type(run.outcome), run.outcome.reason)
        series = self._series.get(alike)
        if series is None:
            if len(self._series) >= _MOST_SERIES:
                self._series.clear()
            series = self._series[alike] = self._of(run)
        self._pending.add(series)
        series.ended += 1
        series.duration.add(max(0.0, ended_at - started_at))
        if first_at is not None:
            series.first_token.add(max(0.0, first_at - started_at))
        if run.usage.source != "provider":
            return
        tokens = run.usage.output_tokens or 0
        series.tokens_in.add(run.usage.input_tokens or 0)
        series.tokens_out.add(tokens)
        if first_at is not None and tokens > 1:
            series.per_token.add(max(0.0, ended_at - first_at) / (tokens - 1))

    def hand_on(self) -> None:
        while self._pending:
            self._pending.pop().hand_on()
        self._commits.hand_on()

    def committed(self, seconds: float) -> None:
        self._commits.add(seconds)

    def recovered(self, run: Run) -> None:
        self._recovered.inc()
        # Nothing of its times: when it has ended is when it was found.
        self._runs_of(run).inc()

    def going_on(self, number: int) -> None:
        """Said now and then."""
        self._going_on.set(number)
        # Of commits, which a run has many of before its end.
        self.hand_on()

    def resumed(self, route: str) -> None:
        self._resumes.labels(route).inc()

    def _runs_of(self, run: Run) -> Counter:
        assert run.outcome is not None
        return self._runs.labels(run.route, *told(run.outcome))

    def _of(self, run: Run) -> _Series:
        assert run.outcome is not None
        provider, model = (run.answered_by or "").partition("/")[0], self._bounded(run.model)
        error = error_type(run.outcome) or ""
        about = (operation(run), provider, model)
        return _Series(
            self._runs_of(run),
            _Observed(self._duration.labels(*about, error)),
            _Observed(self._first_token.labels(*about)),
            _Observed(self._per_token.labels(*about)),
            _Observed(self._tokens.labels(*about, "input")),
            _Observed(self._tokens.labels(*about, "output")),
        )

    def _bounded(self, model: str) -> str:
        if model not in self._models:
            if len(self._models) >= _MOST_NAMES:
                return OTHER
            self._models.add(model)
        return model


def _forget_dead(folder: Path) -> None:
    """What they had going on is not going on any more; what they have counted stays."""
    for file in folder.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
