"""SIGKILL in the midst of it: what somebody was shown is kept, nothing is saved twice, every run has an ending (C51)."""

import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwater.conversation import Assistant
from headwater.events import Completed, Interrupted, RunEnded, TextDelta, decode_entry
from headwater.lifecycle import RunState
from headwater.store.base import Store
from headwater.store.results import Page
from tests.runs.puppets import OWNER, sqlite, stage

pytestmark = pytest.mark.anyio

# `make soak` kills ten times as often.
KILLS = int(os.environ.get("HEADWATER_KILLS", "20"))


def run_and_kill(path: Path, seconds: float) -> list[str]:
    """What its followers were shown before it died."""
    command = [sys.executable, "-m", "tests.runs.killed", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        assert first == b"ready\n", process.stderr.read().decode()
        os.set_blocking(process.stdout.fileno(), False)
        shown = b""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            shown += process.stdout.read() or b""
            time.sleep(0.002)
        process.kill()
        os.set_blocking(process.stdout.fileno(), True)
        shown += process.stdout.read()
        assert b"Traceback" not in process.stderr.read()
    # The last line may be torn.
    return shown.decode().split("\n")[:-1]


async def check(store: Store, shown: list[str]) -> int:
    """How many runs the kill interrupted."""
    logs: dict[str, list[str]] = {}
    interrupted = 0
    page = Page(limit=1000)
    while True:
        found = await store.runs(OWNER, page=page)
        for run in found.runs:
            assert run.state in (RunState.ENDED, RunState.QUEUED, RunState.RUNNING), run
            if run.state is not RunState.ENDED:
                continue
            words = await log_of(store, run.id)
            assert words.count("END") == 1
            assert words[-1] == "END"
            logs[run.id] = words
            interrupted += run.outcome == Interrupted("crash")
            assert run.outcome in (Completed("stop"), Interrupted("crash"))
        if found.next is None:
            break
        page = Page(limit=1000, before=found.next)
    for line in shown:
        run_id, seq, word = line.split(" ")
        assert logs[run_id][int(seq)] == word, line
    await check_transcripts(store, logs)
    return interrupted


async def log_of(store: Store, run_id: str) -> list[str]:
    words: list[str] = []
    while (found := await store.read(OWNER, run_id, len(words) - 1)) is not None and found.batches:
        for batch in found.batches:
            for line in batch.after(len(words) - 1):
                entry = decode_entry(line)
                assert entry.seq == len(words)
                event = entry.event
                words.append("END" if isinstance(event, RunEnded) else "-")
                if isinstance(event, TextDelta):
                    words[-1] = event.text.strip()
    return words


async def check_transcripts(store: Store, logs: dict[str, list[str]]) -> None:
    """Each run's words are in its session, once."""
    saved: dict[str, str] = {}
    for session in (await store.sessions(OWNER, Page(limit=1000))).sessions:
        transcript = await store.transcript(OWNER, session.id)
        assert transcript is not None
        for message in transcript.messages:
            if isinstance(message.message, Assistant):
                assert message.run_id is not None
                assert message.run_id not in saved, "saved twice"
                saved[message.run_id] = message.message.text
    for run_id, words in logs.items():
        said = "".join(f"{word} " for word in words if word not in ("-", "END"))
        assert saved.get(run_id, "") == said


async def test_no_word_that_was_shown_is_lost(tmp_path: Path) -> None:
    interrupted = 0
    for n in range(KILLS):
        # All that there is is looked at after each: in one database, most of the time would be spent on that.
        folder = tmp_path / str(n // 4)
        shown = await asyncio.to_thread(run_and_kill, folder / "h.db", random.uniform(0.05, 0.5))
        async with stage(sqlite(folder)) as staged:
            # All that ran has an ending by the time that the worker is open; what was queued may begin.
            interrupted += await check(staged.store, shown)
    assert interrupted
