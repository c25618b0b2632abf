"""Following runs: replay and live by one path, from any cursor, one or many on a connection."""

import asyncio

import msgspec
import pytest

from headwater.errors import StoreError
from headwater.events import TextDelta, decode_entry
from headwater.server.native.streaming import EventStream, OpenStreams, Write, one_run
from headwater.server.refusals import Refusal
from tests.server_native.serving import Served, served, settings_of, store_url, until

pytestmark = pytest.mark.anyio


async def test_followers_get_the_stored_bytes_and_the_same_whenever_they_come(server: Served) -> None:
    """C50."""
    run_id = (await server.run(model="slow"))["id"]
    live = await server.events(run_id)
    late = await server.events(run_id)
    assert live == late
    assert [frame.id for frame in live] == [str(n) for n in range(len(live))]
    assert live[0].event == "run.started"
    assert live[-1].event == "run.completed"
    found = await server.services.store.read("local", run_id)
    assert found is not None
    assert [frame.data for frame in live] == [line for batch in found.batches for line in batch.after(-1)]
    texts = [frame for frame in live if frame.event == "run.text"]
    assert len(texts) == 60
    assert msgspec.json.decode(texts[3].data)["text"] == "t3 "


async def test_a_cursor_is_exclusive_and_the_header_goes_before_the_query(server: Served) -> None:
    run_id = (await server.run(model="fast"))["id"]
    await server.ended(run_id)
    everything = await server.events(run_id)
    assert await server.events(run_id, after=3) == everything[4:]
    async with server.stream(f"/api/runs/{run_id}/events?after=0", **{"Last-Event-ID": "4"}) as events:
        assert await events.rest() == everything[5:]
    async with server.stream(f"/api/runs/{run_id}/events", **{"Last-Event-ID": ""}) as events:
        assert await events.rest() == everything
    for wrong in ("x", "-2", "9" * 30):
        answer = await server.get(f"/api/runs/{run_id}/events", headers={"Last-Event-ID": wrong})
        assert (answer.status, answer.code) == (400, "invalid_value")


async def test_the_end_of_a_run_that_has_ended_is_204(server: Served) -> None:
    run_id = (await server.run(model="fast"))["id"]
    run = await server.ended(run_id)
    assert (await server.get(f"/api/runs/{run_id}/events?after={run['last_seq']}")).status == 204


async def test_a_cursor_ahead_of_the_log_is_410_with_a_snapshot(server: Served) -> None:
    run_id = (await server.run(model="fast"))["id"]
    run = await server.ended(run_id)
    answer = await server.get(f"/api/runs/{run_id}/events?after={run['last_seq'] + 1}")
    assert (answer.status, answer.code) == (410, "log_gone")
    assert answer.error["run"] == run


async def test_a_log_that_was_dropped_is_410_with_what_was_left(server: Served) -> None:
    alone = (await server.run(model="fast"))["id"]
    session_id = await server.session()
    within = (await server.say(session_id, model="fast"))["run"]["id"]
    runs = [await server.ended(alone), await server.ended(within)]
    await server.services.store.tidy(keep_logs_s=-1)
    for run in runs:
        answer = await server.get(f"/api/runs/{run['id']}/events")
        assert (answer.status, answer.code) == (410, "log_gone")
        left = answer.error["run"]
        assert left == (await server.get(f"/api/runs/{run['id']}")).json
        for kept in ("text", "last_seq", "outcome", "usage", "status"):
            assert left[kept] == run[kept]


