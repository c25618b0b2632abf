"""What else the doctor looks at: where things are kept, and the servers of tools."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, LiteralString

from msgspec.structs import replace

from headwater.cli.diagnosis import Finding
from headwater.cli.reach import holder_of
from headwater.clock import SystemClock
from headwater.config.secret import SecretUrl
from headwater.config.settings import McpSettings, Settings
from headwater.errors import StoreError

if TYPE_CHECKING:
    from headwater.store.postgres.connection import Connection

_HEAR_S: Final = 5.0
_SHOWN: Final = 8

# -------------------------------------------------------------------------- the store


async def of_store(settings: Settings) -> list[Finding]:
    url = settings.store.url
    scheme, _, given = url.reveal().partition(":")
    if scheme == "memory":
        return [Finding("note", "store", "memory: what is said is gone when the server ends.")]
    return [_of_file(given)] if scheme == "sqlite" else await _of_postgres(url)


def _of_file(given: str) -> Finding:
    path = Path(given).expanduser()
    if (holder := holder_of(path)) is not None:
        return Finding("fine", "store", f"{path}, which the server at {holder} has.")
    folder = next((one for one in (path.parent, *path.parents) if one.exists()), Path("/"))
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.R_OK | os.W_OK)):
        return Finding("fault", "store", f"{path} can't be written.", '[store] url = "sqlite:…", a place of your own')
    if path.exists() and path.stat().st_size and not path.read_bytes()[:16].startswith(b"SQLite format 3"):
        return Finding("fault", "store", f"{path} is no database.", '[store] url = "sqlite:…", another file')
    return Finding("fine", "store", f"{path}, which no server has just now.")


async def _of_postgres(url: SecretUrl) -> list[Finding]:
    try:
        from headwater.store.postgres.connection import Address
    except ImportError:
        return [Finding("fault", "store", "Postgres takes an extra.", "pip install 'headwater[postgres]'")]
    try:
        address = Address(url.reveal())
        async with await address.connect() as connection:
            with address.translated():
                return [finding async for finding in _of_database(connection, url.shown())]
    except StoreError as error:
        return [Finding("fault", "store", f"{error.message}.", '[store] url = "postgresql://…"')]


async def _of_database(connection: "Connection", shown: str) -> AsyncIterator[Finding]:
    major, minor = divmod(connection.info.server_version, 10_000)
    yield Finding("fine", "store", f"{shown}, Postgres {major}.{minor}.")
    if (await _asked(connection, "SELECT pg_is_in_recovery()")) is True:
        yield Finding("fault", "store", "It is a standby, which can only be read from.", "[store] url of the primary")
        return
    yield await _of_schema(connection)
    if await _hears(connection):
        yield Finding("fine", "listen", "What one worker notifies another hears.")
    else:
        what = "LISTEN hears nothing: workers will hear of each other's runs half a second late."
        yield Finding("warning", "listen", what, "[store] url past the pooler, or one that pools sessions")


async def _of_schema(connection: "Connection") -> Finding:
    from headwater.store.postgres.schema import MIGRATIONS

    if (await _asked(connection, "SELECT to_regclass('headwater.migration')::text")) is None:
        may = await _asked(
            connection,
            """SELECT CASE WHEN to_regnamespace('headwater') IS NULL
                THEN has_database_privilege(current_database(), 'CREATE')
                ELSE has_schema_privilege('headwater', 'CREATE') END""",
        )
        if may:
            return Finding("note", "schema", "Its tables are not there yet: the first server makes them.")
        return Finding("fault", "schema", "Its tables are not there, and this role may not make them.", "another role")
    step = await _asked(connection, "SELECT max(number) FROM headwater.migration")
    known = len(MIGRATIONS)
    if step == known:
        return Finding("fine", "schema", f"At step {step}, as this version of Headwater has it.")
    what = f"At step {step}; this version of Headwater knows {known}."
    how = "the next server brings it there" if step < known else "upgrade Headwater, if a server refuses it"
    return Finding("note" if step < known else "warning", "schema", what, how)


async def _asked(connection: "Connection", query: LiteralString) -> Any:
    row = await (await connection.execute(query)).fetchone()
    return None if row is None else row[0]


async def _hears(connection: "Connection") -> bool:
    """A word to itself, as through a pooler that gives each statement another connection it is not heard."""
    await connection.execute("LISTEN headwater_doctor")
    await connection.execute("NOTIFY headwater_doctor")
    async for _ in connection.notifies(timeout=_HEAR_S, stop_after=1):
        return True
    return False


# ----------------------------------------------------------------------------- tools


async def of_tools(settings: Settings, patience_s: float) -> AsyncIterator[tuple[str, list[Finding]]]:
    """What was found, of one server of tools after the other."""
    for name, server in settings.mcp.items():
        yield f"mcp {name}", [await _of_server(name, server, patience_s)]


async def _of_server(name: str, settings: McpSettings, patience_s: float) -> Finding:
    # A second of imports, for those who have such servers.
    from headwater.agent.mcp.connection import Connection

    hurried = replace(settings, start_timeout_s=min(settings.start_timeout_s, patience_s))
    connection = Connection(name, hurried, SystemClock())
    try:
        offer = await connection.offer()
    finally:
        await asyncio.shield(connection.close())
    how = f"[mcp.{name}] {'command' if settings.command else 'url or headers'}"
    if (why := offer.missing.get(name)) is not None:
        return Finding("fault", "tools", why, how)
    if not offer.tools:
        return Finding("warning", "tools", "It can be reached, and has no tools.", how)
    names = [tool.name for tool in offer.tools]
    more = "" if len(names) <= _SHOWN else ", …"
    plural = "tool" if len(names) == 1 else "tools"
    return Finding("fine", "tools", f"{len(names)} {plural}: {', '.join(names[:_SHOWN])}{more}.")
