"""MegaWika: passages of Wikipedia with the FrameNet frames that a parser (LOME) found in them.

A line is an article; each of its passages is a document. Of a passage, ``text`` (a list of sentences), the
tokens and ``parse`` are read:

{"article_title": …, "entries": [{"id": …, "passage": {"text": [sentence, …], "en_tokens": {"0": token, …},
 "parse": [{"span": [first, last], "label": frame, "confidence": …, "children": […]}, …]}}, …]}

Events come from spaCy's trees, as for all text; MegaWika adds the frames of verbs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssdvae.extraction.options import ExtractOptions
from ssdvae.extraction.readers.text import json_records, parse_text
from ssdvae.extraction.tree import FrameMention, ParsedDocument, RawDocument, find_spans
from ssdvae.io.errors import DataError, Malformed, shorten
from ssdvae.io.files import Report


def read(path: Path, options: ExtractOptions, report: Report) -> Iterator[RawDocument]:
    """Yield each passage of each article, named ``title/number``."""
    for number, article in json_records(path, report):
        entries = article.get("entries")
        if not isinstance(entries, list):
            found = f"{shorten(entries)} under 'entries'"
            report(DataError(path, number, found, "an article of MegaWika, with a list of entries"))
            continue
        title = article.get("article_title") or f"{path.name}:{number}"
        for index, entry in enumerate(entries):
            passage = entry.get("passage") if isinstance(entry, dict) else None
            yield RawDocument(f"{title}/{index}", path, number, passage)


def parse(raw: RawDocument, options: ExtractOptions) -> ParsedDocument:
    """Return a passage with its trees and frames."""
    passage = raw.content
    try:
        if not isinstance(passage, dict):
            raise Malformed(shorten(passage), "a passage with its text")
        sentences, tokens = _strings(passage.get("text")), _tokens(passage)
        text = " ".join(sentence.strip() for sentence in sentences)
        spans = find_spans(text, tokens)
        if spans is None:
            # The tokens spell something in another way (quotes, dashes): then they are the text.
            text = " ".join(tokens)
            spans = find_spans(text, tokens) or []
        mentions = tuple(_mentions(passage.get("parse"), spans))
    except Malformed as error:
        raise DataError(raw.path, raw.line, error.found, error.expected) from error
    return replace(parse_text(raw.id, text, options), mentions=mentions)


def _strings(value: object) -> list[str]:
    strings = [value] if isinstance(value, str) else value
    if not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
        raise Malformed(f"{shorten(value)} under 'text'", "a list of sentences")
    return strings


def _tokens(passage: dict[str, Any]) -> list[str]:
    """Return the tokens that the parse counts: of a mapping from numbers, a list, or a list of sentences."""
    tokens = passage.get("en_tokens") or passage.get("tokens") or []
    if isinstance(tokens, dict):
        tokens = [tokens[number] for number in sorted(tokens, key=int)] if all(map(_digits, tokens)) else None
    if isinstance(tokens, list):
        tokens = [t for part in tokens for t in (part if isinstance(part, list) else [part])]
        if all(isinstance(token, str) for token in tokens):
            return tokens
    raise Malformed("tokens that are not strings in order", "a mapping from numbers to tokens, or a list")


def _digits(key: object) -> bool:
    return isinstance(key, str) and key.isdecimal()


def _mentions(parse: object, spans: list[tuple[int, int]]) -> Iterator[FrameMention]:
    """Yield the frames of a parse; their children, which are roles, are ignored."""
    if isinstance(parse, str):
        try:
            parse = json.loads(parse)
        except (ValueError, RecursionError) as error:
            raise Malformed(str(error), "a parse in JSON") from error
    for item in parse if isinstance(parse, list) else []:
        match item:
            case {"span": [int(first), int(last)], "label": str(frame)} if 0 <= first <= last < len(spans):
                confidence = item.get("confidence")
                sure = isinstance(confidence, float) and 0 <= confidence <= 1
                yield FrameMention(spans[first][0], spans[last][1], frame, confidence if sure else None)
