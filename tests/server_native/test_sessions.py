"""Conversations by the native API, and what waits in them."""

import asyncio
from typing import Any

import pytest

from tests.server_native.serving import Served, until

pytestmark = pytest.mark.anyio


async def items(server: Served, session_id: str, query: str = "") -> list[Any]:
    answer = await server.get(f"/api/sessions/{session_id}/messages{query}")
    assert answer.status == 200
    found: list[Any] = answer.json["items"]
    return found


async def talk(server: Served, session_id: str, *contents: str, model: str = "demo/echo") -> list[Any]:
    for content in contents:
        said = await server.say(session_id, content, model)
        await server.ended(said["run"]["id"])
    return await items(server, session_id)


async def test_a_session_is_made_changed_and_deleted(server: Served) -> None:
    parameters = {"model": "demo/echo", "system": "Be brief.", "temperature": 0.2, "max_tokens": 50, "stop": ["x"]}
    made = await server.post("/api/sessions", {"id": "mine", "title": "First", "parameters": parameters})
    assert (made.status, made.headers["location"]) == (201, "/api/sessions/mine")
    assert made.json["parameters"] == parameters
    assert (await server.post("/api/sessions", {"id": "mine"})).code == "session_exists"
    first = await server.post("/api/sessions/mine/messages", {"content": "Hello there"})
    await server.ended(first.json["run"]["id"])
    assert first.json["run"]["model"] == "demo/echo"
    [question, answer] = await items(server, "mine")
    patched = await server.ask(
        "PATCH", "/api/sessions/mine", {"title": "Second", "read_id": answer["id"], "parameters": {}}
    )
    assert patched.status == 200
    assert (patched.json["title"], patched.json["read_id"]) == ("Second", answer["id"])
    assert patched.json["parameters"] == {}
    assert patched.json["head_id"] == answer["id"]
    shown = await server.get("/api/sessions/mine")
    assert shown.json == patched.json
    for patch in ({"read_id": "msg_none"}, {"head_id": "msg_none"}):
        assert (await server.ask("PATCH", "/api/sessions/mine", patch)).status == 404
    assert (await server.ask("DELETE", "/api/sessions/mine")).status == 204
    assert (await server.get("/api/sessions/mine")).status == 404
    assert question["content"] == "Hello there"


async def test_a_session_that_is_not_there_can_not_be_talked_in(server: Served) -> None:
    for body in ({"content": "x"}, {"content": "x", "model": "fast"}):
        assert (await server.post("/api/sessions/none/messages", body)).status == 404
    key = {"idempotency-key": "k"}
    session_id = await server.session()
    body = {"content": "x", "model": "fast"}
    path = f"/api/sessions/{session_id}/messages"
    await server.ended((await server.post(path, body, headers=key)).json["run"]["id"])
    assert (await server.ask("DELETE", f"/api/sessions/{session_id}")).status == 204
    assert (await server.post(path, body, headers=key)).status == 404


async def test_the_first_message_gives_a_title(server: Served) -> None:
    session_id = await server.session()
    await talk(server, session_id, "How do rivers meander? Tell me.", "More")
    assert (await server.get(f"/api/sessions/{session_id}")).json["title"] == "How do rivers meander?"


async def test_the_sessions_parameters_go_to_the_model(server: Served) -> None:
    session_id = await server.session(parameters={"model": "fast", "system": "Be brief.", "temperature": 0.5})
    body = {"content": "Hi", "parameters": {"max_tokens": 7}}
    run = (await server.post(f"/api/sessions/{session_id}/messages", body)).json["run"]
    await server.ended(run["id"])
    asked = server.simulator.requests[-1].body
    assert (asked["temperature"], asked["max_tokens"]) == (0.5, 7)
    assert [message["content"] for message in asked["messages"]] == ["Be brief.", "Hi"]


async def test_sessions_are_listed_in_pages_and_searched(server: Served) -> None:
    made = [await server.session(title=f"S{n}") for n in range(3)]
    await talk(server, made[0], "A walrus sings")
    first = (await server.get("/api/sessions?limit=2")).json
    assert len(first["sessions"]) == 2
    rest = (await server.get(f"/api/sessions?limit=2&before={first['next']}")).json
    assert {one["id"] for one in (*first["sessions"], *rest["sessions"])} == set(made)
    assert rest["next"] is None
    hits = (await server.get("/api/sessions/search?q=walrus&limit=5")).json["hits"]
    assert {hit["session_id"] for hit in hits} == {made[0]}
    assert all(hit["created_at"].endswith("Z") for hit in hits)
    assert (await server.get("/api/sessions/search?q=")).code == "invalid_value"


