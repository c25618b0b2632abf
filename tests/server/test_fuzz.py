"""Bodies, paths and queries that nobody has thought of: each is answered or refused, and never with a 5xx."""

import asyncio
import threading
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headwater.events import DialectName
from tests.server.house import DIALECTS, PATHS, SAFETY_S, House

pytestmark = pytest.mark.anyio

# What clients send, and what the parsers look at: chance alone would hardly ever find these.
WORDS = {
    "chat": "messages tools tool_choice response_format stream_options stop logit_bias n max_tokens reasoning_effort",
    "responses": "input instructions tools tool_choice text reasoning previous_response_id background store include metadata",
    "messages": "messages system tools tool_choice thinking stop_sequences metadata max_tokens output_config",
}
INNER = [
    "role",
    "content",
    "type",
    "text",
    "name",
    "id",
    "input",
    "arguments",
    "function",
    "parameters",
    "image_url",
    "url",
    "source",
    "data",
    "media_type",
    "call_id",
    "output",
    "tool_calls",
    "tool_call_id",
    "tool_use_id",
    "is_error",
    "summary",
    "encrypted_content",
    "schema",
    "json_schema",
    "format",
    "effort",
    "budget_tokens",
]
KINDS = [
    "user",
    "assistant",
    "system",
    "developer",
    "tool",
    "text",
    "image",
    "image_url",
    "input_text",
    "input_image",
    "output_text",
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "tool_use",
    "tool_result",
    "thinking",
    "function",
    "json_schema",
    "json_object",
    "auto",
    "none",
    "required",
    "any",
]


def values() -> st.SearchStrategy[Any]:
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(KINDS)
    plain |= st.sampled_from(
        ["", "data:image/png;base64,AAAA", "data:,", "http://[", "\x00", "{}", '{"a":1}', 10**30, -0.0]
    )
    return st.recursive(
        plain,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(INNER), inner, max_size=5),
        max_leaves=12,
    )


def bodies(dialect: DialectName) -> st.SearchStrategy[dict[str, Any]]:
    good: dict[str, Any] = {"model": "chat/sim/tokens-1"}
    messages = st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(KINDS[:5]), "content": values()}, optional={"tool_calls": values()}
        ),
        max_size=3,
    )
    said = st.fixed_dictionaries({"input" if dialect == "responses" else "messages": messages | values()})
    more = st.dictionaries(
        st.sampled_from([*WORDS[dialect].split(), "session_id", "on_cut", "stream", "x"]), values(), max_size=4
    )
    limit = {"max_tokens": 10} if dialect == "messages" else {}
    return st.builds(lambda said, more: {**good, **limit, **said, **more}, said, more)


QUIET = settings(
    max_examples=150, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
)
ODD = st.sampled_from(["x", "resp_", "..", "%00", "%2F", "ü", "a" * 300, "null"])
QUERIES = st.dictionaries(
    st.sampled_from(["stream", "starting_after", "include", "limit", "x"]),
    st.sampled_from(["true", "false", "-1", "0", "99999999999999999999", "1.5", "nan", "", "\x00", "ü"]),
    max_size=3,
)
PLACES = st.sampled_from(
    [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("POST", ""), ("PUT", ""), ("GET", "/input_items")]
)


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
async def test_no_path_and_no_query_makes_it_fail(house: House) -> None:
    """Of a response that is there, and of others."""
    made = (await house.post("responses", "chat/sim/tokens-1")).json()["id"]
    with httpx2.Client(base_url=house.url, timeout=SAFETY_S) as client:

        def ask(id: str, place: tuple[str, str], query: dict[str, str]) -> None:
            method, under = place
            answer = client.request(method, f"/v1/responses/{id}{under}", params=query)
            assert answer.status_code < 500, (method, id, under, query, answer.text)
            assert "traceback" not in answer.text.lower()

        await asyncio.to_thread(QUIET(given(ODD | st.just(made), PLACES, QUERIES)(ask)))
    assert (await house.http.get("/v1/models")).status_code == 200


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_body_makes_it_fail(house: House, dialect: DialectName) -> None:
    refused = threading.Event()
    with httpx2.Client(base_url=house.url, timeout=SAFETY_S) as client:

        def ask(body: dict[str, Any]) -> None:
            try:
                answer = client.post(PATHS[dialect], json=body)
            except ValueError:
                # No client can write it: NaN, or half a character.
                return
            assert answer.status_code < 500, (body, answer.text)
            if answer.status_code >= 400:
                refused.set()
                assert answer.json()["error"]["message"]

        await asyncio.to_thread(QUIET(given(bodies(dialect))(ask)))
    assert refused.is_set()
    assert (await house.post(dialect, f"{dialect}/sim/tokens-1")).status_code == 200
