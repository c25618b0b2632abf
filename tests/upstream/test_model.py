"""A model's turn: what is tried again, what stands, and who answers in the end (C20-C30)."""

import asyncio
from collections.abc import Sequence

import pytest

from headwater.config.secret import Secret
from headwater.conversation import Assistant, Request, Text, User
from headwater.dialects.base import NOT_CARRIED
from headwater.errors import CallerError
from headwater.events import AttemptEnded, AttemptStarted, Completed, Event, Failed, Incomplete, Notice
from headwater.source import Straight
from headwater.testing.upstream import Answer, Heard, refusal
from headwater.upstream.continuation import INSTRUCTION
from headwater.upstream.demo.steps import Cut, End, Hang, Pause, Send
from tests.upstream.answers import BUSY, CUT_AFTER_RE, ERROR_FRAME, NO_JSON, REFUSED
from tests.upstream.asking import CUT, CUT_AT_ONCE, DONE, GOOD, HELLO, Stage, call, chunk, text

pytestmark = pytest.mark.anyio


async def test_an_answer_is_delivered_as_it_comes() -> None:
    """C5."""
    stage = Stage([GOOD])
    assert await stage.outcome() == Completed("stop")
    assert stage.heard.words == ["Hi", " there"]
    assert stage.heard.events[0] == AttemptStarted("a", "a-1")
    assert stage.heard.events[-1] == AttemptEnded(200)
    assert stage.upstreams[0].asked[0].body["stream"] is True


async def test_a_plain_text_goes_straight_where_the_sink_has_a_way_for_it() -> None:
    """And is in the fold all the same."""
    stage = Stage([Answer([*text("One", " two", " three", " four", ' "five"', " six", " seven"), *DONE])])
    written: list[bytes] = []
    stage.heard.straight = Straight(b"<", b">", written.append)
    assert await stage.outcome() == Completed("stop")
    assert b"".join(written) == b"< two>< three>< four>"
    assert stage.heard.words == ["One", ' "five"', " six", " seven"]
    assert stage.heard.fold.message().text == 'One two three four "five" six seven'


