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

    from headwater.config.load import Flag
    from headwater.config.settings import Settings
    from headwater.server.services import Services
    from headwater.server.workers import Seat


def serve(
    host: Annotated[
        str | None, typer.Option(help="An address of this machine; others than loopback only with keys.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="0 takes any free port.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this address; more than one needs Postgres.")
    ] = None,
    file: ConfigOption = None,
) -> None:
    """Serve until interrupted."""
    from headwater.config.load import Flag

    flags = [
        Flag("--host", ("server", "host"), host),
        Flag("--port", ("server", "port"), port),
        Flag("--workers", ("server", "workers"), workers),
    ]
    loaded = load_or_exit(file, flags)
    for warning in loaded.warnings:
        typer.echo(f"headwater: {warning}", err=True)
    server = loaded.settings.server
    listeners = _bind(server.host.strip("[]"), server.port, server.workers)
    reload = _reloader(file, flags)
    if server.workers > 1:
        code = _serve_several(loaded.settings, listeners, reload)
    else:
        code = _serve_one(loaded.settings, listeners[0], reload)
    if code:
        raise typer.Exit(code)


def _serve_several(
    settings: "Settings", listeners: "list[socket.socket]", reload: "Callable[[], Settings | None]"
) -> int:
    from headwater.server.workers import Workers

    current = [settings]

    def on_reload() -> bool:
        current[:] = [reload() or current[0]]
        return True

    workers = Workers(
        listeners,
        lambda seat: _serve_one(current[0], seat.listener, reload, seat),
        silent_s=settings.store.lease_s,
        on_ready=lambda: _greet(settings, _url(listeners[0]), f"with {len(listeners)} workers "),
        on_reload=on_reload,
        say=lambda what: typer.echo(f"headwater: {what}", err=True),
    )
    return workers.run()


def _serve_one(
    settings: "Settings",
    listener: "socket.socket",
    reload: "Callable[[], Settings | None]",
    seat: "Seat | None" = None,
) -> int:
    """One process, to its end; its exit code."""
    import asyncio

    import uvicorn

    from headwater.errors import StoreError

    # uvloop where there is one.
    loop_factory = uvicorn.Config(lambda: None).get_loop_factory()
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_run(settings, listener, reload, seat))
    except StoreError as error:
        typer.echo(f"headwater: the store can't be opened: {error.message}", err=True)
        return 1
    except typer.Exit as exit:
        return exit.exit_code
    return 0


def _bind(host: str, port: int, number: int) -> "list[socket.socket]":
    """They do not listen yet: nobody is to come before it is known who may."""
    import errno

    from headwater.server.workers import bind

    try:
        return bind(host, port, number)
    except OSError as error:
        hint = " Try another --port; 0 takes any free one." if error.errno == errno.EADDRINUSE else ""
        typer.echo(f"headwater: can't listen on {host}:{port}: {error.strerror}.{hint}", err=True)
        raise typer.Exit(1) from None


async def _run(
    settings: "Settings",
    listener: "socket.socket",
    reload: "Callable[[], Settings | None]",
    seat: "Seat | None",
) -> None:
    from headwater.server.process import Process
    from headwater.server.services import Services

    url = _url(listener)
    again = False
    while True:
        services = await Services.open(settings, url, dead=seat.dead if seat else ())
        await _refuse_if_open_to_all(services, settings.server.host)
        listener.listen(2048)
        process = Process(services, reload, seat)
        if seat is None and not again:
            _greet(settings, url)
        # It closes what it is given.
        again = await process.run(listener.dup())
        if not again:
            return
        settings = services.settings
        typer.echo("headwater: it begins anew, as another worker.", err=True)


def _url(listener: "socket.socket") -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _greet(settings: "Settings", url: str, how: str = "") -> None:
    typer.echo(f"Headwater {headwater.__version__} serves {url} {how}(Ctrl-C ends it)")
    for line in _found(settings):
        typer.echo(f"  {line}")


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
