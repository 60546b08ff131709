"""Tables and logs: whatever their format, rows become the same documents, and mistakes are told by line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import quoteattr

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from ssdvae.data.columns import XES, Columns
from ssdvae.data.events import Document, Event
from ssdvae.data.options import ColumnOptions, PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import Skipped, find_columns, read_documents
from ssdvae.data.readers.tables import sort_rows
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.files import stop_at_first_error

COLUMNS = Columns(case="ticket", head="action", time="when", arguments=("agent", "product"), label="stage")


def changed(columns: Columns, **changes: Any) -> Columns:
    return columns.model_copy(update=changes)


NAMES = COLUMNS.read
Row = dict[str, Any]

# XML has no control characters, and its readers fold line ends.
CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff\u2028\u2029\x85")
WORDS = st.text(CHARACTERS, min_size=1, max_size=5).filter(lambda w: w.split() == [w] and w != "None")
EMPTY = st.none()
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ticket": st.sampled_from(["a", "b,c", "é 3", '"q"']),
            "when": st.integers(0, 4).map(lambda second: f"2024-01-01 10:00:0{second}"),
            "action": WORDS,
            "agent": EMPTY | WORDS,
            "product": EMPTY | WORDS,
            "stage": EMPTY | WORDS,
        }
    ),
    min_size=1,
    max_size=12,
)


def expected(rows: list[Row], timed: bool = True) -> list[Document]:
    """Grouped and sorted by Python: cases as they begin, rows of the same time as they stand."""
    cases: dict[str, list[Row]] = {}
    for row in rows:
        cases.setdefault(row["ticket"], []).append(row)
    ordered = {
        case: sorted(some, key=lambda row: row["when"]) if timed else some for case, some in cases.items()
    }
    return [
        Document(
            case,
            tuple(Event(row["action"], row["agent"], row["product"], frame=row["stage"]) for row in some),
        )
        for case, some in ordered.items()
    ]


# Writers made for the tests.


def csv_bytes(rows: list[Row], delimiter: str = ",") -> bytes:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(NAMES)
    writer.writerows([[row.get(name) or "" for name in NAMES] for row in rows])
    return file.getvalue().encode()


def parquet_bytes(rows: list[Row]) -> bytes:
    sink = io.BytesIO()
    table = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in NAMES}
    parquet.write_table(pa.table(table), sink, row_group_size=3)
    return sink.getvalue()


def jsonl_bytes(rows: list[Row]) -> bytes:
    return "".join(
        json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in rows
    ).encode()


def xes_bytes(rows: list[Row]) -> bytes:
    """One trace a row, which is allowed: traces of the same name are one case."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<log xmlns="http://www.xes-standard.org/">']
    lines.append('<string key="ticket" value="of the log"/><global scope="event">')
    lines.append('<string key="action" value="__INVALID__"/></global>')
    for row in rows:
        lines.append(f"<trace><string key='ticket' value={quoteattr(row['ticket'])}/><event>")
        lines.append("<list key='agents'><values><string key='agent' value='no'/></values></list>")
        for name in NAMES[1:]:
            if row.get(name) is not None:
                lines.append(f"<string key={quoteattr(name)} value={quoteattr(row[name])}/>")
        lines.append("</event></trace>")
    return "\n".join([*lines, "</log>"]).encode()


FORMATS: dict[str, Callable[[list[Row]], bytes]] = {
    "a.csv": csv_bytes,
    "a.tsv": lambda rows: csv_bytes(rows, "\t"),
    "a.csv.gz": lambda rows: gzip.compress(csv_bytes(rows, ";")),
    "a.parquet": parquet_bytes,
    "a.parquet.gz": lambda rows: gzip.compress(parquet_bytes(rows)),
    "a.jsonl": jsonl_bytes,
    "a.jsonl.gz": lambda rows: gzip.compress(jsonl_bytes(rows)),
    "a.xes": xes_bytes,
    "a.xes.gz": lambda rows: gzip.compress(xes_bytes(rows)),
}


