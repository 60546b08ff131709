"""Text in the view Read: its events, where a parser is; what to install, where none is."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, expect

from ssdvae.app.examples import EXAMPLES
from ssdvae.app.explorer import LONGEST_TEXT
from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.extract import extract_text
from tests.app.conftest import Served, serving
from tests.browsing import Opened, needs_browser
from tests.browsing import browser as browser
from tests.extraction.conftest import spacy_model as spacy_model

TEXT = "The police arrested a man. He left."


def found_in(served: Served, text: str) -> tuple[int, list[str], str]:
    """The status, the marked verbs, and the page."""
    reply = served.ask(f"/read?{urlencode({'text': text})}")
    return reply.status, re.findall(r'class="span[^"]*">(\w+)<', reply.text), reply.text


def test_a_text_becomes_its_events(runs: list[Path], spacy_model: Path) -> None:
    document = extract_text(TEXT, ExtractOptions(spacy_model=str(spacy_model)))
    with serving(runs[:1], spacy_model=str(spacy_model)) as served:
        status, verbs, page = found_in(served, TEXT)
        assert (status, verbs) == (200, [event.head for event in document.events])
        assert page.count('id="event-') == len(verbs)
        assert page.partition("Try one:")[2].partition("</p>")[0].count('href="/read?text=') == len(EXAMPLES)
        status, verbs, page = found_in(served, "...")
        assert (status, verbs) == (200, [])
        assert "no events were found" in page
        assert "at most" in found_in(served, "x" * (LONGEST_TEXT + 1))[2]
        # In the box of an event, and by REST, a sentence stands for its events too.
        page = served.ask(f"/read?{urlencode([('e', TEXT), ('f', ''), ('e', 'met ann'), ('f', '')])}").text
        assert [part.count('class="belief"') for part in page.split('id="answer-')[1:]] == [
            len(document.events),
            1,
            0,
        ]
        (found,) = served.ask("/api/infer", {"documents": [[TEXT, "met ann"]]}).json["documents"]
        assert [event["verb"] for event in found["events"]] == [
            *(event.head for event in document.events),
            "met",
        ]
        reply = served.ask("/api/infer", {"documents": [["He left. " * 2_000]]})
        assert (reply.status, "characters of text" in reply.text) == (422, True)


def test_the_rest_api_reads_sentences(runs: list[Path], spacy_model: Path) -> None:
    events = [str(e) for e in extract_text(TEXT, ExtractOptions(spacy_model=str(spacy_model))).events]
    with serving(runs[:1], spacy_model=str(spacy_model)) as served:
        sentences, typed = (
            served.ask("/api/infer", {"documents": [[*some, "met she"]]}).json["documents"][0]["events"]
            for some in (["The police arrested a man.", "He left."], events)
        )
        assert [(e["verb"], e["frame"]) for e in sentences] == [(e["verb"], e["frame"]) for e in typed]
        assert len(sentences) == len(events) + 1
        refused = served.ask("/api/infer", {"documents": [["x" * LONGEST_TEXT + " ran."]]})
        assert (refused.status, "at most" in refused.text) == (422, True)
    with serving(runs[:1], spacy_model="no_such_model") as served:
        refused = served.ask("/api/infer", {"documents": [["The police arrested a man."]]})
        assert (refused.status, "verb subj obj mod" in refused.text) == (422, True)


def test_without_a_parser_the_view_says_what_to_install(runs: list[Path]) -> None:
    with serving(runs[:1], spacy_model="no_such_model") as served:
        assert "python -m spacy download" in served.ask("/read").text
        assert "no spaCy model" in found_in(served, TEXT)[2]


@needs_browser
def test_a_text_is_typed_and_read(browser: Browser, runs: list[Path], spacy_model: Path) -> None:
    with serving(runs[:1], spacy_model=str(spacy_model)) as served:
        opened = Opened(browser, served.link + "/read")
        page = opened.page
        page.get_by_label("A text, in English").fill(TEXT)
        page.get_by_role("button", name="Find its events").click()
        expect(page.locator(".marked .span").first).to_contain_text("arrested")
        page.get_by_text("Likely frames").first.click()
        expect(page.locator(".others a[href*=frames]").first).to_be_visible()
        page.get_by_role("link", name="Change these events").click()
        expect(page.locator("[name=e]").first).to_have_value(re.compile("^arrested"))
        assert opened.wrong == []
        page.context.close()
