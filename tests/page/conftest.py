"""One browser, one simulator and one server for all tests of a worker; a fresh context for each test."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.page.house import SAFETY_MS, House, Tab, find_browser, open_simulator

BUILT = Path(__file__).parents[2] / "src/headwater/server/page/index.html"

expect.set_options(timeout=SAFETY_MS)


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    assert BUILT.exists(), "the page is not built: make page"
    browser = find_browser(playwright)
    if browser is None:
        message = "NO BROWSER, AND NONE CAN BE HAD: THE PAGE IS NOT TESTED"
        assert os.environ.get("CI") != "true", message
        print(f"\n*** {message} ***")
        pytest.skip(message)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def simulator_url() -> Iterator[str]:
    with open_simulator() as url:
        yield url


@pytest.fixture(scope="package")
def server(simulator_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("page"), simulator_url)
    yield house
    house.close()


@pytest.fixture
def house(server: House) -> House:
    """As if nobody had been there before."""
    server.clear()
    return server


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1100, "height": 760}, reduced_motion="reduce")
    context.set_default_timeout(SAFETY_MS)
    yield context
    context.close()


@pytest.fixture
def errors() -> list[str]:
    """What went wrong in any page of the test."""
    return []


@pytest.fixture
def new_tab(context: BrowserContext, house: House, errors: list[str]) -> Iterator[Callable[[], Tab]]:
    def open_one() -> Tab:
        page: Page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None)
        return Tab(page, house)

    yield open_one
    assert errors == []


@pytest.fixture
def tab(new_tab: Callable[[], Tab]) -> Tab:
    return new_tab().open()