def read(
    name: str, content: bytes, columns: Columns = COLUMNS, skipped: Skipped | None = None
) -> list[Document]:
    if ".xes" in name and columns.case == "ticket":
        columns = changed(columns, case="case:ticket")
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        return list(read_documents(path, skip_bad=skipped, columns=columns))


@settings(max_examples=15, deadline=None)
@given(ROWS, st.sampled_from(["csv", "tsv", "csv.gz", "parquet", "jsonl", "jsonl.gz"]), st.integers(1, 5))
def test_a_table_in_shards_is_one_table(rows: list[Row], ending: str, size: int) -> None:
    """A case may go on from one to the next; of equal times, the row of the earlier shard comes first."""
    full = {"ticket": "z", "when": "2024-01-02", "action": "b", "agent": "c", "product": "d", "stage": "e"}
    rows = [*rows, full]
    with TemporaryDirectory() as folder:
        for number, start in enumerate(range(0, len(rows), size)):
            shard = Path(folder, f"part-{number:05d}.{ending}")
            shard.write_bytes(FORMATS[f"a.{ending}"](rows[start : start + size]))
        found = list(read_documents(folder, columns=COLUMNS, strict=True))
        assert found == expected(rows)
        with pytest.raises(DataError, match="no column 'agnt'"):
            list(read_documents(folder, columns=changed(COLUMNS, arguments=("agnt", "product")), strict=True))


ROW: Row = {
    "ticket": "a",
    "when": "2024-01-01 10:00",
    "action": "opened",
    "agent": "x",
    "product": "p",
    "stage": "S",
}


def test_a_bad_row_of_a_shard_is_told_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "part-00000.csv").write_bytes(csv_bytes([ROW, ROW]))
    for change, message in (
        ({"when": "soon"}, r"part-00001\.csv, line 3: found the time 'soon'"),
        (
            {"when": "2024-01-01T00:00Z"},
            r"expected a time without a time zone, as on line 2 of part-00000\.csv",
        ),
    ):
        (tmp_path / "part-00001.csv").write_bytes(csv_bytes([ROW, {**ROW, **change}]))
        with pytest.raises(DataError, match=message):
            list(read_documents(tmp_path, columns=COLUMNS, strict=True))
    (tmp_path / "part-00001.csv").unlink()
    (tmp_path / "part-00001.parquet").write_bytes(parquet_bytes([ROW]))
    named = ColumnOptions(case="ticket", head="action")
    with pytest.raises(UserError, match="shards of different kinds"):
        find_columns(named, tmp_path, None)
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(UserError, match="is a folder without shards"):
        find_columns(named, tmp_path, None)


