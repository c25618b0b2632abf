"""Sessions: a tree with a head, forked, searched, compared, deleted without a trace."""

import hashlib

import pytest
from msgspec.structs import replace

from headwater.conversation import Parameters, Request
from headwater.records import Blob, Group, IdempotencyKey, Key, RunBody, SessionNotice, SessionParameters, path_to
from headwater.store.results import (
    Adopted,
    Busy,
    Changed,
    GroupList,
    KeyMismatch,
    Missing,
    Page,
    Queued,
    Replayed,
    SessionChange,
    Start,
)
from headwater.testing.store_suite.making import (
    OWNER,
    Backend,
    a_notice,
    a_run,
    a_session,
    answered,
    ended_well,
    kept,
    new_id,
    said,
    started,
    tail,
    tokens,
)


class SessionsTests:
    async def test_one_is_made_once_and_seen_by_its_owner_alone(self, backend: Backend) -> None:
        store = await backend.worker()
        session = a_session(title="Rivers")
        assert await store.create_session(session)
        assert not await store.create_session(replace(session, title="Lakes"))
        assert await store.session(OWNER, session.id) == session
        assert await store.session("bob", session.id) is None
        assert await store.transcript("bob", session.id) is None

    async def test_a_run_may_bring_a_title_for_a_session_that_has_none(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"),), title="Rivers")
        await ended_well(store, first.run.id, tail=tail(first.run.id, 0))
        await started(store, session_id="s", messages=(said("two"),), title="Lakes")
        await started(store, session_id="t")
        titles = [await store.session(OWNER, session_id) for session_id in ("s", "t")]
        assert [session and session.title for session in titles] == ["Rivers", None]

    async def test_the_list_has_the_latest_first(self, backend: Backend) -> None:
        store = await backend.worker()
        made = [a_session(updated_at=float(n)) for n in range(4)]
        for session in [*made, a_session(owner="bob"), a_session(hidden=True)]:
            await store.create_session(session)
        page = await store.sessions(OWNER, Page(3))
        assert page.sessions == tuple(made[:0:-1])
        assert await store.sessions(OWNER, Page(3, page.next)) == replace(page, sessions=(made[0],), next=None)

    async def test_only_what_is_named_is_changed(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"), said("two")))
        one, two = first.messages
        parameters = SessionParameters(system="Be brief.", request=Parameters(temperature=0.5))
        await store.change_session(OWNER, "s", SessionChange(title="Rivers", parameters=parameters))
        changed = await store.change_session(OWNER, "s", SessionChange(read_id=two.id, head_id=one.id))
        assert await store.session(OWNER, "s") == changed
        assert not isinstance(changed, Missing)
        assert (changed.title, changed.parameters) == ("Rivers", parameters)
        assert (changed.read_id, changed.head_id) == (two.id, one.id)

    async def test_a_change_to_what_is_not_there_is_refused(self, backend: Backend) -> None:
        store = await backend.worker()
        await started(store, session_id="s", messages=(said("one"),))
        assert await store.change_session("bob", "s", SessionChange(title="x")) == Missing("session")
        assert await store.change_session(OWNER, "s", SessionChange(title="x", head_id="msg_no")) == Missing("message")
        session = await store.session(OWNER, "s")
        assert session is not None
        assert session.title is None

    async def test_a_fork_has_copies_of_one_branch_and_goes_its_own_way(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"),), model="fast")
        answer = answered("yes")
        dropped = SessionNotice(id="not_1", code="tool_call_dropped", text="Not run.", created_at=1.0, for_model=True)
        await ended_well(store, first.run.id, messages=(answer,), notices=(dropped,))
        await started(store, session_id="s", messages=(said("two"),))
        await store.change_session(OWNER, "s", SessionChange(title="Rivers"))
        fork = await store.fork(OWNER, "s", answer.id, "t")
        assert not isinstance(fork, Missing)
        assert (fork.title, fork.forked_from) == ("Rivers", "s")
        transcript = await store.transcript(OWNER, "t")
        assert transcript is not None
        path = path_to(transcript.messages, fork.head_id)
        assert [message.message for message in path] == [first.messages[0].message, answer.message]
        assert not {message.id for message in path} & {first.messages[0].id, answer.id}
        [notice] = transcript.notices
        assert (notice.after_id, notice.for_model) == (fork.head_id, True)
        assert notice.id != "not_1"
        assert (await started(store, session_id="t", messages=(said("three"),))).messages[0].parent_id == fork.head_id

    async def test_a_fork_of_what_is_not_there_is_refused(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"),))
        assert await store.fork("bob", "s", first.messages[0].id, "t") == Missing("session")
        assert await store.fork(OWNER, "s", "msg_none", "t") == Missing("message")

    async def test_their_owner_is_told_of_changes(self, backend: Backend) -> None:
        store = await backend.worker()
        told: list[Changed] = []
        unwatch = store.watch_owner(OWNER, told.append)
        store.watch_owner("bob", lambda _: told.clear())
        run = (await started(store, session_id="s")).run
        assert told == [Changed("session", "s"), Changed("run", run.id)]
        await kept(store, tokens(run.id, 0))
        assert len(told) == 2
        unwatch()


class DeletingTests:
    async def test_nothing_of_a_deleted_session_is_left(self, backend: Backend) -> None:
        """Also not in logs and search."""
        store = await backend.worker()
        run = (await started(store, session_id="s", messages=(said("unmistakable"),))).run
        await kept(store, tokens(run.id, 0))
        waiting = await store.start(Start(run=a_run(session_id="s"), messages=(said("later"),), multitask="queue"))
        assert isinstance(waiting, Queued)
        assert await store.delete_session(OWNER, "s") == Busy(run)
        await ended_well(
            store, run.id, tail=tail(run.id, 1), messages=(answered("x"),), notices=(a_notice(),), take_next=False
        )
        assert len(await store.search(OWNER, "unmistakable")) == 1
        assert await store.delete_session("bob", "s") == Missing("session")
        assert await store.delete_session(OWNER, "s") is None
        assert await store.session(OWNER, "s") is None
        assert await store.search(OWNER, "unmistakable") == ()
        for run_id in (run.id, waiting.run.id):
            assert (await store.run(None, run_id), await store.read(None, run_id)) == (None, None)
        assert await store.ready() == ()
        # One of the same name begins anew.
        first = await started(store, session_id="s", messages=(said("again"),))
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert (transcript.messages, transcript.notices, transcript.queue) == (first.messages, (), ())


class SearchTests:
    async def test_messages_that_have_all_the_words_are_found(self, backend: Backend) -> None:
        store = await backend.worker()
        await store.create_session(a_session(id="s", title="Trips"))
        first = await started(store, session_id="s", messages=(said("The Rhine is a long river."),))
        await ended_well(store, first.run.id, messages=(answered("So is the Danube, a river."),))
        assert {hit.message_id for hit in await store.search(OWNER, "river")} >= {first.messages[0].id}
        assert len(await store.search(OWNER, "river")) == 2
        assert len(await store.search(OWNER, "river", limit=1)) == 1
        (hit,) = await store.search(OWNER, "RIVER rhi")
        assert (hit.session_id, hit.message_id, hit.title) == ("s", first.messages[0].id, "Trips")
        assert "Rhine" in hit.snippet
        assert await store.search(OWNER, "rhine danube") == ()
        assert await store.search("bob", "river") == ()

    @pytest.mark.parametrize("words", ["", " ", '"', "AND", "a*b OR (", "-x", "col:y", "'; DROP"])
    async def test_no_query_is_an_error(self, backend: Backend, words: str) -> None:
        store = await backend.worker()
        await started(store, session_id="s", messages=(said("something"),))
        assert await store.search(OWNER, words) == ()


class QueueEditingTests:
    async def test_it_can_be_put_into_another_order_and_said_in_other_words(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s")
        queued = [a_run(session_id="s") for _ in range(3)]
        for n, run in enumerate(queued):
            await store.start(Start(run=run, messages=(said(run.id),), multitask="queue", echo={"n": n}))
        order = [queued[2].id, queued[0].id]
        entries = await store.reorder_queue(OWNER, "s", order)
        assert not isinstance(entries, Missing)
        assert [entry.run.id for entry in entries] == [*order, queued[1].id]
        better = said("better")
        request = Request((better.message,))
        entry = await store.edit_queued(OWNER, queued[2].id, (better,), request)
        assert not isinstance(entry, Missing)
        # What the model is asked changes with it.
        assert await store.body(OWNER, queued[2].id) == RunBody(request, echo={"n": 2})
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert transcript.queue == (entry, *entries[1:])
        result = await ended_well(store, first.run.id)
        assert result.next is not None
        assert [message.id for message in result.next.messages] == [better.id]

    async def test_what_is_not_queued_or_anothers_can_not_be_edited(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store, session_id="s")).run
        for owner in (OWNER, "bob"):
            assert await store.edit_queued(owner, run.id, (), Request(())) == Missing("run")
        assert await store.reorder_queue("bob", "s", []) == Missing("session")
        assert await store.resume_queue("bob", "s") == Missing("session")
        assert await store.resume_queue(OWNER, "s") is None

    async def test_an_order_that_names_one_that_does_not_wait_changes_nothing(self, backend: Backend) -> None:
        store = await backend.worker()
        active = (await started(store, session_id="s")).run
        queued = [a_run(session_id="s") for _ in range(2)]
        for run in queued:
            await store.start(Start(run=run, multitask="queue"))
        for unknown in (active.id, "run_none"):
            assert await store.reorder_queue(OWNER, "s", [queued[1].id, unknown]) == Missing("run")
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert [entry.run.id for entry in transcript.queue] == [run.id for run in queued]


class GroupsTests:
    async def test_a_key_makes_one_of_them_and_nothing_else(self, backend: Backend) -> None:
        store = await backend.worker()
        key, pane = IdempotencyKey("k", "digest"), a_session()
        group = Group(id="grp_1", owner=OWNER, created_at=1.0, session_ids=(pane.id,))
        assert await store.create_group(group, (pane,), key) is None
        again = replace(group, id="grp_2", session_ids=("other",))
        assert await store.create_group(again, (a_session(id="other"),), key) == Replayed("grp_1")
        assert await store.create_group(again, (), replace(key, digest="x")) == KeyMismatch("grp_1")
        assert await store.start(Start(run=a_run(), idempotency=replace(key, digest="x"))) == KeyMismatch("grp_1")
        assert (await store.group(OWNER, "grp_2"), await store.session(OWNER, "other")) == (None, None)
        # What it meant, it means still.
        assert await store.delete_group(OWNER, "grp_1") is None
        assert await store.create_group(again, (), key) == Replayed("grp_1")

    async def test_panes_are_hidden_until_one_is_picked(self, backend: Backend) -> None:
        """C80."""
        store = await backend.worker()
        panes = tuple(a_session(id=new_id("ses")) for _ in range(3))
        ids = tuple(pane.id for pane in panes)
        group = Group(id="grp_1", owner=OWNER, created_at=1.0, session_ids=ids)
        await store.create_group(group, panes)
        assert await store.group(OWNER, "grp_1") == group
        assert await store.group("bob", "grp_1") is None
        runs = [(await started(store, session_id=pane.id, messages=(said("hidden words"),))).run for pane in panes]
        assert (await store.sessions(OWNER)).sessions == ()
        assert await store.search(OWNER, "hidden") == ()
        picked = await store.pick(OWNER, "grp_1", ids[1])
        assert picked == replace(group, picked_id=ids[1])
        assert [session.id for session in (await store.sessions(OWNER)).sessions] == [ids[1]]
        assert len(await store.search(OWNER, "hidden")) == 1
        await store.pick(OWNER, "grp_1", ids[2])
        assert [session.id for session in (await store.sessions(OWNER)).sessions] == [ids[2]]
        await ended_well(store, runs[0].id)
        await store.delete_session(OWNER, ids[0])
        assert not isinstance(await store.pick(OWNER, "grp_1", ids[1]), Missing)

    async def test_they_are_listed_newest_first_page_by_page(self, backend: Backend) -> None:
        store = await backend.worker()
        for n in (2, 0, 1):
            panes = tuple(a_session(id=f"{n}{at}") for at in "ba")
            ids = tuple(pane.id for pane in panes)
            await store.create_group(Group(id=f"grp_{2 - n}", owner=OWNER, created_at=n / 7, session_ids=ids), panes)
        assert await store.groups("bob") == GroupList((), None)
        first = await store.groups(OWNER, Page(2))
        assert [compared.group.id for compared in first.groups] == ["grp_0", "grp_1"]
        assert [pane.id for pane in first.groups[0].sessions] == ["2b", "2a"]
        await store.delete_session(OWNER, "0b")
        rest = await store.groups(OWNER, Page(2, first.next))
        assert [compared.group.id for compared in rest.groups] == ["grp_2"]
        assert [pane.id for pane in rest.groups[0].sessions] == ["0a"]
        assert rest.next is None

    async def test_one_is_deleted_with_its_panes_but_for_the_one_that_was_picked(self, backend: Backend) -> None:
        store = await backend.worker()
        panes = tuple(a_session(id=id) for id in "abc")
        await store.create_group(Group(id="g", owner=OWNER, created_at=1.0, session_ids=("c", "a", "b")), panes)
        running = await started(store, session_id="a")
        picked = await started(store, session_id="b")
        await store.pick(OWNER, "g", "b")
        await store.delete_session(OWNER, "c")
        assert await store.delete_group("bob", "g") == Missing("group")
        assert await store.delete_group(OWNER, "g") == Busy(running.run)
        assert await store.session(OWNER, "a") is not None
        await ended_well(store, running.run.id)
        told: list[Changed] = []
        unwatch = store.watch_owner(OWNER, told.append)
        assert await store.delete_group(OWNER, "g") is None
        unwatch()
        assert Changed("group", "g") in told
        assert (await store.group(OWNER, "g"), await store.session(OWNER, "a")) == (None, None)
        kept_one = await store.session(OWNER, "b")
        assert kept_one is not None
        assert (kept_one.group_id, kept_one.hidden) == (None, False)
        assert await store.run(OWNER, picked.run.id) is not None
        assert await store.delete_group(OWNER, "g") == Missing("group")

    async def test_what_is_not_there_can_not_be_picked(self, backend: Backend) -> None:
        store = await backend.worker()
        await store.create_group(
            Group(id="grp_1", owner=OWNER, created_at=1.0, session_ids=("s",)), (a_session(id="s"),)
        )
        assert await store.pick("bob", "grp_1", "s") == Missing("group")
        assert await store.pick(OWNER, "grp_1", "t") == Missing("session")


def a_blob(data: bytes) -> Blob:
    return Blob(hashlib.sha256(data).hexdigest(), "image/png", data)


class BlobsTests:
    async def test_one_is_there_for_whoever_brought_it(self, backend: Backend) -> None:
        store = await backend.worker()
        blob = a_blob(b"picture")
        await store.put_blob(OWNER, blob)
        await store.put_blob(OWNER, blob)
        assert await store.blob(OWNER, blob.hash) == blob
        assert await store.blob("bob", blob.hash) is None
        await store.put_blob("bob", blob)
        assert await store.blob("bob", blob.hash) == blob

    async def test_it_goes_when_no_message_has_shown_it_for_a_day(self, backend: Backend) -> None:
        store = await backend.worker()
        shown, queued, unused = (a_blob(data) for data in (b"shown", b"queued", b"unused"))
        for blob in (shown, queued, unused):
            await store.put_blob(OWNER, blob)
        await store.put_blob("bob", shown)
        first = await started(store, session_id="s", messages=(said("look", blobs=(shown.hash,)),))
        later = Start(run=a_run(session_id="s"), messages=(said("this", blobs=(queued.hash,)),), multitask="queue")
        await store.start(later)
        await store.tidy(1e9)
        assert await store.blob(OWNER, unused.hash) == unused
        await backend.clock.advance(86_401)
        await store.tidy(1e9)
        assert [await store.blob(OWNER, blob.hash) for blob in (shown, queued, unused)] == [shown, queued, None]
        assert await store.blob("bob", shown.hash) is None
        await ended_well(store, first.run.id, take_next=False)
        await store.delete_session(OWNER, "s")
        await store.tidy(1e9)
        assert await store.blob(OWNER, shown.hash) is None


def a_key(owner: str, hash: str) -> Key:
    return Key(id=new_id("key"), owner=owner, hash=hash, created_at=1.0, scopes=("chat", "admin"))


class KeysTests:
    async def test_a_key_is_found_by_its_hash_and_can_be_revoked(self, backend: Backend) -> None:
        store = await backend.worker()
        mine, bobs = a_key(OWNER, "h1"), a_key("bob", "h2")
        await store.put_key(mine)
        await store.put_key(bobs)
        assert await store.key("h1") == mine
        assert await store.key("h3") is None
        assert (await store.keys(OWNER), len(await store.keys())) == ((mine,), 2)
        await store.put_key(replace(mine, revoked_at=5.0))
        found = await store.key("h1")
        assert found is not None
        assert found.revoked_at == 5.0

    async def test_what_was_made_before_there_were_keys_can_be_adopted(self, backend: Backend) -> None:
        store = await backend.worker()
        blob = a_blob(b"picture")
        await store.put_blob("local", blob)
        await store.put_blob("bob", blob)
        drawn = a_blob(b"drawn")
        await store.put_blob("local", drawn)
        pane = a_session(owner="local")
        await store.create_group(Group(id="grp_1", owner="local", created_at=1.0, session_ids=(pane.id,)), (pane,))
        first = await started(store, session_id="s", owner="local", messages=(said("rivers"),))
        await store.start(Start(run=a_run(session_id="s", owner="local"), multitask="queue"))
        shown = replace(said("and this"), blobs=(drawn.hash,))
        clash = await started(store, session_id="t", owner="local", messages=(shown,))
        await started(store, session_id="t")
        alone = await started(store, owner="local")
        # One whose id its new owner has already is another one, and stays with all that it shows.
        assert await store.adopt(OWNER, of="local") == Adopted(2, left=("t",))
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert transcript.active is not None
        assert (transcript.active.id, transcript.active.owner, len(transcript.queue)) == (first.run.id, OWNER, 1)
        assert transcript.queue[0].run.owner == OWNER
        assert await store.session("local", "s") is None
        assert len(await store.search(OWNER, "rivers")) == 1
        assert (await store.group(OWNER, "grp_1"), await store.blob(OWNER, blob.hash)) != (None, None)
        assert await store.run(OWNER, alone.run.id) is not None
        assert await store.run("local", clash.run.id) == clash.run
        assert (await store.blob("local", drawn.hash), await store.blob(OWNER, drawn.hash)) == (drawn, drawn)

    async def test_all_that_was_somebodys_is_nobodys_but_the_new_owners(self, backend: Backend) -> None:
        store = await backend.worker()
        blob = a_blob(b"picture")
        await store.put_blob("local", blob)
        await started(store, session_id="s", owner="local")
        assert await store.adopt("local", of="local") == Adopted(0)
        assert await store.blob("local", blob.hash) == blob
        assert await store.adopt(OWNER, of="local") == Adopted(1)
        assert (await store.blob("local", blob.hash), await store.blob(OWNER, blob.hash)) == (None, blob)
        assert await store.adopt(OWNER, of="local") == Adopted(0)
