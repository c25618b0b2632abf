"""What names what, and single values that their types allow but that make no sense."""

import pytest

from tests.config.loading import loaded, one_problem, problems, upstream

KEY = "0123456789abcdef"


def model(name: str, *fallbacks: str, at: str = "up") -> str:
    return f'[[models]]\nname = "{name}"\nupstream = "{at}"\nfallbacks = [{", ".join(map(repr, fallbacks))}]\n'


def said(text: str) -> list[str]:
    """Without the places in the file."""
    return [problem.partition(": ")[2] for problem in problems(text)]


# --------------------------------------------------------------------- workers


def test_several_workers_need_a_store_that_they_can_share() -> None:
    store = '[store]\nurl = "{}"\n[server]\nworkers = {}\n'
    for url in ("sqlite:/tmp/h.db", "memory:"):
        assert said(store.format(url, 2)) == [
            "server.workers: 2 processes can't share a store that is no Postgres. "
            "Set store.url to a postgresql://… (docs/scaling.md), or take one."
        ]
    assert said(store.format("sqlite:/tmp/h.db", 1)) == []
    assert said(store.format("postgresql://db/headwater", 4)) == []


# ---------------------------------------------------------------------- models


def test_a_model_names_an_upstream_that_exists() -> None:
    assert said(upstream() + model("a", at="upp")) == [
        'models[0].upstream: there is no upstream "upp". Did you mean "up"?'
    ]
    assert said(model("a", at="nothing")) == ['models[0].upstream: there is no upstream "nothing". There is: demo.']
    assert said(upstream() + model("a") + model("b", at="demo")) == []


def test_an_upstream_that_is_wrong_is_still_there_to_be_named() -> None:
    assert said("[upstreams.up]\nbase_url = 1\n" + model("a")) == ["upstreams.up.base_url: must be a text, not 1."]


def test_two_models_can_not_have_one_name() -> None:
    assert said(upstream() + model("a") + model("a")) == [
        "models[1].name: models[0] has that name already. Choose another."
    ]


def test_fallbacks_exist_and_are_named_once() -> None:
    unlisted = upstream(list_models="false")
    assert said(unlisted + model("fast", "bb", "slow", "bb", "b") + model("bb")) == [
        'models[0].fallbacks[1]: there is no model "slow". There is: bb, fast.',
        'models[0].fallbacks[2]: "bb" is there twice. Take one out.',
        'models[0].fallbacks[3]: there is no model "b". Did you mean "bb"?',
    ]
    assert said(unlisted + model("fast", "up/x", "demo/echo")) == []


def test_a_fallback_that_an_upstream_may_list_is_only_warned_of() -> None:
    [warning] = loaded(upstream() + model("fast", "gpt")).warnings
    assert str(warning).endswith(
        'headwater.toml:6: models[0].fallbacks[0]: "gpt" is not under [[models]]. It works if an upstream lists it.'
    )


@pytest.mark.parametrize(
    ("models", "circles"),
    [
        ([("a", "a")], ["models[0].fallbacks: they go in a circle: a → a."]),
        ([("a", "b"), ("b", "a")], ["models[0].fallbacks: they go in a circle: a → b → a."]),
        # One that leads into a circle is not part of it.
        (
            [("x", "b"), ("a", "b"), ("b", "c"), ("c", "a")],
            ["models[1].fallbacks: they go in a circle: a → b → c → a."],
        ),
        (
            [("a", "b"), ("b", "a"), ("c", "d", "a"), ("d", "c")],
            [
                "models[0].fallbacks: they go in a circle: a → b → a.",
                "models[2].fallbacks: they go in a circle: c → d → c.",
            ],
        ),
        ([("a", "b", "c"), ("b", "c"), ("c",)], []),
    ],
)
def test_fallbacks_do_not_go_in_circles(models: list[tuple[str, ...]], circles: list[str]) -> None:
    found = said(upstream() + "".join(model(*names) for names in models))
    assert found == [f"{circle} Take one out." for circle in circles]


def test_a_long_chain_of_fallbacks_is_no_trouble() -> None:
    chain = upstream() + "".join(model(f"m{n}", f"m{n + 1}") for n in range(300)) + model("m300")
    assert said(chain) == []


