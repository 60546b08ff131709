"""Our models on a log, trained with their defaults: the next activity and the end after every prefix."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

import ssdvae
from benchmarks.log_data import SPLITS, Case, Log, file_of
from benchmarks.log_measures import Floats
from ssdvae.data.batches import Batch, collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.data.options import Split
from ssdvae.io.files import atomic_write
from ssdvae.models.base import LanguageModel, as_language_model
from ssdvae.models.cases import log_ends
from ssdvae.models.exact import ExactModel
from ssdvae.models.latents import LatentQuery

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

    def log_p(self, cases: Sequence[Case], split: str) -> Floats:
        """Return log p of each class after each prefix of a split, in the order of the log."""
        documents = self._split(cases, split)
        columns = [*self.heads, self.model.vocabulary.unknown]
        found = []
        for rows in within_bounds(documents.lengths, BATCH):
            batch = collate(documents, rows)
            heads, ends = next_heads(self.model, batch), log_ends(self.model, batch)
            assert ends is not None, f"{self.corpus.folder} has no ends of cases"
            log_p = (heads + ends[..., :1])[batch.mask][:, columns].numpy()
            found.append(np.insert(log_p, len(self.heads), ends[batch.mask][:, 1].numpy(), axis=1))
        return np.concatenate(found)

    def _split(self, cases: Sequence[Case], name: str) -> Documents:
        """Return a split of the corpus, which must have these cases."""
        documents = self.corpus.split(cast(Split, name))
        assert documents.lengths.tolist() == [len(case.days) for case in cases], "other cases than in the log"
        return documents


@torch.no_grad()
def next_heads(model: LanguageModel, batch: Batch) -> Float[Tensor, "B M V"]:
    """Return log p(head of the next event, if there is one) after each event, all in one pass.

    An event that is appended to each document gives the state before it; its words are never read.
    """
    more = batch.tokens.new_zeros(len(batch), 1, batch.tokens.shape[2])
    longer = Batch.of_words(torch.cat([batch.tokens, more], dim=1))
    latents = model.latents(LatentQuery.roll_out(longer.first(0), longer.mask.shape[1], None))
    decoder = model.decoder
    start = decoder.init_state(latents)
    states = decoder(model.word_reader(longer.tokens), start, latents).states[:, 1:, 0]
    if isinstance(model, ExactModel):
        heads = model.decoder.next_head(states.flatten(0, 1))[0]
        return heads.view(*states.shape[:2], -1).double()
    log_p: Tensor = model.decoder.output(states).double().log_softmax(-1)
    return log_p
