"""How a Responses client is told of an answer's end: every outcome, whatever came before it."""

import msgspec
import pytest

from headwater.accumulate import Accumulator
from headwater.dialects import endings, responses
from headwater.dialects.responses.encode import ResponsesEncoder
from headwater.errors import CallerError
from headwater.events import (
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    ReasoningDelta,
    RunEnded,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallStarted,
    UsageReported,
)
from headwater.turn import TurnReader
from tests.dialects.responses_encoded import HEAD, USAGE, encoded, every_outcome, every_start, message, output, streamed
from tests.outcomes import DELIVERED
from tests.responses_stream import check, read, validate_response

STATUS = {
    Completed: "completed",
    Incomplete: "incomplete",
    Stopped: "cancelled",
    Failed: "failed",
    Interrupted: "failed",
}
REASON = {"length": "max_output_tokens", "content_filter": "content_filter", "turn_limit": "max_turns"}


@every_outcome
@every_start
def test_a_stream_ends_as_its_outcome_says(outcome: Outcome, delivered: list[Event]) -> None:
    data = encoded(*delivered, UsageReported(USAGE), RunEnded(outcome))
    stream = check(data)
    response = stream.response
    assert response is not None
    types = [event["type"] for event in read(data)[0]]
    assert response["status"] == STATUS[type(outcome)]
    match outcome:
        case Completed():
            assert types[-1] == "response.completed"
            assert response["incomplete_details"] is None
        case Incomplete(reason=reason):
            assert types[-1] == "response.incomplete"
            assert response["incomplete_details"] == {"reason": REASON[reason]}
        case Stopped():
            assert types[-1] == "response.incomplete"
            assert response["incomplete_details"] == {"reason": "cancelled"}
        case Failed() | Interrupted():
            said = {"message": endings.words(outcome), "code": endings.code(outcome)}
            assert types[-2:] == ["error", "response.failed"]
            assert stream.error is not None
            assert {name: stream.error[name] for name in said} == said
            assert stream.error["error"] == {**said, "type": endings.blame(outcome), "param": None}
            assert response["error"] == said
    assert (response["error"] is not None) == isinstance(outcome, Failed | Interrupted)
    assert response["usage"]["total_tokens"] == 9


@every_outcome
@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_an_item_that_is_open_at_the_end_is_complete_only_if_the_answer_is(outcome: Outcome, kind: str) -> None:
    [item] = output(*DELIVERED[kind], outcome=outcome)
    assert item["status"] == ("completed" if isinstance(outcome, Completed) else "incomplete")


@every_outcome
def test_a_call_that_was_not_said_to_be_whole_is_complete_only_if_the_answer_is(outcome: Outcome) -> None:
    [item] = output(ToolCallStarted(0, "call_a", "look"), ToolArgsDelta(0, '{"at":'), outcome=outcome)
    assert item["arguments"] == '{"at":'
    assert item["status"] == ("completed" if isinstance(outcome, Completed) else "incomplete")


@every_outcome
@every_start
def test_an_answer_in_one_piece_has_its_outcomes_status(outcome: Outcome, delivered: list[Event]) -> None:
    whole = responses.whole(HEAD, message(*delivered), USAGE, outcome)
    assert whole.status == endings.status(outcome)
    body = msgspec.json.decode(whole.body)
    if isinstance(outcome, Completed | Incomplete):
        assert body.get("error") is None
        assert "headwater" not in body
        response = body
    else:
        assert body["error"] == {
            "message": endings.words(outcome),
            "type": endings.blame(outcome),
            "param": None,
            "code": endings.code(outcome),
        }
        assert body["headwater"]["outcome"] == msgspec.to_builtins(outcome)
        assert body["headwater"]["usage"]["input_tokens"] == 7
        response = body["headwater"]["partial"]
    validate_response(response)
    last = streamed(*delivered, outcome=outcome).response
    assert last is not None
    if isinstance(outcome, Completed) or delivered is not DELIVERED["tool_call"]:
        assert response == last
    else:
        # Whole or torn, it can't be told any more, and none is run (C26).
        [call] = response["output"]
        assert call["status"] == "incomplete"
        assert response == {**last, "output": [call]}


@every_start
def test_an_answer_that_goes_on_is_shown_as_far_as_it_has_come(delivered: list[Event]) -> None:
    encoder = ResponsesEncoder(HEAD)
    for event in delivered:
        encoder.encode(event)
    response = msgspec.json.decode(encoder.so_far())
    validate_response(response)
    assert response["status"] == "in_progress"
    assert len(response["output"]) == (1 if delivered else 0)


def test_a_refusal_of_ours_has_the_dialects_shape() -> None:
    whole = responses.error(CallerError("No.", status=404, code="model_not_found", param="model"))
    assert whole.status == 404
    assert msgspec.json.decode(whole.body) == {
        "error": {"message": "No.", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}
    }


@every_outcome
@every_start
def test_an_outcome_is_no_better_for_having_passed_through_another_headwater(
    outcome: Outcome, delivered: list[Event]
) -> None:
    reader = TurnReader(responses.decoder("call_x"), Accumulator())
    events = reader.feed(encoded(*delivered, UsageReported(USAGE), RunEnded(outcome)))
    end = reader.end("clean")
    assert [
        event for event in events + end.events if isinstance(event, TextDelta | ReasoningDelta | ToolCallStarted)
    ] == [event for event in delivered if isinstance(event, TextDelta | ReasoningDelta | ToolCallStarted)]
    match outcome:
        case Completed():
            assert isinstance(end.outcome, Completed) == (delivered in (DELIVERED["text"], DELIVERED["tool_call"]))
        case Incomplete():
            assert end.outcome == outcome
        case Stopped():
            assert isinstance(end.outcome, Failed)
            assert "'cancelled'" in end.outcome.message
        case Failed() | Interrupted():
            assert isinstance(end.outcome, Failed)
            assert end.outcome.message.startswith(endings.words(outcome))
