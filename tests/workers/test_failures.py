"""Workers that are killed, hang and wake up, or are cut off from Postgres, in mid-stream and under load.

Every follower, on any worker, gets every event once and one ending; what a run left is saved once (C43, C50, C51).
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence

import pytest

from headwater.testing.postgres import PostgresServer
from tests.workers.fleet import SAFETY_S, Fleet, Member, Talk, Watcher, fleet_of

pytestmark = pytest.mark.anyio

LONG = "sim/tokens-4000@40"
"""It ends only if somebody ends it."""
SHORT = "sim/tokens-100@40"
TALKS = 4


@pytest.fixture(scope="module")
async def two(postgres: PostgresServer) -> AsyncIterator[Fleet]:
    async with fleet_of(2, postgres, "pair") as fleet:
        yield fleet


@pytest.fixture
async def pair(two: Fleet) -> AsyncIterator[Fleet]:
    """A test that fails leaves nobody cut off, or asleep, to the next."""
    try:
        yield two
    finally:
        for member in two.members:
            member.proxy.refusing = False
            member.signal(signal.SIGCONT)


async def under_way(fleet: Fleet, victims: Sequence[Member]) -> tuple[list[Talk], list[Talk]]:
    """Talks of the victims', which go on for long, and of the others, which come to their own end."""
    fleet.simulator.clear()
    begun = [
        Talk.begin(fleet, member, LONG if member in victims else SHORT)
        for member in fleet.members
        for _ in range(TALKS)
    ]
    talks = await asyncio.gather(*begun)
    await asyncio.gather(*(watcher.words(5) for talk in talks for watcher in talk.watchers))
    return [talk for talk in talks if talk.owner in victims], [talk for talk in talks if talk.owner not in victims]


async def check(hit: list[Talk], spared: list[Talk], survivor: Member) -> None:
    assert {await talk.check(survivor) for talk in hit} == {"run.interrupted"}
    assert {await talk.check(survivor) for talk in spared} == {"run.completed"}
    assert all(len(talk.watchers[0].texts) == 100 for talk in spared)


async def upstreams_closed(fleet: Fleet) -> None:
    """All of the victims' are: nobody is paid for what nobody can get."""
    async with asyncio.timeout(SAFETY_S):
        for n, request in enumerate(fleet.simulator.requests):
            if request.model == LONG:
                closed = await fleet.simulator.wait_for_close(n)
                assert closed.closed in ("client_fin", "client_reset")


async def works_again(fleet: Fleet, member: Member) -> None:
    await fleet.ready(member)
    talk = await Talk.begin(fleet, member, "sim/tokens-3")
    assert await talk.check(member) == "run.completed"


async def test_any_worker_stops_goes_on_with_and_approves_what_another_has(pair: Fleet) -> None:
    first, second = pair.members
    pair.simulator.clear()
    talk = await Talk.begin(pair, first, LONG)
    await asyncio.gather(*(watcher.words(3) for watcher in talk.watchers))
    status, answer = await pair.ask(second, "POST", f"/api/runs/{talk.run_id}/stop", {"wait_s": SAFETY_S})
    assert (status, answer["caused_by_this_call"], answer["upstream_closed"]) == (200, True, True)
    assert await talk.check(second) == "run.stopped"
    assert (await pair.simulator.wait_for_close(0)).closed in ("client_fin", "client_reset")

    cut = await Talk.begin(pair, first, "sim/tokens-9,cut-after-3")
    assert await cut.check(second) == "run.failed"
    status, more = await pair.ask(second, "POST", f"/api/runs/{cut.run_id}/continue", {})
    assert status == 201, more
    assert await Watcher(pair, more["run"]["id"], first).ended() == "run.failed"

    session_id = await pair.session(first)
    body = {"content": "Send a postcard", "model": "demo/agent"}
    _, said = await pair.ask(first, "POST", f"/api/sessions/{session_id}/messages", body)
    watcher = Watcher(pair, said["run"]["id"], second)
    asked = await watcher.until("run.approval")
    path = f"/api/runs/{watcher.run_id}/approvals/{asked['call_id']}"
    approval = {"decision": "yes", "arguments_digest": asked["arguments_digest"]}
    status, given = await pair.ask(second, "POST", path, approval)
    assert status == 200, given
    assert await watcher.ended() == "run.completed"


async def test_a_worker_that_is_cut_off_from_postgres(pair: Fleet) -> None:
    victim, other = pair.members
    hit, spared = await under_way(pair, [victim])
    victim.proxy.refusing = True
    victim.proxy.cut()
    await upstreams_closed(pair)
    await check(hit, spared, other)
    victim.proxy.refusing = False
    await victim.says("was declared dead by another one")
    await victim.says("begins anew")
    await works_again(pair, victim)
    await check(hit, spared, other)


async def test_a_worker_that_hangs_and_wakes_up(pair: Fleet) -> None:
    victim, other = pair.members
    before = victim.said.count("begins anew")
    hit, spared = await under_way(pair, [victim])
    victim.signal(signal.SIGSTOP)
    await check(hit, spared, other)
    assert any(request.model == LONG and request.ending is None for request in pair.simulator.requests)
    victim.signal(signal.SIGCONT)
    await upstreams_closed(pair)
    async with asyncio.timeout(SAFETY_S):
        while victim.said.count("begins anew") == before:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await works_again(pair, victim)
    await check(hit, spared, other)


async def test_postgres_is_restarted(pair: Fleet, postgres: PostgresServer) -> None:
    """Nothing is said to be kept that is not; runs go on, and followers come back."""
    _, talks = await under_way(pair, [])
    await asyncio.to_thread(postgres.stop)
    await asyncio.to_thread(postgres.start)
    for talk in talks:
        ending = await talk.check(pair.members[0])
        assert ending in ("run.completed", "run.interrupted")
        assert ending != "run.completed" or len(talk.watchers[0].texts) == 100
    for member in pair.members:
        await works_again(pair, member)


async def test_a_worker_that_is_killed(pair: Fleet) -> None:
    victim, other = pair.members
    hit, spared = await under_way(pair, [victim])
    victim.signal(signal.SIGKILL)
    await check(hit, spared, other)
    await upstreams_closed(pair)
    await asyncio.to_thread(victim.process.wait)
    await victim.begin()
    await works_again(pair, victim)


async def test_of_four_one_is_killed_one_hangs_and_one_is_cut_off(postgres: PostgresServer) -> None:
    async with fleet_of(4, postgres, "four") as fleet:
        killed, hanging, cut_off, survivor = fleet.members
        hit, spared = await under_way(fleet, [killed, hanging, cut_off])
        killed.signal(signal.SIGKILL)
        hanging.signal(signal.SIGSTOP)
        # Nothing breaks: Postgres just says nothing to it any more.
        cut_off.proxy.freeze()
        await check(hit, spared, survivor)
        hanging.signal(signal.SIGCONT)
        cut_off.proxy.thaw()
        for member in (hanging, cut_off):
            await member.says("was declared dead by another one")
        await upstreams_closed(fleet)
        await works_again(fleet, hanging)
        await works_again(fleet, cut_off)
        await check(hit, spared, survivor)
