"""`demo/story`: a long answer in Markdown, at the pace of a person who reads along. No two chats get the same one."""

from random import Random
from typing import Final

from headwater.upstream.demo import rivers
from headwater.upstream.demo.asked import Asked
from headwater.upstream.demo.script import Say, Script

_QUOTED_CHARS: Final = 80
_TO_TRY: Final = (
    "---\n\n*I am `demo/story`: I know a few rivers and nothing else. Things to try while I talk: **stop** me and see "
    "that every word is kept; **reload** the page and find me still talking; ask the same of two models in "
    "**compare**.*"
)


def script(asked: Asked) -> Script:
    return Script(beats=(Say(tell(asked)),), tokens_per_s=32)


def tell(asked: Asked) -> str:
    random = Random(asked.seed)
    river, *others = random.sample(rivers.RIVERS, 4)

    def one_of(pieces: tuple[str, ...]) -> str:
        piece = random.choice(pieces)
        return piece.format(name=river.name, rises=river.rises, reaches=river.reaches, length=f"{river.length_km:,}")

    first, second, third = random.sample(rivers.TURNS, 3)
    return "\n\n".join(
        [
            f"# {one_of(rivers.TITLES)}",
            _greeting(asked),
            one_of(rivers.OPENINGS),
            "## Where it begins",
            random.choice(rivers.BEGINNINGS),
            f"## Four rivers, and what the {river.name} is known for",
            _table(river, *others),
            f"And the {river.name}? It is known for {river.known_for}.",
            "## On the way",
            first,
            random.choice(rivers.SAYINGS),
            second,
            third,
            "## The same, for engineers",
            random.choice(rivers.CODES),
            "## Where it ends",
            one_of(rivers.CLOSINGS),
            _TO_TRY,
        ]
    )


def _greeting(asked: Asked) -> str:
    if not asked.prompt.strip():
        greeting = "You said nothing: a good start for a story."
    else:
        greeting = f"You said: “{_shown(asked.prompt)}” I have only one subject, so let me answer with that."
    if asked.system:
        greeting += f" (I was also told: “{_shown(asked.system)}” I'll keep it in mind, as far as I have one.)"
    return greeting


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED_CHARS else line[:_QUOTED_CHARS].rstrip() + "…"


def _table(*chosen: rivers.River) -> str:
    ranked = sorted(chosen, key=lambda river: -river.length_km)
    rows = [f"| **{river.name}** | {river.rises} | {river.reaches} | {river.length_km:,} km |" for river in ranked]
    return "\n".join(["| River | rises in | reaches | Length |", "|---|---|---|---:|", *rows])