def test_the_demos_names_are_kept_for_the_demo() -> None:
    assert said(upstream("demo")) == ["upstreams.demo: is kept for the built-in models. Choose another name."]
    what = "begins with demo/, which is kept for the built-in models. Choose another name."
    assert said(upstream() + model("demo/echo")) == [f"models[0].name: {what}"]
    assert said('[agents."demo/echo"]\npython = "my.bots:one"') == [f'agents."demo/echo": {what}']


@pytest.mark.parametrize("name", [" a", "a ", "a\\nb", "\\u001b[31m"])
def test_a_name_that_is_listed_can_be_read(name: str) -> None:
    what = "is no name to be listed. Leave out blanks at its ends, and what can't be printed."
    assert said(upstream() + model(name)) == [f"models[0].name: {what}"]
    assert said(f'[agents."{name}"]\npython = "my.bots:one"') == [f'agents."{name}": {what}']
    assert said('[agents.""]\npython = "my.bots:one"') == [f'agents."": {what}']


def test_a_suggestion_does_not_depend_on_capital_letters() -> None:
    assert said(upstream("OpenAI") + model("a", at="opnai")) == [
        'models[0].upstream: there is no upstream "opnai". Did you mean "OpenAI"?'
    ]


# --------------------------------------------------- the default, agents, tools


@pytest.mark.parametrize("name", ["fast", "helper", "demo/echo", "up/anything"])
def test_the_default_model_is_one_that_there_is(name: str) -> None:
    text = f'[server]\ndefault_model = "{name}"\n' + upstream() + model("fast") + '[agents.helper]\nmodel = "fast"\n'
    assert loaded(text).warnings == ()


def test_a_default_model_that_an_upstream_may_list_is_only_warned_of() -> None:
    [warning] = loaded('[server]\ndefault_model = "fsat"\n' + upstream() + model("fast")).warnings
    assert str(warning).endswith(
        'headwater.toml:2: server.default_model: "fsat" is not under [[models]]. It works if an upstream lists it. Or did you mean "fast"?'
    )
    [warning] = loaded('[server]\ndefault_model = "gpt"\n' + upstream()).warnings
    assert warning.fix == "It works if an upstream lists it."


def test_a_default_model_that_nobody_can_list_is_an_error() -> None:
    unlisted = '[server]\ndefault_model = "fsat"\n' + upstream(list_models="false")
    assert said(unlisted + model("fast")) == ['server.default_model: there is no model "fsat". Did you mean "fast"?']
    assert said(unlisted) == ['server.default_model: there is no model "fsat". Add it under [[models]].']
    for name in ("up", "demo", "nobody/fast"):
        assert said(unlisted.replace("fsat", name)) == [
            f'server.default_model: there is no model "{name}". Add it under [[models]].'
        ]


def test_an_agent_has_a_model_or_is_ones_own() -> None:
    assert said("[agents.a]") == ['agents.a.model: is missing, and there is no python. Write it like model = "fast".']
    assert said('[agents.a]\npython = "my.bots:one"') == []
    assert said("[agents.a]\nmodel = 1") == ["agents.a.model: must be a text that is not empty, not 1."]
    assert said('[agents.a]\nmodel = "fsat"') == ['agents.a.model: there is no model "fsat". Add it under [[models]].']
    assert said('[agents.a]\npython = "my.bots:one"\nmodel = "demo/echo"\nmax_turns = 3') == [
        "agents.a.model: is for the built-in loop, which this is not. Take it out.",
        "agents.a.max_turns: is for the built-in loop, which this is not. Take it out.",
    ]
    assert said('[agents.a]\nmodel = "demo/echo"\ncleanup_timeout_s = 3') == [
        "agents.a.cleanup_timeout_s: is for an agent in python, which this is not. Take it out."
    ]


@pytest.mark.parametrize("path", ["bots", "my bots:one", "bots:", ":one", "bots:one.two", "1bots:one"])
def test_ones_own_agent_is_named_by_module_and_name(path: str) -> None:
    assert said(f'[agents.a]\npython = "{path}"') == [
        'agents.a.python: must name a module and what is in it. Write it like "mypackage.bots:mine".'
    ]


