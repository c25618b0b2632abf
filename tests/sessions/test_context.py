"""What the model is told of a session."""

import pytest

from headwater.conversation import (
    Assistant,
    Image,
    JsonSchema,
    Message,
    Parameters,
    Reasoning,
    Request,
    System,
    Text,
    Tool,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects.history import UNKNOWN_OUTCOME
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolRunStarted,
)
from headwater.records import Blob, Run, SessionParameters
from headwater.sessions.context import REMARK, added, context
from headwater.sessions.images import GONE, blobs_in, shown
from tests.sessions.talks import Talk, call, ran

ASKED: list[Event] = [AttemptStarted("up", "m")]
AGAIN = Request(())


def user(text: str) -> User:
    return User((Text(text),))


def said(text: str) -> Assistant:
    return Assistant((Text(text),), origin="up")


def told(talk: Talk, run: Run, *body: Message, window_tokens: int | None = None) -> list[Message]:
    return list(context(talk.transcript(), run, Request(body), window_tokens).request.messages)


def cut_talk(*events: Event, outcome: Outcome = Stopped("user")) -> Talk:
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED, *events], outcome)
    return talk


# ---------------------------------------------------------------- the history


def test_a_partial_is_told_and_its_notice_is_not() -> None:
    """C45."""
    talk = cut_talk(ReasoningDelta("Hm."), TextDelta("t0 "))
    partial = Assistant((Reasoning("Hm."), Text("t0 ")), origin="up")
    assert told(talk, talk.say("And?"), user("And?")) == [user("Hi"), partial, user("And?")]


def test_where_nothing_was_visible_two_of_the_users_come_in_a_row() -> None:
    """C44."""
    talk = cut_talk(ReasoningDelta("Hm."))
    assert told(talk, talk.say("And?"), user("And?")) == [user("Hi"), user("And?")]


def test_dropped_calls_are_told_of_in_the_place_where_they_were() -> None:
    """C26."""
    talk = cut_talk(TextDelta("t0 "), *call(0, "c1"), *call(1, "c2", "find")[:2])
    notice = "The answer ended early. These tool calls were not run: look, find."
    remark = user(REMARK.format(notice))
    assert told(talk, talk.say("And?"), user("And?")) == [user("Hi"), said("t0 "), remark, user("And?")]


def test_a_message_of_dropped_calls_alone_is_not_told() -> None:
    """C26."""
    talk = cut_talk(ReasoningDelta("Hm."), *call(0, "c1")[:2], outcome=Failed("upstream_truncated", "It broke."))
    first, remark, last = told(talk, talk.say("And?"), user("And?"))
    assert (first, last) == (user("Hi"), user("And?"))
    assert isinstance(remark, User)


def test_a_call_that_may_have_run_is_told_as_such_beside_one_that_did_not() -> None:
    """C51."""
    talk = cut_talk(*call(0, "c1"), *call(1, "c2"), ToolRunStarted("c2"), outcome=Interrupted("crash"))
    _, turn, unknown, remark, _ = told(talk, talk.say("And?"), user("And?"))
    assert turn == Assistant((ToolCall("c2", "look", '{"at":1}'),), origin="up")
    assert unknown == ToolOutput("c2", (Text(UNKNOWN_OUTCOME),), is_error=True)
    assert isinstance(remark, User)


def test_tools_that_ran_are_told_with_their_results() -> None:
    talk = cut_talk(*call(0, "c1"), *ran("c1"), outcome=Completed())
    assert told(talk, talk.say("And?"), user("And?"))[1:3] == [
        Assistant((ToolCall("c1", "look", '{"at":1}'),), origin="up"),
        ToolOutput("c1", (Text("found"),)),
    ]


def test_an_empty_answer_is_not_told() -> None:
    talk = cut_talk(outcome=Completed())
    assert told(talk, talk.say("And?"), user("And?")) == [user("Hi"), user("And?")]


