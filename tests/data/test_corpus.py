"""A corpus folder that was damaged is refused, with the file and the place in it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data import corpus as corpora
from ssdvae.data.corpus import Corpus, check_file
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.files import sha256
from ssdvae.storyworld.world import World


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_jsonl(folder / "events.jsonl", World.embedded().documents(60, seed=3))
    settings = PrepareOptions(events=5, vocabulary=100, valid_share=0.2, test_share=0.2, cloze_options=2)
    return prepare(folder / "events.jsonl", folder / "corpus", settings).folder


@pytest.fixture
def corpus(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SSDVAE_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(made, tmp_path / "corpus"))


def open_all(folder: Path) -> Corpus:
    """Everything that a command might read."""
    corpus = Corpus(folder)
    for split in ("train", "valid", "test"):
        corpus.split(split)
    corpus.items("cloze", "valid")
    return corpus


FILES = ("train.arrow", "valid.arrow", "vocab.json", "frames.json", "cloze/valid.txt")


@pytest.mark.parametrize("name", FILES)
def test_any_byte_that_was_changed_is_noticed(corpus: Path, name: str) -> None:
    open_all(corpus)  # and remembered
    path = corpus / name
    content = bytearray(path.read_bytes())
    for place in (0, len(content) // 2, len(content) - 1):
        content[place] ^= 1
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}: found the SHA-256 \w+"):
            open_all(corpus)
        content[place] ^= 1
    path.write_bytes(content[:-1])
    with pytest.raises(
        DataError, match=f"{name}: found {len(content) - 1:,} bytes, expected {len(content):,}"
    ):
        open_all(corpus)
    path.unlink()
    with pytest.raises(UserError, match=f"{name}: there is no such file"):
        open_all(corpus)


def test_every_word_of_a_split_replaced_is_noticed(corpus: Path) -> None:
    """The damage that trained in silence: as many bytes, all of them in range."""
    path = corpus / "train.arrow"
    with pa.OSFile(str(path)) as file:
        table = pa.ipc.open_stream(file).read_all()
    tokens = table.column("tokens").combine_chunks()
    other = pa.ListArray.from_arrays(tokens.offsets, np.full(len(tokens.flatten()), 2, np.int32))
    table = table.set_column(table.schema.get_field_index("tokens"), "tokens", other)
    size = path.stat().st_size
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    assert path.stat().st_size == size
    with pytest.raises(DataError, match="SHA-256"):
        Corpus(corpus).split("train")


def test_a_file_is_hashed_once_and_again_when_it_was_touched(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []

    def hash_and_tell(path: Path) -> str:
        hashed.append(path.name)
        return sha256(path)

    monkeypatch.setattr(corpora, "sha256", hash_and_tell)
    Corpus(corpus).split("train")
    assert sorted(hashed) == ["frames.json", "train.arrow", "vocab.json"]
    Corpus(corpus).split("train")
    assert len(hashed) == 3
    os.utime(corpus / "train.arrow", ns=(0, 0))
    Corpus(corpus).split("train")
    assert hashed[3:] == ["train.arrow"]
    Corpus(corpus).checked("train.arrow", anew=True)
    assert len(hashed) == 5


def test_without_a_place_to_remember_it_is_checked_all_the_same(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SSDVAE_CACHE", str(tmp_path / "file" / "cache"))
    open_all(corpus)
    (corpus / "train.arrow").write_bytes(b"")
    with pytest.raises(DataError):
        open_all(corpus)


@given(st.binary(max_size=60) | st.just(b"[" * 5000) | st.just(b"[1e999, {}, null]"))
def test_whatever_stands_in_the_memory_is_no_reason_to_trust_a_file(content: bytes) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSDVAE_CACHE", folder + "/cache")
        path = Path(folder, "a")
        path.write_bytes(b"right")
        check_file(path, 5, hashlib.sha256(b"right").hexdigest())
        (note,) = Path(folder, "cache", "checked").iterdir()
        note.write_bytes(content)
        path.write_bytes(b"wrong")
        with pytest.raises(DataError, match="SHA-256"):
            check_file(path, 5, hashlib.sha256(b"right").hexdigest())


def change(folder: Path, name: str, edit: Callable[[Any], Any]) -> None:
    """Edit a JSON file, and let the manifest vouch for what comes of it."""
    path = folder / name
    value = edit(json.loads(path.read_text()))
    path.write_text(json.dumps(value))
    vouch(folder, name)


def vouch(folder: Path, name: str) -> None:
    if name != "manifest.json":
        content = (folder / name).read_bytes()
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
        manifest.setdefault("bytes", {})[name] = len(content)
        (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), 7, "found format 7, expected format"),
        (("format",), True, "found format True"),
        (("splits",), None, "found None at splits, expected a mapping"),
        (("splits", "train"), None, "found None at splits.train, expected a mapping"),
        (
            ("splits", "train", "documents"),
            "9",
            "found '9' at splits.train.documents, expected a whole number",
        ),
        (("splits", "train", "documents"), -9, "found -9 at splits.train.documents, expected 0 or more"),
        (("splits", "train", "documents"), 10**30, "at splits.train.documents, expected a whole number"),
        (("splits", "train", "documents"), 1, "train.arrow: found .* documents, expected 1"),
        (("words",), 7, "found 7 words, expected 1"),
        (("sha256",), {}, "found no vocab.json at sha256"),
        (("sha256", "vocab.json"), "x", "found 'x' at sha256.vocab.json, expected 64"),
        (("sources",), [1], r"found 1 at sources\[1\], expected a mapping"),
        (("settings",), [], r"found \[\] at settings, expected a mapping"),
        (("settings", "events"), 10**12, "manifest.json|train.arrow: found"),
        (("settings", "events"), "5", "found '5' at settings.events, expected a whole number"),
        (("settings", "events"), 4, "train.arrow, document .: found 5 in 'events', expected from 1 to 4"),
        (("splits", "train", "longest"), -1, "found -1 at splits.train.longest, expected 0 or more"),
        (("settings", "lowercase"), 1, "found 1 at settings.lowercase, expected true or false"),
        (("bytes", "vocab.json"), 1, "vocab.json: found .* bytes, expected 1"),
    ],
)
def test_a_manifest_gone_wrong(corpus: Path, place: tuple[str, ...], value: Any, message: str) -> None:
    def edit(manifest: Any) -> Any:
        inner = manifest
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        return manifest

    change(corpus, "manifest.json", edit)
    with pytest.raises(DataError, match=message):
        open_all(corpus)


def test_what_a_manifest_has_beside_is_passed_over(corpus: Path) -> None:
    def edit(manifest: Any) -> Any:
        manifest["splits"]["train"]["more"] = manifest["cloze"]["more"] = manifest["more"] = ["x"]
        return manifest

    change(corpus, "manifest.json", edit)
    open_all(corpus)


def test_a_manifest_without_one_of_its_parts(corpus: Path) -> None:
    whole = json.loads((corpus / "manifest.json").read_text())
    for key in whole:
        (corpus / "manifest.json").write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        with pytest.raises(DataError, match=rf"manifest.json: found (no {key}|format None)"):
            open_all(corpus)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "expected an inventory"),
        ({}, "found no names"),
        ({"names": ["None", "<unk>"]}, "found no counts"),
        ({"names": ["None", "<unk>", 3], "counts": [1, 1, 1]}, r"found 3 at names\[3\], expected text"),
        ({"names": ["None", "<unk>"], "counts": [1, "1"]}, r"found '1' at counts\[2\]"),
        ({"names": ["None", "<unk>"], "counts": [1, -1]}, "found a count below 0 of '<unk>'"),
        ({"names": ["None", "<unk>"], "counts": [1]}, "one count for each"),
        ({"names": ["None", "<unk>", "a", "a"], "counts": [1] * 4}, "no name twice"),
        ({"names": ["None", "a"], "counts": [1, 1]}, "found no name '<unk>'"),
        ({"names": ["None", "<unk>", "\ud800"], "counts": [1] * 3}, "half of a surrogate pair"),
    ],
)
def test_a_vocabulary_gone_wrong(corpus: Path, record: Any, message: str) -> None:
    change(corpus, "vocab.json", lambda _: record)
    with pytest.raises(DataError, match=rf"vocab.json: (?s:.*){message}"):
        open_all(corpus)


def test_an_empty_inventory_of_frames(corpus: Path) -> None:
    change(corpus, "frames.json", lambda _: {"names": [], "counts": []})
    with pytest.raises(DataError, match=r"expected 0, as there are names"):
        open_all(corpus)


@pytest.mark.parametrize("name", ["events", "lowercase"])
def test_a_manifest_without_a_setting_that_is_read_later(corpus: Path, name: str) -> None:
    manifest = json.loads((corpus / "manifest.json").read_text())
    del manifest["settings"][name]
    (corpus / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=rf"manifest\.json: found no settings\.{name}"):
        Corpus(corpus)


def arrow(folder: Path, edit: Callable[[pa.Table], pa.Table]) -> None:
    path = folder / "train.arrow"
    with pa.OSFile(str(path)) as file:
        table = edit(pa.ipc.open_stream(file).read_all())
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    vouch(folder, "train.arrow")


def altered(column: str, place: int, value: int | None) -> Callable[[pa.Table], pa.Table]:
    """A number changed in a column, whatever its type."""

    def edit(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(column)
        kind = table.schema.field(index).type
        rows = table.column(column).to_pylist()
        if isinstance(rows[place], list):
            rows[place][0] = value
        else:
            rows[place] = value
        return table.set_column(index, table.schema.field(index), pa.array(rows, kind))

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda table: table.drop_columns(["frames"]), "found 0 columns 'frames', expected one"),
        (lambda table: table.append_column("id", table.column("id")), "found 2 columns 'id'"),
        (lambda table: table.slice(1), "documents, expected"),
        (altered("tokens", 3, -1), "document 4: found -1 in 'tokens', expected from 0 to 99"),
        (altered("tokens", 3, 100), "document 4: found 100 in 'tokens'"),
        (altered("tokens", 0, None), "found empty cells in 'tokens'"),
        (altered("frames", 2, -2), "document 3: found -2 in 'frames', expected from -1"),
        (altered("frames", 2, 10**6), "document 3: found 1000000 in 'frames'"),
    ],
)
def test_numbers_and_columns_that_cannot_be(
    corpus: Path, edit: Callable[[pa.Table], pa.Table], message: str
) -> None:
    arrow(corpus, edit)
    with pytest.raises(DataError, match=rf"train.arrow(?s:.*){message}"):
        open_all(corpus)


def of_length(column: str, length: int) -> Callable[[pa.Table], pa.Table]:
    """The first document has another number of numbers in a column."""

    def edit(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(column)
        rows = [[0] * length, *table.column(column).to_pylist()[1:]]
        return table.set_column(index, table.schema.field(index), pa.array(rows, pa.list_(pa.int32())))

    return edit


@pytest.mark.parametrize("length", [0, 6])
def test_a_length_that_cannot_be(corpus: Path, length: int) -> None:
    arrow(corpus, of_length("frames", length))
    with pytest.raises(DataError, match=rf"document 1: found {length} in 'events', expected from 1 to 5"):
        open_all(corpus)


def test_words_that_are_not_those_of_the_events(corpus: Path) -> None:
    arrow(corpus, of_length("tokens", 7))
    with pytest.raises(
        DataError, match=r"document 1: found 7 numbers in 'tokens', expected \d+, for \d events"
    ):
        open_all(corpus)


@given(st.data())
def test_an_arrow_file_of_any_bytes_is_read_as_it_was_or_refused(made: Path, data: st.DataObject) -> None:
    """Even where the manifest vouches for it: the hash is no excuse for trusting a number."""
    with TemporaryDirectory() as temporary, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSDVAE_CACHE", temporary + "/cache")
        folder = Path(shutil.copytree(made, Path(temporary, "corpus")))
        path = folder / "train.arrow"
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(content) - 1))
            content[place] = data.draw(st.integers(0, 255))
        cut = data.draw(st.none() | st.integers(0, len(content)))
        path.write_bytes(content[:cut])
        vouch(folder, "train.arrow")
        try:
            documents = Corpus(folder).split("train")
        except DataError as error:
            refused = str(error)
        else:
            refused = "train.arrow"
            assert documents.tokens.shape == (documents.events, 4)
            assert documents.frames.shape == (documents.events,)
            assert 1 <= documents.lengths.min() <= documents.lengths.max() <= 5
        assert "train.arrow" in refused
