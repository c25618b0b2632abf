"""`HEADWATER_…` variables over the file."""

import pytest

from headwater.config.load import Loaded
from tests.config.loading import loaded, one_problem, problems, source, upstream


def with_variable(name: str, text: str, file: str = "") -> Loaded:
    return loaded(file, {f"HEADWATER_{name}": text})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("true", True),
        ("Yes", True),
        ("1", True),
        (" on ", True),
        ("false", False),
        ("no", False),
        ("0", False),
        ("OFF", False),
    ],
)
def test_yes_and_no_have_many_forms(text: str, read: bool) -> None:
    assert with_variable("UPSTREAMS__UP__RECORD", text, upstream()).settings.upstreams["up"].record is read


@pytest.mark.parametrize(
    ("text", "read"), [("a, b ,", ("a", "b")), ('["a", "b,c"]', ("a", "b,c")), (" []", ()), ("a", ("a",))]
)
def test_lists_are_json_or_parted_by_commas(text: str, read: tuple[str, ...]) -> None:
    found = with_variable("UPSTREAMS__UP__OMIT", text, upstream())
    assert found.settings.upstreams["up"].omit == read
    assert found.sources["upstreams.up.omit"] == "environment HEADWATER_UPSTREAMS__UP__OMIT"


def test_numbers_and_texts_are_read_as_what_their_keys_are() -> None:
    found = loaded(
        None, {"HEADWATER_SERVER__DRAIN_S": "1.5", "HEADWATER_SERVER__PORT": "80", "HEADWATER_SERVER__HOST": "1"}
    )
    assert (found.settings.server.drain_s, found.settings.server.port, found.settings.server.host) == (1.5, 80, "1")


def test_keys_may_rotate_from_one_variable() -> None:
    keys = with_variable("UPSTREAMS__UP__API_KEY", "one,two", upstream()).settings.upstreams["up"].api_key
    assert [key.reveal() for key in keys] == ["one", "two"]


def test_an_empty_variable_counts_as_none() -> None:
    assert with_variable("SERVER__PORT", "", "[server]\nport = 1").settings.server.port == 1


@pytest.mark.parametrize("name", ["my-vllm", "My.vLLM", "my_vllm"])
def test_a_name_in_the_file_is_found_by_the_letters_that_a_variable_can_have(name: str) -> None:
    found = with_variable("UPSTREAMS__MY_VLLM__RETRIES", "7", upstream(f'"{name}"'))
    assert found.settings.upstreams[name].retries == 7
    assert list(found.settings.upstreams) == [name]


def test_a_name_that_two_have_is_refused() -> None:
    problem = one_problem(upstream("my-a") + upstream("my_a"), {"HEADWATER_UPSTREAMS__MY_A__RETRIES": "7"})
    assert problem.endswith("upstreams.my_a: could be any of my-a, my_a. Rename one of them.")


def test_a_new_upstream_is_named_in_small_letters_and_what_it_lacks_is_told_by_its_variable() -> None:
    assert list(with_variable("UPSTREAMS__UP__BASE_URL", "http://x/v1").settings.upstreams) == ["up"]
    assert one_problem("", {"HEADWATER_UPSTREAMS__UP__RETRIES": "1"}).startswith(
        "environment HEADWATER_UPSTREAMS__UP__RETRIES: upstreams.up.base_url: is missing."
    )


def test_a_table_as_json_stands_for_the_whole_and_a_key_of_it_comes_over_that() -> None:
    environ = {
        "HEADWATER_UPSTREAMS__UP": '{"base_url": "http://x/v1", "retries": 5}',
        "HEADWATER_UPSTREAMS__UP__RETRIES": "6",
        "HEADWATER_UPSTREAMS__UP__HEADERS": '{"x-team": "a"}',
    }
    found = loaded(upstream(idle_timeout_s=1), environ)
    up = found.settings.upstreams["up"]
    assert (up.base_url, up.retries, up.idle_timeout_s) == ("http://x/v1", 6, 60.0)
    assert up.headers["x-team"].reveal() == "a"
    assert found.sources["upstreams.up.base_url"] == "environment HEADWATER_UPSTREAMS__UP"
    assert found.sources["upstreams.up.idle_timeout_s"] == "default"