async def test_a_stopped_answer_is_a_partial_and_a_notice(server: Served) -> None:
    """C43, C45."""
    session_id = await server.session()
    run_id = (await server.say(session_id, model="hang"))["run"]["id"]
    async with server.stream(f"/api/runs/{run_id}/events") as events:
        while (frame := await events.next()) is not None and b"t2 " not in frame.data:
            pass
    assert (await server.get(f"/api/sessions/{session_id}")).json["active_run_id"] == run_id
    assert (await server.ask("DELETE", f"/api/sessions/{session_id}")).code == "session_busy"
    await server.post(f"/api/runs/{run_id}/stop")
    [_, answer, notice] = await items(server, session_id)
    assert (answer["content"], answer["status"], answer["run_id"]) == ("t0 t1 t2 ", "partial", run_id)
    assert answer["outcome"] == {"type": "stopped", "reason": "user"}
    assert (notice["kind"], notice["code"], notice["text"]) == ("notice", "stopped", "Stopped by you.")


async def test_an_edit_is_a_new_branch_and_the_old_one_stays(server: Served) -> None:
    session_id = await server.session()
    before = await talk(server, session_id, "One", "Two")
    path = f"/api/sessions/{session_id}/messages/{before[2]['id']}"
    answer = await server.ask("PUT", path, {"content": "Three", "model": "demo/echo"})
    assert answer.status == 201
    assert answer.json["message"]["content"] == "Three"
    assert answer.json["message"]["siblings"] == [before[2]["id"], answer.json["message"]["id"]]
    await server.ended(answer.json["run"]["id"])
    after = await items(server, session_id)
    assert [item["content"] for item in after] == ["One", "One", "Three", "Three"]
    assert [item["content"] for item in await items(server, session_id, f"?head_id={before[3]['id']}")] == [
        "One",
        "One",
        "Two",
        "Two",
    ]
    assert (await server.get(f"/api/sessions/{session_id}/messages?head_id=none")).status == 404
    back = await server.ask("PATCH", f"/api/sessions/{session_id}", {"head_id": before[2]["id"]})
    assert back.json["head_id"] == before[3]["id"]
    wrong = await server.ask(
        "PUT", f"/api/sessions/{session_id}/messages/{before[1]['id']}", {"content": "x", "model": "fast"}
    )
    assert (wrong.status, wrong.code) == (409, "not_editable")
    missing = await server.ask("PUT", f"/api/sessions/{session_id}/messages/none", {"content": "x", "model": "fast"})
    assert missing.status == 404


async def test_an_answer_is_given_again_beside_the_old_one(server: Served) -> None:
    session_id = await server.session()
    before = await talk(server, session_id, "One")
    path = f"/api/sessions/{session_id}/messages/{before[1]['id']}/regenerate"
    answer = await server.post(path, {"model": "fast"})
    assert (answer.status, answer.json["message"]) == (201, None)
    await server.ended(answer.json["run"]["id"])
    after = await items(server, session_id)
    assert after[0] == before[0]
    assert after[1]["siblings"] == [before[1]["id"], after[1]["id"]]
    assert after[1]["content"] == "t0 t1 t2 t3 t4 "
    assert (await server.post(f"/api/sessions/{session_id}/messages/none/regenerate", {"model": "fast"})).status == 404


async def test_a_fork_goes_its_own_way(server: Served) -> None:
    session_id = await server.session(title="Old")
    before = await talk(server, session_id, "One", "Two")
    answer = await server.post(f"/api/sessions/{session_id}/fork", {"message_id": before[1]["id"]})
    assert answer.status == 201
    assert answer.json["forked_from"] == session_id
    assert [item["content"] for item in await items(server, answer.json["id"])] == ["One", "One"]
    assert (await server.post(f"/api/sessions/{session_id}/fork", {"message_id": "none"})).status == 404


