"""All that is served, route by route: who is let in. One that is new is held to be closed until a row here says more."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Route

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings
from headwater.server.native.serving import NoPath, PathApp
from headwater.server.process import Front
from tests.server.house import House, open_house
from tests.server_native.test_owners import ANOTHERS, OWN

pytestmark = pytest.mark.anyio

KEYS = tuple(
    KeySettings(owner=owner, key=Secret(owner[0] * 20), scopes=("chat", "approve", "admin")) for owner in ("ann", "bob")
)
# The page is the same for everybody, and what tells of the process tells of nobody.
OPEN = {("GET", "/healthz"), ("GET", "/readyz")}
# They need no key; but without keys, only from this machine.
FOR_VISITORS = {("GET", "/docs"), ("GET", "/openapi.json"), ("POST", "/api/login"), ("POST", "/api/logout")}
# Of the dialects: what bob sends to what is ann's, and the answer.
RESPONSES: dict[tuple[str, str], int] = {
    ("GET", "/v1/responses/{response_id}"): 404,
    ("DELETE", "/v1/responses/{response_id}"): 404,
    ("POST", "/v1/responses/{response_id}/cancel"): 404,
}
# And those that name nobody's thing in their path.
DIALECTS = {
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/responses"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{name:path}"),
}


def served(house: House) -> Iterator[tuple[str, str]]:
    """Method and path of everything but the page and its files."""
    app: Any = Front(house.services).app
    for route in app._app.routes:
        assert isinstance(route, Route)
        if isinstance(route.app, PathApp):
            yield from ((method, route.path) for method in route.app._by_method)
        elif not isinstance(route.app, NoPath) and "page_routes" not in route.endpoint.__module__:
            yield from ((method, route.path) for method in (route.methods or ()) if method != "HEAD")


def at(path: str, response_id: str = "resp_none") -> str:
    named = path.replace("{response_id}", response_id).replace("{name:path}", "demo/echo")
    for name in ("run_id", "call_id", "session_id", "message_id", "group_id", "hash"):
        named = named.replace(f"{{{name}}}", "none")
    assert "{" not in named, "a new parameter: say what to put there"
    return named


async def test_every_route_is_known_and_has_a_row_that_says_whose_it_is(house: House) -> None:
    assert set(served(house)) == {*ANOTHERS, *OWN, *RESPONSES, *DIALECTS, *OPEN, *FOR_VISITORS}


async def test_with_keys_none_is_open_without_one() -> None:
    async with open_house(keys=KEYS) as house:
        for method, path in served(house):
            answer = await house.http.request(method, at(path), json={} if method != "GET" else None)
            closed = (method, path) not in OPEN | FOR_VISITORS
            assert (answer.status_code == 401) == closed, (method, path, answer.status_code)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example:80"}, 421),
        ({"x-forwarded-for": "203.0.113.9"}, 403),
        ({"forwarded": "for=203.0.113.9"}, 403),
        ({"via": "1.1 proxy"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
async def test_without_keys_strangers_are_refused_on_all(house: House, sent: dict[str, str], status: int) -> None:
    """DNS rebinding, proxies, pages of other origins: before anything of the request is looked at."""
    for method, path in served(house):
        if (method, path) in OPEN or (path in ("/docs", "/openapi.json") and not {"host", "via"} & set(sent)):
            continue
        answer = await house.http.request(method, at(path), headers=sent, json={} if method != "GET" else None)
        assert answer.status_code == status, (method, path, answer.text)
    assert house.simulator.requests == []


async def test_without_keys_a_proxy_that_hides_behind_http_1_0_is_refused_on_all(house: House) -> None:
    """nginx with a `proxy_pass` and no more calls us by our own name, and adds no header."""
    for method, path in served(house):
        line = await house.line()
        line.writer.write(f"{method} {at(path)} HTTP/1.0\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n".encode())
        answer = await line.rest()
        if (method, path) in OPEN:
            assert b" 200 OK\r\n" in answer, (method, path)
        else:
            assert b" 403 Forbidden\r\n" in answer, (method, path)
            assert b"proxy_without_keys" in answer, (method, path)
    assert house.simulator.requests == []


async def test_with_keys_http_1_0_is_as_good() -> None:
    async with open_house(keys=KEYS) as house:
        line = await house.line()
        line.writer.write(f"GET /api/me HTTP/1.0\r\nhost: x\r\nx-api-key: {KEYS[0].key.reveal()}\r\n\r\n".encode())
        assert b" 200 OK\r\n" in await line.rest()


async def test_anothers_response_is_as_if_it_were_not_there() -> None:
    anns, bobs = ({"authorization": f"Bearer {key.key.reveal()}"} for key in KEYS)
    async with open_house(keys=KEYS) as house:
        body = {"model": "chat/sim/tokens-2", "input": "Hi"}
        response_id = (await house.http.post("/v1/responses", json=body, headers=anns)).json()["id"]
        for (method, path), status in RESPONSES.items():
            for asked in (path, f"{path}?stream=true"):
                answer = await house.http.request(method, at(asked, response_id), headers=bobs)
                assert answer.status_code == status, (method, asked, answer.text)
                nobodys = await house.http.request(method, at(asked, "resp_none"), headers=bobs)
                # Nothing tells apart what is another's and what is nobody's.
                assert answer.text.replace(response_id, "resp_none") == nobodys.text
        follows = {**body, "previous_response_id": response_id}
        assert (await house.http.post("/v1/responses", json=follows, headers=bobs)).status_code == 400
        assert (await house.http.get(f"/v1/responses/{response_id}", headers=anns)).status_code == 200
        # The same name is another session.
        for headers, said in ((anns, "ann's secret"), (bobs, "Hello")):
            chat = {"model": "chat/sim/echo", "session_id": "s", "messages": [{"role": "user", "content": said}]}
            answer = await house.http.post("/v1/chat/completions", json=chat, headers=headers)
            assert answer.status_code == 200
        assert "secret" not in str(house.simulator.requests[-1].body)
