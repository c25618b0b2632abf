"""Who answers for a name."""

import pytest

from headwater.config.settings import AgentSettings, ModelSettings, ServerSettings, Settings, UpstreamSettings
from headwater.errors import CallerError
from headwater.upstream import demo
from headwater.upstream.catalog import Catalog, Resolved
from tests.upstream.lists import Upstreams

pytestmark = pytest.mark.anyio

OPENAI = {
    "data": [{"id": "gpt-5", "owned_by": "system", "created": 5}, {"id": "gpt-5-mini"}, {"id": "text-embedding-3"}]
}
LOCAL = {"data": [{"id": "qwen3:8b", "owned_by": "vllm"}, {"id": "shared"}, {"id": "meta/llama"}]}
OTHER = {"data": [{"id": "shared"}, {"id": "openai/gpt-6"}]}


def model(name: str, upstream: str = "openai", *fallbacks: str, asks_for: str | None = None) -> ModelSettings:
    return ModelSettings(name=name, upstream=upstream, model=asks_for, fallbacks=fallbacks)


def settings(
    *models: ModelSettings, default: str | None = None, agents: tuple[str, ...] = (), **lists: bool
) -> Settings:
    """An upstream for each of `lists`, which says whether it is to be listed."""
    return Settings(
        server=ServerSettings(default_model=default),
        models=models,
        agents={name: AgentSettings(model="fast") for name in agents},
        upstreams={name: UpstreamSettings(base_url=f"http://{name}", list_models=yes) for name, yes in lists.items()},
    )


def three(*models: ModelSettings, default: str | None = None) -> tuple[Catalog, Upstreams]:
    fetch = Upstreams(openai=OPENAI, local=LOCAL, other=OTHER)
    return Catalog(settings(*models, default=default, openai=True, local=True, other=True), fetch), fetch


async def refused(catalog: Catalog, name: str) -> CallerError:
    with pytest.raises(CallerError) as caught:
        await catalog.resolve(name, 0)
    return caught.value


def place(route: Resolved) -> tuple[str, str]:
    return route.upstream, route.model


# ------------------------------------------------------------------------------ found


@pytest.mark.parametrize(
    ("name", "upstream", "asked_for"),
    [
        ("fast", "openai", "gpt-5-mini"),
        ("plain", "local", "plain"),
        ("openai/gpt-5", "openai", "gpt-5"),
        ("gpt-5", "openai", "gpt-5"),
        ("local/shared", "local", "shared"),
        ("meta/llama", "local", "meta/llama"),
        ("local/meta/llama", "local", "meta/llama"),
        ("openai/gpt-6", "other", "openai/gpt-6"),
        ("openai/text-embedding-3", "openai", "text-embedding-3"),
        ("demo/story", "demo", "story"),
        ("tale", "demo", "story"),
    ],
)
async def test_a_name_leads_to_an_upstream_and_its_model(name: str, upstream: str, asked_for: str) -> None:
    catalog, _ = three(
        model("fast", asks_for="gpt-5-mini"), model("plain", "local"), model("tale", "demo", asks_for="story")
    )
    assert place(await catalog.resolve(name, 0)) == (upstream, asked_for)


async def test_a_configured_name_goes_before_a_listed_one() -> None:
    catalog, _ = three(model("gpt-5", "local", asks_for="qwen3:8b"))
    assert place(await catalog.resolve("gpt-5", 0)) == ("local", "qwen3:8b")
    assert place(await catalog.resolve("openai/gpt-5", 0)) == ("openai", "gpt-5")


async def test_a_route_has_all_that_is_needed_to_ask() -> None:
    fast = model("fast", "local", asks_for="qwen3:8b")
    catalog, _ = three(fast)
    await catalog.refresh(0)
    route = await catalog.resolve("fast", 0)
    assert route.settings.base_url == "http://local"
    assert route.model_settings is fast
    assert route.owned_by == "vllm"
    assert (await catalog.resolve("demo/echo", 0)).settings is demo.SETTINGS


async def test_what_is_configured_or_listed_already_waits_for_no_list() -> None:
    catalog, fetch = three(model("fast"))
    await catalog.resolve("fast", 0)
    assert fetch.asked == []
    await catalog.resolve("gpt-5", 0)
    assert len(fetch.asked) == 3
    await catalog.resolve("gpt-5", 10_000)
    assert len(fetch.asked) == 3


