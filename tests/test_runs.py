"""The best validation of a run: one definition for training, the page and the paper's tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ssdvae.runs import Run, best_validation, validation_loss

figure = st.none() | st.floats(1, 1e6)
records = st.lists(st.fixed_dictionaries({"ppl": st.floats(1, 1e6), "frame_accuracy": st.floats(0, 1)}))


@given(figure, figure, figure)
def test_a_validation_is_judged_by_the_bound_then_the_words_then_the_frames(
    bound: float | None, words: float | None, frames: float | None
) -> None:
    scores = {"ppl_bound": bound, "ppl": words, "frame_ppl": frames}
    expected = [value for value in (bound, words, frames) if value is not None]
    assert validation_loss(scores) == (expected[0] if expected else None)
    assert validation_loss({k: v for k, v in scores.items() if v is not None}) == validation_loss(scores)


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
