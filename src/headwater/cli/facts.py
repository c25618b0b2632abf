"""What an upstream's answer shows, read from its bytes: pure.

Two readings of the same bytes: Headwater's own, whose outcome is what a client would get, and a naive one of the
frames, which tells what is in them and what is missing.
"""

import json
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from headwater import sse
from headwater.accumulate import Accumulator
from headwater.cli.probing import Heard
from headwater.errors import HeadwaterError
from headwater.events import DialectName, Failed, Outcome, ReasoningDelta, TextDelta
from headwater.turn import TurnEnd, TurnReader
from headwater.upstream import faults
from headwater.upstream.endpoint import Route

_TERMINATORS: Final[dict[DialectName, tuple[str, ...]]] = {
    "chat": ("[DONE]",),
    "messages": ("message_stop",),
    "responses": ("response.completed", "response.incomplete", "response.failed"),
}


class Facts(Struct, frozen=True, kw_only=True):
    outcome: Outcome
    text: str
    reasoning: str
    calls: tuple[tuple[str, str], ...]
    """Names and arguments."""
    usage: bool
    streamed: bool
    finish: str | None
    """The upstream's own word."""
    terminated: bool
    valid_utf8: bool
    text_times_s: tuple[float, ...]
    """When a read brought text or reasoning; the request was at 0."""
    heard: Heard

    @property
    def first_s(self) -> float | None:
        return self.text_times_s[0] if self.text_times_s else None

    @property
    def spread_s(self) -> float:
        return self.text_times_s[-1] - self.text_times_s[0] if self.text_times_s else 0.0

    @property
    def longest_gap_s(self) -> float:
        times = self.text_times_s
        return max((later - before for before, later in pairwise(times)), default=0.0)


def read(route: Route, heard: Heard) -> Facts:
    endpoint = route.endpoint
    fold = Accumulator()
    reader = TurnReader(
        endpoint.dialect.decoder("probe_"),
        fold,
        rules=endpoint.rules,
        think_tags=endpoint.think_tags,
        limit_bytes=endpoint.limit_bytes,
    )
    times_s: list[float] = []
    for at_s, data in heard.pieces if 200 <= heard.status < 300 else ():
        events = reader.feed(data)
        times_s += [at_s for event in events if isinstance(event, TextDelta | ReasoningDelta)]
    end = _end(route, heard, reader)
    times_s += [heard.took_s for event in end.events if isinstance(event, TextDelta | ReasoningDelta)]
    finish, terminated = _frames(endpoint.dialect.name, heard.body)
    return Facts(
        outcome=end.outcome,
        text=fold.text(),
        reasoning=fold.reasoning(),
        calls=tuple((call.name, call.arguments) for call in fold.calls),
        usage=fold.usage.output_tokens is not None,
        streamed="event-stream" in heard.headers.get("content-type", ""),
        finish=finish,
        terminated=terminated,
        valid_utf8=_is_utf8(heard.body),
        text_times_s=tuple(times_s),
        heard=heard,
    )


def _end(route: Route, heard: Heard, reader: TurnReader) -> TurnEnd:
    name = route.endpoint.name
    if heard.failed is not None:
        return TurnEnd([], heard.failed)
    if heard.status >= 300:
        return TurnEnd([], faults.refusal(name, heard.status, heard.headers, heard.body))
    silent = None
    if heard.ended is None and not reader.closed:
        silent = Failed("stalled", "It fell silent in the midst of its answer, and the connection stayed open.")
    end = reader.end("clean" if reader.closed or heard.ended == "clean" else "broken", silent)
    if isinstance(end.outcome, Failed):
        return replace(end, outcome=faults.explained(end.outcome, name, route.endpoint.dialect.name, heard.body[:2000]))
    return end


def _frames(dialect: DialectName, body: bytes) -> tuple[str | None, bool]:
    """The finish reason, and whether the terminator is there."""
    finish, terminated = None, False
    try:
        frames = sse.Decoder().feed(body)
    except HeadwaterError:
        return None, False
    for frame in frames:
        data = bytes(frame.data).decode("utf-8", "replace").strip()
        if data in _TERMINATORS[dialect]:
            terminated = True
            continue
        try:
            said = json.loads(data)
        except ValueError:
            continue
        if isinstance(said, dict):
            terminated = terminated or said.get("type") in _TERMINATORS[dialect]
            finish = _finish(said) or finish
    return finish, terminated


def _finish(said: dict[str, Any]) -> str | None:
    match said:
        case {"choices": [{"finish_reason": str(word)}, *_]}:
            return word
        case {"type": "message_delta", "delta": {"stop_reason": str(word)}}:
            return word
        case {"type": "response.completed" | "response.incomplete", "response": {"status": str(word)}}:
            return word
        case _:
            return None


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        # One that is merely cut at its end is no fault of its own.
        return error.end == len(body) and error.reason == "unexpected end of data"
    return True