class TestBeforeAnythingWasDelivered:
    @pytest.mark.parametrize("fault", [REFUSED, CUT_AT_ONCE, ERROR_FRAME, NO_JSON, BUSY, refusal(503, "Down.")])
    async def test_it_is_tried_again(self, fault: Answer | Failed) -> None:
        """C20, C22, C24."""
        stage = Stage([fault, fault, GOOD])
        assert await stage.outcome() == Completed("stop")
        assert stage.asked == [3]
        assert stage.heard.reasons == ["first", "retry", "retry"]
        assert stage.heard.words == ["Hi", " there"]
        assert stage.heard.fold.message().text == "Hi there"
        assert all(asked.exchange is None or asked.exchange.closed for asked in stage.upstreams[0].asked)

    async def test_three_attempts_in_all_and_then_its_error(self) -> None:
        """C20."""
        stage = Stage([refusal(503, "One."), refusal(503, "Two."), refusal(503, "Three."), GOOD])
        assert await stage.outcome() == Failed("upstream_error", "Three.", 503, True)
        assert stage.asked == [3]
        assert [event.because for event in stage.heard.of(AttemptStarted)] == [None, "One.", "Two."]
        assert [event.status for event in stage.heard.of(AttemptEnded)] == [503] * 3

    async def test_no_retries_is_one_attempt(self) -> None:
        """C20."""
        stage = Stage([CUT_AT_ONCE], retries=0)
        outcome = await stage.outcome()
        assert isinstance(outcome, Failed)
        assert outcome.reason == "upstream_truncated"
        assert stage.asked == [1]

    @pytest.mark.parametrize("status", [400, 401, 404, 422])
    async def test_what_will_not_pass_is_an_error_at_once(self, status: int) -> None:
        """C21."""
        stage = Stage([refusal(status, "No."), GOOD])
        outcome = await stage.outcome()
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.status) == ("refused", status)
        assert stage.asked == [1]

    async def test_the_upstreams_own_delay_is_obeyed(self) -> None:
        """C22."""
        stage = Stage([refusal(429, "Slow down.", retry_after="7"), GOOD])
        task = stage.start()
        await stage.clock.advance(6.9)
        assert stage.asked == [1]
        await stage.clock.advance(0.2)
        assert stage.asked == [2]
        assert (await task).outcome == Completed("stop")

    async def test_a_stop_during_backoff_takes_effect_at_once(self) -> None:
        """C22, C42."""
        stage = Stage([BUSY, GOOD])
        task = stage.start()
        await stage.clock.advance(0.1)
        assert stage.clock.sleepers
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stage.asked == [1]

    async def test_a_model_that_cannot_stream_is_asked_for_the_whole_and_that_is_remembered_for_a_while(self) -> None:
        """C23."""
        no_streaming = refusal(400, "This model does not support streaming.")
        body = b'{"choices": [{"message": {"content": "Hi there"}, "finish_reason": "stop"}]}'
        whole = Answer([Pause(200), Send(body), End()])
        stage = Stage([no_streaming, whole, whole, GOOD], retries=0, not_streaming_s=1000)
        assert await stage.outcome(within_s=300) == Completed("stop")
        assert stage.heard.reasons == ["first", "not_streaming"]
        assert stage.heard.words == ["Hi there"]
        assert await stage.outcome(within_s=300) == Completed("stop")
        await stage.clock.advance(1000)
        assert await stage.outcome() == Completed("stop")
        assert [asked.body["stream"] for asked in stage.upstreams[0].asked] == [True, False, False, True]

    async def test_another_key_is_tried_at_once_and_a_refused_one_is_left_out(self) -> None:
        stage = Stage([refusal(401, "Bad key."), GOOD], keys=["k1", "k2"], retries=0)
        assert await stage.outcome() == Completed("stop")
        assert await stage.outcome() == Completed("stop")
        assert [asked.key for asked in stage.upstreams[0].asked] == ["k1", "k2", "k2"]

    async def test_keys_take_turns(self) -> None:
        stage = Stage([GOOD], keys=["k1", "k2"])
        for _ in range(3):
            await stage.outcome()
        assert [asked.key for asked in stage.upstreams[0].asked] == ["k1", "k2", "k1"]

    async def test_when_all_keys_are_refused_it_says_so(self) -> None:
        stage = Stage([refusal(401, "Bad key.")], keys=["k1", "k2"])
        outcome = await stage.outcome()
        assert isinstance(outcome, Failed)
        assert outcome.status == 401
        assert "api_key of [upstreams.a]" in outcome.message
        assert stage.asked == [2]

    async def test_each_key_is_tried_once_even_if_none_rests(self) -> None:
        stage = Stage([refusal(401, "Bad key.")], keys=["k1", "k2"], cool_down_s=0)
        assert isinstance(await stage.outcome(), Failed)
        assert stage.asked == [2]


