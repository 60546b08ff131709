"""Figures of a file are those of the cells that are asked for, or are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ssdvae.config import EvaluateSettings, PrepareSettings, TrainSettings
from ssdvae.data.events import Document, Event
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.models import MODELS
from ssdvae.paper import kept as keeping
from ssdvae.paper.grid import RNNLM, Cell
from ssdvae.paper.job import Job, Wanted
from ssdvae.paper.kept import Kept, Line, all_lines, made_with, write_cells
from ssdvae.paper.measured import CORPUS, VALIDATION, CellFigure

NAMES = {Path("val.txt"): "nyt"}
CELL = Cell(RNNLM, 1, frozenset({"cloze"}))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    documents = [Document(f"d{i}", (Event("ate", "dog", "bone", frame="Eating"),) * 2) for i in range(9)]
    write_jsonl(tmp_path / "events.jsonl", documents)
    corpus = prepare(tmp_path / "events.jsonl", tmp_path / "corpus", PrepareSettings(vocabulary=20))
    wanted = (Wanted("cloze", "corpus's"), Wanted("cloze", "first", Path("val.txt")))
    return Job(tmp_path / "run", corpus.folder, TrainSettings(model="rnnlm"), EvaluateSettings(), wanted)


def kept(*lines: Line) -> Kept:
    return Kept(Path("cells.csv"), {CELL.name: lines})


def test_settings_that_are_left_alone_leave_no_trace_but_the_model_does(job: Job) -> None:
    """So that a fingerprint outlives the settings that later versions add."""
    every = [TrainSettings(model=model) for model in MODELS]
    for training in every:
        own = training.model_settings
        assert keeping._departures(training, training.training_table(), ()) == {}
        assert keeping._departures(own, own.table(), ()) == {}
    assert len({made_with(replace(job, training=training), NAMES) for training in every}) == len(MODELS)


def test_a_cloze_file_is_known_by_what_is_in_it(job: Job) -> None:
    figure, own = CellFigure("cloze_nll", "nyt", 0.2), CellFigure("cloze_nll", CORPUS, 0.3)
    lines = Line(figure, made_with(job, NAMES, "nyt")), Line(own, made_with(job, NAMES))
    assert kept(*lines).made_otherwise(CELL, job, NAMES) is None
    assert kept(*lines).covers(CELL, job, NAMES)
    assert not kept(lines[1]).covers(CELL, job, NAMES)
    other = replace(job, wanted=(job.wanted[0], replace(job.wanted[1], sha256="second")))
    assert "another file nyt" in (kept(*lines).made_otherwise(CELL, other, NAMES) or "")
    # Of a file that is not asked for nothing is said.
    assert kept(*lines).made_otherwise(CELL, replace(job, wanted=job.wanted[:1]), NAMES) is None
    wide = replace(job, training=TrainSettings(model="rnnlm", hidden=9))
    assert "other settings or another corpus" in (kept(lines[1]).made_otherwise(CELL, wide, NAMES) or "")


def test_a_learning_curve_is_that_of_one_run(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    own = [CellFigure(VALIDATION, "10:1", 50.0), CellFigure("ppl", CORPUS, 50.0)]
    there = kept(
        *(Line(CellFigure(VALIDATION, f"{step}:1", 40.0), made_with(job, NAMES)) for step in (10, 20)),
        Line(CellFigure("cloze_nll", CORPUS, 0.2), made_with(job, NAMES)),
    )
    assert [line.figure.value for line in all_lines(CELL, job, NAMES, there)] == [40.0, 40.0, 0.2]
    monkeypatch.setattr(keeping, "cell_figures", lambda *_: own)
    assert [line.figure for line in all_lines(CELL, job, NAMES, there)] == [
        *own,
        CellFigure("cloze_nll", CORPUS, 0.2),
    ]


def test_what_is_written_is_read(job: Job, tmp_path: Path) -> None:
    lines = [
        Line(CellFigure("ppl", CORPUS, 1 / 3, " †"), made_with(job, NAMES)),
        Line(CellFigure("cloze_nll", "nyt", 0.2), made_with(job, NAMES, "nyt")),
    ]
    there = replace(kept(*lines), path=tmp_path / "cells.csv")
    write_cells(there.path, {CELL: job}, NAMES, there)
    assert Kept.read(there.path) == there