def test_parquet_that_ends_before_its_last_row_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library reads some damaged files so."""
    content = parquet_bytes([ROW, ROW])
    assert len(read("a.parquet", content)) == 1
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", lambda *_, **__: iter(()))
    with pytest.raises(
        DataError, match=r"a\.parquet: found data that cannot be read \(0 rows where it says 2\)"
    ):
        read("a.parquet", content)


def test_a_corpus_of_a_table_in_shards(tmp_path: Path) -> None:
    """Is that of the table in one file: bins and splits are by the whole."""
    rows = [
        {
            "ticket": f"t{n % 40}",
            "when": f"2024-01-01 10:{n % 60:02d}",
            "action": f"did{n % 7}",
            "agent": str(n % 13),
        }
        for n in range(240)
    ]
    (tmp_path / "table.csv").write_bytes(csv_bytes(rows))
    (tmp_path / "shards").mkdir()
    for number in range(3):
        part = csv_bytes(rows[80 * number : 80 * number + 80])
        (tmp_path / "shards" / f"part-0000{number}.csv").write_bytes(part)
    asked = PrepareOptions(
        case="ticket", time="when", head="action", arguments="agent", bin="agent=3", valid_share=0.2
    )
    one = prepare(tmp_path / "table.csv", tmp_path / "one", asked)
    many = prepare(tmp_path / "shards", tmp_path / "many", asked)
    assert one.fingerprint == many.fingerprint
    assert one.columns == many.columns
    assert len(many.manifest["sources"]) == 3


@settings(max_examples=30, deadline=None)
@given(ROWS, st.sampled_from(list(FORMATS)), st.booleans())
def test_rows_are_grouped_by_case_and_sorted_by_time(rows: list[Row], name: str, timed: bool) -> None:
    columns = COLUMNS if timed else changed(COLUMNS, time=None)
    assert read(name, FORMATS[name](rows), columns) == expected(rows, timed)


@settings(max_examples=15, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_a_file_matters_only_where_times_are_the_same(rows: list[Row], rng: Any) -> None:
    rows = [{**row, "when": f"2024-01-01 10:00:{place:02d}"} for place, row in enumerate(rows)]
    mixed = rng.sample(rows, len(rows))
    name = {document.id: document for document in read("a.csv", csv_bytes(mixed))}
    assert name == {document.id: document for document in expected(rows)}


def log_of(count: int, wide: int = 1) -> list[Row]:
    """Many rows, of cases that are mixed, with a cell that is so many numbers wide."""
    rng = random.Random(1)
    return [
        {
            "ticket": f"case-{rng.randrange(count // 5)}",
            "when": str(rng.randrange(count // 3)),
            "action": f"action-{number}",
            "agent": "_".join(str(rng.random()) for _ in range(wide)),
            "product": f"{rng.expovariate(0.01):.4f}",
            "stage": None,
        }
        for number in range(count)
    ]


def test_the_result_does_not_depend_on_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of which the smaller memory holds only a part."""
    rows = log_of(20_000, wide=20)
    (tmp_path / "a.csv").write_bytes(csv_bytes(rows))
    results = []
    for limit in ("20M", "1G"):
        monkeypatch.setenv("SSDVAE_SORT_MEMORY", limit)
        binned = frozenset({"product"})
        with sort_rows(tmp_path / "a.csv", "csv", COLUMNS, stop_at_first_error, binned=binned) as some:
            edges = some.edges({"product": 10})
            results.append((edges, list(some.documents(changed(COLUMNS, bins=edges)))))
    assert results[0] == results[1]
    edges, documents = results[0]
    assert len(edges["product"]) == 9
    for row in rows:
        row["when"] = int(row["when"])
    heads = [[event.head for event in document.events] for document in documents]
    assert heads == [[event.head for event in document.events] for document in expected(rows)]


def test_too_little_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_bytes(csv_bytes(log_of(5_000, wide=20)))
    monkeypatch.setenv("SSDVAE_SORT_MEMORY", "1M")
    with pytest.raises(UserError, match=r"a\.csv: its rows cannot be sorted within 1,048,576 bytes\n.*=2M"):
        list(read_documents(tmp_path / "a.csv", columns=COLUMNS))


# Mistakes


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.xes"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"action": ""}, "nothing under 'action', expected what happened, since it is the --head"),
        ({"ticket": " "}, r"no case under '(case:)?ticket'"),
        ({"when": "01/02/2024"}, "the time '01/02/2024', expected a time such as"),
        (
            {"when": "2024-01-01T10:00Z"},
            "a time with a time zone, expected a time without a time zone, as on",
        ),
        ({"when": "1700000000"}, "a number, expected a time without"),
        ({"when": ""}, "no time"),
    ],
)
def test_a_bad_row_is_told_by_its_line(name: str, change: Row, message: str) -> None:
    rows = [ROW, {**ROW, **change}, {**ROW, "action": "closed"}]
    content = FORMATS[name](rows)
    line = {"a.csv": 3, "a.parquet": 2, "a.jsonl": 2, "a.xes": 1 + content.split(b"<trace>")[0].count(b"\n")}
    if name == "a.xes":
        line[name] += content.split(b"<trace>")[1].count(b"\n")
    unit = "row" if name == "a.parquet" else "line"
    with pytest.raises(DataError, match=rf"{name}, {unit} {line[name]}: found .*{message}"):
        read(name, content)
    [document] = read(name, content, skipped=(skipped := Skipped()))
    assert [event.head for event in document.events] == ["opened", "closed"]
    assert skipped.count == 1


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.xes"])
@pytest.mark.parametrize("wrong", ["case", "head", "time", "arguments", "label"])
@pytest.mark.parametrize("skipped", [None, Skipped()])
def test_a_column_that_is_not_there_is_told_with_those_that_are(
    name: str, wrong: str, skipped: Skipped | None, tmp_path: Path
) -> None:
    columns = changed(COLUMNS, case="case:ticket" if name == "a.xes" else "ticket")
    path = tmp_path / name
    path.write_bytes(FORMATS[name]([ROW, ROW]))
    typo: Any = ("agemt", "product") if wrong == "arguments" else f"{getattr(columns, wrong)}x"
    asked = changed(columns, **{wrong: typo})
    near = "agent" if wrong == "arguments" else getattr(columns, wrong)
    with (
        pytest.raises(DataError, match=rf"no column '\w*:?\w*'(?s:.*)stage(?s:.*)did you mean '{near}'"),
        sort_rows(path, name[2:], asked, skipped or stop_at_first_error) as rows,
    ):
        list(rows.documents(asked))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.xes"])