async def test_a_model_that_came_later_is_found() -> None:
    catalog, fetch = three()
    await catalog.resolve("gpt-5", 0)
    fetch.answers["local"] = ["brand-new"]
    assert place(await catalog.resolve("brand-new", 60)) == ("local", "brand-new")


# -------------------------------------------------------------------------- fallbacks


async def test_fallbacks_are_followed_once_each_and_nearest_first() -> None:
    catalog, _ = three(
        model("fast", "openai", "careful", "local/shared"),
        model("careful", "local", "slow", "fast"),
        model("slow", "other", "careful"),
    )
    route = await catalog.resolve("fast", 0)
    assert [fallback.name for fallback in route.fallbacks] == ["careful", "local/shared", "slow"]
    assert all(fallback.fallbacks == () for fallback in route.fallbacks)


async def test_a_fallback_that_nobody_answers_for_stops_nobody() -> None:
    catalog, fetch = three(model("fast", "openai", "nowhere", "shared", "demo/echo"))
    for now_s in (0, 10_000):
        route = await catalog.resolve("fast", now_s)
        assert [fallback.name for fallback in route.fallbacks] == ["demo/echo"]
        assert route.unresolved == ("nowhere", "shared")
    assert len(fetch.asked) == 3


# ------------------------------------------------------------- lists that can't be had


async def test_failure_to_list_is_not_failure_to_serve() -> None:
    fetch = Upstreams(openai="It is down.", local=LOCAL)
    catalog = Catalog(settings(model("fast"), openai=True, local=True), fetch)
    await catalog.refresh(0)
    assert catalog.failures == {"openai": "It is down."}
    for name in ("fast", "openai/anything", "qwen3:8b"):
        await catalog.resolve(name, 0)


async def test_the_only_upstream_is_asked_for_any_name_when_it_does_not_list_them() -> None:
    catalog = Catalog(settings(local=False), Upstreams())
    assert place(await catalog.resolve("anything", 0)) == ("local", "anything")
    assert (await refused(Catalog(settings(local=False, other=False), Upstreams()), "anything")).status == 404


async def test_who_does_not_list_its_models_is_named_when_one_is_not_found() -> None:
    catalog = Catalog(settings(openai=True, local=False), Upstreams(openai="It is down."))
    message = (await refused(catalog, "gpt-5")).message
    assert "'openai' could not list its models (It is down): if it has this one, ask for 'openai/gpt-5'." in message
    assert "'local' does not list its models: if it has this one, ask for 'local/gpt-5'." in message


# --------------------------------------------------------------------------- not found


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("gpt5", "'openai/gpt-5'"),
        ("openai/gtp-5", "'openai/gpt-5'"),
        ("demo/storey", "'demo/story'"),
        ("fsat", "'fast'"),
        ("local/gpt-5", "'openai/gpt-5'"),
        ("story", "'demo/story'"),
        ("openai/", None),
        ("", None),
    ],
)
async def test_an_unknown_name_is_refused_with_what_was_probably_meant(name: str, near: str | None) -> None:
    catalog, _ = three(model("fast"))
    error = await refused(catalog, name)
    assert (error.status, error.code, error.param) == (404, "model_not_found", "model")
    assert f"'{name}'" in error.message
    assert near is None or near in error.message


async def test_a_name_like_no_other_is_refused_with_those_there_are() -> None:
    catalog = Catalog(settings(), Upstreams())
    assert (await refused(catalog, "zzz")).message == (
        "There is no model 'zzz'. There are: demo/echo, demo/story, demo/think, demo/tools, demo/flaky, demo/agent."
    )
    catalog = Catalog(settings(*(model(f"m{n}", "demo") for n in range(30))), Upstreams())
    assert "m19 and 16 more" in (await refused(catalog, "zzz")).message


async def test_a_name_that_several_have_is_refused_with_the_choices() -> None:
    catalog, _ = three()
    error = await refused(catalog, "shared")
    assert (error.status, error.code) == (400, "model_ambiguous")
    assert error.message == "Several upstreams have a model 'shared'. Say which: 'local/shared' or 'other/shared'."


