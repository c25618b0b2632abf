"""Who answers where no model was named: a demo, but never in the place of an upstream that is there to be asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.cli import exits
from tests.cli.conftest import House
from tests.cli.terminal import terminal

AWAY = {"OLLAMA_HOST": "127.0.0.1:9"}
"""Nobody listens there."""
STORY = "I have only one subject"


class Bare(House):
    """With no upstream but those of `more`."""

    def __init__(self, folder: Path, more: dict[str, str]) -> None:
        super().__init__(folder, "")
        self.environ = {name: value for name, value in self.environ.items() if "UPSTREAMS" not in name} | more


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path, {})


@pytest.fixture
def away(tmp_path: Path) -> Bare:
    return Bare(tmp_path, AWAY)


@pytest.fixture
def serving(away: Bare) -> Iterator[Bare]:
    away.start()
    yield away
    away.kill()


def test_a_demo_answers_where_there_is_no_upstream(bare: Bare) -> None:
    code, out, err = bare.run("chat", "hi")
    assert (code, STORY in out, err) == (exits.COMPLETED, True, "")


def test_none_answers_for_an_upstream_that_is_away(away: Bare) -> None:
    code, out, err = away.run("chat", "hi")
    assert (code, out) == (exits.FAILED, "")
    assert "ollama (http://127.0.0.1:9/v1) gave no list of its models: No connection to 127.0.0.1:9" in err
    assert "-m demo/story" in err
    assert STORY in away.run("chat", "-m", "demo/story", "hi")[1]


def test_nor_through_a_server_that_lists_nothing_of_it(serving: Bare) -> None:
    code, out, err = serving.run("chat", "hi")
    assert (code, out) == (exits.FAILED, "")
    assert f"ollama (http://127.0.0.1:9/v1) has no model in the list of the server at {serving.url}" in err


def test_nor_for_one_that_is_not_to_be_asked_for_a_list(empty: House) -> None:
    code, out, err = empty.run("chat", "hi")
    assert (code, out) == (exits.USAGE, "")
    assert "Which model?" in err


def test_it_is_said_that_a_demo_answers_where_a_server_may_have_more_than_is_known(bare: Bare) -> None:
    bare.start()
    code, out, err = bare.run("chat", "hi")
    assert (code, STORY in out) == (exits.COMPLETED, True)
    assert f"{bare.url} names demo models only" in err
    assert "So demo/story answers." in err
    bare.kill()


def test_a_script_gets_none_from_a_server_of_which_nothing_is_known(serving: Bare) -> None:
    code, out, err = serving.run("chat", "hi", "--server", serving.url)
    assert (code, out) == (exits.USAGE, "")
    assert f"{serving.url} names demo models only" in err
    assert "-m demo/story" in err


def test_a_person_is_told_that_it_is_one(serving: Bare) -> None:
    with terminal("chat", "--plain", "hi", "--server", serving.url, environ=serving.environ, columns=200) as seen:
        seen.wait_for(STORY)
        assert seen.wait_for_end() == exits.COMPLETED
        assert f"{serving.url} names demo models only" in seen.text()


def test_the_list_says_whose_models_it_lacks(away: Bare) -> None:
    code, out, err = away.run("models")
    assert (code, "demo/story" in out) == (exits.COMPLETED, True)
    assert "ollama (http://127.0.0.1:9/v1) gave no list of its models: No connection to 127.0.0.1:9" in err


def test_the_list_of_a_server_says_so_too(serving: Bare) -> None:
    _, out, err = serving.run("models", "--json")
    assert "demo/story" in out
    assert "ollama (http://127.0.0.1:9/v1) has no model in the list" in err
