"""Our models after every prefix, in one pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ssdvae
from benchmarks.log_data import Log, file_of
from benchmarks.log_ours import OurModel
from ssdvae.data.batches import collate
from ssdvae.inference.prefixes import Rollout, head_log_probs
from ssdvae.models.cases import forecast_times, log_ends
from ssdvae.models.times import DAY
from ssdvae.storyworld.tickets import generate_tickets, write_log


@pytest.mark.parametrize("name", ["ssdvae-exact", "rnnlm"])
def test_one_pass_equals_prefix_by_prefix_and_sums_to_one(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, split in enumerate(("train", "valid", "test")):
        write_log(file_of(tmp_path, "tickets", split), generate_tickets(12, seed))
    log, train = Log("tickets", tmp_path), ssdvae.train
    monkeypatch.setattr(
        ssdvae, "train", lambda *given, **options: train(*given, **options, epochs=1, preset="tiny")
    )
    ours = OurModel(log, name, 1, tmp_path)
    found = ours.predict(log.valid, "valid")
    assert found.log_p is not None
    assert found.log_p.shape == (len(log.prefixes(log.valid)), len(log.classes))
    assert (np.exp(found.log_p).sum(1) < 1 + 1e-6).all()  # words of other columns may have the rest
    documents, row = ours.corpus.split("valid"), 0
    for number in range(3):
        whole = collate(documents, np.array([number]))
        for place in range(whole.mask.shape[1]):
            part = whole.first(place + 1)
            ends, times = log_ends(ours.model, part), forecast_times(ours.model, part)
            assert ends is not None
            assert times is not None
            rollout = Rollout.after(ours.model, part)
            heads = head_log_probs(ours.model, rollout)[0] + ends[0, -1, 0]
            assert found.log_p[row, : len(ours.heads)] == pytest.approx(heads[ours.heads].numpy(), abs=1e-5)
            assert found.log_p[row, log.classes.end] == pytest.approx(float(ends[0, -1, 1]), abs=1e-5)
            for mixture, days in ((times.gap, found.next_days), (times.rest, found.remaining_days)):
                assert days is not None
                assert days[row] == pytest.approx(float(mixture.quantile(0.5)[0, -1]) / DAY, rel=1e-3)
            row += 1
    assert OurModel(log, name, 1, tmp_path).seconds == ours.seconds  # loaded, not trained again