def test_a_new_table_may_have_no_labels(name: str) -> None:
    rows = [{k: v for k, v in ROW.items() if k != "stage"}]
    content = FORMATS[name](rows)
    if name == "a.csv":
        content = b"ticket,when,action,agent,product\na,2024-01-01,opened,x,p\n"
    if name == "a.parquet":
        sink = io.BytesIO()
        parquet.write_table(pa.table({k: [v] for k, v in rows[0].items()}), sink)
        content = sink.getvalue()
    assert read(name, content) == [Document("a", (Event("opened", "x", "p"),))]


def test_numbers_dates_and_inner_values_are_cells_too() -> None:
    stamps = [datetime(2024, 1, 1, 10, 0, 1, tzinfo=UTC), datetime(2024, 1, 1, 10, tzinfo=UTC)]
    table = pa.table(
        {
            "ticket": pa.array([7, 7]),
            "when": pa.array(stamps, pa.timestamp("ns", "Europe/Berlin")),
            "action": pa.array([True, False]),
            "agent": pa.array([2.5, float("nan")]),
            "product": pa.array([1, None]),
            "stage": pa.array(["b", "a"]).dictionary_encode(),
        }
    )
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    there = [Document("7", (Event("false", frame="a"), Event("true", "2.5", "1", frame="b")))]
    assert read("a.parquet", sink.getvalue()) == there
    sink = io.BytesIO()
    parquet.write_table(table.set_column(0, "ticket", pa.array([7.5, float("nan")])), sink)
    with pytest.raises(DataError, match="row 2: found no case under 'ticket'"):
        read("a.parquet", sink.getvalue())
    line = b'{"ticket": 7, "when": 1.5, "action": "a b", "agent": {"name": {"last": "x"}}, "product": 1}'
    asked = changed(COLUMNS, arguments=("agent.name.last", "product"), label=None)
    assert read("a.jsonl", line, asked) == [Document("7", (Event("a b", "x", "1"),))]
    with pytest.raises(DataError, match=r"line 1: found \{.*under 'agent', expected a word or a number"):
        read("a.jsonl", line, changed(asked, arguments=("agent",)))


def test_gaps_and_bins_are_words() -> None:
    times = ["2024-01-01", "2024-01-01 00:00:05", "2024-01-02", "2025-06-01"]
    rows = [{**ROW, "when": when, "product": str(number)} for number, when in enumerate(times)]
    columns = changed(COLUMNS, gaps=True, bins={"product": (1.0, 2.5)})
    [document] = read("a.csv", csv_bytes([*rows, {**ROW, "product": ""}]), columns)
    assert [event.words[2:] for event in document.events] == [
        ("product:<1",),
        ("product:1–2.5", "<10s"),
        ("None", "<1d"),
        ("product:1–2.5", "<1d"),
        ("product:≥2.5", "≥1y"),
    ]
    with pytest.raises(DataError, match=r"line 2: found '1,234' under 'product', expected a number"):
        read("a.csv", csv_bytes([{**ROW, "product": "1,234"}]), columns)


