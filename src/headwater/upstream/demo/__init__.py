"""The demo models: built in, with no key and no network, and asked like any other upstream.

They give the bytes of a chat completions stream, so that all that holds for a real one holds for them: reading,
judging, retries, stalls. Pure: whoever plays the steps brings the clock.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from headwater.config.settings import UpstreamSettings
from headwater.upstream.demo import agent, echo, flaky, story, think, tools
from headwater.upstream.demo.asked import Asked, read
from headwater.upstream.demo.fit import fit
from headwater.upstream.demo.script import Say, Script, play
from headwater.upstream.demo.steps import Step

NAME: Final = "demo"
"""Of the upstream; nobody else may have it."""

MODELS: Final[dict[str, Callable[[Asked], Script]]] = {
    "echo": echo.script,
    "story": story.script,
    "think": think.script,
    "tools": tools.script,
    "flaky": flaky.script,
    "agent": agent.script,
}

# `demo/flaky` can be told to stall: nobody should have to wait a minute to see what comes of it.
SETTINGS: Final = UpstreamSettings(
    base_url="demo:",
    provider=NAME,
    first_token_timeout_s=20.0,
    idle_timeout_s=10.0,
    think_tags="off",
    list_models=False,
)


def answer(body: bytes) -> Iterator[Step]:
    """`body` is what `dialects.chat.render` has written, with one of `MODELS` as its model."""
    asked = read(body)
    return play(_script(asked), asked)


def _script(asked: Asked) -> Script:
    script = MODELS[asked.model](asked)
    if asked.schema is None or asked.model not in ("echo", "story", "think"):
        return script
    value = msgspec.json.encode(fit(asked.schema, asked.prompt)).decode()
    return Script(beats=(Say(value),))
