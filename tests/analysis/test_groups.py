"""Groups of documents: read from tables of any kind, and from what a corpus was prepared from."""

from __future__ import annotations

import csv
import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.analysis.compare import groups_of_sources, read_groups
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.files import sha256

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1).map(str.strip)
GROUPS = st.dictionaries(NAMES.filter(bool), NAMES.filter(bool), min_size=1, max_size=5)


@given(GROUPS, st.sampled_from(["csv", "tsv", "jsonl", "parquet"]), st.sampled_from(["id", "document"]))
def test_groups_are_read_as_they_were_written(groups: dict[str, str], kind: str, id: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"a.{kind}")
        if kind == "parquet":
            pq.write_table(pa.table({"year": list(groups.values()), id: list(groups)}), path)
        with path.open("a", encoding="utf-8", newline="") as file:
            if kind == "jsonl":
                file.writelines(
                    json.dumps({"id": i, "year": g, "events": []}) + "\n" for i, g in groups.items()
                )
            elif kind != "parquet":
                writer = csv.writer(file, delimiter="," if kind == "csv" else "\t")
                writer.writerows([("year", "x", id), *((g, "", i) for i, g in groups.items())])
        assert read_groups(path, "year") == groups


def test_documents_without_a_group_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"id": 1, "group": 2020}\n\n{"id": "b"}\n{"id": "c", "group": null}\n{"id": 1, "group": 2020}\n'
    )
    assert read_groups(path) == {"1": "2020"}
    (tmp_path / "a.csv").write_text("name,kind\na,x\n\nb,\n")
    assert read_groups(tmp_path / "a.csv") == {"a": "x"}


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.csv", "id,group\na,b\na,c\n", "line 3: found the document 'a' in the groups 'b' and 'c'"),
        (
            "a.csv",
            "name,kind,year\n",
            "found the columns name, kind, year, expected the columns doc",
        ),
        ("a.csv", "id,group\na\n", "line 2: found 1 cells, expected"),
        ("a.csv", "id,group\n", "found no document with a 'group'"),
        ("a.jsonl", '{"group": "a"}\n', "line 1: found {'group': 'a'}, expected"),
        ("a.jsonl", '{"id": "a", "group": []}\n', r"line 1: found \[\] under 'group'"),
        ("a.jsonl", "[]\n", "line 1: found"),
        ("a.parquet", "no", "expected a Parquet file"),
        ("a.txt", "a b\n", "found a file of groups of an unknown kind, expected .csv"),
    ],
)
def test_wrong_files_of_groups_are_named(tmp_path: Path, name: str, content: str, match: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=match):
        read_groups(tmp_path / name)


@given(st.binary(max_size=40), st.sampled_from(["a.csv", "a.jsonl", "a.parquet"]))
def test_any_bytes_are_read_or_refused_in_words(content: bytes, name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(b"id,group\n" * name.endswith("csv") + content)
        with suppress(DataError):
            read_groups(path)


def test_a_column_of_what_the_corpus_was_prepared_from(tmp_path: Path) -> None:
    one, two = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    one.write_text('{"id": "a", "shop": "x", "events": []}\n')
    two.write_text('{"id": "b", "shop": "y", "events": []}\n')
    sources = [(path, sha256(path)) for path in (one, two)]
    assert groups_of_sources(sources, "shop") == {"a": "x", "b": "y"}
    with pytest.raises(UserError, match=r"--compare colour: there is no such file(.|\n)*'colour'"):
        groups_of_sources(sources, "colour")
    # One that was changed since then is not asked.
    one.write_text("{}\n")
    assert groups_of_sources(sources, "shop") == {"b": "y"}
    with pytest.raises(UserError, match="are not where they were"):
        groups_of_sources(sources[:1], "shop")
