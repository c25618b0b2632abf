"""From what a person types to the one run or conversation that is meant."""

from typing import Any
from urllib.parse import quote

from headwater.cli import exits
from headwater.client import ApiError, Client
from headwater.errors import HeadwaterError

_RECENT = 200


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


async def _find(client: Client, given: str, what: str, path: str, field: str) -> str:
    if given != "last":
        try:
            return str((await client.ask("GET", f"{path}/{quote(given, safe='')}"))["id"])
        except ApiError as error:
            if error.status != 404:
                raise
    recent: list[dict[str, Any]] = (await client.ask("GET", f"{path}?limit={_RECENT}"))[field]
    found = recent[:1] if given == "last" else [one for one in recent if str(one["id"]).endswith(given)]
    if not found:
        raise NotFound(f"there is no {what} {given}. See: headwater {field}")
    if len(found) > 1:
        raise NotFound(f"{len(found)} {field} end with {given}. Give more of the id.")
    return str(found[0]["id"])
