"""Comparisons (C80–C82), images, and what a person sees of both."""

import asyncio
import hashlib
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.conversation import Request, Text, User
from headwater.records import IdempotencyKey, Run
from tests.server_native.serving import Served, served, settings_of, store_url, until

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
IMAGE = {"content-type": "image/png"}


async def compare(server: Served, *models: str, **more: Any) -> Any:
    answer = await server.post("/api/groups", {"models": models, "content": "Hello"} | more)
    assert answer.status == 201, answer.body
    assert answer.headers["location"] == f"/api/groups/{answer.json['id']}"
    return answer.json


async def test_each_pane_is_stopped_on_its_own_and_says_how_it_ended(server: Served) -> None:
    """C80, C81, C82."""
    group = await compare(server, "hang", "hang", "fast", "cut")
    runs = [pane["run"] for pane in group["panes"]]
    assert [pane["model"] for pane in group["panes"]] == ["hang", "hang", "fast", "cut"]
    assert {run["on_disconnect"] for run in runs} == {"cancel"}
    assert len({run["session_id"] for run in runs}) == 4
    for run in runs[:2]:
        async with server.stream(f"/api/runs/{run['id']}/events") as events:
            while (frame := await events.next()) is not None and b"t2 " not in frame.data:
                pass
    stopped = (await server.post(f"/api/runs/{runs[0]['id']}/stop")).json
    assert stopped["upstream_closed"] is True
    await server.ended(runs[2]["id"])
    await server.ended(runs[3]["id"])
    shown = (await server.get(f"/api/groups/{group['id']}")).json
    assert [pane["run"]["status"] for pane in shown["panes"]] == ["stopped", "running", "completed", "failed"]
    hung = [asked for asked in server.simulator.requests if asked.body and "stall" in asked.body["model"]]
    assert sorted(asked.ending or "open" for asked in hung)[1:] == ["open"]
    assert shown["picked_id"] is None
    # Its partial is saved once.
    items = (await server.get(f"/api/sessions/{runs[0]['session_id']}/messages")).json["items"]
    assert [item.get("content") for item in items if item["kind"] == "message"] == ["Hello", "t0 t1 t2 "]


async def test_a_pane_that_nobody_follows_is_stopped(tmp_path_factory: pytest.TempPathFactory) -> None:
    """C41."""
    settings = settings_of(store_url("memory", tmp_path_factory.mktemp("x")), linger_s=0.05)
    async with served(settings) as server:
        group = await compare(server, "hang")
        path = f"/api/runs/{group['panes'][0]['run']['id']}"
        run = (await until(lambda: server.get(path), lambda answer: answer.json["status"] != "running")).json
        assert run["outcome"] == {"type": "stopped", "reason": "disconnect"}


async def test_panes_are_hidden_until_one_is_picked(server: Served) -> None:
    group = await compare(server, "fast", "demo/echo")
    sessions = [pane["session_id"] for pane in group["panes"]]
    for pane in group["panes"]:
        await server.ended(pane["run"]["id"])
    assert (await server.get("/api/sessions")).json["sessions"] == []
    more = await server.post(f"/api/groups/{group['id']}/messages", {"content": "And now?"})
    assert more.status == 201
    runs = [pane["run"]["id"] for pane in more.json["panes"]]
    assert not {*runs} & {pane["run"]["id"] for pane in group["panes"]}
    for run_id in runs:
        assert (await server.ended(run_id))["status"] == "completed"
    picked = await server.post(f"/api/groups/{group['id']}/pick", {"session_id": sessions[1]})
    assert picked.json["picked_id"] == sessions[1]
    assert [one["id"] for one in (await server.get("/api/sessions")).json["sessions"]] == [sessions[1]]
    items = (await server.get(f"/api/sessions/{sessions[1]}/messages")).json["items"]
    assert [item["content"] for item in items] == ["Hello", "Hello", "And now?", "And now?"]
    assert (await server.post(f"/api/groups/{group['id']}/pick", {"session_id": "none"})).status == 404
    # A pane that was deleted is no more.
    assert (await server.ask("DELETE", f"/api/sessions/{sessions[0]}")).status == 204
    assert len((await server.get(f"/api/groups/{group['id']}")).json["panes"]) == 1


