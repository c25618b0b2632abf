"""What waits in a conversation for its turn: told of, and let go on."""

from typing import Any

from headwater.cli import exits
from headwater.cli.chat import follow
from headwater.cli.reach import Reached, session_path
from headwater.cli.showing import say
from headwater.cli.words import one_line, queue_waits

_SHOWN_CHARS = 60


async def queue_of(server: Reached, session_id: str) -> dict[str, Any]:
    queue: dict[str, Any] = await server.client.ask("GET", session_path(session_id, "/queue"))
    return queue


def lines(queue: dict[str, Any], session_id: str) -> list[str]:
    """For people; none, if nothing waits."""
    said = [f"  {number}. {one_line(item['content'])}" for number, item in enumerate(queue["items"], 1)]
    return [f"({queue_waits(len(said), queue['paused'], session_id)})", *said] if said else []


async def resume(server: Reached, session_id: str) -> int:
    """The exit code. What goes on at a server of our own is followed to its end: it would end with us."""
    items = (await queue_of(server, session_id))["items"]
    await server.client.ask("PATCH", session_path(session_id, "/queue"), {"resume": True})
    if not items:
        say(f"nothing waits in {session_id}.")
    if server.embedded:
        return await _follow_all(server, session_id, items)
    for item in items:
        print(f"{one_line(item['content'], _SHOWN_CHARS)}: headwater attach {item['run']['id']}")
    return exits.COMPLETED


async def _follow_all(server: Reached, session_id: str, items: list[dict[str, Any]]) -> int:
    codes: list[int] = []
    for item in items:
        say(f"› {one_line(item['content'])}")
        codes.append(await follow(server, item["run"]["id"], None))
        if codes[-1] == exits.CTRL_C:
            return exits.CTRL_C
        left = await queue_of(server, session_id)
        if left["paused"]:
            say(queue_waits(len(left["items"]), True, session_id))
            break
    return exits.worst(codes)
