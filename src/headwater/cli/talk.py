"""`headwater chat` with a person at the other end: a prompt, answers, and commands that begin with a slash."""

import asyncio
import os
import shutil
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from headwater.cli import exits
from headwater.cli.asking import Conversation, Unsaid
from headwater.cli.following import Detached, Following, LeftByCtrlC
from headwater.cli.pick import NotFound, find_session
from headwater.cli.reach import Reached, session_path
from headwater.cli.showing import Plain, Reasoning
from headwater.cli.transcript import show_items
from headwater.cli.words import one_line
from headwater.client import ApiError, FollowError

_WORDS: Final = ("show", "hide", "only")


class Left(Exception):
    """With this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class Talk:
    def __init__(self, server: Reached, conversation: Conversation, reasoning: Reasoning, plain: bool) -> None:
        self._server = server
        self._conversation = conversation
        self._reasoning: Reasoning = reasoning
        self._plain = plain
        self._typed = ""
        """What was typed while an answer came."""
        self._models: list[str] = []
        self._commands: dict[str, tuple[Callable[[str], Awaitable[None]], str]] = {
            "/help": (self._help, "this"),
            "/model": (self._model, "NAME: whom to ask from now on; alone: who that is"),
            "/system": (self._system, "TEXT: instructions for the model; alone: none"),
            "/attach": (self._attach, "FILE: an image that goes with the next message"),
            "/reasoning": (self._set_reasoning, "show | hide | only"),
            "/retry": (self._retry, "have the last answer given again"),
            "/continue": (self._continue, "go on with an answer that was cut"),
            "/new": (self._new, "another conversation"),
            "/sessions": (self._sessions, "your conversations"),
            "/open": (self._open, "ID: go on with one of them"),
            "/title": (self._title, "TEXT: name this one"),
            "/detach": (self._detach, "while an answer comes: leave it going, and leave"),
            "/quit": (self._quit, "or Ctrl-D"),
        }
        self._prompt: PromptSession[str] = PromptSession(
            history=_history(),
            completer=_Commands(self._choices),
            complete_while_typing=True,
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation=lambda width, number, wrapped: "  ",
            reserve_space_for_menu=4,
        )

    async def run(self) -> int:
        await self._greet()
        try:
            if self._conversation.run_id is not None:
                await self._follow(self._conversation.run_id)
            while True:
                await self._turn()
        except Left as left:
            return left.code

    async def _turn(self) -> None:
        typed, self._typed = self._typed, ""
        try:
            line = await self._prompt.prompt_async(FormattedText([("bold", "› ")]), default=typed)
        except EOFError:
            raise Left(exits.COMPLETED) from None
        except KeyboardInterrupt:
            raise Left(exits.CTRL_C) from None
        text = line.strip()
        if not text:
            return
        try:
            if text.startswith("/") and "\n" not in text:
                await self._command(text)
            else:
                await self._follow(await self._conversation.say(text))
        except (ApiError, FollowError, NotFound, Unsaid) as error:
            _tell(str(error))

    async def _follow(self, run_id: str) -> None:
        if self._plain:
            plain = Plain(self._reasoning, run_id)
            await self._shown(Following(self._server, run_id, plain))
            return
        from headwater.cli.screen import Screen

        screen = Screen(self._reasoning)
        following = Following(self._server, run_id, screen)
        screen.begin(following)
        try:
            await self._shown(following, screen.close)
        finally:
            screen.close()
            self._typed = screen.typed
            print()

    async def _shown(self, following: Following, close: Callable[[], None] = lambda: None) -> None:
        try:
            await following.run()
        except (Detached, asyncio.CancelledError) as left:
            close()
            print(following.left_behind())
            if isinstance(left, Detached):
                raise Left(exits.COMPLETED) from None
            raise
        except LeftByCtrlC:
            raise Left(exits.CTRL_C) from None

    async def _greet(self) -> None:
        conversation = self._conversation
        client = self._server.client
        self._models = [model["id"] for model in (await client.ask("GET", "/v1/models"))["data"]]
        where = "a server of its own, for as long as you talk" if self._server.embedded else client.url
        _tell(f"Headwater at {where}. /help tells what there is; Alt-Enter makes a new line; Ctrl-D leaves.")
        if conversation.session_id is not None:
            items = (await client.ask("GET", session_path(conversation.session_id, "/messages")))["items"]
            # What goes on is shown as it comes.
            show_items([item for item in items if item["run_id"] != conversation.run_id or item.get("role") == "user"])

    # ------------------------------------------------------------------ commands

    async def _command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        found = [one for one in self._commands if one.startswith(name)]
        if name in self._commands:
            found = [name]
        if len(found) != 1:
            _tell(f"{name} is no command. /help tells which there are.")
            return
        await self._commands[found[0]][0](rest.strip())

    async def _help(self, rest: str) -> None:
        for name, (_, about) in self._commands.items():
            print(f"  {name:11} {about}")
        print("  Enter sends, Alt-Enter makes a new line. Ctrl-C stops an answer; again, it leaves.")

    async def _model(self, rest: str) -> None:
        if rest and rest not in self._models:
            near = [model for model in self._models if rest in model]
            _tell(
                f"There is no model {rest}."
                + (f" Did you mean {near[0]}?" if near else f" There are: {', '.join(self._models)}.")
            )
            return
        self._conversation.model = rest or self._conversation.model
        _tell(f"You talk with {self._conversation.model or 'the default model'}.")

    async def _system(self, rest: str) -> None:
        self._conversation.system = rest or None
        _tell("Said to the model from now on." if rest else "No instructions of yours from now on.")

    async def _attach(self, rest: str) -> None:
        # It is read when the message is sent.
        self._conversation.images.append(Path(rest))
        _tell(f"{rest} goes with your next message.")

    async def _set_reasoning(self, rest: str) -> None:
        for word in _WORDS:
            if word == rest:
                self._reasoning = word
        _tell(f"Reasoning: {self._reasoning}. There are: {', '.join(_WORDS)}.")

    async def _retry(self, rest: str) -> None:
        run_id = await self._conversation.again() if self._conversation.session_id else None
        if run_id is None:
            _tell("There is no answer yet.")
        else:
            await self._follow(run_id)

    async def _continue(self, rest: str) -> None:
        if self._conversation.run_id is None:
            _tell("There is no answer yet.")
        else:
            await self._follow(await self._conversation.go_on())

    async def _new(self, rest: str) -> None:
        old = self._conversation
        self._conversation = Conversation(self._server, old.model, old.system)
        _tell("A new conversation. /open goes back.")

    async def _sessions(self, rest: str) -> None:
        found: list[dict[str, Any]] = (await self._server.client.ask("GET", "/api/sessions?limit=20"))["sessions"]
        for session in found:
            here = "›" if session["id"] == self._conversation.session_id else " "
            print(f"{here} {session['id'][-8:]}  {one_line(session['title'] or '(nothing was said)', 60)}")

    async def _open(self, rest: str) -> None:
        session_id = await find_session(self._server.client, rest or "last")
        conversation = Conversation(self._server, self._conversation.model, self._conversation.system)
        await conversation.open(session_id)
        self._conversation = conversation
        items = (await self._server.client.ask("GET", session_path(session_id, "/messages")))["items"]
        show_items([item for item in items if item["run_id"] != conversation.run_id or item.get("role") == "user"])
        if conversation.run_id is not None:
            await self._follow(conversation.run_id)

    async def _title(self, rest: str) -> None:
        if self._conversation.session_id is None or not rest:
            _tell("A conversation can be named once something was said: /title TEXT.")
            return
        await self._server.client.ask("PATCH", session_path(self._conversation.session_id), {"title": rest})

    async def _detach(self, rest: str) -> None:
        _tell("Nothing goes on just now. /quit leaves.")

    async def _quit(self, rest: str) -> None:
        raise Left(exits.COMPLETED)

    def _choices(self, before: str) -> Iterator[tuple[str, str]]:
        """What may stand where the cursor is, and what it is."""
        name, blank, _ = before.partition(" ")
        if not blank:
            yield from ((one, about) for one, (_, about) in self._commands.items())
        elif name == "/model":
            yield from ((f"/model {model}", "") for model in self._models)
        elif name == "/reasoning":
            yield from ((f"/reasoning {word}", "") for word in _WORDS)


class _Commands(Completer):
    def __init__(self, choices: Callable[[str], Iterator[tuple[str, str]]]) -> None:
        self._choices = choices

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if not before.startswith("/") or "\n" in before:
            return
        for text, about in self._choices(before):
            if text.startswith(before):
                shown = text.rpartition(" ")[2]
                yield Completion(text, start_position=-len(before), display=shown, display_meta=about)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    # What is typed before the prompt is there comes as the terminal gives it then: with Ctrl-J for Enter.
    @keys.add("c-j")
    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt(), style="class:aborting")

    return keys


def _history() -> History:
    """Beside the other things that this user's programs remember; for nobody else to read."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(base, "headwater", "history")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _tell(text: str) -> None:
    for line in textwrap.wrap(text, shutil.get_terminal_size().columns - 1):
        print(f"\x1b[2m{line}\x1b[0m", flush=True)