async def test_comparisons_are_listed_newest_first_and_deleted_with_what_was_not_picked(server: Served) -> None:
    made = [await compare(server, "fast", "demo/echo", content=f"Question {n}") for n in range(3)]
    for group in made:
        for pane in group["panes"]:
            await server.ended(pane["run"]["id"])
    page = (await server.get("/api/groups?limit=2")).json
    assert [(group["id"], group["title"]) for group in page["groups"]] == [
        (made[2]["id"], "Question 2"),
        (made[1]["id"], "Question 1"),
    ]
    assert page["groups"][0]["panes"] == [
        {"session_id": pane["session_id"], "model": pane["model"]} for pane in made[2]["panes"]
    ]
    rest = (await server.get(f"/api/groups?limit=2&before={page['next']}")).json
    assert [group["id"] for group in rest["groups"]] == [made[0]["id"]]
    assert rest["next"] is None
    picked, other = (pane["session_id"] for pane in made[0]["panes"])
    await server.post(f"/api/groups/{made[0]['id']}/pick", {"session_id": picked})
    assert (await server.ask("DELETE", f"/api/groups/{made[0]['id']}")).status == 204
    assert (await server.get(f"/api/groups/{made[0]['id']}")).status == 404
    assert (await server.get(f"/api/sessions/{other}")).status == 404
    assert (await server.get(f"/api/sessions/{picked}")).json["group_id"] is None
    assert len((await server.get("/api/groups")).json["groups"]) == 2
    busy = await compare(server, "hang")
    refused = await server.ask("DELETE", f"/api/groups/{busy['id']}")
    assert (refused.status, refused.code) == (409, "session_busy")


async def test_a_busy_pane_refuses_for_all(server: Served) -> None:
    group = await compare(server, "fast", "hang")
    await server.ended(group["panes"][0]["run"]["id"])
    answer = await server.post(f"/api/groups/{group['id']}/messages", {"content": "x"})
    assert (answer.status, answer.code) == (409, "session_busy")
    assert answer.error["active_run_id"] == group["panes"][1]["run"]["id"]
    # So it does for one with a key that was not used yet; and what was not asked may be asked again with it.
    key = {"idempotency-key": "again"}
    for _ in range(2):
        answer = await server.post(f"/api/groups/{group['id']}/messages", {"content": "x"}, headers=key)
        assert (answer.status, answer.code) == (409, "session_busy")
    await server.post(f"/api/runs/{group['panes'][1]['run']['id']}/stop")
    answer = await server.post(f"/api/groups/{group['id']}/messages", {"content": "x"}, headers=key)
    assert answer.status == 201
    assert "idempotency-replayed" not in answer.headers


async def test_what_is_said_to_all_at_once_is_said_or_refused(server: Served) -> None:
    """By all of them, or by none; and what is said last has them busy."""
    group = await compare(server, "hang", "hang", "hang")
    for pane in group["panes"]:
        await server.post(f"/api/runs/{pane['run']['id']}/stop")
    path, texts = f"/api/groups/{group['id']}/messages", [f"m{n}" for n in range(6)]
    answers = await asyncio.gather(
        *(server.post(path, {"content": text}, headers={"idempotency-key": text}) for text in texts)
    )
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409, 409, 409]
    [heard] = [text for text, answer in zip(texts, answers, strict=True) if answer.status == 201]
    for pane in group["panes"]:
        items = (await server.get(f"/api/sessions/{pane['session_id']}/messages")).json["items"]
        said = [item["content"] for item in items if item["kind"] == "message" and item["role"] == "user"]
        assert said == ["Hello", heard]


async def test_what_a_request_did_not_come_to_ask_is_asked_when_it_is_sent_again(server: Served) -> None:
    group = await compare(server, "fast", "fast")
    before = [await server.ended(pane["run"]["id"]) for pane in group["panes"]]
    path, body = f"/api/groups/{group['id']}/messages", b'{"content": "x"}'
    digest = hashlib.sha256(f"POST {path}\n".encode() + body).hexdigest()
    services = server.services
    now, session_id = services.clock.unix_s(), before[0]["session_id"]
    run = Run(id="run_half", owner="local", model="fast", created_at=now, session_id=session_id)
    half = services.sessions.said(run, Request((User((Text("x"),)),)))
    await services.runs.start(replace(half, idempotency=IdempotencyKey("half", digest)))
    again = await server.ask("POST", path, raw=body, headers={"idempotency-key": "half"})
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")
    runs = [pane["run"]["id"] for pane in again.json["panes"]]
    assert runs[0] == "run_half"
    assert runs[1] != before[1]["id"]
    assert len((await server.get("/api/runs")).json["runs"]) == 4


async def test_a_comparison_without_panes_can_be_told_nothing(server: Served) -> None:
    group = await compare(server, "fast")
    await server.ended(group["panes"][0]["run"]["id"])
    await server.ask("DELETE", f"/api/sessions/{group['panes'][0]['session_id']}")
    answer = await server.post(f"/api/groups/{group['id']}/messages", {"content": "x"})
    assert (answer.status, answer.code) == (409, "no_panes")


async def test_a_comparison_that_is_asked_for_twice_is_made_once(server: Served) -> None:
    key = {"idempotency-key": "g"}
    body = {"models": ["fast", "demo/echo"], "content": "Hello"}
    first = await server.post("/api/groups", body, headers=key)
    again = await server.post("/api/groups", body, headers=key)
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")
    assert again.json["id"] == first.json["id"]
    assert [pane["run"]["id"] for pane in again.json["panes"]] == [pane["run"]["id"] for pane in first.json["panes"]]
    other = await server.post("/api/groups", body | {"content": "Bye"}, headers=key)
    assert (other.status, other.code) == (422, "idempotency_key_reused")
    assert len((await server.get("/api/runs")).json["runs"]) == 2
    # The key is the comparison's, and nothing else is asked for with it.
    elsewhere = await server.post("/api/runs", {"model": "fast", "input": "Hello"}, headers=key)
    assert (elsewhere.status, elsewhere.code) == (422, "idempotency_key_reused")
    unknown = await server.post("/api/groups", body | {"models": ["fast", "demo/none"]})
    assert unknown.status == 404
    assert len((await server.get("/api/runs")).json["runs"]) == 2


