"""Supervision by a lexicon: frames have their names, though no event is labelled."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data.batches import collate
from ssdvae.data.corpus import Corpus
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.extraction.english import regular_stems
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.exact import ExactModel
from ssdvae.training.options import TrainOptions
from ssdvae.training.supervision import with_single_frames
from ssdvae.training.train import train

FRAMES = {"give": "Giving", "take": "Taking", "go": "Motion"}
FORMS = {"gave": "give", "given": "give", "took": "take", "went": "go", "go": "go", "xyz": None}
"""Heads and their lemmas, of which files have all but one that is regular."""
REGULAR = {"taking": "take"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder, rng = tmp_path_factory.mktemp("lexicon"), np.random.default_rng(1)
    with (folder / "events.jsonl").open("w") as file:
        for number in range(120):
            events = []
            for form in rng.choice([*FORMS, *REGULAR], size=4):
                lemma = {**FORMS, **REGULAR}[form]
                frame = FRAMES[lemma] if lemma else str(rng.choice(list(FRAMES.values())))
                known = {"lemma": lemma} if lemma and form not in REGULAR else {}
                events.append({"verb": str(form), "obj": f"o{rng.integers(9)}", "frame": frame, **known})
            file.write(json.dumps({"id": str(number), "events": events}) + "\n")
    (folder / "lexicon.json").write_text(
        json.dumps({k: [v] for k, v in FRAMES.items()} | {"run": ["Motion"]})
    )
    return prepare(folder / "events.jsonl", folder / "corpus", PrepareOptions(cloze_items=0))


def settings(corpus: Corpus, **given: object) -> TrainOptions:
    small = {"hidden": 8, "embedding": 8, "layers": 1, "epochs": 1, "batch": 30}
    lexicon = corpus.folder.parent / "lexicon.json"
    return TrainOptions.chosen({"preset": None, "observe": 0.0, "lexicon": lexicon, **small, **given})


def test_frames_have_their_names_without_a_labelled_event(
    corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        run = train(corpus, tmp_path / "run", settings(corpus))
    assert "has frames of 6 of the 7 heads" in caplog.text
    model, documents = Model.read(run.folder), corpus.split("train")
    assert isinstance(model, ExactModel)
    batch = collate(documents, np.arange(len(documents)))
    listed = batch.tokens[..., 0] != corpus.vocabulary.id("xyz")
    right = model.posterior(batch).value == batch.frames
    assert right[listed].float().mean() > 0.95
    assert right[~listed].float().mean() < 0.6


@pytest.mark.parametrize(
    ("form", "verb"),
    [
        ("hoping", "hope"),
        ("hopping", "hop"),
        ("passed", "pass"),
        ("passes", "pass"),
        ("uses", "use"),
        ("tried", "try"),
        ("goes", "go"),
        ("turned", "turn"),
        ("planned", "plan"),
    ],
)
def test_regular_forms_lead_to_their_verb_before_any_other(form: str, verb: str) -> None:
    verbs = {"hope", "hop", "pass", "use", "try", "go", "turn", "plan", "plane"}
    assert next(stem for stem in regular_stems(form) if stem in verbs) == verb


WORDS, FRAME_COUNT = 6, 4
PAIRS = st.sets(st.tuples(st.integers(0, WORDS - 1), st.integers(0, FRAME_COUNT - 1)), min_size=1)
EVENTS = st.lists(st.tuples(st.integers(0, WORDS - 1), st.integers(-1, FRAME_COUNT - 1)), min_size=1)


@given(pairs=PAIRS, events=EVENTS)
def test_a_lexicon_tells_where_there_is_no_choice(
    pairs: set[tuple[int, int]], events: list[tuple[int, int]]
) -> None:
    heads, observed = np.array(events, dtype=np.int32).T
    told = with_single_frames(observed, heads, torch.tensor(sorted(pairs)), WORDS)
    for head, before, after in zip(heads.tolist(), observed.tolist(), told.tolist(), strict=True):
        listed = {frame for word, frame in pairs if word == head}
        seen = {frame for word, frame in events if word == head and frame >= 0}
        only = listed if len(listed) == 1 and seen <= listed else set()
        assert after == (before if before >= 0 else next(iter(only), -1))


def test_a_lexicon_of_other_heads_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"sing": ["Giving"]}')
    with pytest.raises(UserError, match="no head and frame that are both known"):
        train(corpus, tmp_path / "run", settings(corpus, lexicon=other))


def test_a_lexicon_that_nothing_reads_is_refused() -> None:
    with pytest.raises(UserError, match=r"'lexicon' \(ssdvae-exact has it\)"):
        TrainOptions.chosen({"model": "ssdvae", "lexicon": Path("lexicon.json")})
