"""The native API in a process of its own, until somebody kills it. Run by test_kill.py: the database, and a port."""

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from headwater.server.callers import Keyring
from headwater.server.guard import Guard
from headwater.server.native.api import Native
from headwater.server.services import Services
from tests.server_native.serving import settings_of, store_url


async def main(folder: Path, port: int) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    settings = settings_of(store_url("sqlite", folder))
    services = await Services.open(settings, "killed")
    guard = Guard(settings.server, Keyring((), services.store, services.clock), services.clock)
    app = Starlette(routes=Native(services, guard).routes())
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off")).serve([listener])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
