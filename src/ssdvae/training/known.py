"""Supervision of a run before its first step: the labels that its mask leaves, and a lexicon."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.config import TrainSettings
from ssdvae.data.batches import mask_frames
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.lemmas import lemma_numbers
from ssdvae.errors import UserError
from ssdvae.evaluation.meaning import accuracy_by_head, commonest_observed
from ssdvae.models import MODELS, model_class
from ssdvae.models.base import FrameModel, Model, as_frame_model
from ssdvae.models.exact import ExactModel
from ssdvae.training.lexicon import read_pairs, with_single_frames
from ssdvae.training.loop import with_classes


class Known:
    """The frames that a model is told, and what it takes from them."""

    def __init__(
        self,
        corpus: Corpus,
        documents: Documents,
        settings: TrainSettings,
        model: Model,
        say: Callable[[str], None],
    ) -> None:
        self.corpus, self.documents, self.settings, self.model = corpus, documents, settings, model
        self._say = say

    @cached_property
    def lexicon(self) -> Tensor | None:
        """The heads and frames that a lexicon puts together."""
        if (path := self.settings.values().get("lexicon")) is None:
            return None
        pairs, found = read_pairs(path, self.corpus)
        self._say(found)
        return pairs

    @cached_property
    def observed(self) -> NDArray[np.int32]:
        """The frames that the mask leaves, and those of heads to which a lexicon leaves no choice."""
        observed = mask_frames(self.documents, self.settings.observe, self.settings.seed)
        if self.lexicon is None:
            return observed
        heads = self.documents.tokens[:, 0]
        return with_single_frames(observed, heads, self.lexicon, len(self.corpus.vocabulary))

    @cached_property
    def first_observed(self) -> NDArray[np.int32]:
        """The frames that are observed and, while unnamed ones start, the classes of the other events."""
        return with_classes(self.observed, self.documents, self.model, self.settings)

    def initialize_model(self) -> None:
        """Give the model what it takes from the frames that it will observe."""
        # Each event once, however many windows it is in.
        events = self.corpus.split("train").first(self.settings.events)
        heads, known = (
            torch.from_numpy(values[events.in_order()].astype(np.int64))
            for values in (events.tokens[..., 0], self.first_observed)
        )
        lemmas = torch.from_numpy(lemma_numbers(self.corpus.vocabulary.names, self.corpus.lemmas))
        self.model.initialize_from_data(heads, known, self.lexicon, lemmas)

    def by_head(self, documents: Documents) -> float | None:
        """The share of known frames that the commonest observed frame of each head gets, for comparison."""
        if as_frame_model(self.model) is None:
            return None
        table = commonest_observed(self.documents, self.settings, len(self.corpus.vocabulary))
        return accuracy_by_head(table, documents)


def unnamed_frames(settings: TrainSettings, corpus: Corpus) -> int:
    """Return the number of frames to discover; refuse a corpus without frames for a model that needs them."""
    unnamed: int = settings.values().get("unnamed_frames", 0)
    kind = model_class(settings.model)
    if not len(corpus.frames) and issubclass(kind, FrameModel) and not issubclass(kind, ExactModel):
        free = [n for n, k in MODELS.items() if issubclass(k, ExactModel) or not issubclass(k, FrameModel)]
        raise UserError(
            f"no event of {corpus.folder} has a frame, and {settings.model} needs some\n"
            f"train a model that does not: --model {', '.join(free)}"
        )
    return unnamed
