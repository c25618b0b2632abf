"""Rows in columns that fit a width. Pure."""

import unicodedata
from collections.abc import Sequence


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


def columns(rows: Sequence[Sequence[str]], width: int | None, least: int = 8) -> list[str]:
    """A line for each row, two blanks between columns. `width` None: as wide as they are.

    If they don't fit, the last column is cut, and where that is not enough, columns before it are left out.
    """
    if not rows:
        return []
    widths = [max(cells(row[n]) for row in rows) for n in range(len(rows[0]))]
    kept = list(range(len(widths)))
    if width is not None:
        while len(kept) > 2 and sum(widths[n] + 2 for n in kept[:-1]) + least > width:
            # The first names the row, and the last is what it is about.
            kept.pop(-2)
        widths[kept[-1]] = max(least, min(widths[kept[-1]], width - sum(widths[n] + 2 for n in kept[:-1])))
    return ["  ".join(_padded(cut(row[n], widths[n]), widths[n]) for n in kept).rstrip() for row in rows]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))
