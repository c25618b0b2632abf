"""What is compared: each between the same mock upstream and the same load generator, a process (or several) of its own.

Nothing is compared that is not there: nginx where it is installed, LiteLLM where it can be. None writes a line of
log for a request.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

NGINX: Final = """
daemon off; worker_processes 1; pid {run}/nginx.pid; error_log stderr error;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_body_temp_path {run}; proxy_temp_path {run}; fastcgi_temp_path {run};
  uwsgi_temp_path {run}; scgi_temp_path {run};
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 1024; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096; keepalive_requests 1000000;
    location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }}
  }}
}}
"""
HEADWATER: Final = """
[server]
port = {port}
log_level = "warning"
[store]
url = "sqlite:{run}/headwater-{port}.db"
[upstreams.up]
base_url = "http://127.0.0.1:{upstream}/v1"
list_models = false
"""
LITELLM: Final = """
model_list:
  - model_name: "*"
    litellm_params: {{ model: "openai/*", api_base: "http://127.0.0.1:{upstream}/v1", api_key: sk-mock }}
"""
LITELLM_KEY: Final = "sk-bench0123456789abcdef0123456789abcdef"
LITELLM_ENV: Final = Path(".bench/litellm")
INSTALL_S: Final = 400.0


class Contender(Struct, frozen=True, kw_only=True):
    name: str
    port: int
    process: subprocess.Popen[bytes] | None = None
    """None: the upstream itself."""
    more: dict[str, Any] = {}
    """What a request to it has besides."""
    headers: dict[str, str] = {}
    slow: bool = False
    """It is measured last and once, with fewer requests and shorter paced streams: else all would wait for it."""
    floor: bool = False
    """No server, but what one could reach at best."""

    def cpu_s(self) -> float:
        """Of the process, its threads and its children, to the nanosecond."""
        tasks = [task for pid in self._pids() for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def commits_s(self) -> float:
        """How long it was busy with commits, by its own account; 0 for who has none."""
        if not self.name.startswith("Headwater"):
            return 0.0
        told = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10).read().decode()
        sums = (line for line in told.splitlines() if line.startswith("headwater_store_commit_seconds_sum "))
        return float(next(sums).split()[1])

    def memory_kb(self) -> int:
        lines = [line for pid in self._pids() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def _pids(self) -> list[int]:
        return [] if self.process is None else [self.process.pid, *_children(self.process.pid)]


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(stat.parent.name))
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: list[str],
    port: int,
    *,
    environ: Mapping[str, str] | None = None,
    ready_s: float = 20,
    stderr: int | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, **(environ or {})}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=env)
    try:
        until_s = time.monotonic() + ready_s
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until_s:
                    raise RuntimeError(f"{command} did not begin to listen ({process.returncode})") from None
                time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


class Stage:
    """The mock upstream, and what was started in front of it."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self._upstream = free_port()
        self._start([sys.executable, "-m", "bench.upstream", str(self._upstream)], self._upstream)

    def direct(self) -> Contender:
        return Contender(name="direct, no gateway", port=self._upstream)

    def nginx(self) -> Contender | None:
        nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if nginx is None:
            return None
        port = free_port()
        user = "user root;" if os.geteuid() == 0 else ""
        config = self._written("nginx.conf", user + NGINX, port)
        process = self._start([nginx, "-p", str(self._folder), "-c", config, "-e", "stderr"], port)
        return Contender(name="nginx, a plain proxy", port=port, process=process)

    def skeleton(self, name: str, mode: str) -> Contender:
        port = free_port()
        database = str(self._folder / f"{mode}.db")
        command = [sys.executable, "-m", "bench.skeleton", str(port), str(self._upstream), mode, database]
        return Contender(name=name, port=port, process=self._start(command, port), floor=True)

    def headwater(self, name: str, **more: str) -> Contender:
        """`headwater serve`, as it is started anywhere."""
        port = free_port()
        config = self._written(f"headwater-{port}.toml", HEADWATER, port)
        command = [sys.executable, "-c", "from headwater.cli import main; main()", "serve", "--config", config]
        return Contender(name=name, port=port, process=self._start(command, port), more=dict(more))

    def litellm(self) -> Contender | None:
        """None: it can't be installed here, or was not to be (HEADWATER_BENCH_LITELLM=no)."""
        if os.environ.get("HEADWATER_BENCH_LITELLM") == "no" or not _install_litellm():
            return None
        port = free_port()
        config = self._written("litellm.yaml", LITELLM, port)
        command = [str(LITELLM_ENV / "bin/litellm"), "--config", config, "--host", "127.0.0.1", "--port", str(port)]
        environ = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": LITELLM_KEY, "PYTHONPATH": ""}
        process = self._start(command, port, environ=environ, ready_s=120, stderr=subprocess.DEVNULL)
        headers = {"authorization": f"Bearer {LITELLM_KEY}"}
        return Contender(name="LiteLLM proxy", port=port, process=process, headers=headers, slow=True)

    def _written(self, name: str, text: str, port: int) -> str:
        file = self._folder / name
        file.write_text(text.format(run=self._folder, upstream=self._upstream, port=port))
        return str(file)

    def _start(self, command: list[str], port: int, **how: Any) -> subprocess.Popen[bytes]:
        return self._stack.enter_context(running(command, port, **how))


def _install_litellm() -> bool:
    """Into an environment of its own, once; in bounded time."""
    made = LITELLM_ENV / ".made"
    if made.exists():
        return True
    print("*Installing LiteLLM into .bench (once)…*", file=sys.stderr)
    pip = [str(LITELLM_ENV / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "litellm[proxy]"]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(LITELLM_ENV)], check=True, timeout=INSTALL_S)
        subprocess.run(pip, check=True, timeout=INSTALL_S)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"*LiteLLM could not be installed: {error}*", file=sys.stderr)
        return False
    made.touch()
    return True
