"""Stopping, and every way on from an answer that did not come to its end; what is said meanwhile waits, or interrupts."""

from collections.abc import Callable

from playwright.sync_api import expect

from tests.page.house import Tab, eventually, tokens


def stopped(tab: Tab) -> Tab:
    """With an answer that was stopped in the middle."""
    tab.ask("Go", "slow")
    tab.wait_for_words(10)
    tab.stop.click()
    expect(tab.answer.locator(".ending")).to_contain_text("Partial. Stopped by you.")
    return tab


def test_stop_keeps_what_arrived_closes_the_upstream_and_leaves_the_draft(tab: Tab) -> None:
    """C42, C43."""
    tab.ask("Go", "slow")
    tab.wait_for_words(10)
    tab.message.fill("What I was about to say")
    tab.stop.click()
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you")
    expect(tab.message).to_have_value("What I was about to say")
    [_, answer, notice] = tab.house.messages(tab.session_id)
    assert " ".join(answer["content"].split()) == tab.text()
    assert (answer["status"], answer["outcome"]["type"], notice["code"]) == ("partial", "stopped", "stopped")
    eventually(lambda: tab.house.upstream_requests("slow")[-1]["ending"] is not None)
    assert tab.house.upstream_requests("slow")[-1]["ending"].startswith("client_")


def test_escape_stops_only_when_nothing_else_is_open(tab: Tab) -> None:
    tab.ask("Go", "slow")
    tab.wait_for_words(3)
    tab.page.get_by_role("button", name="Conversation settings").click()
    expect(tab.page.get_by_role("dialog")).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
    expect(tab.stop).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you")


def test_stop_in_the_list(tab: Tab) -> None:
    tab.ask("A long answer", "slow")
    tab.wait_for_words(3)
    tab.page.get_by_role("link", name="New chat").click()
    tab.page.get_by_role("button", name="Stop A long answer").click()
    expect(tab.page.get_by_role("button", name="Stop A long answer")).to_have_count(0)
    assert tab.house.get("/api/runs")["runs"][0]["outcome"]["type"] == "stopped"


def test_continue_goes_on_where_it_stopped_and_repeats_nothing(tab: Tab) -> None:
    """C27, C43: what was kept stands, and with what follows it is all that was to be said."""
    whole = " ".join(f"w{n}" for n in range(180))
    tab.ask(whole, "demo/echo")
    expect(tab.answer).to_contain_text("w5 ")
    tab.stop.click()
    expect(tab.answer.locator(".ending")).to_contain_text("Partial. Stopped by you.")
    said = tab.page.locator(".answer .md")
    held = said.inner_text()
    assert held
    assert whole.startswith(held)
    assert len(held) < len(whole)
    tab.answer.get_by_role("button", name="Continue").click()
    expect(tab.answers).to_have_count(2)
    expect(tab.answer).to_contain_text("w179")
    expect(tab.answer.locator(".actions")).to_be_visible()
    expect(tab.answer.locator(".who")).to_contain_text("continued")
    expect(tab.answer.locator(".ending")).to_have_count(0)
    for _ in range(2):
        expect(said).to_have_count(2)
        first, second = said.all_inner_texts()
        assert first == held
        assert whole in (f"{first}{second}", f"{first} {second}")
        # The same after a reload.
        tab.page.reload()
    contents = [item["content"] for item in tab.house.messages(tab.session_id) if item["kind"] == "message"]
    assert contents[0] == whole
    assert "".join(contents[1:]) == whole


def test_retry_makes_a_branch_and_there_is_a_way_back(tab: Tab) -> None:
    stopped(tab)
    held = tab.text()
    tab.answer.get_by_role("button", name="Answer again").click()
    tab.page.get_by_role("menuitem", name="With quick").click()
    expect(tab.answer.locator(".branch-at")).to_have_text("2/2")
    assert tab.text() == tokens(30)
    tab.answer.get_by_role("button", name="Previous branch").click()
    expect(tab.answer.locator(".branch-at")).to_have_text("1/2")
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you")
    assert tab.text() == held
    tab.page.reload()
    expect(tab.answer.locator(".branch-at")).to_have_text("1/2")


