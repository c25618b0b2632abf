"""A session as people see it, and as they take it away."""

from typing import Any

import msgspec
import pytest

from headwater.conversation import Image, Opaque, System, Text, ToolOutput, User
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    ProviderState,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolResult,
    ToolRunStarted,
    Usage,
    UsageReported,
)
from headwater.records import SessionNotice, SessionParameters, Transcript
from headwater.sessions.export import from_json, to_json, to_markdown
from headwater.sessions.view import view
from headwater.sessions.way import newest_under, with_results
from tests.sessions.talks import Talk, call, ran

ASKED: list[Event] = [AttemptStarted("up", "m")]


def items(transcript: Transcript, head_id: str | None = None) -> list[dict[str, Any]]:
    """As they are on the wire."""
    found = msgspec.json.decode(msgspec.json.encode(view(transcript, head_id)))
    assert list(found) == ["items"]
    listed: list[dict[str, Any]] = found["items"]
    return listed


def test_it_has_the_wires_shape() -> None:
    """C43, C45."""
    talk = Talk()
    run = talk.say(User((Text("Hi"), Image("blob:ab12"), Image("https://example.com/a.png"))))
    usage = Usage(7, 2, source="provider")
    talk.answer(run, [*ASKED, ReasoningDelta("Hm."), TextDelta("t0 "), UsageReported(usage)], Stopped("user"))
    user, answer, notice = items(talk.transcript())
    assert user == {
        "kind": "message",
        "id": "msg_0002",
        "parent_id": None,
        "role": "user",
        "content": "Hi",
        "parts": [{"type": "image", "blob": "ab12"}, {"type": "image", "url": "https://example.com/a.png"}],
        "status": "complete",
        "created_at": "1970-01-01T00:00:00Z",
        "run_id": "run_0001",
        "siblings": [],
    }
    assert answer == {
        "kind": "message",
        "id": "msg_0003",
        "parent_id": "msg_0002",
        "role": "assistant",
        "content": "t0 ",
        "parts": [],
        "status": "partial",
        "reasoning": "Hm.",
        "tool_calls": [],
        "created_at": "1970-01-01T00:00:01Z",
        "run_id": "run_0001",
        "model": "fast",
        "answered_by": "up/m",
        "usage": {"input_tokens": 7, "output_tokens": 2, "source": "provider"},
        "outcome": {"type": "stopped", "reason": "user"},
        "continues": None,
        "siblings": [],
    }
    assert notice == {
        "kind": "notice",
        "id": "not_0004",
        "code": "stopped",
        "text": "Stopped by you.",
        "run_id": "run_0001",
        "created_at": "1970-01-01T00:00:01Z",
    }


def test_results_are_shown_with_their_calls() -> None:
    talk = Talk()
    picture = ToolResult("c2", "see", images=("https://example.com/b.png",), state="failed")
    turn = [*call(0, "c1"), *call(1, "c2", "find"), *ran("c1"), ToolRunStarted("c2"), picture]
    talk.answer(talk.say("Hi"), [*ASKED, *turn, AttemptStarted("up", "m", 1), TextDelta("Done.")])
    question, first, second = items(talk.transcript())
    arguments = '{"at":1}'
    assert first["tool_calls"] == [
        {"id": "c1", "name": "look", "arguments": arguments, "state": "done", "result": "found"},
        {
            "id": "c2",
            "name": "find",
            "arguments": arguments,
            "state": "failed",
            "result": "see",
            "parts": [{"type": "image", "url": "https://example.com/b.png"}],
        },
    ]
    assert (first["parent_id"], second["parent_id"]) == (question["id"], first["id"])


@pytest.mark.parametrize(
    ("events", "outcome", "state"),
    [
        ([], Completed("tool_calls"), "asked"),
        ([], Stopped("user"), "dropped"),
        ([ToolRunStarted("c1")], Interrupted("crash"), "unknown"),
    ],
)
def test_a_call_without_a_result_says_what_is_known_of_it(events: list[Event], outcome: Any, state: str) -> None:
    """C26, C51."""
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED, *call(0, "c1"), *events], outcome)
    assert [found["state"] for found in items(talk.transcript())[1]["tool_calls"]] == [state]