def test_a_case_that_is_too_long_names_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSDVAE_MAX_LINE", "2K")
    with pytest.raises(DataError, match=r"'a', a case of more than 2 KiB(?s:.*)is 'ticket' the column.*=4K"):
        read("a.csv", csv_bytes([ROW] * 40))


# XES


def xes(events: str, before: str = "") -> bytes:
    return f"{before}<log>\n<trace><string key='concept:name' value='t'/>\n{events}\n</trace></log>".encode()


EVENT = (
    "<event><string key='concept:name' value='A'><string key='of' value='inner'/></string>"
    "<date key='time:timestamp' value='2010-12-30T11:02:00.000+01:00'/></event>"
)
STANDARD = XES.model_copy(update={"arguments": ("concept:name.of",)})


def test_the_attributes_of_attributes() -> None:
    assert read("a.xes", xes(EVENT), STANDARD) == [Document("t", (Event("A", "inner"),))]
    nameless = xes(EVENT).replace(b"<string key='concept:name' value='t'/>", b"")
    assert read("a.xes", nameless, STANDARD)[0].id == "trace-1"


BOMB = "<!DOCTYPE log [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;'>]>"
FILE = "<!DOCTYPE log [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (xes(EVENT.replace("'A'", "'&b;'"), BOMB), "line 1: found a document type"),
        (xes(EVENT.replace("'A'", "'&a;'"), FILE), "line 1: found a document type"),
        (xes(EVENT.replace("'A'", "'&a;'")), "line 3: found XML that cannot be read"),
        (xes(EVENT)[:-10], "cut short"),
        (b"", "XML that cannot be read"),
        (b"<html></html>", "line 1: found <html>, expected <log>"),
        (xes(EVENT + "\n<string key='concept:name' value='u'/>"), "line 4: found the name of a trace after"),
        (xes("<event>" + "<string key='a' value='b'>" * 50), "within 20 others"),
        (xes("<event><string value='b'/></event>"), "line 3: found <string> without a key"),
        (xes(EVENT.replace("concept:name'", "name'")), "no column 'concept:name'"),
    ],
)
def test_a_log_that_is_wrong_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read("a.xes", content, STANDARD)


def test_no_more_is_held_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSDVAE_MAX_LINE", "100K")
    many = "<string key='{}' value='b'/>".format
    for huge in (
        "<event><string key='a' value='" + "b" * 10**6,
        "<event>" + "".join(many(number) for number in range(3000)),
        "".join(many(number) for number in range(3000)),
    ):
        with pytest.raises(DataError, match=r"of more than 100 KiB"):
            read("a.xes", xes(huge), STANDARD)


def test_a_log_is_read_as_a_stream(tmp_path: Path) -> None:
    from ssdvae.data.readers.xes import xes_events

    path = tmp_path / "a.xes"
    path.write_bytes(xes("\n".join([EVENT] * 3000))[:-10])
    events = xes_events(path, stop_at_first_error)
    assert next(events) == (3, {**next(events)[1]})


# Anything else is refused in words.

Edit = tuple[float, int, bytes]
PIECES = st.binary(max_size=4) | st.sampled_from(
    [b'"', b"\n", b"{", b"\\ud800", b"\r", b",", b"\0", b"<event>", b"</event>", b"&a;", b"nan", b"1e999"]
)


@contextmanager
def file_of(name: str, content: bytes) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        yield path


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(list(FORMATS)),
    st.binary(max_size=200)
    | st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5), PIECES), min_size=1, max_size=3),
    st.booleans(),
)
def test_any_bytes_are_read_or_refused_in_words(name: str, change: bytes | list[Edit], skip: bool) -> None:
    content = FORMATS[name]([ROW, {**ROW, "ticket": "b", "agent": 'say "so", é'}, ROW])
    if isinstance(change, bytes):
        content = change
    else:
        for place, length, piece in change:
            start = int(place * len(content))
            content = content[:start] + piece + content[start + length :]
    documents: list[Document] = []
    with suppress(UserError):
        documents = read(
            name, content, changed(COLUMNS, bins={"product": (1.0,)}), Skipped() if skip else None
        )
    for document in documents:
        assert document.events
        json.dumps([event.words for event in document.events]).encode()
