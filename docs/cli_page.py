"""docs/cli.md, made from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer.main

from headwater.cli import app
from headwater.cli.exits import MEANINGS

PAGE = """\
# The command line

<!-- Made from src/headwater/cli by `make docs`; a test keeps it so. -->

`headwater` serves, and is a client of what it serves: for people who live in a shell, and for scripts.

```sh
headwater chat                              # talk; /help tells what there is
headwater chat -m demo/story "Tell me of a river"
git diff | headwater chat "Write a commit message for this" > message.txt
headwater compare -m demo/story -m demo/think "Which river is the longest?"
headwater runs                              # a table that stays up to date
headwater attach last                       # follow a run from its beginning, wherever it was started
headwater doctor                            # what is wrong with an upstream, and what to change
```

## Which server

A command talks to the server that was named (`--server URL`, or `HEADWATER_ADDRESS`); else to the one that holds the configured
database, which says so in the lock beside it; else, where the database is no file, to one that answers at the configured address. With
none, the command has a server of its own, in its own process and on a free port of this machine, for as long as it lasts. A database that a
server holds is never opened. Where the server wants a key: `--key`, or `HEADWATER_KEY`.

A run that a command has started goes on when its terminal is lost or the command is told to end (SIGTERM), and is found by `headwater attach
last`; one of a server of the command's own ends with it.

## Which model

The one of `-m`; else the conversation's; else `server.default_model`, or the only one there is. Where no upstream is configured at all,
`demo/story` answers. It never does so in the place of an upstream that is away: `headwater chat` says which one gave no list of its models, and ends with 1.
Of a server that lists demo models only it can't be known why, so that a demo answers is said on stderr; and in a script, if the server was
named, none does: give `-m demo/story`. `headwater models` says on stderr which upstreams gave no list.

## Which conversation

A new one; or that of `--session`: its id, the end of it, or `last` (which is `--continue`, too). An end counts from six characters on, and of ids that
were made, not of names that somebody chose. What is none of these is the name of a new conversation, and that is said on stderr: letters of
a to z, digits and `_ . : ~ -`, 128 at most. Clients of `/v1` may name theirs as they like; such a one is gone on with by its whole name.

What is queued in it, from the page or by a program, is at the end of `headwater sessions show`. A stop, a failure or a crash pauses the queue: whoever
goes on with the conversation is told so, and speaks before those who wait; `headwater sessions resume` lets them go on.

## At a terminal

The answer is Markdown, printed once, block by block: what has scrolled by is never touched again, and only the block that is being written
may still change. A resize lets stand what is there. Reasoning is dim (`--reasoning show`, `hide` or `only`); a tool is a line of its own; one that waits for a
person asks in place: `y`, `n` (and why), or `a` for always in this conversation.

| key | while an answer comes | at the prompt |
|---|---|---|
| Ctrl-C | stops it, and says what was kept; again: leaves at once | takes away what was typed; on an empty line: leaves |
| `/stop`, `/detach` | the same as Ctrl-C; leaves the run going, and prints how to follow it again | |
| Enter, Alt-Enter | | sends; makes a new line |
| Ctrl-D | | leaves |
| arrows | | what was typed before, also last week (`~/.local/state/headwater/history`) |

What is typed while an answer comes is in the next prompt. `/help` lists the commands: other models, instructions, images, another answer, going on
with one that was cut, other conversations. A server that is lost is looked for again, and the answer goes on from where it was.

## In a script

Where stdout is no terminal (or with `--plain`), the answer goes there to the letter, and all else to stderr. `--json` prints each event of the run's log on
a line of its own, as in [api.md](api.md). What is piped in follows the question. Whoever closes the pipe stops the run.

| exit code | |
|---|---|
{codes}

## Completion

`headwater completion bash` (or `zsh`, `fish`) prints a script for the shell. Models, runs and conversations are completed, too, where a server runs.

```sh
eval "$(headwater completion bash)"         # in ~/.bashrc
eval "$(headwater completion zsh)"          # in ~/.zshrc, after compinit
headwater completion fish > ~/.config/fish/completions/headwater.fish
```

## The commands

{commands}
"""


def cli_page() -> str:
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in MEANINGS.items())
    root: Any = typer.main.get_command(app)
    return PAGE.format(codes=codes, commands="\n\n".join(_sections(root, "headwater")))


def _sections(command: Any, path: str) -> Iterator[str]:
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield f"### `{path} {name}`\n\n{_help(one)}"
            yield from _sections(one, f"{path} {name}")
        else:
            yield f"### `{path} {name}{_arguments(one)}`\n\n{_help(one)}{_options(one)}"


def _help(command: Any) -> str:
    return " ".join((command.help or "").split())


def _arguments(command: Any) -> str:
    named = [(one.metavar or one.name.upper(), one.required) for one in _of(command, "argument")]
    return "".join(f" {name}" if required else f" [{name}]" for name, required in named)


def _options(command: Any) -> str:
    arguments = [(one.metavar or one.name.upper(), one) for one in _of(command, "argument") if one.help]
    options = [(", ".join([*one.opts, *one.secondary_opts]), one) for one in _of(command, "option")]
    rows = [f"| `{name}` | {_about(one)} |" for name, one in [*arguments, *options]]
    return "\n\n| | |\n|---|---|\n" + "\n".join(rows) if rows else ""


def _of(command: Any, kind: str) -> list[Any]:
    return [one for one in command.params if one.param_type_name == kind and one.name != "help"]


def _about(parameter: Any) -> str:
    help = parameter.help or ""
    parts = [help]
    default = parameter.default
    if isinstance(default, int | float | str) and not isinstance(default, bool):
        parts.append(f"Default: {default}.")
    if parameter.param_type_name == "option" and parameter.envvar:
        parts.append(f"Also `{parameter.envvar}`.")
    return " ".join(filter(None, parts)).replace("|", "\\|")