def test_calls_of_another_run_or_under_another_notice_are_not_taken_for_dropped() -> None:
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED, *call(0, "c1")], Stopped("user"))
    run = talk.say("And?")
    talk.answer(run, [*ASKED, *call(0, "c1")], Completed("tool_calls"))
    answer = talk.messages[-1].id
    other = SessionNotice(
        id="n", code="other", text="…", created_at=0.0, after_id=answer, run_id=run.id, tools=("look",)
    )
    talk.notices.append(other)
    first, second = [item["tool_calls"][0] for item in items(talk.transcript()) if item.get("tool_calls")]
    assert (first["state"], second["state"]) == ("dropped", "asked")


def test_a_result_that_a_client_brings_is_shown_with_its_call_and_one_of_no_call_by_itself() -> None:
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED, *call(0, "c1")], Completed("tool_calls"))
    run = talk.say(ToolOutput("c1", (Text("found"),)), ToolOutput("c9", (Text("what?"),)))
    talk.answer(run, [*ASKED, TextDelta("Done.")])
    question, first, orphan, last = items(talk.transcript())
    assert first["tool_calls"][0]["result"] == "found"
    assert (orphan["role"], orphan["content"], orphan["parent_id"]) == ("tool", "what?", first["id"])
    assert last["parent_id"] == orphan["id"]
    assert question["role"] == "user"


def test_instructions_in_the_midst_are_shown_as_such() -> None:
    talk = Talk()
    talk.say("Hi", System((Text("Be brief."),)))
    assert [item["role"] for item in items(talk.transcript())] == ["user", "system"]


def test_branches_are_named_at_the_place_where_they_part() -> None:
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED, TextDelta("one")])
    question, one = (message.id for message in talk.messages)
    talk.answer(talk.say(under=question), [*ASKED, TextDelta("two")])
    two = talk.messages[-1].id
    shown = items(talk.transcript())
    assert [item["content"] for item in shown] == ["Hi", "two"]
    assert [item["siblings"] for item in shown] == [[], [one, two]]
    assert [item["content"] for item in items(talk.transcript(), one)] == ["Hi", "one"]


def test_the_newest_end_of_a_branch_is_found() -> None:
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED, *call(0, "c1"), *call(1, "c2"), *ran("c1"), *ran("c2")])
    question, turn, _, second = (message.id for message in talk.messages)
    talk.say("And?")
    assert newest_under(talk.messages, question) == talk.messages[-1].id
    assert with_results(talk.messages, turn) == second
    assert with_results(talk.messages, question) == question


def test_a_notice_alone_is_shown_until_its_message_is_answered() -> None:
    """C44."""
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED], Failed("refused", "No."))
    question = talk.messages[0].id
    assert [item["kind"] for item in items(talk.transcript())] == ["message", "notice"]
    talk.say("And?")
    assert [item["kind"] for item in items(talk.transcript())] == ["message", "notice", "message"]
    talk.answer(talk.say(under=question), [*ASKED, TextDelta("one")])
    assert [item["kind"] for item in items(talk.transcript())] == ["message", "message"]


@pytest.mark.parametrize("events", [[TextDelta("t0 ")], [*call(0, "c1"), *ran("c1")]], ids=["text", "tools"])
def test_a_notice_about_an_answer_stays_behind_it_whatever_follows(events: list[Event]) -> None:
    """C45."""
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED, *events], Stopped("user"))
    talk.answer(talk.say(), [*ASKED, TextDelta("one")])
    assert [item["kind"] for item in items(talk.transcript())] == ["message", "message", "notice", "message"]


