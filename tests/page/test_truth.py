"""The truth panel: an answer's log as a picture, a list and its raw events; and what answers took."""

import re
from collections.abc import Iterator

import msgspec
import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.page.axe import violations
from tests.page.house import House, Tab

SHAKY = """
keep_logs_days = 0
[upstreams.broken]
dialect = "chat"
base_url = "{url}/v1"
api_key = "any"
retries = 1
list_models = false
idle_timeout_s = 2
[[models]]
name = "stuck"
upstream = "broken"
model = "sim/tokens-50@50,stall-after-10"
[[models]]
name = "shaky"
upstream = "broken"
model = "sim/status-503"
fallbacks = ["slow"]
"""


@pytest.fixture(scope="module")
def server(simulator_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("truth"), simulator_url, SHAKY.format(url=simulator_url))
    yield house
    house.close()


def truth(tab: Tab) -> Locator:
    """Opened, of the last answer."""
    tab.answer.get_by_role("button", name="What really happened").click()
    panel = tab.page.get_by_role("dialog", name="What really happened")
    expect(panel.locator(".facts")).to_be_visible()
    return panel


def facts(panel: Locator) -> dict[str, list[str]]:
    found = panel.locator(".facts > div").all_inner_texts()
    return {name: rest for name, *rest in (text.split("\n") for text in found)}


