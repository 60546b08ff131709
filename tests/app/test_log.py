"""The views for the model of a log: cases, activities and the process; events in a field for each slot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from ssdvae.commands.score import anomalies
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document
from tests.app.conftest import Served, serving
from tests.browsing import Opened, needs_browser
from tests.browsing import browser as browser

EVENTS = ["opened frontdesk router phone", "assigned dispatcher router system"]
CASE = urlencode([("e", event) for event in EVENTS])


@pytest.fixture(scope="module")
def log(log_run: Path) -> Iterator[Served]:
    with serving([log_run]) as found:
        yield found


def test_the_views_speak_of_cases_stages_and_activities(log: Served, served: Served) -> None:
    names = re.findall(r"<li><a [^>]*>(\w+)</a></li>", log.ask("/read").text)
    assert names == ["Read", "Next", "Fill", "Similar", "Process", "Stages", "Cases", "Model", "API"]
    for view in ("read", "next", "fill", "similar", "frames", "documents"):
        main = log.ask(f"/{view}?{CASE}").text.partition("<main")[2]
        shown = re.sub(r"<[^>]*>", " ", re.sub(r"<(textarea|title).*?</", "", main, flags=re.DOTALL)).lower()
        assert not re.search(r"\bframes?\b|\bdocuments?\b", shown), view
    assert "Activities" in log.ask(f"/next?{CASE}").text
    assert ">Process<" not in served.ask("/read").text
    assert "only a model of a log" in served.ask("/process").text


def test_the_process_is_that_of_the_log_and_unusual_cases_lead_to_their_events(
    log: Served, log_run: Path
) -> None:
    corpus = Corpus(log_run.parent / "corpus")
    page = log.ask("/process").text
    assert corpus.process is not None
    assert f"of {corpus.process.variants:,} variants" in page
    assert page.count('class="node activity"') == min(30, len(corpus.process.activities))
    cases = [document.id for document in corpus_documents(corpus)]
    table = page.partition("unusual cases</caption>")[2].partition("</table>")[0]
    links = re.findall(r'<th scope="row"><a href="([^"]*)">([^<]*)</a>', table)
    assert len(links) == 10
    assert {name for _, name in links} <= set(cases)
    found = anomalies(log_run, corpus_documents(corpus), by="case", progress=False)
    assert [name for _, name in links] == [one.id for one in found]
    address, place = unescape(links[0][0]).split("#")
    assert f'id="{place}"' in log.ask(address).text
    saved = log.ask("/process?format=json").json
    assert [one["id"] for one in saved] == [one.id for one in found]


def corpus_documents(corpus: Corpus) -> list[Document]:
    return list(corpus.split("valid").decode(corpus.vocabulary, corpus.frames))


def test_an_unusual_event_is_explained(log: Served) -> None:
    for case in log.ask("/documents?anomalies=1").text.split("<article")[1:]:
        (place,) = re.findall(r"surprising: event (\d+),", case)
        marked = [
            n for n, row in enumerate(case.split("<li")[1:], start=1) if "asked" in row.partition(">")[0]
        ]
        assert marked in ([int(place)], [])  # the end of the case has no row
    odd = log.ask(f"/read?{CASE}&e=opened+zzz+zzz+zzz").text
    assert re.search(r"unusual: more surprising than .* of them for the \w+ “", odd)
    assert "Expected here" in odd
    assert re.search(r"If the case ends here, that is (unusual: )?more surprising than", odd)


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_events_are_typed_in_fields(browser: Browser, log: Served, width: int, scheme: str) -> None:
    opened = Opened(browser, log.link + "/read", width, scheme)
    page = opened.page
    frames = page.locator(".answer .frame")
    page.get_by_role("textbox", name="Event 1: action").focus()
    for word in EVENTS[0].split():
        page.keyboard.type(word)
        page.keyboard.press("Tab")
    expect(frames).to_have_count(1)
    page.get_by_role("textbox", name="Event 1: channel").press("Enter")
    expect(page.get_by_role("textbox", name="Event 2: action")).to_be_focused()
    page.keyboard.type("assigned")
    expect(frames).to_have_count(2)
    page.go_back()  # an event is one step
    expect(frames).to_have_count(1)
    page.get_by_role("link", name="What could happen next?").click()
    expect(page.get_by_role("region", name="Activities")).to_be_visible()
    page.get_by_role("region", name="Events").locator("a").first.click()
    expect(page.get_by_role("textbox", name="Event 2: action")).not_to_have_value("")
    page.goto(log.link + "/process")
    activity = page.locator(".node.activity").nth(1)
    activity.focus()  # all that comes before and after it, the rare too
    place = activity.get_attribute("data-node")
    both = f".path[data-from='{place}'], .path[data-to='{place}']"
    assert page.locator(both).evaluate_all(
        "paths => paths.every((path) => path.matches('.on:not([hidden])'))"
    )
    activity.blur()
    expect(page.locator("svg.lit")).to_have_count(0)
    page.get_by_text("The numbers as a table").first.click()
    rows = page.locator("#process-paths tbody tr:visible")
    before = rows.count()
    page.get_by_label("Find an activity").first.fill(EVENTS[1].split()[0])
    assert 0 < rows.count() < before
    for path in ("/read?" + CASE, "/process", "/documents?anomalies=1"):
        page.goto(log.link + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found = Axe().run(page).response["violations"]
        assert [
            (v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")
        ] == []
    assert opened.wrong == []
    page.context.close()
