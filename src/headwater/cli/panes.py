"""A comparison that goes on: a pane for each model, drawn in columns, and each stopped on its own."""

import asyncio
import json
import signal
import time
from contextlib import aclosing
from typing import Any, Final

from rich.text import Text

from headwater.accumulate import Accumulator
from headwater.cli import exits, words
from headwater.cli.alternate import Alternate
from headwater.cli.flow import markdown_flow
from headwater.cli.keyboard import Keyboard
from headwater.cli.paint import Painter
from headwater.cli.reach import Reached
from headwater.cli.showing import say
from headwater.cli.table import cut
from headwater.client import ApiError
from headwater.events import Entry, Outcome, RunEnded, TextDelta, encode_entry

_FRAME_S: Final = 0.08
_NARROWEST: Final = 24
_BETWEEN: Final = " │ "


class Pane:
    def __init__(self, number: int, shown: dict[str, Any]) -> None:
        self.number = number
        self.model = str(shown["model"])
        self.session_id = str(shown["session_id"])
        self.run_id = str(shown["run"]["id"])
        self.fold = Accumulator()
        self.outcome: Outcome | None = None
        self.took_s: float | None = None
        self._flow = markdown_flow()
        self._final: list[Text] = []

    def apply(self, entry: Entry) -> None:
        self.fold.apply(entry.event)
        if isinstance(entry.event, TextDelta):
            self._flow.feed(words.safe(entry.event.text))
        if isinstance(entry.event, RunEnded):
            self.outcome, self.took_s = entry.event.outcome, entry.t / 1000

    @property
    def ending(self) -> str | None:
        return None if self.outcome is None else words.ending(self.outcome, self.fold.text())

    def head(self, elapsed_s: float) -> str:
        state = "" if self.outcome is None else f"{self.outcome.__struct_config__.tag}, "
        return f"{self.number} {self.model} · {state}{words.seconds(self.took_s or elapsed_s)}"

    def lines(self, painter: Painter) -> list[Text]:
        if self.outcome is None:
            final, tail = self._flow.frame(painter, lambda lines: True)
        else:
            final, tail = self._flow.finish(painter), []
        self._final += final
        ending = [] if self.ending is None else [Text(), *painter.prose(self.ending, "red")]
        return [*self._final, *tail, *ending]

    def redrawn(self) -> None:
        """For another width."""
        self._flow, self._final = markdown_flow(), []
        self._flow.feed(words.safe(self.fold.text()))


