"""Who holds up the event loop: a user's own agent that computes, or waits, without awaiting.

Its run's every step passes through here; a thread looks now and then how long the step under way has taken. It names
the agent while it blocks, not afterwards: one that never returns would never be named.
"""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

_log = logging.getLogger("headwater.agent")

BLOCKED_S: Final = 1.0
_LOOK_S: Final = 0.25
T = TypeVar("T")


class Watch:
    """One for an event loop. Its thread begins with the first step, and ends with `close`."""

    def __init__(self, blocked_s: float = BLOCKED_S) -> None:
        self._blocked_s = blocked_s
        self._step: tuple[str, float] | None = None
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._watched = 0
        """The thread that the loop runs on."""

    def enter(self, name: str) -> None:
        if self._thread is None:
            self._watched = threading.get_ident()
            self._thread = threading.Thread(target=self._look, name="headwater watch", daemon=True)
            self._thread.start()
        self._step = name, time.monotonic()

    def leave(self) -> None:
        self._step = None

    def close(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look(self) -> None:
        named: tuple[str, float] | None = None
        while not self._over.wait(min(_LOOK_S, self._blocked_s / 4)):
            step = self._step
            if step is None or step == named or time.monotonic() - step[1] < self._blocked_s:
                continue
            named = step
            frame = sys._current_frames().get(self._watched)
            where = "".join(traceback.format_stack(frame)[-3:]) if frame is not None else ""
            _log.warning(
                "%s has blocked the event loop for %.1f s, and with it all other runs. It is here:\n%s",
                step[0],
                time.monotonic() - step[1],
                where,
            )


class Stepped(Generic[T]):
    """A coroutine to be awaited, each step of which a watch knows of."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], watch: Watch, name: str) -> None:
        self._coroutine = coroutine
        self._watch = watch
        self._name = name

    def __await__(self) -> Generator[Any, Any, T]:
        raised: BaseException | None = None
        given: Any = None
        while True:
            self._watch.enter(self._name)
            try:
                waits_for = self._coroutine.send(given) if raised is None else self._coroutine.throw(raised)
            except StopIteration as end:
                value: T = end.value
                return value
            finally:
                self._watch.leave()
            raised = given = None
            try:
                given = yield waits_for
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:
                raised = error
