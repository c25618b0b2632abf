"""The table of providers, and what comes of it for a request."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from docs.providers_page import providers_page

from headwater.config.secret import Secret
from headwater.config.settings import ModelSettings, UpstreamSettings
from headwater.conversation import Assistant, Extras, Parameters, Request, Target, Text, User
from headwater.dialects import DIALECTS
from headwater.dialects.carry import notes
from headwater.errors import HeadwaterError
from headwater.events import DialectName
from headwater.testing import ManualClock
from headwater.testing.upstream import ScriptedUpstream
from headwater.upstream import demo
from headwater.upstream.catalog import Resolved
from headwater.upstream.continuation import with_prefix_flag
from headwater.upstream.endpoint import Endpoint
from headwater.upstream.providers import MODELS_PATH, PATHS, PROVIDERS
from headwater.upstream.targets import (
    address,
    headers,
    needs_finish_reason,
    prefill_of,
    provider_of,
    route,
    target,
)


def upstream(base_url: str = "https://models.example.com/v1", **settings: Any) -> UpstreamSettings:
    return UpstreamSettings(base_url=base_url, **settings)


# ------------------------------------------------------------------------ recognising


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("https://notapi.openai.com.example.com", "generic"),
        ("https://evilapi.openai.com", "generic"),
        ("https://api.anthropic.com", "anthropic"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://127.0.0.1:1234/v1", "lmstudio"),
        ("http://127.0.0.1:8000/v1", "generic"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini"),
        ("https://api.deepseek.com/beta", "deepseek-beta"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.mistral.ai/v1", "mistral"),
    ],
)
def test_a_provider_is_recognised_by_its_address(base_url: str, name: str) -> None:
    assert provider_of(upstream(base_url)).name == name


@pytest.mark.parametrize(("owned_by", "name"), [("vllm", "vllm"), ("llamacpp", "llama.cpp"), ("ada", "generic")])
def test_a_server_at_any_address_is_recognised_by_its_list(owned_by: str, name: str) -> None:
    assert provider_of(upstream(), owned_by).name == name
    assert provider_of(upstream("https://api.openai.com/v1"), owned_by).name == "openai"


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_every_provider_can_be_named(provider: Any) -> None:
    assert provider_of(upstream("https://api.openai.com/v1", provider=provider.name)) is provider


def test_an_unknown_provider_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(HeadwaterError, match="'olama' is not known; there are: openai, "):
        provider_of(upstream(provider="olama"))


def test_the_demo_models_have_a_row() -> None:
    assert provider_of(demo.SETTINGS).name == "demo"
    assert prefill_of(demo.SETTINGS, None, "story") == "assistant"


# ------------------------------------------------------------------------ what is asked


@pytest.mark.parametrize(
    ("base_url", "dialect", "expected"),
    [
        ("https://api.openai.com/v1", "chat", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "responses", "https://api.openai.com/v1/responses"),
        ("https://api.openai.com", "chat", "https://api.openai.com/v1/chat/completions"),
        ("https://api.anthropic.com", "messages", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1", "messages", "https://api.anthropic.com/v1/messages"),
        ("https://gateway.example.com/anthropic", "messages", "https://gateway.example.com/anthropic/v1/messages"),
        ("http://localhost:11434", "chat", "http://localhost:11434/v1/chat/completions"),
        ("https://openrouter.ai", "chat", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://generativelanguage.googleapis.com/", "chat", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
        ("https://gateway.example.com/openai/v2", "chat", "https://gateway.example.com/openai/v2/chat/completions"),
    ],
)  # fmt: skip
def test_the_address_is_what_the_provider_has(base_url: str, dialect: DialectName, expected: str) -> None:
    assert address(upstream(base_url, dialect=dialect), PATHS[dialect]) == expected


def test_models_are_listed_beside_them() -> None:
    assert address(upstream("https://api.anthropic.com", dialect="messages"), MODELS_PATH).endswith("/v1/models")


@pytest.mark.parametrize(
    ("settings", "key", "expected"),
    [
        (upstream(), "k", {"authorization": "Bearer k"}),
        (upstream(dialect="responses"), "k", {"authorization": "Bearer k"}),
        (upstream(dialect="messages"), "k", {"x-api-key": "k", "anthropic-version": "2023-06-01"}),
        (upstream(dialect="messages", provider="openrouter"), "k", {"authorization": "Bearer k", "anthropic-version": "2023-06-01"}),
        (upstream(), None, {}),
        (demo.SETTINGS, "k", {}),
        (upstream(headers={"Authorization": Secret("Basic x"), "X-Team": Secret("a")}), "k", {"authorization": "Basic x", "x-team": "a"}),
    ],
)  # fmt: skip
def test_a_key_goes_where_the_provider_looks_for_it(
    settings: UpstreamSettings, key: str | None, expected: dict[str, str]
) -> None:
    assert headers(settings, key) == expected


def asked(request: Request, settings: UpstreamSettings, model: str, named: ModelSettings | None = None) -> Any:
    written = target(settings, named, model, origin="here")
    return msgspec.json.decode(DIALECTS[settings.dialect].render(request, written))


HELLO = Request((User((Text("Hello"),)),), parameters=Parameters(max_tokens=50, temperature=0.5, frequency_penalty=1.0))


def test_openai_has_another_name_for_the_limit() -> None:
    openai = upstream("https://api.openai.com/v1")
    assert asked(HELLO, openai, "gpt-4o")["max_completion_tokens"] == 50
    assert asked(HELLO, upstream(), "gpt-4o")["max_tokens"] == 50


@pytest.mark.parametrize("model", ["o3", "o4-mini", "gpt-5", "gpt-5-mini-2025-08-07", "ft:o4-mini:org::id"])
def test_what_openais_reasoners_refuse_is_left_out_and_noted(model: str) -> None:
    openai = upstream("https://api.openai.com/v1")
    assert not {"temperature", "frequency_penalty"} & set(asked(HELLO, openai, model))
    noted = {note.field for note in notes(HELLO, target(openai, None, model, origin="here"), "chat")}
    assert noted == {"temperature", "frequency_penalty"}


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "gpt-5.2", "gpt-55"])
def test_other_models_of_openai_take_them(model: str) -> None:
    assert asked(HELLO, upstream("https://api.openai.com/v1"), model)["temperature"] == 0.5


@pytest.mark.parametrize(("model", "sealed"), [("gpt-4o", False), ("gpt-5", True), ("o3", True)])
def test_only_a_reasoner_is_asked_for_sealed_reasoning(model: str, sealed: bool) -> None:
    assert ("include" in asked(HELLO, upstream("https://api.openai.com", dialect="responses"), model)) == sealed


def test_strict_endpoints_are_spared_what_they_refuse() -> None:
    gemini = upstream("https://generativelanguage.googleapis.com/v1beta/openai")
    assert not {"store", "frequency_penalty"} & set(asked(HELLO, gemini, "gemini-3-pro"))
    assert not {"store", "stream_options"} & set(asked(HELLO, upstream("https://api.mistral.ai/v1"), "mistral-large"))


def test_what_the_user_leaves_out_is_left_out_besides() -> None:
    gemini = upstream("https://generativelanguage.googleapis.com/v1beta/openai", omit=("temperature",))
    assert not {"store", "temperature"} & set(asked(HELLO, gemini, "gemini-3-pro"))


@pytest.mark.parametrize(
    ("settings", "owned_by", "field"),
    [
        (upstream("http://localhost:11434"), None, "reasoning"),
        (upstream(), "vllm", "reasoning"),
        (upstream(), "llamacpp", "reasoning_content"),
        (upstream("https://api.deepseek.com"), None, "reasoning_content"),
        (upstream(), None, None),
    ],
)
def test_earlier_reasoning_goes_back_where_it_is_looked_for(
    settings: UpstreamSettings, owned_by: str | None, field: str | None
) -> None:
    assert target(settings, None, "m", origin="here", owned_by=owned_by).reasoning_field == field


# ------------------------------------------------------------------------------ Claude

CLAUDES = [
    # model, thinking, prefill, temperature, default limit
    ("claude-3-haiku-20240307", "none", "assistant", True, 4096),
    ("claude-3-5-sonnet-latest", "none", "assistant", True, 4096),
    ("claude-3-7-sonnet-20250219", "budget", "assistant", True, 16_000),
    ("claude-sonnet-4-20250514", "budget", "assistant", True, 16_000),
    ("claude-opus-4@20250514", "budget", "assistant", True, 16_000),
    ("claude-opus-4-0", "budget", "assistant", True, 16_000),
    ("claude-opus-4-1-20250805", "budget", "assistant", True, 16_000),
    ("claude-haiku-4-5", "budget", "assistant", True, 16_000),
    ("anthropic/claude-sonnet-4.5", "budget", "assistant", True, 16_000),
    ("anthropic/claude-sonnet-4", "budget", "assistant", True, 16_000),
    ("claude-opus-4-6", "adaptive", "none", True, 16_000),
    ("anthropic.claude-sonnet-4-6-v1", "adaptive", "none", True, 16_000),
    ("claude-opus-4-7", "adaptive", "none", False, 16_000),
    ("claude-opus-4-10", "adaptive", "none", False, 16_000),
    ("claude-sonnet-5", "adaptive", "none", False, 16_000),
    ("claude-fable-5-2", "adaptive", "none", False, 16_000),
]


@pytest.mark.parametrize("base_url", ["https://api.anthropic.com", "https://gateway.example.com"])
@pytest.mark.parametrize(("model", "thinking", "prefill", "temperature", "limit"), CLAUDES)
def test_each_claude_is_asked_as_it_likes(
    base_url: str, model: str, thinking: str, prefill: str, temperature: bool, limit: int
) -> None:
    settings = upstream(base_url, dialect="messages")
    written = target(settings, None, model, origin="here")
    assert (written.thinking, written.default_max_tokens) == (thinking, limit)
    assert prefill_of(settings, None, model) == prefill
    assert ("temperature" in asked(HELLO, settings, model)) == temperature


def test_a_model_that_is_no_claude_thinks_by_a_budget_except_at_anthropic() -> None:
    assert target(upstream(dialect="messages"), None, "qwen3", origin="here").thinking == "budget"
    assert target(upstream("https://api.anthropic.com"), None, "new", origin="here").thinking == "adaptive"


# ---------------------------------------------------------------------- going on (C27)


def test_what_is_set_goes_before_what_is_known() -> None:
    named = ModelSettings(name="m", upstream="u", prefill="none", thinking="none", max_tokens=99)
    settings = upstream("http://localhost:11434", prefill="prefix_flag", needs_finish_reason=False)
    assert prefill_of(settings, None, "m") == "prefix_flag"
    assert prefill_of(settings, named, "m") == "none"
    written = target(settings, named, "claude-opus-4-7", origin="here", stream=False)
    assert (written.thinking, written.default_max_tokens, written.stream, written.origin) == ("none", 99, False, "here")
    assert needs_finish_reason(upstream())
    assert not needs_finish_reason(settings)


CUT = Request((User((Text("Hello"),)), Assistant((Text("Good mor"),))))


@pytest.mark.parametrize(
    ("settings", "owned_by", "message", "body"),
    [
        (upstream(), "vllm", {}, {"continue_final_message": True, "add_generation_prompt": False}),
        (upstream(), "llamacpp", {}, {"chat_template_kwargs": {"enable_thinking": False}}),
        (upstream("https://api.deepseek.com/beta"), None, {"prefix": True}, {}),
        (upstream("https://api.mistral.ai"), None, {"prefix": True}, {}),
        (upstream(prefill="prefix_flag"), None, {"prefix": True}, {}),
    ],
)
def test_an_answer_to_be_gone_on_with_is_marked_as_the_provider_wants_it(
    settings: UpstreamSettings, owned_by: str | None, message: dict[str, Any], body: dict[str, Any]
) -> None:
    assert prefill_of(settings, None, "m", owned_by) == "prefix_flag"
    written = DIALECTS["chat"].render(CUT, target(settings, None, "m", origin="here", owned_by=owned_by))
    marked = msgspec.json.decode(with_prefix_flag(written, provider_of(settings, owned_by).prefix_flag))
    plain = msgspec.json.decode(written)
    assert marked == {**plain, **body, "messages": [plain["messages"][0], {**plain["messages"][1], **message}]}


def test_the_mark_leaves_the_clients_own_words_beside_it() -> None:
    request = Request(CUT.messages, extras=Extras("chat", {"chat_template_kwargs": {"enable_thinking": True, "x": 1}}))
    settings = upstream(provider="llama.cpp")
    written = DIALECTS["chat"].render(request, target(settings, None, "m", origin="here"))
    marked = msgspec.json.decode(with_prefix_flag(written, provider_of(settings).prefix_flag))
    assert marked["chat_template_kwargs"] == {"enable_thinking": False, "x": 1}


def test_a_resolved_name_becomes_a_route_with_all_that_is_known_of_its_model() -> None:
    clock = ManualClock()
    named = ModelSettings(name="fast", upstream="gpu", model="qwen3", thinking="none")
    resolved = Resolved(
        name="fast", upstream="gpu", settings=upstream(), model="qwen3", model_settings=named, owned_by="vllm"
    )
    endpoint = Endpoint("gpu", upstream(), ScriptedUpstream(clock), needs_finish_reason=True)
    found = route(endpoint, resolved)
    assert (found.endpoint, found.model, found.prefill) == (endpoint, "qwen3", "prefix_flag")
    assert found.target == Target(model="qwen3", origin="gpu", reasoning_field="reasoning", thinking="none")


def test_the_page_is_made_from_the_table() -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "providers.md"
    assert page.read_text() == providers_page(), "run `make docs`"
