"""Our models on a log, trained with their defaults: next activity, end and times after every prefix."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch

import ssdvae
from benchmarks.log_data import SPLITS, Case, Log, file_of
from benchmarks.log_measures import Predictions
from ssdvae.data.batches import collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.data.options import Split
from ssdvae.inference.prefixes import after_every_event, read_once
from ssdvae.io.files import atomic_write
from ssdvae.models.base import as_language_model
from ssdvae.models.cases import forecast_times
from ssdvae.models.times import DAY

BATCH = 256


class OurModel:
    """A run on a log, in ``folder``. A run that is there is loaded, and one that was stopped resumes."""

    def __init__(self, log: Log, name: str, seed: int, folder: Path) -> None:
        self.log = log
        corpus, run = folder / "corpora" / log.name, folder / "runs" / f"{log.name}-{name}-{seed}"
        if not corpus.exists():
            files = {split: file_of(log.folder, log.name, split) for split in SPLITS}
            ssdvae.prepare(files, corpus, cloze_items=0, jobs=1, progress=False)
        self.corpus = ssdvae.Corpus(corpus)
        clock = run.with_suffix(".json")
        if not clock.exists():
            start = time.process_time()
            ssdvae.train(corpus, run, exist_ok=True, model=name, seed=seed, progress=False)
            with atomic_write(clock) as path:
                path.write_text(json.dumps(time.process_time() - start))
        self.seconds: float = json.loads(clock.read_text())
        self.model = as_language_model(ssdvae.load(run)).eval()
        self.heads = self._heads()

    def _heads(self) -> list[int]:
        """Return the word of each activity; the corpus may spell it otherwise."""
        documents, ids = self._split(self.log.train, "train"), self.log.classes.ids
        names = np.concatenate([self.log.classes.encode(case.activities) for case in self.log.train])
        words = documents.tokens[documents.in_order(), 0]
        return [int(words[np.argmax(names == number)]) for number in ids.values()]

    def predict(self, cases: Sequence[Case], split: str) -> Predictions:
        """Return log p of each class and both median times after each prefix of a split, in its order."""
        documents = self._split(cases, split)
        columns = [*self.heads, self.model.vocabulary.unknown]
        order = np.argsort(
            documents.lengths, kind="stable"
        )  # documents of similar length need little padding
        starts = np.cumsum(documents.lengths) - documents.lengths
        log_p = np.empty((int(documents.lengths.sum()), len(self.log.classes)))
        days = np.empty((len(log_p), 2))
        for some in within_bounds(documents.lengths[order], BATCH):
            rows = order[some]
            batch = collate(documents, rows)
            decoded = read_once(self.model, batch)
            assert decoded is not None
            for part in after_every_event(self.model, batch, decoded):
                assert part.log_end is not None, f"{self.corpus.folder} has no ends of cases"
                found = part.log_heads[:, columns].numpy()
                place = starts[rows][part.rows] + part.places.numpy()
                log_p[place] = np.insert(found, len(self.heads), part.log_end.numpy(), axis=1)
            times = forecast_times(self.model, batch, decoded.ends)
            assert times is not None, f"{self.corpus.folder} has no times"
            medians = torch.stack([times.gap.quantile(0.5), times.rest.quantile(0.5)], dim=-1) / DAY
            row, event = batch.mask.nonzero(as_tuple=True)
            days[starts[rows][row] + event.numpy()] = medians[batch.mask].numpy()
        return Predictions(log_p, *days.T)

    def _split(self, cases: Sequence[Case], name: str) -> Documents:
        """Return a split of the corpus, which must have these cases."""
        documents = self.corpus.split(cast(Split, name))
        assert documents.lengths.tolist() == [len(case.days) for case in cases], "other cases than in the log"
        return documents
