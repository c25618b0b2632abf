"""Answers as a Messages client would get them."""

from typing import Any

import msgspec

from headwater import sse
from headwater.accumulate import Accumulator
from headwater.dialects import messages
from headwater.dialects.base import Head
from headwater.events import (
    Event,
    Outcome,
)
from headwater.judge import Rules
from headwater.turn import TurnReader

HEAD = Head("run_01", 1760000000, "fast")


def encoded(*events: Event) -> bytes:
    encoder = messages.encoder(HEAD, include_usage=False, style="error")
    return b"".join(map(encoder.encode, events))


def frames(data: bytes) -> list[dict[str, Any]]:
    """The stream's events, each named as it is typed."""
    found = []
    for frame in sse.Decoder().feed(data):
        found.append(msgspec.json.decode(frame.data))
        assert found[-1]["type"] == frame.event
    return found


def check_order(stream: list[dict[str, Any]]) -> None:
    """message_start, then blocks one after the other with dense indexes, then the ending, and nothing after it."""
    if stream[0]["type"] != "error":
        assert stream[0]["type"] == "message_start"
    open_block: str | None = None
    blocks = 0
    fields = {"text": {"text_delta", "citations_delta"}, "thinking": {"thinking_delta", "signature_delta"}}
    fields["tool_use"] = {"input_json_delta"}
    for n, event in enumerate(stream[1:], 1):
        match event["type"]:
            case "content_block_start":
                assert open_block is None
                assert event["index"] == blocks
                open_block = event["content_block"]["type"]
            case "content_block_delta":
                assert open_block is not None
                assert event["index"] == blocks
                assert event["delta"]["type"] in fields[open_block]
            case "content_block_stop":
                assert open_block is not None
                assert event["index"] == blocks
                open_block = None
                blocks += 1
            case "message_delta":
                assert open_block is None
                assert [after["type"] for after in stream[n + 1 :]] == ["message_stop"]
            case "message_stop":
                assert stream[n - 1]["type"] == "message_delta"
                assert n == len(stream) - 1
            case "error":
                assert n == len(stream) - 1
            case other:
                raise AssertionError(other)


def decoded(data: bytes) -> tuple[Accumulator, list[Event], Outcome]:
    accumulator = Accumulator()
    reader = TurnReader(messages.decoder("call_x"), accumulator, rules=Rules(allow_empty=True), think_tags=False)
    events = reader.feed(data)
    end = reader.end("clean")
    return accumulator, events + end.events, end.outcome
