"""What is said of an answer that is none: what is wrong, with whom, and what to change."""

from datetime import UTC, datetime

import pytest

from headwater.events import DialectName, Failed
from headwater.upstream import faults
from headwater.upstream.health import CannotStream
from headwater.upstream.keys import Keys

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
PAGE = b"<!DOCTYPE html><html><head><title>Airport Wi-Fi login</title></head></html>"


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, b'{"error": {"message": "Bad temperature."}}', "Bad temperature."),
        (400, b'[{"error": {"message": "Gemini puts it in a list."}}]', "Gemini puts it in a list."),
        (400, b'{"detail": "Not Found"}', "Not Found"),
        (400, b'"just words"', "just words"),
        (400, b"plain words", "plain words"),
        (400, b"", "The upstream 'up' answered with status 400 and no message."),
        (400, b"17", "The upstream 'up' answered with status 400 and no message."),
        (401, b'{"error": {"message": "Wrong."}}', "Wrong. Check the api_key of [upstreams.up]."),
        (403, b'{"error": {"message": "No."}}', "No. Check the api_key of [upstreams.up]."),
        (404, b"", "Check the model's name, and the base_url and dialect of [upstreams.up]."),
        (407, b"", "The proxy wants a login"),
        (503, PAGE, "answered with a web page ('Airport Wi-Fi login')"),
        (302, b"", "redirects to https://other.example/v1 (302)"),
    ],
)
def test_a_refusal_is_told_in_the_upstreams_words_with_what_to_change(status: int, body: bytes, says: str) -> None:
    failed = faults.refusal("up", status, {"location": "https://other.example/v1"}, body)
    assert says in failed.message
    assert failed.status == status


def test_a_redirect_to_nowhere() -> None:
    assert "redirects to nowhere" in faults.refusal("up", 301, {}, b"").message


@pytest.mark.parametrize(
    ("start", "dialect", "says"),
    [
        (PAGE, "chat", "a web page ('Airport Wi-Fi login')"),
        (b"  <html><body>", "chat", "a web page, not"),
        (b'event: message_start\ndata: {"type": "message_start"}', "chat", 'dialect = "messages"'),
        (b'{"type": "message", "role": "assistant"}', "responses", 'dialect = "messages"'),
        (b'event: response.created\ndata: {"type":"response.created"}', "messages", 'dialect = "responses"'),
        (b'data: {"object":"chat.completion.chunk","choices":[]}', "responses", 'dialect = "chat"'),
    ],
)
def test_an_answer_of_another_kind_is_told_by_its_first_bytes(start: bytes, dialect: DialectName, says: str) -> None:
    failed = faults.explained(Failed("upstream_truncated", "Cut.", retryable=True), "up", dialect, start)
    assert says in failed.message
    assert not failed.retryable


@pytest.mark.parametrize("start", [b"", b"data: hello", b'data: {"choices": []}'])
def test_what_gives_nothing_away_is_left_as_it_is(start: bytes) -> None:
    failed = Failed("upstream_truncated", "Cut.", retryable=True)
    assert faults.explained(failed, "up", "chat", start) == failed


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Mon, 16 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 16 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "soon"}, None),
    ],
)
def test_when_to_ask_again(headers: dict[str, str], seconds: float | None) -> None:
    assert faults.retry_after_s(headers, NOW) == seconds


def test_what_is_kept_of_a_head() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "7",
        "retry-after": "2",
        "content-type": "text/plain",
        "set-cookie": "s",
    }
    assert faults.limits(headers) == {"x-ratelimit-remaining-requests": "7", "retry-after": "2"}
    assert faults.limits({}) is None
    assert faults.request_id({"request-id": "req_1"}) == "req_1"
    assert faults.request_id({}) is None


def test_keys_that_were_all_refused_still_take_turns() -> None:
    keys = Keys(["a", "b"], rest_s=10)
    assert [keys.take(0), keys.refused("a", 0), keys.take(0), keys.refused("b", 0)] == ["a", True, "b", False]
    assert {keys.take(1), keys.take(1)} == {"a", "b"}
    assert not Keys([], rest_s=10).refused(None, 0)


def test_what_cannot_stream_is_forgotten_in_time() -> None:
    memory = CannotStream(for_s=10)
    memory.learn("m", 0)
    assert memory.knows("m", 9)
    assert not memory.knows("m", 10)
    assert not memory.knows("other", 0)