def test_only_the_branch_that_the_run_is_on_is_told() -> None:
    talk = cut_talk(TextDelta("one"), outcome=Completed())
    question = talk.messages[0].id
    again = talk.say(under=question)
    assert told(talk, again) == [user("Hi")]
    other = talk.say("Hello", under=None)
    assert told(talk, other, user("Hello")) == [user("Hello")]


def test_a_notice_of_a_run_that_left_nothing_else_is_gone_once_there_is_an_answer() -> None:
    talk = cut_talk(outcome=Failed("refused", "No."))
    talk.answer(talk.say(), [*ASKED, TextDelta("one")])
    assert told(talk, talk.say("And?"), user("And?")) == [user("Hi"), said("one"), user("And?")]


# ----------------------------------------------------------------------- C63


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ([user("a")], [user("a")]),
        ([System((Text("s"),)), user("a")], [user("a")]),
        ([user("a"), user("b")], [user("a"), user("b")]),
        ([user("a"), said("b"), user("c")], [user("c")]),
        ([user("a"), said("b"), ToolOutput("c1", ()), user("c")], [ToolOutput("c1", ()), user("c")]),
        ([user("a"), said("b"), user("c"), System((Text("s"),)), said("d")], []),
        ([], []),
    ],
)
def test_what_follows_the_bodys_last_answer_is_new_to_the_session(body: list[Message], new: list[Message]) -> None:
    """C63."""
    assert added(body) == tuple(new)


def test_after_one_message_in_the_body_the_stored_history_comes_first() -> None:
    """C63."""
    talk = cut_talk(TextDelta("one"), outcome=Completed())
    system = System((Text("Be brief."),))
    assert told(talk, talk.say("And?"), system, user("And?")) == [system, user("Hi"), said("one"), user("And?")]


@pytest.mark.parametrize("body", [[user("x"), said("y"), user("And?")], [user("x"), user("And?")], [said("y")]])
def test_several_messages_in_the_body_are_the_context(body: list[Message]) -> None:
    """C63."""
    talk = cut_talk(TextDelta("one"), outcome=Completed())
    assert told(talk, talk.say("And?"), *body) == body
    assert told(talk, talk.say("And?"), *body, window_tokens=1) == body


# ---------------------------------------------------------------- parameters


def test_the_sessions_system_prompt_and_parameters_hold_where_the_request_leaves_them_open() -> None:
    talk = Talk()
    run = talk.say("Hi")
    parameters = SessionParameters(system="Be brief.", request=Parameters(temperature=0.5, max_tokens=10))
    transcript = talk.transcript(parameters=parameters)
    schema = JsonSchema("out")
    built = context(transcript, run, Request((user("Hi"),), parameters=Parameters(max_tokens=20, output=schema)))
    assert built.request.messages == (System((Text("Be brief."),)), user("Hi"))
    assert built.request.parameters == Parameters(temperature=0.5, max_tokens=20, output=schema)
    own = System((Text("Be long."),))
    assert context(transcript, run, Request((own, user("Hi")))).request.messages == (own, user("Hi"))


# ------------------------------------------------------------------- going on


def test_a_cut_text_is_handed_over_to_be_gone_on_with() -> None:
    """C27."""
    talk = cut_talk(TextDelta("t0 "), outcome=Incomplete("length"))
    built = context(talk.transcript(), talk.say(continues="run_0"), AGAIN)
    assert built.goes_on == said("t0 ")
    assert built.request.messages == (user("Hi"),)


@pytest.mark.parametrize(
    "events",
    [[*call(0, "c1")[:2]], [TextDelta("t0 "), *call(0, "c1")[:2]], [*call(0, "c1"), *ran("c1")], [TextDelta("\n")]],
    ids=["torn", "torn after text", "after tools", "blank"],
)
def test_what_is_no_cut_text_is_followed_by_another_turn(events: list[Event]) -> None:
    """C27: a torn call is not continued."""
    talk = cut_talk(*events)
    built = context(talk.transcript(), talk.say(continues="run_0"), AGAIN)
    assert built.goes_on is None
    assert len(built.request.messages) > 1


