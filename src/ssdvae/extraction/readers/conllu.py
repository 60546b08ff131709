"""CoNLL-U: sentences that any parser of Universal Dependencies has written.

A document begins at ``# newdoc``; a file without one is one document. Its text is that of its sentences, each
on a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ssdvae.config import ExtractSettings
from ssdvae.errors import DataError, not_installed, shorten
from ssdvae.extraction.parsed import Parsed, Raw, spans_of
from ssdvae.extraction.tree import NO_HEAD, Token, Tree
from ssdvae.files import Report, text_lines
from ssdvae.limits import LINE, Held

COLUMNS = 10

Block = tuple[int, str]
"""A sentence as it stands in the file, and the line on which it begins."""


def check(settings: ExtractSettings) -> None:
    try:
        import conllu  # noqa: F401
    except ImportError as error:
        raise not_installed("conllu", "conllu", "reading CoNLL-U") from error


def read(path: Path, settings: ExtractSettings, report: Report) -> Iterator[Raw]:
    """The documents of a file, as the lines of their sentences."""
    document = Held(path, "a document")
    id, start, blocks = path.name, 1, list[Block]()
    for line, block in _blocks(path, report):
        name = _new_document(block)
        if name is not None:
            document.begin(line)
            if blocks:
                yield Raw(id, path, start, blocks)
            id, start, blocks = name or f"{path.name}:{line}", line, []
        blocks.append((line, document.add(block)))
    if blocks:
        yield Raw(id, path, start, blocks)


def _blocks(path: Path, report: Report) -> Iterator[Block]:
    sentence = Held(path, "a sentence", LINE)
    lines: list[str] = []
    number = 0
    for number, line in text_lines(path, report):
        if line.strip():
            if not lines:
                sentence.begin(number)
            lines.append(sentence.add(line.rstrip("\r\n")))
        elif lines:
            yield number - len(lines), "\n".join(lines)
            lines = []
    if lines:
        yield number - len(lines) + 1, "\n".join(lines)


def _new_document(block: str) -> str | None:
    """The id of the document that begins here: empty if it has none, ``None`` if none begins."""
    for line in block.split("\n"):
        if not line.startswith("#"):
            return None
        words = line.removeprefix("#").strip()
        if words == "newdoc" or words.startswith("newdoc "):
            return words.partition("=")[2].strip()
    return None


def parse(raw: Raw, settings: ExtractSettings) -> Parsed:
    import conllu

    texts: list[str] = []
    sentences: list[Tree] = []
    start = 0
    for line, block in raw.content:
        try:
            parsed = conllu.parse(block)
        except Exception as error:  # the library raises whatever its conversions raise
            raise DataError(raw.path, line, str(error), "a sentence in CoNLL-U") from error
        for sentence in parsed:
            short = next((word for word in sentence if len(word) < COLUMNS), None)
            if short is not None:
                found = f"{len(short)} columns at {shorten(short['form'])}"
                raise DataError(raw.path, line, found, f"{COLUMNS} columns, parted by tabs")
            text, spans = _text(sentence)
            sentences.append(Tree(_tokens(sentence, [(start + s, start + e) for s, e in spans])))
            texts.append(text)
            start += len(text) + 1
    return Parsed(raw.id, "\n".join(texts), tuple(sentences))


def _words(sentence: Any) -> list[Any]:
    """The syntactic words: no ranges (3-4 of "don't") and no empty nodes (8.1)."""
    return [word for word in sentence if isinstance(word["id"], int)]


def _text(sentence: Any) -> tuple[str, list[tuple[int, int]]]:
    """The text of a sentence, and the span of each syntactic word; those of a range share its span."""
    surface: list[Any] = []
    members: list[int] = []  # for each word, the place of what it is written as
    until = 0
    for token in sentence:
        id = token["id"]
        if isinstance(id, tuple) and "-" in id:
            until = id[2]
            surface.append(token)
        elif isinstance(id, int):
            if id > until:
                surface.append(token)
            # A word that claims to be part of a range which is not there stands for itself.
            members.append(max(len(surface) - 1, 0))
    forms = [token["form"] for token in surface]
    text = sentence.metadata.get("text") or ""
    spans = spans_of(text, forms)
    if spans is None:
        text, spans = "", []
        for form, token in zip(forms, surface, strict=True):
            spans.append((len(text), len(text) + len(form)))
            text += form + ("" if (token.get("misc") or {}).get("SpaceAfter") == "No" else " ")
    return text, [spans[member] for member in members]


def _tokens(sentence: Any, spans: list[tuple[int, int]]) -> Iterator[Token]:
    words = _words(sentence)
    places = {word["id"]: place for place, word in enumerate(words)}
    for word, (start, end) in zip(words, spans, strict=True):
        # The library has read an underscore as a word; it says that there is none.
        lemma, upos, xpos, relation = (
            "" if word[key] in (None, "_") else word[key] for key in ("lemma", "upos", "xpos", "deprel")
        )
        head = places.get(word["head"], NO_HEAD)
        yield Token(word["form"], lemma, upos or xpos, head, relation, start, end)
