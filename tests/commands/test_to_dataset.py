"""Corpora as datasets of Hugging Face, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ssdvae.commands.prepare import prepare
from ssdvae.commands.to_dataset import to_dataset
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.readers import write_jsonl
from ssdvae.io.errors import UserError
from ssdvae.storyworld.world import World

datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("exchange")
    write_jsonl(folder / "events.jsonl", World.embedded().documents(60, seed=1))
    return prepare(
        folder / "events.jsonl", folder / "corpus", valid_share=0.2, test_share=0.2, jobs=1, progress=False
    )


def named(corpus: Corpus, documents: Documents) -> list[str]:
    return [corpus.vocabulary.name(word) for word in documents.tokens.flatten().tolist()]


def test_a_dataset_made_from_a_corpus_makes_that_corpus(corpus: Corpus, tmp_path: Path) -> None:
    dataset = to_dataset(corpus)
    again = prepare(dataset, tmp_path / "again", jobs=1, progress=False)
    for split in ("train", "valid", "test"):
        one, other = corpus.split(split), again.split(split)
        assert dataset[split].num_rows == len(one)
        assert one.ids.to_pylist() == other.ids.to_pylist()
        assert named(corpus, one) == named(again, other)
        assert np.array_equal(one.lengths, other.lengths)


def test_one_dataset_is_split_by_the_names_of_its_documents(corpus: Corpus, tmp_path: Path) -> None:
    whole = datasets.concatenate_datasets(list(to_dataset(corpus).values()))
    again = prepare(whole, tmp_path / "again", valid_share=0.2, test_share=0.2, jobs=1, progress=False)
    assert again.split("valid").ids.to_pylist() == corpus.split("valid").ids.to_pylist()


def test_other_columns_and_splits_are_refused_in_words(tmp_path: Path) -> None:
    rows = datasets.Dataset.from_list([{"text": "a"}])
    with pytest.raises(UserError, match="no column 'events'; it has: text"):
        prepare(rows, tmp_path / "a", progress=False)
    with pytest.raises(UserError, match="no split 'dev'"):
        prepare(datasets.DatasetDict({"dev": rows}), tmp_path / "b", progress=False)
