"""MegaWika: passages of Wikipedia, with the FrameNet events that a parser (LOME) saw in them.

A line is an article; each of its passages is a document. Of a passage, ``text`` (a list of sentences), the
tokens and ``parse`` are read:

{"article_title": …, "entries": [{"id": …, "passage": {"text": [sentence, …], "en_tokens": {"0": token, …},
 "parse": [{"span": [first, last], "label": frame, "confidence": …, "children": […]}, …]}}, …]}

Tuples come from the trees that spaCy gives, as for all text; what MegaWika adds is the frame of a verb.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ssdvae.config import ExtractSettings
from ssdvae.errors import DataError, Malformed, shorten
from ssdvae.extraction.parsed import Mention, Parsed, Raw, spans_of
from ssdvae.extraction.readers.text import json_records, parse_text
from ssdvae.files import Report


def read(path: Path, settings: ExtractSettings, report: Report) -> Iterator[Raw]:
    """Each passage of each article: ``title/number``."""
    for number, article in json_records(path, report):
        entries = article.get("entries")
        if not isinstance(entries, list):
            found = f"{shorten(entries)} under 'entries'"
            report(DataError(path, number, found, "an article of MegaWika, with a list of entries"))
            continue
        title = article.get("article_title") or f"{path.name}:{number}"
        for place, entry in enumerate(entries):
            passage = entry.get("passage") if isinstance(entry, dict) else None
            yield Raw(f"{title}/{place}", path, number, passage)


def parse(raw: Raw, settings: ExtractSettings) -> Parsed:
    passage = raw.content
    try:
        if not isinstance(passage, dict):
            raise Malformed(shorten(passage), "a passage with its text")
        sentences, tokens = _strings(passage.get("text")), _tokens(passage)
        text = " ".join(sentence.strip() for sentence in sentences)
        spans = spans_of(text, tokens)
        if spans is None:
            # The tokens write something in their own way (quotes, dashes): then they are the text.
            text = " ".join(tokens)
            spans = spans_of(text, tokens) or []
        mentions = tuple(_mentions(passage.get("parse"), spans))
    except Malformed as error:
        raise DataError(raw.path, raw.line, error.found, error.expected) from error
    parsed = parse_text(raw.id, text, settings)
    return Parsed(raw.id, text, parsed.sentences, mentions)


def _strings(value: object) -> list[str]:
    strings = [value] if isinstance(value, str) else value
    if not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
        raise Malformed(f"{shorten(value)} under 'text'", "a list of sentences")
    return strings


def _tokens(passage: dict[str, Any]) -> list[str]:
    """The tokens that the parse counts: a mapping from their numbers, or a list, of sentences perhaps."""
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


def _mentions(parse: object, spans: list[tuple[int, int]]) -> Iterator[Mention]:
    """The frames of a parse; their children, which are roles, are passed over."""
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
                yield Mention(spans[first][0], spans[last][1], frame, confidence if sure else None)
