"""Responses that are kept: retrieved, followed again, cancelled, deleted, gone on from."""

import asyncio
from typing import Any, Literal

import httpx2
import msgspec
import openai
import pytest
from openai.types.responses import ResponseInputParam

from headwater.conversation import Request, Text, User
from headwater.errors import CallerError
from headwater.events import Completed, DialectName
from headwater.records import Run
from headwater.server.callers import LOCAL
from headwater.server.responses_routes import ResponsesRoutes
from headwater.server.stored import find_response, response_object
from headwater.store.results import Start
from tests.server.house import DIALECTS, PATHS, House, asking, frames

pytestmark = pytest.mark.anyio

STORED = "/v1/responses"


async def test_what_was_stored_is_retrieved_as_it_was_answered(house: House) -> None:
    answer = await house.openai.responses.create(
        model="chat/sim/think,tokens-3", input="Hi", metadata={"a": "b"}, temperature=0.5
    )
    again = await house.openai.responses.retrieve(answer.id)
    assert again == answer
    assert again.output_text == "t0 t1 t2 "
    assert (again.metadata, again.temperature) == ({"a": "b"}, 0.5)


async def test_what_was_not_to_be_stored_is_not_found(house: House) -> None:
    for more in ({"store": False}, {"store": False, "session_id": "s"}):
        body = (await house.post("responses", "chat/sim/tokens-3", **more)).json()
        assert (await house.http.get(f"{STORED}/{body['id']}")).status_code == 404
    chat = (await house.post("chat", "chat/sim/tokens-3", session_id="t")).headers["x-run-id"]
    for id in (chat, chat.replace("run_", "resp_"), "resp_nobody", "nobody"):
        missing = await house.http.get(f"{STORED}/{id}")
        assert missing.status_code == 404
        assert missing.json()["error"]["code"] == "not_found"


async def test_a_failed_response_is_retrieved_as_failed_with_what_had_come(house: House) -> None:
    answer = await house.post("responses", "chat/sim/tokens-9,cut-after-2", stream=True)
    response_id = answer.headers["x-run-id"].replace("run_", "resp_")
    again = await house.openai.responses.retrieve(response_id)
    assert again.status == "failed"
    assert again.error is not None
    assert str(again.error.code) == "upstream_truncated"
    assert again.output_text == "t0 t1 "
    streamed = await house.http.get(f"{STORED}/{response_id}?stream=true")
    assert frames(streamed.content) == frames(answer.content)


async def test_a_stream_of_a_response_that_was_refused_is_a_stream_all_the_same(house: House) -> None:
    answer = await house.post("responses", "chat/sim/status-429", stream=True)
    assert answer.status_code == 429
    response_id = answer.headers["x-run-id"].replace("run_", "resp_")
    streamed = await house.http.get(f"{STORED}/{response_id}?stream=true")
    assert streamed.status_code == 200
    assert [frame.event for frame in frames(streamed.content)][-3:-1] == ["error", "response.failed"]


async def test_in_the_background_the_id_comes_at_once_and_the_answer_later(house: House) -> None:
    answer = await house.openai.responses.create(model="chat/sim/tokens-5@50", input="Hi", background=True)
    assert answer.status == "in_progress"
    async with asyncio.timeout(30):
        while answer.status == "in_progress":
            await asyncio.sleep(0.02)
            answer = await house.openai.responses.retrieve(answer.id)
    assert answer.status == "completed"
    assert answer.output_text == "t0 t1 t2 t3 t4 "
    assert answer.background is True


async def test_a_background_stream_that_was_cut_is_resumed_without_a_gap_or_a_repeat(house: House) -> None:
    whole: list[dict[str, Any]] = []
    async with house.http.stream(
        "POST", PATHS["responses"], json=asking("responses", "chat/sim/tokens-30@60", stream=True, background=True)
    ) as answer:
        response_id = answer.headers["x-run-id"].replace("run_", "resp_")
        read = b""
        async for piece in answer.aiter_bytes():
            read += piece
            whole = [frame.data for frame in frames(read[: read.rfind(b"\n\n") + 2])]
            if len(whole) >= 9:
                break
    # The connection is cut; the run goes on.
    stream = await house.openai.responses.retrieve(
        response_id, stream=True, starting_after=whole[-1]["sequence_number"]
    )
    rest = [event.to_dict() async for event in stream]
    numbers = [event["sequence_number"] for event in [*whole, *rest]]
    assert numbers == list(range(len(numbers)))
    text = "".join(event["delta"] for event in [*whole, *rest] if event["type"] == "response.output_text.delta")
    assert text == "".join(f"t{n} " for n in range(30))
    assert rest[-1]["type"] == "response.completed"


