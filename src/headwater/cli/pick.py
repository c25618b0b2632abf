"""From what a person types to the one run or conversation that is meant."""

from typing import Any, Final
from urllib.parse import quote

from headwater.cli import exits
from headwater.client import ApiError, Client
from headwater.errors import HeadwaterError

_RECENT = 200
_MADE: Final = "ses_"
"""What the ids begin with that nobody chose."""
_NO_CHANCE_CHARS: Final = 6
"""Fewer may well be the end of some id."""


class NotFound(HeadwaterError):
    """None, or several."""


async def pick_run(client: Client, given: str) -> str:
    """A whole id, the end of one as `headwater runs` prints it, or `last`. Leaves with a word if there is none."""
    try:
        return await _find(client, given, "run", "/api/runs", "runs")
    except NotFound as error:
        exits.leave(str(error))


async def pick_session(client: Client, given: str) -> str:
    try:
        return await find_session(client, given)
    except NotFound as error:
        exits.leave(str(error))


async def find_session(client: Client, given: str) -> str:
    """Raises `NotFound`."""
    return await _find(client, given, "session", "/api/sessions", "sessions")


async def find_session_if_there(client: Client, given: str) -> str | None:
    """None: it may be what a new one is to be called. Raises `NotFound` for the end of several.

    So a name is the end of no other name, and the end of an id that was made is long enough to be meant.
    """
    whole = await _whole(client, given, "/api/sessions")
    if whole is not None or len(given) < _NO_CHANCE_CHARS:
        return whole
    made = [id for id in await _recent(client, "/api/sessions", "sessions") if id.startswith(_MADE)]
    found = [id for id in made if id.endswith(given)]
    return _one(found, given, "session", "sessions") if found else None


async def _find(client: Client, given: str, what: str, path: str, field: str) -> str:
    whole = None if given == "last" else await _whole(client, given, path)
    if whole is not None:
        return whole
    recent = await _recent(client, path, field)
    return _one(recent[:1] if given == "last" else [id for id in recent if id.endswith(given)], given, what, field)


async def _whole(client: Client, given: str, path: str) -> str | None:
    try:
        return str((await client.ask("GET", f"{path}/{quote(given, safe='')}"))["id"])
    except ApiError as error:
        if error.status != 404:
            raise
        return None


async def _recent(client: Client, path: str, field: str) -> list[str]:
    found: list[dict[str, Any]] = (await client.ask("GET", f"{path}?limit={_RECENT}"))[field]
    return [str(one["id"]) for one in found]


def _one(found: list[str], given: str, what: str, field: str) -> str:
    if not found:
        raise NotFound(f"there is no {what} {given}. See: headwater {field}")
    if len(found) > 1:
        raise NotFound(f"{len(found)} {field} end with {given}. Give more of the id.")
    return found[0]
