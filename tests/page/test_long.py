"""Long answers: all of it is there, and costs what it weighs."""

from playwright.sync_api import expect

from tests.page.house import Tab, tokens


def test_twenty_thousand_tokens_are_all_there_and_linear_on_the_wire(tab: Tab) -> None:
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Network.enable")
    received = 0

    def count(event: dict[str, int]) -> None:
        nonlocal received
        received += event["dataLength"]

    session.on("Network.dataReceived", count)
    tab.ask("Go", "long")
    expect(tab.answer).to_contain_text("t19999 ")
    tab.wait_for_end()
    assert tab.text() == tokens(20_000)
    # Each token once, with its run, its place and the cursor: a few hundred bytes. Nothing is sent anew as it grows.
    assert received < 20_000 * 330
