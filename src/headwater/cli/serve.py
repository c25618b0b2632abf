"""`headwater serve`. What it needs is imported when it runs."""

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
    from headwater.server import descriptors, logs

    flags = [
        Flag("--host", ("server", "host"), host),
        Flag("--port", ("server", "port"), port),
        Flag("--workers", ("server", "workers"), workers),
    ]
    loaded = load_or_exit(file, flags)
    for warning in loaded.warnings:
        typer.echo(f"headwater: {warning}", err=True)
    _check_traces(loaded.settings)
    server = loaded.settings.server
    logs.configure(server.log_level, server.log_format, sys.stderr)
    descriptors.allow_many()
    listeners = _bind(server.host.strip("[]"), server.port, server.workers)
    reload = _reloader(file, flags)
    several = server.workers > 1
    code = _serve_several(loaded, listeners, reload) if several else _serve_one(loaded, listeners[0], reload)
    if code:
        raise typer.Exit(code)


def _serve_several(loaded: "Loaded", listeners: "list[socket.socket]", reload: "Callable[[], Settings | None]") -> int:
    import os
    import tempfile

    from msgspec.structs import replace

    from headwater.server.workers import Workers

    current = [loaded]

    def on_reload() -> bool:
        settings = reload()
        if settings is not None:
            current[0] = replace(loaded, settings=settings)
        return settings is not None

    workers = Workers(
        listeners,
        lambda seat: _serve_one(current[0], seat.listener, reload, seat),
        silent_s=loaded.settings.store.lease_s,
        on_ready=lambda: _greet(loaded, _url(listeners[0]), f"with {len(listeners)} workers "),
        on_reload=on_reload,
        say=lambda what: typer.echo(f"headwater: {what}", err=True),
    )
    # What they count is added up, whichever of them is asked for it (`server.metrics`).
    with tempfile.TemporaryDirectory(prefix="headwater-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        return workers.run()


def _serve_one(
    loaded: "Loaded", listener: "socket.socket", reload: "Callable[[], Settings | None]", seat: "Seat | None" = None
) -> int:
    """One process, to its end; its exit code."""
    import asyncio

    import uvicorn

    from headwater.errors import StoreError

    # uvloop where there is one. Without a `log_config` of its own: it would take its lines out of our log's form.
    loop_factory = uvicorn.Config(lambda: None, log_config=None).get_loop_factory()
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_run(loaded, listener, reload, seat))
    except StoreError as error:
        typer.echo(f"headwater: the store can't be opened: {error.message}", err=True)
        return 1
    except typer.Exit as exit:
        return exit.exit_code
    return 0


def _check_traces(settings: "Settings") -> None:
    from importlib.util import find_spec

    if settings.server.traces and find_spec("opentelemetry.sdk") is None:
        typer.echo("headwater: server.traces is set, and takes: pip install 'headwater[otel]'", err=True)
        raise typer.Exit(2)


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
    loaded: "Loaded", listener: "socket.socket", reload: "Callable[[], Settings | None]", seat: "Seat | None"
) -> None:
    import asyncio
    import logging

    from headwater.cli import banner
    from headwater.errors import StoreError
    from headwater.server.process import WHAT_IS_MISSING, Process
    from headwater.server.services import Services

    url, settings = _url(listener), loaded.settings
    telling: asyncio.Task[None] | None = None
    again = True
    while again:
        services = await Services.open(settings, url, dead=seat.dead if seat else ())
        await _refuse_if_open_to_all(services, settings.server.host)
        listener.listen(2048)
        process = Process(services, reload, seat)
        if seat is None and telling is None:
            _greet(loaded, url)
            telling = asyncio.create_task(banner.tell_models(services), name="serve: tell models")
        try:
            # It closes what it is given.
            again = await process.run(listener.dup())
        except StoreError as error:
            logging.getLogger("headwater.server").error(
                "the store failed while it was being closed: %s. What is missing: %s", error.message, WHAT_IS_MISSING
            )
            raise typer.Exit(1) from None
        finally:
            if telling is not None:
                telling.cancel()
        settings = services.settings
        if again:
            typer.echo("headwater: it begins anew, as another worker.", err=True)


def _url(listener: "socket.socket") -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _greet(loaded: "Loaded", url: str, how: str = "") -> None:
    from headwater.cli import banner

    typer.echo(f"Headwater {headwater.__version__} serves {url} {how}(Ctrl-C ends it)")
    for line in banner.at_once(loaded):
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


def _reloader(file: Path | None, flags: "list[Flag]") -> "Callable[[], Settings | None]":
    """The same file, environment and flags, read again. What is wrong is said, and changes nothing."""
    import logging

    from headwater.errors import ConfigError
    from headwater.server import logs

    log = logging.getLogger("headwater.server")

    def reload() -> "Settings | None":
        try:
            loaded = load_settings(file, flags)
        except ConfigError as error:
            for problem in error.problems:
                log.error("%s", problem)
            log.error("the configuration stays as it was")
            return None
        logs.configure(loaded.settings.server.log_level, loaded.settings.server.log_format, sys.stderr)
        log.info("the configuration was read again")
        return loaded.settings

    return reload


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
