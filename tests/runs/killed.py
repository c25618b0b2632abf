"""A worker under load that prints what its followers are shown, until somebody kills it. Run by test_kill.py."""

import asyncio
import os
import random
import sys
from pathlib import Path

from headwater.clock import SystemClock
from headwater.events import AttemptStarted, Completed, RunEnded, TextDelta
from headwater.records import Run
from headwater.runs.habits import Habits
from headwater.runs.service import Runs
from headwater.source import Ended, Sink, Source, emit
from headwater.store.results import Queued, Start, Started
from headwater.store.sqlite import open_sqlite
from tests.runs.puppets import OWNER, new_id, said

RUNS = 50


class Talker:
    unwind_s: float | None = None

    async def run(self, sink: Sink) -> Ended:
        emit(sink, AttemptStarted("up", "m"))
        for n in range(random.randrange(1, 60)):
            emit(sink, TextDelta(f"w{n} "))
            await asyncio.sleep(random.random() * 0.004)
        return Ended(Completed("stop"))

    def pause(self) -> None: ...

    def resume(self) -> None: ...


async def make_source(run: Run) -> Source:
    return Talker()


async def chat(runs: Runs, session_id: str) -> None:
    while True:
        run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=1000.0, session_id=session_id)
        start = Start(run=run, messages=(said("Go on"),), create_session=True, multitask="queue")
        result = await runs.start(start)
        assert isinstance(result, Started | Queued)
        follower = runs.follower(OWNER, run.id)
        while entries := await follower.next():
            shown = [f"{run.id} {entry.seq} {_shown(entry.event)}\n" for entry in entries]
            os.write(1, "".join(shown).encode())
        follower.leave()


def _shown(event: object) -> str:
    if isinstance(event, TextDelta):
        return event.text.strip()
    return "END" if isinstance(event, RunEnded) else "-"


async def main(path: Path) -> None:
    clock = SystemClock()
    store = await open_sqlite(path, address="", clock=clock, entropy=os.urandom)
    runs = Runs(Habits(store=store, clock=clock, make_id=new_id), make_source)
    await runs.open()
    os.write(1, b"ready\n")
    await asyncio.gather(*(chat(runs, f"s{n}") for n in range(RUNS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
