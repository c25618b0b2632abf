"""`headwater serve`. What it needs is imported when it runs."""

import ipaddress
from typing import Annotated

import typer

import headwater
from headwater.cli.config import ConfigOption, load_or_exit


def serve(
    host: Annotated[
        str | None, typer.Option(help="A loopback address: there are no keys yet to keep others out.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="0 takes any free port.")] = None,
    file: ConfigOption = None,
) -> None:
    """Serve the page until interrupted."""
    import errno
    import socket

    import uvicorn

    from headwater.config.load import Flag
    from headwater.server.app import build_app

    flags = [Flag("--host", ("server", "host"), host), Flag("--port", ("server", "port"), port)]
    loaded = load_or_exit(file, flags)
    for warning in loaded.warnings:
        typer.echo(f"headwater: {warning}", err=True)
    host, port = loaded.settings.server.host.strip("[]"), loaded.settings.server.port
    if not _is_loopback(host):
        typer.echo(
            f"headwater: refusing to listen on {host}: without keys only loopback is safe. Use 127.0.0.1.", err=True
        )
        raise typer.Exit(2)
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        hint = " Try another --port; 0 takes any free one." if error.errno == errno.EADDRINUSE else ""
        typer.echo(f"headwater: can't listen on {host}:{port}: {error.strerror}.{hint}", err=True)
        raise typer.Exit(1) from None
    name = f"[{host}]" if ":" in host else host
    typer.echo(f"Headwater {headwater.__version__} serves http://{name}:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
    uvicorn.Server(uvicorn.Config(build_app(), log_level="warning")).run([listener])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