def test_edit_and_resend_makes_a_branch(tab: Tab) -> None:
    tab.ask("First words", "echo")
    tab.wait_for_end()
    tab.page.locator(".said").hover()
    tab.page.get_by_role("button", name="Edit and resend").click()
    field = tab.page.get_by_label("Edit your message")
    field.fill("Other words")
    field.press("Enter")
    expect(tab.page.locator(".bubble")).to_have_text("Other words")
    expect(tab.answer.locator(".md")).to_have_text("Other words")
    expect(tab.page.locator(".said .branch-at")).to_have_text("2/2")
    tab.page.locator(".said").get_by_role("button", name="Previous branch").click()
    expect(tab.answer.locator(".md")).to_have_text("First words")


def test_branching_off_makes_a_conversation_of_its_own(tab: Tab) -> None:
    tab.ask("First words", "echo")
    tab.wait_for_end()
    first = tab.session_id
    tab.answer.get_by_role("button", name="Branch into a new conversation").click()
    expect(tab.page).not_to_have_url(f"{tab.house.url}/#/s/{first}")
    tab.ask("Second words")
    expect(tab.answers).to_have_count(2)
    expect(tab.answer.locator(".md")).to_have_text("Second words")
    assert len(tab.house.messages(first)) == 2


def test_a_stream_that_breaks_says_so_and_can_be_retried(tab: Tab) -> None:
    """C10, C25."""
    tab.ask("Go", "torn")
    ending = tab.answer.locator(".ending.bad")
    expect(ending).to_contain_text("closed the connection before the answer was complete")
    assert tab.text() == tokens(12)
    ending.get_by_role("button", name="Retry").click()
    expect(tab.answer.locator(".branch-at")).to_have_text("2/2")


def test_what_is_said_meanwhile_waits_on_the_server_can_be_changed_and_is_seen_in_another_tab(
    new_tab: Callable[[], Tab],
) -> None:
    """C52."""
    other, tab = new_tab(), new_tab().open()
    tab.ask("Go", "slow")
    tab.wait_for_words(3)
    for text in ("one", "two", "three"):
        tab.message.fill(text)
        tab.message.press("Enter")
        expect(tab.page.locator(".queue-text").last).to_have_text(text)
    other.front().open(f"#/s/{tab.session_id}")
    waiting = other.page.locator(".queue li")
    expect(waiting).to_have_count(3)
    changes: list[str] = []
    other.page.on("request", lambda request: changes.append(request.url) if request.method == "PATCH" else None)
    for text, key in (("never mind", "Escape"), ("two and a half", "Enter")):
        waiting.nth(1).locator(".queue-text").click()
        other.page.get_by_label("Edit waiting message").fill(text)
        other.page.keyboard.press(key)
    expect(tab.page.locator(".queue-text").nth(1)).to_have_text("two and a half")
    assert len([url for url in changes if url.endswith("/queue")]) == 1
    waiting.nth(0).get_by_role("button", name="Later").click()
    expect(tab.page.locator(".queue-text").nth(0)).to_have_text("two and a half")
    waiting.nth(2).get_by_role("button", name="Remove from the queue").click()
    expect(tab.page.locator(".queue-text")).to_have_text(["two and a half", "one"])
    tab.front().stop.click()
    expect(tab.page.get_by_text("Paused")).to_be_visible()
    tab.page.reload()
    expect(tab.page.locator(".queue-text")).to_have_text(["two and a half", "one"])
    tab.page.get_by_role("button", name="Go on", exact=True).click()
    expect(tab.page.locator(".bubble").last).to_have_text("two and a half")
    tab.stop.click()
    tab.page.get_by_role("button", name="Remove from the queue").click()
    expect(tab.page.locator(".queue")).to_have_count(0)


def test_a_message_can_interrupt(tab: Tab) -> None:
    tab.ask("Go", "slow")
    tab.wait_for_words(3)
    tab.message.fill("Something else")
    tab.page.get_by_role("button", name="Interrupt").click()
    expect(tab.answers).to_have_count(2)
    expect(tab.answers.first.locator(".ending")).to_contain_text("a newer message took its place")
    tab.wait_for_words(3)
    tab.stop.click()
    expect(tab.answer.locator(".ending")).to_contain_text("Stopped by you")
