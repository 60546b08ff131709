"""The commands that a page of the documentation shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
SECTION = re.compile(r"^## (.*)\n", re.MULTILINE)


def section(page: str, title: str | None = None) -> str:
    """Return the text under a heading of a page; without a title, the whole page."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    if title is None:
        return text
    parts = SECTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[title]


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"^```(?:{language})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(page: str, title: str | None = None) -> list[list[str]]:
    """Return the words after `ssdvae` in ``sh`` and ``console`` blocks, without pipes and redirections."""
    lines = "".join(blocks(section(page, title), "sh|console")).replace("\\\n", " ").splitlines()
    typed = [re.split(r" 2>| \| ", line.removeprefix("$ "))[0] for line in lines]
    return [shlex.split(line)[1:] for line in typed if line.startswith("ssdvae ")]
