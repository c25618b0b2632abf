"""A server that is there, with its connections open, and says nothing: it is given up, and what is unknown is said to be."""

import pytest

from headwater.errors import StoreError
from headwater.store.results import Batch, EndStands
from headwater.testing.store_suite.making import OWNER, ended, kept, started, tail, tokens
from tests.store.postgres_backend import BehindProxy, seqs

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("asked", ["INSERT INTO headwater.run_body", "COMMIT"])
async def test_it_is_not_waited_for_for_ever(behind: BehindProxy, asked: str) -> None:
    """Its connections are not used again, also those on which nothing was asked."""
    between = behind.proxy
    store, run = await behind.begun()
    between.silent_from = lambda data: asked.encode() in data
    with pytest.raises(StoreError) as raised:
        await started(store)
    assert raised.value.trouble == "unreachable"
    with pytest.raises(StoreError) as raised:
        await store.run(OWNER, run.id)
    assert raised.value.trouble == "unreachable"
    between.silent = False
    assert await store.run(OWNER, run.id) == run
    assert len((await store.runs(OWNER)).runs) == (2 if asked == "COMMIT" else 1)


@pytest.mark.parametrize("held", [False, True], ids=["the answer is lost", "all is held up"])
async def test_a_commit_is_given_up_and_the_end_finds_out_what_became_of_it(behind: BehindProxy, held: bool) -> None:
    between = behind.proxy
    store, run = await behind.begun()
    await kept(store, tokens(run.id, 0))
    if held:
        between.freeze()
    between.silent = not held
    (trouble,) = await kept(store, tokens(run.id, 1))
    assert trouble is not None
    assert (trouble.trouble, "can't be known" in trouble.message) == ("unreachable", True)
    between.silent = False
    between.thaw()
    entries = [*tokens(run.id, 1).entries, *tail(run.id, 2).entries]
    result = await ended(store, run.id, tail=Batch(run.id, 1, entries))
    assert isinstance(result, EndStands)
    assert await seqs(store, run.id) == [0, 1, 2]


async def test_what_is_asked_while_all_is_held_up_has_no_effect_once_it_was_given_up(behind: BehindProxy) -> None:
    """The server finds the question when it wakes up, and nobody there to say that it is to be kept."""
    store, run = await behind.begun()
    behind.proxy.freeze()
    with pytest.raises(StoreError):
        await started(store)
    behind.proxy.thaw()
    assert (await store.runs(OWNER)).runs == (run,)
