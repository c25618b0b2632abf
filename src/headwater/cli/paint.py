"""Markdown as lines for a terminal of some width: CommonMark by markdown-it, drawn by rich, in sixteen colours.

A line is rich's `Text`: it can be measured, cut, and written. Nothing that was said is left out: HTML and the addresses
of links are shown as they are. Code at the margin is not wrapped: the terminal does that, so that it can be copied.
"""

import io
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import ClassVar, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.token import Comment, Error, Generic, Keyword, Name, Number, Operator, String  # type: ignore[import-untyped]
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, ListItem, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme

from headwater.cli import grid
from headwater.cli.table import fitted
from headwater.cli.words import safe

WIDEST: Final = 100
"""Longer lines are hard to read, whatever the window's width."""

_THEME: Final = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "italic",
        "markdown.h5": "italic",
        "markdown.h6": "italic",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.hr": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "blue",
    }
)
# Such that can be read on a dark ground and on a light one.
_CODE: Final = ANSISyntaxTheme(
    {
        Comment: Style(dim=True),
        Keyword: Style(color="magenta"),
        Operator.Word: Style(color="magenta"),
        Name.Function: Style(color="blue"),
        Name.Class: Style(color="blue"),
        Name.Decorator: Style(color="cyan"),
        Name.Tag: Style(color="blue"),
        Name.Attribute: Style(color="cyan"),
        Name.Builtin: Style(color="cyan"),
        String: Style(color="green"),
        Number: Style(color="cyan"),
        Generic.Deleted: Style(color="red"),
        Generic.Inserted: Style(color="green"),
        Generic.Heading: Style(bold=True),
        Error: Style(),
    }
)
_INDENT: Final = "  "


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _CodeBlock(CodeBlock):
    """In a list or a quote, where it has to be wrapped."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = highlighted(str(self.text).rstrip("\n"), self.lexer_name)
        code.overflow = "fold"
        yield code


class _ListItem(ListItem):
    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        """As it was written: with its dot."""
        width = len(str(last_number)) + 3
        lines = console.render_lines(self.elements, options.update(width=options.max_width - width), style=self.style)
        style = console.get_style("markdown.item.number")
        for place, line in enumerate(lines):
            yield Segment(f"{number}. ".rjust(width) if place == 0 else " " * width, style)
            yield from line
            yield Segment.line()


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "list_item_open": _ListItem,
    }

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = tokens


@cache
def parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")


def highlighted(code: str, language: str) -> Text:
    # A lexer that does not know the language gives the text as it is.
    text = Syntax("", language or "text", theme=_CODE).highlight(code)
    text.rstrip()
    text.no_wrap = False
    return text


class Painter:
    def __init__(self, width: int, *, fold_code: bool = False) -> None:
        """`fold_code`: not even code may be wider than that."""
        self.width = max(10, width)
        self._fold_code = fold_code
        self._console = Console(
            file=io.StringIO(), width=min(self.width, WIDEST), force_terminal=True, theme=_THEME, highlight=False
        )
        # For what is wrapped later.
        self._wide = self._console.options.update(width=100_000, no_wrap=True, overflow="ignore")

    # ------------------------------------------------------------------- drawing

    def block(self, source: str) -> list[Text]:
        """One block of Markdown."""
        tokens = parser().parse(safe(source))
        if len(tokens) == 1 and tokens[0].type == "fence":
            code = highlighted(tokens[0].content.rstrip("\n"), tokens[0].info.partition(" ")[0])
            lines = [Text(_INDENT) + line for line in code.split("\n", allow_blank=True)]
            return [part for line in lines for part in self._folded(line)] if self._fold_code else lines
        if tokens and tokens[0].type == "table_open":
            return self.table(source)
        return _without_edges(self._drawn(_Markdown(tokens)))

    def _folded(self, line: Text) -> list[Text]:
        return list(line.divide(range(self.width, line.cell_len, self.width))) or [line]

    def table(self, source: str, widths: Sequence[int] | None = None) -> list[Text]:
        """With `widths` it is the rest of one whose head is drawn: the rows alone, in the same columns."""
        tokens = parser().parse(safe(source))
        rows = self._cells(tokens)
        head = widths is None
        columns = self.widths(source)
        if widths is not None:
            # A row that needs more gets it, be it a little out of line.
            wider = [max(pair) for pair in zip(columns, widths, strict=True)]
            columns = fitted(wider, min(self.width, WIDEST))
        return grid.draw(
            self._console,
            rows if head else rows[1:],
            columns,
            grid.alignments(tokens),
            head=head,
        )

    def widths(self, source: str) -> list[int]:
        """Of a table's columns."""
        rows = self._cells(parser().parse(safe(source)))
        return fitted(grid.natural_widths(rows), min(self.width, WIDEST))

    def _cells(self, tokens: list[Token]) -> list[list[Text]]:
        rows: list[list[Text]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                cell = self._inline(token)
                if len(rows) == 1:
                    cell.stylize("bold")
                rows[-1].append(cell)
        return rows

    def _inline(self, token: Token) -> Text:
        paragraph = [Token("paragraph_open", "p", 1), token, Token("paragraph_close", "p", -1)]
        drawing = _Markdown(paragraph)
        return _line([part for part in self._console.render(drawing, self._wide) if part.text != "\n"])

    def markdown(self, source: str) -> list[str]:
        """All of a text, written."""
        lines: list[Text] = []
        for block in blocks(source):
            lines += [*([Text()] if lines else []), *self.block(block)]
        return [self.written(line) for line in lines]

    def prose(self, source: str, style: str = "dim") -> list[Text]:
        """As it is, wrapped."""
        text = _styled(safe(source).expandtabs(4), style)
        return list(text.wrap(self._console, min(self.width, WIDEST)))

    def _drawn(self, drawing: Markdown) -> list[Text]:
        lines = self._console.render_lines(drawing, pad=False)
        return [_line(segments) for segments in lines]

    # ------------------------------------------------------------------- writing

    def written(self, line: Text) -> str:
        """With the orders to the terminal in it."""
        parts: list[str] = []
        for segment in line.render(self._console):
            style = segment.style
            if style is None or not segment.text:
                parts.append(segment.text)
                continue
            if self._console.no_color:
                style = style.without_color
            parts.append(style.render(segment.text, color_system=self._console._color_system))
        return "".join(parts)

    def dim(self, text: str) -> str:
        return self.written(_styled(text, "dim"))

    def bold(self, text: str) -> str:
        return self.written(_styled(text, "bold"))


def _styled(text: str, style: str) -> Text:
    # As a span: rich leaves out the style of a text that has none.
    styled = Text(text)
    styled.stylize(style)
    return styled


def _line(segments: list[Segment]) -> Text:
    line = Text()
    for segment in segments:
        line.append(segment.text, segment.style)
    line.rstrip()
    return line


def _without_edges(lines: list[Text]) -> list[Text]:
    while lines and not lines[0].plain:
        lines.pop(0)
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


def blocks(source: str) -> list[str]:
    """The blocks that a text is made of; what a later one adds never changes those before the last."""
    starts = [token.map[0] for token in parser().parse(source) if token.level == 0 and token.map and token.nesting >= 0]
    if len(starts) < 2:
        return [source]
    # Not splitlines, which knows more kinds of line breaks than Markdown.
    lines = source.split("\n")
    edges = [0, *starts[1:], len(lines)]
    return ["\n".join([*lines[begin:end], *([""] if end < len(lines) else [])]) for begin, end in pairwise(edges)]
