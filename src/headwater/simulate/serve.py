"""A simulation on a socket."""

import asyncio
from typing import Final

from headwater.simulate.connection import Connection
from headwater.simulate.simulation import Simulation

# A thousand clients may come at once.
_BACKLOG: Final = 2048


async def listen(simulation: Simulation, host: str = "127.0.0.1", port: int = 0) -> tuple[asyncio.Server, str]:
    """The server, and its URL. Port 0 takes any free one."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(simulation), host, port, backlog=_BACKLOG)
    bound = server.sockets[0].getsockname()[1]
    return server, f"http://{f'[{host}]' if ':' in host else host}:{bound}"
