"""`demo/agent`: the model behind the built-in agent. It calls what the prompt asks for, one step after the other."""

import re
from typing import Final

from msgspec.structs import replace

from headwater.upstream.demo import tools
from headwater.upstream.demo.asked import Asked
from headwater.upstream.demo.script import Say, Script, Think

_STEP: Final = re.compile(r"\b(?:and )?then\b|\n+", re.IGNORECASE)

_HELP: Final = """\
I am a demo agent: I call tools that are built in, and pass on what they say. Ask me to

{tools}

Two at once: *roll the dice and calculate 6 * 7*. One after the other: *roll the dice, then look at the clock*. \
Something that needs your approval first: *send a postcard*. Something slow, to be stopped: *count to 20*."""


def script(asked: Asked) -> Script:
    steps = [step.strip(" ,.;") for step in _STEP.split(asked.prompt) if step.strip(" ,.;")]
    step = steps[asked.rounds] if asked.rounds < len(steps) else ""
    picked = tools.fitting(replace(asked, prompt=step)) if step else []
    if picked:
        told = (Say(f"{tools.told(asked)}\n\n"),) if asked.results else (Think(f"They want me to: {step}."),)
        return Script(beats=(*told, *tools.calls(replace(asked, prompt=step), picked)))
    if asked.results:
        return Script(beats=(Say(f"{tools.told(asked)}\n\nThat is all."),))
    listed = "\n".join(f"- **{tool.name}**: {tool.description}" for tool in asked.tools)
    return Script(beats=(Say(_HELP.format(tools=listed or "- (no tools are offered here)")),))