def test_items_of_lists_are_reached_by_their_number() -> None:
    file = upstream() + '[[models]]\nname = "a"\nupstream = "up"\n'
    found = loaded(file, {"HEADWATER_MODELS__0__NAME": "b", "HEADWATER_MODELS__1": '{"name": "c", "upstream": "up"}'})
    assert [model.name for model in found.settings.models] == ["b", "c"]
    assert source(found, "models[0].upstream") == "headwater.toml:5"
    assert found.sources["models[0].name"] == "environment HEADWATER_MODELS__0__NAME"


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("SERVER__PROT", "1", 'server.prot: is not a key that is known here. Did you mean "port"?'),
        ("SERVR__PORT", "1", 'servr: is not a key that is known here. Did you mean "server"?'),
        ("SERVER__PORT", "x", 'server.port: must be a whole number from 0 to 65535, not "x".'),
        ("SERVER__PORT", "9" * 5000, "server.port: must be a whole number from 0 to 65535, not such a text."),
        ("SERVER__DRAIN_S", "nan", "server.drain_s: must be a number, 0 or more, not nan."),
        ("SERVER__PORT__X", "1", "server.port.x: is below a key that has one value. End the variable's name before it."),
        ("SERVER__HOST", "\udcff", "server.host: has bytes that are no text. Write it in UTF-8."),
        ("SERVER", "{", 'server: is not valid JSON. Write it like {"name": "value"}.'),
        ("SERVER", "null", 'server: is not valid JSON. Write it like {"name": "value"}.'),
        ("SERVER", '{"port": null}', "server.port: must be a whole number from 0 to 65535, not null."),
        ("MODELS", "[" * 100_000, "models: is not valid JSON. Write it like […]."),
        ("MODELS", "\udcff", "models: is not valid JSON. Write it like […]."),
        ("MODELS", "a,b", "models: is not valid JSON. Write it like […]."),
        ("MODELS__1__NAME", "x", "models.1: is not the number of an item. They are counted from 0; 0 would add one."),
        ("MODELS__FAST", "{}", "models.fast: is not the number of an item. They are counted from 0; 0 would add one."),
        ("UPSTREAMS____X", "1", 'upstreams."".x: is not a key that is known here.'),
    ],
)  # fmt: skip
def test_what_is_wrong_names_the_variable(name: str, text: str, what: str) -> None:
    found = problems("", {f"HEADWATER_{name}": text})
    assert any(problem.startswith(f"environment HEADWATER_{name}: {what}") for problem in found)


@pytest.mark.parametrize("file", ["server = 1", "server = []"])
def test_a_file_that_has_something_else_in_the_way_is_what_is_wrong(file: str) -> None:
    assert one_problem(file, {"HEADWATER_SERVER__PORT": "1"}).startswith("headwater.toml:1: server: must be a table")


def test_a_list_in_the_way_of_a_name_is_what_is_wrong() -> None:
    assert one_problem("upstreams = []", {"HEADWATER_UPSTREAMS__UP__RETRIES": "1"}).startswith(
        "headwater.toml:1: upstreams:"
    )


def test_other_variables_with_our_prefix_are_no_settings() -> None:
    kubernetes = {"HEADWATER_SERVICE_HOST": "10.0.0.1", "HEADWATER_PORT_8790_TCP": "tcp://10.0.0.1:8790"}
    assert loaded("", kubernetes).warnings == ()


@pytest.mark.parametrize("name", ["HEADWATER_PORT", "HEADWATER_SERVER_PORT"])
def test_a_variable_that_is_nearly_a_setting_is_warned_of(name: str) -> None:
    [warning] = loaded("", {name: "tcp://10.0.0.1:8790"}).warnings
    assert str(warning) == f"environment {name}: is no setting, and ignored. The setting is HEADWATER_SERVER__PORT."


def test_a_variable_that_the_file_refers_to_is_no_setting() -> None:
    file = '[[server.keys]]\nowner = "me"\nkey = "env:HEADWATER_MY__KEY"\n[store]\nurl = "env:HEADWATER_URL"\n'
    found = loaded(file, {"HEADWATER_MY__KEY": "0123456789abcdef", "HEADWATER_URL": "memory:"})
    assert found.settings.server.keys[0].key.reveal() == "0123456789abcdef"
    assert found.warnings == ()
