"""Messages, as Anthropic writes them."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from headwater.simulate.said import Said, SaidCall, SaidReasoning
from headwater.simulate.script import StreamError
from headwater.simulate.writers.base import Piece

_json = msgspec.json.encode
FINISHES: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


class MessagesWriter:
    def __init__(self, said: Said) -> None:
        self._said = said
        self._finish = FINISHES.get(said.finish, said.finish)
        self._index = -1

    def stream(self) -> Iterator[Piece]:
        said = self._said
        start = self._message([], None, self._usage(1))
        yield Piece("start", _event("message_start", message=start))
        if said.reasoning is not None:
            yield from self._reasoning(said.reasoning)
        yield from self._text()
        for call in said.calls:
            yield from self._call(call)
        usage = self._usage(said.output_tokens)
        delta = {"stop_reason": self._finish, "stop_sequence": None}
        yield Piece("finish", _event("message_delta", delta=delta, **({"usage": usage} if usage else {})))
        yield Piece("terminator", _event("message_stop"))

    def token(self, text: str) -> bytes:
        return self._delta("text_delta", text=text)

    def error(self, fault: StreamError) -> bytes:
        error = {
            "type": fault.type or "api_error",
            "message": fault.message,
            **({"code": fault.code} if fault.code else {}),
        }
        body = {"type": "error", "error": error} if fault.body is None else fault.body
        return b"event: error\ndata: %b\n\n" % _json(body)

    def keep_alive(self) -> bytes:
        return _event("ping")

    def whole(self) -> dict[str, Any]:
        said = self._said
        content: list[dict[str, Any]] = []
        if said.reasoning is not None:
            thought = "".join(said.reasoning.tokens)
            content.append(
                {"type": "redacted_thinking", "data": said.reasoning.told.signature}
                if said.reasoning.told.redacted
                else {"type": "thinking", "thinking": thought, "signature": said.reasoning.told.signature}
            )
        if text := said.text():
            content.append({"type": "text", "text": text})
        content += [_tool_use(call, _parsed(call.arguments)) for call in said.calls]
        return self._message(content, self._finish, self._usage(said.output_tokens))

    def _message(self, content: list[Any], finish: str | None, usage: dict[str, Any] | None) -> dict[str, Any]:
        return {
            "id": self._said.full_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": self._said.model,
            "content": content,
            "stop_reason": finish,
            "stop_sequence": None,
            **({} if usage is None else {"usage": usage}),
        }

    def _reasoning(self, reasoning: SaidReasoning) -> Iterator[Piece]:
        if reasoning.told.redacted:
            yield self._open({"type": "redacted_thinking", "data": reasoning.told.signature})
        else:
            yield self._open({"type": "thinking", "thinking": "", "signature": ""})
            for token in reasoning.tokens:
                yield Piece("reasoning", self._delta("thinking_delta", thinking=token))
            yield Piece("frame", self._delta("signature_delta", signature=reasoning.told.signature))
        yield self._close()

    def _text(self) -> Iterator[Piece]:
        opened = False
        for token in self._said.tokens():
            if not opened:
                opened = True
                yield self._open({"type": "text", "text": ""})
                yield Piece("frame", self.keep_alive())
            yield Piece("text", self.token(token))
        if opened:
            yield self._close()

    def _call(self, call: SaidCall) -> Iterator[Piece]:
        yield self._open(_tool_use(call, {}))
        # It begins with nothing, as the real one does.
        yield Piece("frame", self._delta("input_json_delta", partial_json=""))
        for fragment in call.fragments:
            yield Piece("arguments", self._delta("input_json_delta", partial_json=fragment))
        yield self._close()

    def _open(self, block: dict[str, Any]) -> Piece:
        self._index += 1
        return Piece("frame", _event("content_block_start", index=self._index, content_block=block))

    def _delta(self, kind: str, **fields: str) -> bytes:
        return _event("content_block_delta", index=max(0, self._index), delta={"type": kind, **fields})

    def _close(self) -> Piece:
        return Piece("frame", _event("content_block_stop", index=self._index))

    def _usage(self, output_tokens: int) -> dict[str, Any] | None:
        said = self._said
        if said.usage == "none":
            return None
        return {
            "input_tokens": said.input_tokens - said.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": said.cached_tokens,
            "output_tokens": output_tokens,
        }


def _tool_use(call: SaidCall, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments, **call.extras}


def _parsed(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return {"INVALID_JSON": arguments}


def _event(kind: str, /, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _json({"type": kind, **fields}))