def test_a_notice_stays_between_a_partial_and_what_goes_on_from_it() -> None:
    """C27, C45."""
    talk = Talk()
    talk.answer(talk.say("Hi"), [*ASKED, *call(0, "c1"), *ran("c1")], Stopped("user"))
    talk.answer(talk.say(continues="run_0001"), [*ASKED, TextDelta("on.")])
    shown = items(talk.transcript())
    assert [item["kind"] for item in shown] == ["message", "message", "notice", "message"]
    assert shown[-1]["continues"] == talk.messages[2].id


def test_what_only_a_dialect_knows_is_named() -> None:
    talk = Talk()
    document = Opaque("messages", {"type": "document", "source": {}})
    cited = ProviderState("messages", {"type": "headwater.citations", "citations": []})
    search = ProviderState("messages", {"type": "server_tool_use", "id": "s"})
    talk.answer(talk.say(User((document,))), [*ASKED, search, TextDelta("one"), cited])
    assert [item["parts"] for item in items(talk.transcript())] == [
        [{"type": "other", "name": "document"}],
        [{"type": "other", "name": "server_tool_use"}],
    ]


# ---------------------------------------------------------------------- export


def told() -> Talk:
    talk = Talk()
    image = "data:image/png;base64,iVBORw0KGgo="
    run = talk.say(User((Text("Hi"), Image(image), Image("blob:ab12"), Image("https://example.com/a.png"))))
    thought = "Is `x`?</details> <summary>"
    turn = [ReasoningDelta(thought), TextDelta("Let me see."), *call(0, "c1"), *ran("c1", "```\ncode\n```")]
    talk.answer(run, [*ASKED, *turn, AttemptStarted("up", "m", 1), TextDelta("Done.")], Incomplete("length"))
    talk.answer(talk.say("And?"), [*ASKED, TextDelta("t0 "), *call(0, "c2", arguments="")[:1]], Stopped("user"))
    talk.say(User((Opaque("messages", {"type": "document"}),)))
    return talk


def test_markdown_reads_like_the_conversation() -> None:
    transcript = told().transcript(title="Rivers", parameters=SessionParameters(system="Be brief."))
    assert (
        to_markdown(transcript)
        == """\
# Rivers

*1970-01-01 00:00 UTC*

## System

Be brief.

## You

Hi

*(An image: image/png)*

![Image](blob:ab12)

![Image](https://example.com/a.png)

## Assistant (fast)

<details>
<summary>Reasoning</summary>

Is `x`?&lt;/details> &lt;summary>

</details>

Let me see.

**Tool call** `look` (done)

```json
{"at":1}
```

````
```
code
```
````

## Assistant (fast)

Done.

> This answer was cut at its limit of tokens.

## You

And?

## Assistant (fast)

t0 \n\n**Tool call** `look` (dropped)

> The answer ended early. These tool calls were not run: look.

> Stopped by you.

## You

*(document)*
"""
    )


def test_markdown_of_an_answer_of_nobody_knows_whom() -> None:
    talk = Talk()
    talk.answer(talk.say("Hi", model=""), [*ASKED, TextDelta("one")])
    assert "\n## Assistant\n" in to_markdown(talk.transcript())
    assert to_markdown(Talk().transcript()).startswith("# New conversation\n")


def test_json_has_every_branch_and_can_be_read_back() -> None:
    talk = told()
    talk.answer(talk.say("Hello", under=None), [*ASKED, TextDelta("two")])
    transcript = talk.transcript(title="Rivers")
    exported = from_json(to_json(transcript))
    assert (exported.session, exported.messages, exported.notices) == (
        transcript.session,
        transcript.messages,
        transcript.notices,
    )
    plain = msgspec.json.decode(to_json(transcript))
    assert (plain["format"], plain["version"]) == ("headwater.session", 1)


def test_json_of_another_format_is_refused() -> None:
    other = to_json(Talk().transcript()).replace(b'"version": 1', b'"version": 2')
    with pytest.raises(msgspec.ValidationError):
        from_json(other)
