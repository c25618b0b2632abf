"""What is done with a session, over a store."""

import random
from collections.abc import AsyncIterator, Callable

import pytest
from msgspec.structs import replace

from headwater.conversation import Assistant, Image, Message, Parameters, Request, System, Text, ToolOutput, User
from headwater.errors import CallerError
from headwater.events import AttemptStarted, Completed, Event, Incomplete, Outcome, Stopped, TextDelta
from headwater.records import AtHead, Blob, QueueEntry, Run, Session, Under
from headwater.sessions.context import Context
from headwater.sessions.export import from_json
from headwater.sessions.leavings import left
from headwater.sessions.sessions import Export, Sessions
from headwater.sessions.view import AnswerItem, MessageItem, View
from headwater.store.base import Store
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.store.results import Ending, EndStands, Missing, Queued, SessionChange, Start, Started
from headwater.testing.clock import ManualClock
from tests.sessions.talks import call, folded, ids, ran

pytestmark = pytest.mark.anyio

ASKED: list[Event] = [AttemptStarted("up", "m")]
NOTHING = Request(())


def user(text: str) -> User:
    return User((Text(text),))


class Desk:
    """A worker, and the short way to talk."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.make_id: Callable[[str], str] = ids()
        self.sessions = Sessions(store, ManualClock(), self.make_id)

    def run(self, session_id: str | None = "s") -> Run:
        return Run(id=self.make_id("run"), owner="ann", model="fast", created_at=0.0, session_id=session_id)

    async def start(self, start: Start | Missing) -> Started:
        assert isinstance(start, Start)
        started = await self.store.start(start)
        assert isinstance(started, Started)
        return started

    async def say(self, *messages: Message) -> Started:
        return await self.start(self.sessions.said(self.run(), Request(messages), create_session=True))

    async def queue(self, request: Request) -> QueueEntry:
        """Behind what runs, or is begun for it to wait for."""
        for _ in range(2):
            start = self.sessions.said(self.run(), request, create_session=True)
            result = await self.store.start(replace(start, multitask="queue"))
        assert isinstance(result, Queued)
        transcript = await self.store.transcript("ann", "s")
        assert transcript is not None
        return transcript.queue[-1]

    async def end(self, run: Run, *events: Event, outcome: Outcome = Completed()) -> Run:
        kept = left(run, folded([*ASKED, *events]), outcome, now=1.0, make_id=self.make_id)
        ending = Ending(run_id=run.id, outcome=outcome, messages=kept.messages, notices=kept.notices)
        result = await self.store.end(ending)
        assert isinstance(result, EndStands)
        return result.run

    async def talk(self, text: str, *events: Event, outcome: Outcome = Completed()) -> Run:
        return await self.end((await self.say(user(text))).run, *events, outcome=outcome)

    async def told(self, run: Run, request: Request = NOTHING) -> list[str]:
        built = await self.sessions.context(run, request)
        assert isinstance(built, Context)
        return [part.text for message in built.request.messages for part in message.parts if isinstance(part, Text)]

    async def shown(self) -> list[MessageItem]:
        found = await self.sessions.view("ann", "s")
        assert isinstance(found, View)
        return [item for item in found.items if isinstance(item, MessageItem)]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    store = await open_memory(MemoryDatabase(), address="here", clock=ManualClock(), entropy=random.Random(1).randbytes)
    yield Desk(store)
    await store.close()


async def test_what_is_said_goes_to_the_head_and_the_model_is_told_all_of_it(desk: Desk) -> None:
    """C63."""
    await desk.talk("Hi", TextDelta("one"))
    request = Request((user("And?"),))
    started = await desk.start(desk.sessions.said(desk.run(), request))
    assert await desk.told(started.run, request) == ["Hi", "one", "And?"]


async def test_of_a_body_that_keeps_the_history_only_the_new_is_added(desk: Desk) -> None:
    """C63."""
    await desk.talk("Hi", TextDelta("one"))
    request = Request((user("x"), Assistant((Text("y"),)), user("And?")))
    started = await desk.start(desk.sessions.said(desk.run(), request))
    assert await desk.told(started.run, request) == ["x", "y", "And?"]
    assert [item.content for item in await desk.shown()] == ["Hi", "one", "And?"]


async def test_a_session_is_made_only_for_who_may_name_it(desk: Desk) -> None:
    """C63."""
    start = desk.sessions.said(desk.run("new"), Request((user("Hi"),)))
    assert start.place == AtHead()
    assert await desk.store.start(start) == Missing("session")


async def test_an_edit_is_a_branch_beside_the_old_one(desk: Desk) -> None:
    await desk.talk("Hi", TextDelta("one"))
    await desk.talk("And?", TextDelta("two"))
    second = (await desk.shown())[2]
    started = await desk.start(await desk.sessions.edited(desk.run(), Request((user("Or?"),)), second.id))
    assert await desk.told(started.run) == ["Hi", "one", "Or?"]
    await desk.end(started.run, TextDelta("three"))
    shown = await desk.shown()
    assert [item.content for item in shown] == ["Hi", "one", "Or?", "three"]
    assert shown[2].siblings == (second.id, shown[2].id)


async def test_the_first_message_can_be_edited_too(desk: Desk) -> None:
    await desk.talk("Hi", TextDelta("one"))
    first = (await desk.shown())[0]
    start = await desk.sessions.edited(desk.run(), Request((user("Hello"),)), first.id)
    assert isinstance(start, Start)
    assert start.place == Under(None)


async def test_an_answer_can_not_be_edited(desk: Desk) -> None:
    await desk.talk("Hi", TextDelta("one"))
    answer = (await desk.shown())[1]
    with pytest.raises(CallerError) as raised:
        await desk.sessions.edited(desk.run(), Request((user("x"),)), answer.id)
    assert (raised.value.status, raised.value.code) == (409, "not_editable")


async def test_an_answer_of_several_turns_is_given_again_from_its_beginning(desk: Desk) -> None:
    await desk.talk("Hi", *call(0, "c1"), *ran("c1"), AttemptStarted("up", "m", 1), TextDelta("one"))
    _, first, last = await desk.shown()
    for message_id in (first.id, last.id):
        start = await desk.sessions.regenerated(desk.run(), NOTHING, message_id)
        assert isinstance(start, Start)
        assert start.place == Under(first.parent_id)
        assert start.messages == ()
    started = await desk.start(start)
    assert await desk.told(started.run) == ["Hi"]
    await desk.end(started.run, TextDelta("two"))
    assert [item.content for item in await desk.shown()] == ["Hi", "two"]
    await desk.sessions.change("ann", "s", SessionChange(head_id=first.id))
    assert [item.content for item in await desk.shown()] == ["Hi", "", "one"]


async def test_a_message_is_answered_again(desk: Desk) -> None:
    """C44: nothing of the first answer was kept."""
    await desk.talk("Hi", outcome=Stopped("user"))
    (question,) = await desk.shown()
    start = await desk.sessions.regenerated(desk.run(), NOTHING, question.id)
    assert isinstance(start, Start)
    assert start.place == Under(question.id)


async def test_a_result_that_a_client_brought_is_answered_again_not_the_call(desk: Desk) -> None:
    await desk.talk("Hi", *call(0, "c1"), outcome=Completed("tool_calls"))
    started = await desk.say(ToolOutput("c1", (Text("found"),)))
    await desk.end(started.run, TextDelta("one"))
    answer = (await desk.shown())[-1]
    brought = started.messages[0].id
    for message_id in (answer.id, brought):
        start = await desk.sessions.regenerated(desk.run(), NOTHING, message_id)
        assert isinstance(start, Start)
        assert start.place == Under(brought)


async def test_what_waits_is_asked_in_other_words_behind_what_came_before_them(desk: Desk) -> None:
    first, new = user("Old"), user("New")
    parameters = Parameters(seed=7)
    cases: list[tuple[list[Message], list[int]]] = [
        ([user("1")], []),
        ([System((Text("S"),)), first, Assistant((Text("Yes"),)), user("1")], [0, 1, 2]),
        ([first, Assistant((Text("Yes"),)), user("1"), System((Text("S"),))], [0, 1, 3]),
    ]
    for before, kept in cases:
        waiting = await desk.queue(Request(tuple(before), parameters=parameters))
        asked = await desk.sessions.reworded(waiting, new)
        assert asked == Request((*(before[n] for n in kept), new), parameters=parameters)


async def test_only_words_that_wait_can_be_others(desk: Desk) -> None:
    results = Request((ToolOutput("c1", (Text("found"),)), user("1")))
    # Of several it would become one, to which the session's history is told as well (C63).
    several = Request((user("1"), user("2")))
    for request in (NOTHING, results, several):
        with pytest.raises(CallerError) as raised:
            await desk.sessions.reworded(await desk.queue(request), user("New"))
        assert (raised.value.status, raised.value.code) == (409, "not_editable")
    gone = replace(await desk.queue(Request((user("1"),))), run=desk.run())
    assert await desk.sessions.reworded(gone, user("New")) == Missing("run")


async def test_a_cut_answer_is_gone_on_with_in_a_new_message(desk: Desk) -> None:
    """C27."""
    cut = await desk.talk("Hi", TextDelta("t0 "), outcome=Incomplete("length"))
    started = await desk.start(await desk.sessions.gone_on_with(desk.run(), NOTHING, cut))
    built = await desk.sessions.context(started.run, NOTHING)
    assert isinstance(built, Context)
    assert built.goes_on == Assistant((Text("t0 "),), origin="up")
    await desk.end(started.run, TextDelta("t1"))
    _, partial, rest = await desk.shown()
    assert isinstance(rest, AnswerItem)
    assert (partial.content, rest.content, rest.continues) == ("t0 ", "t1", partial.id)
    again = await desk.sessions.regenerated(desk.run(), NOTHING, rest.id)
    assert isinstance(again, Start)
    assert (again.place, again.run.continues) == (Under(partial.id), cut.id)


async def test_an_answer_is_gone_on_with_where_it_was_cut_also_later(desk: Desk) -> None:
    cut = await desk.talk("Hi", TextDelta("t0 "), outcome=Stopped("user"))
    await desk.talk("And?", TextDelta("one"))
    start = await desk.sessions.gone_on_with(desk.run(), NOTHING, cut)
    assert isinstance(start, Start)
    assert start.place == Under((await desk.shown())[1].id)


async def test_a_cut_answer_is_gone_on_with_in_a_fork(desk: Desk) -> None:
    cut = await desk.talk("Hi", TextDelta("t0 "), outcome=Stopped("user"))
    fork = await desk.sessions.fork("ann", "s", (await desk.shown())[1].id)
    assert isinstance(fork, Session)
    start = await desk.sessions.gone_on_with(desk.run(fork.id), NOTHING, cut)
    assert isinstance(start, Start)
    assert (start.place, start.run.continues) == (Under(fork.head_id), cut.id)
    assert await desk.store.delete_session("ann", "s") is None
    known = await desk.sessions.run_of_copy("ann", fork.id, cut.id)
    assert known is not None
    assert (known.id, known.model, known.outcome) == (cut.id, cut.model, cut.outcome)
    again = await desk.sessions.gone_on_with(start.run, NOTHING, known)
    assert again == start
    for session_id, run_id in ((fork.id, "none"), ("s", cut.id)):
        assert await desk.sessions.run_of_copy("ann", session_id, run_id) is None


async def test_a_run_cut_after_its_tools_goes_on_after_their_results(desk: Desk) -> None:
    """C27."""
    cut = await desk.talk("Hi", *call(0, "c1"), *ran("c1"), outcome=Stopped("user"))
    started = await desk.start(await desk.sessions.gone_on_with(desk.run(), NOTHING, cut))
    assert await desk.told(started.run) == ["Hi", "found"]


async def test_a_run_that_left_nothing_is_done_again(desk: Desk) -> None:
    cut = await desk.talk("Hi", outcome=Stopped("user"))
    start = await desk.sessions.gone_on_with(desk.run(), NOTHING, cut)
    assert isinstance(start, Start)
    assert (start.place, start.run.continues) == (Under(cut.parent_id), None)


async def test_only_what_was_cut_can_be_gone_on_with(desk: Desk) -> None:
    active = (await desk.say(user("Hi"))).run
    with pytest.raises(CallerError) as raised:
        await desk.sessions.gone_on_with(desk.run(), NOTHING, active)
    assert (raised.value.status, raised.value.code) == (409, "run_active")
    ended = await desk.end(active, TextDelta("one"))
    with pytest.raises(CallerError) as raised:
        await desk.sessions.gone_on_with(desk.run(), NOTHING, ended)
    assert (raised.value.status, raised.value.code) == (409, "run_complete")
    unbegun = replace(desk.run(), outcome=Stopped("user"))
    with pytest.raises(CallerError) as raised:
        await desk.sessions.gone_on_with(desk.run(), NOTHING, unbegun)
    assert (raised.value.status, raised.value.code) == (409, "run_not_begun")


async def test_a_fork_has_the_results_of_the_last_calls(desk: Desk) -> None:
    await desk.talk("Hi", *call(0, "c1"), *ran("c1"), AttemptStarted("up", "m", 1), TextDelta("one"))
    turn = (await desk.shown())[1]
    forked = await desk.sessions.fork("ann", "s", turn.id)
    assert isinstance(forked, Session)
    copied = await desk.store.transcript("ann", forked.id)
    assert copied is not None
    assert [type(message.message) for message in copied.messages] == [User, Assistant, ToolOutput]
    assert forked.forked_from == "s"


async def test_images_come_from_where_they_are_kept(desk: Desk) -> None:
    await desk.store.put_blob("ann", Blob("ab12", "image/png", b"\x89PNG"))
    started = await desk.say(User((Image("blob:ab12"), Image("blob:gone"))))
    assert started.messages[0].blobs == ("ab12", "gone")
    built = await desk.sessions.context(started.run, NOTHING)
    assert isinstance(built, Context)
    (message,) = built.request.messages
    assert message.parts[0] == Image("data:image/png;base64,iVBORw==")
    assert isinstance(message.parts[1], Text)


async def test_a_title_is_made_once_and_a_persons_own_stays(desk: Desk) -> None:
    async def title() -> str | None:
        session = await desk.store.session("ann", "s")
        assert session is not None
        return session.title

    await desk.store.create_session(Session(id="s", owner="ann", created_at=0.0, updated_at=0.0))
    assert await title() is None
    await desk.talk("What is a river?", TextDelta("one"))
    assert await title() == "What is a river?"
    await desk.talk("And what is a lake?", TextDelta("two"))
    assert await title() == "What is a river?"
    await desk.store.change_session("ann", "s", SessionChange(title="Rivers"))
    await desk.talk("And a sea?", TextDelta("three"))
    assert await title() == "Rivers"


async def test_it_can_be_taken_away(desk: Desk) -> None:
    await desk.talk("Hi", TextDelta("one"))
    markdown = await desk.sessions.export("ann", "s", "md")
    assert isinstance(markdown, Export)
    assert markdown.media_type.startswith("text/markdown")
    assert b"\none\n" in markdown.body
    json = await desk.sessions.export("ann", "s", "json")
    assert isinstance(json, Export)
    assert len(from_json(json.body).messages) == 2


async def test_what_is_not_there_is_missing(desk: Desk) -> None:
    sessions = desk.sessions
    cut = await desk.talk("Hi", TextDelta("one"), outcome=Stopped("user"))
    elsewhere, alone = desk.run("none"), desk.run(None)
    for run in (elsewhere, alone):
        assert await sessions.edited(run, NOTHING, "m") == Missing("session")
        assert await sessions.regenerated(run, NOTHING, "m") == Missing("session")
        assert await sessions.gone_on_with(run, NOTHING, cut) == Missing("session")
        assert await sessions.context(run, NOTHING) == Missing("session")
    assert await sessions.edited(desk.run(), NOTHING, "m") == Missing("message")
    assert await sessions.regenerated(desk.run(), NOTHING, "m") == Missing("message")
    for owner, session_id in (("ann", "none"), ("bob", "s")):
        assert await sessions.view(owner, session_id) == Missing("session")
        assert await sessions.export(owner, session_id, "md") == Missing("session")
        assert await sessions.change(owner, session_id, SessionChange(head_id="m")) == Missing("session")
        assert await sessions.fork(owner, session_id, "m") == Missing("session")
    assert await sessions.change("ann", "s", SessionChange(head_id="m")) == Missing("message")
    renamed = await sessions.change("ann", "s", SessionChange(title="Rivers"))
    assert isinstance(renamed, Session)
    assert renamed.title == "Rivers"
    assert await sessions.fork("ann", "s", "m") == Missing("message")
