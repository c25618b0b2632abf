"""Lines for whoever operates it: JSON, or text on a terminal. Each has the run and the session that it is of.

Never a key, a prompt or an upstream's own words: of a run only what we say of it ourselves. All of it goes through
the standard library's logging, so that what libraries have to say comes in the same form.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

import msgspec

from headwater.events import Completed, Incomplete, Stopped, Usage
from headwater.records import Run
from headwater.runs.observing import CURRENT, ids, told

Format = Literal["auto", "json", "text"]

_log = logging.getLogger("headwater.runs")
_NAME: Final = "headwater"
_RECORD: Final = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__)
"""What every record has: the rest is what was said besides."""
_EXPECTED: Final = (Completed, Incomplete, Stopped)
_UNKNOWN: Final = Usage()
_MAY_LACK: Final = (
    "session_id", "answered_by", "status", "duration_s", "first_token_s", "input_tokens", "output_tokens",
)  # fmt: skip
_encode: Final = msgspec.json.Encoder(enc_hook=repr).encode


class RunLog:
    """An `Observer` of runs: a line for each that has ended."""

    def __init__(self) -> None:
        levels = (logging.INFO, logging.WARNING)
        self._alike = {n: vars(logging.LogRecord(_log.name, n, "", 0, "run ended", (), None)) for n in levels}

    def ended(self, run: Run, stopped_in_s: float | None) -> None:
        level = logging.INFO if type(run.outcome) in _EXPECTED else logging.WARNING
        if _log.isEnabledFor(level):
            _log.handle(Told(self._alike[level], run.ended_at, _facts(run)))

    def recovered(self, run: Run) -> None:
        _log.warning("run of a dead worker ended", extra=_facts(run))


class Told(logging.LogRecord):
    """By hand: what is alike in all of them, and what was said by its side, need not be found out for each."""

    __slots__ = ("facts",)

    def __init__(self, alike: Mapping[str, Any], created: float | None, facts: dict[str, Any]) -> None:
        self.__dict__ = {**alike, **facts}
        self.facts = facts
        self.created = created = created or time.time()
        self.msecs = created % 1 * 1000
        self.relativeCreated += (created - alike["created"]) * 1000


def _facts(run: Run) -> dict[str, Any]:
    assert run.outcome is not None
    outcome, reason = told(run.outcome)
    started_at, first_at, ended_at = run.started_at, run.first_token_at, run.ended_at
    usage = _UNKNOWN if run.usage.source == "unknown" else run.usage
    facts = {
        "run_id": run.id,
        "session_id": run.session_id,
        "owner": run.owner,
        "route": run.route,
        "model": run.model,
        "answered_by": run.answered_by,
        "outcome": outcome,
        "reason": reason,
        "status": getattr(run.outcome, "status", None),
        "duration_s": None if started_at is None or ended_at is None else round(ended_at - started_at, 4),
        "first_token_s": None if started_at is None or first_at is None else round(first_at - started_at, 4),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }
    for name in _MAY_LACK:
        if facts[name] is None:
            del facts[name]
    return facts


# ------------------------------------------------------------------- setting it up


def configure(level: str, format: Format, stream: TextIO) -> None:
    """For the whole process. Called again, it replaces what it had set."""
    # What no line shows need not be found out for each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = _Lines(stream)
    handler.setFormatter(formatter(format, terminal=stream.isatty()))
    root = logging.getLogger()
    for old in [old for old in root.handlers if old.name == _NAME]:
        root.removeHandler(old)
    handler.name = _NAME
    root.addHandler(handler)
    logging.getLogger("headwater").setLevel(level.upper())


class _Lines(logging.StreamHandler[TextIO]):
    """Does in one frame what its base does in eight."""

    def handle(self, record: logging.LogRecord) -> bool:
        if self.filters or self.lock is None:
            return bool(super().handle(record))
        with self.lock:
            try:
                self.stream.write(self.format(record) + self.terminator)
                self.stream.flush()
            except RecursionError:
                raise
            except Exception:
                self.handleError(record)
        return True


def formatter(format: Format, *, terminal: bool) -> logging.Formatter:
    as_text = format == "text" or (format == "auto" and terminal)
    return _text(colors=terminal) if as_text else JsonLines()


class JsonLines(logging.Formatter):
    """One line each. By hand: structlog's own way from a record to JSON takes five times as long, for every run."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if type(record) is Told:
            line.update(record.facts)
        else:
            line.update(_with_run({name: value for name, value in record.__dict__.items() if name not in _RECORD}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encode(line).decode()


def _text(*, colors: bool) -> logging.Formatter:
    # Imported only here: it takes as long as a tenth of the start of a server, and most have no terminal.
    import structlog

    before: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        lambda logger, method, line: _with_run(line),
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
    ]
    console = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_traceback)
    meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=[meta, _escaped, console])


def _escaped(logger: Any, method: str, line: Any) -> Any:
    return {name: _printable(value) for name, value in line.items()}


def _traceback(into: TextIO, exc_info: Any) -> None:
    # Not the one with the values of all variables: prompts are among them.
    told = "".join(traceback.format_exception(*exc_info)).rstrip("\n")
    into.write("\n" + "\n".join(_printable(line) for line in told.split("\n")))


def _printable(value: Any) -> Any:
    """Names come from clients: no line is to move a terminal's cursor, or to look like two."""
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in value)


def _with_run(line: dict[str, Any]) -> dict[str, Any]:
    # What another handler has left on the record.
    line.pop("message", None)
    if "run_id" not in line and _in_task() and (run := CURRENT.get()) is not None:
        line.update(ids(run))
    return line


def _in_task() -> bool:
    """Callbacks of a connection have the context of whoever has opened it, be it for another run."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False
