"""Long documents: read as windows where a model was trained so, and put together again."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from ssdvae.data.batches import Batch, collate
from ssdvae.data.documents import ContextWindow
from ssdvae.inference.posterior import infer_documents, infer_latents
from ssdvae.models.base import FrameModel, LatentModel
from ssdvae.models.latents import FramePosterior
from tests.toys import named_documents, toy_documents, toy_model, toy_ssdvae


@pytest.mark.parametrize("name", ["ssdvae", "ssdvae-exact", "rnnlm-classifier"])
def test_an_event_is_read_where_it_is_farthest_from_the_ends_of_its_window(name: str) -> None:
    model, lengths = toy_model(name), [9, 3, 7, 12]
    assert isinstance(model, FrameModel)
    documents = toy_documents(lengths)
    batch = collate(documents, np.arange(4))
    model.context_window = ContextWindow(window=5, stride=2, longest=5)
    together = infer_latents(model, batch)
    assert isinstance(together, FramePosterior)
    assert (together.clusters is not None) == (name == "ssdvae")
    parts = together.parts or {}
    assert set(parts) == ({"reader", "exact"} if name == "ssdvae-exact" else set())
    for row, length in enumerate(lengths):
        one = batch.part(slice(row, row + 1)).first(length)
        last = max(0, length - 5)
        starts = sorted({*range(0, last, 2), last})
        for event in range(length):

            def margin(start: int, event: int = event, last: int = last) -> float:
                left = event - start if start else np.inf
                right = start + 4 - event if start < last else np.inf
                return min(left, right)

            inside = [start for start in starts if start <= event < start + 5]
            best = max(map(margin, inside))
            options, places = [], []
            for start in (start for start in inside if margin(start) == best):
                whole = (one.tokens, one.frames, one.observed, one.mask)
                part = Batch(*(values[:, start : start + 5] for values in whole))
                options.append(model.posterior(part))
                places.append(event - start)
            assert any(
                torch.allclose(together.log_q[row, event], option.log_q[0, place])
                and all(
                    torch.allclose(parts[part][row, event], (option.parts or {})[part][0, place])
                    for part in parts
                )
                for option, place in zip(options, places, strict=True)
            )


def test_what_fits_into_a_window_is_read_in_one_piece() -> None:
    model, documents = toy_ssdvae(), toy_documents([5, 2])
    batch = collate(documents, np.arange(2))
    model.context_window = ContextWindow(window=5, stride=3, longest=5)
    found = infer_latents(model, batch)
    assert found is not None
    torch.testing.assert_close(found.log_q, model.posterior(batch).log_q, rtol=0, atol=0)


def test_variables_that_are_no_frames_are_those_of_the_whole_document() -> None:
    model = toy_model("haqae")
    model.context_window = ContextWindow(window=2, stride=1, longest=2)
    batch = collate(toy_documents([6]), np.arange(1))
    assert isinstance(model, LatentModel)
    found, whole = infer_latents(model, batch), model.posterior(batch)
    assert found is not None
    torch.testing.assert_close(found.log_q, whole.log_q, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "window", "warned"),
    [("ssdvae", None, True), ("ssdvae", 5, False), ("ssdvae-exact", None, False)],
)
def test_a_chain_warns_once_of_documents_longer_than_it_was_trained_on(
    name: str, window: int | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = toy_model(name)
    model.context_window = ContextWindow(window=window, stride=window, longest=5)
    documents = named_documents(toy_documents([5, 6, 7]), model)
    with caplog.at_level(logging.WARNING):
        list(infer_documents(model, documents[:1]))
        assert not caplog.records
        list(infer_documents(model, documents, batch=1))
    assert len(caplog.records) == warned
    if warned:
        assert "has 6 events, and the model was trained on at most 5" in caplog.text
    model.context_window = model.context_window.model_copy(update={"longest": None})
