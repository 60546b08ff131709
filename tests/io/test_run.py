"""The run folder: metrics, scores, and which validation is the best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.io.errors import DataError
from ssdvae.io.run import Run, best_validation, selection_metric
from ssdvae.io.scores import Measurement, read_scores, write_scores

figure = st.none() | st.floats(1, 1e6)
records = st.lists(st.fixed_dictionaries({"ppl": st.floats(1, 1e6), "frame_accuracy": st.floats(0, 1)}))


@given(figure, figure, figure, figure)
def test_a_validation_is_judged_by_cases_then_the_bound_then_the_words_then_the_frames(
    cases: float | None, bound: float | None, words: float | None, frames: float | None
) -> None:
    scores = {"case_ppl": cases, "ppl_bound": bound, "ppl": words, "frame_ppl": frames}
    there = {name: value for name, value in scores.items() if value is not None}
    assert selection_metric(scores) == next(iter(there), None)
    assert selection_metric(there) == selection_metric(scores)


@given(records)
def test_the_best_validation_is_the_first_of_the_lowest(found: list[dict[str, Any]]) -> None:
    """The first, since training saves a model only if it is better than the one that it has."""
    best = best_validation(found)
    if best is None:
        assert not found
        return
    place = next(i for i, record in enumerate(found) if record is best)
    assert all(best["ppl"] <= record["ppl"] for record in found)
    assert all(best["ppl"] < record["ppl"] for record in found[:place])


def test_a_validation_without_the_figure_that_others_have_is_not_the_best() -> None:
    """Its bound was not finite: its words, which are judged by nobody, do not make up for it."""
    records = [{"step": 1, "ppl": 2.0}, {"step": 2, "ppl": 9.0, "ppl_bound": 8.0}]
    assert best_validation(records) is records[1]


def test_a_curve_has_the_validations_of_words(tmp_path: Path) -> None:
    valid: dict[str, Any] = {"split": "valid", "epoch": 0.5, "seconds": 1.0}
    kept = [{**valid, "step": 10, "ppl": 9.0}, {**valid, "step": 30, "ppl": 8.0}]
    others = [{**valid, "split": "train", "step": 5, "ppl": 1.0}, {**valid, "step": 20, "frame_ppl": 3.0}]
    lines = [others[0], kept[0], others[1], kept[1]]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert Run(tmp_path).curve() == kept


LINE: dict[str, Any] = {"step": 1, "epoch": 0.5, "seconds": 1.0, "split": "valid", "ppl": 9.0}
MEASUREMENT: dict[str, Any] = {
    **{"task": "perplexity", "data": "valid", "sha256": "0" * 64, "items": 1, "settings": {}},
    **{"version": "0", "model_sha256": "0" * 64, "scores": {"ppl": 9.0, "frame_accuracy": None}},
}
BIN = {"confidence": 0.5, "accuracy": 0.5, "events": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ppl": 10**310}, "at ppl, expected a finite number"),
        ({"elbo": 10**400}, "at elbo, expected a finite number"),
        ({"by_samples": {"1": -(10**400)}}, "at by_samples"),
        ({"step": 10**400}, "at step, expected a whole number of 64 bits"),
        ({"epoch": 1e999}, "at epoch, expected a finite number"),
        ({"ppl": 0}, "0 at ppl, expected a number above 0"),
        ({"words": -1}, "-1 at words, expected 0 or more"),
        ({"split": None}, "None at split, expected text"),
        ({"elbo": True}, "True at elbo, expected a number"),
    ],
)
def test_a_wrong_value_of_metrics_names_line_and_place(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "metrics.jsonl"
    # As Python reads it: Infinity is no JSON, and null.
    path.write_text(f"{json.dumps(LINE)}\n{json.dumps({**LINE, **change}).replace('Infinity', '1e999')}\n")
    with pytest.raises(DataError, match=rf"metrics\.jsonl, line 2: found .*{message}"):
        Run(tmp_path).metrics()


def test_metrics_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({**LINE, "ppl": None, "kl": float("nan")}) + "\n")
    (found,) = Run(tmp_path).metrics()
    assert found == {name: value for name, value in LINE.items() if name != "ppl"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": 10**400}, "at items, expected a whole number of 64 bits"),
        ({"more": 1}, "'more'"),
        ({"scores": {"ppl": 10**400}}, r"at scores\.ppl, expected a finite number"),
        ({"scores": {"ppl": "9"}}, r"'9' at scores\.ppl, expected a number"),
        ({"scores": {"frame_reliability": [BIN, {**BIN, "events": 0}]}}, r"0 at .*\[2\]\.events"),
    ],
)
def test_a_wrong_score_names_measurement_and_place(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "scores.json").write_text(json.dumps([MEASUREMENT, {**MEASUREMENT, **change}]))
    with pytest.raises(DataError, match=rf"scores\.json, measurement 2: found .*{message}"):
        read_scores(tmp_path)


def test_scores_of_the_same_task_and_data_are_replaced(tmp_path: Path) -> None:
    first = Measurement(**MEASUREMENT)
    other = first.model_copy(update={"data": "test", "scores": {"frame_reliability": [BIN]}})
    better = first.model_copy(update={"scores": {"ppl": 8.0}})
    write_scores(tmp_path, [first, other])
    write_scores(tmp_path, [better])
    assert read_scores(tmp_path) == [better, other]
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]
