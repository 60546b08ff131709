"""The posterior of the exact model is fitted to half of the validation documents, and measured on others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ssdvae.data.documents import Documents
from ssdvae.evaluation import fitting
from ssdvae.evaluation.fitting import POWERS, SHARPNESS, fit_reader, fitting_half, without_fitted_labels
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.models.exact import POWER, ExactModel
from ssdvae.models.reader import FrameReader
from tests.toys import FRAMES, WORDS, prepared, toy_documents, toy_exact, toy_ssdvae

HEADS = torch.arange(2, WORDS)


def toy_with_rival() -> ExactModel:
    model = prepared(toy_exact()).eval()
    assert isinstance(model, ExactModel)
    return model


def readers(model: ExactModel) -> tuple[FrameReader, FrameReader]:
    assert model.frame_reader is not None
    assert model.rival is not None
    return model.frame_reader, model.rival


def kept(model: ExactModel) -> tuple[int, float, float]:
    return int(model.use_rival), round(model.power.item(), 4), round(model.sharpness.item(), 4)


def labelled(lengths: list[int]) -> Documents:
    """The frame of each event follows from its head."""
    documents = toy_documents(lengths, labelled=1)
    tokens = documents.tokens.copy()
    tokens[:, 0] = tokens[:, 0].clip(2)
    return replace(documents, tokens=tokens, frames=(tokens[:, 0] % FRAMES).astype(np.int32))


@torch.no_grad()
def answers_by_head(reader: FrameReader, right: float) -> None:
    """A reader that looks at nothing but the counts; it is wrong if ``right`` is negative."""
    reader.w_out.weight.zero_()
    reader.w_out.bias.zero_()
    reader.strength.fill_(right)
    reader.log_smoothing.zero_()


@torch.no_grad()
def exact_by_head(model: ExactModel, right: float) -> None:
    """An exact posterior whose log-odds of the true frame are ``right``, whatever came before."""
    model.initialize_from_data(HEADS.repeat(4), (HEADS % FRAMES).repeat(4))
    for parameter in model.decoder.parameters():
        parameter.zero_()
    model.decoder.bonus.masked_fill_(model.decoder.table >= 0, right)


@pytest.mark.parametrize("better", [0, 1])
def test_the_reader_that_gets_more_frames_right_is_kept(better: int) -> None:
    model, documents = toy_with_rival(), labelled([4] * 10)
    exact_by_head(model, 0.0)
    for number, reader in enumerate(readers(model)):
        answers_by_head(reader, 2.0 if number == better else -2.0)
    model.keep_reader(1 - better)
    fit_reader(model, documents, 3)
    assert model.use_rival == better
    assert evaluate(model, documents, EvaluateOptions())["frame_accuracy"] == 1


@pytest.mark.parametrize(("by_reader", "by_exact"), [(-1.0, 2.0), (1.0, -1.5)])
def test_the_power_follows_who_is_right(by_reader: float, by_exact: float) -> None:
    """A reader that is wrong is outvoted by the exact posterior, and one that is right is not."""
    model, documents = toy_with_rival(), labelled([4] * 10)
    exact_by_head(model, by_exact)
    for reader in readers(model):
        answers_by_head(reader, by_reader)
    accuracies = []
    for power in POWERS:
        model.keep_reader(0, power)
        accuracies.append(evaluate(model, documents, EvaluateOptions())["frame_accuracy"])
    assert {*accuracies} == {0, 1}
    fit_reader(model, documents, 3)
    _, power, _ = kept(model)
    # Far enough from a power at which all are wrong.
    best = [p for p, accuracy in zip(POWERS, accuracies, strict=True) if accuracy == 1]
    assert power in best[1:] if by_exact > 0 else power in best[:-1]


def test_what_is_kept_is_right_most_often_and_fits_best() -> None:
    """By the posterior itself: among neighbouring powers in the mean, and at no other sharpness better."""
    model, documents = toy_with_rival(), toy_documents([5, 3, 4, 1] * 8)
    fit_reader(model, documents, 7)
    which, power, sharpness = kept(model)

    def measured(*how: Any) -> dict[str, float]:
        model.keep_reader(*how)
        return evaluate(model, documents, EvaluateOptions())

    accuracy = np.array([[measured(r, p)["frame_accuracy"] for p in POWERS] for r in (0, 1)])
    padded = np.pad(accuracy, ((0, 0), (1, 1)), mode="edge")
    smooth = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    assert smooth[which, POWERS.index(power)] == pytest.approx(smooth.max())
    losses = [measured(which, power, s)["frame_ppl"] for s in SHARPNESS]
    assert SHARPNESS[int(np.argmin(losses))] == sharpness


@pytest.mark.parametrize(("sure", "expected"), [(8.0, SHARPNESS[0]), (0.2, SHARPNESS[-1])])
def test_a_reader_that_is_too_sure_of_itself_is_made_less_so(sure: float, expected: float) -> None:
    model, documents = toy_with_rival(), labelled([4] * 10)
    frames = documents.frames.copy()
    if sure > 1:
        frames[::3] = (frames[::3] + 1) % FRAMES  # every third label is another one
    exact_by_head(model, 0.0)
    for reader in readers(model):
        answers_by_head(reader, sure)
    fit_reader(model, replace(documents, frames=frames), 3)
    assert model.sharpness.item() == pytest.approx(expected)


def test_two_processes_keep_what_one_does() -> None:
    """Their sums are those of one, so each comes to the same choice when it has those of both."""
    model, documents = toy_with_rival(), toy_documents([5, 3, 4, 1] * 8)
    sums: list[list[Tensor]] = []
    for process, processes in ((0, 1), (0, 2), (1, 2)):
        own: list[Tensor] = []

        def keep(some: Tensor, own: list[Tensor] = own) -> Tensor:
            own.append(some.clone())
            return some

        fit_reader(model, documents, 3, process, processes, keep)
        sums.append(own)
        if processes == 1:
            alone = kept(model)
    for whole, first, second in zip(*sums, strict=True):
        assert bool(first.any())
        assert bool(second.any())
        torch.testing.assert_close(first + second, whole)
    for process in range(2):
        others = iter(sums[2 - process])

        def together(some: Tensor, others: Iterator[Tensor] = others) -> Tensor:
            return some + next(others)

        model.keep_reader(0, 9.0, 9.0)
        fit_reader(model, documents, 3, process, 2, together)
        assert kept(model) == alone


def test_without_labels_the_rival_is_kept() -> None:
    model, documents = toy_with_rival(), toy_documents([3, 2, 4], labelled=0)
    model.keep_reader(0, 9.0, 9.0)
    fit_reader(model, documents, 2)
    assert kept(model) == (1, POWER, 1.0)


def test_fitting_changes_no_mode_and_a_model_without_a_rival_keeps_its_reader() -> None:
    model, documents = toy_exact(), toy_documents([3, 2, 4] * 5)
    for training in (True, False):
        fit_reader(model.train(training), documents, 2)
        assert model.training == training
    assert model.reader is model.frame_reader
    assert not model.use_rival


@pytest.mark.parametrize("fitted", [2, 100])
def test_no_event_is_both_fitted_to_and_measured(fitted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The measured half lacks the labels of the fitted one, and nothing else."""
    monkeypatch.setattr(fitting, "FITTED", fitted)
    model, documents = toy_exact(), toy_documents([3, 1, 4, 2, 2, 5, 1], labelled=0.8)
    for cut in (documents, documents.first(2)):
        fit, measured = fitting_half(cut), without_fitted_labels(cut, model, "valid")
        assert fit.ids.to_pylist() == ["d0", "d2", "d4", "d6"][:fitted]
        assert measured.ids == cut.ids
        assert np.array_equal(measured.tokens, cut.tokens)
        hidden = np.zeros(len(cut.frames), dtype=bool)
        hidden[fit.in_order()] = True
        assert (measured.frames[hidden] == -1).all()
        assert np.array_equal(measured.frames[~hidden], cut.frames[~hidden])
        assert (cut.frames[hidden] >= 0).any()
        assert (measured.frames[measured.in_order()] >= 0).any()


def test_all_is_measured_where_nothing_was_fitted() -> None:
    model, documents = toy_exact(), toy_documents([3, 1, 4])
    assert without_fitted_labels(documents, model, "test") is documents
    assert without_fitted_labels(documents, toy_ssdvae(), "valid") is documents
    one = documents.take(np.arange(1))
    assert without_fitted_labels(one, model, "valid") is one
