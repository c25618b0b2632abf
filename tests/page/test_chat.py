"""The chat itself: the list, the composer, answers with code, thoughts and tools."""

import base64
import re
from collections.abc import Callable

from playwright.sync_api import APIResponse, BrowserContext, Route, expect

from tests.page.house import SAFETY_MS, House, Tab, tokens

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

MARKDOWN = """\
# A title

Some **bold** text with `code`, and a [link](https://example.com/a).

- one
- two

| a | b |
|---|---:|
| 1 | 2 |

```python
def flow(spring):
    return spring
```

The end."""


def test_an_answer_streams_is_kept_and_its_conversation_is_in_the_list(tab: Tab) -> None:
    tab.ask("Tell me something", "quick")
    tab.wait_for_end()
    assert tab.text() == tokens(30)
    expect(tab.answer.locator(".ending")).to_have_count(0)
    entry = tab.page.get_by_role("navigation").get_by_role("link", name="Tell me something")
    expect(entry).to_have_attribute("aria-current", "page")
    expect(tab.page.get_by_role("heading", name="Today")).to_be_visible()
    tab.page.reload()
    expect(tab.answer.locator(".md")).to_contain_text("t29")
    assert tab.text() == tokens(30)


def test_markdown_is_shown_as_such_with_colours_and_a_copy_of_the_code(tab: Tab, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.ask(MARKDOWN, "echo")
    tab.wait_for_end()
    said = tab.answer.locator(".md")
    expect(said.locator("h1")).to_have_text("A title")
    expect(said.locator("strong")).to_have_text("bold")
    expect(said.locator("td").nth(1)).to_have_text("2")
    expect(said.locator(".hljs-keyword").first).to_have_text("def")
    expect(said.locator("a")).to_have_attribute("rel", re.compile("noopener"))
    told = tab.ever("Copied")
    copied = "navigator.clipboard.readText()"
    said.get_by_role("button", name="Copy code").click()
    tab.until(lambda: tab.page.evaluate(copied) == "def flow(spring):\n    return spring")
    tab.until(told)
    tab.answer.get_by_role("button", name="Copy answer").click()
    tab.until(lambda: tab.page.evaluate(copied) == MARKDOWN)


def test_blocks_that_are_settled_are_not_made_again(tab: Tab) -> None:
    tab.ask("\n\n".join(["# A title", *(f"Paragraph {n} of many." for n in range(600))]), "paced")
    expect(tab.answer.locator(".block").nth(2)).to_be_visible()
    tab.page.evaluate("document.querySelector('.answer .block h1').marked = 1")
    expect(tab.answer.locator(".block").nth(25)).to_be_visible()
    assert tab.page.evaluate("document.querySelector('.answer .block h1').marked") == 1
    tab.stop.click()
    expect(tab.answer.locator(".ending")).to_be_visible()
    assert tab.page.evaluate("document.querySelector('.answer .block h1').marked") == 1


def test_enter_sends_shift_enter_does_not_and_neither_does_a_word_that_is_being_composed(tab: Tab) -> None:
    tab.choose("echo")
    tab.message.fill("one")
    height = "area => area.getBoundingClientRect().height"
    low = tab.message.evaluate(height)
    tab.message.press("Shift+Enter")
    tab.message.press_sequentially("two")
    expect(tab.message).to_have_value("one\ntwo")
    # It grows with what is written.
    assert tab.message.evaluate(height) > low
    tab.message.dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    tab.message.dispatch_event("keydown", {"key": "Enter", "keyCode": 229, "bubbles": True})
    expect(tab.answers).to_have_count(0)
    tab.message.press("Enter")
    expect(tab.page.locator(".bubble-text")).to_have_text("one\ntwo")
    expect(tab.message).to_have_value("")


def test_before_the_first_word_there_are_three_things_to_try(tab: Tab) -> None:
    tries = tab.page.locator(".tries button")
    expect(tries).to_have_count(3)
    for n, (model, prompt) in enumerate(
        [("demo/story", "the story of a river"), ("demo/story", "another river"), ("demo/flaky", "cut after 20")]
    ):
        tries.nth(n).click()
        expect(tab.message).to_have_value(re.compile(prompt))
        expect(tab.page.get_by_role("button", name=f"Model: {model}")).to_be_visible()
    tab.message.press("Enter")
    expect(tab.answer.locator(".ending.bad")).to_contain_text("Partial.")


def test_what_is_said_is_shown_once_however_the_page_learns_that_it_is_stored(tab: Tab) -> None:
    held: list[tuple[Route, APIResponse]] = []
    tab.page.route("**/messages", lambda route: _hold(route, held))
    tab.ask("Only once", "slow")
    # The run's first words came by the event connection, while the answer to what was said is still under way.
    expect(tab.page.locator(".said:not(.pending) .bubble-text")).to_have_text("Only once")
    expect(tab.page.locator(".bubble-text")).to_have_count(1)
    # What is said meanwhile comes after it, and nothing that comes late takes the focus away.
    tab.ask("And then")
    search = tab.page.get_by_label("Search all conversations")
    search.focus()
    tab.until(lambda: len(held) == 1)
    route, answer = held.pop()
    route.fulfill(response=answer)
    tab.page.unroute("**/messages")
    expect(tab.page.locator(".queue-text")).to_have_text("And then")
    expect(search).to_be_focused()
    tab.wait_for_words(3)
    expect(tab.page.locator(".bubble-text")).to_have_count(1)
    tab.stop.click()
    expect(tab.answer.locator(".ending")).to_be_visible()


def _hold(route: Route, held: list[tuple[Route, APIResponse]]) -> None:
    if route.request.method == "POST":
        held.append((route, route.fetch()))
    else:
        route.continue_()


def test_drafts_are_kept_for_each_conversation(tab: Tab) -> None:
    first = tab.house.said("quick", "First")
    second = tab.house.said("quick", "Second")
    tab.message.fill("for a new one")
    tab.open(f"#/s/{first}")
    tab.message.fill("for the first")
    tab.open(f"#/s/{second}")
    expect(tab.message).to_have_value("")
    tab.page.reload()
    tab.open(f"#/s/{first}")
    expect(tab.message).to_have_value("for the first")
    tab.open("#/")
    expect(tab.message).to_have_value("for a new one")


def test_images_by_paste_and_by_drop(tab: Tab) -> None:
    script = """([element, type, bytes]) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], "a.png", {type: "image/png"}));
        const event = type === "paste" ? new ClipboardEvent(type, {clipboardData: data, bubbles: true, cancelable: true})
            : new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true});
        document.querySelector(element).dispatchEvent(event);
    }"""
    code = base64.b64encode(PIXEL).decode()
    tab.page.evaluate(script, [".composer textarea", "paste", code])
    expect(tab.page.get_by_alt_text("Attachment 1")).to_be_visible()
    tab.page.evaluate(script, [".thread", "drop", code])
    expect(tab.page.get_by_alt_text("Attachment 2")).to_be_visible()
    tab.page.get_by_role("button", name="Remove attachment 2").click()
    expect(tab.page.locator(".thumb")).to_have_count(1)
    tab.ask("What is it?", "quick")
    tab.wait_for_end()
    shown = tab.page.locator(".bubble img")
    expect(shown).to_have_count(1)
    assert shown.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    asked = tab.house.upstream_requests("quick")[-1]["body"]["messages"][-1]["content"]
    assert any(part["type"] == "image_url" for part in asked)


def test_conversations_are_renamed_and_deleted(tab: Tab) -> None:
    tab.ask("To be renamed", "quick")
    tab.wait_for_end()
    for title, key in (("Never mind", "Escape"), ("A better name", "Enter")):
        tab.page.get_by_role("button", name="More for To be renamed").click(force=True)
        tab.page.get_by_role("menuitem", name="Rename").click()
        tab.page.get_by_label("New title").fill(title)
        tab.page.keyboard.press(key)
    expect(tab.page.get_by_role("heading", name="A better name")).to_be_visible()
    session_id = tab.session_id
    assert tab.house.get(f"/api/sessions/{session_id}")["title"] == "A better name"
    tab.page.get_by_role("button", name="More for A better name").click(force=True)
    tab.page.get_by_role("menuitem", name="Delete").click()
    tab.page.get_by_role("button", name="Delete", exact=True).click()
    expect(tab.page.get_by_role("link", name="A better name")).to_have_count(0)
    expect(tab.page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    tab.open(f"#/s/{session_id}")
    expect(tab.page.get_by_role("heading", name="There is no such conversation")).to_be_visible()


def test_a_new_name_stays_though_the_list_was_asked_for_before(tab: Tab, house: House) -> None:
    house.said("quick", "To be renamed")
    expect(tab.page.get_by_role("link", name="To be renamed")).to_be_visible()
    held: list[tuple[Route, APIResponse]] = []
    tab.page.route("**/api/sessions?*", lambda route: held.append((route, route.fetch())))
    house.said("quick", "Another")
    tab.until(lambda: len(held) == 1)
    tab.page.get_by_role("button", name="More for To be renamed").click(force=True)
    tab.page.get_by_role("menuitem", name="Rename").click()
    tab.page.get_by_label("New title").fill("A better name")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("link", name="A better name")).to_be_visible()
    back = tab.ever("To be renamed")
    route, answer = held.pop()
    route.fulfill(response=answer)
    tab.page.unroute("**/api/sessions?*")
    expect(tab.page.get_by_role("link", name="Another")).to_be_visible()
    assert not back()


def test_search_finds_words_in_all_conversations_and_leads_to_the_message(tab: Tab, house: House) -> None:
    house.said("echo", "the quetzal is a bird", *[f"filler {n}" for n in range(8)])
    house.said("echo", "nothing of that kind")
    tab.page.keyboard.press("Control+k")
    tab.page.keyboard.type("quetzal bi")
    hit = tab.page.locator(".hit").first
    expect(hit).to_contain_text("the quetzal is a bird")
    expect(hit.locator("mark").first).to_have_text("quetzal")
    tab.page.locator(".hit").last.click()
    expect(tab.page.locator(".found")).to_contain_text("quetzal")
    expect(tab.page.locator(".found")).to_be_in_viewport()


def test_the_list_shows_what_runs_and_what_is_unread(tab: Tab, house: House) -> None:
    other = house.said("quick", "Answered elsewhere")
    entry = tab.page.locator(".entry", has_text="Answered elsewhere")
    expect(entry).to_have_class(re.compile("unread"))
    entry.get_by_role("link").click()
    expect(tab.answer).to_be_visible()
    expect(entry).not_to_have_class(re.compile("unread"))
    tab.open("#/")
    run = house.post(f"/api/sessions/{other}/messages", {"content": "More", "model": "silent"})["run"]
    expect(entry.locator(".dot")).to_be_visible()
    house.post(f"/api/runs/{run['id']}/stop", {})
    expect(entry.locator(".dot")).to_have_count(0)
    expect(entry).to_have_class(re.compile("unread"))


def test_what_ends_before_the_page_can_be_told_is_not_shown_as_running(tab: Tab, house: House) -> None:
    session_id = house.post("/api/sessions", {"title": "Soon over"})["id"]
    run = house.post(f"/api/sessions/{session_id}/messages", {"content": "Go", "model": "silent"})["run"]
    held: list[Route] = []
    tab.page.route("**/api/events*", lambda route: held.append(route))
    tab.page.reload()
    entry = tab.page.locator(".entry", has_text="Soon over")
    expect(entry.locator(".dot")).to_be_visible()
    tab.until(lambda: len(held) > 0)
    house.post(f"/api/runs/{run['id']}/stop", {})
    # What is held goes on: the last of them, where the page has given up on an earlier one.
    tab.page.unroute("**/api/events*")
    expect(entry.locator(".dot")).to_have_count(0)


def test_parameters_hold_for_the_conversation(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Conversation settings").click()
    tab.page.get_by_label("Instructions").fill("Be brief.")
    tab.page.get_by_label("Temperature").fill("0.3")
    tab.page.get_by_label("Reasoning effort").select_option("low")
    tab.page.get_by_role("button", name="Save").click()
    tab.ask("Go", "quick")
    tab.wait_for_end()
    asked = tab.house.upstream_requests("quick")[-1]["body"]
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (asked["temperature"], asked["reasoning_effort"]) == (0.3, "low")
    tab.page.get_by_role("button", name="Conversation settings").click()
    expect(tab.page.get_by_label("Instructions")).to_have_value("Be brief.")
    tab.page.get_by_label("Temperature").fill("")
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
    tab.ask("Again")
    expect(tab.answers).to_have_count(2)
    tab.wait_for_end()
    assert "temperature" not in tab.house.upstream_requests("quick")[-1]["body"]


def test_thoughts_are_folded_and_say_how_long_they_took(tab: Tab) -> None:
    tab.ask("Go", "thinker")
    tab.wait_for_end()
    thought = tab.answer.locator(".thought")
    expect(thought.locator("summary")).to_contain_text(re.compile(r"Thought for [\d.]+ m?s"))
    expect(thought.locator(".thought-text")).not_to_be_visible()
    thought.locator("summary").click()
    expect(thought.locator(".thought-text")).to_contain_text("r39")
    tab.page.reload()
    thought.locator("summary").click()
    expect(thought.locator("summary")).to_contain_text(re.compile(r"Thought for [\d.]+ m?s"))


def test_tools_show_their_arguments_result_and_state_and_wait_for_a_person(new_tab: Callable[[], Tab]) -> None:
    tab = new_tab().open()
    tab.ask("calculate 6 * 7, then send a postcard to Ann", "demo/agent")
    cards = tab.page.locator(".tool")
    expect(cards.first.locator(".tool-state")).to_contain_text("done")
    waiting = tab.page.locator(".tool.waiting")
    expect(waiting.get_by_role("button", name="Approve")).to_be_visible(timeout=SAFETY_MS)
    expect(tab.page.locator(".entry .dot.waiting")).to_be_visible()
    # It waits over a reload, and for as long as it takes.
    tab.page.reload()
    waiting.get_by_role("button", name="Approve").click()
    tab.wait_for_end()
    expect(tab.page.locator(".tool .tool-state")).to_contain_text(["done", "done"])
    cards.first.locator("summary").click()
    expect(cards.first.locator(".labelled").last).to_contain_text("42")
    tab.ask("send a postcard to Bob")
    waiting.get_by_label("Reason for denying").fill("Not him")
    waiting.get_by_role("button", name="Deny").click()
    expect(tab.answers).to_have_count(2)
    tab.wait_for_end()
    expect(cards.last.locator(".tool-state")).to_contain_text("failed")


def test_a_call_that_was_cut_is_shown_as_not_run(tab: Tab) -> None:
    """C26."""
    tab.ask("Please, a torn tool call", "demo/flaky")
    expect(tab.answer.locator(".tool .tool-state")).to_contain_text("not run")
    expect(tab.answer.locator(".ending.bad")).to_be_visible()
    tab.page.reload()
    expect(tab.answer.locator(".tool .tool-state")).to_contain_text("not run")


def test_the_reader_stays_where_they_scrolled_to(tab: Tab) -> None:
    tab.ask("\n\n".join(f"Line {n}" for n in range(60)), "echo")
    tab.wait_for_end()
    held: list[tuple[Route, APIResponse]] = []
    tab.page.route("**/messages", lambda route: _hold(route, held))
    tab.ask("Go", "brisk")
    tab.wait_for_words(5)
    thread = tab.page.locator(".thread")
    from_end = "box => box.scrollHeight - box.scrollTop - box.clientHeight"
    tab.until(lambda: thread.evaluate(from_end) < 50)
    thread.evaluate("box => { box.scrollTop = 200; }")
    expect(tab.page.get_by_role("button", name="Follow along")).to_be_visible()
    # Also where the answer to what was said comes only now.
    tab.until(lambda: len(held) == 1)
    route, answer = held.pop()
    route.fulfill(response=answer)
    tab.page.unroute("**/messages")
    tab.wait_for_words(200)
    assert thread.evaluate("box => box.scrollTop") == 200
    tab.page.get_by_role("button", name="Follow along").click()
    tab.wait_for_words(300)
    tab.until(lambda: thread.evaluate(from_end) < 50)
    # What begins by itself, here from the queue, moves nobody either.
    tab.ask("And then")
    expect(tab.page.locator(".queue-text")).to_be_visible()
    thread.evaluate("box => { box.scrollTop = 200; }")
    expect(tab.page.get_by_role("button", name="Follow along")).to_be_visible()
    run_id = tab.answer.get_attribute("data-run")
    tab.house.post(f"/api/runs/{run_id}/stop", {})
    tab.page.get_by_role("button", name="Go on", exact=True).click()
    expect(tab.answers).to_have_count(3)
    tab.wait_for_words(20)
    assert thread.evaluate("box => box.scrollTop") == 200
    tab.stop.click()


def test_what_was_chosen_just_before_holds_for_what_is_said(tab: Tab) -> None:
    """Also if the choice is slow to reach the server."""
    tab.ask("First", "echo")
    tab.wait_for_end()
    held: list[Route] = []
    tab.page.route("**/api/sessions/*", lambda route: _hold_change(route, held))
    tab.ask("Second", "quick")
    tab.until(lambda: len(held) == 1)
    expect(tab.page.get_by_role("button", name="Model: quick")).to_be_visible()
    expect(tab.page.locator(".bubble-text")).to_have_text(["First", "Second"])
    assert len(tab.house.messages(tab.session_id)) == 2
    held[0].continue_()
    expect(tab.answers).to_have_count(2)
    tab.wait_for_end()
    assert tab.text() == tokens(30)


def _hold_change(route: Route, held: list[Route]) -> None:
    if route.request.method == "PATCH" and "parameters" in (route.request.post_data or ""):
        held.append(route)
    else:
        route.continue_()
