"""Documents of any length: nothing is lost, doubled or moved."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdvae.data.batches import EVENTS, collate, in_order, mask_frames, within_bounds
from ssdvae.data.documents import Documents, describe_cut
from ssdvae.data.events import Document, Event
from ssdvae.data.options import SPLITS, PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl

lengths_of_documents = st.lists(st.integers(1, 12), min_size=1, max_size=6)


def numbered(lengths: list[int]) -> Documents:
    """Documents in which the words and the frame of an event say which event it is."""
    count = sum(lengths)
    ids = pa.chunked_array([[f"d{i}" for i in range(len(lengths))]])
    tokens = np.arange(4 * count, dtype=np.int32).reshape(count, 4)
    return Documents.of_events(ids, tokens, np.arange(count, dtype=np.int32), np.array(lengths, np.int32))


def events_of(documents: Documents) -> list[tuple[str, list[int]]]:
    """The id and the events of each."""
    return [
        (id, documents.frames[part].tolist())
        for id, part in zip(documents.ids.to_pylist(), documents.parts(), strict=True)
    ]


@given(lengths_of_documents, st.data())
def test_windows_cover_every_event_in_order(lengths: list[int], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 14))
    stride = data.draw(st.integers(1, size))
    documents = numbered(lengths)
    windows = events_of(documents.windows(size, stride))
    for id, events in events_of(documents):
        mine = [part for name, part in windows if name == id]
        assert sorted({event for part in mine for event in part}) == events
        for part in mine:
            assert part == list(range(part[0], part[0] + len(part)))
            assert len(part) == min(size, len(events))
        starts = [part[0] for part in mine]
        steps = np.diff(starts).tolist()
        assert all(step == stride for step in steps[:-1])
        assert all(1 <= step <= stride for step in steps[-1:])
        assert mine[-1][-1] == events[-1]
    assert list(dict.fromkeys(name for name, _ in windows)) == [id for id, _ in events_of(documents)]


@given(lengths_of_documents, st.integers(1, 14))
def test_the_first_events_and_what_they_leave_out(lengths: list[int], events: int) -> None:
    documents = numbered(lengths)
    cut = documents.first(events)
    assert events_of(cut) == [(id, row[:events]) for id, row in events_of(documents)]
    assert events_of(documents.first(None)) == events_of(documents)
    lost = sum(lengths) - cut.events
    said = describe_cut(documents, events)
    assert (said is None) == (lost == 0)
    assert said is None or f"({lost:,} of {sum(lengths):,})" in said


@given(lengths_of_documents, st.data())
def test_a_batch_has_the_events_of_its_documents_and_padding(lengths: list[int], data: st.DataObject) -> None:
    documents = numbered(lengths).windows(5, 2)
    some = st.lists(st.integers(0, len(documents) - 1), min_size=1, max_size=5)
    rows = np.array(data.draw(some))
    observed = mask_frames(documents, 0.5, seed=1)
    batch = collate(documents, rows, observed)
    expected = [part for _, part in events_of(documents.take(rows))]
    assert batch.mask.shape == (len(rows), max(map(len, expected)))
    for row, events in enumerate(expected):
        n = len(events)
        assert batch.mask[row].tolist() == [True] * n + [False] * (batch.mask.shape[1] - n)
        assert batch.frames[row, :n].tolist() == events
        assert batch.tokens[row, :n].tolist() == [[4 * e, 4 * e + 1, 4 * e + 2, 4 * e + 3] for e in events]
        assert batch.observed[row, :n].tolist() == observed[events].tolist()
    assert (batch.tokens[~batch.mask] == 0).all()
    assert (batch.frames[~batch.mask] == -1).all()
    assert (batch.observed[~batch.mask] == -1).all()
    assert (collate(documents, rows).observed == -1).all()


@given(st.lists(st.integers(1, 90), max_size=30), st.integers(1, 8))
def test_long_documents_are_read_fewer_at_once(lengths: list[int], batch: int) -> None:
    groups = list(within_bounds(np.array(lengths, np.int32), batch))
    assert [row for rows in groups for row in rows.tolist()] == list(range(len(lengths)))
    for rows in groups:
        longest = max(lengths[row] for row in rows)
        assert len(rows) == 1 or (len(rows) <= batch and len(rows) * longest <= batch * EVENTS)
    if all(length <= EVENTS for length in lengths):
        expected = [rows.tolist() for rows in in_order(len(lengths), batch)]
        assert [rows.tolist() for rows in groups] == expected


words = st.sampled_from(["went", "saw", "Ärger"])


def events(slots: int) -> st.SearchStrategy[Event]:
    return st.builds(Event, words, *[st.none() | words] * (slots - 1), frame=st.just("F"))


@pytest.mark.parametrize("names", ["verb,subj,obj,mod", "what", "Action,by", "a,b,c,d,e,f,g"])
@given(data=st.data(), most=st.none() | st.integers(1, 4))
@settings(max_examples=40)
def test_a_corpus_has_the_documents_that_it_was_made_from(
    names: str, data: st.DataObject, most: int | None
) -> None:
    slots = tuple(names.split(","))
    some = st.lists(events(len(slots)), min_size=1, max_size=9)
    rows = data.draw(st.lists(some, min_size=1, max_size=5))
    documents = [Document(f"d{i}", tuple(row)) for i, row in enumerate(rows)]
    with TemporaryDirectory() as temporary:
        path = Path(temporary, "events.jsonl")
        write_jsonl(path, documents, slots)
        corpus = prepare(
            dict.fromkeys(SPLITS, path),
            Path(temporary, "corpus"),
            PrepareOptions(events=most, lowercase=False, slots=names),
        )
        split = corpus.split("test")
        found = [
            (id, [[corpus.vocabulary.name(w) for w in row] for row in split.tokens[part].tolist()])
            for id, part in zip(split.ids.to_pylist(), split.parts(), strict=True)
        ]
    assert corpus.slots == slots
    assert found == [(d.id, [list(e.padded(len(slots))) for e in d.events[:most]]) for d in documents]