async def test_a_silent_run_is_kept_alive_by_comments(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = settings_of(store_url("memory", tmp_path_factory.mktemp("x")), heartbeat_s=0.05)
    async with served(settings) as server:
        run_id = (await server.run(model="hang"))["id"]
        async with server.stream(f"/api/runs/{run_id}/events") as events:
            assert events.response.headers["x-accel-buffering"] == "no"
            while events.seen.count(b": \n\n") < 3:
                events.seen += await asyncio.wait_for(events.response.content.readany(), 10)
        assert b"event: error" not in events.seen


async def test_a_follower_that_leaves_is_let_go_and_the_run_goes_on(server: Served) -> None:
    """C40."""
    run_id = (await server.run(model="hang"))["id"]
    async with server.stream(f"/api/runs/{run_id}/events") as events:
        await events.until("run.text")
        live = server.services.runs.live(run_id)
        assert live is not None
        assert live.followers == 1
        events.response.close()

    async def followers() -> int:
        return live.followers

    # Nothing is sent meanwhile: it is noticed in the silence.
    await until(followers, lambda count: count == 0)
    assert live.run.outcome is None


async def test_a_run_that_is_cut_off_again_and_again_is_read_without_gap_or_repeat(server: Served) -> None:
    run_id = (await server.run(model="slow"))["id"]
    read: list[int] = []
    cursor = -1
    while True:
        async with server.stream(f"/api/runs/{run_id}/events", **{"Last-Event-ID": str(cursor)}) as events:
            ended = False
            for _ in range(7):
                frame = await events.next()
                if frame is None:
                    ended = True
                    break
                assert frame.id is not None
                cursor = int(frame.id)
                read.append(cursor)
            if ended:
                break
            events.response.close()
        if (await server.get(f"/api/runs/{run_id}/events?after={cursor}")).status == 204:
            break
    assert read == list(range(len(read)))
    assert read[-1] == (await server.get(f"/api/runs/{run_id}")).json["last_seq"]


async def test_a_snapshot_and_the_log_after_it_are_the_whole(server: Served) -> None:
    """Its text and `last_seq` are of one fold, however it falls into the stream."""
    run_id = (await server.run(model="slow"))["id"]
    whole = "".join(f"t{n} " for n in range(60))
    while True:
        shown = (await server.get(f"/api/runs/{run_id}")).json
        assert whole.startswith(shown["text"])
        found = await server.services.store.read("local", run_id, shown["last_seq"], limit_bytes=1 << 30)
        assert found is not None
        if shown["status"] == "completed":
            break
        rest = await server.events(run_id, after=shown["last_seq"])
        entries = [decode_entry(frame.data) for frame in rest]
        after = "".join(entry.event.text for entry in entries if isinstance(entry.event, TextDelta))
        assert shown["text"] + after == whole
    assert shown["text"] == whole


async def test_a_run_that_is_deleted_while_it_is_followed_is_said_to_be_gone(server: Served) -> None:
    run_id = (await server.run(model="fast"))["id"]
    await server.ended(run_id)
    written: list[bytes] = []

    async def write(body: bytes) -> None:
        written.append(body)

    work = one_run(server.services, "local", run_id, 0)
    assert await server.services.store.delete_run("local", run_id) is None
    await work(write)
    assert written == [b'event: gone\ndata: {"run_id":"%b"}\n\n' % run_id.encode()]
    assert (await server.get(f"/api/runs/{run_id}/events")).status == 404


async def test_a_fault_of_ours_is_not_hidden() -> None:
    async def work(write: Write) -> None:
        raise RuntimeError("ours")

    async def receive() -> dict[str, object]:
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: object) -> None: ...

    async def unwelcome() -> Refusal:
        await asyncio.sleep(3600)
        return Refusal("", status=401, code="")

    with pytest.raises(RuntimeError, match="ours"):
        await EventStream(OpenStreams(), 15.0, work, unwelcome).send_to(receive, send)


async def test_a_store_in_trouble_is_no_ending(server: Served) -> None:
    run_id = (await server.run(model="hang"))["id"]
    async with server.stream(f"/api/runs/{run_id}/events") as events:
        await events.until("run.text")
        live = server.services.runs.live(run_id)
        assert live is not None
        live.trouble = StoreError("no room", trouble="full")
        live._tell()
        rest = await events.rest()
        live.trouble = None
    assert rest[-1].event == "trouble"
    assert msgspec.json.decode(rest[-1].data)["code"] == "store_unavailable"
    assert b"id:" not in events.seen.rpartition(b"event: trouble")[2]


async def test_streams_are_ended_when_the_server_is(server: Served) -> None:
    run_id = (await server.run(model="hang"))["id"]
    async with (
        server.stream(f"/api/runs/{run_id}/events") as one,
        server.stream(f"/api/events?runs={run_id}:-1") as many,
    ):
        await one.until("run.text")
        await many.until("run.text")
        server.native.close()
        await one.rest()
        await many.rest()
    # And one that comes too late does not stay.
    async with server.stream("/api/events") as late:
        assert await late.rest() == []


