"""Names that clients choose, or make up: what can be a name can be reached, what can't names nothing, on every store."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from headwater.server.native.api import table
from headwater.server.native.streaming import OpenStreams
from tests.server.house import DIALECTS, House, open_house
from tests.store.postgres_backend import emptied

pytestmark = pytest.mark.anyio

NUL = "%00"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    match request.param:
        case "postgres":
            store = emptied(request.getfixturevalue("postgres"), "odd_names")
        case "sqlite":
            store = f"sqlite:{tmp_path / 'h.db'}"
        case _:
            store = "memory:"
    async with open_house(store) as opened:
        yield opened


def _fields(path: str) -> list[str]:
    return [part.strip("{}") for part in path.split("/") if part.startswith("{")]


NEEDED: dict[str, Any] = {
    "/api/runs/{run_id}/approvals/{call_id}": {"decision": "yes", "arguments_digest": "x"},
    "/api/sessions/{session_id}/messages": {"content": "Hi", "model": "demo/echo"},
    "/api/sessions/{session_id}/messages/{message_id}": {"content": "Hi", "model": "demo/echo"},
    "/api/sessions/{session_id}/messages/{message_id}/regenerate": {"model": "demo/echo"},
    "/api/sessions/{session_id}/fork": {"message_id": "x"},
    "/api/groups/{group_id}/messages": {"content": "Hi"},
    "/api/groups/{group_id}/pick": {"session_id": "x"},
}


async def test_a_null_character_in_a_path_names_nothing(house: House) -> None:
    await house.post("chat", "demo/echo", session_id="s")
    for one in table(OpenStreams()):
        for field in _fields(one.path):
            path = one.path.replace(f"{{{field}}}", f"a{NUL}b").replace("{session_id}", "s")
            for other in _fields(path):
                path = path.replace(f"{{{other}}}", "x")
            body = None if one.from_query else NEEDED.get(one.path, {})
            answer = await house.http.request(one.method, path, json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found"), (one.method, path)


QUERIES = [
    f"/api/runs?session_id={NUL}",
    f"/api/runs?before=0x1p3~{NUL}",
    f"/api/sessions?before=0x1p3~{NUL}",
    f"/api/groups?before=0x1p3~{NUL}",
    f"/api/events?runs=run_{NUL}:-1",
    f"/api/sessions/s/messages?head_id={NUL}",
    f"/api/sessions/s/queue?run_id={NUL}",
]
BODIES: list[tuple[str, str, Any]] = [
    ("POST", "/api/sessions/s/fork", {"message_id": "\0"}),
    ("PATCH", "/api/sessions/s", {"head_id": "\0"}),
    ("PATCH", "/api/sessions/s", {"read_id": "\0"}),
    ("PATCH", "/api/sessions/s/queue", {"order": ["\0"]}),
    ("PATCH", "/api/sessions/s/queue", {"edit": {"run_id": "\0", "content": "x"}}),
    ("POST", "/api/runs", {"input": "x", "model": "demo/echo", "session_id": "\0"}),
    ("POST", "/api/sessions", {"id": "a\0b"}),
    ("POST", "/api/groups/x/pick", {"session_id": "a\0b"}),
]


async def test_in_a_query_or_a_body_it_is_400(house: House) -> None:
    await house.post("chat", "demo/echo", session_id="s")
    queries = [("DELETE" if "queue" in path else "GET", path, None) for path in QUERIES]
    for method, path, body in [*queries, *BODIES]:
        answer = await house.http.request(method, path, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_value"), (method, path)


async def test_a_session_can_not_be_named_so_and_no_response_is(house: House) -> None:
    for dialect in DIALECTS:
        answer = await house.post(dialect, "demo/echo", session_id="a\0b")
        assert answer.status_code == 400, answer.text
        assert "session_id" in answer.json()["error"]["message"]
    for method, more in (("GET", ""), ("DELETE", ""), ("POST", "/cancel")):
        assert (await house.http.request(method, f"/v1/responses/resp_{NUL}{more}")).status_code == 404
    answer = await house.post("responses", "demo/echo", previous_response_id="resp_\0")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "previous_response_not_found")
    line = await house.line()
    line.ask("/v1/chat/completions", {"model": "demo/echo", "messages": []}, "x-session-id: a\0b")
    assert (await line.until(b"\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_what_is_said_may_have_one(house: House) -> None:
    for dialect in DIALECTS:
        answer = await house.post(dialect, "demo/echo", text="walrus\0tusk", session_id=dialect, store=True)
        assert answer.status_code in (200, 400), answer.text
    made = await house.http.post("/api/sessions", json={"id": "t", "title": "a\0b", "parameters": {"system": "\0"}})
    assert made.json()["title"] == "a\0b"
    said = await house.http.post("/api/sessions/t/messages", json={"content": "walrus\0tusk", "model": "demo/echo"})
    assert said.status_code == 201
    await house.services.runs.wait(None, said.json()["run"]["id"])
    items = (await house.http.get("/api/sessions/t/messages")).json()["items"]
    assert items[0]["content"] == "walrus\0tusk"
    hits = (await house.http.get(f"/api/sessions/search?q=walrus{NUL}tusk")).json()["hits"]
    assert "t" in {hit["session_id"] for hit in hits}
    assert (await house.http.get(f"/api/sessions/search?q={NUL}")).json()["hits"] == []


async def ask(house: House, method: str, path: str, body: Any = b"") -> tuple[int, Any]:
    """As it is written: a client's library may take `..` for a way up."""
    line = await house.line()
    line.ask(path, body, "content-type: application/json", "connection: close", method=method)
    head, _, said = (await line.rest()).partition(b"\r\n\r\n")
    is_json = b"application/json" in head and said
    return int(head.split(b" ")[1]), msgspec.json.decode(said) if is_json else said