def test_a_retry_a_fallback_and_a_stop_are_all_in_the_picture(tab: Tab, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = tab.page
    tab.ask("Go", "shaky")
    tab.wait_for_words(10)
    # Who really answers is said from the first word on.
    expect(tab.answer.locator(".by")).to_contain_text("answered by sim/sim/tokens-20000@40")
    # It can be watched while the answer comes, and stays when it has ended.
    panel = truth(tab)
    expect(panel.locator(".truth-outcome")).to_have_text("Answering")
    expect(panel.locator(".reading-count")).to_have_text(re.compile(r"^([\d,]+) of \1$"))
    run_id = str(tab.answer.get_attribute("data-run"))
    tab.house.post(f"/api/runs/{run_id}/stop", {})
    expect(panel.locator(".truth-outcome")).to_have_text("Stopped")
    page.keyboard.press("Escape")
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you")
    panel = truth(tab)
    expect(panel.locator(".truth-story")).to_contain_text(
        "StoppedStopped by you. sim · sim/tokens-20000@40 was answering"
    )
    # A busy machine may have its silences.
    assert [one for one in panel.locator(".moment b").all_inner_texts() if one != "Silence"] == [
        "Asked for",
        "First attempt",
        "Attempt failed",
        "Tried again",
        "Attempt failed",
        "Fell back",
        "First token",
        "Stopped",
    ]
    expect(panel.locator(".moment", has_text="Attempt failed").first).to_contain_text("HTTP 503")
    told = facts(panel)
    assert told["Attempts"] == ["3", "1 retry, 1 fallback"]
    assert told["Tokens"][0].startswith("~")
    assert told["Tokens"][1] == "estimated"
    assert panel.locator(".lane-names span").all_inner_texts() == [
        "broken · sim/status-503",
        "sim · sim/tokens-20000@40",
    ]
    # Drawn to scale: the fallback lies where its time is.
    log = tab.house.log(run_id)
    ends = log[-1]["t"]
    first = next(event["t"] for event in log if event["type"] == "text")
    # Both at once: it is drawn again as its place is measured.
    both = "(svg) => [svg.width.baseVal.value, Number(svg.querySelector('.first').getAttribute('cx'))]"
    width, drawn = panel.locator(".river").evaluate(both)
    assert drawn - 18 == pytest.approx(first / ends * (width - 2 * 18), abs=1)
    assert violations(page) == []
    # By keyboard, from moment to moment.
    time = panel.get_by_role("slider", name="Time")
    time.focus()
    page.keyboard.press("Home")
    expect(time).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("End")
    expect(time).to_have_attribute("aria-valuetext", re.compile(r"it has ended, (\d+) of \1 tokens"))
    page.keyboard.press("PageUp")
    expect(time).to_have_attribute("aria-valuetext", re.compile(", 1 of|tokens/s, "))
    panel.locator(".raw summary").click()
    panel.get_by_role("button", name="Copy all events").click()
    tab.until(lambda: "ended" in page.evaluate("navigator.clipboard.readText()"))
    copied = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert [msgspec.json.decode(line) for line in copied] == log
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(tab.answer.get_by_role("button", name="What really happened")).to_be_focused()


def test_a_log_of_twenty_thousand_events_is_drawn_and_can_be_walked_through(tab: Tab) -> None:
    tab.ask("Go", "long")
    tab.wait_for_end()
    panel = truth(tab)
    assert facts(panel)["Tokens"] == ["20,000", "the provider's count"]
    panel.locator(".raw summary").click()
    rows = panel.get_by_role("option")
    expect(rows.first).to_be_visible()
    # Only what is in sight is made, and all of it can be reached.
    assert rows.count() < 60
    panel.get_by_role("listbox", name="Events").press("End")
    last = panel.locator(".raw-row.here")
    expect(last).to_contain_text("ended")
    assert int(str(last.get_attribute("aria-setsize"))) > 20_000
    expect(last).to_be_in_viewport()
    panel.get_by_label("Tokens, too").uncheck()
    tab.until(lambda: rows.count() < 15)


def test_a_stall_is_told_as_the_silence_that_it_was(tab: Tab) -> None:
    """C28."""
    tab.ask("Go", "stuck")
    tab.wait_for_end()
    panel = truth(tab)
    expect(panel.locator(".truth-outcome")).to_have_text("Failed")
    silence = panel.locator(".moment", has_text="Silence").last
    expect(silence).to_contain_text(re.compile(r"nothing came for \d+ s|nothing came for \d+\.\d s"))
    expect(panel.locator(".river .silence")).not_to_have_count(0)
    silence.focus()
    expect(panel.locator(".reading-what")).to_have_text(re.compile("tokens/s|silence"))


def test_an_answer_without_a_word_can_be_looked_into_too(tab: Tab) -> None:
    tab.ask("Please refuse.", "demo/flaky")
    panel = truth(tab)
    expect(panel.locator(".truth-outcome")).to_have_text("Failed")
    expect(panel).to_contain_text("The demo model was told to refuse this.")


def test_past_its_retention_it_says_so_and_shows_what_is_known(tab: Tab, house: House) -> None:
    tab.ask("Go", "steady")
    tab.wait_for_end()
    run_id = str(tab.answer.get_attribute("data-run"))
    house.kill()
    house.start()
    tab.until(lambda: house.get(f"/api/runs/{run_id}")["attempts"] == [])
    tab.page.reload()
    panel = truth(tab)
    expect(panel).to_contain_text("The events of this answer are no longer kept")
    told = facts(panel)
    assert told["Tokens"] == ["150", "the provider's count"]
    assert re.fullmatch(r"[\d.]+ m?s", told["Took"][0])
    expect(panel.locator(".truth-outcome")).to_have_text("Completed")


def test_figures_say_how_sure_they_are_and_unknown_is_never_0(tab: Tab) -> None:
    page = tab.page
    tab.ask("Go", "silent")
    tab.stop.click()
    tab.wait_for_end()
    total = page.locator(".session-figures")
    expect(total).to_have_text("tokens unknown")
    tab.ask("Go", "steady")
    tab.wait_for_end()
    figures = tab.answer.locator(".figures")
    expect(figures).to_have_text(re.compile(r"^150 tokens · [\d.]+/s · first after [\d.]+ m?s$"))
    expect(figures.locator(".unsure")).to_have_count(0)
    expect(total).to_have_text(re.compile(r"^\d+\+ in · 150\+ out$"))
    expect(total).to_have_attribute("title", re.compile("of 1 of them the provider reported none"))
    tab.ask("Go", "torn")
    expect(tab.answer.locator(".ending.bad")).to_be_visible()
    expect(tab.answer.locator(".figures .unsure")).to_have_text("~10 tokens")
