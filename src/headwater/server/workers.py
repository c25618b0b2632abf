"""Several server processes on one address: begun, replaced when they die, and told what their parent is told.

The parent serves nothing, opens no store and has no event loop: it can fork at any time, and hardly anything in it
can break. A worker that has died is replaced, after a pause that grows if it happens again at once; its successor
is told who it was, so that nobody has to wait for a lease to end its runs. One that says nothing for a lease is
killed: its clients would wait for ever, and its runs are others' by then. If the parent dies, its workers end.

Each worker has a listening socket of its own, among which the kernel divides who comes (of 256 connections at once
to four workers on one socket, one took 160 and one none). They are the parent's: who comes while a worker is being
replaced waits for the next one.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 30.0
STEADY_S: Final = 10.0
"""A worker that lived for so long did not die of how it was begun: the next pause is the first again."""

_ENDS: Final = (signal.SIGTERM, signal.SIGINT)


class Seat(Struct, frozen=True):
    """What a worker is given by its parent."""

    listener: socket.socket
    parent: int
    """A pipe that ends with the parent, and carries nothing."""
    report: int
    """Where its worker's id is written once it serves, and every second after that."""
    dead: tuple[str, ...]
    """Workers that were killed, and whose runs nobody has."""

    def serves(self, worker_id: str) -> None:
        # A parent that is gone is noticed by the other pipe.
        with contextlib.suppress(BrokenPipeError):
            os.write(self.report, worker_id.encode() + b"\n")


class _Place(Struct):
    """One of the workers, and whoever comes after it."""

    listener: socket.socket
    pid: int = 0
    """0: it is to be begun at `due_s`."""
    report: int = -1
    worker_id: str = ""
    """Empty until it serves."""
    begun_s: float = 0.0
    heard_s: float = 0.0
    due_s: float = 0.0
    pause_s: float = FIRST_PAUSE_S
    dead: list[str] = field(default_factory=list)