async def test_a_cut_answer_is_gone_on_with_in_the_fork_that_has_a_copy_of_it(server: Served) -> None:
    session_id, other = await server.session(), await server.session()
    cut = (await server.say(session_id, "One", "cut"))["run"]["id"]
    await server.ended(cut)
    before = await items(server, session_id)
    fork = (await server.post(f"/api/sessions/{session_id}/fork", {"message_id": before[1]["id"]})).json["id"]
    path = f"/api/runs/{cut}/continue"
    for elsewhere in (other, "none"):
        assert (await server.post(path, {"model": "fast", "session_id": elsewhere})).status == 404
    gone_on = await server.post(path, {"model": "fast", "session_id": fork})
    assert (gone_on.status, gone_on.json["run"]["session_id"]) == (201, fork)
    await server.ended(gone_on.json["run"]["id"])
    copied = await items(server, fork)
    assert [item["content"] for item in copied if item["kind"] == "message"] == ["One", "t0 t1 t2 ", "t0 t1 t2 t3 t4 "]
    assert copied[-1]["continues"] == copied[1]["id"]
    assert await items(server, session_id) == before
    # Its own session may be named, and need not be.
    for body in ({"session_id": session_id}, {}):
        run = (await server.post(path, {"model": "fast"} | body)).json["run"]
        assert run["session_id"] == session_id
        await server.ended(run["id"])


async def test_a_fork_goes_on_with_what_was_cut_when_its_origin_is_deleted(server: Served) -> None:
    session_id = await server.session()
    cut = (await server.say(session_id, "One", "cut"))["run"]["id"]
    await server.ended(cut)
    whole = (await server.say(session_id, "Two", "fast"))["run"]["id"]
    await server.ended(whole)
    last = (await items(server, session_id))[-1]["id"]
    fork = (await server.post(f"/api/sessions/{session_id}/fork", {"message_id": last})).json["id"]
    assert (await server.ask("DELETE", f"/api/sessions/{session_id}")).status == 204
    path = f"/api/runs/{cut}/continue"
    assert (await server.post(path, {"model": "fast"})).status == 404
    gone_on = await server.post(path, {"session_id": fork})
    assert (gone_on.status, gone_on.json["run"]["model"]) == (201, "cut"), gone_on.body
    assert gone_on.json["run"]["session_id"] == fork
    await server.ended(gone_on.json["run"]["id"])
    done = await server.post(f"/api/runs/{whole}/continue", {"session_id": fork})
    assert (done.status, done.code) == (409, "run_complete")
    assert (await server.post("/api/runs/run_none/continue", {"session_id": fork})).status == 404


async def test_a_session_is_taken_away(server: Served) -> None:
    session_id = await server.session(title="Mine", id="a:b~c")
    await talk(server, session_id, "Hello")
    markdown = await server.get(f"/api/sessions/{session_id}/export")
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert markdown.headers["content-disposition"] == 'attachment; filename="a_b_c.md"'
    assert markdown.body.decode().startswith("# Mine\n")
    exported = await server.get(f"/api/sessions/{session_id}/export?format=json")
    assert exported.json["session"]["id"] == session_id


# -------------------------------------------------------------------------- queue


async def queue_of(server: Served, session_id: str) -> Any:
    return (await server.get(f"/api/sessions/{session_id}/queue")).json


async def test_what_is_queued_is_changed_ordered_taken_out_and_goes_on(server: Served) -> None:
    """C52."""
    session_id = await server.session()
    path = f"/api/sessions/{session_id}/queue"
    active = (await server.say(session_id, model="hang"))["run"]["id"]
    queued = [await server.say(session_id, text, multitask="queue") for text in ("A", "B", "C")]
    runs = [one["run"]["id"] for one in queued]
    assert [one["run"]["status"] for one in queued] == ["queued"] * 3
    assert queued[0]["message"]["content"] == "A"
    shown = await queue_of(server, session_id)
    assert shown["paused"] is False
    assert [(item["content"], item["run"]["id"]) for item in shown["items"]] == list(zip("ABC", runs, strict=True))
    assert (await server.get(f"/api/sessions/{session_id}")).json["queued"] == 3
    edit = {"run_id": runs[2], "content": "C2", "parts": [{"type": "image", "url": "https://example.com/c.png"}]}
    changed = await server.ask("PATCH", path, {"edit": edit, "order": [runs[2]]})
    assert changed.status == 200
    assert [item["content"] for item in changed.json["items"]] == ["C2", "A", "B"]
    assert changed.json["items"][0]["parts"] == [{"type": "image", "url": "https://example.com/c.png"}]
    assert (await server.ask("DELETE", f"{path}?run_id={runs[0]}")).status == 204
    assert (await server.ask("DELETE", f"{path}?run_id={runs[0]}")).status == 404
    # A stop pauses the queue, and a person lets it go on.
    await server.post(f"/api/runs/{active}/stop")
    assert (await queue_of(server, session_id))["paused"] is True
    gone_on = await server.ask("PATCH", path, {"resume": True})
    assert gone_on.json["paused"] is False
    for run_id in (runs[2], runs[1]):
        assert (await server.ended(run_id))["status"] == "completed"
    said = [item["content"] for item in (await items(server, session_id)) if item.get("role") == "user"]
    assert said == ["Hello", "C2", "B"]
    # Nothing waits: nothing happens.
    assert (await server.ask("PATCH", path, {"resume": True})).json["items"] == []