# -------------------------------------------------------------------------- images


async def test_an_image_is_kept_by_its_hash_and_shown_to_the_model(server: Served) -> None:
    put = await server.ask("POST", "/api/blobs", raw=PNG, headers=IMAGE)
    assert (put.status, put.json["media_type"], put.json["size_bytes"]) == (201, "image/png", len(PNG))
    hash = put.json["hash"]
    assert put.headers["location"] == f"/api/blobs/{hash}"
    assert (await server.ask("POST", "/api/blobs", raw=PNG, headers=IMAGE)).json == put.json
    got = await server.get(f"/api/blobs/{hash}")
    assert (got.body, got.headers["content-type"]) == (PNG, "image/png")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in got.headers["content-security-policy"]


@pytest.mark.parametrize("model", ["fast", "responses/sim/tokens-5", "messages/sim/tokens-5"])
async def test_an_image_is_shown_to_a_model_of_any_dialect(server: Served, model: str) -> None:
    hash = (await server.ask("POST", "/api/blobs", raw=PNG, headers=IMAGE)).json["hash"]
    parts = [{"type": "image", "blob": hash}]
    session_id = await server.session()
    said = await server.say(session_id, "Look", model, parts=parts)
    assert said["message"]["parts"] == parts
    await server.ended(said["run"]["id"])
    changed = {"model": model, "content": "Look here", "parts": parts}
    edited = await server.ask("PUT", f"/api/sessions/{session_id}/messages/{said['message']['id']}", changed)
    await server.ended(edited.json["run"]["id"])
    looking = {"content": "Look", "parts": parts}
    again = await server.post("/api/runs", {"model": model, "session_id": session_id, "messages": [looking]})
    alone = await server.post("/api/runs", {"model": model, "messages": [looking]})
    group = await compare(server, model, parts=parts)
    for run in (again.json, alone.json, group["panes"][0]["run"]):
        assert (await server.ended(run["id"]))["status"] == "completed"
    asked = [one.body for one in server.simulator.requests if one.method == "POST"]
    assert len(asked) == 5
    for body in asked:
        told = (body.get("input") or body["messages"])[-1]["content"]
        assert "iVBOR" in str(told[-1])
    by_url = await server.say(session_id, "", "fast", parts=[{"type": "image", "url": "https://example.com/x.png"}])
    assert by_url["message"]["parts"] == [{"type": "image", "url": "https://example.com/x.png"}]


@pytest.mark.parametrize("data", [b"<svg/>", b"", b"RIFF0000WAVE", b"GIF88a"])
async def test_what_is_no_image_is_refused(server: Served, data: bytes) -> None:
    answer = await server.ask("POST", "/api/blobs", raw=data, headers=IMAGE)
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    answer = await server.ask("POST", "/api/blobs", raw=PNG, headers={"content-type": "text/html"})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")


async def test_many_comparisons_at_once_disturb_nobody(server: Served) -> None:
    groups = await asyncio.gather(*(compare(server, "fast", "demo/echo") for _ in range(4)))
    for group in groups:
        for pane in group["panes"]:
            assert (await server.ended(pane["run"]["id"]))["status"] == "completed"


async def test_what_was_said_to_all_has_its_key(server: Served) -> None:
    group = await compare(server, "fast", "fast")
    for pane in group["panes"]:
        await server.ended(pane["run"]["id"])
    path, key = f"/api/groups/{group['id']}/messages", {"idempotency-key": "m"}
    first = await server.post(path, {"content": "x"}, headers=key)
    again = await server.post(path, {"content": "x"}, headers=key)
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")
    assert [pane["run"]["id"] for pane in again.json["panes"]] == [pane["run"]["id"] for pane in first.json["panes"]]
    elsewhere = await server.post("/api/runs", {"model": "fast", "input": "Hello"}, headers=key)
    assert (elsewhere.status, elsewhere.code) == (422, "idempotency_key_reused")


async def test_a_comparison_that_was_deleted_is_not_made_again_by_its_key(server: Served) -> None:
    body, key = {"models": ["fast", "fast"], "content": "Hello"}, {"idempotency-key": "d"}
    group = (await server.post("/api/groups", body, headers=key)).json
    for pane in group["panes"]:
        await server.ended(pane["run"]["id"])
    assert (await server.ask("DELETE", f"/api/groups/{group['id']}")).status == 204
    again = await server.post("/api/groups", body, headers=key)
    assert (again.status, again.code) == (404, "not_found")
    assert "was deleted" in again.error["message"]
    assert (await server.get("/api/groups")).json["groups"] == []