class Workers:
    """`serve` is a worker's whole life, in a process of its own; what it gives is its exit code."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        serve: Callable[[Seat], int],
        *,
        silent_s: float,
        on_ready: Callable[[], None],
        on_reload: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        """One worker for each listener. `silent_s`: for so long one may say nothing."""
        self._serve = serve
        self._silent_s = silent_s
        self._on_ready = on_ready
        self._on_reload = on_reload
        self._say = say
        self._places = [_Place(listener) for listener in listeners]
        self._alive, self._alive_end = os.pipe()
        self._ready = False
        """All have served, once."""
        self._ending = False
        self._code = 0

    def run(self) -> int:
        """Until all have ended, because they were told to or could not begin."""
        with self._signals() as told:
            while True:
                self._begin_due()
                if all(place.pid == 0 for place in self._places) and self._ending:
                    return self._code
                readable, _, _ = select.select([told, *self._reports()], [], [], self._wait_s())
                if told in readable:
                    for number in os.read(told, 100):
                        self._on_signal(signal.Signals(number))
                self._hear(readable)
                self._kill_silent()
                self._reap()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[int]:
        """A pipe that says which have come."""
        told, tells = os.pipe()
        os.set_blocking(tells, False)
        signal.set_wakeup_fd(tells, warn_on_full_buffer=False)
        for number in (*_ENDS, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        yield told
        signal.set_wakeup_fd(-1)

    def _wait_s(self) -> float | None:
        due = [place.due_s for place in self._places if place.pid == 0 and not self._ending]
        silent = [place.heard_s + self._silent_s for place in self._places if place.pid and place.worker_id]
        return max(0.0, min([*due, *silent]) - time.monotonic()) if due or silent else None

    def _reports(self) -> list[int]:
        return [place.report for place in self._places if place.report >= 0]

    # ---------------------------------------------------------------- beginning

    def _begin_due(self) -> None:
        now_s = time.monotonic()
        for place in self._places:
            if place.pid == 0 and place.due_s <= now_s and not self._ending:
                self._begin(place)

    def _begin(self, place: _Place) -> None:
        report, report_end = os.pipe()
        place.begun_s, place.worker_id = time.monotonic(), ""
        pid = os.fork()
        if pid == 0:
            seat = Seat(place.listener, self._alive, report_end, tuple(place.dead))
            self._become_worker(seat, [report, *self._reports()])
        os.close(report_end)
        place.pid, place.report = pid, report

    def _become_worker(self, seat: Seat, others: list[int]) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (*_ENDS, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            # Ctrl-C is for the parent, which tells it once.
            os.setpgid(0, 0)
            for descriptor in (self._alive_end, *others):
                os.close(descriptor)
            self._close_listeners(but=seat.listener)
            code = self._serve(seat)
        finally:
            # Nothing of what the parent was about to do is done twice.
            os._exit(code)

    def _hear(self, readable: list[int]) -> None:
        for place in self._places:
            if place.report in readable:
                said = os.read(place.report, 1000).decode().split()
                if said:
                    place.worker_id, place.heard_s = said[-1], time.monotonic()
                    place.dead.clear()
                else:
                    os.close(place.report)
                    place.report = -1
        if not self._ready and all(place.worker_id for place in self._places):
            self._ready = True
            self._on_ready()

    def _kill_silent(self) -> None:
        now_s = time.monotonic()
        for place in self._places:
            if place.pid and place.worker_id and now_s - place.heard_s > self._silent_s:
                self._say(f"worker process {place.pid} has said nothing for {self._silent_s:g} s: it is killed")
                place.heard_s = now_s
                os.kill(place.pid, signal.SIGKILL)

    # ------------------------------------------------------------------ ending

    def _on_signal(self, number: signal.Signals) -> None:
        if number in _ENDS:
            self._ending = True
            # Each worker has its own, as long as it serves; nobody is to wait behind it.
            self._close_listeners()
            self._tell(signal.SIGTERM)
        elif number == signal.SIGHUP and self._on_reload():
            self._tell(signal.SIGHUP)

    def _close_listeners(self, but: socket.socket | None = None) -> None:
        for place in self._places:
            if place.listener is not but:
                place.listener.close()

    def _tell(self, number: signal.Signals) -> None:
        for place in self._places:
            if place.pid:
                os.kill(place.pid, number)

    def _reap(self) -> None:
        for place in self._places:
            if place.pid == 0:
                continue
            pid, status = os.waitpid(place.pid, os.WNOHANG)
            if pid:
                while place.report >= 0:
                    # Its last words, to the end.
                    self._hear([place.report])
                self._on_death(place, os.waitstatus_to_exitcode(status))

    def _on_death(self, place: _Place, code: int) -> None:
        pid, place.pid = place.pid, 0
        served = bool(place.worker_id)
        if served and code != 0:
            place.dead.append(place.worker_id)
        place.worker_id = ""
        if self._ending:
            self._code = self._code or (0 if code == 0 else 1)
        elif not self._ready and not served:
            # It has said why. What keeps one from beginning keeps all.
            self._ending, self._code = True, code if code > 0 else 1
            self._tell(signal.SIGTERM)
        else:
            now_s = time.monotonic()
            place.pause_s = FIRST_PAUSE_S if now_s - place.begun_s > STEADY_S else place.pause_s
            place.due_s = now_s + place.pause_s
            how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"has ended (code {code})"
            self._say(f"worker process {pid} {how}; another begins in {place.pause_s:g} s")
            place.pause_s = min(LONGEST_PAUSE_S, 2 * place.pause_s)


def bind(host: str, port: int, number: int) -> list[socket.socket]:
    """So many sockets, each of which gets its share of who comes. Raises `OSError`.

    They don't listen yet. Where the kernel does not divide, it is one socket for all.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockets: list[socket.socket] = []
    # First as if alone: who shares an address asks nobody whether somebody has it already.
    with _bound(family, host, port, shares=False) as alone:
        port = alone.getsockname()[1]
        if number == 1 or not sys.platform.startswith("linux"):
            return [alone.dup()] * number
    for _ in range(number):
        sockets.append(_bound(family, host, port, shares=True))
    return sockets


def _bound(family: int, host: str, port: int, *, shares: bool) -> socket.socket:
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
