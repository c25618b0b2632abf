"""From `store.url` to a store."""

from collections.abc import Callable
from pathlib import Path

from headwater.clock import Clock
from headwater.errors import StoreError
from headwater.store.base import Store
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.store.sqlite import open_sqlite
from headwater.store.sqlite.connection import Durability


async def open_store(
    url: str, *, address: str, clock: Clock, entropy: Callable[[int], bytes], durability: Durability = "process"
) -> Store:
    """`memory:` or `sqlite:PATH`. `address` is where this worker can be found, for whoever wants the same file."""
    scheme, _, rest = url.partition(":")
    if scheme == "memory":
        return await open_memory(MemoryDatabase(), address=address, clock=clock, entropy=entropy)
    if scheme == "sqlite" and rest:
        path = _at_home(rest)
        return await open_sqlite(path, address=address, clock=clock, entropy=entropy, durability=durability)
    raise StoreError(f"store.url is {url!r}, and must be memory: or sqlite:PATH", trouble="unreachable")


def _at_home(path: str) -> Path:
    return Path(path).expanduser()
