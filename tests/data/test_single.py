"""A corpus of single events has the events of the corpus it is made from, split by split."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ssdvae.data.corpus import Corpus
from ssdvae.data.options import SPLITS, PrepareOptions
from ssdvae.data.prepare import prepare, single_events
from ssdvae.data.readers import write_jsonl
from ssdvae.io.errors import UserError
from ssdvae.io.files import sha256
from ssdvae.storyworld.world import World


def corpus_of(folder: Path, seed: int, test_share: float = 0.1) -> Corpus:
    write_jsonl(folder / f"{seed}.jsonl", World.embedded().documents(80, seed))
    settings = PrepareOptions(vocabulary=100, events=4, valid_share=0.2, test_share=test_share, cloze_items=0)
    return prepare(folder / f"{seed}.jsonl", folder / f"corpus{seed}", settings)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return corpus_of(tmp_path, seed=1)


def test_every_event_is_a_document(corpus: Corpus, tmp_path: Path) -> None:
    made = single_events(corpus, tmp_path / "single")
    assert made.events == 1
    assert made.vocabulary == corpus.vocabulary
    assert made.frames == corpus.frames
    for split in SPLITS:
        old, new = corpus.split(split), made.split(split)
        expected = [
            (f"{id}#{number}", old.tokens[place].tolist(), int(old.frames[place]))
            for id, part in zip(old.ids.to_pylist(), old.parts(), strict=True)
            for number, place in enumerate(range(part.start, part.stop), start=1)
        ]
        found = zip(new.ids.to_pylist(), new.tokens.tolist(), new.frames.tolist(), strict=True)
        assert list(found) == expected
        assert set(new.lengths.tolist()) == {1}
        counts = made.manifest["splits"][split]
        assert counts["documents"] == counts["events"] == len(new)
    assert Counter(made.manifest["sha256"]) == Counter(
        {path.name: sha256(path) for path in made.folder.iterdir() if path.name != "manifest.json"}
    )


def test_it_is_made_once_and_from_this_corpus_only(corpus: Corpus, tmp_path: Path) -> None:
    before = single_events(corpus, tmp_path / "single").folder / "manifest.json"
    text, time = before.read_bytes(), before.stat().st_mtime_ns
    single_events(corpus, tmp_path / "single")
    assert (before.read_bytes(), before.stat().st_mtime_ns) == (text, time)
    with pytest.raises(UserError, match="made from another corpus"):
        single_events(corpus_of(tmp_path, seed=2), tmp_path / "single")


def test_an_empty_split_stays_empty(tmp_path: Path) -> None:
    made = single_events(corpus_of(tmp_path, seed=3, test_share=0.0), tmp_path / "single")
    assert json.loads((made.folder / "manifest.json").read_text())["splits"]["test"]["documents"] == 0
    with pytest.raises(UserError, match="has no documents"):
        made.split("test")
