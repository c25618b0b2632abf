"""Paths of the dialects that are nothing, and methods that they have not: told as clients of the dialect read it."""

from typing import Any

import anthropic
import openai
import pytest

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings
from tests.server.house import PATHS, House, asking, open_house

pytestmark = pytest.mark.anyio

KEYS = (KeySettings(owner="ann", key=Secret("a" * 20)),)
ANTHROPICS = {"anthropic-version": "2023-06-01"}
ALL = (
    "POST /v1/chat/completions, POST /v1/messages, POST /v1/responses, GET /v1/responses/{response_id}, "
    "DELETE /v1/responses/{response_id}, POST /v1/responses/{response_id}/cancel, GET /v1/models, GET /v1/models/{name}."
)


@pytest.mark.parametrize(
    ("path", "what", "there_is"),
    [
        ("/v1/embeddings", "/v1/embeddings", ALL),
        ("/v1", "/v1", "POST /v1/chat/completions, "),
        ("/v1/chat", "/v1/chat", "POST /v1/chat/completions."),
        ("/v1/responses/resp_1/input_items", "/v1/responses/resp_1/input_items", "POST /v1/responses, GET /v1/resp"),
        ("/v1/%ff%00", "/v1/\ufffd\0", "POST /v1/chat/completions, "),
    ],
)
async def test_an_unknown_path_is_told_with_what_there_is(house: House, path: str, what: str, there_is: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = await house.http.request(method, path)
        error = answer.json()["error"]
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
        assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, "not_found")
        assert error["message"].startswith(f"There is no {what} here. There is: {there_is}")


@pytest.mark.parametrize(
    ("path", "headers"), [("/v1/messages/count_tokens", {}), ("/v1/messages/batches", {}), ("/v1/complete", ANTHROPICS)]
)
async def test_anthropics_clients_are_told_in_their_own_words(house: House, path: str, headers: dict[str, str]) -> None:
    answer = await house.http.post(path, headers=headers, json={})
    assert (answer.status_code, answer.json()["type"]) == (404, "error")
    error = answer.json()["error"]
    assert (error["type"], error["details"]) == ("not_found_error", {"error_code": "not_found"})
    assert error["message"].startswith(f"There is no {path} here. There is: POST ")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("PUT", "/v1/responses", "POST"),
        ("POST", "/v1/responses/resp_1", "DELETE, GET, HEAD"),
        ("GET", "/v1/responses/resp_1/cancel", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("DELETE", "/v1/models/demo/echo", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_with_the_right_ones(house: House, method: str, path: str, allowed: str) -> None:
    answer = await house.http.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "method_not_allowed")
    assert error["message"] == f"There is no {method} {path} here. There is: {allowed}."


async def test_a_wrong_method_is_told_in_the_words_of_its_path(house: House) -> None:
    answer = await house.http.get("/v1/messages")
    assert (answer.status_code, answer.headers["allow"], answer.json()["type"]) == (405, "POST", "error")
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_sdks_raise_what_says_so(house: House) -> None:
    with pytest.raises(anthropic.NotFoundError, match="There is no /v1/messages/count_tokens here"):
        await house.anthropic.messages.count_tokens(model="demo/echo", messages=[{"role": "user", "content": "Hi"}])
    with pytest.raises(openai.NotFoundError, match="There is no /v1/embeddings here") as raised:
        await house.openai.embeddings.create(model="demo/echo", input="Hi")
    assert raised.value.code == "not_found"
    with pytest.raises(openai.NotFoundError, match="There is: POST /v1/responses"):
        await house.openai.responses.input_items.list("resp_1")


async def test_with_keys_nothing_is_told_without_one() -> None:
    async with open_house(keys=KEYS) as house:
        for method, path in (("GET", "/v1/embeddings"), ("POST", "/v1/messages/count_tokens"), ("GET", "/v1/messages")):
            answer = await house.http.request(method, path)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert "There is" not in answer.text
            known = await house.http.request(method, path, headers={"x-api-key": "a" * 20})
            assert known.status_code in (404, 405)


@pytest.mark.parametrize(
    ("sent", "status"), [({"host": "evil.example"}, 421), ({"via": "1.1 p"}, 403), ({"origin": "https://e.org"}, 403)]
)
async def test_strangers_are_refused_there_as_elsewhere(house: House, sent: dict[str, str], status: int) -> None:
    for method, path in (("GET", "/v1/embeddings"), ("GET", "/v1/messages")):
        assert (await house.http.request(method, path, headers=sent)).status_code == status


async def test_a_slash_too_many_leads_to_the_path_without_it(house: House) -> None:
    body: dict[str, Any] = asking("chat", "demo/echo")
    answer = await house.http.post(f"{PATHS['chat']}/", json=body, follow_redirects=True)
    assert answer.status_code == 200


async def test_elsewhere_it_is_plain(house: House) -> None:
    for path in ("/nothing", "/v1x"):
        answer = await house.http.get(path)
        assert (answer.status_code, answer.text) == (404, "Not Found")
    answer = await house.http.post("/healthz")
    assert (answer.status_code, answer.text) == (405, "Method Not Allowed")
    assert {*answer.headers["allow"].split(", ")} == {"GET", "HEAD"}
