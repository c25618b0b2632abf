"""From a request and the answer that a script has for it to the steps on the wire. Pure."""

from collections.abc import Iterator
from typing import Final

import msgspec

from headwater.events import DialectName
from headwater.simulate.asked import Asked
from headwater.simulate.http import error_body, head, phrase, usual_headers
from headwater.simulate.said import Said, say
from headwater.simulate.script import COUNTED, Answer, Fault, Http, Pace, StreamError
from headwater.simulate.steps import End, Framing, Performance, Send, Steps
from headwater.simulate.writers import WRITERS, Piece, Writer

NO_STREAMING: Final = "Streaming is not supported for this model. Set `stream` to false."
_JSON: Final = {"content-type": "application/json"}


def perform(answer: Answer, asked: Asked, *, number: int, created: int) -> tuple[int, Steps]:
    """The status, and the steps. `number` is the request's, `created` the time in Unix seconds."""
    dialect = answer.dialect or asked.dialect
    said = say(answer, asked, number=number, created=created)
    writer = WRITERS[dialect](said)
    headers = usual_headers(dialect, number)
    streams = asked.stream and answer.streaming != "never"
    http = answer.http or _refusal(answer, streams=streams)
    if http is not None:
        return http.status, _plain(answer, http, dialect, headers, writer)
    if streams:
        return 200, _stream(answer, headers, writer)
    return 200, _whole(answer, said, headers, writer)


def plain(status: int, body: bytes, headers: dict[str, str] | None = None, *, close: bool = False) -> Steps:
    """An answer that no script gave."""
    fields = _JSON | {"content-length": str(len(body))} | (headers or {}) | ({"connection": "close"} if close else {})
    yield Send(head(status, fields.items()) + body)
    yield End("answered", close=close)


def _refusal(answer: Answer, *, streams: bool) -> Http | None:
    if streams:
        return Http(status=400, message=NO_STREAMING) if answer.streaming == "refused" else None
    # What would be an error in the stream is known before the head of an answer in one piece.
    error = next((fault for fault in answer.faults if isinstance(fault, StreamError)), None)
    return None if error is None else Http(status=500, message=error.message, body=error.body)


def _stream(answer: Answer, headers: dict[str, str], writer: Writer) -> Steps:
    framing = answer.writes.framing
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"} | headers
    headers |= {"transfer-encoding": "chunked"} if framing == "chunked" else {"connection": "close"}
    start = head(200, (headers | _lower(answer.headers)).items())
    return Performance(answer, start, writer.stream(), writer, framing=framing).steps()


def _whole(answer: Answer, said: Said, headers: dict[str, str], writer: Writer) -> Steps:
    """It takes as long as the stream would: nothing can be seen before it is all there."""
    pace = answer.pace
    wait_s = pace.head_s + pace.first_token_s + sum(pace.delays_s)
    if pace.tokens_per_s:
        wait_s += max(0, said.output_tokens - len(pace.delays_s)) / pace.tokens_per_s
    answer = msgspec.structs.replace(answer, pace=Pace(head_s=wait_s))
    return _in_one_piece(answer, 200, msgspec.json.encode(writer.whole()), _JSON | headers, writer)


def _plain(answer: Answer, http: Http, dialect: DialectName, headers: dict[str, str], writer: Writer) -> Steps:
    match http.body:
        case None:
            body = error_body(dialect, http.status, http.message or f"Simulated: {phrase(http.status)}.")
        case str(text):
            body = text.encode()
            kind = "text/html; charset=utf-8" if text.lstrip().startswith("<") else "text/plain; charset=utf-8"
            headers = headers | {"content-type": kind}
        case fields:
            body = msgspec.json.encode(fields)
    return _in_one_piece(answer, http.status, body, _JSON | headers | _lower(http.headers), writer)


def _in_one_piece(answer: Answer, status: int, body: bytes, headers: dict[str, str], writer: Writer) -> Steps:
    faults = tuple(_in_the_middle(fault) for fault in answer.faults if not isinstance(fault, StreamError))
    # A body whose length was told can be neither cut cleanly nor added to.
    framing: Framing = "chunked" if faults else "length"
    how = {"transfer-encoding": "chunked"} if faults else {"content-length": str(len(body))}
    answer = msgspec.structs.replace(answer, omit=(), faults=faults)
    start = head(status, (headers | how | _lower(answer.headers)).items())
    return Performance(answer, start, _halves(body), writer, framing=framing).steps()


def _halves(body: bytes) -> Iterator[Piece]:
    half = len(body) // 2
    yield Piece("start", body[:half])
    yield Piece("ending", body[half:])


def _in_the_middle(fault: Fault) -> Fault:
    """There are no tokens in one piece: what would strike between them does so half-way."""
    return msgspec.structs.replace(fault, at="after_tokens", tokens=0) if fault.at in COUNTED else fault


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
