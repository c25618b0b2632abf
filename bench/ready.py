"""What the start of `headwater serve` takes, from the command to its being ready: CPU, and time."""

import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from bench.contenders import Contender, free_port

ROUNDS = 5


def start_once(folder: Path) -> tuple[float, float]:
    """Seconds of CPU, seconds."""
    port = free_port()
    environ = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "HEADWATER_STORE__URL": f"sqlite:{folder}/{port}.db"}
    command = [sys.executable, "-c", "from headwater.cli import main; main()", "serve", "--port", str(port)]
    start_s = time.perf_counter()
    process = subprocess.Popen(command, env=environ | _path(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _is_ready(port):
            if process.poll() is not None:
                raise RuntimeError(f"headwater serve ended with {process.returncode}")
            time.sleep(0.01)
        took_s = time.perf_counter() - start_s
        return Contender(name="", port=port, process=process).cpu_s(), took_s
    finally:
        process.terminate()
        process.wait(30)


def _path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path)}


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def main() -> None:
    if not Path("/proc/self/schedstat").exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        # The first one compiles what was not compiled yet.
        start_once(Path(folder))
        found = [start_once(Path(folder)) for _ in range(ROUNDS)]
    cpu_s, took_s = (statistics.median(column) for column in zip(*found, strict=True))
    print("\n## The start of `headwater serve`, until it is ready (budget: 1 s of CPU)\n")
    print(f"| CPU s | s |\n|---|---|\n| {cpu_s:.2f} | {took_s:.2f} |")


if __name__ == "__main__":
    main()
