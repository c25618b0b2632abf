"""Lists of models: how providers write them, and how long they are kept."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.config.settings import UpstreamSettings
from headwater.errors import FrameUnreadable
from headwater.upstream.listing import Listed, Listing, Listings, Page, read_page
from tests.upstream.lists import Upstreams

OPENAI = {"object": "list", "data": [{"id": "gpt-5", "object": "model", "created": 1754425777, "owned_by": "system"}]}
ANTHROPIC = {
    "data": [
        {"type": "model", "id": "claude-opus-5", "display_name": "Claude Opus 5", "created_at": "2026-07-01T00:00:00Z"}
    ],
    "has_more": True,
    "first_id": "claude-opus-5",
    "last_id": "claude-opus-5",
}
OLLAMA = {
    "object": "list",
    "data": [{"id": "qwen3:8b", "object": "model", "created": 1750000000, "owned_by": "library"}],
}
OLLAMA_NATIVE = {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "size": 5}]}
LLAMA_CPP = {"models": [{"name": "x.gguf"}], "object": "list", "data": [{"id": "x.gguf", "owned_by": "llamacpp"}]}
LM_STUDIO = {"data": [{"id": "qwen/qwen3-4b", "object": "model", "owned_by": "organization_owner"}]}
GEMINI = {
    "object": "list",
    "data": [{"id": "models/gemini-3-pro", "object": "model", "owned_by": "google", "display_name": "Gemini 3 Pro"}],
}


@pytest.mark.parametrize(
    ("answer", "page"),
    [
        (OPENAI, Page((Listed("gpt-5", None, "system", 1754425777),))),
        (ANTHROPIC, Page((Listed("claude-opus-5", "Claude Opus 5", None, 1782864000),), "claude-opus-5")),
        (ANTHROPIC | {"has_more": False}, Page((Listed("claude-opus-5", "Claude Opus 5", None, 1782864000),))),
        (OLLAMA, Page((Listed("qwen3:8b", None, "library", 1750000000),))),
        (OLLAMA | {"data": None}, None),
        (OLLAMA_NATIVE, Page((Listed("qwen3:8b"),))),
        (LLAMA_CPP, Page((Listed("x.gguf", None, "llamacpp"),))),
        (LM_STUDIO, Page((Listed("qwen/qwen3-4b", None, "organization_owner"),))),
        (GEMINI, Page((Listed("gemini-3-pro", "Gemini 3 Pro", "google"),))),
        (
            [{"id": "a", "created": 1.5e9}, "b", 7, {}, {"id": ""}],
            Page((Listed("a", created=1_500_000_000), Listed("b"))),
        ),
        ({"data": [{"id": "a", "created": -1}, {"id": "b", "created_at": "soon"}]}, Page((Listed("a"), Listed("b")))),
        (
            {"data": [{"id": "old", "lifecycle": "retired"}, {"id": "a", "lifecycle": "deprecated"}]},
            Page((Listed("a"),)),
        ),
        ({"data": []}, Page(())),
        ({"error": {"message": "no"}}, None),
        ("models", None),
    ],
)
def test_lists_are_read_as_their_servers_write_them(answer: Any, page: Page | None) -> None:
    body = msgspec.json.encode(answer)
    if page is None:
        with pytest.raises(FrameUnreadable, match="no list of models"):
            read_page(body)
    else:
        assert read_page(body) == page


@pytest.mark.parametrize("body", [b"", b"<html>Log in</html>", b"[" * 100_000])
def test_what_is_no_json_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(FrameUnreadable, match="no JSON"):
        read_page(body)


json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["data", "models", "id", "name", "created", "created_at", "has_more", "last_id", "owned_by"]), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@given(json)
def test_any_answer_is_a_list_or_is_refused(answer: Any) -> None:
    try:
        page = read_page(msgspec.json.encode(answer))
    except FrameUnreadable:
        return
    assert all(model.id for model in page.models)


# ------------------------------------------------------------------------------- kept


def listings(fetch: Upstreams, **settings: Any) -> Listings:
    return Listings({name: UpstreamSettings(base_url="http://x", **settings) for name in fetch.answers}, fetch)


pytestmark = pytest.mark.anyio


async def test_a_list_is_kept_for_as_long_as_it_is_set() -> None:
    fetch = Upstreams(a=["x"])
    lists = listings(fetch, list_models_ttl_s=100)
    assert lists["a"] == Listing()
    for now_s in (1000, 1001, 1099.9):
        await lists.refresh(now_s)
    assert len(fetch.asked) == 1
    fetch.answers["a"] = ["x", "y"]
    await lists.refresh(1100)
    assert list(lists["a"].models) == ["x", "y"]


async def test_a_failure_keeps_the_list_before_and_says_why() -> None:
    fetch = Upstreams(a=["x"], b=["z"])
    lists = listings(fetch, list_models_ttl_s=100)
    await lists.refresh(0)
    fetch.answers["a"] = "It is down."
    await lists.refresh(100)
    assert lists["a"] == Listing({"x": Listed("x")}, known=True, asked_at_s=100, failure="It is down.")
    assert lists["b"].failure is None


async def test_an_upstream_that_failed_is_asked_again_sooner_and_not_at_once() -> None:
    fetch = Upstreams(a="It is down.")
    lists = listings(fetch, list_models_ttl_s=100)
    for now_s in (0, 1, 29):
        await lists.refresh(now_s, missing=True)
    assert len(fetch.asked) == 1
    fetch.answers["a"] = ["x"]
    await lists.refresh(30)
    assert lists["a"] == Listing({"x": Listed("x")}, known=True, asked_at_s=30)


async def test_a_name_that_is_missing_fetches_a_list_that_is_not_fresh() -> None:
    fetch = Upstreams(a=["x"])
    lists = listings(fetch)
    await lists.refresh(0)
    await lists.refresh(9, missing=True)
    assert len(fetch.asked) == 1
    await lists.refresh(11, missing=True)
    assert len(fetch.asked) == 2


async def test_those_who_ask_at_once_share_one_answer() -> None:
    fetch = Upstreams(a=["x"], b=["y"])
    lists = listings(fetch)
    await asyncio.gather(*(lists.refresh(0) for _ in range(5)))
    assert sorted(fetch.asked) == [("a", "/models"), ("b", "/models")]


async def test_what_is_no_list_is_a_failure() -> None:
    fetch = Upstreams(a={"error": "no"})
    lists = listings(fetch)
    await lists.refresh(0)
    assert "no list of models" in (lists["a"].failure or "")
    assert not lists["a"].known


async def test_an_upstream_that_is_not_to_be_listed_is_not_asked() -> None:
    fetch = Upstreams(a=["x"])
    lists = listings(fetch, list_models=False)
    await lists.refresh(0)
    assert fetch.asked == []


class Pages(Upstreams):
    async def __call__(self, upstream: str, path: str) -> bytes:
        self.asked.append((upstream, path))
        number = len(self.asked)
        page = {"data": [{"id": f"m{number}"}], "has_more": number < self.answers[upstream], "last_id": f"m/{number}"}
        return msgspec.json.encode(page)


async def test_all_pages_are_read() -> None:
    fetch = Pages(a=3)
    lists = listings(fetch, dialect="messages")
    await lists.refresh(0)
    assert list(lists["a"].models) == ["m1", "m2", "m3"]
    assert [path for _, path in fetch.asked] == [
        "/models?limit=1000",
        "/models?limit=1000&after_id=m%2F1",
        "/models?limit=1000&after_id=m%2F2",
    ]


async def test_pages_without_an_end_come_to_one() -> None:
    fetch = Pages(a=10**9)
    await listings(fetch, dialect="messages").refresh(0)
    assert len(fetch.asked) == 20


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("qwen3:8b", "qwen3:8b"),
        ("llama3", "llama3:latest"),
        ("x/y:free", "x/y"),
        ("qwen3", None),
        ("", None),
        (":", None),
    ],
)
async def test_a_model_is_found_also_by_the_names_that_its_server_takes(asked: str, found: str | None) -> None:
    listing = Listing({id: Listed(id) for id in ("qwen3:8b", "llama3:latest", "x/y")})
    assert listing.get(asked) == (Listed(found) if found else None)
