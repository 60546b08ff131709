"""MegaWika: passages of Wikipedia with the FrameNet frames that a parser (LOME) found in them.

A line is an article; each of its passages is a document. Of a passage, ``text`` (a list of sentences), the
tokens and ``parse`` are read:

{"article_title": …, "entries": [{"id": …, "passage": {"text": [sentence, …], "en_tokens": {"0": token, …},
 "parse": [{"span": [first, last], "label": frame, "confidence": …, "children": […]}, …]}}, …]}

Events come from spaCy's trees, as for all text; MegaWika adds the frames of verbs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers.rows import json_records
from ssdvae.extraction.readers.text import split_text
from ssdvae.extraction.tree import FrameMention, ParsedDocument, RawDocument, find_spans
from ssdvae.io.errors import DataError, Malformed, locate_errors, shorten
from ssdvae.io.files import Report
from ssdvae.io.records import Record, from_json
from ssdvae.io.records import parse as parse_record


class Article(Record, extra="ignore"):
    """An article and its passages."""

    article_title: str | None = None
    entries: list[Any]


class Passage(Record, extra="ignore"):
    """A passage; its tokens are in the order of their numbers, in a list, or in a list for each sentence."""

    text: str | list[str]
    en_tokens: dict[str, str] | list[str | list[str]] | None = None
    tokens: dict[str, str] | list[str | list[str]] | None = None
    parse: Any = None

    @property
    def sentences(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text

    @property
    def words(self) -> list[str]:
        """The tokens that the parse counts."""
        tokens = self.en_tokens or self.tokens or []
        if isinstance(tokens, dict):
            if odd := [number for number in tokens if not number.isdecimal()]:
                raise Malformed(f"{shorten(odd[0])} among the tokens", "numbers as names of the tokens")
            return [tokens[number] for number in sorted(tokens, key=int)]
        return [token for part in tokens for token in ([part] if isinstance(part, str) else part)]


def read(path: Path, options: ExtractOptions, report: Report) -> Iterator[RawDocument]:
    """Yield each passage of each article, named ``title/number``."""
    for number, record in json_records(path, report):
        try:
            article = parse_record(Article, record)
        except Malformed as error:
            report(DataError(path, number, error.found, f"{error.expected}, in an article of MegaWika"))
            continue
        title = article.article_title or f"{path.name}:{number}"
        for index, entry in enumerate(article.entries):
            passage = entry.get("passage") if isinstance(entry, dict) else None
            yield RawDocument(f"{title}/{index}", path, number, passage)


def parse(raw: RawDocument, options: ExtractOptions) -> ParsedDocument:
    """Return a passage with its paragraphs and frames."""
    with locate_errors(raw.path, raw.line):
        passage = parse_record(Passage, raw.content)
        tokens = passage.words
        text = " ".join(sentence.strip() for sentence in passage.sentences)
        spans = find_spans(text, tokens)
        if spans is None:
            # The tokens spell something in another way (quotes, dashes): then they are the text.
            text = " ".join(tokens)
            spans = find_spans(text, tokens) or []
        mentions = tuple(_mentions(passage.parse, spans))
    return replace(split_text(raw.id, text), mentions=mentions)


def _mentions(parse: object, spans: list[tuple[int, int]]) -> Iterator[FrameMention]:
    """Yield the frames of a parse; their children, which are roles, are ignored."""
    if isinstance(parse, str):
        parse = from_json(parse)
    for item in parse if isinstance(parse, list) else []:
        match item:
            case {"span": [int(first), int(last)], "label": str(frame)} if 0 <= first <= last < len(spans):
                confidence = item.get("confidence")
                sure = isinstance(confidence, float) and 0 <= confidence <= 1
                yield FrameMention(spans[first][0], spans[last][1], frame, confidence if sure else None)
