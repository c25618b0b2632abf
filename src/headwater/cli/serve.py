"""`headwater serve`. What it needs is imported when it runs."""

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import headwater
from headwater.cli.config import ConfigOption, load_or_exit

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

    flags = [Flag("--host", ("server", "host"), host), Flag("--port", ("server", "port"), port)]
    loaded = load_or_exit(file, flags)
    for warning in loaded.warnings:
        typer.echo(f"headwater: {warning}", err=True)
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
    from headwater.server.process import Process
    from headwater.server.services import Services

    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    services = await Services.open(loaded.settings, url)
    await _refuse_if_open_to_all(services, loaded.settings.server.host)
    listener.listen(2048)
    process = Process(services, reload)
    typer.echo(f"Headwater {headwater.__version__} serves {url} (Ctrl-C ends it)")
    for line in _found(loaded.settings):
        typer.echo(f"  {line}")
    await process.run(listener)


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


def _found(settings: "Settings") -> list[str]:
    """What it has to work with, for whoever started it."""
    upstreams = [f"{name} ({one.dialect}, {one.base_url})" for name, one in settings.upstreams.items()]
    names = [*(model.name for model in settings.models), *settings.agents]
    return [
        f"upstreams: {', '.join(upstreams) or 'none yet; set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST'}",
        f"models: {', '.join([*names, 'demo/echo, demo/story and others'])}",
        f"data: {settings.store.url.shown()}",
    ]


def _reloader(file: Path | None, flags: "list[Flag]") -> "Callable[[], Settings | None]":
    """The same file, environment and flags, read again. What is wrong is said, and changes nothing."""

    def reload() -> "Settings | None":
        try:
            loaded = load_or_exit(file, flags)
        except typer.Exit:
            typer.echo("headwater: the configuration stays as it was.", err=True)
            return None
        typer.echo("headwater: the configuration was read again.", err=True)
        return loaded.settings

    return reload


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
