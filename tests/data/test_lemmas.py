"""Lemmas of heads: counted on the training split, kept with the corpus, and damaged files told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ssdvae.data.corpus import Corpus
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare, single_events
from ssdvae.data.vocabulary import Vocabulary, lemma_ids, load_lemmas, majority_lemmas
from ssdvae.io.errors import DataError

EVENTS = [
    {"verb": "Gave", "lemma": "give", "frame": "Giving"},
    {"verb": "gave", "lemma": "give", "frame": "Giving"},
    {"verb": "gave", "lemma": "give up", "frame": "Giving"},
    {"verb": "give", "lemma": "give", "frame": "Giving"},
    {"verb": "left", "frame": "Leaving"},
]


def corpus_of(folder: Path, **settings: object) -> Corpus:
    events, other = folder / "events.jsonl", folder / "other.jsonl"
    events.write_text(json.dumps({"id": "a", "events": EVENTS}) + "\n")
    # What other splits say of lemmas is not counted.
    wrong = [{"verb": "gave", "lemma": "wrong", "frame": "Giving"}] * 9
    other.write_text(json.dumps({"id": "b", "events": wrong}) + "\n")
    sources = {"train": events, "valid": other, "test": other}
    return prepare(sources, folder / "corpus", PrepareOptions.of(settings))  # type: ignore[arg-type]


def test_the_commonest_lemma_of_a_head_in_training_is_kept(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    assert corpus.lemmas == {"gave": "give", "give": "give"}
    assert single_events(corpus, tmp_path / "single").lemmas == corpus.lemmas
    gave, give, left = (
        lemma_ids(corpus.vocabulary.names, corpus.lemmas)[corpus.vocabulary.id(word)]
        for word in ("gave", "give", "left")
    )
    assert gave == give != left


def test_a_corpus_without_lemmas_has_none(tmp_path: Path) -> None:
    for event in (events := [dict(event) for event in EVENTS]):
        event.pop("lemma", None)
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps({"id": str(i), "events": events}) + "\n" for i in range(60)))
    corpus = prepare(path, tmp_path / "corpus")
    assert corpus.lemmas == {}
    assert not (corpus.folder / "lemmas.json").exists()


def test_heads_may_be_their_lemmas(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, lemmas=True)
    assert {"give", "give_up", "left"} <= set(corpus.vocabulary.names)
    assert "gave" not in corpus.vocabulary


def test_of_equally_common_lemmas_the_first_by_spelling() -> None:
    words = Vocabulary(["None", "<unk>", "saw"], [1, 1, 1])
    counted = Counter({("saw", "see"): 2, ("saw", "saw"): 2, ("gone", "go"): 3})
    assert majority_lemmas(counted, words) == {"saw": "saw"}


@pytest.mark.parametrize("content", ["[]", '{"a": 1}', "{", '{"a": null}'])
def test_lemmas_that_are_none_are_told(content: str, tmp_path: Path) -> None:
    path = tmp_path / "lemmas.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"lemmas\.json"):
        load_lemmas(path)
