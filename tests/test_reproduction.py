"""docs/reproduction.md shows what the figures in docs/cells say."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ssdvae.data.documents import ContextWindow
from ssdvae.evaluation.measure import as_trained
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.options import PRESETS
from ssdvae.report.pictures import Picture
from ssdvae.reproduction import results
from ssdvae.reproduction.claims import (
    NOT_MEASURED,
    NOT_SUPPORTED,
    SUPPORTED,
    TOO_FEW_SEEDS,
    Evidence,
    verdicts,
)
from ssdvae.reproduction.job import Job, TaskRequest
from ssdvae.reproduction.options import PRESCRIBED, ReproduceOptions, Version
from ssdvae.reproduction.paper import make_trials, parse_targets
from ssdvae.reproduction.results import ResultsCache, ResultTable

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "reproduction.py"))


def test_its_pictures_are_those_of_the_cells(made: dict[str, Any]) -> None:
    for name, (title, figure) in made["PICTURES"].items():
        drawn = Picture(made["picture"](title, figure)).svg()
        assert (DOCS / "pictures" / name).read_text(encoding="utf-8") == drawn, (
            f"{name}: run python docs/reproduction.py"
        )


def test_its_tables_are_those_of_the_cells(made: dict[str, Any]) -> None:
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    for table in made["TABLES"]:
        assert table() in page, f"{table.__name__}: run python docs/reproduction.py"


CORPORA = {
    "wiki3": "f7e62de1768ef4cccf5882f85b68251fe1845c038a9a8377d0b323cbaacceb12",
    "wiki12": "e948ec9501f1b2b01b6efd0cfacf2f5db18b1ba50a9fb537dbb2816e820c8dc8",
    "wiki24": "0c12833dea920b5c54177daf57842db00362033e6a9ad2341e7929edf48a9436",
    "wiki46": "af6cf64d3f354d68bcee1ed64c820884c98f830c1017558ff461059548b37ed8",
    "single": "a8e736412920c5d5cdfe33e65d59cf6a3459492793a6f8e36726b8ce07edd194",
}
"""The fingerprints of the corpora; the last is that of the single events of wiki24."""

NYT = Path("val.txt"), "f2c753d284ceb61cebf4de382316e493ac6cec6509fa46bc5e2bf3e7014806c4"

SHARED = {
    **{"hidden": 128, "layers": 1, "batch": 50, "learning_rate": 3e-3, "epochs": 20, "patience": 3},
    **{"validate_steps": 240, "vectors": Path("glove.100d.txt.gz"), "role_embedding": 50, "revive": True},
}
CHANGED: dict[str, dict[str, Any]] = {
    "wiki24": {},
    "wiki24-tied": {"tied": True},
    "wiki24-single": {"batch": 250, "epochs": 6, "validate_steps": 444},
    "wiki12": {},
    "wiki12-tied": {"tied": True},
    "wiki3": {"validate_steps": 60, "epochs": 40},
    "wiki3-tied": {"validate_steps": 60, "epochs": 40, "tied": True},
    "wiki46": {"validate_steps": 480},
    "wiki46-tied": {"validate_steps": 480, "tied": True},
}
"""In what the command behind each file of docs/cells is not that of reproduction.md."""

TRIALS = make_trials(parse_targets("all"), ReproduceOptions(as_="both", observe="0,0.4,0.9"))


def test_there_is_a_command_for_each_file() -> None:
    assert {path.stem for path in (DOCS / "cells").glob("*.csv")} == set(CHANGED)


@pytest.mark.parametrize("sweep", CHANGED)
def test_its_commands_take_the_cells(sweep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables can be made from the corpora and the files, without a run."""
    monkeypatch.setattr(results, "Corpus", lambda folder: SimpleNamespace(fingerprint=CORPORA[folder.name]))
    cache = ResultsCache.read(DOCS / "cells" / f"{sweep}.csv")
    evaluation = EvaluateOptions(bound_samples=5, cloze_seeds=3, eval_batch=200)
    path, digest = NYT
    known = [trial for trial in TRIALS if trial.name in set(cache.figures["trial"])]
    assert {trial.name for trial in known} == set(cache.figures["trial"])
    for trial in known:
        shared = {**PRESCRIBED, **PRESETS["small"], **SHARED, **CHANGED[sweep]}
        training = trial.row.train_options(shared, trial.seed)
        corpus = Path("single" if trial.row.single else sweep.partition("-")[0])
        measured = as_trained(evaluation, ContextWindow.of(training))
        job = Job(Path("run"), corpus, training, measured, (TaskRequest("cloze", digest, path),))
        assert cache.mismatch(trial, job, {path: "nyt"}) is None
        assert "cloze" not in trial.tasks or cache.covers(trial, job, {path: "nyt"})


@pytest.mark.parametrize(("version", "supported"), [("paper", {1, 8}), ("code", {1, 2, 3, 8})])
def test_its_verdicts_are_those_of_the_cells(version: Version, supported: set[int]) -> None:
    table = ResultTable(ResultsCache.read(DOCS / "cells" / "wiki24.csv").figures, TRIALS)
    found = verdicts(Evidence(table, (0.0, 0.4, 0.9), ("corpus", "nyt"), version))
    assert {v.number for v in found if v.verdict == SUPPORTED} == supported
    assert {v.number: v.verdict for v in found if v.number in (5, 6)} == {5: NOT_MEASURED, 6: TOO_FEW_SEEDS}
    assert {v.verdict for v in found if v.number not in {5, 6, *supported}} == {NOT_SUPPORTED}
