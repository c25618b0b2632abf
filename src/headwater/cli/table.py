"""Rows in columns that fit a width. Pure."""

import unicodedata
from collections.abc import Sequence
from typing import Final

BETWEEN: Final = "  "


def cells(text: str) -> int:
    """How many columns of a terminal it takes."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def cut(text: str, width: int) -> str:
    """To so many columns, with a sign that there was more."""
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += _width(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept) + "…" if width > 0 else ""


def fitted(natural: Sequence[int], room: int, least: int = 4) -> list[int]:
    """Widths that, with what is between them, fit into `room` if there is any way: the widest give first."""
    widths = [max(1, width) for width in natural]
    room -= len(BETWEEN) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > least:
        widths[widths.index(max(widths))] -= 1
    return widths


def columns(rows: Sequence[Sequence[str]], width: int | None, needed: int = 3) -> list[str]:
    """A line for each row. `width` None: as wide as they are.

    If they don't fit, columns before the last are left out; the first ones and the last, which are `needed`, are cut.
    """
    if not rows:
        return []
    widths = [max(cells(row[n]) for row in rows) for n in range(len(rows[0]))]
    kept = list(range(len(widths)))
    if width is not None:
        while len(kept) > needed and sum(widths[n] + len(BETWEEN) for n in kept) - len(BETWEEN) > width:
            kept.pop(-2)
        for n, fits in zip(kept, fitted([widths[n] for n in kept], width), strict=True):
            widths[n] = fits
    return [BETWEEN.join(_padded(cut(row[n], widths[n]), widths[n]) for n in kept).rstrip() for row in rows]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))
