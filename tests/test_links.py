"""Links lead somewhere: from every page of the repository to files and headings that are there."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.ipynb")],
    key=lambda path: path.relative_to(ROOT).parts,
)
MARKDOWN = MarkdownIt("commonmark").enable("table")


def text_of(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


@cache
def tokens(page: Path) -> list[Token]:
    return MARKDOWN.parse(text_of(page))


def links(page: Path) -> Iterator[str]:
    """Return the targets of the links and pictures of a page."""
    for block in tokens(page):
        for token in block.children or ():
            found = token.attrGet("href") if token.type == "link_open" else token.attrGet("src")
            if isinstance(found, str):
                yield found


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of a page's headings, as GitHub and the site make them."""
    found, times = set(), Counter[str]()
    blocks = tokens(page)
    for opening, heading in pairwise(blocks):
        if opening.type == "heading_open":
            name = slug("".join(part.content for part in heading.children or ()))
            found.add(f"{name}-{times[name]}" if times[name] else name)
            times[name] += 1
    return frozenset(found)


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def mistake(page: Path, link: str) -> str | None:
    """Return what is wrong with a link; those out into the world are followed by `make docs-links`."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.exists():
        return f"{link}: there is no such file"
    if not target.is_relative_to(ROOT):
        return f"{link}: leads out of the repository"
    # The sections of commands and functions are made by the site.
    written = target.suffix in (".md", ".ipynb") and target.name not in ("commands.md", "api.md")
    if parts.fragment and written and unquote(parts.fragment) not in anchors(target):
        return f"{link}: there is no such heading; there are: {', '.join(sorted(anchors(target)))}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert [found for link in links(page) if (found := mistake(page, link))] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = ROOT / "README.md"
    assert mistake(page, "docs/nowhere.md") is not None
    assert mistake(page, "docs/model.md#nothing-like-it") is not None
    assert mistake(page, "#nothing-like-it") is not None
    assert mistake(page, "docs/data.md#word-vectors") is None
    assert list(links(page)), "links are found at all"


def test_every_page_is_on_the_site() -> None:
    """Each is named in a table of contents of the start page."""
    start = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    contents = re.findall(r"^```\{toctree\}\n(.*?)^```", start, re.DOTALL | re.MULTILINE)
    named = {line for block in contents for line in block.splitlines() if line and not line.startswith(":")}
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in ROOT.glob("docs/**/*.md")}
    assert pages - {"index"} == named
