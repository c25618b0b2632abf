"""A checker complains of a request, whatever it is made of, and never raises."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.testing import check_chat, check_messages, check_responses

CHECKS = {"chat": check_chat, "responses": check_responses, "messages": check_messages}
odd: st.SearchStrategy[Any] = st.sampled_from([None, 5, "x", [], {}, [5], [{}], {"type": []}, {"name": {}}])
blocks = st.fixed_dictionaries(
    {},
    optional={
        "type": odd | st.sampled_from(["text", "image_url", "server_tool_use", "tool_use", "tool_result", "message"]),
        **dict.fromkeys(("id", "tool_use_id", "call_id", "content", "image_url", "function", "name", "text"), odd),
    },
)
messages = st.fixed_dictionaries(
    {"role": odd | st.sampled_from(["user", "assistant", "tool"]), "content": odd | st.lists(blocks, max_size=3)}
)
bodies = st.fixed_dictionaries(
    {"messages": odd | st.lists(messages, max_size=3), "input": odd | st.lists(messages | blocks, max_size=3)},
    optional={
        "tools": odd | st.lists(blocks, max_size=2),
        "thinking": odd | st.just({"type": "enabled"}),
        **dict.fromkeys(("model", "stop", "stop_sequences", "tool_choice", "system", "max_tokens"), odd),
    },
)


@pytest.mark.parametrize("dialect", CHECKS)
@given(body=bodies)
def test_odd_types_are_complained_of(dialect: str, body: dict[str, Any]) -> None:
    assert CHECKS[dialect](body)
