"""`headwater serve` as a process: what it needs nothing for, and what signals do to it."""

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx2
import openai
import pytest

from headwater.simulate import Answer
from headwater.testing import ManualClock, Simulator
from tests.commands import finished, start
from tests.server.house import SAFETY_S, Line, asking, eventually, frames, texts

pytestmark = pytest.mark.anyio


class Served:
    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        self.said: list[str] = []
        # A pipe that nobody reads holds up who writes to it, once it is full.
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def end(self) -> tuple[int, str]:
        """Its exit code, and what it wrote to stderr."""
        code = await asyncio.to_thread(self.process.wait, SAFETY_S)
        await asyncio.to_thread(self._reading.join)
        return code, "".join(self.said)


@asynccontextmanager
async def serve(folder: Path, config: str = "", environ: Mapping[str, str] | None = None) -> AsyncIterator[Served]:
    (folder / "headwater.toml").write_text(config)
    store = {"HEADWATER_STORE__URL": f"sqlite:{folder / 'h.db'}"}
    process = start("serve", "--port", "0", folder=folder, environ={**store, **(environ or {})})
    try:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, process.stderr and process.stderr.read()
        served = Served(process, found[0])
        try:
            yield served
        finally:
            process.kill()
            await served.end()
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


async def ended_well(served: Served) -> None:
    """With nothing in its log but how its runs have ended, and that it does."""
    code, err = await served.end()
    assert code == 0
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert {*events} <= {"run ended", "ending"}
    assert events.count("ending") == 1


def upstream(simulator: Simulator, name: str = "up", more: str = "") -> str:
    return f'[upstreams.{name}]\nbase_url = "{simulator.url}/v1"\nlist_models = false\nretries = 0\n{more}'


async def post(
    served: Served, path: str, *, headers: Mapping[str, str] | None = None, **body: object
) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=SAFETY_S, headers=headers) as client:
        return await client.post(f"{served.url}{path}", json=body)


async def get(served: Served, path: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=SAFETY_S) as client:
        return await client.get(f"{served.url}{path}")


async def draining(served: Served) -> None:
    """Until it takes nothing new any more."""
    async with asyncio.timeout(SAFETY_S):
        while (await post(served, "/v1/chat/completions", **asking("chat", "demo/echo"))).status_code != 503:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def stream(served: Served, model: str, **more: Any) -> Line:
    line = await Line.open(served.url)
    line.ask("/v1/chat/completions", asking("chat", model, stream=True, **more))
    return line


async def test_with_no_configuration_the_demo_models_answer_and_data_is_kept_at_home(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "HEADWATER_STORE__URL": "sqlite:~/.local/share/headwater/headwater.db"}
    process = start("serve", "--port", "0", environ=environ)
    with process:
        assert process.stdout is not None
        lines = [await asyncio.to_thread(process.stdout.readline) for _ in range(5)]
        url = re.search(r"http://127\.0\.0\.1:\d+", lines[0])
        assert url is not None
        assert "headwater.db" in lines[1]
        assert "demo/story" in lines[3]
        assert "OPENAI_API_KEY" in lines[4]
        served = Served(process, url[0])
        answer = await post(served, "/v1/chat/completions", **asking("chat", "demo/echo", "Hello there", stream=True))
        assert texts("chat", frames(answer.content)) == "Hello there"
        process.terminate()
        assert await asyncio.to_thread(process.wait, SAFETY_S) == 0
    assert (tmp_path / ".local/share/headwater/headwater.db").exists()


@pytest.mark.parametrize("url", ["sqlite:/proc/nowhere/h.db", "gopher://x"])
def test_a_store_that_can_not_be_opened_is_said_in_words(url: str) -> None:
    code, out, err = finished("serve", "--port", "0", environ={"HEADWATER_STORE__URL": url})
    assert code in (1, 2)
    assert out == ""
    assert "store" in err
    assert "Traceback" not in err


async def test_a_killed_server_tells_afterwards_what_had_come(tmp_path: Path) -> None:
    """C51"""
    async with Simulator() as simulator:
        async with serve(tmp_path, upstream(simulator)) as served:
            line = await Line.open(served.url)
            body = asking("responses", "up/sim/tokens-9,stall-after-3", stream=True, background=True)
            line.ask("/v1/responses", body)
            read = await line.until(b"t2 ")
            response_id = read.partition(b'"id":"')[2].partition(b'"')[0].decode()
            served.signal(signal.SIGKILL)
            await line.leave()
            assert (await served.end())[0] == -signal.SIGKILL
        async with serve(tmp_path, upstream(simulator)) as served:
            client = openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="any")
            async with client:
                response = await client.responses.retrieve(response_id)
                assert response.status == "failed"
                assert response.error is not None
                assert str(response.error.code) == "run_interrupted"
                assert response.output_text == "t0 t1 t2 "
                resumed = await client.responses.retrieve(response_id, stream=True, starting_after=3)
                with pytest.raises(openai.APIError):
                    _ = [event async for event in resumed]