def test_an_agent_can_not_have_a_models_name() -> None:
    assert said(upstream() + model("a") + '[agents.a]\nmodel = "a"') == [
        "agents.a: is the name of a model, and agents are listed as models, too. Choose another."
    ]


def test_an_agents_tools_are_under_mcp_and_what_needs_approval_is_among_them() -> None:
    mcp = '[mcp.files]\ncommand = ["x"]\n'
    agent = '[agents.a]\nmodel = "demo/tools"\n'
    assert said(mcp + agent + 'tools = ["files"]\napprove = ["files.write_*", "*", "fi*.x"]') == []
    assert said(mcp + agent + 'tools = ["file"]\napprove = ["files.*"]') == [
        'agents.a.tools[0]: there is no "file" under [mcp]. Did you mean "files"?',
        'agents.a.approve[0]: "files.*" fits none of its tools. Write it like "files.write_*", with a name of tools.',
    ]


def test_a_server_of_tools_is_a_command_or_a_url() -> None:
    assert said("[mcp.a]") == [
        'mcp.a.command: is missing, and there is no url. Write it like command = ["uvx", "mcp-server-files"], or url = "http://…".'
    ]
    assert said('[mcp.a]\nurl = "http://x/mcp?key=1"') == []
    assert said('[mcp.a]\nurl = "x"\ncommand = ["x"]\ncwd = "/"\nenv = {A = "1"}') == [
        'mcp.a.url: must begin with http:// or https:// and a host. Write it like "https://api.example.com/v1".',
        "mcp.a.command: can't stand beside a url. Take one of them out.",
        "mcp.a.cwd: can't stand beside a url. Take one of them out.",
        "mcp.a.env: can't stand beside a url. Take one of them out.",
    ]
    assert said('[mcp.a]\ncommand = [""]') == [
        "mcp.a.command: begins with an empty text. The first one is the program."
    ]
    assert said('[mcp.a]\ncommand = ["x"]\nenv = {"A=B" = "1"}') == [
        'mcp.a.env."A=B": can\'t be a variable. No =, and no null byte.'
    ]
    assert said('[mcp.a]\ncommand = ["x"]\nheaders = {x-team = "1"}') == [
        "mcp.a.headers: can't stand beside a command. They are for a url."
    ]
    assert said('[mcp.a]\nurl = "http://x/mcp"\nheaders = {"x team" = "1", authorization = "Bearer x"}') == [
        'mcp.a.headers."x team": is no name of a header. Write it like "x-team".'
    ]
    assert said('[mcp."a.b"]\ncommand = ["x"]') == [
        'mcp."a.b": is no name for a server of tools. Use letters, digits, and _ - after the first.'
    ]


# ------------------------------------------------------------------ the server


def test_two_keys_are_two() -> None:
    key = f'[[server.keys]]\nowner = "me"\nkey = "{KEY}"\n'
    assert said(key + key) == ["server.keys[1].key: is the same as that of server.keys[0]. Each needs one of its own."]


