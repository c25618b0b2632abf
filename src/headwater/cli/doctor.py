"""`headwater doctor`: what is wrong with the installation and with each upstream, and what to change."""

from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli import exits
from headwater.cli.complete import complete_model
from headwater.cli.config import ConfigOption, load_or_exit

if TYPE_CHECKING:
    from headwater.cli.diagnosis import Finding


def doctor(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="Look at these only, as UPSTREAM/MODEL or as you have named them. Else one of each upstream.",
            autocompletion=complete_model,
        ),
    ] = None,
    patience_s: Annotated[
        float, typer.Option("--patience", min=0.1, help="Seconds of silence after which an upstream is left.")
    ] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="One object with all that was found.")] = False,
    file: ConfigOption = None,
) -> None:
    """Look at the installation, and ask each upstream from the outside: does it stream, end well, call tools, think?

    That is a few hundred tokens of each. The store and the servers of tools are tried, too. The exit code is 1 if
    there is a fault.
    """
    import asyncio
    import json

    import msgspec

    from headwater.cli.examining import examine, installation
    from headwater.cli.surroundings import of_store, of_tools

    loaded = load_or_exit(file)
    settings = loaded.settings
    found: dict[str, list[Finding]] = {}

    def tell(name: str, findings: "list[Finding]") -> None:
        found[name] = findings
        if not as_json:
            _print(name, findings)

    async def work() -> None:
        tell("installation", [*installation(loaded), *await of_store(settings)])
        async for name, findings in examine(settings, model or [], patience_s):
            tell(name, findings)
        if not model:
            async for name, findings in of_tools(settings, patience_s):
                tell(name, findings)

    asyncio.run(work())
    faults = sum(one.level == "fault" for findings in found.values() for one in findings)
    if as_json:
        print(json.dumps(msgspec.to_builtins(found), indent=2, ensure_ascii=False))
    else:
        print(
            "No fault was found." if not faults else f"{faults} {'fault was' if faults == 1 else 'faults were'} found."
        )
    raise typer.Exit(exits.FAILED if faults else exits.COMPLETED)


def _print(name: str, findings: "list[Finding]") -> None:
    import shutil
    import sys
    import textwrap

    from headwater.cli.diagnosis import MARKS

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    print(name)
    for one in findings:
        first = f"  {MARKS[one.level]} {one.check}: "
        print(textwrap.fill(one.what, width, initial_indent=first, subsequent_indent="    "))
        if one.change is not None:
            print(textwrap.fill(one.change, width, initial_indent="    → ", subsequent_indent="      "))
    print(flush=True)