async def test_sigterm_lets_open_runs_end_and_begins_nothing_new(tmp_path: Path) -> None:
    # The answer goes on when the test says so: it must not end before the server was asked.
    clock = ManualClock()
    async with Simulator(clock=clock) as simulator, serve(tmp_path, upstream(simulator)) as served:
        assert (await get(served, "/readyz")).status_code == 200
        line = await stream(served, "up/sim/tokens-40@40")
        await simulator.wait_for_requests(1)
        while simulator.requests[0].sent_tokens < 2:
            await clock.advance(0.03)
        await line.until(b"t1 ")
        served.signal(signal.SIGTERM)
        async with asyncio.timeout(SAFETY_S):
            while (await get(served, "/readyz")).status_code == 200:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        refused = await post(served, "/v1/chat/completions", **asking("chat", "demo/echo"))
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        await clock.advance(1)
        assert b"t39 " in await line.until(b"[DONE]")
        await line.leave()
        await ended_well(served)


async def test_what_does_not_end_in_time_is_interrupted_and_kept(tmp_path: Path) -> None:
    async with Simulator() as simulator:
        config = f"[server]\ndrain_s = 0.2\n{upstream(simulator)}"
        async with serve(tmp_path, config) as served:
            line = await stream(served, "up/sim/tokens-9,stall-after-2", session_id="s")
            await line.until(b"t1 ")
            served.signal(signal.SIGTERM)
            assert b"run_interrupted" in await line.until(b"0\r\n\r\n")
            await line.leave()
            await ended_well(served)
            assert (await simulator.wait_for_close(0)).closed in ("client_fin", "client_reset")


async def test_a_second_sigterm_ends_it_at_once(tmp_path: Path) -> None:
    async with Simulator() as simulator:
        config = f"[server]\ndrain_s = 3600\n{upstream(simulator)}"
        async with serve(tmp_path, config) as served:
            line = await stream(served, "up/sim/tokens-9,stall-after-2")
            await line.until(b"t1 ")
            served.signal(signal.SIGTERM)
            await draining(served)
            served.signal(signal.SIGTERM)
            assert b"run_interrupted" in await line.until(b"0\r\n\r\n")
            await line.leave()
            await ended_well(served)


@pytest.mark.parametrize(
    ("signals", "said"),
    [(1, "the store failed while it was being closed"), (2, "ended before all was closed")],
)
async def test_an_end_without_a_store_says_what_is_missing(tmp_path: Path, signals: int, said: str) -> None:
    async with Simulator() as simulator:
        drain_s = 0.1 if signals == 1 else 3600
        async with serve(tmp_path, f"[server]\ndrain_s = {drain_s}\n{upstream(simulator)}") as served:
            line = await stream(served, "up/sim/tokens-9,stall-after-2", session_id="s")
            await line.until(b"t1 ")
            # As a program does that has opened the file, and forgotten it.
            other = apsw.Connection(str(tmp_path / "h.db"))
            other.execute("begin immediate")
            served.signal(signal.SIGTERM)
            if signals == 2:
                await draining(served)
                served.signal(signal.SIGTERM)
            code, err = await served.end()
            other.close()
            await line.leave()
        assert code == 1
        told = [json.loads(line) for line in err.splitlines()]
        assert said in told[-1]["event"]
        assert "interrupted by the next start" in told[-1]["event"]
        async with serve(tmp_path, upstream(simulator)) as served:
            items = (await get(served, "/api/sessions/s/messages")).json()["items"]
            assert [item["content"] for item in items[:2]] == ["Hi", "t0 t1 "]
            assert items[2]["code"] == "interrupted"


async def test_a_client_that_does_not_read_holds_up_nobodys_end(tmp_path: Path) -> None:
    async with Simulator() as simulator:
        config = f"[server]\ndrain_s = 0.2\n{upstream(simulator)}"
        async with serve(tmp_path, config) as served:
            line = await Line.open(served.url, receive_bytes=4096)
            simulator.script("long", Answer(text=("x" * 1000 + " ") * 8000))
            line.ask("/v1/chat/completions", asking("chat", "up/long", stream=True, session_id="s"))
            await simulator.wait_for_end(0)
            served.signal(signal.SIGTERM)
            await ended_well(served)
            line.reset()


async def test_sighup_reads_the_configuration_again_and_loses_no_run(tmp_path: Path) -> None:
    async with Simulator() as simulator, serve(tmp_path, upstream(simulator)) as served:
        line = await stream(served, "up/sim/tokens-60@40")
        await line.until(b"t1 ")
        (tmp_path / "headwater.toml").write_text(upstream(simulator, "other"))
        served.signal(signal.SIGHUP)
        asked = asking("chat", "other/sim/tokens-2")
        async with asyncio.timeout(SAFETY_S):
            while (answer := await post(served, "/v1/chat/completions", **asked)).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert answer.json()["choices"][0]["message"]["content"] == "t0 t1 "
        gone = await post(served, "/v1/chat/completions", **asking("chat", "up/sim/tokens-2"))
        assert gone.status_code == 404
        assert b"t59 " in await line.until(b"[DONE]")
        await line.leave()
        (tmp_path / "headwater.toml").write_text("[server]\nprot = 1\n")
        served.signal(signal.SIGHUP)
        assert (await post(served, "/v1/chat/completions", **asked)).status_code == 200
        served.signal(signal.SIGTERM)
        code, err = await served.end()
        assert code == 0
        assert "prot" in err
        assert "stays as it was" in err
        assert "Traceback" not in err