# ---------------------------------------------------------------------- many runs


async def test_many_runs_come_on_one_connection_each_event_with_its_run(server: Served) -> None:
    a = (await server.run(model="slow"))["id"]
    b = (await server.run(model="fast"))["id"]
    await server.ended(b)
    read: dict[str, list[int]] = {a: [], b: []}
    async with server.stream(f"/api/events?runs={a}:-1,{b}:2,run_none:-1") as events:
        gone = await events.next()
        assert gone is not None
        assert (gone.event, msgspec.json.decode(gone.data)) == ("gone", {"run_id": "run_none", "code": "not_found"})
        ends = 0
        while ends < 2:
            frame = await events.next()
            assert frame is not None
            if frame.event == "changed":
                continue
            said = msgspec.json.decode(frame.data)
            # Once: of two, each reader of JSON believes another.
            assert frame.data.count(b'"run_id":') == 1
            read[said["run_id"]].append(said["seq"])
            ends += frame.event == "run.completed"
            # The id says where both stand.
            assert frame.id is not None
            assert f"{said['run_id']}:{said['seq']}" in frame.id.split(",")
    assert read[a] == list(range(len(read[a])))
    assert read[b][0] == 3


async def test_many_runs_go_on_by_the_last_id_without_gap_or_repeat(server: Served) -> None:
    runs = [(await server.run(model="slow"))["id"] for _ in range(3)]
    read: dict[str, list[int]] = {run_id: [] for run_id in runs}
    place = ",".join(f"{run_id}:-1" for run_id in runs)
    ended: set[str] = set()
    while len(ended) < 3:
        # A browser comes back to the address that it had, and says where it was.
        async with server.stream(f"/api/events?runs={runs[0]}:-1", **{"Last-Event-ID": place}) as events:
            for _ in range(20):
                frame = await events.next()
                assert frame is not None
                if frame.event == "changed":
                    continue
                said = msgspec.json.decode(frame.data)
                read[said["run_id"]].append(said["seq"])
                assert frame.id is not None
                place = frame.id
                if frame.event == "run.completed":
                    ended.add(said["run_id"])
                if len(ended) == 3:
                    break
            events.response.close()
    for seqs in read.values():
        assert seqs == list(range(len(seqs)))


async def test_a_second_tab_is_told_what_has_changed(server: Served) -> None:
    async with server.stream("/api/events") as events:
        session_id = await server.session(title="New")
        frame = await events.next()
        assert frame is not None
        assert (frame.event, frame.id) == ("changed", None)
        assert msgspec.json.decode(frame.data) == {"kind": "session", "id": session_id}


@pytest.mark.parametrize("runs", ["x", "run_a:b", ":3", "run_a:-2", ",".join(f"r{n}:0" for n in range(101))])
async def test_cursors_that_are_none_are_refused(server: Served, runs: str) -> None:
    answer = await server.get(f"/api/events?runs={runs}")
    assert (answer.status, answer.error["param"]) == (400, "runs")


# ------------------------------------------------------------------------- two tabs


async def test_two_tabs_and_a_stop(server: Served) -> None:
    session_id = await server.session()
    run_id = (await server.say(session_id, model="hang"))["run"]["id"]
    async with server.stream(f"/api/runs/{run_id}/events") as a, server.stream(f"/api/runs/{run_id}/events") as b:
        answers = await asyncio.gather(
            server.post(f"/api/sessions/{session_id}/messages", {"content": "x", "model": "fast"}),
            server.post(f"/api/sessions/{session_id}/messages", {"content": "y", "model": "fast"}),
        )
        for answer in answers:
            assert (answer.status, answer.code) == (409, "session_busy")
            assert answer.error["active_run_id"] == run_id
            assert answer.headers["x-should-retry"] == "false"
        await server.post(f"/api/runs/{run_id}/stop")
        assert await a.rest() == await b.rest()
    # Both at once: one of them is first.
    answers = await asyncio.gather(
        server.post(f"/api/sessions/{session_id}/messages", {"content": "x", "model": "hang"}),
        server.post(f"/api/sessions/{session_id}/messages", {"content": "y", "model": "hang"}),
    )
    assert sorted(answer.status for answer in answers) == [201, 409]
