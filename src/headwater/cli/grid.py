"""A table of Markdown, drawn in columns that fit. Cells are wrapped, never cut; widths can be kept for more rows."""

from collections.abc import Sequence

from markdown_it.token import Token
from rich.console import Console
from rich.text import Text

from headwater.cli.table import BETWEEN as _BETWEEN


def natural_widths(rows: Sequence[Sequence[Text]]) -> list[int]:
    return [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]


def draw(
    console: Console, rows: Sequence[Sequence[Text]], widths: Sequence[int], aligns: Sequence[str], *, head: bool
) -> list[Text]:
    """`head`: the first row is one, with a rule below it."""
    lines: list[Text] = []
    for number, row in enumerate(rows):
        lines += _row(console, row, widths, aligns)
        if head and number == 0:
            lines.append(Text.assemble(("─" * (sum(widths) + len(_BETWEEN) * (len(widths) - 1)), "dim")))
    return lines


def _row(console: Console, row: Sequence[Text], widths: Sequence[int], aligns: Sequence[str]) -> list[Text]:
    wrapped = [
        list(cell.wrap(console, width, overflow="fold")) or [Text()] for cell, width in zip(row, widths, strict=True)
    ]
    lines: list[Text] = []
    for n in range(max(map(len, wrapped))):
        line = Text()
        for column, (cell, width, align) in enumerate(zip(wrapped, widths, aligns, strict=True)):
            part = cell[n].copy() if n < len(cell) else Text()
            part.rstrip()
            blank = width - part.cell_len
            before = blank if align == "right" else blank // 2 if align == "center" else 0
            line.append(_BETWEEN if column else "").append(" " * before)
            line.append_text(part).append(" " * (blank - before))
        line.rstrip()
        lines.append(line)
    return lines


def alignments(tokens: Sequence[Token]) -> list[str]:
    """Of the columns, as the row below the head says."""
    heads = [token for token in tokens if token.type == "th_open"]
    return [str(token.attrs.get("style") or "").removeprefix("text-align:") for token in heads]
