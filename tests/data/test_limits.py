"""A small file that unpacks to a large one is refused before it fills the memory, and the limit is named."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssdvae.data.items import read_cloze
from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers import read_documents
from ssdvae.data.readers.text import read_typed
from ssdvae.data.vectors import read_vectors
from ssdvae.extraction.classifier import read_lexicon
from ssdvae.extraction.readers import FORMATS
from ssdvae.extraction.tree import RawDocument
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.files import stop_at_first_error
from ssdvae.io.limits import LINE, WHOLE, Limit, SizeCounter, format_bytes, read_whole
from ssdvae.io.records import read_json

BOMB = 40 * 2**20
"""Bytes that unpack: far more than the limits of these tests, and more than a reader may hold."""


def bomb(path: Path, before: bytes, filling: bytes) -> Path:
    """A file of that name, compressed as it says, with the same bytes over and over."""
    piece = filling * (2**20 // len(filling))

    def pour(file: Any) -> None:
        file.write(before)
        for _ in range(BOMB // len(piece)):
            file.write(piece)

    if path.suffix == ".zip":
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open("one", "w", force_zip64=True) as file,
        ):
            pour(file)
    else:
        with gzip.open(path, "wb", compresslevel=1) as packed:
            pour(packed)
    assert path.stat().st_size < BOMB / 50
    return path


def extracted(format: str) -> Callable[[Path], Any]:
    return lambda path: list(FORMATS[format].read(path, ExtractOptions(), stop_at_first_error))


def parsed(format: str) -> Callable[[Path], Any]:
    """The first 900,000 bytes understood: a file that is small enough, of parts that are a byte each."""

    def read(path: Path) -> Any:
        with zipfile.ZipFile(path) as archive, archive.open("one") as file:
            content = file.read(900_000)
        return FORMATS[format].parse(RawDocument("a", path, 1, content), ExtractOptions())

    return read


# A Concrete communication: field 1 (id) is a string, with its length as a varint: 2^31 − 1 of them.
LONG_ID = b"\x18" + b"\xff\xff\xff\xff\x07"

BOMBS: dict[str, tuple[bytes, bytes, Callable[[Path], Any], Limit]] = {
    "v.zip": (b"the ", b"1 ", lambda path: read_vectors(path, ["the"]), LINE),
    "v.txt.gz": (b"the ", b"1 ", lambda path: read_vectors(path, ["the"]), LINE),
    "d.jsonl.gz": (b'{"id": "', b"a", lambda path: list(read_documents(path)), LINE),
    "d.csv.gz": (b"id,verb\na,", b"a", lambda path: list(read_documents(path)), LINE),
    "rows.csv.gz": (b"id,verb\n", b'"a\n",', lambda path: list(read_documents(path)), LINE),
    "d_TUP.txt.gz": (b"a ", b"a ", lambda path: list(read_documents(path)), LINE),
    "l.json.gz": (b'{"a": "', b"a", read_lexicon, WHOLE),
    "l.csv.gz": (b"verb,frame\na,", b"a", read_lexicon, LINE),
    "r.json.gz": (b"[", b"[],", lambda path: read_json(path, list, "a list"), WHOLE),
    "cloze.txt.gz": (b"a ", b"a ", read_cloze, LINE),
    "c.zip": (b"", b"\0", extracted("concrete"), WHOLE),
    "c.concrete.gz": (LONG_ID, b"a", extracted("concrete"), WHOLE),
    "parts.zip": (b"\x59\xfc\x80\x80\x80\x08", b"\0", parsed("concrete"), WHOLE),
    "t.txt.gz": (b"", b"A dog.\n", extracted("text"), WHOLE),
    "wiki_00.gz": (b'<doc id="1">\n', b"A dog.\n", extracted("wikiextractor"), WHOLE),
    "s.conllu.gz": (b"", b"1\ta\n", extracted("conllu"), LINE),
    "docs.conllu.gz": (b"", b"# text = a\n1\ta\n\n", extracted("conllu"), WHOLE),
    "m.jsonl.gz": (b'{"entries": [', b"{},", extracted("megawika"), LINE),
    "i.gz": (b"", "▁a none none none none none\n".encode(), extracted("inscript"), WHOLE),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_fills_the_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, filling, read, limit = BOMBS[name]
    for variable in (LINE.variable, WHOLE.variable):
        monkeypatch.setenv(variable, "1M")
    path = bomb(tmp_path / name, before, filling)
    if name == "d_TUP.txt.gz":
        (tmp_path / "d_frame.txt").write_text("a\n")
    messages: list[str] = []
    tracemalloc.start()
    try:
        try:
            read(path)
        except DataError as error:
            messages.append(str(error))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < BOMB / 2
    assert [(str(path) in m, f"{limit.variable}=" in m) for m in messages] == [(True, True)], messages


def test_standard_input_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSDVAE_MAX_LINE", "1K")
    for endless in (b"a" * 2000, b"met she\n" * 2000):
        with pytest.raises(DataError, match=r"standard input, line 1: (?s:.*)SSDVAE_MAX_LINE=2K"):
            list(read_typed(io.BytesIO(endless)))


def test_a_limit_can_be_raised_and_what_is_below_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + "1," * 1000 + "1]")
    monkeypatch.setenv("SSDVAE_MAX_WHOLE", "2002")
    with pytest.raises(DataError, match=r"more than 1.96 KiB(?s:.*)SSDVAE_MAX_WHOLE=4004"):
        read_json(path, list, "a list")
    monkeypatch.setenv("SSDVAE_MAX_WHOLE", "2003")
    assert len(read_json(path, list, "a list")) == 1001
    assert read_whole(io.BytesIO(b"a" * 2003), path) == b"a" * 2003


@pytest.mark.parametrize("text", ["much", "0", "-1", "1.5", "1T", "9" * 30])
def test_a_limit_that_is_no_number_is_said(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSDVAE_MAX_LINE", text)
    with pytest.raises(UserError, match="SSDVAE_MAX_LINE: found"):
        assert LINE.bytes


def test_the_pieces_of_one_thing_add_up_and_those_of_the_next_do_not() -> None:
    held = SizeCounter("a", "a row", Limit("SSDVAE_TEST", 2 * 60))
    for line in range(5):
        held.begin(line)
        assert held.add("x" * 10) + held.add("y" * 10) == "x" * 10 + "y" * 10
    with pytest.raises(DataError, match="a, line 4: found a row of more than 120 bytes"):
        held.add("z")


def test_sizes_are_shown_in_units() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1024, 16 * 2**20, 1.5 * 2**30, 2**60)] == [
        "0 bytes", "1,023 bytes", "1 KiB", "16 MiB", "1.5 GiB", "1,048,576 TiB",
    ]  # fmt: skip
