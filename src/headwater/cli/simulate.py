"""`headwater simulate`. What it needs is imported when it runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import headwater
from headwater.cli import exits

if TYPE_CHECKING:
    from headwater.recording import Recording
    from headwater.simulate.simulation import Simulation


def simulate(
    script: Annotated[Path | None, typer.Argument(help="A script in TOML; see docs/simulate.md.")] = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8791,
    replay: Annotated[
        list[Path] | None, typer.Option(help="Play this recording to every request; several, one after the other.")
    ] = None,
    speed: Annotated[float, typer.Option(min=0.001, help="Of a replay: 2 is twice as fast.")] = 1.0,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--lenient",
            help="Refuse what the real provider would refuse (default).",
        ),
    ] = None,
) -> None:
    """A model provider that answers, and fails, as a script says."""
    import asyncio

    from headwater.errors import HeadwaterError

    try:
        simulation = _build(script, replay or [], speed, strict)
    except HeadwaterError as error:
        exits.leave(str(error))
    except OSError as error:
        exits.leave(f"{error.filename} can't be read: {error.strerror}.")
    try:
        asyncio.run(_serve(simulation, host, port))
    except OSError as error:
        exits.leave(f"can't listen on {host}:{port}: {error.strerror}. Try another --port.", exits.FAILED)
    except KeyboardInterrupt:
        raise typer.Exit(exits.CTRL_C) from None


def _build(script: Path | None, replay: list[Path], speed: float, strict: bool | None) -> "Simulation":
    import msgspec

    from headwater.simulate.load import load_scenario
    from headwater.simulate.replay import Replays
    from headwater.simulate.script import Scenario
    from headwater.simulate.simulation import Simulation

    scenario = load_scenario(script.read_bytes(), str(script)) if script else Scenario()
    if strict is not None:
        scenario = msgspec.structs.replace(scenario, strict=strict)
    return Simulation(scenario, replays=Replays([_read(path) for path in replay], speed=speed))


def _read(path: Path) -> "Recording":
    from headwater.recording import RecordingUnreadable, read

    try:
        return read(path.read_bytes())
    except RecordingUnreadable as error:
        raise RecordingUnreadable(f"{path}: {error}") from None


async def _serve(simulation: "Simulation", host: str, port: int) -> None:
    import asyncio
    import signal

    from headwater.simulate.serve import listen

    server, url = await listen(simulation, host.strip("[]"), port)
    typer.echo(f"Headwater {headwater.__version__} simulates at {url} (Ctrl-C ends it)")
    typer.echo(f"  OpenAI's clients: {url}/v1    Anthropic's: {url}    what was asked: {url}/simulate/requests")
    typer.echo("  models: " + ", ".join(simulation.known_names()))
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    server.close()
    simulation.close()
