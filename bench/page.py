"""The page while a long answer streams: does it ever keep a person waiting, and what does it cost on the wire?

A real Chromium in front of the real server, on this machine's cores: it takes what the server leaves.
"""

import tempfile
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.page.house import House, Tab, eventually, find_browser, open_simulator

LIMIT_MS = 50
CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline"]
SECTIONS = 50
TEXT = """\
## Section {n}

The river goes **round** the hill, under the `bridge` and past the mill; it carries [leaves](https://example.com/{n}),
and ducks, and one paper boat, and it has been going like this since before there was anyone to watch.

1. which sea it reaches
2. what it is called, by *whoever* gets there first
   - and by whom else

| River | rises in | Length |
|---|---|---:|
| Rhine | the Alps | 1,230 km |
| Elbe | the Giant Mountains | 1,094 km |

```python
def flow(springs):
    for spring in springs:
        yield from spring  # {n}
```

"""
WATCH = """() => {
    globalThis.tasks = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)))
        .observe({type: 'longtask'});
}"""


def main() -> None:
    print("\n## The page: 5,000 tokens of Markdown, 300 a second\n")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = find_browser(playwright)
        if browser is None:
            print("There is no browser here.")
            return
        with open_simulator(script_in(folder)) as simulator_url:
            house = House(folder, simulator_url)
            try:
                # Each in a page of its own: to trace, and to count, takes time from the page.
                watched = watch(Tab(browser.new_page(), house))
                report(watched, trace(browser, Tab(browser.new_page(), house)))
            finally:
                browser.close()
                house.close()


def script_in(folder: Path) -> Path:
    text = "".join(TEXT.format(n=n) for n in range(SECTIONS))
    script = folder / "script.toml"
    answer = f'text = """\n{text}"""\npace = {{ tokens_per_s = 300 }}\n'
    script.write_text(f"[[models.scripted.answers]]\n{answer}")
    return script


def watch(tab: Tab) -> list[float]:
    """Tasks over 50 ms by the clock, with whatever else wanted a core meanwhile."""
    session_id = opened(tab)
    tab.page.evaluate(WATCH)
    ask(tab, session_id)
    tasks: list[float] = tab.page.evaluate("tasks")
    tab.page.close()
    return tasks


def trace(browser: Browser, tab: Tab) -> dict[str, Any]:
    session_id = opened(tab)
    received = counted(tab.page)
    browser.start_tracing(page=tab.page, categories=CATEGORIES)
    run_id = ask(tab, session_id)
    traced = msgspec.json.decode(browser.stop_tracing())["traceEvents"]
    used = tab.house.get(f"/api/runs/{run_id}")["usage"]["output_tokens"]
    return {"cpu_ms": cpu_ms(traced), "tokens": used, "bytes": received()}


def opened(tab: Tab) -> str:
    session_id: str = tab.house.post("/api/sessions", {"parameters": {"model": "scripted"}})["id"]
    tab.open(f"#/s/{session_id}")
    expect(tab.message).to_be_visible()
    # Nobody has asked anything a second later.
    tab.page.wait_for_timeout(1000)
    return session_id


def ask(tab: Tab, session_id: str) -> str:
    """Until all of it is shown."""
    run_id: str = tab.house.post(f"/api/sessions/{session_id}/messages", {"content": "Go"})["run"]["id"]
    # Not by looking at the page: to look is a task there, too. Nor often: the server has the same cores.
    tab.page.wait_for_timeout(SECTIONS * 320)
    eventually(lambda: tab.house.get(f"/api/runs/{run_id}")["outcome"] is not None, tab.page.wait_for_timeout)
    tab.page.wait_for_timeout(500)
    tab.wait_for_end()
    expect(tab.answer).to_contain_text(f"Section {SECTIONS - 1}")
    return run_id


def cpu_ms(traced: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """When each task of the page's own thread began, and what it took of a core, until the last word is painted."""
    frames = [one for one in traced if one["name"] == "FireAnimationFrame"]
    painted = {(one["pid"], one["tid"]) for one in frames}
    last = max(one["ts"] for one in frames)
    tasks = (one for one in traced if one["name"] == "RunTask" and (one["pid"], one["tid"]) in painted)
    return sorted((one["ts"] / 1000, one["tdur"] / 1000) for one in tasks if "tdur" in one and one["ts"] <= last)


def quarter_ms(tasks: list[tuple[float, float]], n: int) -> float:
    """What the tasks of that quarter of the time took together."""
    began, ended = tasks[0][0], tasks[-1][0]
    step = (ended - began) / 4
    return sum(ms for at, ms in tasks if began + n * step <= at < began + (n + 1) * step)


def counted(page: Page) -> Any:
    """A function that tells what has come over the network since."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    lengths: list[int] = []
    session.on("Network.dataReceived", lambda event: lengths.append(event["dataLength"]))
    return lambda: sum(lengths)


def report(watched: list[float], traced: dict[str, Any]) -> None:
    cpu = [ms for _, ms in traced["cpu_ms"]]
    slowing = quarter_ms(traced["cpu_ms"], 3) / quarter_ms(traced["cpu_ms"], 1)
    print("| tokens | tasks over 50 ms | longest | of CPU | longest | CPU a token | 4th/2nd quarter | bytes a token |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    print(
        f"| {traced['tokens']} | {len(watched)} | {f'{max(watched):.0f} ms' if watched else 'less'} "
        f"| {sum(ms > LIMIT_MS for ms in cpu)} | {max(cpu):.0f} ms | {sum(cpu) / traced['tokens']:.2f} ms "
        f"| {slowing:.2f} | {traced['bytes'] / traced['tokens']:.0f} |"
    )


if __name__ == "__main__":
    main()
