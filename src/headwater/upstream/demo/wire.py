"""Chat completion chunks as OpenAI writes them: the role first, then deltas, the finish, the usage, `[DONE]`."""

from typing import Any, Final

import msgspec

from headwater import sse

DONE: Final = sse.encode(b"[DONE]")
_json = msgspec.json.encode


class Chunks:
    def __init__(self, *, id: str, model: str, include_usage: bool) -> None:
        # There is no clock here, and nobody reads this: the run has a time of its own.
        self._head = {"id": id, "object": "chat.completion.chunk", "created": 0, "model": model}
        self._usage: dict[str, Any] = {"usage": None} if include_usage else {}

    def role(self) -> bytes:
        return self.delta({"role": "assistant", "content": "", "refusal": None})

    def delta(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse.encode(_json({**self._head, "choices": [choice], **self._usage}))

    def finish(self, reason: str) -> bytes:
        return self.delta({}, reason)

    def usage(self, read: int, written: int, reasoned: int) -> bytes:
        counts = {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "completion_tokens_details": {"reasoning_tokens": reasoned},
        }
        return sse.encode(_json({**self._head, "choices": [], "usage": counts}))


def error(message: str, type: str, code: str | None) -> bytes:
    return sse.encode(_json({"error": {"message": message, "type": type, "param": None, "code": code}}))
