"""Plain text, in files, tables and the folders of wikiextractor, parsed by spaCy."""

from __future__ import annotations

import html
import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers.rows import DOCUMENT, TABLES, named_rows
from ssdvae.extraction.tree import NO_HEAD, ParsedDocument, RawDocument, Token, Tree
from ssdvae.io.errors import DataError, UserError, not_installed, shorten
from ssdvae.io.files import Report, text_lines
from ssdvae.io.limits import SizeCounter

BATCH = 64
"""Paragraphs that spaCy parses at once."""


def read_text(path: Path, options: ExtractOptions, report: Report) -> Iterator[RawDocument]:
    """Yield a file as one document."""
    text = SizeCounter(path, "a text")
    try:
        content = "".join(text.add(line) for _, line in text_lines(path))
    except DataError as error:
        report(error)
    else:
        yield RawDocument(path.name, path, None, content)


def read_table(path: Path, options: ExtractOptions, report: Report, format: str) -> Iterator[RawDocument]:
    """Yield each row of a table (csv, parquet, jsonl) as a document."""
    columns = {"text": (options.text_column.lower(),), "document": DOCUMENT}
    for number, cells in named_rows(path, format, report, columns, ("text",)):
        text, id = cells["text"], cells.get("document")
        if isinstance(text, str):
            yield RawDocument(f"{path.name}:{number}" if id in (None, "") else str(id), path, number, text)
        else:
            hint = "another column is named with --text-column; MegaWika is read with --format megawika"
            report(DataError(path, number, shorten(text), "a text", hint, unit=TABLES[format]))


def read_wikiextractor(path: Path, options: ExtractOptions, report: Report) -> Iterator[RawDocument]:
    """Yield the articles of a file of wikiextractor: between ``<doc …>`` and ``</doc>``, or JSON lines."""
    first = next((line for _, line in text_lines(path, lambda error: None) if line.strip()), "")
    if first.startswith("{"):
        yield from read_table(path, options, report, "jsonl")
        return
    article = SizeCounter(path, "an article")
    start, id, title, lines = 0, "", "", list[str]()
    for number, line in text_lines(path, report):
        if line.startswith("<doc "):
            fields = {name: html.unescape(value) for name, value in re.findall(r'(\w+)="(.*?)"', line)}
            start, title, lines = number, fields.get("title", ""), []
            article.begin(number)
            id = fields.get("id") or f"{path.name}:{number}"
        elif line.strip() == "</doc>" and start:
            # The title comes first and is no sentence. Blanks in its place keep all spans as they are.
            if lines and html.unescape(lines[0].strip()) == title:
                lines[0] = re.sub(r"[^\n]", " ", lines[0])
            yield RawDocument(id, path, start, "".join(lines))
            start = 0
        elif start:
            lines.append(article.add(line))
        elif line.strip():
            report(DataError(path, number, shorten(line), "<doc …>, an article of wikiextractor"))
            return
    if start:
        report(DataError(path, start, "no </doc> for this <doc …>", "the whole of an article"))


# Parsing.


def load_parser(options: ExtractOptions) -> Any:
    """Return the spaCy model of the options; loaded once in each process."""
    return _load_parser(options.spacy_model)


@lru_cache(maxsize=1)
def _load_parser(name: str) -> Any:
    try:
        import spacy
    except ImportError as error:
        raise not_installed("spacy", "text", "parsing text") from error
    try:
        parser = spacy.load(name, exclude=["ner"])
    except OSError as error:
        raise UserError(
            f"there is no spaCy model {name!r} here, and plain text must be parsed\n"
            f"get one: python -m spacy download {'en_core_web_sm' if '/' in name else name}\n"
            "or name the folder of another with --spacy-model\n"
            "text that any parser has written as CoNLL-U (.conllu) needs no model"
        ) from error
    if not parser.has_pipe("parser"):
        raise UserError(
            f"the spaCy model {name!r} parses no dependencies; it has: {', '.join(parser.pipe_names)}\n"
            "choose another with --spacy-model, such as en_core_web_sm"
        )
    return parser


def has_parser(name: str) -> bool:
    """Tell whether spaCy and one of its models are installed, without importing them."""
    if importlib.util.find_spec("spacy") is None:
        return False
    return Path(name).is_dir() or (name.isidentifier() and importlib.util.find_spec(name) is not None)


def parse(raw: RawDocument, options: ExtractOptions, separator: str = r"\n\s*\n") -> ParsedDocument:
    """Return a document of text with its paragraphs."""
    return split_text(raw.id, raw.content, separator)


def split_text(id: str, text: str, separator: str = r"\n\s*\n") -> ParsedDocument:
    """Return a text with its paragraphs, for ``with_trees``; no sentence crosses their ends."""
    paragraphs: list[tuple[str, int]] = []
    start = 0
    for end, next_start in (*(match.span() for match in re.finditer(separator, text)), (len(text),) * 2):
        paragraph = text[start:end]
        if paragraph.strip():
            # spaCy takes space at the beginning for a word.
            indent = len(paragraph) - len(paragraph.lstrip())
            paragraphs.append((paragraph.strip(), start + indent))
        start = next_start
    return ParsedDocument(id, text, paragraphs=tuple(paragraphs))


def with_trees(documents: Sequence[ParsedDocument], options: ExtractOptions) -> Iterator[ParsedDocument]:
    """Yield documents with the trees of their paragraphs, which are parsed in batches across documents."""
    texts = [text for document in documents for text, _ in document.paragraphs]
    docs = load_parser(options).pipe(texts, batch_size=BATCH) if texts else iter(())
    for document in documents:
        trees = [tree for _, start in document.paragraphs for tree in trees_of(next(docs), start)]
        yield replace(document, sentences=(*document.sentences, *trees), paragraphs=())


def trees_of(doc: Any, start: int = 0) -> Iterator[Tree]:
    """Yield the sentences of a spaCy ``Doc`` whose text begins at this position of the document."""
    for sentence in doc.sents:
        first = sentence.start
        yield Tree(
            Token(
                form=(form := token.text),
                lemma=token.lemma_,
                pos=token.pos_ or token.tag_,
                head=head - first if (head := token.head.i) != index else NO_HEAD,
                relation=token.dep_,
                start=(begin := start + token.idx),
                end=begin + len(form),
            )
            for index, token in enumerate(sentence, first)
        )
