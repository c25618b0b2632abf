"""Runs by the native API: asked for, looked at, stopped, gone on with; asked for twice, and made once."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from headwater.conversation import Request, Text, User
from headwater.events import (
    ApprovalAsked,
    AttemptStarted,
    Completed,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
    ToolRunStarted,
)
from headwater.lifecycle import RunState
from headwater.records import Run
from headwater.runs.habits import MakeSource
from headwater.source import Ended, Sink, Source, Suspended, emit
from headwater.store.results import Start, Started
from tests.server_native.serving import Served, served, settings_of, store_url

pytestmark = pytest.mark.anyio


async def test_a_run_is_made_looked_at_and_found(server: Served) -> None:
    answer = await server.post("/api/runs", {"model": "fast", "input": "Hello"})
    assert answer.status == 201
    run_id = answer.json["id"]
    assert answer.headers["location"] == f"/api/runs/{run_id}"
    assert answer.headers["x-run-id"] == run_id
    assert answer.json["recorded"] is True
    assert answer.json["on_disconnect"] == "continue"
    run = await server.ended(run_id)
    assert run["status"] == "completed"
    assert run["outcome"] == {"type": "completed", "reason": "stop"}
    assert run["text"] == "t0 t1 t2 t3 t4 "
    assert run["usage"]["output_tokens"] == 5
    assert run["attempts"] == [{"upstream": "up", "model": "sim/tokens-5", "reason": "first", "status": 200}]
    assert run["created_at"].endswith("Z")
    times = ("started_at", "first_token_at", "last_token_at", "last_event_at", "ended_at")
    assert [run[name] for name in times] == sorted(run[name] for name in times)
    events = await server.events(run_id)
    assert run["last_seq"] == len(events) - 1


async def test_messages_may_be_a_whole_history(server: Served) -> None:
    said = [
        {"role": "system", "content": "Be brief."},
        {"content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Bye"},
    ]
    body = {"model": "fast", "messages": said, "parameters": {"temperature": 0.5, "max_tokens": 9}}
    run = (await server.post("/api/runs", body)).json
    await server.ended(run["id"])
    [asked] = [exchange.body for exchange in server.simulator.requests]
    assert [message["role"] for message in asked["messages"]] == ["system", "user", "assistant", "user"]
    assert (asked["temperature"], asked["max_tokens"]) == (0.5, 9)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"model": "fast"}, 400, "invalid_value"),
        ({"model": "fast", "input": "a", "messages": [{"content": "b"}]}, 400, "invalid_value"),
        ({"model": "fast", "input": "  "}, 400, "invalid_value"),
        ({"model": "demo/nobody", "input": "a"}, 404, "model_not_found"),
        ({"input": "a"}, 400, "invalid_value"),
        ({"agent": "fast", "input": "a"}, 404, "agent_not_found"),
        ({"agent": "demo/agent", "model": "demo/agent", "input": "a"}, 400, "invalid_value"),
        ({"model": "fast", "input": "a", "sesion_id": "x"}, 400, "unknown_parameter"),
        ({"model": "fast", "input": "a", "session_id": "x"}, 404, "not_found"),
        ({"model": "fast", "messages": [{"role": "system", "parts": [{"type": "image", "url": "https://x/"}]}]}, 400, "invalid_value"),
        ({"model": "fast", "messages": [{"parts": [{"type": "image"}]}]}, 400, "invalid_value"),
        ({"model": "fast", "messages": [{"parts": [{"type": "image", "blob": "0" * 64}]}]}, 404, "not_found"),
    ],
)  # fmt: skip
async def test_what_can_not_be_asked_is_refused_and_leaves_nothing(
    server: Served, body: object, status: int, code: str
) -> None:
    answer = await server.post("/api/runs", body)
    assert (answer.status, answer.code) == (status, code)
    assert (await server.get("/api/runs")).json["runs"] == []
    assert [asked for asked in server.simulator.requests if asked.method == "POST"] == []


async def test_an_agent_may_be_called_one(server: Served) -> None:
    answer = await server.post("/api/runs", {"agent": "demo/agent", "input": "Hello"})
    assert (answer.status, answer.json["model"]) == (201, "demo/agent")
    run = await server.services.store.run("local", answer.json["id"])
    assert run is not None
    assert run.agent == "demo/agent"


async def test_a_field_that_is_nearly_right_is_named(server: Served) -> None:
    error = (await server.post("/api/runs", {"model": "fast", "imput": "a"})).error
    assert error["param"] == "imput"
    assert "Did you mean 'input'?" in error["message"]


async def test_runs_are_listed_in_pages(server: Served) -> None:
    made = [(await server.run(model="fast"))["id"] for _ in range(3)]
    for run_id in made:
        await server.ended(run_id)
    hanging = (await server.run(model="hang"))["id"]
    first = (await server.get("/api/runs?limit=2")).json
    assert [run["id"] for run in first["runs"]] == [hanging, made[2]]
    rest = (await server.get(f"/api/runs?limit=2&before={first['next']}")).json
    assert [run["id"] for run in rest["runs"]] == [made[1], made[0]]
    running = (await server.get("/api/runs?status=running")).json
    assert [run["id"] for run in running["runs"]] == [hanging]
    assert len((await server.get("/api/runs?status=completed")).json["runs"]) == 3
    assert (await server.get("/api/runs?before=x~y")).code == "invalid_value"
    assert (await server.get("/api/runs?limit=1&limit=2")).code == "invalid_value"


# ----------------------------------------------------------------------- stopping


async def test_a_stop_closes_the_upstream_and_keeps_what_came(server: Served) -> None:
    """C42, C43."""
    run_id = (await server.run(model="hang"))["id"]
    async with server.stream(f"/api/runs/{run_id}/events") as events:
        while (frame := await events.next()) is not None and b"t2 " not in frame.data:
            pass
        answer = await server.post(f"/api/runs/{run_id}/stop")
        rest = await events.rest()
    assert answer.status == 200
    assert answer.json["caused_by_this_call"] is True
    assert answer.json["upstream_closed"] is True
    assert answer.json["run"]["text"] == "t0 t1 t2 "
    assert answer.json["run"]["outcome"] == {"type": "stopped", "reason": "user"}
    assert rest[-1].event == "run.stopped"
    assert str(answer.json["run"]["last_seq"]) == rest[-1].id
    await asyncio.wait_for(server.simulator.wait_for_close(0), 10)


async def test_a_second_stop_is_told_what_stands(server: Served) -> None:
    """C47."""
    run_id = (await server.run(model="hang"))["id"]
    answers = await asyncio.gather(*(server.post(f"/api/runs/{run_id}/stop") for _ in range(5)))
    assert [answer.status for answer in answers] == [200] * 5
    assert sum(answer.json["caused_by_this_call"] for answer in answers) == 1
    late = await server.post(f"/api/runs/{run_id}/stop", {"wait_s": 0})
    assert (late.status, late.json["caused_by_this_call"], late.json["upstream_closed"]) == (200, False, True)


async def test_a_stop_after_the_end_changes_nothing(server: Served) -> None:
    """C47, C49."""
    run_id = (await server.run(model="fast"))["id"]
    await server.ended(run_id)
    answer = await server.post(f"/api/runs/{run_id}/stop")
    assert answer.status == 200
    assert answer.json["run"]["status"] == "completed"
    assert answer.json["caused_by_this_call"] is False


class Stubborn:
    """A source that does not care."""

    unwind_s: float | None = None

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.let_go: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, sink: Sink) -> Ended | Suspended:
        emit(sink, AttemptStarted("up", "m"))
        self.begun.set()
        while True:
            try:
                await asyncio.shield(self.let_go)
            except asyncio.CancelledError:
                continue
            return Ended(Completed())

    def pause(self) -> None: ...

    def resume(self) -> None: ...


def unrecorded(server: Served) -> Run:
    services = server.services
    return Run(
        id=services.make_id("run"),
        owner="local",
        model="fast",
        created_at=1.0,
        route="chat",
        recorded=False,
        state=RunState.RUNNING,
    )


async def test_an_unrecorded_run_is_seen_and_stopped_but_not_followed(server: Served) -> None:
    services = server.services
    run = unrecorded(server)
    live = services.runs.start_unrecorded(run, _asking(server))
    shown = (await server.get(f"/api/runs/{run.id}")).json
    assert (shown["recorded"], shown["status"]) == (False, "running")
    running = (await server.get("/api/runs?status=running")).json
    assert [one["id"] for one in running["runs"]] == [run.id]
    assert (await server.get("/api/runs?status=completed")).json["runs"] == []
    following = await server.get(f"/api/runs/{run.id}/events")
    assert (following.status, following.code) == (409, "run_not_recorded")
    answer = await server.post(f"/api/runs/{run.id}/stop")
    assert answer.status == 200
    assert answer.json["run"]["status"] == "stopped"
    assert (answer.json["caused_by_this_call"], answer.json["upstream_closed"]) == (True, True)
    await live.over
    # Its row is written behind; it is there all the same, and has been stopped.
    for _ in range(10):
        assert (await server.get(f"/api/runs/{run.id}")).status == 200
        again = await server.post(f"/api/runs/{run.id}/stop")
        assert (again.status, again.json["caused_by_this_call"]) == (200, False)
        [listed] = (await server.get("/api/runs")).json["runs"]
        assert (listed["id"], listed["status"]) == (run.id, "stopped")
    assert (await server.get(f"/api/runs/{run.id}/events")).code == "run_not_recorded"


async def test_an_unrecorded_run_that_ignores_its_stop_is_not_said_to_be_closed(server: Served) -> None:
    run = unrecorded(server)
    source = Stubborn()

    async def stubborn(run: Run) -> Source:
        return source

    server.services.runs.start_unrecorded(run, stubborn)
    await source.begun.wait()
    answer = await server.post(f"/api/runs/{run.id}/stop", {"wait_s": 0})
    assert (answer.status, answer.json["upstream_closed"]) == (202, False)
    assert answer.json["caused_by_this_call"] is True
    again = await server.post(f"/api/runs/{run.id}/stop", {"wait_s": 0})
    assert again.status == 202, again.body
    assert again.json["caused_by_this_call"] is False
    source.let_go.set_result(None)


async def test_a_stop_that_nobody_has_confirmed_was_asked_for_by_who_came_first(server: Served) -> None:
    source = Stubborn()

    async def stubborn(run: Run) -> Source:
        return source

    services = server.services
    run = Run(id=services.make_id("run"), owner="local", model="fast", created_at=services.clock.unix_s())
    await services.runs.start(Start(run=run, request=Request(())), stubborn)
    await source.begun.wait()
    answers = [await server.post(f"/api/runs/{run.id}/stop", {"wait_s": 0}) for _ in range(2)]
    assert [answer.status for answer in answers] == [202, 202]
    assert [answer.json["caused_by_this_call"] for answer in answers] == [True, False]
    source.let_go.set_result(None)
    await server.ended(run.id)


def _asking(server: Served) -> MakeSource:
    async def make(run: Run) -> Source:
        model = await server.services.upstreams.model("hang")
        return model.turn(Request((User((Text("Hi"),)),)), call_id_prefix="c")

    return make


# ---------------------------------------------------------------------- going on


async def test_a_cut_answer_is_gone_on_with_in_a_new_message(server: Served) -> None:
    """C27: the partial never changes."""
    session_id = await server.session()
    cut = (await server.say(session_id, model="cut"))["run"]["id"]
    assert (await server.ended(cut))["status"] == "failed"
    before = (await server.get(f"/api/sessions/{session_id}/messages")).json["items"]
    answer = await server.post(f"/api/runs/{cut}/continue", {"model": "fast"})
    assert answer.status == 201
    assert answer.json["message"] is None
    assert answer.json["run"]["continues"] == cut
    await server.ended(answer.json["run"]["id"])
    items = (await server.get(f"/api/sessions/{session_id}/messages")).json["items"]
    assert items[: len(before)] == before
    assert items[-1]["continues"] == before[1]["id"]


async def test_what_can_not_be_gone_on_with_is_said(server: Served) -> None:
    alone = (await server.run(model="cut"))["id"]
    await server.ended(alone)
    assert (await server.post(f"/api/runs/{alone}/continue")).code == "no_session"
    session_id = await server.session()
    done = (await server.say(session_id, model="fast"))["run"]["id"]
    await server.ended(done)
    assert (await server.post(f"/api/runs/{done}/continue")).code == "run_complete"
    active = (await server.say(session_id, model="hang"))["run"]["id"]
    assert (await server.post(f"/api/runs/{active}/continue")).code == "run_active"


async def test_a_session_that_was_deleted_can_not_be_gone_on_with(server: Served) -> None:
    session_id = await server.session()
    run_id = (await server.say(session_id, model="cut"))["run"]["id"]
    await server.ended(run_id)
    assert (await server.ask("DELETE", f"/api/sessions/{session_id}")).status == 204
    assert (await server.post(f"/api/runs/{run_id}/continue")).status == 404


# -------------------------------------------------------------------- idempotency


async def test_the_same_key_and_body_make_one_run(server: Served) -> None:
    key = {"idempotency-key": "k1"}
    body = {"model": "fast", "input": "Hello"}
    answers = await asyncio.gather(*(server.post("/api/runs", body, headers=key) for _ in range(5)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sorted(answer.headers.get("idempotency-replayed", "") for answer in answers) == ["", *["true"] * 4]
    assert len((await server.get("/api/runs")).json["runs"]) == 1
    other = await server.post("/api/runs", body | {"input": "Bye"}, headers=key)
    assert (other.status, other.code) == (422, "idempotency_key_reused")
    # Elsewhere the same words are another request.
    session_id = await server.session()
    elsewhere = await server.post(
        f"/api/sessions/{session_id}/messages", {"content": "x", "model": "fast"}, headers=key
    )
    assert elsewhere.status == 422


async def test_a_message_that_is_sent_again_is_said_once(server: Served) -> None:
    session_id = await server.session()
    path, key = f"/api/sessions/{session_id}/messages", {"idempotency-key": "k2"}
    body = {"content": "Hello", "model": "hang"}
    first = await server.post(path, body, headers=key)
    again = await server.post(path, body, headers=key)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json["message"] == first.json["message"]
    assert again.json["run"]["id"] == first.json["run"]["id"]
    # Also one that waits for its turn.
    queued = body | {"multitask": "queue"}
    first = await server.post(path, queued, headers={"idempotency-key": "k3"})
    again = await server.post(path, queued, headers={"idempotency-key": "k3"})
    assert again.json["message"] == first.json["message"]
    assert again.json["run"]["status"] == "queued"
    assert len((await server.get(f"/api/sessions/{session_id}/queue")).json["items"]) == 1


async def test_a_key_is_kept_for_as_long_as_the_settings_say(tmp_path: Path) -> None:
    settings = settings_of(store_url("memory", tmp_path))
    body, key = {"model": "fast", "input": "Hello"}, {"idempotency-key": "k"}
    for hours, runs in ((24.0, 1), (0.0, 2)):
        kept = replace(settings, store=replace(settings.store, keep_idempotency_hours=hours))
        async with served(kept) as server:
            answers = [await server.post("/api/runs", body, headers=key) for _ in range(2)]
            assert len({answer.json["id"] for answer in answers}) == runs
            # And so it is when the server tidies up.
            assert server.services.runs._patience.keep_keys_s == hours * 3600


async def test_a_key_that_is_none_is_refused(server: Served) -> None:
    answer = await server.post("/api/runs", {"model": "fast", "input": "a"}, headers={"idempotency-key": "x" * 256})
    assert (answer.status, answer.error["param"]) == (400, "Idempotency-Key")


# ---------------------------------------------------------------------- approvals


class Asks:
    """A source that waits for a person."""

    unwind_s: float | None = None

    async def run(self, sink: Sink) -> Ended | Suspended:
        emit(sink, AttemptStarted("up", "m"), ToolCallStarted(0, "c1", "write"), ToolCallEnded(0))
        emit(sink, ApprovalAsked("c1", "write", "{}", "digest"))
        return Suspended()

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Calls(Asks):
    """A source that has run a tool."""

    async def run(self, sink: Sink) -> Ended | Suspended:
        emit(sink, AttemptStarted("up", "m"))
        for index, id in enumerate(("c1", "c2")):
            emit(sink, ToolCallStarted(index, id, "write"), ToolArgsDelta(index, "{}"), ToolCallEnded(index))
            emit(sink, ToolRunStarted(id), ToolResult(id, "Written.", state="failed" if index else "done"))
        return Ended(Completed("tool_calls"))


async def agents_run(server: Served, source: Asks) -> str:
    """Straight into the store: no agent is served yet."""
    services = server.services

    async def asks(run: Run) -> Source:
        return source

    run = Run(id=services.make_id("run"), owner="local", model="fast", created_at=services.clock.unix_s())
    result = await services.store.start(Start(run=run, request=Request(())))
    assert isinstance(result, Started)
    await services.runs._begin(result.run, asks).over
    return run.id


async def test_the_first_answer_to_a_call_stands(server: Served) -> None:
    run_id = await agents_run(server, Asks())
    shown = (await server.get(f"/api/runs/{run_id}")).json
    assert shown["status"] == "waiting"
    assert shown["tool_calls"] == [{"id": "c1", "name": "write", "arguments": "", "state": "waiting"}]
    path = f"/api/runs/{run_id}/approvals/c1"
    other = await server.post(path, {"decision": "yes", "arguments_digest": "another"})
    assert (other.status, other.code, other.error["arguments_digest"]) == (409, "arguments_changed", "digest")
    body = {"decision": "no", "arguments_digest": "digest", "reason": "Not that file."}
    first = await server.post(path, body, headers={"idempotency-key": "a"})
    assert first.status == 200
    assert (first.json["decision"], first.json["by"], first.json["reason"]) == ("no", "local", "Not that file.")
    again = await server.post(path, body, headers={"idempotency-key": "a"})
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json == first.json
    late = await server.post(path, {"decision": "yes", "arguments_digest": "digest"})
    # Nobody serves the agent that asked: as soon as a worker has taken the run up again, it has ended.
    assert late.json == first.json or late.code == "run_ended"
    assert (await server.post(path, body | {"reason": "x"}, headers={"idempotency-key": "a"})).status == 422
    assert (await server.post(f"/api/runs/{run_id}/approvals/c2", body)).status == 404


async def test_calls_are_shown_as_they_went_with_and_without_the_log(server: Served) -> None:
    run_id = await agents_run(server, Calls())
    shown = (await server.get(f"/api/runs/{run_id}")).json
    call = {"name": "write", "arguments": "{}", "result": "Written."}
    assert shown["tool_calls"] == [{"id": "c1", "state": "done"} | call, {"id": "c2", "state": "failed"} | call]
    await server.services.store.tidy(keep_logs_s=-1)
    assert (await server.get(f"/api/runs/{run_id}")).json["tool_calls"] == shown["tool_calls"]


async def test_a_long_log_is_folded_to_its_end(server: Served) -> None:
    run_id = (await server.run(model="big"))["id"]
    run = await server.ended(run_id)
    assert run["status"] == "completed"
    assert len(run["text"]) > 1_000_000
    assert run["last_seq"] == len(await server.events(run_id)) - 1
