"""A server inside this process, for a command that finds none. It has the database while it lasts, and goes with it."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from headwater.config.settings import Settings
from headwater.server.process import Front, server_for
from headwater.server.services import Services
from headwater.upstream.catalog import Catalog


class Embedded(NamedTuple):
    url: str
    """On loopback, at any free port, so that other commands find it."""
    catalog: Catalog


@asynccontextmanager
async def embedded(settings: Settings) -> AsyncIterator[Embedded]:
    """Raises `StoreError`."""
    # Its remarks would be in the midst of what somebody reads.
    logging.getLogger("headwater").setLevel(logging.CRITICAL)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        services = await Services.open(settings, url)
        front = Front(services)
        server = server_for(services, front)
        serving = asyncio.create_task(server.serve([listener]), name="embedded: serve")
        try:
            yield Embedded(url, services.upstreams.catalog)
        finally:
            services.drain()
            await services.runs.close()
            front.close()
            server.should_exit = True
            await serving
            await services.close()
