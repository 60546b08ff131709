"""Events of any number of slots, by any names: what is written is read again, wherever it is written."""

from __future__ import annotations

import csv
import io
import json
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ssdvae.data.events import (
    MISSING,
    RESERVED,
    SLOTS,
    Document,
    Event,
    Slots,
    event_from_record,
    event_from_text,
    event_to_record,
    to_event,
)
from ssdvae.data.items import ClozeItem, read_cloze, write_cloze
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import read_documents, write_jsonl
from ssdvae.io.errors import Malformed, UserError

WORDS = st.text("abcXYZé-_.1", min_size=1, max_size=4).filter(lambda word: word not in ("-", "_"))
NAMES = st.text("abcXYZé_1", min_size=1, max_size=4).filter(lambda name: name not in RESERVED)
SLOT_NAMES = st.lists(NAMES, min_size=1, max_size=7, unique_by=str.lower).map(tuple)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[Slots, list[Document]]:
    slots = draw(SLOT_NAMES)
    event = st.builds(Event, WORDS, *[st.none() | WORDS] * (len(slots) - 1), frame=st.none() | WORDS)
    rows = draw(st.lists(st.lists(event, min_size=1, max_size=3), min_size=1, max_size=3))
    return slots, [Document(f"d{i}", tuple(row)) for i, row in enumerate(rows)]


@given(st.lists(WORDS | st.none(), max_size=6), st.integers(0, 3), WORDS)
def test_an_event_is_the_same_however_many_slots_there_are(
    arguments: list[str | None], more: int, head: str
) -> None:
    event, wide = Event(head, *arguments, frame="F"), Event(head, *arguments, *[None] * more, frame="F")
    assert event == wide
    assert hash(event) == hash(wide)
    assert pickle.loads(pickle.dumps(event)) == event
    width = 1 + len(arguments) + more
    assert event.values(width) == (head, *arguments, *[None] * more)
    assert event.padded(width) == (head, *(word or MISSING for word in arguments), *[MISSING] * more)
    assert Event.of_words(event.padded(width), "F") == event
    assert event.changed(frame="G").values(width) == event.values(width)
    if event.arguments:
        with pytest.raises(
            Malformed, match=f"{1 + len(event.arguments)} words .*expected {len(event.arguments)} at"
        ):
            event.padded(len(event.arguments))


@given(corpora())
def test_json_lines_are_read_again(corpus: tuple[Slots, list[Document]]) -> None:
    slots, documents = corpus
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        write_jsonl(path, documents, slots)
        first = json.loads(path.read_text().splitlines()[0])["events"][0]
        assert list(first) == [*slots, "frame"]  # one key a slot
        assert list(read_documents(path, slots=slots)) == documents


@given(corpora(), st.sampled_from(["a.csv", "a.parquet"]), st.randoms(use_true_random=False))
def test_tables_have_a_column_a_slot(corpus: tuple[Slots, list[Document]], name: str, chance: Any) -> None:
    slots, documents = corpus
    rows = [(d.id, *e.values(len(slots)), e.frame) for d in documents for e in d.events]
    order = list(range(len(slots) + 2))
    chance.shuffle(order)
    names = [("document", *slots, "frame")[place] for place in order]
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        if name == "a.csv":
            text = io.StringIO()
            table = csv.writer(text)
            table.writerows([names, *([row[place] or "" for place in order] for row in rows)])
            path.write_text(text.getvalue(), encoding="utf-8")
        else:
            columns = [pa.array([row[place] for row in rows], pa.string()) for place in order]
            parquet.write_table(pa.table(columns, names), path)
        assert list(read_documents(path, slots=slots)) == documents


@given(corpora())
def test_what_a_person_types_is_the_event(corpus: tuple[Slots, list[Document]]) -> None:
    slots, documents = corpus
    for event in (event for document in documents for event in document.events):
        plain = event.changed(frame=None)
        for text in (
            " ".join(plain.padded(len(slots))),
            " ".join(w if w != MISSING else "-" for w in plain.words),
        ):
            assert event_from_text(text, slots) == plain == to_event(text, slots)
        assert to_event(event, slots) == event == to_event(event_to_record(event, slots), slots)
        with pytest.raises(Malformed, match=" ".join(slots)):
            event_from_text(" ".join(["x"] * (len(slots) + 1)), slots)


@given(corpora())
def test_cloze_items_are_read_again(corpus: tuple[Slots, list[Document]]) -> None:
    slots, documents = corpus
    word = tuple(event.padded(len(slots)) for event in documents[0].events[:1])
    item = ClozeItem(word * 2, (word, word))
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        write_cloze(path, [item])
        assert read_cloze(path, slots) == [item]
        with pytest.raises(UserError, match=rf"{len(slots)} words.*expected {len(slots) + 1} words"):
            read_cloze(path, (*slots, "more"))


def test_a_record_without_its_head_is_told_the_slots() -> None:
    with pytest.raises(
        Malformed, match=r"no action in .*expected .*action.*the slots are action, agent, item"
    ):
        event_from_record({"verb": "met", "agent": "she"}, ("action", "agent", "item"))
    with pytest.raises(Malformed, match=r"no verb in .*the slots are verb, subj, obj, mod"):
        event_from_record({"action": "met"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a slot ''"),
        ("a,,b", "a slot ''"),
        ("a,b c", "without spaces"),
        ("a,B,A", "the slot A twice"),
        ("verb,frame", "a slot frame"),
        ("ID", "a slot ID"),
    ],
)
def test_names_that_no_slot_can_have(text: str, problem: str) -> None:
    with pytest.raises(UserError, match=f"--slots: found .*{problem}"):
        PrepareOptions(slots=text)
    assert PrepareOptions(slots=" a , b").slot_names == ("a", "b")


def test_a_corpus_keeps_the_names_of_its_slots(tmp_path: Path) -> None:
    documents = [
        Document(str(n), (Event("opened", "x", frame="F"), Event("closed", frame="G"))) for n in range(40)
    ]
    write_jsonl(tmp_path / "log.jsonl", documents, ("action", "agent"))
    corpus = prepare(tmp_path / "log.jsonl", tmp_path / "corpus", PrepareOptions(slots="action,agent"))
    assert corpus.slots == ("action", "agent")
    assert corpus.split("train").tokens.shape[1] == 2
    corpus.check_names(corpus.vocabulary, corpus.frames, corpus.slots)
    with pytest.raises(UserError, match=r"are action, agent; the model has verb, subj, obj, mod"):
        corpus.check_names(corpus.vocabulary, corpus.frames, SLOTS)
    # As they were before slots had names.
    manifest = json.loads((tmp_path / "corpus" / "manifest.json").read_text())
    for slots, problem in ((["a", "a"], "twice"), ([], "no slots"), ("ab", "at slots"), ([1], "at slots")):
        (tmp_path / "corpus" / "manifest.json").write_text(json.dumps({**manifest, "slots": slots}))
        with pytest.raises(UserError, match=problem):
            type(corpus)(corpus.folder)
