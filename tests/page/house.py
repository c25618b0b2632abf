"""The page's surroundings, all of them real: a server and a simulator as processes, a browser in front of them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO, Any, Final

import msgspec
from playwright.sync_api import Browser, Locator, Page, Playwright, expect

from tests.commands import start

SAFETY_MS: Final = 45_000
"""No test waits longer for anything. It is no measure of anything."""
MODELS: Final = {
    "slow": "sim/tokens-20000@40",
    "brisk": "sim/tokens-20000@200",
    "quick": "sim/tokens-30",
    "steady": "sim/tokens-150@200",
    "torn": "sim/tokens-50@200,cut-after-12",
    "late": "sim/tokens-20@50,first-3",
    "silent": "sim/stall-after-0",
    "long": "sim/tokens-20000",
    "thinker": "sim/think-40,tokens-20@100",
    "echo": "sim/echo",
    "paced": "sim/echo@300",
    "scripted": "scripted",
}


def find_browser(playwright: Playwright) -> Browser | None:
    """The machine's own, or one that Playwright has. None: there is none, and none can be had."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None and not Path(playwright.chromium.executable_path).exists():
        found = _installed()
        if found is None and not Path(playwright.chromium.executable_path).exists():
            return None
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=found, args=arguments)


def _installed() -> str | None:
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        # Packages' scripts must not ask: there is nobody to answer.
        environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-qq", "-y", "chromium"]):
            subprocess.run(command, capture_output=True, env=environ)
        if found := shutil.which("chromium"):
            return found
    with suppress(OSError):
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], capture_output=True)
    return None


