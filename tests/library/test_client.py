"""Following a run over HTTP: it comes back by itself, misses nothing and repeats nothing (C50, C51, C55)."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from headwater.client import FollowError, Persistence, follow
from headwater.events import Completed, Entry, Event, RunEnded, RunStarted, Stopped, TextDelta
from tests.library.scripted import CLEAN_END, STREAM, HurriedClock, Server, Wire, chunk, frame, refusal, serving

pytestmark = pytest.mark.anyio

LOG: list[Event] = [
    RunStarted("run_1", "m", datetime(2026, 1, 1, tzinfo=UTC)),
    TextDelta("One "),
    TextDelta("two "),
    TextDelta("three"),
    RunEnded(Completed("stop")),
]
FRAMES = [frame(seq, event) for seq, event in enumerate(LOG)]


def stream(first: int, last: int) -> bytes:
    """Events, and no more: the connection breaks in the midst of the body."""
    return STREAM + chunk(b"".join(FRAMES[first : last + 1]))


WHOLE = stream(0, 4)


async def followed(
    server: Server, after: int = -1, *, clock: HurriedClock | None = None, **persistence: float
) -> list[Event]:
    patient = Persistence(**persistence)  # type: ignore[arg-type]
    async with asyncio.timeout(20):
        entries = follow(server.url, after, persistence=patient, clock=clock or HurriedClock())
        return [entry.event async for entry in entries]


class TestComingBack:
    async def test_a_whole_log_ends_with_the_run(self) -> None:
        async with serving(WHOLE) as server:
            assert await followed(server) == LOG
            assert server.cursors == [None]

    async def test_it_leaves_at_the_ending_and_waits_for_nothing(self) -> None:
        left = asyncio.Event()

        async def answer(wire: Wire) -> None:
            await wire.send(WHOLE)
            await wire.gone()
            left.set()

        async with serving(answer) as server:
            assert await followed(server) == LOG
            async with asyncio.timeout(10):
                await left.wait()

    @pytest.mark.parametrize("end", [b"", CLEAN_END], ids=["broken", "clean"])
    async def test_a_lost_connection_is_taken_up_again_where_it_was(self, end: bytes) -> None:
        async with serving(stream(0, 1) + end, stream(2, 2) + end, stream(3, 4)) as server:
            assert await followed(server) == LOG
            assert server.cursors == [None, "1", "2"]

    async def test_a_reset_connection_is_taken_up_again(self) -> None:
        async def reset(wire: Wire) -> None:
            await wire.send(stream(0, 0))
            wire.abort()

        # What was sent right before a reset may be lost with it.
        async def rest(wire: Wire) -> None:
            await wire.send(stream(0 if server.cursors[1] is None else 1, 4))

        async with serving(reset, rest) as server:
            assert await followed(server) == LOG

    @pytest.mark.parametrize("cut", range(1, len(FRAMES[1])))
    async def test_an_event_that_was_cut_off_is_not_given_before_it_is_whole(self, cut: int) -> None:
        torn = STREAM + chunk(FRAMES[0] + FRAMES[1][:cut]) + CLEAN_END
        async with serving(torn, stream(1, 4)) as server:
            assert await followed(server) == LOG
            assert server.cursors == [None, "0"]

    async def test_what_the_server_repeats_is_not_given_again(self) -> None:
        async with serving(stream(0, 2), WHOLE) as server:
            assert await followed(server) == LOG

    async def test_a_gap_is_asked_for_again(self) -> None:
        async with serving(STREAM + chunk(FRAMES[0] + FRAMES[3]), stream(1, 4)) as server:
            assert await followed(server) == LOG
            assert server.cursors == [None, "0"]

    async def test_it_begins_after_a_given_cursor(self) -> None:
        async with serving(stream(3, 4)) as server:
            assert await followed(server, after=2) == LOG[3:]
            assert server.cursors == ["2"]

    async def test_at_the_end_of_a_run_that_has_ended_there_is_nothing(self) -> None:
        async with serving(b"HTTP/1.1 204 No Content\r\n\r\n") as server:
            assert await followed(server, after=4) == []

    async def test_a_server_that_is_starting_again_is_waited_for(self) -> None:
        clock = HurriedClock()
        answers = [refusal(503, b"{}", b"retry-after: 7\r\n"), refusal(502, b"", b"retry-after: soon\r\n"), b""]
        async with serving(*answers, refusal(429, b"", b"retry-after: 900\r\n"), WHOLE) as server:
            assert await followed(server, clock=clock) == LOG
        obeyed, doubled, doubled_again, capped = clock.slept
        assert obeyed == 7.0
        assert 0.25 <= doubled <= 0.5
        assert 0.5 <= doubled_again <= 1.0
        assert capped == 30.0

    async def test_silence_that_lasts_too_long_is_a_lost_connection(self) -> None:
        async def silent(wire: Wire) -> None:
            await wire.send(stream(0, 1))
            await wire.gone()

        async def answerless(wire: Wire) -> None:
            await wire.gone()

        async with serving(silent, answerless, stream(2, 4)) as server:
            assert await followed(server, idle_s=0.05) == LOG
            assert server.cursors == [None, "1", "1"]

    async def test_a_comment_is_no_silence(self) -> None:
        async def quiet(wire: Wire) -> None:
            await wire.send(STREAM)
            for _ in range(20):
                await asyncio.sleep(0.1)
                await wire.send(chunk(b": \n\n"))
            await wire.send(chunk(b"".join(FRAMES)))

        async with serving(quiet) as server:
            assert await followed(server, idle_s=1.5) == LOG
            assert len(server.requests) == 1

    async def test_a_connection_that_lasted_counts_as_a_good_one(self) -> None:
        """A run may be silent for hours, and a proxy cut it off every minute."""
        cut = STREAM + CLEAN_END
        async with serving(cut, cut, cut, WHOLE) as server:
            assert await followed(server, clock=HurriedClock(step_s=11.0), attempts=2) == LOG


class TestGivingUp:
    async def test_it_gives_up_in_words_after_so_many_attempts_that_brought_nothing(self) -> None:
        clock = HurriedClock()
        async with serving(*[refusal(500, b"")] * 3) as server:
            with pytest.raises(FollowError, match="the server answered 500") as raised:
                await followed(server, clock=clock, attempts=3)
            assert raised.value.status is None
            assert len(server.requests) == 3
            assert len(clock.slept) == 2

    async def test_news_makes_it_patient_again(self) -> None:
        async with serving(b"", stream(0, 0), b"", stream(1, 4)) as server:
            assert await followed(server, attempts=3) == LOG

    async def test_nobody_there(self) -> None:
        async with serving() as server:
            pass
        with pytest.raises(FollowError, match="Gave up"):
            await followed(server, attempts=2)

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 301])
    async def test_a_refusal_that_will_not_pass_is_raised_at_once(self, status: int) -> None:
        body = msgspec.json.encode({"error": {"code": "x", "message": "No such thing."}, "run": {"text": "One "}})
        async with serving(refusal(status, body)) as server:
            with pytest.raises(FollowError, match="No such thing") as raised:
                await followed(server)
            assert raised.value.status == status
            assert raised.value.answer["run"] == {"text": "One "}

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"error": "no"}', b""])
    async def test_a_refusal_without_a_word_is_told_by_its_status(self, body: bytes) -> None:
        async with serving(refusal(404, body)) as server:
            with pytest.raises(FollowError, match="answered 404"):
                await followed(server)

    async def test_an_endless_refusal_is_read_to_a_limit(self) -> None:
        async def endless(wire: Wire) -> None:
            await wire.send(b"HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                await wire.send(chunk(b"x" * 50_000))

        async with serving(endless) as server:
            with pytest.raises(FollowError, match="answered 404"):
                await followed(server)

    async def test_what_is_no_event_stream_is_not_read_as_one(self) -> None:
        async with serving(refusal(200, b"{}", b"content-type: application/json\r\n")) as server:
            with pytest.raises(FollowError, match="no events"):
                await followed(server)

    async def test_an_event_that_is_no_json_is_not_passed_over(self) -> None:
        torn = b'id: 1\nevent: run.text\ndata: {"seq":1,"t"\n\n'
        async with serving(STREAM + chunk(FRAMES[0] + torn)) as server:
            with pytest.raises(FollowError, match="Event 1 can't be read"):
                await followed(server)

    @pytest.mark.parametrize("url", ["ftp://example.com/x", "nonsense"])
    async def test_an_address_that_is_none(self, url: str) -> None:
        with pytest.raises(ValueError, match="no http or https address"):
            await anext(follow(url))


class TestReading:
    async def test_what_has_no_place_in_the_log_is_passed_over(self) -> None:
        noise = b': comment\n\nevent: changed\ndata: {"kind":"run"}\n\ndata: {"seq":1}\n\nevent: run.text\ndata: {}\n\n'
        async with serving(STREAM + chunk(noise + FRAMES[0] + noise + b"".join(FRAMES[1:]))) as server:
            assert await followed(server) == LOG

    async def test_an_event_of_a_later_version_is_passed_over_and_counted(self) -> None:
        later = b'id: 1\nevent: run.sang\ndata: {"seq":1,"t":0.0,"type":"sang","song":"la"}\n\n'
        async with serving(STREAM + chunk(FRAMES[0] + later), stream(2, 4)) as server:
            assert await followed(server) == [LOG[0], *LOG[2:]]
            assert server.cursors == [None, "1"]

    async def test_the_request_has_the_key_and_the_whole_path(self) -> None:
        async with serving(WHOLE) as server:
            entries = follow(f"{server.url}?after=-1", key="hw_secret")
            assert [entry.seq async for entry in entries] == [0, 1, 2, 3, 4]
            line, *headers = server.requests[0].split("\r\n")
            assert line == "GET /api/runs/run_1/events?after=-1 HTTP/1.1"
            assert "authorization: Bearer hw_secret" in headers
            assert "accept: text/event-stream" in headers

    async def test_an_address_without_a_path(self) -> None:
        async with serving(WHOLE) as server:
            root = server.url.partition("/api")[0]
            assert len([entry async for entry in follow(root)]) == len(LOG)
            assert server.requests[0].startswith("GET / HTTP/1.1")

    async def test_who_leaves_early_closes_the_connection(self) -> None:
        left = asyncio.Event()

        async def answer(wire: Wire) -> None:
            await wire.send(stream(0, 1))
            await wire.gone()
            left.set()

        async with serving(answer) as server:
            entries = follow(server.url)
            assert (await anext(entries)).event == LOG[0]
            await entries.aclose()
            async with asyncio.timeout(10):
                await left.wait()

    async def test_a_slow_reader_leaves_the_rest_with_the_server(self) -> None:
        sent, count = 0, 1000
        long = TextDelta("x" * 64_000)

        async def answer(wire: Wire) -> None:
            nonlocal sent
            await wire.send(STREAM + chunk(FRAMES[0]))
            for seq in range(1, count):
                await wire.send(chunk(frame(seq, long)))
                sent = seq
            await wire.send(chunk(frame(count, RunEnded(Stopped("user")))))

        async with serving(answer) as server:
            entries = follow(server.url)
            seen: list[Entry] = [await anext(entries)]
            for _ in range(50):
                await asyncio.sleep(0.01)
            assert sent < count / 2
            seen += [entry async for entry in entries]
            assert [entry.seq for entry in seen] == list(range(count + 1))
