"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A head, a line and rows; whatever the texts are, each stays in its cell."""
    lines = [[*map(markdown_text, head)], ["---"] * len(head), *([*map(markdown_text, row)] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    """A text of one line that is neither markup nor the end of a cell."""
    for character in "\\|<":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
