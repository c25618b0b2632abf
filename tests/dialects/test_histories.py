"""Whatever came before, what we ask an upstream is something that its provider takes."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headwater.conversation import Request, Target
from headwater.dialects import chat, messages, responses
from headwater.testing import check_chat, check_messages, check_responses
from tests.conversations import requests


@given(requests())
def test_any_conversation_is_legal_for_chat(request: Request) -> None:
    target = Target(model="gpt", origin="here")
    assert check_chat(msgspec.json.decode(chat.render(request, target))) == []


@given(requests(), st.sampled_from(["adaptive", "budget", "none"]))
def test_any_conversation_is_legal_for_messages(request: Request, thinking: str) -> None:
    target = msgspec.convert({"model": "claude", "origin": "here", "thinking": thinking}, Target)
    assert check_messages(msgspec.json.decode(messages.render(request, target))) == []


@given(requests())
def test_any_conversation_is_legal_for_responses(request: Request) -> None:
    target = Target(model="gpt", origin="here")
    assert check_responses(msgspec.json.decode(responses.render(request, target))) == []
