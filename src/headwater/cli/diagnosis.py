"""From what was seen of an upstream to what is wrong with it, and what to change in the configuration. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from headwater.cli.facts import Facts
from headwater.cli.probing import BEGUN, TOOL
from headwater.cli.words import one_line, seconds
from headwater.config.settings import UpstreamSettings
from headwater.events import Completed, Failed, Incomplete

Level = Literal["fine", "note", "warning", "fault"]
MARKS: Final[dict[Level, str]] = {"fine": "✓", "note": "·", "warning": "!", "fault": "✗"}
_THINK: Final = re.compile(r"\s*<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_KEYS: Final = (401, 403)


class Finding(Struct, frozen=True, omit_defaults=True):
    level: Level
    check: str
    what: str
    change: str | None = None
    """A line for the configuration, or what else to do."""


class Subject(Struct, frozen=True):
    """Who was asked."""

    upstream: str
    settings: UpstreamSettings

    def key(self, name: str, value: str) -> str:
        return f"[upstreams.{self.upstream}] {name} = {value}"


def of_answer(subject: Subject, facts: Facts) -> Iterator[Finding]:
    """Of a plain question."""
    outcome = facts.outcome
    if isinstance(outcome, Failed) and not facts.text and not facts.reasoning:
        yield _no_answer(subject, facts, outcome)
        return
    yield from _streaming(facts)
    yield from _ending(subject, facts)
    if isinstance(outcome, Failed):
        pass
    elif facts.usage:
        yield Finding("fine", "usage", "It tells how many tokens it used.")
    else:
        yield Finding("warning", "usage", "It sends no usage: nobody will know how many tokens were used.")
    yield from _reasoning(subject, facts)
    if not facts.valid_utf8:
        yield Finding("fault", "text", "It sends bytes that are no UTF-8: such characters are lost.")


def _no_answer(subject: Subject, facts: Facts, failed: Failed) -> Finding:
    status = facts.heard.status
    if status in _KEYS:
        return Finding("fault", "key", _said(failed), subject.key("api_key", '"env:…", a key that it accepts'))
    if 300 <= status < 400:
        where = facts.heard.headers.get("location", "…")
        return Finding("fault", "reach", _said(failed), subject.key("base_url", f'"{where}", without the last part'))
    if status == 400 and "stream" in failed.message.lower():
        # Headwater asks again without a stream, and remembers: nothing has to be set.
        return Finding("warning", "stream", f"It refuses to stream: {_said(failed)}", "another model, if you can")
    if status == 429 or status >= 500:
        return Finding("fault", "answer", f"It answered {status}: {_said(failed)}", "try again in a while")
    if facts.heard.failed is not None and failed.reason == "upstream_unreachable":
        return Finding("fault", "reach", _said(failed), subject.key("base_url", '"…"'))
    if failed.reason == "stalled":
        limit = subject.settings.first_token_timeout_s
        return Finding("fault", "stream", _said(failed), subject.key("first_token_timeout_s", f"{limit:g}, or more"))
    if heard := re.search(r'Set (dialect = "\w+")', failed.message):
        return Finding("fault", "dialect", _said(failed), f"[upstreams.{subject.upstream}] {heard[1]}")
    if "web page" in failed.message:
        return Finding("fault", "reach", _said(failed), subject.key("base_url", '"…/v1"'))
    if failed.reason == "empty":
        return Finding("fault", "ending", _said(failed), subject.key("allow_empty", "true, if that is an answer"))
    return Finding("fault", "answer", _said(failed))


def _streaming(facts: Facts) -> Iterator[Finding]:
    first_s, count = facts.first_s, len(facts.text_times_s)
    if not facts.streamed:
        yield Finding(
            "warning", "stream", "It was asked for a stream and gave a whole answer: words will come all at once."
        )
    elif first_s is not None and count >= 10 and first_s > 0.3 and facts.spread_s < first_s / 10:
        yield Finding(
            "warning",
            "stream",
            f"It buffers: {count} pieces came within {_ms(facts.spread_s)}, after {seconds(first_s)} of nothing.",
            "look for a proxy in between that gathers (nginx: proxy_buffering off)",
        )
    elif first_s is not None:
        yield Finding(
            "fine",
            "stream",
            f"It streams: {count} pieces, the first after {_ms(first_s)}, the longest gap {_ms(facts.longest_gap_s)}.",
        )


def _ending(subject: Subject, facts: Facts) -> Iterator[Finding]:
    outcome, terminator = facts.outcome, "its last event"
    if subject.settings.dialect == "chat":
        terminator = "[DONE]"
    match outcome:
        case Completed() if facts.terminated or not facts.streamed:
            yield Finding("fine", "ending", f"It says why it ends ({facts.finish}), and that this is all.")
        case Completed():
            yield Finding("warning", "ending", f"It says why it ends ({facts.finish}), but leaves out {terminator}.")
        case Incomplete(reason=reason):
            yield Finding(
                "warning", "ending", f"Its answer was not whole: {reason.replace('_', ' ')} ({facts.finish})."
            )
        case Failed(reason="upstream_truncated") if facts.terminated and facts.finish is None and _ended_well(facts):
            what = f"It ends with {terminator} and no finish reason: every answer will count as cut."
            yield Finding("fault", "ending", what, subject.key("needs_finish_reason", "false"))
        case Failed(reason="upstream_truncated"):
            how = "was reset" if facts.heard.was_reset else "ended"
            yield Finding("fault", "ending", f"The connection {how} in the midst of the answer: {_said(outcome)}")
        case Failed(reason="stalled"):
            limit = subject.settings.idle_timeout_s
            yield Finding("fault", "stream", _said(outcome), subject.key("idle_timeout_s", f"{limit:g}, or more"))
        case Failed(reason="too_large"):
            yield Finding(
                "fault",
                "answer",
                _said(outcome),
                subject.key("limit_bytes", f"{subject.settings.limit_bytes}, or more"),
            )
        case Failed(reason="empty"):
            yield Finding("fault", "ending", _said(outcome), subject.key("allow_empty", "true, if that is an answer"))
        case Failed():
            yield Finding("fault", "answer", _said(outcome))
        case _:
            yield Finding("fault", "answer", f"It ended in a way that it can't: {outcome}.")


def _ended_well(facts: Facts) -> bool:
    return facts.heard.ended == "clean"


def _reasoning(subject: Subject, facts: Facts) -> Iterator[Finding]:
    if _THINK.match(facts.text) and subject.settings.think_tags == "off":
        yield Finding("fault", "reasoning", "Its thoughts come as text, in tags.", subject.key("think_tags", '"auto"'))
    elif facts.reasoning:
        yield Finding("fine", "reasoning", "It tells what it thinks, apart from its answer.")
    else:
        yield Finding("note", "reasoning", "It tells nothing of what it thinks.")


def of_call(subject: Subject, facts: Facts) -> Iterator[Finding]:
    """Of a question that is to be answered with a call of a tool."""
    outcome = facts.outcome
    if isinstance(outcome, Failed) and facts.heard.status >= 400:
        yield Finding("note", "tools", f"It takes no tools: {_said(outcome)}")
    elif isinstance(outcome, Failed):
        yield Finding("fault", "tools", f"With a tool offered, it failed: {_said(outcome)}")
    elif not facts.calls:
        yield Finding("note", "tools", "It was told to call a tool, and called none.")
    elif not all(_is_object(arguments) for _, arguments in facts.calls):
        yield Finding("fault", "tools", f"It calls {TOOL.name} with arguments that are no JSON object.")
    else:
        yield Finding("fine", "tools", "It calls tools.")


def of_going_on(subject: Subject, facts: Facts, prefill: str) -> Iterator[Finding]:
    """Of an answer that was begun, and is to be gone on with."""
    none = subject.key("prefill", '"none"')
    if isinstance(facts.outcome, Failed):
        yield Finding("fault", "prefill", f"It can't go on with an answer ({prefill}): {_said(facts.outcome)}", none)
    elif not facts.text.lstrip(" ,").lower().startswith("eight"):
        what = f"Told to go on after “{BEGUN}”, it said “{one_line(facts.text, 40)}”."
        yield Finding("fault", "prefill", what, none)
    else:
        yield Finding("fine", "prefill", f"It goes on with an answer where that broke off ({prefill}).")


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments or "{}"), dict)
    except ValueError:
        return False


def _ms(s: float) -> str:
    return f"{s * 1000:.0f} ms"


def _said(failed: Failed) -> str:
    return one_line(failed.message)