class TestAfterSomethingWasDelivered:
    async def test_what_was_delivered_is_kept_and_nothing_is_tried_again(self) -> None:
        """C25."""
        stage = Stage([CUT, GOOD], [GOOD])
        outcome = await stage.outcome()
        assert isinstance(outcome, Failed)
        assert outcome.reason == "upstream_truncated"
        assert stage.heard.words == ["Hi", " the"]
        assert stage.asked == [1, 0]

    async def test_a_torn_call_is_dropped_and_named(self) -> None:
        """C26."""
        stage = Stage([Answer([call('{"path": "a'), Cut()])])
        outcome = await stage.outcome(may_continue=True)
        assert isinstance(outcome, Failed)
        assert "Not called: write" in outcome.message
        [notice] = stage.heard.of(Notice)
        assert (notice.code, notice.tools, notice.for_model) == ("tool_call_dropped", ("write",), True)
        assert [one.state for one in stage.heard.fold.calls] == ["dropped"]
        assert stage.asked == [1]

    async def test_a_cut_answer_goes_on_where_it_ended(self) -> None:
        """C27: with prefill."""
        stage = Stage([CUT, Answer([*text("re", "."), *DONE])], prefill="assistant")
        assert await stage.outcome(may_continue=True) == Completed("stop")
        assert stage.heard.fold.message().text == "Hi there."
        seam = stage.heard.of(AttemptStarted)[1]
        assert (seam.reason, seam.stands, seam.turn) == ("continue", "everything", 0)
        assert stage.upstreams[0].asked[1].body["messages"][-1] == {"role": "assistant", "content": "Hi the"}

    async def test_a_continuation_repeats_no_white_space_that_its_provider_was_not_sent(self) -> None:
        """C27: the messages dialect takes none at the end."""

        def deltas(*words: str) -> list[Send]:
            frame = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}\n\n'
            start = b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
            return [
                Send(b'data: {"type":"message_start","message":{"role":"assistant"}}\n\n' + start),
                *(Send(frame % word.encode()) for word in words),
            ]

        end = (
            b'data: {"type":"content_block_stop","index":0}\n\n'
            b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n'
        )
        rest = Answer([*deltas("\\n", "\\nthere", " you"), Send(end), End()])
        stage = Stage([Answer([*deltas("Hi", "\\n\\n"), Cut()]), rest], dialect="messages", prefill="assistant")
        assert await stage.outcome(may_continue=True) == Completed("stop")
        assert stage.heard.fold.message().text == "Hi\n\nthere you"
        assert stage.upstreams[0].asked[1].body["messages"][-1]["content"][0]["text"] == "Hi"

    async def test_without_prefill_a_new_message_goes_on_and_says_so(self) -> None:
        """C27."""
        stage = Stage([CUT, Answer([*text("re."), *DONE])])
        assert await stage.outcome(may_continue=True) == Completed("stop")
        assert [message.text for message in stage.heard.fold.messages() if isinstance(message, Assistant)] == [
            "Hi the",
            "re.",
        ]
        assert [notice.code for notice in stage.heard.of(Notice)] == ["continued"]
        assert stage.heard.of(AttemptStarted)[1].turn == 1
        messages = stage.upstreams[0].asked[1].body["messages"]
        assert messages[1:] == [{"role": "assistant", "content": "Hi the"}, {"role": "user", "content": INSTRUCTION}]

    async def test_reasoning_alone_is_nothing_to_go_on_after(self) -> None:
        thought = Answer([chunk({"reasoning_content": "Hm."}), Cut()])
        stage = Stage([thought, GOOD], prefill="assistant")
        assert await stage.outcome(may_continue=True) == Completed("stop")
        assert stage.upstreams[0].asked[1].body["messages"] == stage.upstreams[0].asked[0].body["messages"]
        assert stage.heard.fold.message().text == "Hi there"

    async def test_when_it_cannot_go_on_the_outcome_is_that_it_was_cut(self) -> None:
        stage = Stage([CUT, refusal(400, "No prefill here.")], prefill="assistant")
        outcome = await stage.outcome(may_continue=True)
        assert isinstance(outcome, Failed)
        assert outcome.reason == "upstream_truncated"
        assert stage.heard.failures == ["upstream_truncated", "refused"]

    async def test_it_goes_on_a_bounded_number_of_times(self) -> None:
        stage = Stage([CUT], prefill="assistant", continuations=2)
        assert isinstance(await stage.outcome(may_continue=True), Failed)
        assert stage.asked == [3]


class TestGoingOnWithAnEarlierMessage:
    """C27: `/continue`: a new message, which begins where the old one ended."""

    CUT = Assistant((Text("Hi the"),))

    async def test_with_prefill(self) -> None:
        stage = Stage([Answer([*text("re."), *DONE])], prefill="assistant")
        assert await stage.outcome(goes_on=self.CUT) == Completed("stop")
        assert stage.heard.fold.message().text == "re."
        assert stage.upstreams[0].asked[0].body["messages"][-1] == {"role": "assistant", "content": "Hi the"}

    async def test_and_cut_again(self) -> None:
        stage = Stage([CUT_AFTER_RE, Answer([*text(" you."), *DONE])], prefill="assistant")
        assert await stage.outcome(goes_on=self.CUT, may_continue=True) == Completed("stop")
        assert stage.heard.fold.message().text == "re you."
        assert stage.upstreams[0].asked[1].body["messages"][-1]["content"] == "Hi there"

    async def test_without_prefill(self) -> None:
        stage = Stage([CUT_AFTER_RE, Answer([*text(" you."), *DONE])])
        assert await stage.outcome(goes_on=self.CUT, may_continue=True) == Completed("stop")
        first, second = (asked.body["messages"] for asked in stage.upstreams[0].asked)
        instruction = {"role": "user", "content": INSTRUCTION}
        assert first[1:] == [{"role": "assistant", "content": "Hi the"}, instruction]
        assert second[1:] == [*first[1:], {"role": "assistant", "content": "re"}, instruction]