def test_a_key_that_could_be_guessed_is_refused_and_not_shown() -> None:
    problem = one_problem('[[server.keys]]\nowner = "me"\nkey = "hunter2"\n')
    assert "server.keys[0].key: is too short: it could be guessed." in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize("key", [f"{KEY} {KEY}", f"{KEY}\\n", f"{KEY}ä"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    what = "has characters that no header can carry. Is there a blank or a line break in it?"
    assert said(f'[[server.keys]]\nowner = "me"\nkey = "{key}"\n') == [f"server.keys[0].key: {what}"]
    assert said(upstream(api_key=f'"{key}"')) == [f"upstreams.up.api_key[0]: {what}"]


def test_headers_are_such_as_can_be_sent() -> None:
    assert said(upstream(headers='{x-team = "a b"}')) == []
    assert said(upstream(headers='{"x team" = "a", host = "b", x = "a\\nb"}')) == [
        'upstreams.up.headers."x team": is no name of a header. Write it like "x-team".',
        "upstreams.up.headers.host: belongs to the connection. Take it out.",
        "upstreams.up.headers.x: has characters that no header can carry. Is there a blank or a line break in it?",
    ]


@pytest.mark.parametrize("host", ["http://a.example", "a.example:80", "a b", "::1"])
def test_allowed_hosts_are_names_without_scheme_and_port(host: str) -> None:
    assert said('[server]\nallowed_hosts = ["a.example", "*.example", "10.0.0.1", "[::1]"]') == []
    assert said(f'[server]\nallowed_hosts = ["{host}"]') == [
        'server.allowed_hosts[0]: is no name of a host. Write it like "chat.example.com", without http:// and without a port.'
    ]


def test_proxies_are_addresses_or_networks() -> None:
    assert said('[server]\ntrusted_proxies = ["10.0.0.1", "10.0.0.1/8", "::1"]') == []
    assert said('[server]\ntrusted_proxies = ["proxy"]') == [
        'server.trusted_proxies[0]: must be an address or a network. Write it like "10.0.0.1" or "10.0.0.0/8".'
    ]


@pytest.mark.parametrize("path", ["headwater", "/headwater/", "/", "//", "/a b"])
def test_a_base_path_begins_with_a_slash_and_does_not_end_with_one(path: str) -> None:
    assert said(f'[server]\nbase_path = "{path}"') == [
        'server.base_path: must begin with / and not end with one. Write it like "/headwater".'
    ]
    assert said('[server]\nbase_path = "/a/b"') == []


@pytest.mark.parametrize(("url", "fine"), [("memory:", True), ("sqlite:x", True), ("postgresql://u:p@h/d", True), ("postgres://h/d", True), ("sqlite:", False), ("mysql://u:pw@h", False), ("x", False)])  # fmt: skip
def test_the_store_is_one_that_is_known(url: str, fine: bool) -> None:
    what = "store.url: is no store that is known. There is: sqlite:PATH, postgresql://…, memory:."
    assert said(f'[store]\nurl = "{url}"') == ([] if fine else [what])


# ------------------------------------------------------------------- upstreams


@pytest.mark.parametrize("name", ['"a/b"', '""', '"a b"', "-a"])
def test_an_upstreams_name_has_no_slash(name: str) -> None:
    what = "is no name for an upstream. Use letters, digits, and _ . - after the first."
    assert said(upstream(name)) == [f"upstreams.{name}: {what}"]


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("api.example.com/v1", "must begin with http:// or https:// and a host."),
        ("ftp://api.example.com", "must begin with http:// or https:// and a host."),
        ("http://", "must begin with http:// or https:// and a host."),
        ("http://:80", "must begin with http:// or https:// and a host."),
        ("", "must begin with http:// or https:// and a host."),
        ("http://[::1", "is not an address."),
        ("http://host:port", "is not an address."),
        ("http://host:99999", "is not an address."),
        ("http://me:sk-012345@host/v1", "has a user or a password in it. A key belongs into api_key, or into headers."),
        ("http://host/v1?key=sk-012345", "has a query in it, but paths are put behind it."),
        ("http://host/v1#x", "has a query in it, but paths are put behind it."),
        (
            "http://host/v1/chat/completions/",
            "is the address of one route, but has to be their base. Leave out /chat/completions.",
        ),
        (" http://host", "has a blank in it. Take it out."),
        ("http://ho\\nst", "has a blank in it. Take it out."),
    ],
)
def test_a_base_url_is_the_base_of_an_http_api_without_secrets(url: str, what: str) -> None:
    [problem] = said(f'[upstreams.up]\nbase_url = "{url}"')
    assert problem.startswith(f"upstreams.up.base_url: {what}")
    assert "sk-012345" not in problem


@pytest.mark.parametrize("url", ["http://host", "https://host:1/v1/", "http://[::1]:1/v1", "http://10.0.0.1/a/b"])
def test_a_base_url_of_any_host_is_fine(url: str) -> None:
    assert loaded(f'[upstreams.up]\nbase_url = "{url}"').settings.upstreams["up"].base_url == url


@pytest.mark.parametrize("origin", ["app.example", "https://app.example/", "*", "ftp://app.example"])
def test_origins_are_as_a_browser_says_them(origin: str) -> None:
    assert said('[server]\ncors_origins = ["https://app.example", "http://localhost:5173", "http://[::1]:80"]') == []
    [problem] = said(f'[server]\ncors_origins = ["{origin}"]')
    assert problem.startswith("server.cors_origins[0]: is no origin.")