async def test_reading_it_again_under_load_refuses_nobody_and_loses_nothing(tmp_path: Path) -> None:
    """Connections that are opened meanwhile, requests that come on old ones, streams that go on: all as if nothing was."""
    rounds = 12
    async with Simulator() as simulator, serve(tmp_path, upstream(simulator)) as served:
        over = asyncio.Event()

        async def ask(*, anew: bool) -> int:
            count = 0
            async with httpx2.AsyncClient(base_url=served.url, timeout=SAFETY_S) as client:
                headers = {"connection": "close"} if anew else {}
                while not over.is_set():
                    body = asking("chat", "up/sim/tokens-3", stream=True)
                    answer = await client.post("/v1/chat/completions", json=body, headers=headers)
                    assert texts("chat", frames(answer.content)) == "t0 t1 t2 ", answer.text
                    count += 1
            return count

        long = await stream(served, "up/sim/tokens-40000@200", session_id="s")
        await long.until(b"t1 ")
        asking_on = [asyncio.create_task(ask(anew=number % 2 == 0)) for number in range(6)]
        for number in range(rounds):
            # Whole at every moment: it may still be read for the signal before.
            (tmp_path / "new.toml").write_text(f"[server]\nheartbeat_s = {number + 1}\n{upstream(simulator)}")
            (tmp_path / "new.toml").replace(tmp_path / "headwater.toml")
            served.signal(signal.SIGHUP)
            await asyncio.sleep(0.05)
        over.set()
        assert min(await asyncio.gather(*asking_on)) > 0
        await long.until(b"data")
        await long.leave()
        served.signal(signal.SIGTERM)
        code, err = await served.end()
        assert code == 0
        told = [json.loads(line) for line in err.splitlines()]
        assert sum(line["event"] == "the configuration was read again" for line in told) >= 1
        assert {line["level"] for line in told} == {"info"}


async def test_what_libraries_have_to_say_is_json_as_well(tmp_path: Path) -> None:
    async with serve(tmp_path) as served:
        line = await Line.open(served.url)
        line.writer.write(b"no HTTP at all\r\n\r\n")
        assert b" 400 " in await line.rest()
        await line.leave()
        served.signal(signal.SIGTERM)
        _, err = await served.end()
    told = [json.loads(line) for line in err.splitlines()]
    assert ["Invalid HTTP request" in one["event"] for one in told if one["logger"] == "uvicorn.error"] == [True]


async def test_nobody_else_can_open_its_file(tmp_path: Path) -> None:
    async with serve(tmp_path) as served:
        environ = {"HEADWATER_STORE__URL": f"sqlite:{tmp_path / 'h.db'}"}
        code, _, err = await asyncio.to_thread(finished, "serve", "--port", "0", folder=tmp_path, environ=environ)
        assert code == 1
        assert served.url in err
        assert "Traceback" not in err


@contextmanager
def few_descriptors(number: int) -> Iterator[None]:
    """For whoever is begun meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux tells of the limits of another process")
async def test_as_many_connections_are_taken_as_the_system_allows(tmp_path: Path) -> None:
    with few_descriptors(512):
        async with serve(tmp_path) as served:
            soft, hard = resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, 1 << 20) > 512


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux sets the limits of another process")
async def test_that_nobody_can_come_any_more_is_told_and_passes(tmp_path: Path) -> None:
    async with serve(tmp_path) as served:
        pid = served.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")) + 8, hard))
        silent = [await Line.open(served.url) for _ in range(16)]
        await eventually(lambda: any("descriptors are in use" in line for line in served.said))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        for line in silent:
            await line.leave()
        assert (await get(served, "/healthz")).status_code == 200
        served.signal(signal.SIGTERM)
        code, err = await served.end()
        assert code == 0
        told, _ = [json.loads(line)["event"] for line in err.splitlines()]
        assert "LimitNOFILE" in told


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="there is no /proc here")
async def test_nothing_of_a_streams_end_is_left_open(tmp_path: Path) -> None:
    """File descriptors, as the kernel counts them."""
    async with Simulator() as simulator, serve(tmp_path, upstream(simulator)) as served:
        folder = Path(f"/proc/{served.process.pid}/fd")
        await post(served, "/v1/chat/completions", **asking("chat", "up/sim/tokens-1"))
        before = len(os.listdir(folder))
        for _ in range(20):
            line = await stream(served, "up/sim/stall-after-1")
            await line.until(b"t0 ")
            line.reset()
        await eventually(lambda: len(os.listdir(folder)) <= before + 1)
