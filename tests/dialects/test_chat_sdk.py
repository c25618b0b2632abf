"""The real `openai` SDK reads every ending that we write: it accepts success, and raises on all else (C60-C66)."""

import openai
import pytest

from headwater.accumulate import Accumulator
from headwater.dialects import chat
from headwater.dialects.base import FailureStyle, Head
from headwater.dialects.endings import stream_status
from headwater.events import Completed, Event, Incomplete, Outcome, RunEnded, Usage, UsageReported
from tests.outcomes import DELIVERED, OUTCOMES, UNSUCCESSFUL, outcome_id
from tests.serving import serving

HEAD = Head("run_01", 1760000000, "fast")
USAGE = Usage(7, 2, 1, 0, "provider")

every_outcome = pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
every_start = pytest.mark.parametrize("delivered", DELIVERED.values(), ids=DELIVERED)


def encoded(events: list[Event], outcome: Outcome, style: FailureStyle = "error", include_usage: bool = False) -> bytes:
    encoder = chat.encoder(HEAD, include_usage=include_usage, style=style)
    return b"".join(encoder.encode(event) for event in [*events, UsageReported(USAGE), RunEnded(outcome)])


def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)


def read(url: str, **options: object) -> list[openai.types.chat.ChatCompletionChunk]:
    with client(url) as sdk:
        messages = [{"role": "user", "content": "Hi"}]
        return list(sdk.chat.completions.create(model="fast", messages=messages, stream=True, **options))  # type: ignore[call-overload]


@every_outcome
@every_start
def test_streamed(outcome: Outcome, delivered: list[Event]) -> None:
    with serving(encoded(delivered, outcome)) as url:
        if not isinstance(outcome, Completed | Incomplete):
            with pytest.raises(openai.APIError) as raised:
                read(url)
            assert raised.value.message
            assert raised.value.code
            return
        chunks = read(url)
    assert chunks[-1].choices[0].finish_reason in {"stop", "tool_calls", "length", "content_filter"}
    assert (chunks[-1].choices[0].finish_reason in {"stop", "tool_calls"}) == isinstance(outcome, Completed)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "".join(
        event.text for event in delivered if hasattr(event, "text") and type(event).__name__ == "TextDelta"
    )
