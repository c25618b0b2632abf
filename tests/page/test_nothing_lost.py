"""Reload, kill, no network, other tabs: the page comes back to the run where it was, with no gap and no repeat."""

import re
from collections.abc import Callable

from playwright.sync_api import BrowserContext, Route, expect

from tests.page.house import SAFETY_MS, House, Tab, tokens


def is_whole(tab: Tab) -> bool:
    """What can be seen of the answer is the beginning of what is said: nothing twice, nothing missing."""
    seen = tab.text()
    return seen != "" and tokens(seen.count("t")).startswith(seen)


def test_a_reload_in_mid_stream_comes_back_to_the_run(tab: Tab) -> None:
    before = len(tab.house.upstream_requests("slow"))
    tab.ask("Go", "slow")
    tab.wait_for_words(10)
    tab.page.reload()
    tab.wait_for_words(40)
    expect(tab.stop).to_be_visible()
    assert is_whole(tab)
    assert len(tab.house.upstream_requests("slow")) == before + 1
    tab.stop.click()
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you")
    assert is_whole(tab)
    [_, answer, _] = tab.house.messages(tab.session_id)
    assert " ".join(answer["content"].split()) == tab.text()


def test_a_killed_server_that_comes_back_shows_what_was_kept_and_offers_to_go_on(tab: Tab) -> None:
    """C51."""
    tab.ask("Go", "slow")
    tab.wait_for_words(20)
    tab.house.kill()
    seen = tab.text()
    # Whether the answer goes on there nobody can know.
    said = "Reconnecting… What has come is kept; the rest is fetched when the server is back."
    expect(tab.page.get_by_text(said)).to_be_visible()
    tab.house.start()
    expect(tab.answer.locator(".ending")).to_contain_text("Interrupted: the server went down")
    expect(tab.page.get_by_text("Reconnecting")).to_have_count(0)
    assert is_whole(tab)
    assert tab.text().startswith(seen.rpartition(" ")[0])
    expect(tab.stop).to_have_count(0)
    expect(tab.answer.get_by_role("button", name="Continue")).to_be_visible()
    [_, answer, notice] = tab.house.messages(tab.session_id)
    assert (answer["status"], notice["code"]) == ("partial", "interrupted")
    assert " ".join(answer["content"].split()) == tab.text()


def test_ten_seconds_offline_lose_nothing_and_stop_works_again(tab: Tab, context: BrowserContext) -> None:
    tab.ask("Go", "slow")
    tab.wait_for_words(20)
    context.set_offline(True)
    expect(tab.page.get_by_text("Reconnecting")).to_be_visible()
    # What had come by then is on the page.
    tab.page.wait_for_timeout(1000)
    held = tab.text()
    tab.page.wait_for_timeout(9000)
    assert tab.text() == held
    context.set_offline(False)
    # As many as came meanwhile, and some more.
    tab.wait_for_words(held.count("t") + 400)
    assert is_whole(tab)
    expect(tab.page.get_by_text("Reconnecting")).to_have_count(0)
    tab.stop.click()
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you")
    assert is_whole(tab)


def test_a_stop_in_one_tab_is_seen_in_the_other(new_tab: Callable[[], Tab]) -> None:
    second, first = new_tab(), new_tab().open()
    first.ask("Go", "slow")
    first.wait_for_words(5)
    second.open(f"#/s/{first.session_id}")
    second.wait_for_words(10)
    expect(second.stop).to_be_visible()
    first.front().stop.click()
    for one in (first, second):
        expect(one.answer.locator(".ending")).to_contain_text("Stopped by you")
        expect(one.stop).to_have_count(0)
    assert first.text() == second.text()
    # And what is said in one is answered in both.
    second.front().ask("More", "quick")
    expect(second.answers).to_have_count(2)
    expect(first.answers).to_have_count(2)
    second.wait_for_end()
    expect(first.answer.locator(".actions")).to_be_visible()
    assert first.text() == second.text() == tokens(30)


def test_eight_tabs_at_once_all_get_every_word_and_requests_go_through(new_tab: Callable[[], Tab]) -> None:
    """A browser has six connections for a server; all eight are visible here, which is the harder case."""
    tabs = [new_tab() for _ in range(8)]
    tabs[0].front().open().ask("Go", "slow")
    tabs[0].wait_for_words(3)
    for one in tabs[1:]:
        one.open(f"#/s/{tabs[0].session_id}")
    for one in tabs:
        one.wait_for_words(40)
        assert is_whole(one)
    tabs[7].front().stop.click()
    for one in tabs:
        expect(one.answer.locator(".ending")).to_contain_text("Stopped by you")
    assert len({one.text() for one in tabs}) == 1


def test_what_could_not_be_fetched_is_fetched_again_without_another_hint(tab: Tab, house: House) -> None:
    session_id = house.said("quick", "Hello")
    tab.open(f"#/s/{session_id}")
    expect(tab.answers).to_have_count(1)
    here = re.compile(f"/api/sessions/{session_id}$")
    lost: list[str] = []

    def lose(route: Route) -> None:
        lost.append(route.request.method)
        route.abort()

    tab.page.route(here, lose)
    # Something is said elsewhere, and all that this tab hears of it is one hint.
    run = house.post(f"/api/sessions/{session_id}/messages", {"content": "Go", "model": "slow"})["run"]
    tab.until(lambda: "GET" in lost and "t9 " in house.get(f"/api/runs/{run['id']}")["text"])
    tab.page.unroute(here)
    expect(tab.answers).to_have_count(2)
    tab.wait_for_words(20)


def test_a_hidden_tab_lets_its_connection_go_and_comes_back_with_its_cursor(tab: Tab) -> None:
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url) if "/api/events" in request.url else None)
    tab.ask("Go", "slow")
    tab.wait_for_words(10)
    tab.set_hidden(True)
    hidden, count = tab.text(), len(asked)
    run_id = str(tab.answer.get_attribute("data-run"))
    tab.until(lambda: tab.house.get(f"/api/runs/{run_id}")["text"].count("t") > hidden.count("t") + 40)
    tab.house.post(f"/api/runs/{run_id}/stop", {})
    tab.house.wait_for_outcome(run_id)
    # Only what had come by then was still to be painted.
    assert tab.text().count("t") < hidden.count("t") + 40
    assert len(asked) == count
    tab.set_hidden(False)
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you")
    assert is_whole(tab)
    assert tab.text() == " ".join(tab.house.messages(tab.session_id)[1]["content"].split())
    [again] = asked[count:]
    cursor = re.search(rf"{run_id}:(\d+)", again)
    assert cursor
    assert int(cursor[1]) >= hidden.count("t")


def test_what_ended_while_nobody_looked_does_not_spin(tab: Tab, house: House) -> None:
    tab.ask("Go", "silent")
    expect(tab.answer).to_contain_text("Waiting for the first word")
    run_id = str(tab.answer.get_attribute("data-run"))
    tab.page.goto("about:blank")
    house.post(f"/api/runs/{run_id}/stop", {})
    tab.page.go_back()
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you", timeout=SAFETY_MS)
    expect(tab.page.locator(".ripple, .caret")).to_have_count(0)
    expect(tab.stop).to_have_count(0)
