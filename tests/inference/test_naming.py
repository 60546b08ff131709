"""Frames without a name are shown by their likeliest heads."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from ssdvae.data.vocabulary import Inventory
from ssdvae.inference.posterior import name_frames, unnamed_names
from tests.toys import FRAMES, toy_documents, toy_model


def test_the_likeliest_heads_make_the_name() -> None:
    counts = np.array([[0, 5, 9, 1], [7, 0, 0, 0], [0, 0, 0, 0], [0, 5, 9, 2]])
    words = ["opened", "closed", "updated", "asked"]
    assert unnamed_names(counts, words) == ["~updated/closed", "~opened", "~3", "~updated/closed:2"]


@given(arrays.arrays(np.int64, st.tuples(st.integers(0, 9), st.just(5)), elements=st.integers(0, 3)))
def test_names_are_different(counts: NDArray[np.int64]) -> None:
    names = unnamed_names(counts, [f"w{i}" for i in range(5)])
    assert len(set(names)) == len(names) == len(counts)


def test_names_of_labels_stay_and_unnamed_ones_follow_what_is_inferred() -> None:
    model, documents = toy_model("ssdvae-exact"), toy_documents([3, 4, 2] * 10)
    before = model.frames
    name_frames(model, documents, named=1)
    assert model.frames.name(0) == before.name(0)
    assert len(model.frames) == FRAMES
    assert all(name.startswith("~") for name in model.frames.names[1:])
    assert not model.training
    events = sum(documents.lengths.tolist())
    assert 0 < sum(model.frames.counts[1:]) <= events


def test_unnamed_frames_come_after_the_labels() -> None:
    frames = Inventory(["A", "~1"], [3, 2]).with_unnamed(2)
    assert frames.names == ("A", "~1", "~2", "~3")
    assert frames.counts == (3, 2, 0, 0)
    assert Inventory([], []).with_unnamed(1).names == ("~1",)
