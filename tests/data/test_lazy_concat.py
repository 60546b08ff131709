"""Arrays of several files are read as one array of all of them would be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data import prepare as preparing
from ssdvae.data.batches import collate, mask_frames
from ssdvae.data.corpus import Corpus
from ssdvae.data.documents import LazyConcat
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.io.errors import UserError
from ssdvae.storyworld.world import World


@given(
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any),
    width=st.sampled_from([None, 1, 4]),
    data=st.data(),
)
def test_it_is_the_array_of_all_parts(lengths: list[int], width: int | None, data: st.DataObject) -> None:
    shape: Any = () if width is None else (width,)
    whole = np.arange(sum(lengths) * (width or 1), dtype=np.int32).reshape(-1, *shape)
    joined = LazyConcat(np.split(whole, np.cumsum(lengths)[:-1]))
    assert (len(joined), joined.shape) == (len(whole), whole.shape)
    rows = np.array(data.draw(st.lists(st.lists(st.integers(0, len(whole) - 1), min_size=2, max_size=2))))
    rows = rows.reshape(-1, 2).astype(np.int64)
    np.testing.assert_array_equal(joined[rows], whole[rows])
    start, stop = sorted(data.draw(st.tuples(st.integers(0, 30), st.integers(0, 30))))
    np.testing.assert_array_equal(joined[start:stop], whole[start:stop])
    np.testing.assert_array_equal(np.asarray(joined), whole)
    np.testing.assert_array_equal(joined[whole > 3], whole[whole > 3])
    np.testing.assert_array_equal(joined >= 3, whole >= 3)
    np.testing.assert_array_equal(1 + joined, 1 + whole)
    assert (joined.sum(), joined.tolist(), list(map(str, joined))) == (
        whole.sum(),
        whole.tolist(),
        list(map(str, whole)),
    )
    if width is not None:
        np.testing.assert_array_equal(joined[:, 0], whole[:, 0])
        np.testing.assert_array_equal(joined[rows, 0], whole[rows, 0])
        np.testing.assert_array_equal(np.asarray(joined[..., 0]), whole[..., 0])


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Corpus, Corpus]:
    """The same documents in one file a split, and in several."""
    write_jsonl(tmp_path / "events.jsonl", World.embedded().documents(90, seed=3))
    settings = PrepareOptions(vocabulary=300, valid_share=0.2, test_share=0.1)
    one = prepare(tmp_path / "events.jsonl", tmp_path / "one", settings)
    monkeypatch.setattr(preparing, "ROWS", 16)
    return one, prepare(tmp_path / "events.jsonl", tmp_path / "many", settings)


def test_a_split_of_several_files_has_the_documents_of_one(corpora: tuple[Corpus, Corpus]) -> None:
    one, many = (corpus.split("train") for corpus in corpora)
    assert len(corpora[1].split_files("train")) > 2
    assert all(f in corpora[1].manifest["sha256"] for f in corpora[1].split_files("train"))
    assert type(many.tokens).__name__ == "LazyConcat"
    assert one.ids.to_pylist() == many.ids.to_pylist()
    np.testing.assert_array_equal(mask_frames(one, 0.5, 3), mask_frames(many, 0.5, 3))
    rows = np.array([len(one) - 1, 0, 20, 20], np.int64)
    for mine, theirs in ((one, many), (one.first(2), many.first(2)), (one.windows(2, 1), many.windows(2, 1))):
        first, second = (collate(documents, rows) for documents in (mine, theirs))
        assert first.tokens.equal(second.tokens)
        assert first.frames.equal(second.frames)
        assert first.mask.equal(second.mask)


def test_numbers_are_read_where_they_stand(corpora: tuple[Corpus, Corpus]) -> None:
    """A file is mapped, not copied: its numbers belong to nobody else."""
    for corpus in corpora:
        documents = corpus.split("train")
        tokens: Any = documents.tokens
        parts = tokens.parts if isinstance(tokens, LazyConcat) else [tokens]
        assert not any(part.flags.owndata or part.flags.writeable for part in parts)


def test_a_file_that_is_missing_is_named(corpora: tuple[Corpus, Corpus]) -> None:
    (corpora[1].folder / "train-00001.arrow").unlink()
    with pytest.raises(UserError, match=r"train-00001\.arrow"):
        Corpus(corpora[1].folder).split("train")


def test_the_fingerprint_of_a_split_is_that_of_all_its_files(corpora: tuple[Corpus, Corpus]) -> None:
    one, many = corpora
    assert one.split_fingerprint("train") == one.manifest["sha256"]["train.arrow"]
    many.manifest["sha256"]["train-00001.arrow"] = "0" * 64
    assert many.split_fingerprint("train") != Corpus(many.folder).split_fingerprint("train")
