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
                report(measure(browser, Tab(browser.new_page(), house)))
            finally:
                browser.close()
                house.close()


def script_in(folder: Path) -> Path:
    text = "".join(TEXT.format(n=n) for n in range(SECTIONS))
    script = folder / "script.toml"
    answer = f'text = """\n{text}"""\npace = {{ tokens_per_s = 300 }}\n'
    script.write_text(f"[[models.scripted.answers]]\n{answer}")
    return script


def measure(browser: Browser, tab: Tab) -> dict[str, Any]:
    session_id = tab.house.post("/api/sessions", {"parameters": {"model": "scripted"}})["id"]
    tab.open(f"#/s/{session_id}")
    expect(tab.message).to_be_visible()
    received = counted(tab.page)
    tab.page.evaluate(WATCH)
    browser.start_tracing(page=tab.page, categories=CATEGORIES)
    run = tab.house.post(f"/api/sessions/{session_id}/messages", {"content": "Go"})["run"]
    # Not by looking at the page: to look is a task there, too.
    eventually(lambda: tab.house.get(f"/api/runs/{run['id']}")["outcome"] is not None, tab.page.wait_for_timeout)
    tab.page.wait_for_timeout(500)
    traced = msgspec.json.decode(browser.stop_tracing())["traceEvents"]
    tasks = tab.page.evaluate("tasks")
    tab.wait_for_end()
    expect(tab.answer).to_contain_text(f"Section {SECTIONS - 1}")
    used = tab.house.get(f"/api/runs/{run['id']}")["usage"]["output_tokens"]
    return {"tasks": tasks, "cpu_ms": cpu_ms(traced), "tokens": used, "bytes": received()}


def cpu_ms(traced: list[dict[str, Any]]) -> list[float]:
    """What each task of the page's own thread took of a core, however many others wanted it meanwhile."""
    painted = {(one["pid"], one["tid"]) for one in traced if one["name"] == "FireAnimationFrame"}
    tasks = (one for one in traced if one["name"] == "RunTask" and (one["pid"], one["tid"]) in painted)
    return [one["tdur"] / 1000 for one in tasks if "tdur" in one]


def counted(page: Page) -> Any:
    """A function that tells what has come over the network since."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    lengths: list[int] = []
    session.on("Network.dataReceived", lambda event: lengths.append(event["dataLength"]))
    return lambda: sum(lengths)


def report(found: dict[str, Any]) -> None:
    wall = [ms for ms in found["tasks"] if ms > LIMIT_MS]
    cpu = [ms for ms in found["cpu_ms"] if ms > LIMIT_MS]
    print("| tokens | tasks over 50 ms of CPU | longest | by the clock | longest | CPU a token | bytes a token |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    print(
        f"| {found['tokens']} | {len(cpu)} | {max(found['cpu_ms'], default=0):.0f} ms | {len(wall)} "
        f"| {max(found['tasks'], default=0):.0f} ms | {sum(found['cpu_ms']) / found['tokens']:.2f} ms "
        f"| {found['bytes'] / found['tokens']:.0f} |"
    )


if __name__ == "__main__":
    main()
