"""Labels for the rest of a log: what is known, what is read and what is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import log_labels
from benchmarks.log_cells import Cells
from benchmarks.log_labels import MODELS, Classifier, Task, measure, pad, table
from ssdvae.storyworld.tickets import ticket_documents


@pytest.fixture(scope="module")
def task() -> Task:
    return Task.of(list(ticket_documents(60, known=1.0)), 0.3, 1)


def test_labels_of_a_smaller_share_are_among_those_of_a_larger_one(task: Task) -> None:
    known = np.concatenate(task.known)
    few = np.concatenate(Task.of(task.documents, 0.1, 1).known)
    assert set(np.flatnonzero(few >= 0)) < set(np.flatnonzero(known >= 0))
    assert (known[known >= 0] == np.concatenate(task.labels)[known >= 0]).all()


def test_accuracy_is_that_of_the_labels_that_are_not_known(task: Task) -> None:
    assert task.accuracy(task.labels) == 1
    assert task.accuracy(task.known) == 0


@pytest.mark.parametrize("whole", [False, True])
def test_a_classifier_of_one_event_reads_no_other(task: Task, whole: bool) -> None:
    model = Classifier(task, whole, 0.3).eval()
    batch = pad(task, [0])
    nothing, other = torch.full_like(batch.known, -1), batch.words.clone()
    other[:, 1:] = (other[:, 1:] + 1) % task.size
    first, changed = (model(words, nothing, batch.lengths)[0, 0] for words in (batch.words, other))
    assert torch.allclose(first, changed) is not whole


def test_padding_takes_part_in_nothing(task: Task) -> None:
    model = Classifier(task, True, 0.3).eval()
    short = min(range(len(task.words)), key=lambda row: len(task.words[row]))
    long = max(range(len(task.words)), key=lambda row: len(task.words[row]))
    alone, padded = pad(task, [short]), pad(task, [short, long])
    length = len(task.words[short])
    one, two = (model(batch.words, batch.known, batch.lengths)[0, :length] for batch in (alone, padded))
    assert torch.allclose(one, two, atol=1e-6)


def test_cells_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_labels, "CASES", 30)
    monkeypatch.setattr(log_labels, "EPOCHS", 2)
    monkeypatch.setattr(log_labels, "MODELS", MODELS[:2])
    cells = Cells(tmp_path)
    measure(tmp_path, cells, ["tickets"], [30], [1])
    first = (tmp_path / "cells.csv").read_text()
    measure(tmp_path, cells, ["tickets"], [30], [1])
    assert (tmp_path / "cells.csv").read_text() == first
    assert "| tickets | 30% | " in table(cells)
