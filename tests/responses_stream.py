"""A strict reader of the Responses streams that we write: what is illegal in one fails here.

Every event is validated against `openresponses-types`, the published model of the
protocol, and the order of events against what the `openai` SDK's accumulators demand.
"""

from typing import Any

import msgspec
import openresponses_types.types as open_responses
from pydantic import BaseModel

from headwater import sse

_CLASSES = [
    value for value in vars(open_responses).values() if isinstance(value, type) and issubclass(value, BaseModel)
]


def _type_of(model: type[BaseModel]) -> str:
    """Its `type` is an enumeration of one."""
    names: Any = model.model_fields["type"].annotation
    return str(next(iter(names)).value)


MODELS = {_type_of(model): model for model in _CLASSES if model.__name__.endswith("StreamingEvent")}
TERMINAL = {"response.completed", "response.incomplete", "response.failed"}
KNOWN_ITEMS = {"message", "function_call", "reasoning", "function_call_output", "compaction"}


def read(data: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The events, and whether `[DONE]` came after them."""
    frames = sse.Decoder().feed(data)
    done = bool(frames) and frames[-1].data == b"[DONE]"
    events = []
    for frame in frames[: len(frames) - done]:
        event = msgspec.json.decode(frame.data)
        assert frame.event == event["type"]
        events.append(event)
    return events, done


def validate_response(response: dict[str, Any]) -> None:
    open_responses.ResponseResource.model_validate(as_open_responses(response))


def validate(event: dict[str, Any]) -> None:
    """As Open Responses has it, except where it has no word for what we carry."""
    written = dict(event)
    if "item" in written and written["item"]["type"] not in KNOWN_ITEMS:
        # Items of hosted tools: it knows none of them.
        return
    if "response" in written:
        written["response"] = as_open_responses(written["response"])
    MODELS[event["type"]].model_validate(written)


def as_open_responses(response: dict[str, Any]) -> dict[str, Any]:
    """Without what OpenAI's own API has, and its model has not."""
    written = {**response, "output": [item for item in response["output"] if item["type"] in KNOWN_ITEMS]}
    if response["reasoning"]["effort"] in ("minimal", "max"):
        written["reasoning"] = {**response["reasoning"], "effort": None}
    if response["text"]["format"]["type"] == "json_schema":
        # Its model of an echoed schema is `None`, whatever the schema; and `strict` may not be null.
        written["text"] = {"format": {"type": "text"}}
    return written


class _Part:
    def __init__(self, event: dict[str, Any]) -> None:
        self.kind = event["part"]["type"]
        self.text = ""
        self.ended = False
        self.done: dict[str, Any] | None = None


class Stream:
    """Feed it every event; it keeps what they add up to, and stops at the first that is out of order."""

    def __init__(self) -> None:
        self.number = 0
        self.items: list[dict[str, Any]] = []
        """As they were announced."""
        self.done: dict[int, dict[str, Any]] = {}
        self.parts: dict[tuple[int, int], _Part] = {}
        self.arguments: dict[int, str] = {}
        self.arguments_done: set[int] = set()
        self.error: dict[str, Any] | None = None
        self.response: dict[str, Any] | None = None

    def feed(self, event: dict[str, Any]) -> None:
        validate(event)
        assert event["sequence_number"] == self.number, "numbers are dense"
        assert self.response is None, "nothing follows the terminal event"
        type = event["type"]
        if self.number < 2:
            assert type == ("response.created", "response.in_progress")[self.number]
            assert event["response"]["status"] == "in_progress"
            assert event["response"]["output"] == []
        elif type in TERMINAL:
            self._end(event["response"])
        elif type == "error":
            self.error = event
        else:
            assert self.error is None, "only the failed response follows an error"
            self._item_event(type, event)
        self.number += 1

    def _item_event(self, type: str, event: dict[str, Any]) -> None:
        index = event["output_index"]
        if type == "response.output_item.added":
            assert index == len(self.items), "items are announced in order"
            self.items.append(event["item"])
            self.arguments[index] = ""
            return
        item = self.items[index]
        assert index not in self.done, "an item that is done has no more events"
        if type == "response.output_item.done":
            self._item_done(index, event["item"])
            return
        assert event["item_id"] == item["id"]
        if type == "response.function_call_arguments.delta":
            assert index not in self.arguments_done
            self.arguments[index] += event["delta"]
        elif type == "response.function_call_arguments.done":
            assert event["arguments"] == self.arguments[index]
            self.arguments_done.add(index)
        else:
            self._part_event(type, index, event)

    def _part_event(self, type: str, index: int, event: dict[str, Any]) -> None:
        summary = "summary" in type
        assert self.items[index]["type"] == ("reasoning" if summary else "message")
        number = event["summary_index" if summary else "content_index"]
        if type.endswith("part.added"):
            assert all(part.done for (of, _), part in self.parts.items() if of == index), "one part grows at a time"
            assert number == len([1 for of, _ in self.parts if of == index])
            self.parts[index, number] = _Part(event)
            return
        part = self.parts[index, number]
        text_of = "refusal" if part.kind == "refusal" else "text"
        if type.endswith("part.done"):
            assert part.ended
            assert event["part"][text_of] == part.text
            part.done = event["part"]
            return
        expected = {
            "output_text": "response.output_text",
            "refusal": "response.refusal",
            "summary_text": "response.reasoning_summary_text",
        }[part.kind]
        assert not part.ended
        if type == f"{expected}.delta":
            part.text += event["delta"]
        else:
            assert type == f"{expected}.done"
            assert event[text_of] == part.text
            part.ended = True

    def _item_done(self, index: int, item: dict[str, Any]) -> None:
        announced = self.items[index]
        assert (item["type"], item.get("id")) == (announced["type"], announced.get("id"))
        if item["type"] == "function_call":
            assert index in self.arguments_done
            assert item["arguments"] == self.arguments[index]
        elif item["type"] in ("message", "reasoning"):
            parts = [part for (of, _), part in sorted(self.parts.items()) if of == index]
            assert item["summary" if item["type"] == "reasoning" else "content"] == [part.done for part in parts]
        self.done[index] = item

    def _end(self, response: dict[str, Any]) -> None:
        assert response["output"] == [self.done[index] for index in range(len(self.items))], "every item is done"
        self.response = response


def check(data: bytes) -> Stream:
    """A whole stream of ours."""
    events, done = read(data)
    stream = Stream()
    for event in events:
        stream.feed(event)
    assert stream.response is not None, "it ends"
    assert done == (stream.error is not None) == (stream.response["status"] == "failed")
    return stream
