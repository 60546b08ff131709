"""Text in the view Read: its events, where a parser is; what to install, where none is."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Browser, expect

from ssdvae.app.views import LONGEST_TEXT
from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.extract import extract_text
from tests.app.conftest import Served, serving
from tests.browsing import Opened, needs_browser
from tests.browsing import browser as browser
from tests.extraction.conftest import spacy_model as spacy_model

TEXT = "The police arrested a man. He left."


def found_in(served: Served, text: str) -> tuple[int, list[str], str]:
    reply = served.ask(f"/read?{urlencode({'text': text})}")
    there = reply.headers.get("location", "")
    return reply.status, parse_qs(urlsplit(there).query).get("e", []), reply.text


def test_a_text_becomes_its_events(runs: list[Path], spacy_model: Path) -> None:
    document = extract_text(TEXT, ExtractOptions(spacy_model=str(spacy_model)))
    with serving(runs[:1], spacy_model=str(spacy_model)) as served:
        status, events, _ = found_in(served, TEXT)
        assert status == 303
        assert [e.split()[0] for e in events] == [event.head for event in document.events]
        status, events, page = found_in(served, "...")
        assert (status, events) == (200, [])
        assert "no events were found" in page
        assert "at most" in found_in(served, "x" * (LONGEST_TEXT + 1))[2]


def test_without_a_parser_the_view_says_what_to_install(runs: list[Path]) -> None:
    with serving(runs[:1], spacy_model="no_such_model") as served:
        assert "python -m spacy download" in served.ask("/read").text
        assert "no spaCy model" in found_in(served, TEXT)[2]


@needs_browser
def test_a_text_is_typed_and_read(browser: Browser, runs: list[Path], spacy_model: Path) -> None:
    with serving(runs[:1], spacy_model=str(spacy_model)) as served:
        opened = Opened(browser, served.link + "/read")
        page = opened.page
        page.get_by_text("Or read a text").click()
        page.get_by_label("A text", exact=True).fill(TEXT)
        page.get_by_role("button", name="Find its events").click()
        expect(page.locator(".answer .frame").first).to_be_visible()
        assert page.locator("[name=e]").first.input_value().startswith("arrested")
        assert opened.wrong == []
        page.context.close()