@pytest.mark.parametrize("name", ["a/b", "a/messages", "/", "search", "ü ?#%", "%2F", ".", "..", "😀"])
async def test_a_session_that_a_client_has_named_is_reached(name: str) -> None:
    async with open_house() as house:
        assert (await house.post("chat", "demo/echo", session_id=name)).status_code == 200
        one = f"/api/sessions/{quote(name, safe='')}"
        status, session = await ask(house, "GET", one)
        assert (status, session["id"]) == (200, name)
        status, session = await ask(house, "PATCH", one, {"title": "Mine"})
        assert (status, session["title"]) == (200, "Mine")
        status, said = await ask(house, "GET", f"{one}/messages")
        assert (status, [item["content"] for item in said["items"]]) == (200, ["Hi", "Hi"])
        status, asked = await ask(house, "POST", f"{one}/messages", {"content": "Ho", "model": "demo/echo"})
        assert status == 201
        message_id = asked["message"]["id"]
        await house.services.runs.wait(None, asked["run"]["id"])
        status, asked = await ask(house, "POST", f"{one}/messages/{message_id}/regenerate", {"model": "demo/echo"})
        assert status == 201
        await house.services.runs.wait(None, asked["run"]["id"])
        edit = {"content": "He", "model": "demo/echo"}
        status, asked = await ask(house, "PUT", f"{one}/messages/{message_id}", edit)
        assert status == 201
        await house.services.runs.wait(None, asked["run"]["id"])
        status, forked = await ask(house, "POST", f"{one}/fork", {"message_id": message_id})
        assert (status, forked["forked_from"]) == (201, name)
        for rest in ("/export", "/export?format=json", "/queue"):
            assert (await ask(house, "GET", one + rest))[0] == 200
        assert (await ask(house, "PATCH", f"{one}/queue", {"resume": True}))[0] == 200
        assert (await ask(house, "DELETE", f"{one}/queue"))[0] == 204
        assert (await ask(house, "GET", f"/api/runs?session_id={quote(name, safe='')}"))[1]["runs"] != []
        assert (await ask(house, "GET", "/api/sessions/search?q=Hi"))[1]["hits"] != []
        assert (await ask(house, "DELETE", one))[0] == 204
        status, refused = await ask(house, "GET", one)
        assert (status, refused["error"]["message"]) == (404, "There is no such session.")


async def test_a_slash_in_a_name_is_part_of_no_other_path(house: House) -> None:
    assert (await ask(house, "GET", "/api/nothing%2Fhere"))[0] == 404
    status, refused = await ask(house, "GET", "/api/runs/x%2Fevents")
    assert (status, refused["error"]["message"]) == (404, "There is no such run.")
