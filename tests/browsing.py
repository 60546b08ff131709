"""A real browser for tests: pages opened in it, and all that goes wrong in them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)

# A machine that others use too has no known speed.
PATIENCE = 120_000  # milliseconds
expect.set_options(timeout=PATIENCE)

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=f"no browser here: none of {', '.join(NAMES)}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Without its sandbox the browser also starts for root, as in a container; the page is our own.
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)


class Opened:
    """A page, and all that went wrong in it."""

    def __init__(self, browser: Browser, url: str, width: int = 1280, scheme: str = "light") -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE)
        self.page: Page = context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.wrong.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.asked: list[str] = []
        self.page.goto(url)
