"""Responses, as OpenAI writes them."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from headwater.simulate.said import Said, SaidCall, SaidReasoning
from headwater.simulate.script import StreamError
from headwater.simulate.writers.base import Piece

_json = msgspec.json.encode
INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ASKED: Final[dict[str, Any]] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


class ResponsesWriter:
    def __init__(self, said: Said) -> None:
        self._said = said
        self._sequence = -1
        self._output: list[dict[str, Any]] = []
        self._open_item = ""

    def stream(self) -> Iterator[Piece]:
        said = self._said
        begun = self._response("in_progress", usage=False)
        yield Piece("start", self._event("response.created", response=begun))
        yield Piece("start", self._event("response.in_progress", response=begun))
        if said.reasoning is not None:
            yield from self._reasoning(said.reasoning)
        yield from self._message()
        for n, call in enumerate(said.calls):
            yield from self._call(n, call)
        status = "completed" if said.finish in ("stop", "tool_calls") else "incomplete"
        yield Piece("ending", self._event(f"response.{status}", response=self._response(status)))

    def token(self, text: str) -> bytes:
        where = {"item_id": self._open_item or self._id("msg"), "output_index": len(self._output), "content_index": 0}
        return self._event("response.output_text.delta", **where, delta=text, logprobs=[], obfuscation="x7Jq")

    def error(self, fault: StreamError) -> bytes:
        if fault.body is not None:
            return b"event: error\ndata: %b\n\n" % _json(fault.body)
        kind = fault.type or "server_error"
        error = {"type": kind, "code": fault.code, "message": fault.message, "param": None}
        failed = self._response("failed") | {"error": {"code": fault.code or kind, "message": fault.message}}
        # The flat fields and the nested ones have both been seen.
        told = self._event("error", **{**error, "type": "error"}, error=error)
        return told + self._event("response.failed", response=failed)

    def keep_alive(self) -> bytes:
        return b": keep-alive\n\n"

    def whole(self) -> dict[str, Any]:
        for _ in self.stream():
            pass
        status = "completed" if self._said.finish in ("stop", "tool_calls") else "incomplete"
        return self._response(status)

    def _response(self, status: str, *, usage: bool = True) -> dict[str, Any]:
        said = self._said
        why = {"reason": INCOMPLETE.get(said.finish, said.finish)} if status == "incomplete" else None
        return {
            "id": said.full_id("resp_"),
            "object": "response",
            "created_at": said.created,
            "status": status,
            "error": None,
            "incomplete_details": why,
            "model": said.model,
            "output": list(self._output),
            **_ASKED,
            "usage": self._usage() if usage and said.usage != "none" else None,
        }

    def _reasoning(self, reasoning: SaidReasoning) -> Iterator[Piece]:
        item: dict[str, Any] = {"id": self._id("rs"), "type": "reasoning", "summary": []}
        sealed = {"encrypted_content": reasoning.told.signature}
        yield self._added(item)
        if reasoning.tokens:
            where = {"item_id": item["id"], "output_index": len(self._output), "summary_index": 0}
            empty = {"type": "summary_text", "text": ""}
            yield Piece("frame", self._event("response.reasoning_summary_part.added", **where, part=empty))
            for token in reasoning.tokens:
                delta = self._event("response.reasoning_summary_text.delta", **where, delta=token, obfuscation="Kq")
                yield Piece("reasoning", delta)
            text = "".join(reasoning.tokens)
            part = {"type": "summary_text", "text": text}
            yield Piece("frame", self._event("response.reasoning_summary_text.done", **where, text=text))
            yield Piece("frame", self._event("response.reasoning_summary_part.done", **where, part=part))
            item = item | {"summary": [part]}
        yield self._done(item | sealed)

    def _message(self) -> Iterator[Piece]:
        item: dict[str, Any] = {"id": self._id("msg"), "type": "message", "role": "assistant", "content": []}
        where = {"item_id": item["id"], "output_index": len(self._output), "content_index": 0}
        said: list[str] = []
        for token in self._said.tokens():
            if not said:
                yield self._added(item | {"status": "in_progress"})
                yield Piece("frame", self._event("response.content_part.added", **where, part=_output_text("")))
            said.append(token)
            yield Piece("text", self.token(token))
        if said:
            text = "".join(said)
            part = _output_text(text)
            yield Piece("frame", self._event("response.output_text.done", **where, text=text, logprobs=[]))
            yield Piece("frame", self._event("response.content_part.done", **where, part=part))
            yield self._done(item | {"status": "completed", "content": [part]})

    def _call(self, n: int, call: SaidCall) -> Iterator[Piece]:
        item: dict[str, Any] = {"id": f"{self._id('fc')}_{n}", "type": "function_call", "status": "in_progress"}
        item |= {"call_id": call.id, "name": call.name, "arguments": "", **call.extras}
        where = {"item_id": item["id"], "output_index": len(self._output)}
        yield self._added(item)
        for fragment in call.fragments:
            delta = self._event("response.function_call_arguments.delta", **where, delta=fragment, obfuscation="Zp0")
            yield Piece("arguments", delta)
        done = self._event("response.function_call_arguments.done", **where, name=call.name, arguments=call.arguments)
        yield Piece("frame", done)
        yield self._done(item | {"status": "completed", "arguments": call.arguments})

    def _added(self, item: dict[str, Any]) -> Piece:
        self._open_item = item["id"]
        index = len(self._output)
        return Piece("frame", self._event("response.output_item.added", output_index=index, item=item))

    def _done(self, item: dict[str, Any]) -> Piece:
        index = len(self._output)
        self._output.append(item)
        self._open_item = ""
        return Piece("frame", self._event("response.output_item.done", output_index=index, item=item))

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self._said.id}"

    def _event(self, kind: str, /, **fields: Any) -> bytes:
        self._sequence += 1
        data = {"type": kind, "sequence_number": self._sequence, **fields}
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), _json(data))

    def _usage(self) -> dict[str, Any]:
        said = self._said
        return {
            "input_tokens": said.input_tokens,
            "input_tokens_details": {"cached_tokens": said.cached_tokens},
            "output_tokens": said.output_tokens,
            "output_tokens_details": {"reasoning_tokens": said.reasoning_tokens},
            "total_tokens": said.input_tokens + said.output_tokens,
        }


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
