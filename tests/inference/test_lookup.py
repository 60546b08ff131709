"""A word that a model does not know is read as a known one, if there is one for it, and answers say so."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ssdvae
from ssdvae.data.events import MISSING, SLOTS, Document, Event
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.inference.forecast import next_events
from ssdvae.inference.inputs import OovStats, to_batch
from ssdvae.inference.lookup import lookup, unknown_words
from ssdvae.inference.posterior import infer_documents
from ssdvae.inference.surprisal import score_documents
from ssdvae.io.errors import DataError
from ssdvae.models.base import Model
from ssdvae.models.exact import ExactModel
from ssdvae.models.options import ExactOptions
from ssdvae.models.word_vectors import NEAR, WORD_VECTORS, WordVectors

COUNTS = {
    # word: as head, subject, object, modifier
    MISSING: (0, 5, 9, 50),
    UNKNOWN: (3, 3, 3, 0),
    "arrested": (40, 0, 1, 0),
    "turned_back": (12, 0, 0, 0),
    "carry": (20, 0, 0, 0),
    "carrying": (30, 0, 0, 0),
    "police": (0, 30, 10, 0),
    "suspect": (1, 4, 30, 0),
    "city": (0, 9, 9, 0),
    "team": (1, 60, 40, 0),  # a head by an error of the parser
    "in": (0, 0, 0, 40),
}


def english_model(vectors: WordVectors | None = None) -> ExactModel:
    names, counts = list(COUNTS), np.array(list(COUNTS.values())).T
    torch.manual_seed(1)
    options = ExactOptions(embedding=4, hidden=5, candidates=2)
    vocabulary = Vocabulary(names, counts.sum(0).tolist(), counts)
    model = ExactModel(options, vocabulary, Inventory(["A", "B"], [1, 1]), SLOTS).eval()
    model.vectors = vectors
    return model


def substitute(word: str, slot: int = 0, model: Model | None = None) -> str | None:
    event = Event(word) if slot == 0 else Event("arrested", *[None] * (slot - 1), word)
    return unknown_words(model or english_model(), [event])[word]


@pytest.mark.parametrize(
    ("word", "slot", "expected"),
    [
        ("arrests", 0, "arrested"),
        ("arresting", 0, "arrested"),
        ("turn_back", 0, "turned_back"),
        ("turns_back", 0, "turned_back"),
        ("carried", 0, "carry"),  # a stem comes before its other forms
        ("cities", 1, "city"),
        ("suspects", 2, "suspect"),
        ("cities", 0, None),  # no verb
        ("cit", 1, None),
        ("xyzzy", 0, None),
    ],
)
def test_a_form_of_the_same_stem_is_read_if_it_is_known_in_the_slot(
    word: str, slot: int, expected: str | None
) -> None:
    assert substitute(word, slot) == expected


def test_a_lemma_comes_before_the_stems() -> None:
    event = Event("bore", lemma="carry")
    assert unknown_words(english_model(), [event]) == {"bore": "carry"}


def test_without_a_form_the_nearest_known_word_is_read_if_it_is_near() -> None:
    close, far = [1.0, 0.3, 0.0], [NEAR / 2, 0.0, 1.0]
    words = ["nicked", "police", "arrested", "jailed", "carry"]
    table = WordVectors.of(words, np.array([[1, 0.01, 0], [1, 0, 0], close, close, far]))
    model = english_model(table)
    # Not "police", which is nearer and no head; not "jailed", which is no word of the model.
    assert substitute("nicked", 0, model) == "arrested"
    assert substitute("jailed", 0, model) == "arrested"
    assert substitute("nicked", 1, model) == "police"
    assert substitute("xyzzy", 0, model) is None
    apart = WordVectors.of(["nicked", "carry"], np.array([[1.0, 0, 0], far]))
    assert substitute("nicked", 0, english_model(apart)) is None


def test_the_answers_about_an_unknown_word_are_those_about_its_substitute() -> None:
    model = english_model()
    strange, plain = (
        Document("a", (Event(head, "police", obj, "in"),))
        for head, obj in (("arresting", "cities"), ("arrested", "city"))
    )
    assert to_batch(model, [strange]).tokens.equal(to_batch(model, [plain]).tokens)
    (mine, theirs) = infer_documents(model, [strange, plain])
    assert mine.events[0].frames == theirs.events[0].frames
    assert mine.unknown_words == {"arresting": "arrested", "cities": "city"}
    assert (mine.events[0].head_known, theirs.events[0].head_known) == (False, True)
    assert theirs.unknown_words == {}
    for ask in (lambda some: score_documents(model, some), lambda some: next_events(model, some, beam=2)):
        one, other = ask([strange, plain])
        assert one.unknown_words == mine.unknown_words
        assert one.to_record()["events"][0].get("nats") == other.to_record()["events"][0].get("nats")


def test_the_frame_of_a_head_without_evidence_is_unknown_and_its_surprisal_no_exact_one() -> None:
    model = english_model()
    document = Document("a", (Event("arrested", "police"), Event("police", "arrested"), Event("xyzzy")))
    (found,), (scored,) = infer_documents(model, [document], top=2), score_documents(model, [document])
    assert [event.frame is None for event in found.events] == [False, True, True]
    record = found.events[1].to_record(SLOTS)
    assert (record["frame"], record["probability"], record["head_known"]) == (None, None, False)
    assert len(record["alternatives"]) == 2  # what the rest of the document says
    assert scored.kind == "estimate"
    assert [bool(event.frames) for event in scored.events] == [True, False, False]
    known = dataclasses.replace(document, events=document.events[:1])
    assert next(score_documents(model, [known])).kind == "exact"
    # A frame that is given is no guess.
    given = Document("a", (Event("xyzzy", frame="B"),))
    (answer,) = infer_documents(model, [given], observe_frames=True)
    assert answer.events[0].frame == "B"


def test_words_of_a_log_are_never_replaced() -> None:
    model = english_model()
    model.slots = ("activity", *SLOTS[1:])
    assert unknown_words(model, [Event("arresting", "cities")]) == {"arresting": None, "cities": None}
    assert lookup(model).reordered(Event("police", "arrested", "suspect")) is None


@pytest.mark.parametrize(
    ("event", "meant"),
    [
        ("police arrested suspect", "arrested police suspect"),
        ("Police arrested suspect in", "arrested Police suspect in"),
        ("team arrested suspect", "arrested team suspect"),
        ("suspect arrested police", None),  # a head, now and then
        ("arrested police suspect", None),
        ("police suspect city", None),  # seldom a head
        ("police arrested", None),
        ("xyzzy plugh city", None),
    ],
)
def test_a_subject_in_the_first_place_is_told(event: str, meant: str | None) -> None:
    model = english_model()
    found = lookup(model).reordered(Event(*event.split()))
    assert found == (None if meant is None else Event(*meant.split()))
    warning = OovStats.of(model, [Document("a", (Event(*event.split()),))]).warning
    assert (meant is not None) == ("did you mean" in (warning or ""))


def test_every_answer_tells_the_substitute(caplog: pytest.LogCaptureFixture) -> None:
    model, event = english_model(), "arresting police suspect"
    asked: list[Any] = [
        *ssdvae.infer(model, [[event]]),
        *ssdvae.score(model, [[event]]),
        *ssdvae.next_events(model, [[event]], beam=2),
        *ssdvae.fill(model, [[event, "?"]], beam=2),
        *ssdvae.embed(model, [[event]]),
    ]
    for answer in asked:
        assert answer.to_record()["unknown_words"] == {"arresting": "arrested"}
    for answer in asked[2:]:
        assert answer.to_record()["head_known"] is False
    (near,) = ssdvae.similar(model, event, [["arrested police suspect"]], top=1)
    assert near.similarity == pytest.approx(1, abs=1e-6)
    assert not near.head_known
    assert len(caplog.records) == len(asked) + 1  # one for each question
    assert all("arresting (read as arrested)" in record.message for record in caplog.records)


@given(st.lists(st.lists(st.floats(-2, 2, width=16), min_size=3, max_size=3), min_size=1, max_size=5))
def test_directions_survive_rounding_to_8_bits(rows: list[list[float]]) -> None:
    vectors = np.array(rows)
    vectors[np.abs(vectors).max(1) < 1e-3] = 0
    words = [f"w{n}" for n in range(len(rows))]
    units = WordVectors.of(words, vectors).of_words(words).numpy()
    length = np.linalg.norm(vectors, axis=1)
    np.testing.assert_array_equal(np.linalg.norm(units, axis=1) > 0, length > 0)
    cosines = (units * vectors).sum(1)[length > 0] / length[length > 0]
    assert (cosines > 0.999).all()


def test_a_table_of_vectors_is_saved_with_its_model(tmp_path: Path) -> None:
    table = WordVectors.of(["a", "ß"], np.array([[1.0, 2], [3, -1]]))
    english_model(table).save(tmp_path, {})
    loaded = Model.read(tmp_path).vectors
    assert loaded is not None
    assert loaded.words == table.words
    np.testing.assert_array_equal(loaded.rows, table.rows)
    (tmp_path / WORD_VECTORS).write_bytes(b"damaged")
    with pytest.raises(DataError, match=WORD_VECTORS):
        Model.read(tmp_path)
    (tmp_path / WORD_VECTORS).unlink()
    assert Model.read(tmp_path).vectors is None
