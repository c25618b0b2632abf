"""Scripts by name: `sim/tokens-100@50,cut-after-10` needs no file. Pure.

A name is a list of words. Each is a row in a table here; what a word does not say stays as `Answer` has it.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from headwater.simulate.script import (
    POINTS,
    Answer,
    BadChunk,
    BadJson,
    BadUtf8,
    Call,
    Cut,
    Fault,
    Fin,
    Http,
    HugeFrame,
    Pace,
    Reasoning,
    Reset,
    Script,
    Stall,
    StreamError,
    Usage,
    Writes,
)

PREFIX: Final = "sim/"
PORTAL: Final = "<!doctype html><html><title>Sign in</title><body>Please sign in to use this network.</body></html>"
REDIRECT: Final = Http(status=307, headers={"location": "https://elsewhere.example/v1"}, body="")

FAULTS: Final[dict[str, Callable[..., Fault]]] = {
    "cut": Cut,
    "fin": Fin,
    "reset": Reset,
    "stall": Stall,
    "pings": partial(Stall, keep_alive_s=1.0),
    "error": StreamError,
    "badchunk": BadChunk,
    "badjson": BadJson,
    "badutf8": BadUtf8,
    "huge": HugeFrame,
}
_FAULT: Final = re.compile(rf"({'|'.join(FAULTS)})-(?:after-(\d+)|at-([a-z_]+))")
_TIMES: Final = re.compile(r"(.+)x(\d+)")


class UnknownName(ValueError):
    """It names what can be said instead."""


class Word(Struct, frozen=True):
    form: str
    """As the documentation shows it."""
    meaning: str
    pattern: str
    fields: Callable[..., dict[str, Any]]
    """From the groups of the pattern to fields of an answer. A field that is a struct is merged into."""
    breaks: bool = False
    """It is something that goes wrong: with `xN` it does so N times, and then works."""


def _http(status: str) -> dict[str, Any]:
    return {"http": Http(status=int(status))}


def _paced(rate: str | None) -> dict[str, Any]:
    return {"pace": {"tokens_per_s": float(rate)}} if rate else {}


_NUMBER: Final = r"(\d+(?:\.\d+)?)"
_RATE: Final = rf"(?:@{_NUMBER})?"
WORDS: Final = (
    Word("echo[@R]", "says what was said last", rf"echo{_RATE}", lambda rate: {"echo": True} | _paced(rate)),
    Word(
        "tokens-N[@R]",
        "N tokens, R a second; else as fast as it goes",
        rf"tokens-(\d+){_RATE}",
        lambda n, rate: {"tokens": int(n)} | _paced(rate),
    ),
    Word(
        "think[-N]",
        "N tokens of reasoning first",
        r"think(?:-(\d+))?",
        lambda n: {"reasoning": Reasoning(tokens=int(n or 8))},
    ),
    Word(
        "tool[-N]",
        "N calls of the first tool that is offered; after their results, the last of them as text",
        r"tool(?:-(\d+))?",
        lambda n: {"calls": (Call(),) * int(n or 1)},
    ),
    Word("finish-WORD", "ends for that reason", r"finish-(\w+)", lambda word: {"finish": word}),
    Word(
        "usage-WHEN",
        "always, none, every_chunk or with_finish",
        r"usage-(always|none|every_chunk|with_finish)",
        lambda send: {"usage": Usage(send=send)},
    ),
    Word("first-S", "S seconds to the first", rf"first-{_NUMBER}", lambda s: {"pace": {"first_token_s": float(s)}}),
    Word("bytes-N", "cut after every N bytes", r"bytes-(\d+)", lambda n: {"writes": {"every_bytes": int(n)}}),
    Word("random-SEED", "cut at random places", r"random-(\d+)", lambda seed: {"writes": {"seed": int(seed)}}),
    Word("writes-N", "N tokens in one write", r"writes-(\d+)", lambda n: {"writes": {"tokens": int(n)}}),
    Word("close", "no chunks: the connection ends with the body", r"close", lambda: {"writes": {"framing": "close"}}),
    Word("head-S", "S seconds to the head", rf"head-{_NUMBER}", lambda s: {"pace": {"head_s": float(s)}}, True),
    Word(
        "omit-PART",
        "without start, finish, usage or terminator",
        r"omit-(start|finish|usage|terminator)",
        lambda p: {"omit": (p,)},
        True,
    ),
    Word("whole", "a JSON body even to `stream: true`", r"whole", lambda: {"streaming": "never"}, True),
    Word("nostream", "400 to `stream: true`", r"nostream", lambda: {"streaming": "refused"}, True),
    Word("status-CODE", "an HTTP error", r"status-(\d{3})", _http, True),
    Word("retry-S", "a Retry-After header", rf"retry-{_NUMBER}", lambda s: {"headers": {"retry-after": s}}, True),
    Word("portal", "a captive portal's page of HTML", r"portal", lambda: {"http": Http(status=200, body=PORTAL)}, True),
    Word("redirect", "307 to elsewhere", r"redirect", lambda: {"http": REDIRECT}, True),
    Word(
        "speaks-DIALECT",
        "answers in chat, responses or messages",
        r"speaks-(chat|responses|messages)",
        lambda d: {"dialect": d},
        True,
    ),
)
FAULT_FORMS: Final = (f"{'|'.join(FAULTS)} with -after-N (tokens) or -at-POINT ({', '.join(POINTS)})",)
EXAMPLES: Final = (
    "sim/echo",
    "sim/tokens-500@50",
    "sim/think,tokens-20",
    "sim/tool",
    "sim/tokens-100@50,cut-after-10",
    "sim/reset-after-3",
    "sim/stall-after-5",
    "sim/error-after-2",
    "sim/status-429x2",
)


def script_of(name: str) -> Script:
    """Raises `UnknownName`."""
    try:
        return _script(name)
    except UnknownName:
        raise
    except ValueError as error:
        raise UnknownName(f"{name!r}: {error}") from None


def _script(name: str) -> Script:
    lasting: list[dict[str, Any]] = []
    passing: list[tuple[int, dict[str, Any]]] = []
    for word in name.removeprefix(PREFIX).split(","):
        fields, times = _read(word.strip())
        if times is None:
            lasting.append(fields)
        else:
            passing.append((times, fields))
    works = _answer(lasting)
    answers = []
    done = 0
    # Those that pass after fewer requests leave the others behind.
    for until in sorted({times for times, _ in passing}):
        broken = [fields for times, fields in passing if times >= until]
        answers.append(msgspec.structs.replace(_answer([*lasting, *broken]), times=until - done))
        done = until
    return Script(answers=tuple(step for answer in [*answers, works] for step in _steps_of(answer)))


def _read(word: str) -> tuple[dict[str, Any], int | None]:
    """The fields, and for how many requests they hold."""
    if (found := _match(word)) is not None:
        return found[0], None
    if (counted := _TIMES.fullmatch(word)) and int(counted[2]) and (found := _match(counted[1])) and found[1]:
        return found[0], int(counted[2])
    choices = ", ".join([*(entry.form for entry in WORDS), *FAULT_FORMS])
    raise UnknownName(f"{word!r} is no word of a simulated model's name. There are: {choices}.")


def _match(word: str) -> tuple[dict[str, Any], bool] | None:
    for entry in WORDS:
        if found := re.fullmatch(entry.pattern, word):
            return entry.fields(*found.groups()), entry.breaks
    found = _FAULT.fullmatch(word)
    if not found or (found[3] is not None and found[3] not in POINTS):
        return None
    place = {"at": found[3]} if found[3] else {"tokens": int(found[2])}
    try:
        return {"faults": (FAULTS[found[1]](**place),)}, True
    except ValueError:
        return None


def _answer(parts: list[dict[str, Any]]) -> Answer:
    """Later words win; lists grow, and what has several settings keeps those that a word does not name."""
    fields: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            before = fields.get(name)
            if isinstance(value, tuple) and before:
                value = before + value
            elif isinstance(value, dict) and before:
                value = before | value
            fields[name] = value
    for name, kind in (("pace", Pace), ("writes", Writes)):
        if name in fields:
            fields[name] = kind(**fields[name])
    return Answer(**fields)


def _steps_of(answer: Answer) -> tuple[Answer, ...]:
    """One that calls tools has another answer to their results."""
    if not answer.calls:
        return (answer,)
    after = msgspec.structs.replace(answer, calls=(), echo=True, when="tool_result")
    return (msgspec.structs.replace(answer, when="user"), after)
