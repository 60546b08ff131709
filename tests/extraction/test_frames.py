"""Frames for events: lexicons, the classifier, FrameNet, and the threshold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.annotate import predict, scores
from ssdvae.data.events import SLOTS, Document, Event
from ssdvae.data.options import AnnotateOptions
from ssdvae.data.readers import read_documents, write_jsonl
from ssdvae.extraction import classifier as module
from ssdvae.extraction.annotate import annotate, load_annotator, read_events
from ssdvae.extraction.classifier import (
    FrameClassifier,
    Lexicon,
    feature_indices,
    features,
    normalize_verb,
    read_lexicon,
)
from ssdvae.io.errors import DataError, UserError

# Lexicons.


def test_the_same_lexicon_in_every_coat(tmp_path: Path) -> None:
    coats = {
        "a.csv": "verb,frame\nhit,Impact\nhit,Cause_harm\ngive up,Surrendering\n",
        "b.tsv": "Lemma\tframe\tweight\nhit\tImpact\t1\nhit\tCause harm\t1\ngive_up\tSurrendering\t3\n",
        "c.json": json.dumps({"hit": ["Impact", "Cause_harm"], "Give (up)": "No", "give up": "Surrendering"}),
        "d.json": json.dumps({"hit": {"Impact": 2, "Cause_harm": 2}, "give_up": ["Surrendering"]}),
    }
    for name, content in coats.items():
        (tmp_path / name).write_text(content)
        lexicon = read_lexicon(tmp_path / name)
        assert lexicon.probabilities(Event("hit")) == {"Impact": 0.5, "Cause_harm": 0.5}
        assert lexicon.probabilities(Event("gave_up", lemma="give_up")) == {"Surrendering": 1.0}
        assert lexicon.probabilities(Event("unheard")) == {}


def test_the_entry_of_a_verb() -> None:
    assert normalize_verb("abide_((by))") == "abide"
    assert normalize_verb("Give  up") == "give_up"
    assert normalize_verb("look (forward) to") == "look_to"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "verb,x\nhit,Impact\n", "expected the columns verb and frame"),
        ("a.csv", "verb,frame\nhit,\n", r"a\.csv, line 2: found 'hit': '', expected a verb and a frame"),
        ("a.csv", "verb,frame,weight\nhit,Impact,much\n", r"line 2: found the weight 'much'"),
        ("a.csv", "verb,frame,weight\nhit,Impact,nan\n", r"line 2: found the weight 'nan'"),
        ("a.csv", "verb,frame\n", "found no verbs"),
        ("a.json", "[1]", "expected a lexicon such as"),
        ("a.json", "{", "expected a lexicon such as"),
        ("a.json", '{"hit": 3}', "found 3 at hit, expected text or a list or a mapping"),
        ("a.json", '{"hit": []}', "for 'hit'"),
        ("a.json", '{"hit": {"Impact": 1%s}}' % ("0" * 400), "at hit"),
        ("a.csv", "verb,frame,weight\nhit,Impact,1%s\n" % ("0" * 400), "line 2: found the weight"),
        ("a.json", '{"hit": {"Impact": -1}}', "found the weight -1"),
    ],
)
def test_a_bad_lexicon_is_refused_in_words(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_lexicon(tmp_path / name)


# The classifier.


def planted(count: int, seed: int) -> list[Event]:
    """Verbs whose frame is decided by the preposition and the object; the verb alone says little."""
    draw = np.random.default_rng(seed)
    events = []
    for _ in range(count):
        verb = str(draw.choice(["ran", "turned", "went"]))
        if draw.random() < 0.5:
            events.append(
                Event(verb, "he", str(draw.choice(["home", "town"])), "to", frame="Motion", lemma=verb)
            )
        else:
            events.append(
                Event(verb, "she", str(draw.choice(["shop", "firm"])), None, frame="Managing", lemma=verb)
            )
    return [*events, Event("slept", "he", frame="Sleep", lemma="sleep")]


@pytest.fixture(scope="module")
def learned() -> FrameClassifier:
    return FrameClassifier.fit(planted(300, 1), {"ran": ["Fleeing"], "dozed": ["Sleep"]})


def test_what_is_planted_is_found(learned: FrameClassifier) -> None:
    predictions = list(predict(learned, planted(300, 2)))
    found = scores(predictions)
    assert found["ambiguous"]["accuracy"] == 1
    assert found["ambiguous"]["majority"] < 0.6
    assert found["all"]["events"] == found["ambiguous"]["events"] + 1


def test_a_verb_without_examples_learns_from_others_of_its_frames() -> None:
    learned = FrameClassifier.fit(planted(300, 1), {"walked": ["Motion", "Managing"]})
    assert learned.probabilities(Event("walked", "he", "home", "to"))["Motion"] > 0.8
    assert learned.probabilities(Event("walked", "she", "shop"))["Managing"] > 0.8
    # Each word by itself tells something, beside a word that was never seen.
    assert learned.probabilities(Event("walked", None, "unseen", "to"))["Motion"] > 0.6


WORDS = st.none() | st.sampled_from(["he", "home", "shop", "to", "unseen"])


@given(st.sampled_from(["ran", "turned", "slept", "unseen"]), WORDS, WORDS, WORDS)
def test_probabilities_are_of_the_candidates_and_sum_to_one(
    verb: str, subj: str | None, obj: str | None, mod: str | None
) -> None:
    learned = FrameClassifier.fit(planted(20, 1), {"ran": ["Fleeing"]})
    probabilities = learned.probabilities(Event(verb, subj, obj, mod))
    expected = {
        "ran": {"Motion", "Managing", "Fleeing"},
        "turned": {"Motion", "Managing"},
        # Known by the form it was seen in.
        "slept": {"Sleep"},
        "unseen": set[str](),
    }
    assert probabilities.keys() == expected[verb]
    assert sum(probabilities.values()) == pytest.approx(1.0 if probabilities else 0.0)


def test_the_weights_are_where_the_objective_is_flat() -> None:
    """Against autograd: the slope of −log likelihood + λ‖w‖² is zero, by any route to it."""
    events = planted(40, 3)
    learned = FrameClassifier.fit(events)
    check_flat(learned, events, np.zeros_like(learned.weights))
    running = planted(30, 4)[::2]
    check_flat(learned.adapt(running), running, learned.weights)


def check_flat(learned: FrameClassifier, events: list[Event], centre: NDArray[np.float32]) -> None:
    weights = torch.tensor(learned.weights, dtype=torch.float64, requires_grad=True)
    loss = module.REGULARISATION * (weights - torch.tensor(centre)).square().sum()
    for event in events:
        frames = list(learned.lexicon.candidates(event))
        names = features(event, str(event.lemma))
        scores = torch.stack([weights[feature_indices(frame, names)].sum() for frame in frames])
        loss = loss - scores.log_softmax(0)[frames.index(str(event.frame))]
    loss.backward()  # type: ignore[no-untyped-call]  # torch's
    assert weights.grad is not None
    assert weights.grad.abs().max() < 0.01
    assert weights.abs().max() > 0.1


SPOKEN = [
    Event("said", subj, obj, frame=frame)
    for subj, obj in (("he", "word"), ("she", "prayer"))
    for frame in "AB"
]


def test_running_text_says_how_common_a_sense_is() -> None:
    """Examples have both senses of a verb alike; texts have one of them four times in five."""
    examples = FrameClassifier.fit(SPOKEN * 10)
    texts = [event for event in SPOKEN for _ in range(4 if event.frame == "B" else 1)] * 5
    adapted = examples.adapt(texts)
    for event in SPOKEN:
        assert examples.probabilities(event)["B"] == pytest.approx(0.5, abs=0.01)
        assert adapted.probabilities(event)["B"] == pytest.approx(0.8, abs=0.05)
    assert adapted.lexicon.frames["said"] == {"A": 30, "B": 60}


def test_a_word_by_itself_is_no_phrasal_verb() -> None:
    split = [Event("gave", "she", "leaves", frame="Emitting", lemma="give_out")] * 3
    learned = FrameClassifier.fit([*split, Event("gave", "she", "bread", frame="Giving", lemma="give")])
    assert learned.probabilities(Event("gave", "she", "leaves")).keys() == {"Giving"}


def test_what_running_text_is_silent_about_stays_as_it_was(learned: FrameClassifier) -> None:
    adapted = learned.adapt([Event("laughed", "they", frame=frame) for frame in ("Noise", "Mocking")])
    for event in planted(20, 5):
        assert adapted.probabilities(event) == learned.probabilities(event)
    # What was never seen before is a candidate from now on.
    assert adapted.probabilities(Event("laughed")).keys() == {"Noise", "Mocking"}
    assert "laughed" not in learned.lexicon.frames


def test_the_order_of_examples_does_not_matter() -> None:
    events = planted(50, 4)
    there, back = FrameClassifier.fit(events), FrameClassifier.fit(events[::-1])
    assert there.lexicon.frames == back.lexicon.frames
    np.testing.assert_allclose(there.weights, back.weights, atol=1e-3)


def test_saved_and_loaded(learned: FrameClassifier, tmp_path: Path) -> None:
    learned.save(tmp_path / "model")
    loaded = FrameClassifier.load(tmp_path / "model")
    for event in planted(20, 5):
        assert loaded.probabilities(event) == learned.probabilities(event)
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {"config.json", "lexicon.json", "model.safetensors"}


@pytest.mark.parametrize("name", ["config.json", "lexicon.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"3", b"\x80\x04N."])
def test_a_damaged_model_is_refused_in_words(
    name: str, content: bytes, learned: FrameClassifier, tmp_path: Path
) -> None:
    learned.save(tmp_path / "model")
    (tmp_path / "model" / name).write_bytes(content)
    with pytest.raises(UserError):
        load_annotator(str(tmp_path / "model"))


def test_nothing_to_learn_from_is_said() -> None:
    with pytest.raises(UserError, match="no event has a frame"):
        FrameClassifier.fit([Event("ran")])
    with pytest.raises(UserError, match="no event has a frame"):
        FrameClassifier.fit(planted(20, 1)).adapt([Event("ran")])


# Annotating.

FRAMES = {"hit": {"Impact": 3, "Cause_harm": 1}, "leave": {"Departing": 1}, "stop": {"A": 1, "B": 1}}
STORY = Document(
    "d",
    (
        Event("hit", "wind", "ferry"),
        Event("left", "ferry", lemma="leave"),
        Event("stopped", "it", lemma="stop", frame="Gold", probability=0.1),
        Event("sank", "it"),
    ),
)


def run(tmp_path: Path, **settings: Any) -> tuple[list[tuple[str | None, float | None]], Any]:
    write_jsonl(tmp_path / "in.jsonl", [STORY])
    done = annotate(
        tmp_path / "in.jsonl", tmp_path / "out.jsonl", Lexicon(FRAMES), AnnotateOptions(**settings)
    )
    [document] = read_documents(tmp_path / "out.jsonl")
    assert [e.changed(frame=None, probability=None) for e in document.events] == [
        e.changed(frame=None, probability=None) for e in STORY.events
    ]
    return [(event.frame, event.probability) for event in document.events], done


def test_each_frame_has_its_probability_and_old_ones_are_kept(tmp_path: Path) -> None:
    frames, done = run(tmp_path)
    assert frames == [("Impact", 0.75), ("Departing", 1.0), ("Gold", 0.1), (None, None)]
    assert (done.events, done.labelled, done.kept, done.uncertain, done.unknown) == (4, 2, 1, 0, 1)


def test_old_frames_are_replaced_on_request(tmp_path: Path) -> None:
    assert run(tmp_path, replace=True, threshold=0.5)[0][2] == ("A", 0.5)
    # One that is uncertain is not kept in the name of the old one.
    assert run(tmp_path, replace=True, threshold=0.6)[0][2] == (None, None)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.75, 0.76, 1.0])
def test_a_threshold_leaves_uncertain_events_latent(threshold: float, tmp_path: Path) -> None:
    frames, done = run(tmp_path, threshold=threshold, replace=True)
    expected = [("Impact", 0.75), ("Departing", 1.0), ("A", 0.5)]
    assert frames == [(f, p) if p >= threshold else (None, None) for f, p in expected] + [(None, None)]
    assert done.labelled + done.uncertain + done.unknown == 4


def test_soft_annotation_writes_the_likeliest_frames_whatever_the_threshold(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "in.jsonl", [STORY])
    many = {"hit": {"F": 50, "A": 20, "B": 15, "C": 8, "D": 7}, "leave": {"G": 97, "H": 3}}
    options = AnnotateOptions(soft=True, replace=True, threshold=0.9)
    done = annotate(tmp_path / "in.jsonl", tmp_path / "out.jsonl", Lexicon(many), options)
    [document] = read_documents(tmp_path / "out.jsonl")
    assert [(e.frame, e.probability, e.alternatives) for e in document.events] == [
        ("F", 0.5, (("A", 0.2), ("B", 0.15), ("C", 0.08))),
        ("G", 0.97, ()),
        (None, None, ()),
        (None, None, ()),
    ]
    assert (done.labelled, done.uncertain, done.unknown) == (1, 1, 2)


def test_learning_from_events_by_themselves_or_in_documents(tmp_path: Path) -> None:
    events = planted(30, 6)
    alone = [{"lemma": e.lemma, **dict(zip(SLOTS, e.words, strict=False))} for e in events]
    lines = [json.dumps({**record, "frame": e.frame}) for record, e in zip(alone, events, strict=True)]
    (tmp_path / "alone.jsonl").write_text("\n".join(lines))
    write_jsonl(tmp_path / "documents.jsonl", [Document("d", tuple(events))])
    assert list(read_events(tmp_path / "alone.jsonl")) == events
    assert list(read_events(tmp_path / "documents.jsonl")) == events
    (tmp_path / "more.json").write_text('{"ran": ["Fleeing"]}')
    first = load_annotator(
        str(tmp_path / "alone.jsonl"),
        save=tmp_path / "saved",
        candidates=tmp_path / "more.json",
    )
    again = load_annotator(str(tmp_path / "saved"))
    story = Document("d", tuple(events))
    assert first.predict(story.events) == again.predict(story.events)
    assert isinstance(again, FrameClassifier)
    assert "Fleeing" in again.lexicon.frames["ran"]
    running = load_annotator(str(tmp_path / "alone.jsonl"), running_text=tmp_path / "documents.jsonl")
    expected = FrameClassifier.fit(events).adapt(events)
    assert running.fingerprint() == expected.fingerprint() != FrameClassifier.fit(events).fingerprint()
    (tmp_path / "bad.jsonl").write_text('{"verb": "ran"}\n{"verb": 3}\n')
    with pytest.raises(DataError, match=r"bad\.jsonl, line 2: found 3 under 'verb'"):
        load_annotator(str(tmp_path / "bad.jsonl"))


@pytest.mark.parametrize(
    ("frames", "options", "message"),
    [
        ("nowhere.csv", {}, "cannot read nowhere.csv"),
        ("verbs.xml", {}, "a lexicon ends in .csv"),
        (".", {}, "neither FrameNet .* nor a saved classifier"),
        ("verbs.csv", {"save": Path("x")}, "nothing is trained on verbs.csv"),
        ("verbs.csv", {"candidates": Path("x")}, "go with a file of events"),
        ("verbs.csv", {"running_text": Path("x")}, "go with a file of events"),
    ],
)
def test_an_annotator_that_is_none(
    frames: str, options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "verbs.csv").write_text("verb,frame\nhit,Impact\n")
    (tmp_path / "verbs.xml").touch()
    with pytest.raises(UserError, match=message):
        load_annotator(frames, **options)
