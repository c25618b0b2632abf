"""Chat completions, as OpenAI writes them."""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any, Final

import msgspec

from headwater.simulate.said import Said, SaidCall
from headwater.simulate.script import StreamError
from headwater.simulate.writers.base import Piece

_json = msgspec.json.encode
_DONE: Final = b"data: [DONE]\n\n"


class ChatWriter:
    def __init__(self, said: Said) -> None:
        self._said = said
        self._each = said.usage == "every_chunk"
        common = {"id": said.full_id("chatcmpl-"), "object": "chat.completion.chunk", "created": said.created}
        common |= {"model": said.model, "service_tier": "default", "system_fingerprint": "fp_simulated"}
        # Most of a chunk is the same in all of them: it is written once.
        self._common = b"data: " + _json(common)[:-1]
        self._before = self._common + b',"choices":[{"index":0,"delta":'
        usage = {"every_chunk": b',"usage":' + _json(self._usage()), "after_finish": b',"usage":null'}
        self._after = (
            b',"logprobs":null,"finish_reason":null}]' + usage.get(said.usage, b"") + b',"obfuscation":"x7Jq"}\n\n'
        )

    def stream(self) -> Iterator[Piece]:
        said = self._said
        yield Piece("start", self._chunk(b'{"role":"assistant","content":"","refusal":null}'))
        yield from self._reasoning()
        for token in said.tokens():
            yield Piece("text", self.token(token))
        yield from self._calls()
        with_finish = said.usage in ("with_finish", "every_chunk")
        finish: dict[str, Any] = {
            "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": said.finish}],
            **({"usage": self._usage()} if with_finish else {"usage": None} if said.usage == "after_finish" else {}),
        }
        yield Piece("finish", self._event(finish))
        if said.usage == "after_finish":
            yield Piece("usage", self._event({"choices": [], "usage": self._usage()}))
        yield Piece("terminator", _DONE)

    def token(self, text: str) -> bytes:
        return self._chunk(b'{"content":%b}' % _json(text))

    def error(self, fault: StreamError) -> bytes:
        error = {"message": fault.message, "type": fault.type or "server_error", "param": None, "code": fault.code}
        return b"data: %b\n\n" % _json({"error": error} if fault.body is None else fault.body)

    def keep_alive(self) -> bytes:
        return b": keep-alive\n\n"

    def whole(self) -> dict[str, Any]:
        said = self._said
        message: dict[str, Any] = {"role": "assistant", "content": said.text() or None, "refusal": None}
        message["annotations"] = []
        if said.reasoning is not None:
            thought = "".join(said.reasoning.tokens)
            if said.reasoning.told.field == "think_tags":
                message["content"] = f"<think>{thought}</think>\n{said.text()}"
            else:
                message[said.reasoning.told.field] = thought
        if said.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                    **call.extras,
                }
                for call in said.calls
            ]
        return {
            "id": said.full_id("chatcmpl-"),
            "object": "chat.completion",
            "created": said.created,
            "model": said.model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": said.finish}],
            "service_tier": "default",
            "system_fingerprint": "fp_simulated",
            **({} if said.usage == "none" else {"usage": self._usage()}),
        }

    def _reasoning(self) -> Iterator[Piece]:
        reasoning = self._said.reasoning
        if reasoning is None:
            return
        if reasoning.told.field == "think_tags":
            for token in ("<think>", *reasoning.tokens, "</think>\n"):
                yield Piece("reasoning", self.token(token))
            return
        for token in reasoning.tokens:
            yield Piece("reasoning", self._chunk(_json({reasoning.told.field: token})))

    def _calls(self) -> Iterator[Piece]:
        calls = [self._call(index, call) for index, call in enumerate(self._said.calls)]
        if not self._said.interleaved:
            yield from chain.from_iterable(calls)
            return
        for turn in zip_longest(*calls):
            yield from (piece for piece in turn if piece is not None)

    def _call(self, index: int, call: SaidCall) -> Iterator[Piece]:
        function: dict[str, Any] = {"name": call.name, "arguments": ""}
        start = {"index": index, "id": call.id, "type": "function", "function": function, **call.extras}
        yield Piece("frame", self._chunk(_json({"tool_calls": [start]})))
        for fragment in call.fragments:
            delta = {"index": index, "function": {"arguments": fragment}}
            yield Piece("arguments", self._chunk(_json({"tool_calls": [delta]})))

    def _chunk(self, delta: bytes) -> bytes:
        return b"%b%b%b" % (self._before, delta, self._after)

    def _event(self, fields: dict[str, Any]) -> bytes:
        return b"%b,%b\n\n" % (self._common, _json(fields)[1:])

    def _usage(self) -> dict[str, Any]:
        said = self._said
        return {
            "prompt_tokens": said.input_tokens,
            "completion_tokens": said.output_tokens,
            "total_tokens": said.input_tokens + said.output_tokens,
            "prompt_tokens_details": {"cached_tokens": said.cached_tokens, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": said.reasoning_tokens, "audio_tokens": 0},
        }
