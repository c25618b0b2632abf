"""Answers that are none."""

from headwater.events import Failed
from headwater.testing.upstream import Answer, refusal
from headwater.upstream.demo.steps import Cut, End, Send
from tests.upstream.asking import text

REFUSED = Failed("upstream_unreachable", "Connection refused.", retryable=True)
ERROR_FRAME = Answer([Send(b'data: {"error": {"message": "Connection lost"}}\n\n'), End()])
NO_JSON = Answer([Send(b"data: {nonsense\n\n"), End()])
BUSY = refusal(429, "Slow down.")
CUT_AFTER_RE = Answer([*text("re"), Cut()])