async def test_what_is_no_longer_queued_can_not_be_changed(server: Served) -> None:
    session_id = await server.session()
    run_id = (await server.say(session_id, model="hang"))["run"]["id"]
    edit = {"edit": {"run_id": run_id, "content": "x"}, "order": [run_id], "resume": True}
    assert (await server.ask("PATCH", f"/api/sessions/{session_id}/queue", edit)).status == 404
    await server.say(session_id, "A", multitask="queue")
    await server.say(session_id, "B", multitask="queue")
    assert (await server.ask("DELETE", f"/api/sessions/{session_id}/queue")).status == 204
    assert (await queue_of(server, session_id))["items"] == []


async def test_what_is_queued_with_a_history_of_its_own_is_asked_as_it_was_edited(server: Served) -> None:
    session_id = await server.session()
    active = (await server.say(session_id, model="hang"))["run"]["id"]
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Old"},
        {"role": "assistant", "content": "Yes"},
        {"role": "user", "content": "New"},
    ]
    body = {"model": "fast", "messages": history, "session_id": session_id, "multitask": "queue"}
    queued = (await server.post("/api/runs", body)).json["id"]
    edit = {"edit": {"run_id": queued, "content": "Newer"}}
    assert (await server.ask("PATCH", f"/api/sessions/{session_id}/queue", edit)).status == 200
    await server.post(f"/api/runs/{active}/stop")
    await server.ask("PATCH", f"/api/sessions/{session_id}/queue", {"resume": True})
    await server.ended(queued)
    asked = server.simulator.requests[-1].body
    assert [message["content"] for message in asked["messages"]] == ["Be brief.", "Old", "Yes", "Newer"]
    said = [item["content"] for item in await items(server, session_id) if item.get("role") == "user"]
    assert said == ["Hello", "Newer"]


async def test_a_queued_message_is_edited_only_to_what_could_have_been_said(server: Served) -> None:
    session_id = await server.session()
    await server.say(session_id, model="hang")
    queued = (await server.say(session_id, "A", "messages/sim/tokens-5", multitask="queue"))["run"]["id"]
    for content, image in (("", None), ("x", "data:image/tiff;base64,AAAA")):
        parts = [{"type": "image", "url": image}] if image else []
        said = {"content": content, "parts": parts}
        new = await server.post(f"/api/sessions/{session_id}/messages", said | {"model": "messages/sim/tokens-5"})
        edit = {"edit": said | {"run_id": queued}}
        edited = await server.ask("PATCH", f"/api/sessions/{session_id}/queue", edit)
        assert (edited.status, edited.json) == (400, new.json)
    assert [item["content"] for item in (await queue_of(server, session_id))["items"]] == ["A"]


async def test_what_brings_no_words_to_the_queue_can_not_be_given_others(server: Served) -> None:
    session_id = await server.session()
    before = await talk(server, session_id, "One")
    cut = (await server.say(session_id, "Two", "cut"))["run"]["id"]
    await server.ended(cut)
    await server.say(session_id, model="hang")
    again = {"model": "fast", "multitask": "queue"}
    paths = (f"/api/sessions/{session_id}/messages/{before[1]['id']}/regenerate", f"/api/runs/{cut}/continue")
    for path in paths:
        queued = (await server.post(path, again)).json["run"]["id"]
        edit = {"edit": {"run_id": queued, "content": "x"}, "order": [queued]}
        answer = await server.ask("PATCH", f"/api/sessions/{session_id}/queue", edit)
        assert (answer.status, answer.code) == (409, "not_editable")
    assert [item["content"] for item in (await queue_of(server, session_id))["items"]] == ["", ""]


