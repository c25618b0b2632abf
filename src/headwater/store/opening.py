"""From `store.url` to a store."""

from collections.abc import Callable
from pathlib import Path

from headwater.clock import Clock
from headwater.errors import StoreError
from headwater.store.base import Store
from headwater.store.engine.workers import LEASE_S
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.store.sqlite import open_sqlite
from headwater.store.sqlite.connection import Durability


async def open_store(
    url: str,
    *,
    address: str,
    clock: Clock,
    entropy: Callable[[int], bytes],
    durability: Durability = "process",
    lease_s: float = LEASE_S,
) -> Store:
    """`memory:`, `sqlite:PATH` or `postgresql://…`. `address` is where this worker can be found, for the others.

    What Postgres survives is for its own settings to say (`synchronous_commit`), not for `durability`.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "memory":
        return await open_memory(MemoryDatabase(), address=address, clock=clock, entropy=entropy)
    if scheme == "sqlite" and rest:
        path = _at_home(rest)
        return await open_sqlite(path, address=address, clock=clock, entropy=entropy, durability=durability)
    if scheme in ("postgresql", "postgres"):
        return await _open_postgres(url, address, clock, entropy, lease_s)
    raise StoreError(
        f"store.url is {scheme}:…, and must be memory:, sqlite:PATH or postgresql://…", trouble="unreachable"
    )


async def _open_postgres(
    url: str, address: str, clock: Clock, entropy: Callable[[int], bytes], lease_s: float
) -> Store:
    # Imported only here: it is an extra.
    try:
        from headwater.store.postgres import open_postgres
    except ImportError as error:  # pragma: no cover - the tests have it
        raise StoreError(f"for Postgres, pip install 'headwater[postgres]' ({error})", trouble="unreachable") from error
    return await open_postgres(url, address=address, clock=clock, entropy=entropy, lease_s=lease_s)


def _at_home(path: str) -> Path:
    return Path(path).expanduser()
