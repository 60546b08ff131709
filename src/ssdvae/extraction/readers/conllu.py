"""CoNLL-U: the output of parsers of Universal Dependencies.

A document begins at ``# newdoc``; a file without one is one document. Its text has a sentence on each line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.tree import NO_HEAD, ParsedDocument, RawDocument, Token, Tree, find_spans
from ssdvae.io.errors import DataError, not_installed, shorten
from ssdvae.io.files import Report, text_lines
from ssdvae.io.limits import LINE, SizeCounter

COLUMNS = 10

Block = tuple[int, str]
"""The line on which a sentence begins, and its lines."""


def check(options: ExtractOptions) -> None:
    """Raise if the package that reads CoNLL-U is missing."""
    try:
        import conllu  # noqa: F401
    except ImportError as error:
        raise not_installed("conllu", "conllu", "reading CoNLL-U") from error


def read(path: Path, options: ExtractOptions, report: Report) -> Iterator[RawDocument]:
    """Yield the documents of a file, as the lines of their sentences."""
    document = SizeCounter(path, "a document")
    id, start, blocks = path.name, 1, list[Block]()
    for line, block in _blocks(path, report):
        name = _new_document(block)
        if name is not None:
            document.begin(line)
            if blocks:
                yield RawDocument(id, path, start, blocks)
            id, start, blocks = name or f"{path.name}:{line}", line, []
        blocks.append((line, document.add(block)))
    if blocks:
        yield RawDocument(id, path, start, blocks)


def _blocks(path: Path, report: Report) -> Iterator[Block]:
    sentence = SizeCounter(path, "a sentence", LINE)
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
    """Return the id of the document that begins here: empty if it has none, None if none begins."""
    for line in block.split("\n"):
        if not line.startswith("#"):
            return None
        words = line.removeprefix("#").strip()
        if words == "newdoc" or words.startswith("newdoc "):
            return words.partition("=")[2].strip()
    return None


def parse(raw: RawDocument, options: ExtractOptions) -> ParsedDocument:
    """Return a document with its trees."""
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
    return ParsedDocument(raw.id, "\n".join(texts), tuple(sentences))


def _words(sentence: Any) -> list[Any]:
    """Return the syntactic words: no ranges (3-4 of "don't") and no empty nodes (8.1)."""
    return [word for word in sentence if isinstance(word["id"], int)]


def _text(sentence: Any) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a sentence, and the span of each syntactic word; those of a range share its span."""
    surface: list[Any] = []
    members: list[int] = []  # for each word, the index of its surface token
    until = 0
    for token in sentence:
        id = token["id"]
        if isinstance(id, tuple) and "-" in id:
            until = id[2]
            surface.append(token)
        elif isinstance(id, int):
            if id > until:
                surface.append(token)
            # A word of a range that does not exist stands for itself.
            members.append(max(len(surface) - 1, 0))
    forms = [token["form"] for token in surface]
    text = sentence.metadata.get("text") or ""
    spans = find_spans(text, forms)
    if spans is None:
        text, spans = "", []
        for form, token in zip(forms, surface, strict=True):
            spans.append((len(text), len(text) + len(form)))
            text += form + ("" if (token.get("misc") or {}).get("SpaceAfter") == "No" else " ")
    return text, [spans[member] for member in members]


def _tokens(sentence: Any, spans: list[tuple[int, int]]) -> Iterator[Token]:
    words = _words(sentence)
    indices = {word["id"]: index for index, word in enumerate(words)}
    for word, (start, end) in zip(words, spans, strict=True):
        # The library leaves the underscore, which means none.
        lemma, upos, xpos, relation = (
            "" if word[key] in (None, "_") else word[key] for key in ("lemma", "upos", "xpos", "deprel")
        )
        head = indices.get(word["head"], NO_HEAD)
        yield Token(word["form"], lemma, upos or xpos, head, relation, start, end)
