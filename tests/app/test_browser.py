"""The views in a real browser: by pointer, by keyboard, on a phone, in the dark; nobody else is called."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.app.conftest import Served, serving
from tests.browsing import Opened, needs_browser
from tests.browsing import browser as browser
from tests.report.conftest import WORD

pytestmark = needs_browser

SCRIPT = urlencode([("e", "chased ann dog"), ("f", ""), ("e", "caught bob"), ("f", "")])
PATHS = (
    f"/read?{SCRIPT}",
    f"/next?{SCRIPT}&go=1",
    f"/fill?{SCRIPT}&e=%3F&f=",
    f"/similar?{SCRIPT}",
    "/read?e=zzz+ann&tour=1",
    "/card",
    "/frames?q=Trial",
    "/frames",
    "/documents?frame=Trial",
    "/docs",
)

Open = Callable[..., Page]


@pytest.fixture
def open_view(browser: Browser, served: Served) -> Iterator[Open]:
    opened: list[Opened] = []

    def view(path: str, *how: Any) -> Page:
        opened.append(Opened(browser, served.link + path, *how))
        return opened[-1].page

    yield view
    for one in opened:
        assert one.wrong == []
        assert {urlsplit(url).netloc for url in one.asked if not url.startswith("data:")} == {
            urlsplit(served.link).netloc
        }
        one.page.context.close()


def test_what_is_typed_is_answered_at_once_and_kept_in_the_address(open_view: Open) -> None:
    page = open_view("/read")
    boxes, frames = page.locator("[name=e]"), page.locator(".answer .frame")
    boxes.first.click()
    page.keyboard.type("chased ann dog")
    expect(frames).to_have_count(1)
    page.keyboard.press("Enter")  # the next event
    expect(boxes.nth(1)).to_be_focused()
    page.keyboard.type("caught bob")
    expect(frames).to_have_count(2)
    expect(boxes).to_have_count(3)
    assert parse_qs(urlsplit(page.url).query)["e"] == ["chased ann dog", "caught bob"]
    shown = frames.all_inner_texts()
    # The address alone shows the same.
    again = open_view(urlsplit(page.url)._replace(scheme="", netloc="").geturl())
    assert again.locator(".answer .frame").all_inner_texts() == shown
    expect(page.locator(".surprise")).to_have_count(2)
    # Edited in place; one goes, the other stays.
    boxes.first.fill("met ann")
    expect(page.locator(".words").first).to_contain_text("met")
    page.locator("[data-remove]").first.click()
    expect(frames).to_have_count(1)
    expect(boxes.first).to_have_value("caught bob")


def test_each_action_is_an_entry_of_the_history(open_view: Open) -> None:
    """What is typed into one box is one action."""
    page = open_view("/read")
    boxes, frames = page.locator("[name=e]"), page.locator(".answer .frame")
    boxes.first.fill("met ann")
    expect(frames).to_have_count(1)
    boxes.nth(1).fill("dated bob")
    expect(frames).to_have_count(2)
    boxes.nth(1).fill("married bob")
    expect(page.locator(".words").nth(1)).to_contain_text("married")
    page.go_back()
    expect(frames).to_have_count(1)
    expect(page.locator("html.scripted")).to_be_attached()  # it listens again
    page.go_back()
    expect(frames).to_have_count(0)


def test_events_that_are_pasted_are_taken_apart(open_view: Open) -> None:
    page = open_view("/read")
    box = page.locator("[name=e]").first
    box.focus()
    box.evaluate(
        """(box) => {
          const data = new DataTransfer();
          data.setData("text", "chased ann dog\\ncaught bob\\n\\ntried eve");
          box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
        }"""
    )
    expect(page.locator(".answer .frame")).to_have_count(3)
    expect(page.locator("[name=e]")).to_have_count(4)


def test_a_frame_that_is_told_changes_the_answer(open_view: Open) -> None:
    page = open_view(f"/read?{SCRIPT}")
    frame = page.locator(".answer .frame").first
    before = frame.inner_text()
    page.locator(".told").first.fill("Wedding")
    expect(frame).not_to_have_text(before)
    page.locator(".told").first.fill("No such frame")
    expect(page.locator("#problem [role=alert]")).to_contain_text("No such frame")
    page.locator(".told").first.fill("")
    expect(page.locator("#problem [role=alert]")).to_have_count(0)
    expect(frame).to_have_text(before)


def test_a_frame_shows_where_it_looked(open_view: Open) -> None:
    page = open_view(f"/read?{SCRIPT}")
    words, button = page.locator(".words span"), page.locator(".answer .frame").nth(1)
    shares = "words => words.map((word) => word.style.getPropertyValue('--share'))"
    before = words.evaluate_all(shares)
    button.focus()
    assert words.evaluate_all(shares) == (button.get_attribute("data-attention") or "").split()
    button.blur()
    assert words.evaluate_all(shares) == before


def test_a_script_is_built_from_suggestions(open_view: Open) -> None:
    page = open_view("/next")
    page.locator("[name=e]").first.fill("chased ann dog")
    events = page.get_by_role("region", name="Events").locator("a")
    expect(events.first).to_be_visible()
    # A frame that is chosen stays in the address, and only what goes with it is suggested.
    page.get_by_role("region", name="Frames").locator("a").nth(1).click()
    expect(page.locator("[name=pin]")).not_to_have_value("")
    expect(page.get_by_role("region", name="Frames")).to_have_count(0)
    expect(page.locator("html.scripted")).to_be_attached()  # the new page listens
    page.locator("[name=pin]").fill("")
    expect(page.get_by_role("region", name="Frames")).to_be_visible()
    taken = events.first
    expect(taken).to_be_visible()
    text = taken.inner_text()
    taken.focus()
    page.keyboard.press("Enter")
    expect(page.locator("[name=e]")).to_have_count(3)
    expect(page.locator("[name=e]").nth(1)).to_have_value(text)
    page.get_by_role("link", name="Write three continuations").click()
    expect(page.locator(".script")).to_have_count(3)
    page.locator("details summary").click()
    lines = page.locator("#jsonl").input_value().splitlines()
    assert [len(json.loads(line)["events"]) for line in lines] == [5, 5, 5]
    assert json.loads(lines[0])["events"][0]["verb"] == "chased"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("[data-copy]").click()
    expect(page.locator("[data-copy] + [role=status]")).to_have_text(" copied")
    assert page.evaluate("navigator.clipboard.readText()").splitlines() == lines


def test_one_walks_from_frame_to_frame(open_view: Open) -> None:
    page = open_view("/frames")
    page.locator("[data-filter]").fill("trial")
    page.get_by_role("link", name="Trial", exact=True).first.click()
    expect(page.locator("main h2").first).to_have_text("Trial")
    page.locator("svg.walk a[href*=Prison]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("main h2").first).to_have_text("Prison")
    expect(page.locator(".document").first).to_be_visible()
    page.go_back()
    expect(page.locator("main h2").first).to_have_text("Trial")


def test_documents_are_found_by_frame_and_words(open_view: Open) -> None:
    page = open_view("/documents")
    expect(page.locator(".document")).to_have_count(10)
    page.get_by_role("searchbox", name="Words").fill("married eve")
    expect(page.locator("#found [role=status]")).not_to_contain_text("of 48")
    for document in page.locator(".document").all():
        assert {"married", "eve"} <= set(document.inner_text().split())
    page.get_by_role("searchbox", name="Words").fill("nobody")
    expect(page.locator("#found")).to_have_text("No document has all of that.")
    page.get_by_role("searchbox", name="Words").fill("")
    first = page.locator(".document .name").first
    before = first.inner_text()
    page.get_by_role("checkbox").check()
    expect(first).not_to_have_text(before)
    page.get_by_role("link", name="Open it in Read").first.click()
    expect(page.locator(".answer .frame")).to_have_count(5)


def test_two_models_go_along_from_view_to_view(browser: Browser, runs: list[Path], spacy_model: Path) -> None:
    second = runs[0].parent / "again"
    if not second.exists():
        shutil.copytree(runs[0], second)
    with serving([runs[0], second], spacy_model=str(spacy_model)) as both:
        opened = Opened(browser, both.link + "/read")
        page = opened.page
        page.locator("[name=e]").first.fill("chased ann dog")
        expect(page.locator(".answer .frame")).to_have_count(1)
        page.locator("[name=beside]").select_option("again")
        expect(page.locator(".answer .frame")).to_have_count(2)
        assert page.locator(".by").all_inner_texts() == ["ssdvae", "again"]
        page.get_by_role("link", name="What could happen next?").click()
        expect(page.get_by_role("region", name="Events, again")).to_be_visible()
        page.get_by_role("link", name="Fill", exact=True).click()
        expect(page).to_have_url(re.compile("/fill"))
        expect(page.locator("html.scripted")).to_be_attached()  # the new page listens
        page.locator("[name=e]").nth(1).fill("?")
        candidate = page.locator("#found th a").first
        text = candidate.inner_text()
        candidate.press("Enter")  # it takes the place of what is missing
        expect(page.locator("[name=e]").nth(1)).to_have_value(text)
        assert parse_qs(urlsplit(page.url).query)["beside"] == ["again"]
        assert opened.wrong == []
        page.context.close()


def test_hostile_words_do_nothing(open_view: Open) -> None:
    page = open_view("/read?" + urlencode([("e", f"{WORD} <img/src=x/onerror=alert(1)>")]))
    expect(page.locator(".words").first).to_contain_text(WORD)
    page.locator("[name=e]").first.fill(f"{WORD} again")
    expect(page.locator(".words").first).to_contain_text("again")
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_view_can_be_used_by_everybody(open_view: Open, width: int, scheme: str) -> None:
    """axe-core finds nothing that is serious, nothing is wider than the screen, and tab shows where it is."""
    for path in PATHS:
        page = open_view(path, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found = Axe().run(page).response["violations"]
        assert [
            (v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")
        ] == []
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()


def test_without_scripts_all_is_there(browser: Browser, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(served.link + "/read")
    page.locator("[name=e]").first.fill("chased ann dog")
    page.get_by_role("button", name="Read").click()
    expect(page.locator(".answer .frame")).to_have_count(1)
    page.get_by_role("link", name="What could happen next?").click()
    page.locator(".suggested a").first.click()
    expect(page.locator("[name=e]")).to_have_count(3)
    context.close()
