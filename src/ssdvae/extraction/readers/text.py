"""Plain text, in files, tables and the folders of wikiextractor: all parsed by spaCy.

The model is a setting. It may be any that spaCy can load and that parses dependencies.
"""

from __future__ import annotations

import html
import importlib.util
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ssdvae.config import ExtractSettings
from ssdvae.data.readers.tabular import DOCUMENT, Row, csv_rows, parquet_rows
from ssdvae.errors import DataError, UserError, not_installed, shorten
from ssdvae.extraction.parsed import Parsed, Raw
from ssdvae.extraction.tree import NO_HEAD, Token, Tree
from ssdvae.files import Report, text_lines
from ssdvae.limits import Held

# Finding documents.


def read_text(path: Path, settings: ExtractSettings, report: Report) -> Iterator[Raw]:
    """A file is a document."""
    text = Held(path, "a text")
    try:
        content = "".join(text.add(line) for _, line in text_lines(path))
    except DataError as error:
        report(error)
    else:
        yield Raw(path.name, path, None, content)


def read_csv(path: Path, settings: ExtractSettings, report: Report) -> Iterator[Raw]:
    """A row is a document."""
    rows = csv_rows(path, report, _columns(settings), ("text",))
    return _from_rows(path, rows, "line", report)


def read_parquet(path: Path, settings: ExtractSettings, report: Report) -> Iterator[Raw]:
    """A row is a document."""
    return _from_rows(path, parquet_rows(path, _columns(settings), ("text",)), "row", report)


def read_jsonl(path: Path, settings: ExtractSettings, report: Report) -> Iterator[Raw]:
    """A line is a document."""
    columns = _columns(settings)
    rows = (
        (
            number,
            {key: record.get(next((n for n in names if n in record), "")) for key, names in columns.items()},
        )
        for number, record in json_records(path, report)
    )
    return _from_rows(path, rows, "line", report)


def json_records(path: Path, report: Report) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file, one on each line."""
    for number, line in text_lines(path, report):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            report(DataError(path, number, str(error), "one JSON object on each line"))
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            report(DataError(path, number, shorten(record), "one JSON object on each line"))


def _columns(settings: ExtractSettings) -> dict[str, tuple[str, ...]]:
    return {"text": (settings.text_column.lower(),), "document": DOCUMENT}


def _from_rows(path: Path, rows: Iterable[Row], unit: str, report: Report) -> Iterator[Raw]:
    for number, cells in rows:
        text, id = cells["text"], cells.get("document")
        if isinstance(text, str):
            yield Raw(f"{path.name}:{number}" if id in (None, "") else str(id), path, number, text)
        else:
            hint = "another column is named with --text-column; MegaWika is read with --format megawika"
            report(DataError(path, number, shorten(text), "a text", hint, unit=unit))


def read_wikiextractor(path: Path, settings: ExtractSettings, report: Report) -> Iterator[Raw]:
    """The articles of a file that wikiextractor wrote: between ``<doc …>`` and ``</doc>``, or JSON lines."""
    first = next((line for _, line in text_lines(path, lambda error: None) if line.strip()), "")
    if first.startswith("{"):
        for number, record in json_records(path, report):
            if isinstance(text := record.get("text"), str):
                yield Raw(str(record.get("id", f"{path.name}:{number}")), path, number, text)
            else:
                report(DataError(path, number, "no text", "an article of wikiextractor"))
        return
    article = Held(path, "an article")
    start, id, title, lines = 0, "", "", list[str]()
    for number, line in text_lines(path, report):
        if line.startswith("<doc "):
            fields = {name: html.unescape(value) for name, value in re.findall(r'(\w+)="(.*?)"', line)}
            start, title, lines = number, fields.get("title", ""), []
            article.begin(number)
            id = fields.get("id") or f"{path.name}:{number}"
        elif line.strip() == "</doc>" and start:
            # The title stands first and is no sentence. Blanks instead of it leave all places as they are.
            if lines and html.unescape(lines[0].strip()) == title:
                lines[0] = re.sub(r"[^\n]", " ", lines[0])
            yield Raw(id, path, start, "".join(lines))
            start = 0
        elif start:
            lines.append(article.add(line))
        elif line.strip():
            report(DataError(path, number, shorten(line), "<doc …>, an article of wikiextractor"))
            return
    if start:
        report(DataError(path, start, "no </doc> for this <doc …>", "the whole of an article"))


# Understanding one.


@lru_cache(maxsize=1)
def _load(name: str) -> Any:
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


def parser_is_there(name: str) -> bool:
    """Whether spaCy and one of its models are installed, or in a folder; found out without importing it."""
    if importlib.util.find_spec("spacy") is None:
        return False
    return Path(name).is_dir() or (name.isidentifier() and importlib.util.find_spec(name) is not None)


def load_parser(settings: ExtractSettings) -> Any:
    """The spaCy model of the settings; loaded once in each process."""
    return _load(settings.spacy_model)


def parse(raw: Raw, settings: ExtractSettings, paragraph: str = r"\n\s*\n") -> Parsed:
    return parse_text(raw.id, raw.content, settings, paragraph)


def parse_text(id: str, text: str, settings: ExtractSettings, paragraph: str = r"\n\s*\n") -> Parsed:
    """A text, paragraph by paragraph: no sentence goes on from one to the next."""
    parser = load_parser(settings)
    trees: list[Tree] = []
    start = 0
    for end, next_start in (*(match.span() for match in re.finditer(paragraph, text)), (len(text),) * 2):
        piece = text[start:end]
        if piece.strip():
            # spaCy takes space at the beginning for a word.
            indent = len(piece) - len(piece.lstrip())
            trees += trees_of(parser(piece.strip()), start + indent)
        start = next_start
    return Parsed(id, text, tuple(trees))


def trees_of(doc: Any, start: int = 0) -> Iterator[Tree]:
    """The sentences of a spaCy ``Doc`` whose text begins at this place of the document."""
    for sentence in doc.sents:
        first = sentence.start
        yield Tree(
            Token(
                form=(form := token.text),
                lemma=token.lemma_,
                pos=token.pos_ or token.tag_,
                head=head - first if (head := token.head.i) != place else NO_HEAD,
                relation=token.dep_,
                start=(begin := start + token.idx),
                end=begin + len(form),
            )
            for place, token in enumerate(sentence, first)
        )
