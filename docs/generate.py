"""Writes the pages that are made from the code: `make docs`."""

from pathlib import Path

from docs.cli_page import cli_page
from docs.configuration_page import configuration_page
from docs.providers_page import providers_page
from headwater.dialects.carry import ANSWERED, ASKED, CARRIED, Answered, Asked, Fate

PAGE = """\
# Dialects

<!-- Made from src/headwater/dialects/carry by `make docs`; a test keeps it so. -->

A client speaks one of three dialects, an upstream another or the same: nine pairings, all through one form
(`conversation.py` for what is asked, `events.py` for what is answered). What a pairing can't carry is *refused*
by name (the answer would be to another question), or it is *changed* or *dropped* and **noted**: in the run's log, and in the
`headwater.notes` of the client's answer.

## What is asked, by the dialect of the upstream

| feature | chat | responses | messages |
|---|---|---|---|
{asked}

A parameter, a part of a message or an item that only one dialect has goes to an upstream of that dialect as it is. A provider's
own fields on a tool call, and reasoning with its seal (a signature, encrypted content), go back to the upstream that they came
from; where a client brings them, to any of their dialect. Reasoning without a seal goes only where an upstream is known to
want it. The messages dialect must be told a limit of tokens: where the client gave none, it is the `max_tokens` of the
model's `[[models]]`, else what its provider is known to take, else 16,000. A developer's message is a system prompt under a younger
name. What an upstream is configured to refuse is left out, and noted.

Every history is made legal for the dialect: each tool call has exactly one result, right after its turn (one that is missing is
said to be unknown), no message is empty, ids are such as the provider takes.

## What is answered, by the dialect of the client

| feature | chat | responses | messages |
|---|---|---|---|
{answered}

A note is made where there is something to tell: a tier that is the standard one, or counts that are 0, are not.
"""


def dialects_page() -> str:
    return PAGE.format(asked="\n".join(map(_row, ASKED)), answered="\n".join(map(_row, ANSWERED)))


def _row(row: Asked | Answered) -> str:
    return f"| {row.what} | {_cell(row.chat)} | {_cell(row.responses)} | {_cell(row.messages)} |"


def _cell(fate: Fate) -> str:
    return "✓" if fate == CARRIED else f"*{fate.kind}*: {fate.why}"


PAGES = {
    "dialects.md": dialects_page,
    "providers.md": providers_page,
    "configuration.md": configuration_page,
    "cli.md": cli_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page())