def test_a_torn_call_is_not_continued_where_no_notice_tells_of_it() -> None:
    """C27: a fork has its messages alone."""
    talk = cut_talk(TextDelta("t0 "), *call(0, "c1")[:2])
    talk.notices.clear()
    assert context(talk.transcript(), talk.say(continues="run_0"), AGAIN).goes_on is None


def test_a_run_that_goes_on_with_nothing_is_told_nothing() -> None:
    talk = Talk()
    assert context(talk.transcript(), talk.say(continues="run_0"), AGAIN).request.messages == ()


# ------------------------------------------------------------------- trimming


def long_talk(exchanges: int) -> Talk:
    talk = Talk()
    for _ in range(exchanges):
        talk.answer(talk.say("Hi"), [*ASKED, TextDelta("x" * 400)])
    return talk


def test_what_does_not_fit_is_left_out_and_said() -> None:
    talk = long_talk(10)
    run = talk.say("And?")
    request = Request((user("And?"),), tools=(Tool("look"),), parameters=Parameters(max_tokens=100))
    transcript = talk.transcript(parameters=SessionParameters(system="Be brief."))
    built = context(transcript, run, request, 700)
    assert built.request.messages[0] == System((Text("Be brief."),))
    assert built.request.messages[-1] == user("And?")
    assert built.notice is not None
    left_out = 21 - (len(built.request.messages) - 1)
    assert 10 <= left_out <= 16
    assert built.notice.code == "context_trimmed"
    assert built.notice.text.startswith(f"The {left_out} oldest messages do not fit")
    assert not built.notice.for_model
    assert context(transcript, run, request, 100_000).notice is None


def test_one_message_is_spoken_of_as_one() -> None:
    talk = Talk()
    talk.answer(talk.say(said("x" * 4000)), [], Stopped("user"))
    run = talk.say("And?")
    built = context(talk.transcript(), run, Request((user("And?"),)), 200)
    assert built.notice is not None
    assert built.notice.text.startswith("The oldest message does not fit")


def test_what_is_to_be_gone_on_with_takes_room_and_stays() -> None:
    talk = long_talk(4)
    talk.answer(talk.say("Hi"), [*ASKED, TextDelta("y" * 400)], Stopped("user"))
    built = context(talk.transcript(), talk.say(continues="run_0"), AGAIN, 400)
    assert built.goes_on == said("y" * 400)
    assert built.request.messages == (user("Hi"), said("x" * 400), user("Hi"))


def test_questions_in_a_row_are_one_exchange() -> None:
    """C44."""
    talk = cut_talk()
    assert told(talk, talk.say("And?"), user("And?"), window_tokens=1) == [user("Hi"), user("And?")]


def test_a_remark_goes_with_what_it_is_about() -> None:
    talk = cut_talk(TextDelta("x" * 4000), *call(0, "c1")[:2])
    assert told(talk, talk.say("And?"), user("And?"), window_tokens=200) == [user("And?")]


# ---------------------------------------------------------------------- images

BLOB = Blob("ab12", "image/png", b"\x89PNG")


def test_an_image_that_is_kept_as_a_blob_is_shown_to_the_model() -> None:
    message = User((Text("What?"), Image("blob:ab12", "low"), Image("https://example.com/a.png"), Image("blob:gone")))
    assert blobs_in([message, message, said("x")]) == ("ab12", "gone")
    assert shown(message, {"ab12": BLOB}) == User(
        (
            Text("What?"),
            Image("data:image/png;base64,iVBORw==", "low"),
            Image("https://example.com/a.png"),
            Text(GONE),
        )
    )
    assert shown(said("x"), {}) == said("x")
