"""Our models after every prefix, in one pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import ssdvae
from benchmarks.log_data import Log, file_of
from benchmarks.log_ours import OurModel, next_heads
from ssdvae.data.batches import collate
from ssdvae.inference.prefixes import Rollout
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
    log_p = ours.log_p(log.valid, "valid")
    assert log_p.shape == (len(log.prefixes(log.valid)), len(log.classes))
    assert (np.exp(log_p).sum(1) < 1 + 1e-6).all()  # words of other columns may have the rest
    documents = ours.corpus.split("valid")
    whole = collate(documents, np.arange(1))
    heads = next_heads(ours.model, whole)
    for place in range(whole.mask.shape[1]):
        rollout = Rollout.after(ours.model, whole.first(place + 1))
        with torch.no_grad():
            log_p_head, _ = ours.model.next_word(rollout.state, rollout.latents, None, 0)
        torch.testing.assert_close(heads[:, place], log_p_head.double(), atol=1e-5, rtol=0)
    assert heads.exp().sum(-1).numpy() == pytest.approx(1)
    assert OurModel(log, name, 1, tmp_path).seconds == ours.seconds  # loaded, not trained again