class Comparison:
    def __init__(self, server: Reached, group: dict[str, Any]) -> None:
        self._server = server
        self._group_id = str(group["id"])
        self.panes = [Pane(number, pane) for number, pane in enumerate(group["panes"], start=1)]
        self._stopping = False
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------ three ways to show

    async def as_json(self) -> int:
        def show(pane: Pane, entry: Entry) -> None:
            event = json.loads(encode_entry(entry))
            print(json.dumps({"run_id": pane.run_id, "asked": pane.model, **event}, ensure_ascii=False), flush=True)

        return await self._followed(show)

    async def one_after_the_other(self) -> int:
        """Each as soon as it and those before it are done."""
        told = 0

        def show(pane: Pane, entry: Entry) -> None:
            nonlocal told
            while told < len(self.panes) and self.panes[told].outcome is not None:
                done = self.panes[told]
                print(f"## {done.model}\n\n{done.fold.text().rstrip()}\n", flush=True)
                if done.ending is not None:
                    say(f"{done.model}: {done.ending}")
                told += 1

        return await self._followed(show)

    async def side_by_side(self) -> int:
        screen = _Columns(self)
        screen.open()
        try:
            return await self._followed(lambda pane, entry: None)
        finally:
            screen.close()

    async def pick(self, number: int) -> str:
        """The session to go on with; the others are hidden. Raises `ApiError`."""
        session_id = self.panes[number - 1].session_id
        await self._server.client.ask("POST", f"/api/groups/{self._group_id}/pick", {"session_id": session_id})
        return session_id

    # -------------------------------------------------------------------- following

    def stop(self, pane: Pane) -> None:
        """It alone: the others go on (C80)."""
        if pane.outcome is None:
            task = asyncio.create_task(self._stop(pane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _stop(self, pane: Pane) -> None:
        try:
            await self._server.client.ask("POST", f"/api/runs/{pane.run_id}/stop", {"wait_s": 30})
        except ApiError as error:
            say(error.message)

    def _interrupt(self) -> None:
        if self._stopping and not self._left.done():
            self._left.set_result(None)
        self._stopping = True
        for pane in self.panes:
            self.stop(pane)

    async def _followed(self, show: Any) -> int:
        async def follow(pane: Pane) -> None:
            async with aclosing(self._server.client.follow(pane.run_id)) as entries:
                async for entry in entries:
                    pane.apply(entry)
                    show(pane, entry)

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        following = asyncio.gather(*map(follow, self.panes))
        try:
            both: set[asyncio.Future[Any]] = {following, self._left}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                return exits.CTRL_C
            following.result()
        finally:
            following.cancel()
            loop.remove_signal_handler(signal.SIGINT)
        return exits.worst(exits.code_of(pane.outcome) for pane in self.panes if pane.outcome is not None)


class _Columns:
    """While they go on, the ends of all answers; then all of them, once."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._screen = Alternate()
        self._width = self._screen.columns
        self._keyboard = Keyboard(self._on_key)
        self._began_s = time.monotonic()
        self._frame: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._screen.open()
        self._keyboard.open()
        self._draw()

    def close(self) -> None:
        """All that came is printed."""
        if self._frame is not None:
            self._frame.cancel()
        self._keyboard.close()
        self._screen.close()
        for line in self._drawn(None):
            print(line)

    def _draw(self) -> None:
        began_s = time.monotonic()
        self._screen.draw(self._drawn(self._screen.room), "Ctrl-C stops all · a number stops that one")
        cost_s = time.monotonic() - began_s
        self._frame = asyncio.get_running_loop().call_later(max(_FRAME_S, 3 * cost_s), self._draw)

    def _on_key(self, char: str) -> None:
        for pane in self._comparison.panes:
            if char == str(pane.number):
                self._comparison.stop(pane)

    def _drawn(self, height: int | None) -> list[str]:
        """`height` None: all of it."""
        panes, columns = self._comparison.panes, self._screen.columns
        if columns != self._width:
            self._width = columns
            for pane in panes:
                pane.redrawn()
        width = (columns - len(_BETWEEN) * (len(panes) - 1)) // len(panes)
        if width < _NARROWEST:
            painter = Painter(columns, fold_code=True)
            lines = self._stacked(painter, None if height is None else height // len(panes))
        else:
            painter = Painter(width, fold_code=True)
            lines = _beside([self._pane(pane, painter, height) for pane in panes], width)
        return [painter.written(line) for line in lines]

    def _stacked(self, painter: Painter, height: int | None) -> list[Text]:
        lines: list[Text] = []
        for pane in self._comparison.panes:
            lines += [*([Text()] if lines else []), *self._pane(pane, painter, None if height is None else height - 1)]
        return lines

    def _pane(self, pane: Pane, painter: Painter, height: int | None) -> list[Text]:
        """Its head, and its end if there is no room for more."""
        head = Text.assemble((cut(pane.head(time.monotonic() - self._began_s), painter.width), "bold"))
        body = pane.lines(painter)
        return [head, Text(), *(body if height is None else body[-max(1, height - 2) :])]


def _beside(columns: list[list[Text]], width: int) -> list[Text]:
    lines: list[Text] = []
    for n in range(max(map(len, columns))):
        line = Text()
        for number, column in enumerate(columns):
            if number:
                line.append(_BETWEEN, "dim")
            cell = column[n] if n < len(column) else Text()
            line.append_text(cell).append(" " * (width - cell.cell_len))
        line.rstrip()
        lines.append(line)
    return lines
