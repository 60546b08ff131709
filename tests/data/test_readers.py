"""Readers: what is written is read, whatever else is refused in words, and the right line is blamed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from ssdvae.data.events import SLOTS, Document, Event, Origin, document_to_record
from ssdvae.data.readers import READERS, Skipped, guess_format, read_documents, write_jsonl
from ssdvae.io.errors import DataError, UserError

FIELDS = (*SLOTS, "frame")
CHARACTERS = st.characters(exclude_categories=["Cs"])

# A word as events.py leaves it, from any text.
WORDS = st.text(CHARACTERS, max_size=8).map(lambda text: "_".join(text.split()))
WORDS = WORDS.filter(lambda word: word not in ("", "None"))
EVENTS = st.builds(Event, WORDS, *[st.none() | WORDS] * (len(SLOTS) - 1), frame=st.none() | WORDS)
PLACES = st.integers(0, 10**6)
ORIGINS = st.builds(Origin, PLACES, PLACES, PLACES, st.booleans()) | st.builds(
    Origin, PLACES, PLACES, PLACES, st.booleans(), st.text(CHARACTERS), PLACES
)
EXTRACTED = st.builds(
    Event.changed,
    EVENTS,
    probability=st.none() | st.floats(0, 1),
    lemma=st.none() | WORDS,
    origin=st.none() | ORIGINS,
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(CHARACTERS),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["sentence", "span", "text", "x"]), inner)
    ),
    max_leaves=6,
)
IDS = st.text(CHARACTERS, min_size=1, max_size=8)


def documents(least: int, events: st.SearchStrategy[Event] = EVENTS) -> st.SearchStrategy[list[Document]]:
    document = st.builds(Document, IDS, st.lists(events, min_size=least, max_size=4).map(tuple))
    return st.lists(document, max_size=4, unique_by=lambda document: document.id)


# Writers made for the tests, so that a mistake cannot cancel itself out.


def csv_bytes(docs: list[Document], delimiter: str = ",") -> bytes:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(["document", *FIELDS])
    for doc in docs:
        for event in doc.events:
            writer.writerow([doc.id, *(word or "" for word in (*slots(event), event.frame))])
    return file.getvalue().encode()


def parquet_bytes(docs: list[Document]) -> bytes:
    rows = [(doc.id, event) for doc in docs for event in doc.events]
    columns: dict[str, Any] = {"document": pa.array([name for name, _ in rows], pa.string())}
    for place, field in enumerate(FIELDS):
        cells = [(*slots(event), event.frame)[place] for _, event in rows]
        columns[field] = pa.array(cells, pa.string())
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, row_group_size=3)
    return sink.getvalue()


def jsonl_bytes(docs: list[Document]) -> bytes:
    return "".join(json.dumps(document_to_record(doc)) + "\n" for doc in docs).encode()


def official_lines(docs: list[Document]) -> tuple[list[bytes], list[bytes]]:
    events = [" <TUP> ".join(" ".join(word or "_NULL_" for word in slots(e)) for e in d.events) for d in docs]
    frames = [" ".join(e.frame or "__NOFRAME__" for e in d.events) for d in docs]
    return [line.encode() for line in events], [line.encode() for line in frames]


def slots(event: Event) -> tuple[str | None, ...]:
    return event.values(len(SLOTS))


def put(folder: str, name: str, content: bytes) -> Path:
    path = Path(folder, name)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def read(name: str, content: bytes, skipped: Skipped | None = None) -> list[Document]:
    with TemporaryDirectory() as folder:
        return list(read_documents(put(folder, name, content), skip_bad=skipped))


def read_pair(events: list[bytes], frames: list[bytes], skipped: Skipped | None = None) -> list[Document]:
    with TemporaryDirectory() as folder:
        put(folder, "train_0.6_frame.txt", b"".join(line + b"\n" for line in frames))
        path = put(folder, "train_0.6_TUP.txt", b"".join(line + b"\n" for line in events))
        return list(read_documents(path, skip_bad=skipped))


# Written and read again.


@given(documents(least=0, events=EXTRACTED), st.sampled_from(["a.jsonl", "a.jsonl.gz"]))
def test_jsonl_gives_back_what_was_written(docs: list[Document], name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        assert write_jsonl(path, iter(docs)) == len(docs)
        assert list(read_documents(path)) == docs
        assert read(name, jsonl_bytes(docs)) == docs


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "probability": ANYTHING.filter(lambda x: not isinstance(x, int | float)) | st.floats(0, 1),
            "lemma": ANYTHING,
            "origin": ANYTHING,
        },
    )
)
def test_what_others_mean_by_the_names_of_notes_is_passed_over(notes: dict[str, Any]) -> None:
    line = json.dumps({"id": "a", "events": [{"verb": "met", "frame": "Meet", **notes}]}).encode()
    [document] = read("a.jsonl", line)
    assert document.events[0].changed(probability=None, lemma=None, origin=None) == Event("met", frame="Meet")
    assert read("a.jsonl", jsonl_bytes([document])) == [document]


@pytest.mark.parametrize("number", [1.5, -0.1, 87, 10**400])
def test_a_number_that_is_no_probability_is_refused(number: float) -> None:
    line = json.dumps({"id": "a", "events": [{"verb": "met", "frame": "Meet", "probability": number}]})
    with pytest.raises(
        DataError, match=r"line 1: found .* under 'probability', expected a number from 0 to 1"
    ):
        read("a.jsonl", line.encode())


@given(documents(least=1), st.sampled_from(["a.csv", "a.csv.gz", "a.tsv"]), st.sampled_from(",\t;"))
def test_csv_gives_back_what_was_written(docs: list[Document], name: str, delimiter: str) -> None:
    assert read(name, csv_bytes(docs, delimiter)) == docs


@given(documents(least=1))
def test_parquet_gives_back_what_was_written(docs: list[Document]) -> None:
    assert read("a.parquet", parquet_bytes(docs)) == docs


LOWER = WORDS.map(str.lower).filter(lambda word: word == word.lower() and len(word.split()) == 1)
LOWER = LOWER.filter(lambda word: word not in ("_null_", "none", "<tup>"))
FRAMES = WORDS.filter(lambda word: word != "__NOFRAME__")
LOWER_EVENTS = st.builds(Event, LOWER, *[st.none() | LOWER] * 3, frame=st.none() | FRAMES)


@given(st.lists(st.lists(LOWER_EVENTS, min_size=1, max_size=4), max_size=4), st.booleans())
def test_official_gives_back_what_was_written_in_lower_case(docs: list[list[Event]], end: bool) -> None:
    named = [Document(f"train_0.6:{line}", tuple(events)) for line, events in enumerate(docs, 1)]
    events, frames = official_lines(named)
    assert read_pair([line + b" <tup>" * end for line in events], frames) == named
    # A word of which the capital has another lower case (ς) shows nothing about reading.
    if all(w == w.upper().lower() for doc in docs for event in doc for w in slots(event) if w):
        assert read_pair([line.decode().upper().encode() for line in events], frames) == named


def test_official_missing_words_and_compressed_files(tmp_path: Path) -> None:
    put(str(tmp_path), "a_frame.txt.gz", b"\n Arriving  __NOFRAME__\n\n\n")
    path = put(str(tmp_path), "a_TUP.txt", b"\nCame She none _null_ <tup> SAT None _NULL_ on <TUP>\n")
    expected = Document("a:2", (Event("came", "she", frame="Arriving"), Event("sat", None, None, "on")))
    assert list(read_documents(path)) == [expected]


def test_tables_accept_other_names_and_do_without_the_rest(tmp_path: Path) -> None:
    expected = [Document("1", (Event("met", "she", "him", "in"),)), Document("2", (Event("sat"),))]
    text = b'\xef\xbb\xbfVerb,object,id,text,subject,modifier\n\nmet,him,1,"a\nb",she,in\n \nsat,,2,,,\n'
    assert read("a.csv", text) == expected
    table = {
        "verb": ["met", "sat"],
        "subject": ["she", None],
        "object": ["him", ""],
        "modifier": ["in", "None"],
    }
    sink = io.BytesIO()
    parquet.write_table(pa.table({"id": [9, 9], "doc": [1, 2], **table}), sink)
    assert read("a.parquet", sink.getvalue()) == expected  # "doc" goes before "id"
    assert read("a.csv", b"doc,verb\nx,ran\n") == [Document("x", (Event("ran"),))]


# Anything else is refused in words.

PLAIN = [
    Document(
        "a", (Event("met", "she", "him", "in", frame="Meet"), Event("left", 'say "so"'.replace(" ", "_")))
    ),
    Document("b,c", (Event("sat", None, None, "on"),)),
    Document("d", (Event("ran", "é"),)),
]
VALID = {
    "a.jsonl": jsonl_bytes(PLAIN),
    "a.jsonl.gz": gzip.compress(jsonl_bytes(PLAIN)),
    "a.csv": csv_bytes(PLAIN),
    "a.csv.gz": gzip.compress(csv_bytes(PLAIN)),
    "a.parquet": parquet_bytes(PLAIN),
    "a_TUP.txt": b"\n".join(official_lines(PLAIN)[0]),
    "a_frame.txt": b"\n".join(official_lines(PLAIN)[1]),
}
Edit = tuple[float, int, bytes]
PIECES = st.binary(max_size=4) | st.sampled_from(
    [b'"', b"\n", b"{", b"\\ud800", b"\r", b",", b"\0", b" <TUP> "]
)


def edited(content: bytes, edits: list[Edit]) -> bytes:
    """Take some bytes out, and put others in."""
    for place, length, piece in edits:
        start = int(place * len(content))
        content = content[:start] + piece + content[start + length :]
    return content


@settings(max_examples=200)
@given(
    st.sampled_from(list(VALID)),
    st.binary(max_size=200)
    | st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5), PIECES), min_size=1, max_size=3),
    st.booleans(),
)
def test_any_bytes_are_read_or_refused_in_words(name: str, change: bytes | list[Edit], skip: bool) -> None:
    content = change if isinstance(change, bytes) else edited(VALID[name], change)
    with TemporaryDirectory() as folder:
        for other, valid in VALID.items():
            Path(folder, other).write_bytes(valid)
        Path(folder, name).write_bytes(content)
        path = Path(folder, name.replace("_frame", "_TUP"))
        try:
            docs = list(read_documents(path, skip_bad=Skipped() if skip else None))
        except UserError:
            return
        # What is read can be written, and is the same when read again.
        write_jsonl(Path(folder, "again.jsonl"), docs)
        assert list(read_documents(Path(folder, "again.jsonl"))) == docs


# One bad line costs one line.

SIMPLE = st.text("abcdefgh", min_size=1, max_size=3)
SIMPLE_EVENTS = st.builds(Event, SIMPLE, *[st.none() | SIMPLE] * 3, frame=st.none() | SIMPLE)
SIMPLE_DOCUMENTS = st.lists(
    st.lists(SIMPLE_EVENTS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=5
).map(lambda docs: [Document(f"d{number}", events) for number, events in enumerate(docs)])

BAD_JSON = [
    b"{",
    b"[1]",
    b"null",
    b'{"id": "x"}',
    b'{"id": "x", "events": [{"subj": "she"}]}',
    b'{"id": "x", "events": [{"verb": 3}]}',
    b'{"id": true, "events": []}',
    b'{"id": "x", "events": [{"verb": "\\ud800"}]}',
    b'{"id": "\xff", "events": []}',
    b"[" * 100_000,
    b"9" * 5_000,
]
BAD_CSV = [
    b"x,run,,,",
    b"x,run,,,,,",
    b"x,,she,,,",
    b",run,she,,,",
    b'"x,run,she,,,',
    b'x,"run"s,she,,,',
    b"x,run,\xff,,,",
]
BAD_OFFICIAL = [
    (b"ran she none", b"Motion"),
    (b"ran she none in fast", b"Motion"),
    (b"ran she none in <TUP> <TUP> ran she none in", b"Motion Motion Motion"),
    (b"ran she none in", b"Motion Motion"),
    (b"ran she none in", b""),
    (b"", b"Motion"),
    (b"_NULL_ she none in", b"Motion"),
    (b"ran \xff none in", b"Motion"),
    (b"ran she none in", b"\xff"),
]


def mixed(good: list[Any], bad: list[tuple[float, Any]], start: int) -> tuple[list[Any], list[int]]:
    """Put the bad among the good; returns where they stand, the first line being ``start``."""
    marked = [(line, False) for line in good]
    for place, line in bad:
        marked.insert(round(place * len(marked)), (line, True))
    return [line for line, _ in marked], [n for n, (_, is_bad) in enumerate(marked, start) if is_bad]


def some(bad: list[Any]) -> st.SearchStrategy[list[tuple[float, Any]]]:
    return st.lists(st.tuples(st.floats(0, 1), st.sampled_from(bad)), max_size=4)


def check_blame(
    reading: Callable[[Skipped | None], Any], expected: object, blamed: list[int], unit: str
) -> None:
    skipped = Skipped()
    assert reading(skipped) == expected
    assert skipped.count == len(blamed)
    # In any order: a quote left open makes the CSV reader look ahead before it can tell.
    places = [int(re.search(rf", {unit} (\d+): found", message)[1]) for message in skipped.messages]  # type: ignore[index]  # a miss is to fail
    assert sorted(places) == blamed
    if blamed:
        assert f"{len(blamed)} bad line" in str(skipped)
        with pytest.raises(DataError) as caught:
            reading(None)
        assert caught.value.line == places[0]


@given(SIMPLE_DOCUMENTS, some(BAD_JSON))
def test_bad_lines_of_jsonl(docs: list[Document], bad: list[tuple[float, bytes]]) -> None:
    lines, blamed = mixed(jsonl_bytes(docs).splitlines(), bad, start=1)
    check_blame(lambda skipped: read("a.jsonl", b"\n".join(lines), skipped), docs, blamed, "line")


@given(SIMPLE_DOCUMENTS, some(BAD_CSV))
def test_bad_lines_of_csv(docs: list[Document], bad: list[tuple[float, bytes]]) -> None:
    header, *rows = csv_bytes(docs).splitlines()
    lines, blamed = mixed(rows, bad, start=2)
    check_blame(lambda skipped: read("a.csv", b"\n".join([header, *lines]), skipped), docs, blamed, "line")


@given(SIMPLE_DOCUMENTS, some([{"document": None, "verb": "ran"}, {"document": "x", "verb": None}]))
def test_bad_rows_of_parquet(docs: list[Document], bad: list[tuple[float, dict[str, str | None]]]) -> None:
    good = parquet.read_table(io.BytesIO(parquet_bytes(docs))).to_pylist()
    rows, blamed = mixed(good, bad, start=1)
    table = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in ("document", *FIELDS)}
    sink = io.BytesIO()
    parquet.write_table(pa.table(table), sink)
    check_blame(lambda skipped: read("a.parquet", sink.getvalue(), skipped), docs, blamed, "row")


@given(SIMPLE_DOCUMENTS, some(BAD_OFFICIAL))
def test_bad_lines_of_official(docs: list[Document], bad: list[tuple[float, tuple[bytes, bytes]]]) -> None:
    pairs = list(zip(*official_lines(docs), strict=True))
    lines, blamed = mixed(pairs, bad, start=1)
    events, frames = [pair[0] for pair in lines], [pair[1] for pair in lines]
    numbers = [number for number in range(1, len(lines) + 1) if number not in blamed]
    named = [replace(doc, id=f"train_0.6:{number}") for doc, number in zip(docs, numbers, strict=True)]
    check_blame(lambda skipped: read_pair(events, frames, skipped), named, blamed, "line")


@given(SIMPLE_DOCUMENTS, st.sampled_from(["a.csv", "a.parquet"]))
def test_a_document_that_comes_again_is_refused_where_it_does(docs: list[Document], name: str) -> None:
    docs = [*docs, Document("other", (Event("sat"),))]
    count = sum(len(doc.events) for doc in docs)
    again = [*docs, docs[0], Document("last", (Event("sat"),))]
    content = csv_bytes(again) if name == "a.csv" else parquet_bytes(again)
    unit, place = ("line", count + 2) if name == "a.csv" else ("row", count + 1)
    check_blame(lambda skipped: read(name, content, skipped), [*docs, again[-1]], [place], unit)
    with pytest.raises(DataError, match=r"'d0' again(?s:.*)rows of a document to stand together"):
        read(name, content)


def test_cells_of_parquet_that_are_not_text(tmp_path: Path) -> None:
    broken = pa.StringArray.from_buffers(2, pa.array(["ab", "cd"]).buffers()[1], pa.py_buffer(b"ab\xffd"))
    sink = io.BytesIO()
    parquet.write_table(pa.table({"document": ["x", "x"], "verb": broken}), sink)
    assert read("a.parquet", sink.getvalue(), skipped := Skipped()) == [Document("x", (Event("ab"),))]
    assert "row 2: found b'\\xffd' under 'verb'" in str(skipped)


# What is wrong with a file as a whole is never passed over.


@pytest.mark.parametrize("skipped", [None, Skipped()])
def test_a_file_that_is_wrong_as_a_whole_is_refused(skipped: Skipped | None, tmp_path: Path) -> None:
    for name, content, message in [
        (
            "a.csv",
            b"document,subj\nx,she\n",
            r"the columns document, subj, expected the columns document and verb",
        ),
        ("a.csv", b"", "no columns"),
        ("a.csv", b"doc,verb,verb\n", "2 columns 'verb', expected each column once"),
        ("a.parquet", b"PAR1", "expected a Parquet file"),
        ("a.parquet", VALID["a.parquet"][:-20], "expected a Parquet file"),
        ("b_TUP.txt", b"ran she none in\n", r"no frame file \S*b_frame\.txt(?s:.*)the frames are required"),
    ]:
        with pytest.raises(DataError, match=message):
            read(name, content, skipped)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(VALID["a.jsonl"])[:-5])
    with pytest.raises(DataError, match="cut short"):
        list(read_documents(path, skip_bad=skipped))
    line, frame = b"ran she none in", b"Motion"
    with pytest.raises(DataError, match=r"_frame\.txt, line 2: found the end of the file.*0\.6_TUP\.txt"):
        read_pair([line, line], [frame], skipped)
    with pytest.raises(DataError, match=r"_TUP\.txt, line 2: found the end of the file.*0\.6_frame\.txt"):
        read_pair([line], [frame, frame], skipped)
    with pytest.raises(DataError, match=r"the name a\.txt, expected a name such as"):
        list(read_documents(tmp_path / "a.txt", format="official"))


def test_columns_tell_where_json_breaks_and_lists_are_recognised() -> None:
    with pytest.raises(DataError, match=r"line 2: found Expecting value at column 8"):
        read("a.jsonl", b'\n{"id": }\n')
    with pytest.raises(DataError, match="over many lines"):
        read("a.jsonl", b'[\n{"id": "x", "events": []}\n]\n')


def test_formats_are_guessed_from_names_and_the_error_lists_them(tmp_path: Path) -> None:
    for name, choice in [
        ("a.jsonl", "jsonl"),
        ("a.json", "jsonl"),
        ("a.B.JSONL.gz", "jsonl"),
        ("a.csv.gz", "csv"),
        ("a.tsv", "csv"),
        ("a.parquet", "parquet"),
        ("train_0.6_TUP.txt.gz", "official"),
    ]:
        (tmp_path / name).touch()
        assert guess_format(tmp_path / name) == choice
        assert choice in READERS
    (tmp_path / "a.txt").touch()
    for path, wrong, message in [
        (tmp_path / "a.txt", None, "there are: jsonl, csv, parquet, official"),
        (tmp_path / "a.csv", "xml", "no format 'xml'; there are: jsonl, csv, parquet, official"),
        (tmp_path, None, "it is a folder"),
        (tmp_path / "none.txt", None, "no such file"),
    ]:
        with pytest.raises(UserError, match=message):
            read_documents(path, wrong)


def test_writing_that_fails_keeps_the_old_file(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", PLAIN)

    def failing() -> Any:
        yield PLAIN[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_jsonl(tmp_path / "a.jsonl", failing())
    assert list(read_documents(tmp_path / "a.jsonl")) == PLAIN
    assert len(list(tmp_path.iterdir())) == 1


def test_reading_is_streaming(tmp_path: Path) -> None:
    # The first document comes out although the file is broken further on.
    content = jsonl_bytes(PLAIN) + b"{"
    assert next(read_documents(put(str(tmp_path), "a.jsonl", content))) == PLAIN[0]
    assert next(read_documents(put(str(tmp_path), "a.csv", csv_bytes(PLAIN) + b"x"))) == PLAIN[0]


def test_the_report_of_what_was_skipped() -> None:
    skipped = Skipped()
    assert str(skipped) == "no bad lines"
    for line in range(7, 107):
        skipped(DataError("f", line, "x", "y"))
    assert str(skipped) == "skipped 100 bad lines, the first: f, line 7: found x, expected y"
    assert len(skipped.messages) == 5


def test_a_line_of_json_may_be_one_event() -> None:
    lines = b'{"verb": "met", "subj": "she", "frame": "Meeting"}\n{"id": "x", "verb": "left"}\n'
    first, second = read("a.jsonl", lines)
    assert first == Document("line-1", (Event("met", "she", frame="Meeting"),))
    assert second == Document("x", (Event("left"),))