async def test_starting_after_needs_background_and_a_number(house: House) -> None:
    answer = await house.openai.responses.create(model="demo/echo", input="Hi")
    refused = await house.http.get(f"{STORED}/{answer.id}?stream=true&starting_after=1")
    assert refused.status_code == 400
    kept = await house.openai.responses.create(model="demo/echo", input="Hi", background=True)
    for bad in ("-2", "x", "1.5", "9" * 5000):
        assert (await house.http.get(f"{STORED}/{kept.id}?stream=true&starting_after={bad}")).status_code == 400


async def test_whoever_has_had_more_than_there_is_is_told_so(house: House) -> None:
    """As of a file that was restored. To have had all of it is another matter."""
    kept = await house.openai.responses.create(model="demo/echo", input="Hi", background=True)
    events = [event async for event in await house.openai.responses.retrieve(kept.id, stream=True)]
    last = events[-1].sequence_number
    rest = await house.http.get(f"{STORED}/{kept.id}?stream=true&starting_after={last}")
    assert (rest.status_code, rest.content) == (200, b"")
    for ahead in (last + 1, 10**18 - 1):
        refused = await house.http.get(f"{STORED}/{kept.id}?stream=true&starting_after={ahead}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (410, "log_gone")


async def test_whoever_is_ahead_of_a_response_that_goes_on_is_told_so(house: House) -> None:
    kept = await house.openai.responses.create(model="chat/sim/tokens-9,stall-after-2", input="Hi", background=True)
    refused = await house.http.get(f"{STORED}/{kept.id}?stream=true&starting_after=999")
    assert (refused.status_code, refused.json()["error"]["param"]) == (410, "starting_after")


async def test_whoever_only_looks_on_may_leave(house: House) -> None:
    """C41: it is the creating connection that counts."""
    answer = await house.openai.responses.create(model="chat/sim/tokens-20@50", input="Hi", background=True)
    stream = await house.openai.responses.retrieve(answer.id, stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    assert await house.services.runs.wait("local", answer.id.replace("resp_", "run_")) == Completed("stop")


async def test_a_cancel_closes_the_upstream_and_what_had_come_is_kept(house: House) -> None:
    """C42, C43, C47"""
    answer = await house.openai.responses.create(model="chat/sim/tokens-9,stall-after-2", input="Hi", background=True)
    async with asyncio.timeout(30):
        while "t1" not in (await house.openai.responses.retrieve(answer.id)).output_text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    cancelled = await house.openai.responses.cancel(answer.id)
    assert cancelled.status == "cancelled"
    assert cancelled.output_text == "t0 t1 "
    assert (await house.simulator.wait_for_close(0)).closed in ("client_fin", "client_reset")
    assert await house.openai.responses.cancel(answer.id) == cancelled


async def test_what_was_deleted_is_gone(house: House) -> None:
    answer = await house.openai.responses.create(model="demo/echo", input="Hi")
    gone = await house.http.delete(f"{STORED}/{answer.id}")
    assert gone.json() == {"id": answer.id, "object": "response", "deleted": True}
    assert (await house.http.delete(f"{STORED}/{answer.id}")).status_code == 404
    with pytest.raises(openai.NotFoundError):
        await house.openai.responses.retrieve(answer.id)


async def sent_nothing(message: Any) -> None:
    raise AssertionError(message)


@pytest.mark.parametrize("session_id", [None, "s"])
@pytest.mark.parametrize(
    ("query", "log_dropped"), [(b"", False), (b"", True), (b"stream=true&starting_after=1", False)]
)
async def test_what_is_deleted_while_it_is_looked_up_is_not_found(
    house: House, session_id: str | None, query: bytes, log_dropped: bool
) -> None:
    """It had been there: with nothing to read it would look as if it went on."""
    services = house.services
    more: dict[str, Any] = {} if session_id is None else {"session_id": session_id}
    response_id = (await house.post("responses", "demo/echo", background=True, **more)).json()["id"]
    await services.runs.wait("local", response_id.replace("resp_", "run_"))
    if log_dropped:
        await services.store.tidy(-1.0)
    stored = await find_response(services, LOCAL, response_id)
    assert stored is not None
    if session_id is None:
        await services.store.delete_run("local", stored.run.id)
    else:
        await services.store.delete_session("local", session_id)
    scope = {"path_params": {"response_id": response_id}, "query_string": query}
    with pytest.raises(CallerError, match=response_id) as refused:
        await ResponsesRoutes(services).retrieve(scope, LOCAL, stored, sent_nothing)
    assert (refused.value.status, refused.value.code) == (404, "not_found")


async def test_a_log_that_is_dropped_while_it_is_looked_up_is_not_an_answer_that_goes_on(house: House) -> None:
    answer = await house.openai.responses.create(model="demo/echo", input="Hi")
    stored = await find_response(house.services, LOCAL, answer.id)
    assert stored is not None
    await house.services.store.tidy(-1.0)
    shown = msgspec.json.decode(await response_object(house.services.store, stored))
    assert (shown["status"], shown["output"]) == ("completed", answer.to_dict()["output"])


async def test_what_goes_on_or_belongs_to_a_session_is_not_deleted(house: House) -> None:
    """And SDKs, which try again by themselves on such a status, do not: it would be in vain."""
    asked: list[str] = []

    async def note(request: httpx2.Request) -> None:
        asked.append(request.method)

    http = openai.DefaultAsyncHttpxClient(event_hooks={"request": [note]})
    client = house.openai.with_options(http_client=http)
    running = await house.openai.responses.create(model="chat/sim/stall-after-1", input="Hi", background=True)
    kept = (await house.post("responses", "demo/echo", session_id="s")).json()
    for response_id, code in ((running.id, "run_active"), (kept["id"], "in_session")):
        with pytest.raises(openai.ConflictError) as refused:
            await client.responses.delete(response_id)
        assert refused.value.code == code
        assert refused.value.response.headers["x-should-retry"] == "false"
    assert asked == ["DELETE", "DELETE"]
    await house.openai.responses.cancel(running.id)
    await http.aclose()


@pytest.mark.parametrize("store", [True, False])
async def test_a_response_goes_on_from_a_previous_one(house: House, store: bool) -> None:
    first = await house.openai.responses.create(model="chat/sim/echo", input="one", instructions="Be brief.")
    second = await house.openai.responses.create(
        model="chat/sim/echo", input="two", previous_response_id=first.id, store=store
    )
    assert second.output_text == "two"
    assert second.previous_response_id == first.id
    told = [(message["role"], message["content"]) for message in house.simulator.requests[1].body["messages"]]
    assert told[-3:] == [("user", "one"), ("assistant", "one"), ("user", "two")]


def told(house: House, dialect: DialectName) -> list[tuple[str, str]]:
    """What the last upstream was asked: who says what, with the system prompt first where it has a field of its own."""
    body = house.simulator.requests[-1].body
    match dialect:
        case "chat":
            return [(message["role"], message["content"]) for message in body["messages"]]
        case "responses":
            first = [("system", body["instructions"])] if "instructions" in body else []
            return [*first, *((item["role"], item["content"]) for item in body["input"])]
        case "messages":
            system = [("system", block["text"]) for block in body.get("system", ())]
            return [*system, *((turn["role"], turn["content"][0]["text"]) for turn in body["messages"])]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("role", ["developer", "system"])
async def test_what_a_developer_said_in_the_input_is_part_of_the_history(
    house: House, dialect: DialectName, role: Literal["developer", "system"]
) -> None:
    """Only `instructions` are for the response that they came with."""
    model = f"{dialect}/sim/echo"
    first = await house.openai.responses.create(
        model=model,
        input=[{"role": role, "content": "ALWAYS FRENCH"}, {"role": "user", "content": "one"}],
        instructions="Be brief.",
    )
    said = [("system", "ALWAYS FRENCH"), ("user", "one"), ("assistant", "one"), ("user", "two")]
    second = await house.openai.responses.create(model=model, input="two", previous_response_id=first.id)
    assert told(house, dialect) == said
    await house.openai.responses.create(model=model, input="three", previous_response_id=second.id)
    assert told(house, dialect) == [*said, ("assistant", "two"), ("user", "three")]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("store", [True, False])
async def test_new_instructions_come_first_and_take_the_place_of_the_old_ones(
    house: House, dialect: DialectName, store: bool
) -> None:
    model = f"{dialect}/sim/echo"
    french: ResponseInputParam = [{"role": "developer", "content": "ALWAYS FRENCH"}, {"role": "user", "content": "one"}]
    first = await house.openai.responses.create(model=model, input=french, instructions="Be brief.")
    await house.openai.responses.create(
        model=model, input="two", instructions="Be long.", previous_response_id=first.id, store=store
    )
    system = [("system", "Be long."), ("system", "ALWAYS FRENCH")]
    assert told(house, dialect) == [*system, ("user", "one"), ("assistant", "one"), ("user", "two")]


async def test_what_a_developer_says_in_the_midst_keeps_its_place_where_there_is_one(house: House) -> None:
    first = await house.openai.responses.create(model="chat/sim/echo", input="one")
    french: ResponseInputParam = [{"role": "developer", "content": "NOW FRENCH"}, {"role": "user", "content": "two"}]
    for dialect in DIALECTS:
        answer = await house.openai.responses.create(
            model=f"{dialect}/sim/echo", input=french, previous_response_id=first.id
        )
        before, after = [("user", "one"), ("assistant", "one")], [("user", "two")]
        system = [("system", "NOW FRENCH")]
        if dialect == "messages":
            # It has but one place for it; and says so.
            assert told(house, dialect) == [*system, *before, *after]
            assert "loses its place" in answer.model_dump_json()
        else:
            assert told(house, dialect) == [*before, *system, *after]


async def test_only_an_answer_can_be_gone_on_from(house: House) -> None:
    running = await house.openai.responses.create(model="chat/sim/stall-after-1", input="Hi", background=True)
    in_session = (await house.post("responses", "demo/echo", session_id="s")).json()
    for id, code in (
        (running.id, "invalid_value"),
        (in_session["id"], "invalid_value"),
        ("resp_nobody", "previous_response_not_found"),
    ):
        answer = await house.post("responses", "demo/echo", previous_response_id=id)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "previous_response_id"
        assert answer.json()["error"]["code"] == code
    await house.openai.responses.cancel(running.id)


@pytest.mark.parametrize("more", [{}, {"background": True}, {"stream": True}, {"store": False}])
async def test_a_history_of_which_something_was_deleted_is_not_gone_on_from(house: House, more: dict[str, Any]) -> None:
    """Before anything is begun: a model that was told the rest of it would answer to something else."""
    first = await house.openai.responses.create(model="chat/sim/echo", input="one")
    second = await house.openai.responses.create(model="chat/sim/echo", input="two", previous_response_id=first.id)
    third = await house.openai.responses.create(model="chat/sim/echo", input="three", previous_response_id=second.id)
    await house.openai.responses.delete(first.id)
    kept = await house.services.store.runs("local")
    for last in (second, third):
        answer = await house.post("responses", "chat/sim/echo", previous_response_id=last.id, **more)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "previous_response_not_found")
        assert (error["type"], error["param"]) == ("invalid_request_error", "previous_response_id")
        assert last.id in error["message"]
        assert first.id in error["message"]
    assert await house.services.store.runs("local") == kept
    assert len(house.simulator.requests) == 3


@pytest.mark.parametrize("session_id", [None, "s"])
async def test_it_outlives_its_log(house: House, session_id: str | None) -> None:
    more: dict[str, Any] = {} if session_id is None else {"session_id": session_id}
    answer = (await house.post("responses", "chat/sim/tokens-3", background=False, **more)).json()
    await house.services.store.tidy(-1.0)
    again = await house.openai.responses.retrieve(answer["id"])
    assert again.output_text == "t0 t1 t2 "
    assert again.status == "completed"
    gone = await house.http.get(f"{STORED}/{answer['id']}?stream=true")
    assert (gone.status_code, gone.json()["error"]["code"]) == (410, "log_dropped")


async def test_another_owners_is_as_if_it_were_not_there(house: House) -> None:
    services = house.services
    run = Run(id=services.make_id("run"), owner="somebody", model="demo/echo", created_at=0.0, route="responses")
    await services.runs.start(Start(run=run, request=Request((User((Text("Hi"),)),))))
    assert await services.runs.wait("somebody", run.id) == Completed("stop")
    response_id = run.id.replace("run_", "resp_")
    for method, path in (("GET", ""), ("GET", "?stream=true"), ("POST", "/cancel"), ("DELETE", "")):
        assert (await house.http.request(method, f"{STORED}/{response_id}{path}")).status_code == 404
    following = await house.post("responses", "demo/echo", previous_response_id=response_id)
    assert following.json()["error"]["code"] == "previous_response_not_found"
