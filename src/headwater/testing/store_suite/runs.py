"""Runs: started once, ended once."""

import pytest
from msgspec.structs import replace

from headwater.conversation import Assistant, Request, Text
from headwater.events import Completed, Stopped, Usage
from headwater.lifecycle import IllegalTransition, RunState
from headwater.records import IdempotencyKey, RunBody, SessionMessage, Under
from headwater.store.results import (
    Batch,
    Busy,
    EndLost,
    KeyMismatch,
    Missing,
    Queued,
    Replayed,
    SessionChange,
    Start,
    Started,
)
from headwater.testing.store_suite.making import (
    OWNER,
    Backend,
    a_notice,
    a_run,
    answered,
    ended,
    ended_well,
    kept,
    logged,
    said,
    started,
    tail,
    tokens,
)


class StartTests:
    async def test_a_run_of_its_own_is_running_and_this_workers(self, backend: Backend) -> None:
        store = await backend.worker()
        request = Request((), model="fast")
        result = await store.start(Start(run=a_run(), request=request))
        assert isinstance(result, Started)
        run = result.run
        assert (run.state, run.worker_id, run.parent_id) == (RunState.RUNNING, store.worker_id, None)
        assert await store.run(OWNER, run.id) == run
        assert await store.body(OWNER, run.id) == RunBody(request)
        assert await store.mine() == (run,)

    async def test_in_a_session_what_was_said_takes_its_place_behind_the_head(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"), said("two")))
        one, two = first.messages
        assert (one.parent_id, two.parent_id, first.run.parent_id) == (None, one.id, two.id)
        answer = answered("yes")
        await ended_well(store, first.run.id, messages=(answer,))
        second = await started(store, session_id="s", messages=(said("three"),))
        assert second.messages[0].parent_id == answer.id
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert [message.id for message in transcript.messages] == [one.id, two.id, answer.id, second.messages[0].id]
        assert transcript.session.head_id == second.messages[0].id
        assert transcript.active == second.run

    async def test_a_session_that_is_not_there_is_made_only_if_asked_for(self, backend: Backend) -> None:
        store = await backend.worker()
        assert await store.start(Start(run=a_run(session_id="s"))) == Missing("session")
        assert await store.session(OWNER, "s") is None

    async def test_another_branch_begins_behind_the_message_that_is_named(self, backend: Backend) -> None:
        """An edit: what was said before stays, on its own branch."""
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"),))
        await ended_well(store, first.run.id, messages=(answered("a"),))
        edited = await started(store, session_id="s", messages=(said("one, better"),), place=Under(None))
        assert edited.messages[0].parent_id is None
        await ended_well(store, edited.run.id, messages=(answered("b"),))
        again = await started(store, session_id="s", place=Under(first.messages[0].id))
        assert again.run.parent_id == first.messages[0].id
        session = await store.session(OWNER, "s")
        assert session is not None
        assert session.head_id == first.messages[0].id

    async def test_an_answer_that_is_tried_again_and_leaves_nothing_does_not_hide_the_one_that_there_was(
        self, backend: Backend
    ) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"),))
        answer = answered("a")
        await ended_well(store, first.run.id, messages=(answer,))

        async def head_after(*messages: SessionMessage) -> str | None:
            again = await started(store, session_id="s", place=Under(first.messages[0].id))
            await ended_well(store, again.run.id, Stopped("user"), messages=messages, notices=(a_notice(),))
            session = await store.session(OWNER, "s")
            assert session is not None
            return session.head_id

        assert await head_after() == answer.id
        better = answered("b")
        assert await head_after(better) == better.id
        assert await head_after() == better.id

    async def test_a_branch_behind_nothing_is_refused_and_leaves_nothing(self, backend: Backend) -> None:
        store = await backend.worker()
        ask = Start(run=a_run(session_id="s"), create_session=True, place=Under("msg_none"))
        assert await store.start(ask) == Missing("message")
        assert await store.session(OWNER, "s") is None

    async def test_a_second_run_of_a_session_is_refused_with_the_active_one(self, backend: Backend) -> None:
        """C52, `reject`."""
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"),))
        ask = Start(run=a_run(session_id="s"), messages=(said("two"),))
        assert await store.start(ask) == Busy(first.run)
        assert await store.run(OWNER, ask.run.id) is None
        assert await store.body(OWNER, ask.run.id) is None

    async def test_the_same_session_id_of_another_owner_is_another_session(self, backend: Backend) -> None:
        store = await backend.worker()
        await started(store, session_id="s", messages=(said("one"),))
        other = await started(store, session_id="s", owner="bob", messages=(said("mine"),))
        assert other.messages[0].parent_id is None
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert len(transcript.messages) == 1


class IdempotencyTests:
    async def test_the_same_key_and_body_starts_nothing_twice(self, backend: Backend) -> None:
        store = await backend.worker()
        ask = Start(run=a_run(), idempotency=IdempotencyKey("k", "digest"))
        await store.start(ask)
        assert await store.start(replace(ask, run=a_run())) == Replayed(ask.run.id)
        assert len((await store.runs(OWNER)).runs) == 1

    async def test_the_same_key_with_another_body_is_told_so(self, backend: Backend) -> None:
        store = await backend.worker()
        ask = Start(run=a_run(), idempotency=IdempotencyKey("k", "digest"))
        await store.start(ask)
        other = Start(run=a_run(), idempotency=IdempotencyKey("k", "another"))
        assert await store.start(other) == KeyMismatch(ask.run.id)

    async def test_keys_are_their_owners_and_last_a_day(self, backend: Backend) -> None:
        store = await backend.worker()
        key = IdempotencyKey("k", "digest")
        await store.start(Start(run=a_run(), idempotency=key))
        assert isinstance(await store.start(Start(run=a_run(owner="bob"), idempotency=key)), Started)
        await backend.clock.advance(86_400)
        assert isinstance(await store.start(Start(run=a_run(), idempotency=key)), Started)

    async def test_or_for_as_long_as_is_said(self, backend: Backend) -> None:
        store = await backend.worker()
        key = IdempotencyKey("k", "digest", keep_s=100)
        first = a_run()
        await store.start(Start(run=first, idempotency=key))
        await backend.clock.advance(99)
        await store.tidy(1e9, keep_keys_s=100)
        assert await store.start(Start(run=a_run(), idempotency=key)) == Replayed(first.id)
        # Whoever tidies drops it then, and before that it means nothing any more.
        await backend.clock.advance(1)
        assert isinstance(await store.start(Start(run=a_run(), idempotency=key)), Started)
        await backend.clock.advance(100)
        await store.tidy(1e9, keep_keys_s=100)
        assert isinstance(await store.start(Start(run=a_run(), idempotency=replace(key, keep_s=1e9))), Started)

    async def test_whether_it_was_used_can_be_asked_without_using_it(self, backend: Backend) -> None:
        store = await backend.worker()
        key, run = IdempotencyKey("k", "digest", keep_s=100), a_run()
        assert await store.used(OWNER, key) is None
        await store.start(Start(run=run, idempotency=key))
        assert await store.used(OWNER, key) == Replayed(run.id)
        assert await store.used(OWNER, replace(key, digest="another")) == KeyMismatch(run.id)
        assert await store.used("bob", key) is None
        await backend.clock.advance(100)
        assert await store.used(OWNER, key) is None

    async def test_a_start_that_was_refused_reserves_nothing(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s")
        ask = Start(run=a_run(session_id="s"), idempotency=IdempotencyKey("k", "digest"))
        assert isinstance(await store.start(ask), Busy)
        await ended_well(store, first.run.id)
        assert isinstance(await store.start(ask), Started)


class EndTests:
    async def test_all_that_a_run_leaves_is_there_at_once(self, backend: Backend) -> None:
        """C43, C45: the partial, exactly as logged, and the notice behind it."""
        store = await backend.worker()
        run = (await started(store, session_id="s", messages=(said("one"),))).run
        await kept(store, tokens(run.id, 0, 2))
        partial, notice, usage = answered("t0 t1 ", status="partial"), a_notice(), Usage(1, 2, source="provider")
        result = await ended_well(
            store,
            run.id,
            Stopped("user"),
            tail=tail(run.id, 2, Stopped("user")),
            messages=(partial,),
            notices=(notice,),
            usage=usage,
            answered_by="openai/gpt",
            first_token_at=2.0,
        )
        stands = await store.run(OWNER, run.id)
        assert stands == result.run
        assert stands is not None
        assert (stands.state, stands.outcome, stands.last_seq) == (RunState.ENDED, Stopped("user"), 2)
        assert (stands.usage, stands.answered_by, stands.first_token_at) == (usage, "openai/gpt", 2.0)
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert transcript.messages[-1] == replace(partial, parent_id=run.parent_id, run_id=run.id)
        assert transcript.notices == (replace(notice, after_id=partial.id, run_id=run.id),)
        assert (transcript.session.head_id, transcript.active) == (partial.id, None)
        assert len(await logged(store, run.id)) == 3

    async def test_nothing_visible_leaves_no_message_and_a_notice_behind_the_users(self, backend: Backend) -> None:
        """C44."""
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"),))
        await ended_well(store, first.run.id, Stopped("user"), notices=(a_notice(),))
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert transcript.messages == first.messages
        assert transcript.notices[0].after_id == transcript.session.head_id == first.messages[0].id

    async def test_there_is_one_ending_and_the_loser_is_told_which(self, backend: Backend) -> None:
        """C47."""
        store = await backend.worker()
        run = (await started(store, session_id="s")).run
        await ended_well(store, run.id, messages=(answered("whole"),))
        late = await ended(store, run.id, Stopped("user"), messages=(answered("part"),))
        assert isinstance(late, EndLost)
        assert late.run is not None
        assert late.run.outcome == Completed()
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert len(transcript.messages) == 1

    async def test_a_run_that_never_was_can_not_be_ended(self, backend: Backend) -> None:
        store = await backend.worker()
        assert await ended(store, "run_none") == EndLost(None)

    async def test_outside_of_sessions_the_answer_is_kept_with_the_run(self, backend: Backend) -> None:
        store = await backend.worker()
        request, output = Request((), model="fast"), (Assistant((Text("yes"),)),)
        run = (await started(store, request=request)).run
        await ended_well(store, run.id, output=output)
        assert await store.body(OWNER, run.id) == RunBody(request, output)

    async def test_who_has_turned_to_another_branch_stays_there(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"), said("two")))
        await store.change_session(OWNER, "s", SessionChange(head_id=first.messages[0].id))
        await ended_well(store, first.run.id, messages=(answered("yes"),))
        session = await store.session(OWNER, "s")
        assert session is not None
        assert session.head_id == first.messages[0].id

    async def test_a_tail_that_does_not_join_the_log_is_refused_as_a_whole(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        with pytest.raises(ValueError, match="goes on at 0, not at 3"):
            await ended(store, run.id, tail=tail(run.id, 3))
        assert (await store.run(OWNER, run.id)) == run

    async def test_a_tail_may_bring_again_what_could_not_be_told_to_be_kept(self, backend: Backend) -> None:
        """A commit whose connection broke may have been kept, or not: its entries are there once."""
        store = await backend.worker()
        for kept_before in range(5):
            run = (await started(store)).run
            rest = Batch(run.id, 1, [*tokens(run.id, 1, 3).entries, *tail(run.id, 4).entries])
            await kept(store, tokens(run.id, 0))
            for seq in range(kept_before):
                await kept(store, Batch(run.id, 1 + seq, rest.entries[seq : seq + 1]))
            result = await ended_well(store, run.id, tail=rest)
            assert await logged(store, run.id) == [*tokens(run.id, 0).entries, *rest.entries]
            assert result.run.last_seq == 4

    async def test_a_tail_that_says_otherwise_than_the_log_is_refused_as_a_whole(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        await kept(store, tokens(run.id, 0, 2))
        for other in (tail(run.id, 0), tail(run.id, 1), Batch(run.id, -1, tail(run.id, 0).entries)):
            with pytest.raises(ValueError, match="goes on at 2"):
                await ended(store, run.id, tail=other)
        with pytest.raises(ValueError, match="goes on at 2"):
            await ended(store, run.id, tail=tokens(run.id, 0, 1))
        assert len(await logged(store, run.id)) == 2

    async def test_only_a_stop_ends_what_has_not_begun(self, backend: Backend) -> None:
        store = await backend.worker()
        await started(store, session_id="s")
        queued = await store.start(Start(run=a_run(session_id="s"), multitask="queue"))
        assert isinstance(queued, Queued)
        with pytest.raises(IllegalTransition):
            await ended(store, queued.run.id)
