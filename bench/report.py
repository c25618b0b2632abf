"""What was measured of gateways, as Markdown tables, against the budgets, and as a plot."""

import math
import os
import platform
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from bench.gateways import Figures

Found = Mapping[str, Mapping[str, "Figures"]]
"""By the load's name and the contender's."""

DIRECT: Final = "direct, no gateway"
NGINX: Final = "nginx, a plain proxy"
OURS: Final = "Headwater, unrecorded"
RECORDED: Final = "Headwater, recorded"
OPEN: Final = "1,000 streams × 15 tokens/s"
PACED: Final = "256 streams × 50 tokens/s"
ONE: Final = "1 stream, as fast as it goes"
SATURATED: Final = "32 streams, as fast as it goes"
SHORT: Final = "32 streams of 20 tokens"
_COLUMNS: Final = (
    "",
    "CPU µs a token",
    "× nginx",
    "tokens/s",
    "first token, added, p50 / p99 ms",
    "last token late, p99 ms",
    "kB a stream",
)
_SHORT_TOKENS: Final = 20
_LONG_TOKENS: Final = 200
_MANY_TOKENS_PER_S: Final = 15_000
_NGINX_US: Final = {PACED: 16.0, SATURATED: 2.3}
"""What a token took nginx on the machine, and in the hour, that the budgets in µs and ms were set on."""


class Held(Struct, frozen=True):
    what: str
    figure: float
    budget: float
    unit: str
    slower: float | None = None
    """How many times as long nginx takes here as where the budget was set; None for a ratio or a size."""

    def row(self) -> str:
        there = self.figure / (self.slower or 1)
        if self.figure <= self.budget:
            verdict = "held"
        else:
            verdict = "held at that pace" if there <= self.budget else "**not held**"
        at_pace = "" if self.slower is None else f"{there:.2f} {self.unit}"
        return f"| {self.what} | {self.figure:.2f} {self.unit} | {at_pace} | {self.budget:g} {self.unit} | {verdict} |"


def page(found: Found, rounds: int) -> str:
    tables = "\n\n".join(table(found, load) for load in found)
    about = (
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load average "
        f"{os.getloadavg()[1]:.1f} (what this takes by itself is about 2); medians of {rounds} (of LiteLLM, 1)."
    )
    return f"## Gateways\n\n{about}\n\n{budgets(found)}\n\n{tables}\n"


