"""`headwater serve`. What it needs is imported when it runs."""

import ipaddress
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import headwater
from headwater.cli.config import ConfigOption, load_or_exit, load_settings

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from headwater.config.load import Flag, Loaded
    from headwater.config.settings import Settings
    from headwater.server.services import Services


def serve(
    host: Annotated[
        str | None, typer.Option(help="An address of this machine; others than loopback only with keys.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="0 takes any free port.")] = None,
    file: ConfigOption = None,
) -> None:
    """Serve until interrupted."""
    import asyncio

    import uvicorn

    from headwater.config.load import Flag
    from headwater.errors import StoreError
    from headwater.server import logs

    flags = [Flag("--host", ("server", "host"), host), Flag("--port", ("server", "port"), port)]
    loaded = load_or_exit(file, flags)
    for warning in loaded.warnings:
        typer.echo(f"headwater: {warning}", err=True)
    logs.configure(loaded.settings.server.log_level, loaded.settings.server.log_format, sys.stderr)
    listener = _listen(loaded.settings.server.host.strip("[]"), loaded.settings.server.port)
    # uvloop where there is one.
    loop_factory = uvicorn.Config(lambda: None).get_loop_factory()
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_run(loaded, listener, _reloader(file, flags)))
    except StoreError as error:
        typer.echo(f"headwater: the store can't be opened: {error.message}", err=True)
        raise typer.Exit(1) from None


def _listen(host: str, port: int) -> "socket.socket":
    import errno
    import socket

    try:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # It does not listen yet: nobody is to come before it is known who may.
        listener.bind((host, port))
    except OSError as error:
        hint = " Try another --port; 0 takes any free one." if error.errno == errno.EADDRINUSE else ""
        typer.echo(f"headwater: can't listen on {host}:{port}: {error.strerror}.{hint}", err=True)
        raise typer.Exit(1) from None
    return listener


async def _run(loaded: "Loaded", listener: "socket.socket", reload: "Callable[[], Settings | None]") -> None:
    import asyncio

    from headwater.cli import banner
    from headwater.server.process import Process
    from headwater.server.services import Services

    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    services = await Services.open(loaded.settings, url)
    await _refuse_if_open_to_all(services, loaded.settings.server.host)
    listener.listen(2048)
    process = Process(services, reload)
    typer.echo(f"Headwater {headwater.__version__} serves {url} (Ctrl-C ends it)")
    for line in banner.at_once(loaded):
        typer.echo(f"  {line}")
    telling = asyncio.create_task(banner.tell_models(services), name="serve: tell models")
    try:
        await process.run(listener)
    finally:
        telling.cancel()


async def _refuse_if_open_to_all(services: "Services", host: str) -> None:
    """Where others can reach it there must be a key, in the file or in the store; a revoked one lets nobody in, too."""
    if _is_loopback(host.strip("[]")) or services.settings.server.keys or await services.store.keys():
        return
    await services.close()
    typer.echo(
        f"headwater: refusing to listen on {host}: there is no key yet, and without one only loopback is safe. "
        "Make one (headwater keys create NAME), or put one into the file ([[server.keys]]); or use --host 127.0.0.1.",
        err=True,
    )
    raise typer.Exit(2)


def _reloader(file: Path | None, flags: "list[Flag]") -> "Callable[[], Settings | None]":
    """The same file, environment and flags, read again. What is wrong is said, and changes nothing."""
    import logging

    from headwater.errors import ConfigError

    log = logging.getLogger("headwater.server")

    def reload() -> "Settings | None":
        try:
            loaded = load_settings(file, flags)
        except ConfigError as error:
            for problem in error.problems:
                log.error("%s", problem)
            log.error("the configuration stays as it was")
            return None
        log.info("the configuration was read again")
        return loaded.settings

    return reload


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
