"""`headwater chat --session`: which conversation is gone on with, and which is a new one."""

import json
import urllib.request

from headwater.cli import exits
from tests.cli.conftest import House

ECHO = ("-m", "demo/echo")


def said(house: House, session: str) -> list[str]:
    _, out, _ = house.run("sessions", "show", session, "--json")
    return [item["content"] for item in map(json.loads, out.splitlines()) if item["kind"] == "message"]


def last_id(house: House) -> str:
    _, out, _ = house.run("sessions", "list", "--json", "-n", "1")
    return str(json.loads(out)["id"])


def test_the_end_of_an_id_is_enough(house: House) -> None:
    house.run("chat", *ECHO, "first")
    made = last_id(house)
    assert house.run("chat", *ECHO, "--session", made[-8:], "second") == (
        0,
        "second\n",
        f"headwater: going on with {made}\n",
    )
    assert house.run("chat", *ECHO, "--session", made, "third")[2] == ""
    assert said(house, made) == ["first", "first", "second", "second", "third", "third"]


def test_last_is_the_last_one(empty: House) -> None:
    code, _, err = empty.run("chat", *ECHO, "--session", "last", "?")
    assert (code, err) == (exits.USAGE, "headwater: there is no conversation yet to go on with.\n")
    empty.run("chat", *ECHO, "first")
    assert empty.run("chat", *ECHO, "--session", "last", "second") == (0, "second\n", "")
    assert said(empty, "last") == ["first", "first", "second", "second"]


def test_it_is_said_that_one_is_new(house: House) -> None:
    assert house.run("chat", *ECHO, "--session", "new", "hi")[2] == "headwater: new is a new conversation.\n"
    assert house.run("chat", *ECHO, "--session", "new", "hi")[2] == ""


def test_a_name_is_no_end_of_another_and_a_letter_none_of_an_id(house: House) -> None:
    house.run("chat", *ECHO, "--session", "grandmother", "hi")
    assert "is a new conversation" in house.run("chat", *ECHO, "--session", "mother", "hi")[2]
    house.run("chat", *ECHO, "first")
    made = last_id(house)
    assert "is a new conversation" in house.run("chat", *ECHO, "--session", made[-2:], "hi")[2]


def test_what_an_id_may_be_is_said_in_words(house: House) -> None:
    code, _, err = house.run("chat", *ECHO, "--session", "my project", "hi")
    assert code == exits.USAGE
    assert err == (
        "headwater: a new conversation can't be called 'my project': "
        "an id has letters of a to z, digits and _ . : ~ - only, and no more than 128 of them.\n"
    )


def test_one_that_has_another_name_from_elsewhere_is_gone_on_with(house: House) -> None:
    body = {"model": "demo/echo", "session_id": "my/other project", "messages": [{"role": "user", "content": "first"}]}
    request = urllib.request.Request(
        f"{house.url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    assert house.run("chat", *ECHO, "--session", "my/other project", "second") == (0, "second\n", "")
    assert said(house, "my/other project") == ["first", "first", "second", "second"]