async def test_of_several_that_have_a_name_only_those_are_told_that_may_be_asked() -> None:
    catalog, _ = three()
    for allowed, told in (("other/shared", "Say which: 'other/shared'."), ("shared", "This key may ask none of them")):
        with pytest.raises(CallerError) as raised:
            await catalog.resolve("shared", 0.0, lambda name, allowed=allowed: name == allowed)  # type: ignore[misc]
        assert told in raised.value.message
        assert "local" not in raised.value.message


async def test_an_agent_is_no_model() -> None:
    catalog = Catalog(settings(model("fast", "demo"), agents=("helper",)), Upstreams())
    assert (await refused(catalog, "helper")).message == "'helper' is an agent, and a model is needed here."


# ------------------------------------------------------------------- no name at all, C73


async def test_without_a_name_the_default_is_meant() -> None:
    catalog, fetch = three(default="fast")
    assert await catalog.choose(None, 0) == "fast"
    assert await catalog.choose("", 0) == "fast"
    assert await catalog.choose("gpt-5", 0) == "gpt-5"
    assert fetch.asked == []


@pytest.mark.parametrize(
    ("catalog", "only"),
    [
        (Catalog(settings(model("fast", "demo")), Upstreams()), "fast"),
        (Catalog(settings(agents=("helper",)), Upstreams()), "helper"),
        (Catalog(settings(local=True), Upstreams(local=["llama"])), "local/llama"),
    ],
)
async def test_without_a_default_the_only_one_is_meant(catalog: Catalog, only: str) -> None:
    assert await catalog.choose(None, 0) == only


async def test_among_several_one_has_to_be_named() -> None:
    catalog, _ = three(model("fast"))
    with pytest.raises(CallerError) as caught:
        await catalog.choose(None, 0)
    assert caught.value.status == 400
    assert "fast, openai/gpt-5, openai/gpt-5-mini" in caught.value.message
    assert "demo" not in caught.value.message
    with pytest.raises(CallerError, match="demo/echo, demo/story"):
        await Catalog(settings(), Upstreams()).choose(None, 0)


# ---------------------------------------------------------------- for whom not all are


async def test_what_a_caller_may_not_ask_for_is_neither_meant_nor_named() -> None:
    catalog, _ = three(model("fast"), default="fast")
    assert await catalog.choose(None, 0, lambda name: name == "local/qwen3:8b") == "local/qwen3:8b"
    assert await catalog.choose(None, 0, lambda name: name != "local/qwen3:8b") == "fast"
    with pytest.raises(CallerError) as caught:
        await catalog.choose(None, 0, lambda name: name.startswith("openai/"))
    assert caught.value.message.endswith("There are: openai/gpt-5, openai/gpt-5-mini.")
    with pytest.raises(CallerError) as caught:
        await catalog.choose(None, 0, lambda name: name == "unheard")
    assert caught.value.message.endswith("there is no `default_model`.")


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        (("gpt-5x", "openai/gpt-5"), "There is no model 'gpt-5x'. Did you mean 'openai/gpt-5'?"),
        (("gpt-5x", "fast"), "There is no model 'gpt-5x'. There are: fast."),
        (("gpt-5x",), "There is no model 'gpt-5x'."),
        (
            ("gpt-5x", "dumb/gpt-5x"),
            "There is no model 'gpt-5x'. 'dumb' does not list its models: if it has this one, ",
        ),
    ],
)
async def test_nor_is_it_suggested(allowed: tuple[str, ...], said: str) -> None:
    catalog = Catalog(settings(model("fast"), openai=True, dumb=False), Upstreams(openai=OPENAI))
    with pytest.raises(CallerError) as caught:
        await catalog.resolve("gpt-5x", 0, allowed.__contains__)
    message = caught.value.message
    assert message.startswith(said) if said.endswith(" ") else message == said


# ------------------------------------------------------------------------------- names


async def test_all_names_are_listed_but_for_models_that_do_not_talk() -> None:
    catalog, _ = three(model("fast"))
    await catalog.refresh(0)
    entries = {entry.name: entry for entry in catalog.entries()}
    assert list(entries)[:3] == ["fast", "openai/gpt-5", "openai/gpt-5-mini"]
    assert list(entries)[-6:] == [f"demo/{name}" for name in demo.MODELS]
    assert not any("embedding" in name for name in entries)
    assert (entries["openai/gpt-5"].owned_by, entries["openai/gpt-5"].created) == ("system", 5)
    assert entries["local/shared"].owned_by == "local"