def table(found: Found, load: str) -> str:
    figures = found[load]
    base = figures.get(NGINX)
    rows = [f"### {load}\n", f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for name, one in figures.items():
        direct = figures[DIRECT]
        cells = [
            name,
            f"{one.us_per_token:.1f}" if one.us_per_token else "",
            f"{one.us_per_token / base.us_per_token:.2f}" if base and one.us_per_token else "",
            f"{one.tokens_per_s:,.0f}",
            f"{one.first_ms_p50 - direct.first_ms_p50:.1f} / {one.first_ms_p99 - direct.first_ms_p99:.1f}",
            f"{one.late_ms_p99:.0f}" if "tokens/s" in load else "",
            f"{one.kb_per_stream:.0f}" if load == OPEN and name != DIRECT else "",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def request_us(found: Found, name: str) -> float:
    """What a request takes apart from its tokens: of answers of 20 and of 200 tokens, by a line through both."""
    short = found[SHORT][name].us_per_token * _SHORT_TOKENS
    long = found[SATURATED][name].us_per_token * _LONG_TOKENS
    return short - _SHORT_TOKENS * (long - short) / (_LONG_TOKENS - _SHORT_TOKENS)


def of_recording(found: Found, load: str, of: str) -> Held:
    """The budget is for a token where there are many, and for all commits where there are few.

    `of`: the load by which the machine's pace is told.
    """
    recorded, offered_per_s = found[load][RECORDED], found[load][DIRECT].tokens_per_s
    where = f"{load} ({offered_per_s:,.0f} tokens/s without a gateway)"
    if offered_per_s < _MANY_TOKENS_PER_S:
        # So many tokens come in a second, whatever the machine: of a slower one they take a larger share.
        return Held(f"recorded, commits, {where}", recorded.commits * 100, 15, "% of a core", slower(found, of))
    more_us = recorded.us_per_token - found[load][OURS].us_per_token
    return Held(f"recorded, on top, {where}", more_us, 10, "µs a token", slower(found, of))


def slower(found: Found, load: str) -> float:
    nginx = found[load].get(NGINX)
    return 1.0 if nginx is None else max(1.0, nginx.us_per_token / _NGINX_US[load])


def budgets(found: Found) -> str:
    ours = {load: figures[OURS] for load, figures in found.items()}
    direct = {load: figures[DIRECT] for load, figures in found.items()}
    held: list[Held] = []
    if NGINX in found[PACED]:
        for what, load, budget in (("paced", PACED, 2.0), ("as fast as it goes", SATURATED, 4.0)):
            ratio = ours[load].us_per_token / found[load][NGINX].us_per_token
            held.append(Held(f"unrecorded, {what}", ratio, budget, "× nginx"))
    one = ours[ONE].first_ms_p50 - direct[ONE].first_ms_p50
    many = ours[PACED].first_ms_p99 - direct[PACED].first_ms_p99
    held += [
        Held("a request, unrecorded, without its tokens", request_us(found, OURS), 250, "µs", slower(found, SATURATED)),
        of_recording(found, SATURATED, SATURATED),
        of_recording(found, PACED, PACED),
        of_recording(found, OPEN, PACED),
        Held("first token, added, 1 stream, p50", one, 1, "ms", slower(found, SATURATED)),
        Held("first token, added, 256 streams, p99", many, 25, "ms", slower(found, PACED)),
        Held("1,000 open streams, unrecorded", ours[OPEN].kb_per_stream, 60, "kB a stream"),
        Held("1,000 open streams, recorded", found[OPEN][RECORDED].kb_per_stream, 60, "kB a stream"),
    ]
    pace = (
        "Budgets in µs and ms were set where nginx took 16 µs a token paced and 2.3 as fast as it goes. Here it took "
        f"{slower(found, PACED):.2f} and {slower(found, SATURATED):.2f} times as long (1.00: no longer, or no "
        "nginx is here): the third column is the second at that pace."
    )
    rows = ["| work | figure | at that pace | budget | |", "|---|---|---|---|---|", *(one.row() for one in held)]
    return "\n".join([pace, "", *rows])


# ----------------------------------------------------------------------- the plot

_LEFT, _WIDTH, _ROW = 190, 520, 22


def plot(found: Found) -> str:
    """CPU per token as bars, on a logarithmic scale: they are a hundredfold apart."""
    loads = [load for load in (PACED, SATURATED) if load in found]
    most = max(one.us_per_token for load in loads for one in found[load].values())
    parts, y = [], 20
    for load in loads:
        parts.append(f'<text x="0" y="{y}" font-weight="bold">{escape(load)}: CPU µs a token</text>')
        y += 10
        for name, one in found[load].items():
            if not one.us_per_token:
                continue
            width = _WIDTH * math.log10(1 + one.us_per_token) / math.log10(1 + most)
            colour = "#0b6e99" if name.startswith("Headwater") else "#9aa5ad"
            parts += [
                f'<text x="{_LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
                f'<rect x="{_LEFT}" y="{y + 2}" width="{width:.0f}" height="{_ROW - 6}" fill="{colour}"/>',
                f'<text x="{_LEFT + width + 6:.0f}" y="{y + 14}">{one.us_per_token:.1f}</text>',
            ]
            y += _ROW
        y += 24
    size = f'width="{_LEFT + _WIDTH + 60}" height="{y}"'
    style = 'font-family="sans-serif" font-size="12"'
    white = '<rect width="100%" height="100%" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{white}{"".join(parts)}</svg>\n'
