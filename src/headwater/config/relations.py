"""What names what: models their upstreams and fallbacks, agents their models and tools."""

from fnmatch import fnmatchcase
from typing import Final

from headwater.config.places import Place, Problems, closest, did_you_mean, key_text, quoted
from headwater.config.settings import AgentSettings, Settings
from headwater.config.values import DEMO

# What only the built-in loop understands, and what only a user's own agent does.
_OF_THE_LOOP: Final = (
    "model",
    "system",
    "max_turns",
    "max_tokens",
    "budget_tokens",
    "approve",
    "approve_timeout_s",
)
_OF_PYTHON: Final = ("cleanup_timeout_s",)
_DEFAULT: Final = AgentSettings()


def check_relations(settings: Settings, problems: Problems) -> None:
    _check_models(settings, problems)
    _check_cycles(settings, problems)
    _check_keys(settings, problems)
    _check_workers(settings, problems)
    default = settings.server.default_model
    if default is not None and default not in settings.agents:
        _check_model_name(("server", "default_model"), default, settings, problems)
    for name, agent in settings.agents.items():
        _check_agent(name, agent, settings, problems)
        if agent.model is not None:
            _check_model_name(("agents", name, "model"), agent.model, settings, problems)


def _check_model_name(place: Place, model: str, settings: Settings, problems: Problems) -> None:
    """A name that has to be some model's. Which ones the upstreams list is known only while serving."""
    names = [known.name for known in settings.models]
    prefix, slash, _ = model.partition("/")
    if model in names or (slash and prefix in (DEMO, *settings.upstreams)):
        return
    if any(upstream.list_models for upstream in settings.upstreams.values()):
        near = closest(model, names)
        fix = "It works if an upstream lists it." + (f" Or did you mean {quoted(near)}?" if near else "")
        problems.warn(place, f"{quoted(model)} is not under [[models]].", fix)
    else:
        fix = did_you_mean(model, names) or "Add it under [[models]]."
        problems.add(place, f"there is no model {quoted(model)}.", fix)


def _check_models(settings: Settings, problems: Problems) -> None:
    first: dict[str, int] = {}
    upstreams = [*settings.upstreams, DEMO]
    for number, model in enumerate(settings.models):
        place: Place = ("models", number)
        if first.setdefault(model.name, number) != number:
            problems.add((*place, "name"), f"models[{first[model.name]}] has that name already.", "Choose another.")
        if model.upstream not in upstreams:
            fix = did_you_mean(model.upstream, upstreams)
            problems.add((*place, "upstream"), f"there is no upstream {quoted(model.upstream)}.", fix)
        for n, fallback in enumerate(model.fallbacks):
            _check_model_name((*place, "fallbacks", n), fallback, settings, problems)
            if fallback in model.fallbacks[:n]:
                problems.add((*place, "fallbacks", n), f"{quoted(fallback)} is there twice.", "Take one out.")


def _check_cycles(settings: Settings, problems: Problems) -> None:
    """Each cycle of fallbacks once, at the first of its models."""
    ways = {model.name: list(model.fallbacks) for model in settings.models}
    while ways := _without_dead_ends(ways):
        way = [next(iter(ways))]
        while way[-1] not in way[:-1]:
            way.append(ways[way[-1]][0])
        cycle = way[way.index(way[-1]) :]
        number = min(n for n, model in enumerate(settings.models) if model.name in cycle)
        turned = cycle.index(settings.models[number].name)
        shown = " → ".join(map(key_text, [*cycle[turned:-1], *cycle[: turned + 1]]))
        problems.add(("models", number, "fallbacks"), f"they go in a circle: {shown}.", "Take one out.")
        ways = {name: following for name, following in ways.items() if name not in cycle}


def _without_dead_ends(ways: dict[str, list[str]]) -> dict[str, list[str]]:
    """What can be followed for ever."""
    while True:
        left = {name: [one for one in following if one in ways] for name, following in ways.items()}
        left = {name: following for name, following in left.items() if following}
        if left == ways:
            return left
        ways = left


def _check_keys(settings: Settings, problems: Problems) -> None:
    first: dict[str, int] = {}
    for number, key in enumerate(settings.server.keys):
        if first.setdefault(key.key.reveal(), number) != number:
            what = f"is the same as that of server.keys[{first[key.key.reveal()]}]."
            problems.add(("server", "keys", number, "key"), what, "Each needs one of its own.")


def _check_workers(settings: Settings, problems: Problems) -> None:
    scheme = settings.store.url.reveal().partition(":")[0]
    if settings.server.workers > 1 and scheme not in ("postgresql", "postgres"):
        # Not what it is: a key may have been written there.
        what = f"{settings.server.workers} processes can't share a store that is no Postgres."
        problems.add(("server", "workers"), what, "Set store.url to a postgresql://… (docs/scaling.md), or take one.")


def _check_agent(name: str, agent: AgentSettings, settings: Settings, problems: Problems) -> None:
    place: Place = ("agents", name)
    if any(name == model.name for model in settings.models):
        problems.add(place, "is the name of a model, and agents are listed as models, too.", "Choose another.")
    if agent.model is None and agent.python is None:
        problems.add((*place, "model"), "is missing, and there is no python.", 'Write it like model = "fast".')
    pointless = _OF_THE_LOOP if agent.python is not None else _OF_PYTHON
    for key in pointless:
        if getattr(agent, key) != getattr(_DEFAULT, key):
            what = "is for the built-in loop" if agent.python is not None else "is for an agent in python"
            problems.add((*place, key), f"{what}, which this is not.", "Take it out.")
    for number, tool in enumerate(agent.tools):
        if tool not in settings.mcp:
            what = f"there is no {quoted(tool)} under [mcp]."
            problems.add((*place, "tools", number), what, did_you_mean(tool, list(settings.mcp)))
    for number, pattern in enumerate(agent.approve):
        server = pattern.partition(".")[0]
        if not any(fnmatchcase(tool, server) for tool in agent.tools):
            # A pattern that fits nothing would leave a tool without the approval that was meant for it.
            what = f"{quoted(pattern)} fits none of its tools."
            problems.add((*place, "approve", number), what, 'Write it like "files.write_*", with a name of tools.')
