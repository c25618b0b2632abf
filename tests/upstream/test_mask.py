"""What an upstream was told in confidence is in nothing that it says."""

import pytest

from headwater.config.secret import Secret
from headwater.config.settings import UpstreamSettings
from headwater.upstream.faults import refusal
from headwater.upstream.mask import CUT, Mask, ended

SECRET = "s3cret-of-the-gateway"


def mask(**headers: str) -> Mask:
    named = {name.replace("_", "-"): Secret(value) for name, value in headers.items()}
    return Mask(UpstreamSettings(base_url="http://127.0.0.1:1/v1", headers=named, api_key=(Secret("sk-0123456789"),)))


@pytest.mark.parametrize("value", [SECRET, f"Bearer {SECRET}", f"basic {SECRET}"])
def test_a_header_is_replaced_by_its_name_with_its_scheme_or_without(value: str) -> None:
    assert SECRET not in mask(X_Gate=value).text(f"You sent {SECRET}, {value}.")
    assert mask(X_Gate=value).text(SECRET) == "[x-gate]"


def test_a_word_of_a_value_is_no_secret() -> None:
    """Only what comes behind a scheme is: else an answer's own words were taken out of recordings."""
    said = '{"role":"assistant","content":"my assistant is here"}'
    assert mask(X_Gate="my-own assistant").text(said) == said


@pytest.mark.parametrize("name", ["X_Title", "Anthropic_Version", "Accept", "User_Agent"])
def test_what_says_who_is_asking_is_public(name: str) -> None:
    assert mask(**{name: "application/json"}).text("application/json") == "application/json"


def test_what_is_shortened_is_masked_before() -> None:
    """A text of five hundred characters is told, and the secret stands across its end."""
    body = ("x" * 490 + SECRET + " and more").encode()
    masked = mask(X_Gate=SECRET).body(body)
    assert SECRET[:8] not in refusal("up", 400, {}, masked).message


@pytest.mark.parametrize("most", range(8, len(SECRET)))
def test_what_came_only_in_part_is_masked_as_well(most: int) -> None:
    data, rest = mask(X_Gate=SECRET).piece(b"said " + SECRET[:most].encode())
    assert (data, ended(rest)) == (b"said ", CUT)
    assert mask(X_Gate=SECRET).body(b"said " + SECRET[:most].encode()) == b"said " + CUT


def test_a_letter_that_a_secret_begins_with_is_none() -> None:
    assert mask(X_Gate=SECRET).body(b"Invalid keys") == b"Invalid keys"
