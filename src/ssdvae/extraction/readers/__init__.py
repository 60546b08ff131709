"""Where documents of text come from. A new format is a ``Format`` and one line in each table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ssdvae.config import ExtractSettings
from ssdvae.errors import UserError
from ssdvae.extraction.parsed import Parsed, Raw
from ssdvae.extraction.readers import concrete, conllu, megawika, text
from ssdvae.files import Report, check_exists

__all__ = ["FORMATS", "Format", "guess_format", "list_files"]


@dataclass(frozen=True)
class Format:
    """How documents are found in a file, and how one of them is understood.

    ``read`` is quick and yields documents one by one, telling ``report`` of pieces it must pass over.
    ``parse`` is what takes the time; it runs in many processes. ``check`` says what is not installed.
    """

    read: Callable[[Path, ExtractSettings, Report], Iterator[Raw]]
    parse: Callable[[Raw, ExtractSettings], Parsed]
    check: Callable[[ExtractSettings], object]


FORMATS: dict[str, Format] = {
    "text": Format(text.read_text, text.parse, text.load_parser),
    "csv": Format(text.read_csv, text.parse, text.load_parser),
    "jsonl": Format(text.read_jsonl, text.parse, text.load_parser),
    "parquet": Format(text.read_parquet, text.parse, text.load_parser),
    # A line of these files is a paragraph.
    "wikiextractor": Format(text.read_wikiextractor, partial(text.parse, paragraph=r"\n"), text.load_parser),
    "megawika": Format(megawika.read, megawika.parse, text.load_parser),
    "conllu": Format(conllu.read, conllu.parse, conllu.check),
    "concrete": Format(concrete.read, concrete.parse, concrete.check),
}

# What the name of a file ends in, without .gz, which every reader but Parquet's unpacks.
ENDINGS = {
    r"\.txt": "text",
    r"\.(csv|tsv)": "csv",
    r"\.(jsonl|ndjson)": "jsonl",
    r"\.parquet": "parquet",
    r"wiki_\d+": "wikiextractor",
    r"\.conllu?": "conllu",
    r"\.(concrete|comm)|\.(concrete|comm)\.(tar|zip)|\.tar|\.tgz|\.zip": "concrete",
}


def guess_format(path: Path) -> str | None:
    """The name in ``FORMATS`` that goes with the name of a file."""
    name = path.name.lower().removesuffix(".gz")
    return next((f for ending, f in ENDINGS.items() if re.search(f"(?:{ending})$", name)), None)


def list_files(sources: Sequence[Path], format: str | None = None) -> list[tuple[Path, str, str]]:
    """Every file of the sources, folders included, with its name for the reader and its format.

    In a folder, files are taken in the order of their names; those that are of no known format are not meant,
    unless a format is given: then all are.
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
