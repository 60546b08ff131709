"""InScript: stories about everyday scenarios, whose events people labelled with the steps of a script.

One token a line, in the form of Zhai et al. (*SEM 2021): the piece (``▁`` begins a word), two columns about
participants, the label of the event (``#ScrEv_wash_bath``) or none, and the part of the label's phrase:

▁turn none none #ScrEv_turn_water_on_bath yes none
▁on none none #ScrEv_turn_water_on_bath no none
<end_of_story>

``X`` in the columns continues a word. A label of several words is one mention. Events come from spaCy's
trees, as for all text; a label is the frame of the event whose verb it covers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.readers.text import split_text
from ssdvae.extraction.tree import FrameMention, ParsedDocument, RawDocument
from ssdvae.io.errors import DataError, shorten
from ssdvae.io.files import Report, text_lines
from ssdvae.io.limits import SizeCounter

END = "<end_of_story>"
COLUMNS = 6
BEGIN = "▁"
WHOLE, PARTICLE = "single", "no"
"""Parts of a phrase: all of it; what is not its head, which may stand apart."""

NO_SPACE_BEFORE = re.compile(r"[.,:;!?%)\]]|n't$|'\w*$", re.IGNORECASE)

Word = tuple[str, str, str]
"""A word, the label of its event, and the part of the phrase."""


def read(path: Path, options: ExtractOptions, report: Report) -> Iterator[RawDocument]:
    """Yield each story with the words of its lines, named after the file and its number."""
    story = SizeCounter(path, "a story")
    words, start, number, bad = list[Word](), 1, 0, False
    for line, text in text_lines(path, report):
        fields = story.add(text).split()
        if fields == [END]:
            if words and not bad:
                yield RawDocument(f"{path.name}:{number}", path, start, words)
            number += 1
            words, start, bad = [], line + 1, False
            story.begin(start)
        elif fields and not bad:
            piece = fields[0].removeprefix(BEGIN)
            if len(fields) != COLUMNS or not (fields[0].startswith(BEGIN) or words):
                report(DataError(path, line, shorten(text.strip()), f"{COLUMNS} columns, or {END}"))
                bad = True  # and the rest of the story with it
            elif fields[0].startswith(BEGIN):
                words.append((piece, fields[3], fields[4]))
            else:
                words[-1] = (words[-1][0] + piece, *words[-1][1:])
    if words and not bad:
        report(DataError(path, start, "a story without an end", END))


def parse(raw: RawDocument, options: ExtractOptions) -> ParsedDocument:
    """Return a story with its paragraphs and labels."""
    text, mentions = text_and_labels(raw.content)
    return replace(split_text(raw.id, text), mentions=tuple(mentions))


def text_and_labels(words: Iterable[Word]) -> tuple[str, list[FrameMention]]:
    """Return the text of a story as it is usually spaced, and the labels at their characters."""
    text, mentions = "", list[FrameMention]()
    before: str | None = None  # the label of the word before
    for word, label, part in words:
        start = len(text) + bool(text and not NO_SPACE_BEFORE.match(word))
        text = text.ljust(start) + word
        name = label.removeprefix("#") if label.startswith("#") else None
        if name is not None:
            if part != WHOLE and before == name:
                mentions[-1] = replace(mentions[-1], end=len(text))
            # "took the old clothes off": the last word is part of what has a mention already.
            elif part != PARTICLE or not mentions or mentions[-1].frame != name:
                mentions.append(FrameMention(start, len(text), name))
        before = name
    return text, mentions
