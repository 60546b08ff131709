"""The page in a real browser: it is drawn, it answers to pointer and keyboard, and it calls nobody."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browsing import Opened, needs_browser
from tests.browsing import browser as browser

pytestmark = needs_browser


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Opened]:
    opened = Opened(browser, page.as_uri())
    # What is closed at first must be right too.
    opened.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    yield opened
    assert opened.wrong == []
    assert opened.asked == [page.as_uri()]


def test_every_picture_is_drawn(opened: Opened) -> None:
    pictures = opened.page.locator("svg")
    expect(pictures).to_have_count(4)  # links, calibration, latent variables, curves
    for picture in pictures.all():
        # Every shape has a place inside the picture, and none is where a number was missing.
        assert picture.locator("circle, rect, path, polyline").count() > 1
        assert "nan" not in (picture.inner_html().lower())
        frame = picture.bounding_box()
        assert frame is not None
        assert frame["width"] > 200
        for shape in picture.locator("circle, rect, path").all():
            box = shape.bounding_box()
            assert box is not None
            assert frame["x"] - 12 <= box["x"] <= box["x"] + box["width"] <= frame["x"] + frame["width"] + 12
            assert (
                frame["y"] - 12 <= box["y"] <= box["y"] + box["height"] <= frame["y"] + frame["height"] + 12
            )


def test_the_legend_hides_and_shows_a_curve(opened: Opened) -> None:
    curve = opened.page.locator("#setup [data-series='1']")
    button = opened.page.locator("#setup [data-toggle='1']")
    expect(curve).to_be_visible()
    button.click()
    expect(curve).to_be_hidden()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(opened.page.locator("#setup [data-series='0']")).to_be_visible()
    button.focus()
    opened.page.keyboard.press("Enter")
    expect(curve).to_be_visible()


def test_the_arrow_keys_go_along_a_curve(opened: Opened) -> None:
    marks, tip = opened.page.locator("#setup [data-series='0'] circle"), opened.page.locator("#tip")
    marks.nth(0).focus()
    expect(tip).to_have_text(marks.nth(0).get_attribute("aria-label") or "")
    opened.page.keyboard.press("ArrowRight")
    expect(marks.nth(1)).to_be_focused()
    expect(tip).to_have_text(marks.nth(1).get_attribute("aria-label") or "")
    for _ in range(marks.count()):  # the last one stays
        opened.page.keyboard.press("ArrowRight")
    expect(marks.last).to_be_focused()
    opened.page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    opened.page.keyboard.press("Tab")  # one stop for the whole curve
    expect(opened.page.locator("#setup [data-series='1'] circle").first).to_be_focused()
    opened.page.locator("#setup [data-series='1'] circle").first.hover()  # drawn last: nothing is above it
    expect(tip).to_be_visible()


def test_a_frame_shows_where_it_looked(opened: Opened) -> None:
    document = opened.page.locator(".document").first
    frames, words = document.locator("[data-attention]"), document.locator(".words span")

    def shares() -> list[float]:
        return [float(share) for share in words.evaluate_all(SHARES)]

    def attention(place: int) -> list[float]:
        return [float(share) for share in (frames.nth(place).get_attribute("data-attention") or "").split()]

    rest = shares()
    slots = words.count() // frames.count()
    # At rest, each word has the attention of its own event's frame.
    assert rest == [attention(place // slots)[place] for place in range(len(rest))]
    assert sum(attention(1)) == pytest.approx(1, abs=0.02)
    frames.nth(1).hover()
    assert shares() == attention(1)
    opened.page.mouse.move(0, 0)
    assert shares() == rest
    frames.nth(0).focus()
    assert shares() == attention(0)
    opened.page.keyboard.press("Tab")
    assert shares() == attention(1)
    assert "looked at" in (frames.nth(1).get_attribute("aria-label") or "")


SHARES = "words => words.map((word) => word.style.getPropertyValue('--share'))"
STRENGTH = "paths => paths.map((path) => Number(getComputedStyle(path).opacity))"


def test_a_frame_shows_its_links(opened: Opened) -> None:
    paths, node = opened.page.locator("svg.links path"), opened.page.locator("svg.links .node").first
    before = set(paths.evaluate_all(STRENGTH))
    node.focus()
    name = node.get_attribute("data-node-from")
    mine = [path.get_attribute("data-from") == name for path in paths.all()]
    strength = paths.evaluate_all(STRENGTH)
    assert any(mine)
    assert [value > max(before) for value in strength] == mine
    node.blur()
    assert set(paths.evaluate_all(STRENGTH)) == before


def test_rows_are_found_by_typing(opened: Opened) -> None:
    rows = opened.page.locator("#run-0-words tbody tr")
    name = rows.nth(1).locator("th").inner_text()
    assert rows.count() > 2
    opened.page.locator("[data-filter='run-0-words']").fill(name.upper())
    expect(rows.nth(1)).to_be_visible()
    assert [name.lower() in row.inner_text().lower() for row in rows.all() if row.is_visible()].count(
        False
    ) == 0
    nothing = opened.page.locator("[data-nothing='run-0-words']")
    expect(nothing).to_be_hidden()
    opened.page.locator("[data-filter='run-0-words']").fill("no such frame")
    assert not any(row.is_visible() for row in rows.all())
    expect(opened.page.locator("#run-0-words")).to_be_hidden()
    expect(nothing).to_have_text("Nothing here has “no such frame”.")
    opened.page.locator("[data-filter='run-0-words']").fill("")
    expect(nothing).to_be_hidden()
    expect(rows.last).to_be_visible()


def test_a_picture_is_on_the_first_screen(browser: Browser, page: Path) -> None:
    for width in (1280, 390):
        opened = Opened(browser, page.as_uri(), width)
        expect(opened.page.locator("figure").first).to_be_in_viewport()
        # No event is beside the screen, or cut.
        for event in opened.page.locator(".document").first.locator("li").all():
            box = event.bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width


def test_hostile_words_are_seen_and_do_nothing(opened: Opened) -> None:
    assert opened.page.locator("img, b").count() == 0
    assert opened.page.locator("script").count() == 1
    expect(opened.page.locator(".document .words").first).to_contain_text("<script>alert(1)</script>")
    expect(opened.page.locator(".document .frame, .known").filter(has_text="<img/src").first).to_be_visible()
    assert opened.page.title().endswith("ssdvae")


def test_by_keyboard_one_comes_to_the_content(opened: Opened) -> None:
    opened.page.keyboard.press("Tab")
    skip = opened.page.locator(".skip")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    opened.page.keyboard.press("Enter")
    expect(opened.page.locator("#main")).to_be_focused()


def test_whoever_cannot_see_is_told(opened: Opened) -> None:
    page = opened.page
    assert page.locator("table:not(:has(caption)), th:not([scope]), input:not(label input)").count() == 0
    assert page.locator("svg:not([aria-label]), [role='img']:not([aria-label])").count() == 0
    assert page.locator("figure:not(:has(figcaption strong))").count() == 0
    # No level of heading is passed over.
    levels = page.locator("h1, h2, h3, h4, h5").evaluate_all("all => all.map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    # What one can tab to shows it.
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


CONTRAST = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((x) => x / 255)
      .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
  };
  const wanted = "h1, p, td, th, caption, figcaption, a, summary, dt, dd span, small, .paper, button";
  return Math.min(...[...document.querySelectorAll(wanted)].filter((e) => e.textContent).map((e) => {
    const [a, b] = [getComputedStyle(e).color, ground(e)].map(light);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_read_anywhere(browser: Browser, page: Path, width: int, scheme: str) -> None:
    opened = Opened(browser, page.as_uri(), width, scheme)
    opened.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    # Nothing is wider than the screen, and all text stands out from its ground (WCAG AA).
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.page.evaluate(CONTRAST) >= 4.5
    ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 23, 26)") == (scheme == "dark")
    letters = opened.page.locator("#setup svg text").first
    height = letters.evaluate("(e) => e.getBoundingClientRect().height")
    assert height >= 10
    assert opened.wrong == []