class House:
    """A server with a database of its own, that can be killed and comes back at the same address."""

    def __init__(self, folder: Path, simulator_url: str, more: str = "") -> None:
        self.simulator_url = simulator_url
        self._folder = folder
        models = "\n".join(
            f'[[models]]\nname = "{name}"\nupstream = "sim"\nmodel = "{model}"' for name, model in MODELS.items()
        )
        (folder / "headwater.toml").write_text(
            f'[store]\nurl = "sqlite:{folder}/headwater.db"\n{more}\n'
            f'[upstreams.sim]\ndialect = "chat"\nbase_url = "{simulator_url}/v1"\napi_key = "any"\nretries = 0\n'
            f"list_models = false\ncool_down_s = 0\n{models}\n"
        )
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        port = self.url.rpartition(":")[2] or "0"
        environ = {"HEADWATER_STORE__URL": f"sqlite:{self._folder}/headwater.db"}
        self._process = start("serve", "--port", port, folder=self._folder, environ=environ)
        self.url = address_of(self._process)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def close(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def clear(self) -> None:
        """Stops and forgets everything."""
        for status in ("running", "waiting", "queued"):
            for run in self.get(f"/api/runs?limit=200&status={status}")["runs"]:
                self.post(f"/api/runs/{run['id']}/stop", {"wait_s": 5})
        for what in ("groups", "sessions"):
            for one in self.get(f"/api/{what}?limit=200")[what]:
                self._ask("DELETE", f"/api/{what}/{one['id']}")

    # ----------------------------------------------------------- what it knows

    def get(self, path: str) -> Any:
        return msgspec.json.decode(self._ask("GET", path))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return msgspec.json.decode(self._ask("POST", path, body))

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        sent = None if body is None else msgspec.json.encode(body)
        request = urllib.request.Request(f"{self.url}{path}", sent, {"content-type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            said: bytes = answer.read()
            return said

    def log(self, run_id: str) -> list[Any]:
        """The events of a run that has ended."""
        with urllib.request.urlopen(f"{self.url}/api/runs/{run_id}/events", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return [msgspec.json.decode(line[6:]) for line in lines if line.startswith("data: ")]

    def messages(self, session_id: str) -> list[Any]:
        found: list[Any] = self.get(f"/api/sessions/{session_id}/messages")["items"]
        return found

    def said(self, model: str, *contents: str) -> str:
        """A conversation that was held before, somewhere else. Its id."""
        session_id: str = self.post("/api/sessions", {"parameters": {"model": model}})["id"]
        for content in contents:
            run = self.post(f"/api/sessions/{session_id}/messages", {"content": content})["run"]
            self.wait_for_outcome(run["id"])
        return session_id

    def wait_for_outcome(self, run_id: str) -> None:
        eventually(lambda: self.get(f"/api/runs/{run_id}")["outcome"] is not None)

    def upstream_requests(self, model: str) -> list[Any]:
        """What was asked of the simulator's model of that name."""
        with urllib.request.urlopen(f"{self.simulator_url}/simulate/requests", timeout=30) as answer:
            asked = msgspec.json.decode(answer.read())["requests"]
        return [one for one in asked if one["model"] == MODELS[model]]


@contextmanager
def open_simulator(script: Path | None = None) -> Iterator[str]:
    given = () if script is None else (str(script),)
    process = start("simulate", *given, "--port", "0")
    try:
        yield address_of(process)
    finally:
        process.kill()
        process.wait()


def address_of(process: subprocess.Popen[str]) -> str:
    """As it says. All that it says later is read, too: it would wait for somebody to do so."""
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found, (line, process.communicate())
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        Thread(target=_drain, args=(pipe,), daemon=True).start()
    return found[0]


def _drain(pipe: IO[str]) -> None:
    with pipe:
        deque(pipe, maxlen=0)


def eventually(condition: Callable[[], bool], wait: Callable[[float], None] = lambda ms: time.sleep(ms / 1000)) -> None:
    """Until it holds."""
    until = time.monotonic() + SAFETY_MS / 1000
    while not condition():
        assert time.monotonic() < until, "it never came to hold"
        wait(50)


# ------------------------------------------------------------------------ acting


class Tab:
    """A page, in the words of somebody who uses it."""

    def __init__(self, page: Page, house: House) -> None:
        self.page = page
        self.house = house

    def open(self, path: str = "#/") -> "Tab":
        self.page.goto(f"{self.house.url}/{path}")
        # Where only the fragment changed, that is told to the page a moment later.
        self.page.evaluate("new Promise((done) => setTimeout(done))")
        return self

    def set_hidden(self, hidden: bool) -> None:
        """What the browser tells a page of which another tab, or another window, is in front."""
        self.page.evaluate(
            """(hidden) => {
                Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
                document.dispatchEvent(new Event('visibilitychange'));
            }""",
            hidden,
        )

    def front(self) -> "Tab":
        """What is done by pointer and keyboard needs frames, and only the tab in front has them."""
        self.page.bring_to_front()
        return self

    @property
    def message(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    def choose(self, model: str) -> None:
        self.page.get_by_role("button", name=re.compile("^Model:")).click()
        self.page.get_by_role("option", name=model, exact=True).click()

    def ask(self, text: str, model: str | None = None) -> "Tab":
        if model is not None:
            self.choose(model)
        self.message.fill(text)
        self.message.press("Enter")
        return self

    @property
    def answers(self) -> Locator:
        return self.page.locator(".answer")

    @property
    def answer(self) -> Locator:
        """The last one."""
        return self.answers.last

    @property
    def stop(self) -> Locator:
        return self.page.get_by_role("button", name="Stop", exact=True)

    @property
    def session_id(self) -> str:
        expect(self.page).to_have_url(re.compile("#/s/"))
        return self.page.url.rpartition("#/s/")[2].partition("/")[0]

    def text(self) -> str:
        """Of the last answer, as it is seen."""
        found = self.answer.locator(".md").all_inner_texts()
        return " ".join("".join(found).split())

    def wait_for_words(self, count: int) -> None:
        """Until so many tokens (`t0 t1 …`) can be seen."""
        expect(self.answer).to_contain_text(f"t{count - 1} ", timeout=SAFETY_MS)

    def wait_for_end(self) -> None:
        expect(self.answer.locator(".actions, .ending").first).to_be_visible(timeout=SAFETY_MS)

    def until(self, condition: Callable[[], bool]) -> None:
        """The page goes on meanwhile, and what it does is heard of."""
        eventually(condition, self.page.wait_for_timeout)

    def ever(self, text: str) -> Callable[[], bool]:
        """Whether it was to be seen at any moment since, however short that was."""
        self.page.evaluate(
            """(text) => new MutationObserver(() => {
                if (document.body.innerHTML.includes(text)) (globalThis.everSeen ??= new Set()).add(text);
            }).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true})""",
            text,
        )
        return lambda: bool(self.page.evaluate("(text) => globalThis.everSeen?.has(text) ?? false", text))


def tokens(count: int) -> str:
    """What the simulator says, as it is seen."""
    return " ".join(f"t{n}" for n in range(count))