class TestWhatCannotBeCarried:
    SEEDED = Request((User((Text("Hello"),)),), parameters=HELLO.parameters.__class__(seed=7))
    PICTURE = Request((User((Text("Hello"), Text("x"))),))

    async def test_it_is_noted_once(self) -> None:
        stage = Stage([refusal(529, "Busy."), refusal(529, "Busy.")], dialect="messages")
        await stage.outcome(self.SEEDED)
        assert [notice.code for notice in stage.heard.of(Notice)] == [NOT_CARRIED]
        assert "seed" in stage.heard.of(Notice)[0].text

    async def test_or_refused_before_anybody_is_asked(self) -> None:
        from headwater.conversation import Image

        request = Request((User((Image("http://example.org/a.bmp"),)),))
        stage = Stage([GOOD], dialect="messages")
        with pytest.raises(CallerError) as caught:
            stage.turn(request)
        assert caught.value.code == "unsupported_parameter"


async def test_an_answer_that_was_cut_by_its_limit_is_not_tried_again() -> None:
    stage = Stage([Answer([*text("Hi"), chunk({}, "length"), End()]), GOOD])
    assert await stage.outcome() == Incomplete("length")
    assert stage.asked == [1]


class Broken(Heard):
    """A sink that fails at its third word."""

    def take(self, events: Sequence[Event]) -> None:
        super().take(events)
        if len(self.words) == 3:
            raise RuntimeError("of the test")


@pytest.mark.parametrize("answer", [Answer([*text("a", "b", "c", "d"), *DONE]), Answer([*text("a", "b", "c"), End()])])
async def test_a_fault_of_our_own_is_not_blamed_on_the_upstream(answer: Answer) -> None:
    stage = Stage([answer])
    stage.heard = Broken()
    task = stage.start()
    await stage.clock.advance(1)
    with pytest.raises(RuntimeError, match="of the test"):
        await task
    exchange = stage.upstreams[0].asked[0].exchange
    assert exchange is not None
    assert exchange.closed


async def test_a_fault_at_the_very_end_is_ours_too() -> None:
    """What was held back comes out with the end."""
    stage = Stage([Answer([*text("a", "b"), chunk({"tool_calls": [{"index": 0}]}), *text("<th"), End()])])
    stage.heard = Broken()
    task = stage.start()
    await stage.clock.advance(1)
    with pytest.raises(RuntimeError, match="of the test"):
        await task


async def test_a_compressed_answer_is_refused_by_name() -> None:
    stage = Stage([Answer([*text("Hi"), *DONE], headers={"content-encoding": "gzip"}), GOOD])
    outcome = await stage.outcome()
    assert isinstance(outcome, Failed)
    assert "gzip" in outcome.message
    assert stage.asked == [1]


async def test_an_attempt_that_was_stopped_leaves_its_request_id() -> None:
    stage = Stage([Answer([*text("Hi"), Hang()], headers={"x-request-id": "req_9"})])
    task = stage.start()
    await stage.clock.advance(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.heard.of(AttemptEnded)[-1].request_id == "req_9"


async def test_a_key_that_the_upstream_repeats_goes_to_nobody() -> None:
    stage = Stage([refusal(400, "Bad key sk-secret-key.")], keys=["sk-secret-key"])
    outcome = await stage.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.message == "Bad key [key]."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("You sent Bearer hush-hush-1 and no.", "You sent [authorization] and no."),
        ("Token hush-hush-1 is no good.", "Token [authorization] is no good."),
        ('{\'x-quoted\': "with \\"quotes\\""}', "{'x-quoted': \"[x-quoted]\"}"),
        # Too short to be a secret, and found in words.
        ("It is a team effort.", "It is a team effort."),
    ],
)
async def test_headers_that_the_upstream_repeats_go_to_nobody(said: str, told: str) -> None:
    headers = {"Authorization": "Bearer hush-hush-1", "x-quoted": 'with "quotes"', "x-team": "team"}
    stage = Stage([refusal(400, said)], headers={name: Secret(value) for name, value in headers.items()})
    outcome = await stage.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.message == told
