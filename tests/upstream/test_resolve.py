"""Names, looked up on threads that nobody waits for, and the first address that answers."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from headwater.upstream.dial import dial, in_turns
from headwater.upstream.resolve import Peer, Resolver, look_up
from tests.upstream.wire import LIMIT_S, Left, listening, nobody_answers, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


V4, V6 = socket.AF_INET, socket.AF_INET6
HERE = Peer(V4, ("127.0.0.1", 80))


class Names:
    """A name server whose answers come when they are let go."""

    def __init__(self, answer: Sequence[Peer] | OSError = (HERE,)) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.let_go = threading.Event()
        self.daemons: list[bool] = []

    def look_up(self, host: str, port: int) -> Sequence[Peer]:
        self.asked.append(host)
        self.daemons.append(threading.current_thread().daemon)
        assert self.let_go.wait(LIMIT_S)
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


class TestResolver:
    async def test_a_number_is_not_looked_up(self) -> None:
        names = Names()
        resolver = Resolver(names.look_up)
        assert list(await resolver.peers("127.0.0.1", 80)) == [HERE]
        assert [peer.family for peer in await resolver.peers("::1", 80)] == [V6]
        assert names.asked == []

    async def test_the_system_is_asked_for_a_name(self) -> None:
        assert {peer.sockaddr[1] for peer in await Resolver().peers("localhost", 80)} == {80}
        with pytest.raises(socket.gaierror):
            await Resolver().peers("nowhere.invalid", 80)
        with pytest.raises(ValueError, match="label"):
            await Resolver().peers("a" * 80 + ".example", 80)

    async def test_one_lookup_serves_all_who_wait_and_a_cancel_is_only_for_one(self) -> None:
        names = Names()
        resolver = Resolver(names.look_up)
        tasks = [asyncio.create_task(resolver.peers("a.example", 80)) for _ in range(3)]
        await until(lambda: len(names.asked) == 1)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        names.let_go.set()
        assert [list(await task) for task in tasks[1:]] == [[HERE], [HERE]]
        assert names.asked == ["a.example"]

    async def test_a_silent_name_server_holds_up_no_other_name_and_no_exit(self) -> None:
        silent, quick = Names(), Names()
        quick.let_go.set()

        def either(host: str, port: int) -> Sequence[Peer]:
            return (silent if host.startswith("silent") else quick).look_up(host, port)

        resolver = Resolver(either)
        stuck = [asyncio.create_task(resolver.peers(f"silent{n}.example", 80)) for n in range(100)]
        await until(lambda: len(silent.asked) == 100)
        async with asyncio.timeout(LIMIT_S):
            assert list(await resolver.peers("quick.example", 80)) == [HERE]
        assert all(silent.daemons)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        silent.let_go.set()

    async def test_what_was_found_is_kept_for_a_while(self) -> None:
        names = Names()
        names.let_go.set()
        resolver = Resolver(names.look_up)
        for _ in range(3):
            await resolver.peers("a.example", 80)
        await resolver.peers("b.example", 80)
        assert names.asked == ["a.example", "b.example"]
        forgetful = Resolver(names.look_up, keep_s=0)
        for _ in range(2):
            await forgetful.peers("c.example", 80)
        assert names.asked[2:] == ["c.example"] * 2

    async def test_a_failure_is_told_to_all_who_wait_and_not_kept(self) -> None:
        names = Names(socket.gaierror(socket.EAI_AGAIN, "not now"))
        resolver = Resolver(names.look_up)
        tasks = [asyncio.create_task(resolver.peers("a.example", 80)) for _ in range(2)]
        await until(lambda: len(names.asked) == 1)
        names.let_go.set()
        errors = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(error) for error in errors] == [socket.gaierror] * 2
        names.answer = (HERE,)
        assert list(await resolver.peers("a.example", 80)) == [HERE]


def test_a_lookup_that_outlives_its_loop_is_nobodys_concern() -> None:
    names = Names()
    resolver = Resolver(names.look_up)

    async def leave() -> None:
        task = asyncio.create_task(resolver.peers("a.example", 80))
        await until(lambda: len(names.asked) == 1)
        task.cancel()

    asyncio.run(leave())
    names.let_go.set()
    for thread in threading.enumerate():
        if thread.name == "resolve a.example":
            thread.join(LIMIT_S)


class TestDial:
    def test_families_take_turns(self) -> None:
        peers = [Peer(V6, ("a",)), Peer(V6, ("b",)), Peer(V6, ("c",)), Peer(V4, ("d",)), Peer(V4, ("e",))]
        assert [peer.sockaddr[0] for peer in in_turns(peers)] == ["a", "d", "b", "e", "c"]

    async def test_an_address_that_is_silent_costs_a_moment_only(self) -> None:
        async with listening(_quiet) as port:
            with nobody_answers() as silent, Left() as left:
                sock = await dial([Peer(V4, ("127.0.0.1", silent)), Peer(V4, ("127.0.0.1", port))], stagger_s=0.01)
                assert sock.getpeername()[1] == port
                sock.close()
                await left.nothing()

    async def test_an_address_that_refuses_costs_nothing(self) -> None:
        async with listening(_quiet) as closed:
            pass
        async with listening(_quiet) as port:
            with Left() as left:
                sock = await dial(_at(closed, port), stagger_s=LIMIT_S)
                assert sock.getpeername()[1] == port
                sock.close()
                await left.nothing()

    async def test_of_two_that_answer_one_is_closed(self) -> None:
        async with listening(_quiet) as one, listening(_quiet) as other:
            with Left() as left:
                (await dial(_at(one, other, one), stagger_s=0)).close()
                await left.nothing()

    async def test_no_route_says_less_than_a_refusal(self) -> None:
        async with listening(_quiet) as port:
            pass
        nowhere = Peer(socket.AF_UNIX + 1000, ("nowhere",))
        with Left() as left:
            with pytest.raises(ConnectionRefusedError):
                await dial([nowhere, *_at(port)])
            await left.nothing()

    async def test_a_cancel_closes_all_that_were_tried(self) -> None:
        with nobody_answers() as silent, Left() as left:
            task = asyncio.create_task(dial(_at(silent, silent, silent), stagger_s=0.001))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await left.nothing()


def _at(*ports: int) -> list[Peer]:
    return [peer for port in ports for peer in look_up("127.0.0.1", port)]


async def _quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
