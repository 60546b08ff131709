"""Readers of text. A new format is a ``Format`` and one line in each table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.readers import concrete, conllu, inscript, megawika, text
from ssdvae.extraction.tree import ParsedDocument, RawDocument
from ssdvae.io.errors import UserError
from ssdvae.io.files import Report, check_exists


@dataclass(frozen=True)
class Format:
    """A format of text.

    ``read`` yields raw documents and reports what it must skip; it is quick. ``parse`` returns one with its
    dependency trees, or with paragraphs that spaCy parses (``text.with_trees``); it may be slow and runs in
    many processes. ``check`` raises if a package or model is missing.
    """

    read: Callable[[Path, ExtractOptions, Report], Iterator[RawDocument]]
    parse: Callable[[RawDocument, ExtractOptions], ParsedDocument]
    check: Callable[[ExtractOptions], object]


FORMATS: dict[str, Format] = {
    "text": Format(text.read_text, text.parse, text.load_parser),
    "csv": Format(partial(text.read_table, format="csv"), text.parse, text.load_parser),
    "jsonl": Format(partial(text.read_table, format="jsonl"), text.parse, text.load_parser),
    "parquet": Format(partial(text.read_table, format="parquet"), text.parse, text.load_parser),
    # A line of these files is a paragraph.
    "wikiextractor": Format(text.read_wikiextractor, partial(text.parse, separator=r"\n"), text.load_parser),
    "megawika": Format(megawika.read, megawika.parse, text.load_parser),
    "inscript": Format(inscript.read, inscript.parse, text.load_parser),
    "conllu": Format(conllu.read, conllu.parse, conllu.check),
    "concrete": Format(concrete.read, concrete.parse, concrete.check),
}

ENDINGS = {
    r"\.txt": "text",
    r"\.(csv|tsv)": "csv",
    r"\.(jsonl|ndjson)": "jsonl",
    r"\.parquet": "parquet",
    r"wiki_\d+": "wikiextractor",
    r"\.conllu?": "conllu",
    r"\.(concrete|comm)|\.(concrete|comm)\.(tar|zip)|\.tar|\.tgz|\.zip": "concrete",
}
"""Endings of file names, without .gz, which every reader but Parquet's unpacks."""


def guess_format(path: Path) -> str | None:
    """Return the format that goes with the name of a file; None if it tells none."""
    name = path.name.lower().removesuffix(".gz")
    return next((f for ending, f in ENDINGS.items() if re.search(f"(?:{ending})$", name)), None)


def list_files(sources: Sequence[Path], format: str | None = None) -> list[tuple[Path, str, str]]:
    """Return the files of the sources, folders included: path, name for the user, format.

    Files of a folder are sorted by name. Those of no known format are ignored, unless a format is given.
    """
    if format is not None and format not in FORMATS:
        raise UserError(f"no format {format!r}; there are: {', '.join(FORMATS)}")
    files = []
    for source in sources:
        check_exists(source)
        if not source.is_dir():
            found = [source]
        else:
            found = sorted(p for p in source.rglob("*") if p.is_file() and not p.name.startswith("."))
        known = [(p, choice) for p in found if (choice := format or guess_format(p)) is not None]
        if not known:
            raise UserError(
                f"cannot tell the format of {source} from its name\n"
                f"name it with --format; there are: {', '.join(FORMATS)}"
            )
        root = source if source.is_dir() else source.parent
        files += [(path, path.relative_to(root).as_posix(), choice) for path, choice in known]
    return files
