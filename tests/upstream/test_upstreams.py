"""A configuration, asked for a model: from its settings to an answer, over real sockets."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater import recording
from headwater.clock import SystemClock
from headwater.config.secret import Secret
from headwater.config.settings import ModelSettings, Settings, UpstreamSettings
from headwater.conversation import Request, Text, User
from headwater.errors import CallerError
from headwater.events import AttemptStarted, Completed, DialectName, Failed, Outcome
from headwater.simulate.replay import Replays
from headwater.simulate.script import Answer, Fin, Http, Reset, Scenario, Stall
from headwater.testing import Simulator
from headwater.upstream.mask import Mask
from headwater.upstream.record import Tape
from headwater.upstream.upstreams import Upstreams
from tests.upstream.asking import Heard

pytestmark = pytest.mark.anyio

HELLO = Request((User((Text("Hello"),)),))
KEY = "sk-secret-of-the-test"
LONG = Mask(UpstreamSettings(base_url="http://x", api_key=(Secret("a-long-secret"), Secret("short"))))
ECHO = {"x-echo": "extra-secret-1"}
each_dialect = pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])


@asynccontextmanager
async def upstreams(settings: Settings, folder: Path = Path("unused")) -> AsyncIterator[Upstreams]:
    built = Upstreams(settings, SystemClock(), folder, jitter=lambda: 0.0)
    try:
        yield built
    finally:
        await built.close()


def at(simulator: Simulator, dialect: DialectName = "chat", **more: Any) -> UpstreamSettings:
    return UpstreamSettings(
        base_url=f"{simulator.url}/v1", dialect=dialect, api_key=(Secret(KEY),), backoff_s=0, **more
    )


async def ask(built: Upstreams, name: str | None, heard: Heard | None = None) -> Outcome:
    model = await built.model(name)
    ended = await asyncio.wait_for((heard or Heard()).all_of(model.turn(HELLO, call_id_prefix="call_")), 20)
    return ended.outcome


@each_dialect
async def test_a_model_by_its_configured_name(dialect: DialectName) -> None:
    async with Simulator(Scenario(key=KEY)) as simulator:
        fast = ModelSettings(name="fast", upstream="up", model="sim/echo")
        async with upstreams(Settings(upstreams={"up": at(simulator, dialect)}, models=(fast,))) as built:
            heard = Heard()
            assert await ask(built, "fast", heard) == Completed("stop")
            assert heard.fold.message().text == "Hello"
            assert heard.of(AttemptStarted) == [AttemptStarted("up", "sim/echo")]
            assert simulator.requests[0].complaints == []


async def test_a_model_that_an_upstream_lists() -> None:
    async with Simulator() as simulator, upstreams(Settings(upstreams={"up": at(simulator)})) as built:
        assert await ask(built, "up/sim/echo") == Completed("stop")
        with pytest.raises(CallerError) as caught:
            await built.model("up/sim/nonsense-of-mine")
        assert caught.value.status == 404


async def test_a_list_that_cannot_be_had_is_no_failure_to_serve() -> None:
    async with Simulator(Scenario(key="another")) as simulator:
        fast = ModelSettings(name="fast", upstream="up", model="sim/echo")
        async with upstreams(Settings(upstreams={"up": at(simulator)}, models=(fast,))) as built:
            await built.catalog.refresh(0)
            assert "api_key" in built.catalog.failures["up"]
            outcome = await ask(built, "fast")
            assert isinstance(outcome, Failed)
            assert outcome.status == 401
            assert KEY not in outcome.message


async def test_an_upstream_that_does_not_answer_for_its_list_is_not_waited_for_for_ever() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    settings = UpstreamSettings(base_url=url, connect_timeout_s=0.1)
    async with upstreams(Settings(upstreams={"up": settings})) as built:
        built.list_s = 0.1
        await built.catalog.refresh(0)
        assert "No list of models within 0.1 s" in built.catalog.failures["up"]
    server.close()


async def test_a_list_that_is_refused_tells_no_secret() -> None:
    body = f"Bad {KEY}, and extra-secret-1."

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 400 No\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    headers = {"x-extra": Secret("extra-secret-1")}
    settings = UpstreamSettings(base_url=url, api_key=(Secret(KEY),), headers=headers)
    async with upstreams(Settings(upstreams={"up": settings})) as built:
        await built.catalog.refresh(0)
        assert built.catalog.failures["up"] == "Bad [key], and [x-extra]."
    server.close()


async def test_a_fallback_answers() -> None:
    async with Simulator() as simulator:
        models = (
            ModelSettings(name="fast", upstream="down", fallbacks=("careful",)),
            ModelSettings(name="careful", upstream="up", model="sim/echo"),
        )
        down = UpstreamSettings(base_url="http://127.0.0.1:9/v1", backoff_s=0)
        async with upstreams(Settings(upstreams={"down": down, "up": at(simulator)}, models=models)) as built:
            heard = Heard()
            assert await ask(built, "fast", heard) == Completed("stop")
            assert heard.reasons == ["first", "retry", "retry", "fallback"]


async def test_the_demo_models_are_always_there() -> None:
    async with upstreams(Settings()) as built:
        heard = Heard()
        assert await ask(built, "demo/echo", heard) == Completed("stop")
        assert "Hello" in heard.fold.message().text


def only(folder: Path) -> Path:
    [file] = folder.iterdir()
    return file


class TestRecording:
    async def record(self, folder: Path, dialect: DialectName, *answers: Answer, **more: Any) -> tuple[Heard, Outcome]:
        async with Simulator() as simulator:
            simulator.script("m", *answers)
            settings = at(simulator, dialect, record=True, retries=0, **more)
            model = ModelSettings(name="m", upstream="up")
            async with upstreams(Settings(upstreams={"up": settings}, models=(model,)), folder) as built:
                heard = Heard()
                return heard, await ask(built, "m", heard)

    @each_dialect
    @pytest.mark.parametrize(
        "answer", [Answer(tokens=20), Answer(tokens=20, finish="odd"), Answer(tokens=20, omit=("finish", "terminator"))]
    )
    async def test_what_was_recorded_plays_back_to_the_same_events(
        self, tmp_path: Path, dialect: DialectName, answer: Answer
    ) -> None:
        heard, outcome = await self.record(tmp_path / "recordings", dialect, answer)
        file = only(tmp_path / "recordings")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert KEY.encode() not in file.read_bytes()
        async with Simulator(replays=Replays([recording.read(file.read_bytes())])) as simulator:
            model = ModelSettings(name="m", upstream="up")
            settings = at(simulator, dialect, retries=0)
            async with upstreams(Settings(upstreams={"up": settings}, models=(model,))) as built:
                again = Heard()
                assert await ask(built, "m", again) == outcome
        assert again.events == heard.events

    async def test_a_key_that_the_upstream_repeats_is_taken_out(self, tmp_path: Path) -> None:
        repeated = Answer(http=Http(status=401, message=f"Incorrect key: {KEY}"))
        await self.record(tmp_path, "chat", repeated)
        file = only(tmp_path)
        assert b"Incorrect key: [key]" in file.read_bytes()

    async def test_headers_that_the_upstream_repeats_are_taken_out(self, tmp_path: Path) -> None:
        repeated = Answer(http=Http(status=400, message="You sent x-extra: Token extra-secret-1", headers=ECHO))
        headers = {"X-Extra": Secret("Token extra-secret-1", "env:EXTRA")}
        _, outcome = await self.record(tmp_path, "chat", repeated, headers=headers)
        assert isinstance(outcome, Failed)
        assert "You sent x-extra: [x-extra]" in outcome.message
        kept = only(tmp_path).read_bytes()
        assert b"You sent x-extra: [x-extra]" in kept
        assert b"extra-secret-1" not in kept

    async def test_no_answer_is_recorded_too(self, tmp_path: Path) -> None:
        await self.record(tmp_path, "chat", Answer(faults=(Reset(at="before_head"),)))
        file = only(tmp_path)
        read = recording.read(file.read_bytes())
        assert read.head.status == 0
        assert read.end is not None
        assert read.end.end == "closed"

    async def test_a_reset_and_a_stall_are_told_apart(self, tmp_path: Path) -> None:
        await self.record(tmp_path / "a", "chat", Answer(faults=(Reset(tokens=3),)))
        await self.record(tmp_path / "b", "chat", Answer(faults=(Stall(tokens=3),)), idle_timeout_s=0.1)
        await self.record(tmp_path / "c", "chat", Answer(faults=(Stall(at="before_head"),)), first_token_timeout_s=0.1)
        await self.record(tmp_path / "d", "chat", Answer(faults=(Fin(tokens=3),)))
        ends = []
        for name in "abcd":
            end = recording.read(only(tmp_path / name).read_bytes()).end
            ends.append(end and end.end)
        assert ends == ["reset", "abandoned", "abandoned", "closed"]

    async def test_the_folder_can_be_chosen(self, tmp_path: Path) -> None:
        await self.record(tmp_path / "unused", "chat", Answer(), record_dir=str(tmp_path / "chosen"))
        assert only(tmp_path / "chosen").stat().st_size

    async def test_a_folder_that_cannot_be_written_to_is_no_reason_not_to_answer(self, tmp_path: Path) -> None:
        blocked = tmp_path / "file"
        blocked.write_text("")
        _, outcome = await self.record(blocked / "recordings", "chat", Answer())
        assert outcome == Completed("stop")

    async def test_a_disk_that_is_full_ends_the_recording_alone(self, tmp_path: Path) -> None:
        tape = Tape(tmp_path / "t.jsonl", "up", "chat", b'{"model": "m"}', LONG, SystemClock())
        tape.head(200, {})
        tape._file.close()
        tape._file = open("/dev/full", "wb", buffering=0)  # noqa: ASYNC230, SIM115
        tape.piece(b"x")
        tape.piece(b"y")
        tape.end("complete")
        assert tape._file.closed

    def test_a_key_that_comes_in_two_reads_is_taken_out(self, tmp_path: Path) -> None:
        tape = Tape(tmp_path / "t.jsonl", "up", "chat", b'{"model": "m"}', LONG, SystemClock())
        tape.head(200, {})
        for data in (b"bad key a-long", b"-secret, and a-l"):
            tape.piece(data)
        tape.end("complete")
        read = recording.read((tmp_path / "t.jsonl").read_bytes())
        assert b"".join(piece.data for piece in read.pieces) == b"bad key [key], and a-l"
