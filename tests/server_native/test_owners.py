"""What is another's is as if it were not there, on every route; a route without its row here fails the test."""

from typing import Any

import pytest

from headwater.server.native.api import table
from headwater.server.native.streaming import OpenStreams
from tests.server_native.serving import Served

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20

# What bob sends to what is ann's. All of these are 404.
ANOTHERS: dict[tuple[str, str], Any] = {
    ("GET", "/api/runs/{run_id}"): None,
    ("GET", "/api/runs/{run_id}/events"): None,
    ("POST", "/api/runs/{run_id}/stop"): {},
    ("POST", "/api/runs/{run_id}/continue"): {},
    ("POST", "/api/runs/{run_id}/approvals/{call_id}"): {"decision": "yes", "arguments_digest": "x"},
    ("GET", "/api/sessions/{session_id}"): None,
    ("PATCH", "/api/sessions/{session_id}"): {"title": "Mine"},
    ("DELETE", "/api/sessions/{session_id}"): None,
    ("GET", "/api/sessions/{session_id}/messages"): None,
    ("POST", "/api/sessions/{session_id}/messages"): {"content": "Hi", "model": "fast"},
    ("PUT", "/api/sessions/{session_id}/messages/{message_id}"): {"content": "Hi", "model": "fast"},
    ("POST", "/api/sessions/{session_id}/messages/{message_id}/regenerate"): {"model": "fast"},
    ("POST", "/api/sessions/{session_id}/fork"): {"message_id": "{message_id}"},
    ("GET", "/api/sessions/{session_id}/export"): None,
    ("GET", "/api/sessions/{session_id}/queue"): None,
    ("PATCH", "/api/sessions/{session_id}/queue"): {"resume": True},
    ("DELETE", "/api/sessions/{session_id}/queue"): None,
    ("GET", "/api/groups/{group_id}"): None,
    ("DELETE", "/api/groups/{group_id}"): None,
    ("POST", "/api/groups/{group_id}/messages"): {"content": "Hi"},
    ("POST", "/api/groups/{group_id}/pick"): {"session_id": "{pane_id}"},
    ("GET", "/api/blobs/{hash}"): None,
}
# Those that name nobody's thing in their path, with what bob sends: ann's must not be in the answer.
OWN: dict[tuple[str, str], Any] = {
    ("GET", "/api/runs"): None,
    ("GET", "/api/sessions"): None,
    ("GET", "/api/groups"): None,
    ("GET", "/api/sessions/search"): "?q=secret",
    ("GET", "/api/events"): "?runs={run_id}:-1",
    ("GET", "/api/me"): None,
    ("GET", "/metrics"): None,
    ("POST", "/api/runs"): {"input": "x", "model": "fast", "session_id": "{session_id}"},
    ("POST", "/api/sessions"): {"id": "{session_id}"},
    ("POST", "/api/groups"): {"models": ["fast"], "content": "x", "parts": [{"type": "image", "blob": "{hash}"}]},
    ("POST", "/api/blobs"): None,
    ("POST", "/api/login"): {"key": "x"},
    ("POST", "/api/logout"): {},
}


async def anns(server: Served) -> dict[str, str]:
    return await things(server, key="ann")


async def things(server: Served, key: str | None = None) -> dict[str, str]:
    """One of each, by the names that paths have for them."""
    session = (await server.post("/api/sessions", {"title": "secret"}, key=key)).json
    secret = {"content": "secret", "model": "fast"}
    said = await server.post(f"/api/sessions/{session['id']}/messages", secret, key=key)
    run_id = said.json["run"]["id"]
    await server.services.runs.wait(None, run_id)
    group = (await server.post("/api/groups", {"models": ["fast"], "content": "secret"}, key=key)).json
    image = {"content-type": "image/png"}
    blob = (await server.ask("POST", "/api/blobs", raw=PNG, headers=image, key=key)).json
    return {
        "run_id": run_id,
        "call_id": "c",
        "session_id": session["id"],
        "message_id": said.json["message"]["id"],
        "group_id": group["id"],
        "pane_id": group["panes"][0]["session_id"],
        "hash": blob["hash"],
    }


def filled(given: Any, names: dict[str, str]) -> Any:
    match given:
        case str():
            for name, value in names.items():
                given = given.replace(f"{{{name}}}", value)
            return given
        case dict():
            return {key: filled(value, names) for key, value in given.items()}
        case list():
            return [filled(value, names) for value in given]
        case _:
            return given


def test_every_route_has_its_row() -> None:
    assert {(one.method, one.path) for one in table(OpenStreams())} == {*ANOTHERS, *OWN}


async def test_anothers_is_not_there(keyed: Served) -> None:
    names = await anns(keyed)
    for (method, path), body in ANOTHERS.items():
        answer = await keyed.ask(method, filled(path, names), filled(body, names), key="bob")
        assert (answer.status, answer.code) == (404, "not_found"), (method, path, answer.body)
    # And nothing has happened to it.
    for path in ("/api/runs/{run_id}", "/api/sessions/{session_id}", "/api/groups/{group_id}", "/api/blobs/{hash}"):
        assert (await keyed.get(filled(path, names), key="ann")).status == 200
    assert (await keyed.get(filled("/api/sessions/{session_id}", names), key="ann")).json["title"] == "secret"


async def test_nothing_of_anothers_is_in_a_list(keyed: Served) -> None:
    names = await anns(keyed)
    assert (await keyed.get("/api/runs", key="bob")).json["runs"] == []
    assert (await keyed.get("/api/sessions", key="bob")).json["sessions"] == []
    assert (await keyed.get("/api/groups", key="bob")).json["groups"] == []
    assert (await keyed.get("/api/groups", key="ann")).json["groups"] != []
    assert (await keyed.get("/api/sessions/search?q=secret", key="bob")).json["hits"] == []
    assert (await keyed.get("/api/sessions/search?q=secret", key="ann")).json["hits"] != []
    assert (await keyed.post("/api/runs", filled(OWN["POST", "/api/runs"], names), key="bob")).status == 404
    assert (await keyed.post("/api/groups", filled(OWN["POST", "/api/groups"], names), key="bob")).status == 404
    # The same id is another session: ids are unique for their owner only.
    assert (await keyed.post("/api/sessions", filled(OWN["POST", "/api/sessions"], names), key="bob")).status == 201
    events = f"/api/events?runs={names['run_id']}:-1"
    async with keyed.stream(events, authorization=f"Bearer {'b' * 20}") as stream:
        frame = await stream.next()
        assert frame is not None
        assert (frame.event, b"not_found" in frame.data) == ("gone", True)


async def test_the_same_key_of_another_owner_is_another_key(keyed: Served) -> None:
    body, headers = {"input": "x", "model": "fast"}, {"idempotency-key": "k"}
    first = await keyed.post("/api/runs", body, key="ann", headers=headers)
    other = await keyed.post("/api/runs", body, key="bob", headers=headers)
    assert (first.status, other.status) == (201, 201)
    assert first.json["id"] != other.json["id"]


async def test_nothing_is_told_without_a_key(keyed: Served) -> None:
    names = await anns(keyed)
    for (method, path), body in {**ANOTHERS, **OWN}.items():
        if path not in ("/api/login", "/api/logout"):
            sent = filled(body, names) if isinstance(body, dict) else None
            answer = await keyed.ask(method, filled(path, names), sent)
            assert (answer.status, answer.code) == (401, "key_needed"), (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"
