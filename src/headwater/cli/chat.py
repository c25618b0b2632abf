"""`headwater chat`, `attach` and `stop`: runs asked for, followed and ended from a shell."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headwater.cli import exits
from headwater.cli.complete import complete_model, complete_run, complete_session
from headwater.cli.config import ConfigOption
from headwater.cli.reach import KeyOption, ServerOption, Where, with_server

if TYPE_CHECKING:
    from headwater.cli.asking import Conversation
    from headwater.cli.reach import Reached
    from headwater.cli.showing import Reasoning, Showing

ReasoningWord = Literal["show", "hide", "only"]
ReasoningOption = Annotated[
    ReasoningWord | None,
    typer.Option(help="What a model thinks: show, hide or only. Default: show on a terminal, else hide."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One event a line, as it is in the run's log.")]
PlainOption = Annotated[bool, typer.Option("--plain", help="Plain text, also on a terminal.")]
RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help="Its id, the end of it, or `last`.", autocompletion=complete_run),
]


def chat(
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="PROMPT", help="One question. Without it you talk.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Whom to ask.", autocompletion=complete_model)
    ] = None,
    system: Annotated[str | None, typer.Option("--system", "-s", help="Instructions for the model.")] = None,
    session: Annotated[
        str | None,
        typer.Option(
            help="The conversation to go on with: its id, the end of it (six characters or more), or `last`. "
            "Else one is made that is called so.",
            autocompletion=complete_session,
        ),
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", "-c", help="Go on with the last conversation.")] = False,
    attach: Annotated[list[Path] | None, typer.Option("--attach", "-a", help="An image; several if repeated.")] = None,
    reasoning: ReasoningOption = None,
    as_json: JsonOption = False,
    plain: PlainOption = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """Talk with a model, or ask it one thing: `headwater chat "…"`, or with something piped in."""
    if session is not None and go_on:
        exits.leave("either --session or --continue.")
    if session == "last":
        session, go_on = None, True
    question = " ".join(prompt or [])
    piped = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    asked = "\n\n".join(part for part in (question, piped) if part)
    talks = not asked and sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    if not talks and not asked.strip() and not attach:
        exits.leave("what is the question? Give it as an argument, or pipe it in.")

    async def work(reached: "Reached") -> int:
        from headwater.cli.asking import Conversation, Unsaid

        conversation = Conversation(reached, model, system)
        try:
            await _open(conversation, session, go_on)
            if not talks:
                return await _ask_once(reached, conversation, asked, attach or [], reasoning, as_json, plain)
        except Unsaid as error:
            exits.leave(str(error), error.code)
        from headwater.cli.talk import Talk

        conversation.images += attach or []
        return await Talk(reached, conversation, reasoning or "show", plain).run()

    raise typer.Exit(with_server(Where(server, key, file), work))


async def _open(conversation: "Conversation", session: str | None, go_on: bool) -> None:
    if session is not None:
        await conversation.open_or_begin(session)
    elif go_on and await conversation.open_last() is None:
        exits.leave("there is no conversation yet to go on with.")


async def _ask_once(
    server: "Reached",
    conversation: "Conversation",
    asked: str,
    images: list[Path],
    reasoning: "Reasoning | None",
    as_json: bool,
    plain: bool,
) -> int:
    run_id = await conversation.say(asked, images)
    try:
        return await follow(server, run_id, reasoning, as_json, plain)
    except BrokenPipeError:
        # Nobody reads it any more, and nobody else knows of it.
        await server.client.ask("POST", f"/api/runs/{run_id}/stop", {"wait_s": 5})
        raise


async def follow(
    server: "Reached", run_id: str, reasoning: "Reasoning | None", as_json: bool = False, plain: bool = False
) -> int:
    """The exit code that its ending is."""
    import asyncio

    from headwater.cli.following import Detached, Following, LeftByCtrlC

    showing = _showing(run_id, reasoning, as_json, plain)
    following = Following(server, run_id, showing)
    showing.begin(following)
    try:
        return exits.code_of(await following.run())
    except (Detached, asyncio.CancelledError) as left:
        showing.close()
        print(following.left_behind(), file=sys.stderr)
        if isinstance(left, Detached):
            return exits.COMPLETED
        raise
    except LeftByCtrlC:
        return exits.CTRL_C
    finally:
        showing.close()


def _showing(run_id: str, reasoning: "Reasoning | None", as_json: bool, plain: bool) -> "Showing":
    from headwater.cli.showing import JsonLines, Plain

    if as_json:
        return JsonLines()
    if plain or not sys.stdout.isatty():
        return Plain(reasoning or "hide", run_id)
    from headwater.cli.screen import Screen

    return Screen(reasoning or "show")


def attach(
    run: RunArgument,
    reasoning: ReasoningOption = None,
    as_json: JsonOption = False,
    plain: PlainOption = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """Follow a run from its beginning to its end, wherever it was started."""

    async def work(reached: "Reached") -> int:
        from headwater.cli.pick import pick_run

        return await follow(reached, await pick_run(reached.client, run), reasoning, as_json, plain)

    raise typer.Exit(with_server(Where(server, key, file), work))


def stop(
    run: RunArgument,
    as_json: Annotated[bool, typer.Option("--json", help="The server's answer.")] = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """Stop a run, and say what was kept. The exit code is 0 if it has ended, by this or before."""

    async def work(reached: "Reached") -> int:
        import json

        from headwater.cli import words
        from headwater.cli.following import outcome_of
        from headwater.cli.pick import pick_run

        run_id = await pick_run(reached.client, run)
        answer = await reached.client.ask("POST", f"/api/runs/{run_id}/stop", {"wait_s": 30})
        stopped = answer["run"]
        if as_json:
            print(json.dumps(answer))
        elif stopped["outcome"] is None:
            print("Asked for; its worker has not confirmed it yet.")
        elif answer["caused_by_this_call"]:
            print(words.ending(outcome_of(stopped), stopped["text"]) or "It was completed just before.")
        else:
            print(f"It had ended before: {words.outcome_word(stopped)}.")
        return exits.COMPLETED if stopped["outcome"] is not None else exits.FAILED

    raise typer.Exit(with_server(Where(server, key, file), work))
