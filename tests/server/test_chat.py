"""C60–C66, C73: chat completions as a client sees them, over every upstream dialect."""

import openai
import pytest

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings
from headwater.conversation import Ask, Request
from headwater.errors import CallerError
from headwater.events import DialectName
from headwater.server.asking import begin
from headwater.server.callers import Caller
from tests.server.house import DIALECTS, House, open_house, settings_for, texts, with_upstream

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("upstream", DIALECTS)
async def test_a_stream_has_one_id_one_created_one_model_and_ends_with_done(
    house: House, upstream: DialectName
) -> None:
    """C60, C66"""
    answer = await house.post("chat", f"{upstream}/sim/tokens-5", stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-cache"
    *chunks, done = await house.events("chat", f"{upstream}/sim/tokens-5")
    assert done.data == "[DONE]"
    assert len({(c.data["id"], c.data["created"], c.data["model"], c.data["object"]) for c in chunks}) == 1
    assert chunks[0].data["id"].startswith("chatcmpl-")
    assert chunks[0].data["choices"][0]["delta"] == {"role": "assistant", "content": "t0 "}
    assert [c.data["choices"][0]["finish_reason"] for c in chunks] == [None] * 5 + ["stop"]
    assert chunks[-1].data["choices"][0]["delta"] == {}
    assert texts("chat", chunks) == "t0 t1 t2 t3 t4 "
    assert not any({"error", "headwater", "usage"} & c.data.keys() for c in chunks)


async def test_every_answer_names_its_run(house: House) -> None:
    for stream in (True, False):
        answer = await house.post("chat", "chat/sim/tokens-1", stream=stream)
        assert answer.headers["x-run-id"].startswith("run_")
        refused = await house.post("chat", "chat/sim/status-429", stream=stream)
        assert refused.headers["x-run-id"].startswith("run_")


@pytest.mark.parametrize("upstream", DIALECTS)
async def test_not_streamed_it_is_one_object(house: House, upstream: DialectName) -> None:
    """C61, and C15: the upstream is asked to stream all the same."""
    answer = await house.post("chat", f"{upstream}/sim/tokens-3")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["content"] == "t0 t1 t2 "
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["completion_tokens"] == 3
    assert house.simulator.requests[0].body["stream"] is True


async def test_usage_comes_before_done_and_only_if_it_was_asked_for(house: House) -> None:
    """C62"""
    *_, usage, done = await house.events("chat", "chat/sim/tokens-3", stream_options={"include_usage": True})
    assert done.data == "[DONE]"
    assert usage.data["choices"] == []
    assert usage.data["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [400, 404, 413, 422, 429])
async def test_a_refusal_before_anything_was_sent_keeps_its_status(house: House, status: int, stream: bool) -> None:
    """C64"""
    for dialect in DIALECTS:
        answer = await house.post(dialect, f"{dialect}/sim/status-{status}", stream=stream)
        assert answer.status_code == status
        assert answer.headers["x-should-retry"] == "false"
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize("status", [401, 500, 503])
async def test_any_other_refusal_is_a_200_with_an_error_alone(house: House, status: int) -> None:
    """C64: SDKs would retry a 5xx, and each retry is billed."""
    (error,) = await house.events("chat", f"chat/sim/status-{status}")
    assert set(error.data["error"]) == {"message", "type", "param", "code"}
    answer = await house.post("chat", f"chat/sim/status-{status}")
    assert answer.status_code == 502
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("upstream", DIALECTS)
async def test_a_cut_after_text_is_an_error_and_never_done(house: House, upstream: DialectName) -> None:
    """C64"""
    *said, error = await house.events("chat", f"{upstream}/sim/tokens-9,cut-after-3")
    assert texts("chat", said) == "t0 t1 t2 "
    assert error.data["error"]["code"] == "upstream_truncated"
    assert not any(f.data == "[DONE]" or f.data["choices"][0]["finish_reason"] for f in said)
    answer = await house.post("chat", f"{upstream}/sim/tokens-9,cut-after-3")
    assert answer.status_code == 502
    assert answer.json()["headwater"]["partial"]["content"] == "t0 t1 t2 "


async def test_the_other_failure_style_ends_with_a_finish_reason_of_its_own() -> None:
    """C64, C65"""
    async with open_house(failure_style="finish_reason") as house:
        *_, last, done = await house.events("chat", "chat/sim/tokens-9,cut-after-3")
        assert done.data == "[DONE]"
        assert last.data["choices"][0]["finish_reason"] == "error"
        assert last.data["headwater"]["code"] == "upstream_truncated"
        *_, last, done = await house.events("chat", "chat/sim/tokens-3,finish-length")
        assert last.data["headwater"]["code"] == "output_truncated"


async def test_a_limit_of_tokens_is_told(house: House) -> None:
    """C65"""
    *_, last, done = await house.events("chat", "chat/sim/tokens-3,finish-length")
    assert last.data["choices"][0]["finish_reason"] == "length"
    assert "headwater" not in last.data
    assert done.data == "[DONE]"


async def test_what_can_not_be_carried_is_noted_in_the_answer(house: House) -> None:
    body = (await house.post("chat", "messages/sim/tokens-2", seed=7)).json()
    assert body["headwater"]["notes"] == ["seed: The dialect has no such parameter."]
    *_, last, _ = await house.events("chat", "messages/sim/tokens-2", seed=7)
    assert last.data["headwater"]["notes"] == ["seed: The dialect has no such parameter."]


async def test_what_would_be_another_question_is_refused_by_name(house: House) -> None:
    answer = await house.post("chat", "responses/sim/tokens-2", stop=["\n\n"])
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "stop"
    assert house.simulator.requests == []


async def test_without_a_model_the_default_answers_else_the_only_one_else_nobody(house: House) -> None:
    """C73"""
    asked = {"messages": [{"role": "user", "content": "Hi"}]}
    refused = await house.http.post("/v1/chat/completions", json=asked)
    assert refused.status_code == 400
    assert "demo/echo" in refused.json()["error"]["message"]
    async with open_house(default_model="demo/echo") as other:
        answer = await other.http.post("/v1/chat/completions", json=asked)
        assert (answer.json()["model"], answer.json()["choices"][0]["message"]["content"]) == ("demo/echo", "Hi")


async def test_of_models_that_a_key_may_not_ask_for_it_is_told_nothing() -> None:
    """C73, for one who is held to some."""
    keys = tuple(
        KeySettings(owner=owner, key=Secret(owner[0] * 20), models=models)
        for owner, models in {"ann": ("demo/story",), "bob": ("nobody", "demo/flaky*"), "cy": ("demo/*",)}.items()
    )
    ann, bob, cy = ({"authorization": f"Bearer {key.key.reveal()}"} for key in keys)
    said = {"role": "user", "content": "Hi"}
    async with open_house(default_model="demo/echo", keys=keys) as house:
        for path, more in (
            ("/v1/chat/completions", {"messages": [said]}),
            ("/v1/messages", {"messages": [said], "max_tokens": 9}),
            ("/v1/responses", {"input": "Hi"}),
            ("/api/runs", {"input": "Hi"}),
        ):
            for headers in (ann, bob):
                none = await house.http.post(path, json=more, headers=headers)
                assert none.status_code == 400
                assert "echo" not in none.text
            unknown = await house.http.post(path, json={**more, "model": "nobody"}, headers=bob)
            assert unknown.status_code == 404
            assert "echo" not in unknown.text
            assert (await house.http.post(path, json=more, headers=cy)).json()["model"] == "demo/echo"
        for headers, default in ((ann, None), (cy, "demo/echo")):
            assert (await house.http.get("/api/me", headers=headers)).json()["default_model"] == default


async def test_an_unknown_model_is_404_in_each_dialect(house: House) -> None:
    for dialect in DIALECTS:
        answer = await house.post(dialect, "nobody", stream=True)
        assert answer.status_code == 404
        assert "nobody" in answer.json()["error"]["message"]
        assert "x-should-retry" not in answer.headers


async def test_nothing_of_an_unrecorded_run_is_kept_but_its_row(house: House) -> None:
    answer = await house.post("chat", "chat/sim/tokens-3", stream=True)
    store = house.services.store
    await house.services.runs.close()
    await house.services.store.check()
    run_id = answer.headers["x-run-id"]
    while (run := await store.run("local", run_id)) is None:
        await house.services.clock.sleep(0.01)
    assert not run.recorded
    assert run.usage.output_tokens == 3
    found = await store.read("local", run_id)
    assert found is not None
    assert found.batches == ()


async def test_models_are_listed_for_both_sdks(house: House) -> None:
    listed = [model.id async for model in house.openai.models.list()]
    assert "demo/story" in listed
    others = [model.id async for model in house.anthropic.models.list()]
    assert others == listed
    assert (await house.openai.models.retrieve("demo/story")).owned_by == "demo"
    with pytest.raises(openai.NotFoundError):
        await house.openai.models.retrieve("nobody")


async def test_a_cut_answer_goes_on_where_that_was_asked_for() -> None:
    """C27: also in one piece, all of it is there."""
    async with open_house() as house:
        settings = with_upstream(settings_for(house.simulator), "chat", backoff_s=0)
        house.services.reload(settings)
        answer = await house.post("chat", "chat/sim/tokens-4,cut-after-2x1", on_cut="continue")
        assert answer.json()["choices"][0]["message"]["content"] == "t0 t1 \n\nt0 t1 t2 t3 "
        frames = await house.events("chat", "chat/sim/tokens-5,cut-after-2x1", on_cut="continue")
        assert texts("chat", frames) == "t0 t1 \n\nt0 t1 t2 t3 t4 "


async def test_a_model_that_a_key_may_not_ask_for_is_as_if_it_were_not_there(house: House) -> None:
    caller = Caller(owner="somebody", models=("chat/*",))
    with pytest.raises(CallerError) as refused:
        await begin(house.services, caller, "chat", Ask(Request((), model="demo/echo")))
    assert (refused.value.status, refused.value.code) == (404, "model_not_found")
