"""A script: what a demo model will say, how fast, and how it ends. `play` makes steps of it.

Pure: the same script for the same request gives the same steps. Here, and nowhere else, are the limit of tokens, the
stop sequences and an answer that is gone on with.
"""

import re
from collections.abc import Iterator
from random import Random
from typing import Any, Final, assert_never

from msgspec import Struct

from headwater.upstream.demo.asked import Asked
from headwater.upstream.demo.steps import Cut, End, Hang, Pause, Send, Step
from headwater.upstream.demo.wire import DONE, Chunks, error

HUMAN_PACE: Final = 45.0
"""Tokens a second: a little faster than one reads."""

# ------------------------------------------------------------------------ beats


class Say(Struct, frozen=True):
    text: str


class Think(Struct, frozen=True):
    text: str


class Call(Struct, frozen=True):
    id: str
    name: str
    arguments: str


Beat = Say | Think | Call

# ---------------------------------------------------------------------- endings


class Done(Struct, frozen=True):
    """With the finish reason that the answer deserves."""


class Finish(Struct, frozen=True):
    """With this finish reason, whatever word it is, or with none; then `[DONE]`."""

    reason: str | None


class Report(Struct, frozen=True):
    """With an error object in the stream."""

    message: str
    type: str
    code: str | None = None


class Babble(Struct, frozen=True):
    """With something that is no JSON, and then as if nothing had been."""


class Leave(Struct, frozen=True):
    """With no word of an ending."""

    step: Cut | End | Hang


Ending = Done | Finish | Report | Babble | Leave


class Script(Struct, frozen=True, kw_only=True):
    beats: tuple[Beat, ...] = ()
    first_s: float = 0.4
    """Until the first token."""
    tokens_per_s: float = HUMAN_PACE
    ending: Ending = Done()
    ends_after: int | None = None
    """Tokens; None is after all of them."""


# ------------------------------------------------------------------------- play


class _Token(Struct, frozen=True):
    delta: dict[str, Any]
    text: str
    reasoning: bool = False


def play(script: Script, asked: Asked) -> Iterator[Step]:
    beats = _stopped(_gone_on(script.beats, asked.begun), asked.stop)
    tokens = [token for beat in _numbered(beats) for token in _tokens(*beat)]
    ending, tokens = _limited(script, asked.limit, tokens)
    chunks = Chunks(id=f"chatcmpl-{asked.seed[:24]}", model=asked.model, include_usage=asked.include_usage)
    random = Random(asked.seed)
    yield Pause(script.first_s)
    yield Send(chunks.role())
    for token in tokens:
        yield Pause(_pause_s(token.text, script.tokens_per_s, random))
        yield Send(chunks.delta(token.delta))
    yield from _end(ending, chunks, asked, tokens)


_NOTHING_LEFT: Final = " That is all there is to say."


def _gone_on(beats: tuple[Beat, ...], begun: str) -> tuple[Beat, ...]:
    """What is left to say after `begun`. What was thought was thought before it."""
    if not begun:
        return beats
    text = "".join(beat.text for beat in beats if isinstance(beat, Say))
    rest = text.removeprefix(begun) if text.startswith(begun) else ""
    calls = [beat for beat in beats if isinstance(beat, Call)]
    return (Say(rest if rest or calls else _NOTHING_LEFT), *calls)


def _stopped(beats: tuple[Beat, ...], stop: tuple[str, ...]) -> tuple[Beat, ...]:
    """As far as the first stop sequence in the text."""
    kept: list[Beat] = []
    for beat in beats:
        places = [beat.text.find(sequence) for sequence in stop] if isinstance(beat, Say) else []
        if found := [place for place in places if place >= 0]:
            assert isinstance(beat, Say)
            return (*kept, Say(beat.text[: min(found)]))
        kept.append(beat)
    return tuple(kept)


def _limited(script: Script, limit: int | None, tokens: list[_Token]) -> tuple[Ending, list[_Token]]:
    planned = len(tokens) if script.ends_after is None else min(script.ends_after, len(tokens))
    if limit is not None and limit < planned:
        return Finish("length"), tokens[:limit]
    return script.ending, tokens[:planned]


# Long words in pieces, as models write them, and so that a text without spaces streams, too.
_WORD: Final = re.compile(r"\s*\S{1,12}|\s+")
_ARGUMENTS: Final = re.compile(r".{1,6}", re.DOTALL)


def count_tokens(text: str) -> int:
    return len(_WORD.findall(text))


def _numbered(beats: tuple[Beat, ...]) -> Iterator[tuple[Beat, int]]:
    calls = 0
    for beat in beats:
        yield beat, calls
        calls += isinstance(beat, Call)


def _tokens(beat: Beat, index: int) -> Iterator[_Token]:
    match beat:
        case Say(text=text):
            yield from (_Token({"content": word}, word) for word in _WORD.findall(text))
        case Think(text=text):
            yield from (_Token({"reasoning_content": word}, word, True) for word in _WORD.findall(text))
        case Call(id=id, name=name, arguments=arguments):
            call = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
            yield _Token({"tool_calls": [call]}, name)
            for piece in _ARGUMENTS.findall(arguments):
                yield _Token({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, piece)
        case unreachable:
            assert_never(unreachable)


def _pause_s(text: str, tokens_per_s: float, random: Random) -> float:
    """Not a metronome: each token a little early or late, and a breath before a paragraph."""
    return (random.uniform(0.4, 1.6) + 4 * text.startswith("\n\n")) / tokens_per_s


def _end(ending: Ending, chunks: Chunks, asked: Asked, tokens: list[_Token]) -> Iterator[Step]:
    match ending:
        case Done():
            called = any("tool_calls" in token.delta for token in tokens)
            yield from _end(Finish("tool_calls" if called else "stop"), chunks, asked, tokens)
        case Finish(reason=reason):
            if reason is not None:
                yield Send(chunks.finish(reason))
            if asked.include_usage:
                yield Send(chunks.usage(asked.input_tokens, len(tokens), sum(token.reasoning for token in tokens)))
            yield Send(DONE)
            yield End()
        case Report(message=message, type=type, code=code):
            yield Send(error(message, type, code))
            yield End()
        case Babble():
            yield Send(b'data: {"choices":[{"index":0,"delta":{"conte\n\n')
            yield from _end(Done(), chunks, asked, tokens)
        case Leave(step=step):
            yield step
        case unreachable:
            assert_never(unreachable)
