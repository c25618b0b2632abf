"""What a command costs before it does anything: CPU and time of `headwater --help`, and of what asks a server."""

import os
import statistics
import subprocess
import sys
import time

TIMES = 9
COMMANDS = {
    "python -c pass": "pass",
    "headwater --help": "import sys; sys.argv = ['headwater', '--help']; from headwater.cli import main; main()",
    "what `headwater runs` needs": "import headwater.cli.table, headwater.client, headwater.config.load",
    "what `headwater serve` needs": "import headwater.cli.serve, headwater.server.process",
}


def once(code: str) -> tuple[float, float]:
    """Seconds of CPU, and seconds."""
    began_s = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, env=dict(os.environ))
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime, time.monotonic() - began_s


def main() -> None:
    print("\n## Starting a command\n\n| | CPU, median | least | time, median |\n|---|---|---|---|")
    for name, code in COMMANDS.items():
        once(code)
        runs = [once(code) for _ in range(TIMES)]
        cpu = [cpu_s * 1000 for cpu_s, _ in runs]
        took_ms = statistics.median(took_s * 1000 for _, took_s in runs)
        print(f"| {name} | {statistics.median(cpu):.0f} ms | {min(cpu):.0f} ms | {took_ms:.0f} ms |")


if __name__ == "__main__":
    main()
