"""A run followed to its ending by somebody who may stop it, answer it, or leave it.

Ctrl-C stops the run, and what was kept is said; again, it leaves at once. Owns the signal while it lasts.
"""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from typing import Any

import msgspec

from headwater.accumulate import Accumulator
from headwater.cli.reach import Reached
from headwater.cli.showing import Showing
from headwater.client import ApiError, Client, FollowError
from headwater.events import ApprovalAsked, Completed, Failed, Incomplete, Interrupted, Outcome, RunEnded, Stopped

_STOP_WAIT_S = 30.0


class Detached(Exception):
    """The run goes on without us."""


class LeftByCtrlC(Exception):
    """A second time."""


class _Moved(Exception):
    """The run is at another address now."""


class Following:
    """`run` it once."""

    def __init__(self, server: Reached, run_id: str, showing: Showing) -> None:
        self._server = server
        self._run_id = run_id
        self._showing = showing
        self._fold = Accumulator()
        self._cursor = -1
        self._stopping = False
        self._left: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> Outcome:
        """How it ended. Raises `Detached`, `LeftByCtrlC`, `FollowError` and `ApiError`."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.interrupt)
        reading = asyncio.create_task(self._read(), name="following: read")
        try:
            both: set[asyncio.Future[Any]] = {reading, self._left}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                raise self._left.result()
            outcome = reading.result()
            self._showing.ended(outcome, self._fold.text())
            return outcome
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            for task in (reading, *self._tasks):
                task.cancel()
                with suppress(BaseException):
                    await task

    def left_behind(self) -> str:
        """What becomes of the run if nobody follows it here."""
        if self._server.embedded:
            return "The run ends with this process, which is its server. What had come is kept."
        return f"The run goes on. To follow it again:\n  headwater attach {self._run_id}"

    # ------------------------------------------------------- what a person does

    def interrupt(self) -> None:
        if self._stopping:
            self._leave(LeftByCtrlC())
            return
        self._stopping = True
        self._showing.stopping()
        self._do(self._stop())

    def detach(self) -> None:
        if self._server.embedded:
            self._showing.remark(
                "The server is in this very process, and would go with it: there is nothing to detach from. "
                "Run `headwater serve` in another terminal for that."
            )
            return
        self._leave(Detached())

    def approve(self, call_id: str, digest: str, decision: str, remember: bool = False, reason: str = "") -> None:
        body = {"decision": decision, "arguments_digest": digest}
        if remember:
            body["remember"] = "session"
        if reason:
            body["reason"] = reason
        self._do(self._post(f"approvals/{call_id}", body))

    # ----------------------------------------------------------------- at work

    async def _read(self) -> Outcome:
        while True:
            try:
                return await self._read_from(self._server.client)
            except _Moved:
                continue
            except FollowError as error:
                if error.status != 410:
                    raise
                return await self._known()

    async def _read_from(self, client: Client) -> Outcome:
        async with aclosing(client.follow(self._run_id, self._cursor, self._on_lost)) as entries:
            async for entry in entries:
                self._cursor = entry.seq
                self._fold.apply(entry.event)
                self._showing.entry(entry)
                if isinstance(entry.event, ApprovalAsked) and await self._waits(client, entry.event.call_id):
                    self._showing.waits(entry.event)
                if isinstance(entry.event, RunEnded):
                    return entry.event.outcome
        return await self._known()

    async def _waits(self, client: Client, call_id: str) -> bool:
        """For an answer, also now. That it can't be told is nothing to end for: what was asked last will wait."""
        try:
            run = await client.ask("GET", f"/api/runs/{self._run_id}", attempts=1)
        except ApiError:
            return True
        return run["outcome"] is None and any(
            call["id"] == call_id and call["state"] == "waiting" for call in run["tool_calls"]
        )

    def _on_lost(self, why: str) -> None:
        self._showing.lost(why)
        # A server that was started again may be at another port.
        if self._server.move():
            raise _Moved

    async def _known(self) -> Outcome:
        """Its log is no longer kept: what is known of it, all at once."""
        run = await self._server.client.ask("GET", f"/api/runs/{self._run_id}")
        if run["text"]:
            self._showing.remark("The log of this run is no longer kept; this is what it came to.")
            print(run["text"], flush=True)
        return outcome_of(run)

    async def _stop(self) -> None:
        await self._post("stop", {"wait_s": _STOP_WAIT_S})

    async def _post(self, what: str, body: dict[str, Any]) -> None:
        try:
            await self._server.client.ask("POST", f"/api/runs/{self._run_id}/{what}", body)
        except ApiError as error:
            self._showing.remark(error.message)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _leave(self, why: Exception) -> None:
        if not self._left.done():
            self._left.set_result(why)


def outcome_of(run: dict[str, Any]) -> Outcome:
    kinds: Any = Completed | Incomplete | Stopped | Failed | Interrupted
    outcome: Outcome = msgspec.convert(run["outcome"], kinds)
    return outcome