async def test_a_queue_is_changed_as_asked_or_not_at_all(server: Served) -> None:
    session_id = await server.session()
    path = f"/api/sessions/{session_id}/queue"
    active = (await server.say(session_id, model="hang"))["run"]["id"]
    runs = [(await server.say(session_id, text, multitask="queue"))["run"]["id"] for text in ("A", "B")]
    edit = {"run_id": runs[0], "content": "A2"}
    for unknown in (active, "run_none"):
        answer = await server.ask("PATCH", path, {"edit": edit, "order": [runs[1], unknown], "resume": True})
        assert answer.status == 404
        assert [item["content"] for item in (await queue_of(server, session_id))["items"]] == ["A", "B"]


async def test_a_session_is_changed_as_asked_or_not_at_all(server: Served) -> None:
    session_id = await server.session(title="T")
    before = await talk(server, session_id, "One")
    path = f"/api/sessions/{session_id}/messages/{before[1]['id']}/regenerate"
    await server.ended((await server.post(path, {"model": "fast"})).json["run"]["id"])
    was = (await server.get(f"/api/sessions/{session_id}")).json
    assert was["head_id"] != before[1]["id"]
    for patch in ({"head_id": before[1]["id"], "read_id": "none"}, {"head_id": "none", "read_id": before[1]["id"]}):
        answer = await server.ask("PATCH", f"/api/sessions/{session_id}", patch | {"title": "Other"})
        assert answer.status == 404
        assert (await server.get(f"/api/sessions/{session_id}")).json == was
    both = {"head_id": before[0]["id"], "read_id": before[1]["id"], "title": "Other"}
    changed = (await server.ask("PATCH", f"/api/sessions/{session_id}", both)).json
    assert (changed["head_id"], changed["read_id"], changed["title"]) == (was["head_id"], before[1]["id"], "Other")


async def test_a_message_may_take_the_place_of_the_active_run(server: Served) -> None:
    """C52."""
    session_id = await server.session()
    first = (await server.say(session_id, model="hang"))["run"]["id"]
    second = (await server.say(session_id, "Instead", multitask="interrupt"))["run"]["id"]
    assert (await server.ended(first))["outcome"] == {"type": "stopped", "reason": "replaced"}
    assert (await server.ended(second))["status"] == "completed"


async def test_a_run_in_a_session_may_be_asked_for_as_a_run(server: Served) -> None:
    session_id = await server.session()
    run = await server.run("Hello", "demo/echo", session_id=session_id, on_cut="continue")
    assert run["session_id"] == session_id
    await server.ended(run["id"])
    assert [item["content"] for item in await items(server, session_id)] == ["Hello", "Hello"]
    runs = (await server.get(f"/api/runs?session_id={session_id}")).json["runs"]
    assert [one["id"] for one in runs] == [run["id"]]


async def test_two_tabs_see_the_same_queue_drain(server: Served) -> None:
    session_id = await server.session()
    texts = [f"m{n}" for n in range(8)]
    said = await asyncio.gather(*(server.say(session_id, text, "fast", multitask="queue") for text in texts))
    for one in said:
        await server.ended(one["run"]["id"])

    async def messages() -> list[Any]:
        return await items(server, session_id)

    found = await until(messages, lambda found: len(found) == 16)
    assert sorted(item["content"] for item in found if item["role"] == "user") == texts


async def test_a_fork_at_a_half_goes_on_from_it_though_its_run_went_on(server: Served) -> None:
    session_id = await server.session()
    run = await server.run(model="responses/sim/tokens-7,cut-after-3x1", session_id=session_id, on_cut="continue")
    assert (await server.ended(run["id"]))["status"] == "completed"
    items = (await server.get(f"/api/sessions/{session_id}/messages")).json["items"]
    half = next(item for item in items if item["kind"] == "message" and item["status"] == "partial")
    fork = (await server.post(f"/api/sessions/{session_id}/fork", {"message_id": half["id"]})).json["id"]
    path = f"/api/runs/{run['id']}/continue"
    assert (await server.post(path)).code == "run_complete"
    going_on = await server.post(path, {"session_id": fork, "model": "fast"})
    assert (going_on.status, going_on.json["run"]["session_id"]) == (201, fork)
