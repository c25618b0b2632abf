"""Several models side by side (C80–C82): each stopped on its own, each saying how it ended, one to go on with."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Route, expect

from tests.page.axe import violations
from tests.page.house import SAFETY_MS, House, Tab, eventually, tokens

LINGER_S = 3.0


def panes_of(tab: Tab) -> Locator:
    return tab.page.locator(".pane")


def pane_of(tab: Tab, model: str) -> Locator:
    return tab.page.get_by_role("region", name=model, exact=True)


def words(pane: Locator) -> str:
    return " ".join(" ".join(pane.locator(".md").all_inner_texts()).split())


def compare(tab: Tab, *models: str, content: str = "Go") -> Tab:
    """As somebody does it who chooses them one by one."""
    tab.open("#/compare")
    page = tab.page
    expect(page.get_by_role("button", name=re.compile("^Model 2:"))).to_be_visible()
    for number, model in enumerate(models, 1):
        chosen = page.get_by_role("button", name=re.compile(f"^Model {number}:"))
        (chosen if chosen.count() else page.get_by_role("button", name="Add: Add a model")).click()
        page.get_by_role("option", name=model, exact=True).click()
    for _ in range(len(models), page.locator(".chosen > li:not(.add)").count()):
        page.locator(".chosen > li:not(.add)").last.get_by_role("button", name=re.compile("^Remove")).click()
    return tab.ask(content)


def group_of(tab: Tab) -> str:
    expect(tab.page).to_have_url(re.compile("#/compare/grp_"))
    return tab.page.url.rpartition("/")[2]


def test_of_eight_panes_one_is_stopped_and_the_others_go_on(tab: Tab, house: House) -> None:
    """C80, C82."""
    before = len(house.upstream_requests("slow"))

    def upstreams_open() -> list[bool]:
        return [one["ending"] is None for one in house.upstream_requests("slow")[before:]]

    group = house.post("/api/groups", {"models": ["slow"] * 8, "content": "Go"})
    opened: list[str] = []
    tab.page.on("request", lambda request: opened.append(request.url) if "/events" in request.url else None)
    tab.open(f"#/compare/{group['id']}")
    panes = panes_of(tab)
    expect(panes).to_have_count(8)
    for n in range(8):
        expect(panes.nth(n)).to_contain_text("t9 ")
    # All of them on the page's own connection.
    assert {url.partition("?")[0] for url in opened} == {f"{house.url}/api/events"}
    assert opened[-1].count("run_") == 8
    panes.nth(2).get_by_role("button", name="Stop slow").click()
    expect(panes.nth(2).locator(".badge")).to_have_text("Stopped")
    # It is the one upstream connection that is closed.
    eventually(lambda: sorted(upstreams_open()) == [False] + [True] * 7)
    stopped = words(panes.nth(2))
    others = {n: words(panes.nth(n)).count("t") for n in (0, 1, 3, 4, 5, 6, 7)}
    for n, count in others.items():
        expect(panes.nth(n)).to_contain_text(f"t{count + 20} ")
        expect(panes.nth(n).locator(".badge")).to_have_text("Answering…")
    assert words(panes.nth(2)) == stopped
    [_, answer, notice] = house.messages(group["panes"][2]["session_id"])
    assert " ".join(answer["content"].split()) == stopped
    assert (answer["status"], notice["code"]) == ("partial", "stopped")
    assert sorted(upstreams_open()) == [False] + [True] * 7
    tab.page.get_by_role("button", name="Stop all").first.click()
    for n in range(8):
        expect(panes.nth(n).locator(".badge")).to_have_text("Stopped")
    expect(tab.page.get_by_role("button", name="Stop all")).to_have_count(0)


def finished(tab: Tab) -> list[str]:
    """The panes that were called complete at any moment since the page was loaded."""
    found: list[str] = tab.page.evaluate("[...(globalThis.__finished ?? [])]")
    return found


def test_what_failed_was_cut_or_was_stopped_is_never_shown_as_finished(tab: Tab) -> None:
    """C81: not at the end, and at no moment before it."""
    tab.page.add_init_script(
        """new MutationObserver(() => {
            for (const pane of document.querySelectorAll('.pane')) {
                if (pane.querySelector('.badge')?.textContent.includes('Completed')) {
                    (globalThis.__finished ??= new Set()).add(pane.ariaLabel);
                }
            }
        }).observe(document, {subtree: true, childList: true, characterData: true});"""
    )
    tab.page.reload()
    compare(tab, "torn", "quick", "slow", "silent")
    expect(pane_of(tab, "torn").locator(".badge")).to_have_text("Failed")
    expect(pane_of(tab, "torn")).to_contain_text("closed the connection before the answer was complete")
    expect(pane_of(tab, "torn").get_by_role("button", name="Continue")).to_be_visible()
    assert words(pane_of(tab, "torn")) == tokens(12)
    expect(pane_of(tab, "quick").locator(".badge")).to_have_text("Completed")
    for model in ("slow", "silent"):
        pane_of(tab, model).get_by_role("button", name=f"Stop {model}").click()
        expect(pane_of(tab, model).locator(".badge")).to_have_text("Stopped")
    # What came before it is not forgotten when something else is said.
    tab.ask("More")
    expect(pane_of(tab, "torn").locator(".ending")).to_have_count(2)
    tab.page.get_by_role("button", name="Stop all").first.click()
    badges = tab.page.locator(".pane .badge")
    expect(badges).to_have_text(["Failed", "Completed", "Stopped", "Stopped"])
    assert finished(tab) == ["quick"]
    # The same after a reload: the link opens the same comparison.
    tab.page.reload()
    expect(badges).to_have_text(["Failed", "Completed", "Stopped", "Stopped"])
    assert finished(tab) == ["quick"]
    # What is not known is not 0.
    assert pane_of(tab, "silent").locator("dd").all_inner_texts() == ["–\nunknown"] * 3
    assert pane_of(tab, "quick").locator("dd").last.inner_text() == "30"
    assert pane_of(tab, "slow").locator("dd").last.inner_text().startswith("~")


def test_how_an_answer_ended_is_not_shown_before_its_words(tab: Tab, house: House) -> None:
    """C81: a run may end before the page has seen any of it."""
    group = house.post("/api/groups", {"models": ["echo", "quick"], "content": "First words"})
    for pane in group["panes"]:
        house.wait_for_outcome(pane["run"]["id"])
    held: list[Route] = []
    tab.page.route("**/messages*", lambda route: held.append(route))
    tab.open(f"#/compare/{group['id']}")
    badges = tab.page.locator(".pane .badge")
    expect(badges).to_have_text(["Loading…"] * 2)
    tab.until(lambda: len(held) == 2)
    expect(badges).to_have_text(["Loading…"] * 2)
    for route in held:
        route.continue_()
    expect(badges).to_have_text(["Completed"] * 2)
    assert [words(pane) for pane in panes_of(tab).all()] == ["First words", tokens(30)]


def test_what_the_group_says_of_an_earlier_answer_does_not_hold_for_a_later_one(tab: Tab, house: House) -> None:
    """C81: the group and its panes are fetched each on its own."""
    group = house.post("/api/groups", {"models": ["quick", "echo"], "content": "First words"})
    tab.open(f"#/compare/{group['id']}")
    page, pane = tab.page, panes_of(tab).first
    expect(page.locator(".pane .badge")).to_have_text(["Completed"] * 2)
    held: list[Route] = []
    page.route(f"**/api/groups/{group['id']}", lambda route: held.append(route))
    pane.get_by_role("button", name="Model of this pane: quick").click()
    page.get_by_role("option", name="silent", exact=True).click()
    pane.get_by_role("button", name="Stop silent").click()
    # It is stored, and can be asked for again; what the group knows is from before.
    expect(pane.get_by_role("button", name="Retry")).to_be_visible()
    assert pane.locator(".badge").inner_text() == "Stopped"
    assert pane.locator("dd").all_inner_texts() == ["–\nunknown"] * 3
    tab.until(lambda: len(held) > 0)
    page.unroute(f"**/api/groups/{group['id']}")
    # What is stored last is the answer of another, and not called this one's.
    page.reload()
    expect(pane.get_by_role("button", name="Retry")).to_be_visible()
    expect(pane.locator(".badge")).to_have_text("Stopped")


def test_answer_again_means_the_last_answer_also_before_it_is_fetched(tab: Tab, house: House) -> None:
    group = house.post("/api/groups", {"models": ["echo"], "content": "First words"})
    tab.open(f"#/compare/{group['id']}")
    page, pane = tab.page, panes_of(tab).first
    expect(pane.locator(".badge")).to_have_text("Completed")
    held: list[Route] = []
    page.route("**/messages", lambda route: held.append(route) if route.request.method == "GET" else route.continue_())
    tab.ask("Second words")
    expect(pane.locator(".pane-answer")).to_have_text(["First words", "Second words"])
    expect(pane.locator(".badge")).to_have_text("Completed")
    before = str(pane.locator(".pane-answer").last.get_attribute("data-run"))
    pane.get_by_role("button", name="Answer again: echo").click()
    # What is held goes on.
    page.unroute("**/messages")
    expect(pane.locator(".pane-answer").last).not_to_have_attribute("data-run", before)
    expect(pane.locator(".pane-answer")).to_have_text(["First words", "Second words"])


def test_follow_up_swap_retry_copy_and_pick(tab: Tab, context: BrowserContext, house: House) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    compare(tab, "echo", "quick", "demo/echo", content="First words")
    page = tab.page
    for model, said in (("echo", "First words"), ("quick", tokens(30)), ("demo/echo", "First words")):
        expect(pane_of(tab, model).locator(".badge")).to_have_text("Completed")
        assert words(pane_of(tab, model)) == said
    # To all of them.
    tab.ask("Second words")
    expect(page.locator(".pane-answer")).to_have_count(6)
    expect(page.locator(".pane .badge")).to_have_text(["Completed"] * 3)
    assert words(pane_of(tab, "echo").locator(".pane-answer").last) == "Second words"
    # Another model in its place: it answers the last question, and the next.
    pane_of(tab, "quick").get_by_role("button", name="Model of this pane: quick").click()
    page.get_by_role("option", name="echo", exact=True).click()
    expect(panes_of(tab).nth(1).locator(".pane-answer").last).to_have_text("Second words")
    expect(panes_of(tab).nth(1)).to_have_attribute("aria-label", "echo")
    last = pane_of(tab, "demo/echo").locator(".pane-answer").last
    before = str(last.get_attribute("data-run"))
    pane_of(tab, "demo/echo").get_by_role("button", name="Answer again: demo/echo").click()
    expect(last).not_to_have_attribute("data-run", before)
    expect(last).to_have_text("Second words")
    expect(pane_of(tab, "demo/echo").locator(".badge")).to_have_text("Completed")
    group = house.get(f"/api/groups/{group_of(tab)}")
    assert [pane["model"] for pane in group["panes"]] == ["echo", "echo", "demo/echo"]
    assert {pane["run"]["on_disconnect"] for pane in group["panes"]} == {"cancel"}
    panes_of(tab).nth(1).get_by_role("button", name="Copy answer of echo").click()
    tab.until(lambda: page.evaluate("navigator.clipboard.readText()") == "Second words")
    pane_of(tab, "demo/echo").get_by_role("button", name="Expand demo/echo").click()
    expect(page.locator(".pane:visible")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".pane:visible")).to_have_count(3)
    # It goes on as a conversation like any other, and only that one is in the list.
    panes = {pane["session_id"] for pane in group["panes"]}
    assert not panes & {session["id"] for session in house.get("/api/sessions")["sessions"]}
    pane_of(tab, "demo/echo").get_by_role("button", name="Pick demo/echo").click()
    assert tab.session_id == group["panes"][2]["session_id"]
    expect(page.locator(".bubble")).to_have_text(["First words", "Second words"])
    expect(page.locator(".entry.here")).to_have_count(1)
    assert len(panes & {session["id"] for session in house.get("/api/sessions")["sessions"]}) == 1
    tab.ask("Third words")
    expect(tab.answers).to_have_count(3)
    expect(tab.answer.locator(".md")).to_have_text("Third words")


@pytest.fixture
def impatient(simulator_url: str, tmp_path: Path) -> Iterator[House]:
    """It soon stops what nobody follows."""
    house = House(tmp_path, simulator_url, f"[server]\nlinger_s = {LINGER_S}\n")
    yield house
    house.close()


def test_a_comparison_goes_on_in_a_hidden_tab_and_ends_when_it_is_left(
    context: BrowserContext, impatient: House
) -> None:
    """C41: its runs are stopped when nobody follows them, and a tab that shows them does."""
    tab, house = Tab(context.new_page(), impatient), impatient
    compare(tab, "slow", "silent")
    expect(pane_of(tab, "slow")).to_contain_text("t9 ")
    runs = [pane["run"]["id"] for pane in house.get(f"/api/groups/{group_of(tab)}")["panes"]]
    tab.set_hidden(True)
    until = words(pane_of(tab, "slow")).count("t") + 40 * (LINGER_S + 1)
    tab.until(lambda: house.get(f"/api/runs/{runs[0]}")["text"].count("t") > until)
    assert [house.get(f"/api/runs/{run_id}")["status"] for run_id in runs] == ["running", "running"]
    tab.page.get_by_role("link", name="New chat").click()
    for run_id in runs:
        eventually(lambda run_id=run_id: house.get(f"/api/runs/{run_id}")["outcome"] is not None)  # type: ignore[misc]
        assert house.get(f"/api/runs/{run_id}")["outcome"] == {"type": "stopped", "reason": "disconnect"}


@pytest.mark.parametrize("phone", [False, True])
def test_axe_finds_nothing_and_a_phone_swipes(browser: Browser, house: House, phone: bool) -> None:
    context = browser.new_context(
        reduced_motion="reduce",
        viewport={"width": 390, "height": 844} if phone else {"width": 1280, "height": 800},
        has_touch=phone,
        is_mobile=phone,
    )
    context.set_default_timeout(SAFETY_MS)
    tab = Tab(context.new_page(), house).open("#/compare")
    page = tab.page
    expect(page.locator(".chosen li").first).to_be_visible()
    assert violations(page) == []
    group = house.post("/api/groups", {"models": ["torn", "quick", "silent", "thinker"], "content": "Go"})
    tab.open(f"#/compare/{group['id']}")
    expect(pane_of(tab, "torn").locator(".badge")).to_have_text("Failed")
    expect(pane_of(tab, "thinker").locator(".badge")).to_have_text("Completed")
    assert violations(page) == []
    sizes = panes_of(tab).evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().toJSON())")
    scroller = page.locator(".panes")
    if phone:
        # One at a time, with a glimpse of the next, and the last is a few swipes away.
        assert all(300 < size["width"] < 390 for size in sizes)
        scroller.evaluate("(box) => box.scrollTo({left: box.scrollWidth, behavior: 'instant'})")
        expect(pane_of(tab, "thinker")).to_be_in_viewport(ratio=0.95)
        taps = page.locator(".pane-line button, .pane-head button").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().height)"
        )
        assert scroller.evaluate("(box) => getComputedStyle(box).scrollSnapType") == "x mandatory"
        assert min(taps) >= 44
    else:
        # All of them on the screen, whole.
        assert scroller.evaluate("(box) => box.scrollHeight <= box.clientHeight")
        assert {size["top"] for size in sizes} == {min(size["top"] for size in sizes), max(s["top"] for s in sizes)}
    context.close()


def test_a_comparison_is_found_again_and_can_be_forgotten(tab: Tab, house: House) -> None:
    group = house.post("/api/groups", {"models": ["slow", "quick"], "content": "Rivers or lakes?"})
    tab.open("#/compare")
    page = tab.page
    past = page.get_by_role("region", name="Past comparisons")
    found = past.get_by_role("link", name=re.compile("^Rivers or lakes"))
    expect(found).to_contain_text("slow · quick")
    expect(found.locator(".dot")).to_be_visible()
    assert violations(page) == []
    # One that is made meanwhile comes before it.
    house.post("/api/groups", {"models": ["quick"], "content": "Another"})
    expect(past.locator(".past-title")).to_contain_text(["Another", "Rivers or lakes?"])
    found.focus()
    page.keyboard.press("Enter")
    assert group_of(tab) == group["id"]
    expect(panes_of(tab)).to_have_count(2)
    page.go_back()
    past.get_by_role("button", name="Delete Rivers or lakes?").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(found).to_have_count(0)
    expect(past.locator(".past-title")).to_have_count(1)
    tab.until(lambda: len(house.get("/api/groups")["groups"]) == 1)
    run_id = group["panes"][0]["run"]["id"]
    assert [run["id"] for run in house.get("/api/runs?status=running")["runs"] if run["id"] == run_id] == []
    tab.open(f"#/compare/{group['id']}")
    expect(page.get_by_role("heading", name="There is no such comparison")).to_be_visible()


def test_a_comparison_that_is_not_there_says_so(tab: Tab) -> None:
    tab.open("#/compare/grp_none")
    expect(tab.page.get_by_role("heading", name="There is no such comparison")).to_be_visible()
