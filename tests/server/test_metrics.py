"""`/metrics`: what went on, counted once a run; and who may see it."""

import re

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings
from headwater.events import Completed, Failed, Incomplete, Interrupted, Outcome, Stopped, Usage
from headwater.records import Run
from headwater.server.metrics import OTHER, Metrics
from tests.server.house import House, eventually, open_house

pytestmark = pytest.mark.anyio

KEYS = (
    KeySettings(owner="ann", key=Secret("a" * 20)),
    KeySettings(owner="ops", key=Secret("o" * 20), scopes=("admin",)),
)


class Told:
    """What was told, by sample."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}

    def value(self, name: str, **labels: str) -> float:
        """The sum over all that have these labels."""
        samples = [sample for family in self.families.values() for sample in family.samples]
        return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())


async def metrics(house: House) -> Told:
    answer = await house.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return Told(answer.text)


async def settled(house: House) -> None:
    await eventually(lambda: house.services.runs.running() == 0)


async def test_runs_are_counted_by_how_they_ended_and_timed(house: House) -> None:
    for dialect in ("chat", "messages", "responses"):
        await house.post(dialect, f"{dialect}/sim/tokens-5")
    await house.post("chat", "chat/sim/tokens-5,cut-after-2", stream=True)
    await house.post("chat", "chat/sim/status-429")
    await settled(house)
    told = await metrics(house)
    assert told.value("headwater_runs_total", outcome="completed", reason="stop") == 3
    assert told.value("headwater_runs_total", route="messages", outcome="completed") == 1
    assert told.value("headwater_runs_total", outcome="failed", reason="upstream_truncated") == 1
    assert told.value("headwater_runs_total", outcome="failed", reason="refused") == 1
    chat = {"gen_ai_provider_name": "chat", "gen_ai_request_model": "chat/sim/tokens-5"}
    assert told.value("gen_ai_server_request_duration_seconds_count", error_type="", **chat) == 1
    assert told.value("gen_ai_server_request_duration_seconds_count", error_type="upstream_truncated") == 1
    assert told.value("gen_ai_server_time_to_first_token_seconds_count", **chat) == 1
    assert told.value("gen_ai_server_time_per_output_token_seconds_count", **chat) == 1
    assert told.value("gen_ai_client_token_usage_sum", gen_ai_token_type="output", **chat) == 5
    assert told.value("gen_ai_client_token_usage_count", gen_ai_token_type="input", **chat) == 1
    assert told.value("headwater_runs_going_on") == 0
    assert told.value("process_resident_memory_bytes") > 0


async def test_stops_resumes_and_commits_are_counted(house: House) -> None:
    begun = await house.http.post("/api/runs", json={"model": "chat/sim/tokens-9,stall-after-3", "input": "Hi"})
    run_id = begun.json()["id"]
    await eventually(lambda: (live := house.services.runs.live(run_id)) is not None and live.log.last_seq > 3)
    assert (await metrics(house)).value("headwater_runs_going_on") == 1
    stopped = await house.http.post(f"/api/runs/{run_id}/stop", json={"wait_s": 30})
    assert stopped.status_code == 200
    await house.http.get(f"/api/runs/{run_id}/events?after=2")
    await house.http.get(f"/api/runs/{run_id}/events")
    await settled(house)
    told = await metrics(house)
    assert told.value("headwater_runs_total", outcome="stopped", reason="user", route="native") == 1
    assert told.value("headwater_stop_seconds_count") == 1
    assert told.value("headwater_resumes_total", route="native") == 1
    assert told.value("headwater_store_commit_seconds_count") >= 1


async def test_a_response_that_is_followed_on_is_a_resume(house: House) -> None:
    begun = await house.openai.responses.create(model="chat/sim/tokens-5", input="Hi", background=True)
    await settled(house)
    stream = await house.openai.responses.retrieve(begun.id, stream=True, starting_after=3)
    assert [event async for event in stream]
    assert (await metrics(house)).value("headwater_resumes_total", route="responses") == 1


async def test_a_queued_run_that_is_taken_back_has_an_outcome_and_no_times(house: House) -> None:
    await house.http.post("/api/sessions", json={"id": "s"})
    body = {"model": "chat/sim/tokens-9,stall-after-1", "content": "Hi", "multitask": "queue"}
    first, second = [(await house.http.post("/api/sessions/s/messages", json=body)).json() for _ in range(2)]
    assert (await house.http.post(f"/api/runs/{second['run']['id']}/stop")).status_code == 200
    assert (await house.http.post(f"/api/runs/{first['run']['id']}/stop", json={"wait_s": 30})).status_code == 200
    await settled(house)
    told = await metrics(house)
    assert told.value("headwater_runs_total", outcome="stopped") == 2
    assert told.value("gen_ai_server_request_duration_seconds_count") == 1


def a_run(model: str, outcome: Completed | Interrupted | Stopped) -> Run:
    return Run(
        id="run_1", owner="ann", model=model, created_at=1.0, started_at=1.0, first_token_at=1.5, ended_at=3.0,
        outcome=outcome, usage=Usage(output_tokens=4, source="provider"),
    )  # fmt: skip


def test_a_recovered_run_is_counted_as_such_and_not_timed() -> None:
    metrics = Metrics()
    metrics.recovered(a_run("fast", Interrupted("crash")))
    told = Told(metrics.text().decode())
    assert told.value("headwater_recovered_runs_total") == 1
    assert told.value("headwater_runs_total", outcome="interrupted", reason="crash") == 1
    assert told.value("gen_ai_server_request_duration_seconds_count") == 0


def test_clients_do_not_decide_how_many_series_there_are() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.ended(a_run(f"up/{number}", Completed()), None)
    told = Told(metrics.text().decode())
    assert told.value("gen_ai_server_time_per_output_token_seconds_count") == 1000
    assert told.value("gen_ai_server_time_per_output_token_seconds_count", gen_ai_request_model=OTHER) == 800
    assert told.value("gen_ai_server_time_per_output_token_seconds_sum", gen_ai_request_model="up/0") == 0.5


def test_what_is_as_long_as_a_bucket_is_wide_is_in_it_and_the_longest_in_the_last() -> None:
    metrics = Metrics()
    for took_s in (0.01, 0.02, 0.0201, 1e6):
        metrics.ended(replace(a_run("fast", Completed()), started_at=0.0, ended_at=took_s), None)
    # Handed on in the meantime, it is not counted twice.
    metrics.hand_on()
    metrics.ended(replace(a_run("fast", Completed()), started_at=0.0, ended_at=0.02), None)
    told = Told(metrics.text().decode())
    counts = {le: told.value("gen_ai_server_request_duration_seconds_bucket", le=le) for le in ("0.01", "0.02", "0.04")}
    assert counts == {"0.01": 1, "0.02": 3, "0.04": 4}
    assert told.value("gen_ai_server_request_duration_seconds_bucket", le="+Inf") == 5
    assert told.value("gen_ai_server_request_duration_seconds_sum") == pytest.approx(1e6 + 0.0701)
    assert told.value("headwater_runs_total", outcome="completed") == 5


async def test_with_keys_it_takes_one_that_may() -> None:
    async with open_house(keys=KEYS) as house:
        for key, status in (("", 401), ("a" * 20, 403), ("o" * 20, 200)):
            headers = {"authorization": f"Bearer {key}"} if key else {}
            assert (await house.http.get("/metrics", headers=headers)).status_code == status


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Completed("stop"), ""),
        (Incomplete("length"), ""),
        (Stopped("user"), ""),
        (Failed("upstream_error", "of its own words"), "upstream_error"),
        (Interrupted("shutdown"), "shutdown"),
    ],
)
def test_operations_and_errors_are_called_as_in_traces(outcome: Outcome, error: str) -> None:
    counted = Metrics()
    model = Run(id="run_1", owner="ann", model="m", created_at=0.0, started_at=0.0, ended_at=1.0, outcome=outcome)
    counted.ended(model, None)
    counted.ended(replace(model, agent="m"), None)
    told = Told(counted.text().decode())
    for operation in ("chat", "invoke_agent"):
        named = {"gen_ai_operation_name": operation, "gen_ai_request_model": "m", "error_type": error}
        assert told.value("gen_ai_server_request_duration_seconds_count", **named) == 1


async def test_without_keys_only_this_machine_may_see_it(house: House) -> None:
    assert (await house.http.get("/metrics", headers={"x-forwarded-for": "203.0.113.9"})).status_code == 403
    assert (await house.http.get("/metrics", headers={"host": "evil.example"})).status_code == 421
    text = (await house.http.get("/metrics")).text
    # Whose they are is nobody's to read off here.
    assert not re.search(r"\b(local|owner)\b", text)
