"""What a run knows of frames before its first step: labels that its mask leaves, a lexicon, relations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.config import TrainSettings
from ssdvae.config.training import models_with
from ssdvae.data.batches import mask_frames
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.lemmas import lemma_numbers
from ssdvae.data.relations import Relation, read_relations
from ssdvae.errors import UserError
from ssdvae.evaluation.meaning import accuracy_by_head, commonest_observed
from ssdvae.models import MODELS, model_class
from ssdvae.models.base import EventModel
from ssdvae.training.lexicon import read_pairs, with_single_frames
from ssdvae.training.loop import with_classes


class Known:
    """The frames that a model is told, and what it takes from them."""

    def __init__(
        self,
        corpus: Corpus,
        documents: Documents,
        settings: TrainSettings,
        model: EventModel,
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
        # Each event once, however many windows it is in; and by itself, unless chains of them are looked at.
        events, chains = self.corpus.split("train").first(self.settings.events), self.model.needs_relations
        heads, known = (
            torch.from_numpy(found.astype(np.int64))
            for values, padding in ((events.tokens[..., 0], 0), (self.first_observed, -1))
            for found in [events.padded(values, padding) if chains else values[events.in_order()][:, None]]
        )
        relations = _relations(self.settings) if chains else []
        lemmas = torch.from_numpy(lemma_numbers(self.corpus.vocabulary.names, self.corpus.lemmas))
        self.model.initialize_from_data(heads, known, relations, self.lexicon, lemmas)

    def by_head(self, documents: Documents) -> float | None:
        """The share of known frames that the commonest observed frame of each head gets, for comparison."""
        if not self.model.infers_frames:
            return None
        table = commonest_observed(self.documents, self.settings, len(self.corpus.vocabulary))
        return accuracy_by_head(table, documents)


def _relations(settings: TrainSettings) -> Sequence[Relation]:
    """Those between frames, from the file that is given or from FrameNet."""
    given = settings.values().get("relations")
    if given is not None:
        return read_relations(given)
    from ssdvae.extraction.framenet import open_framenet, relations  # an extra

    try:
        return relations(open_framenet("framenet"))
    except UserError as error:
        raise UserError(
            "--prior framenet needs the relations between frames, and FrameNet is not installed\n"
            "give them by --relations FILE, or: pip install 'ssdvae[framenet]' and "
            "python -m nltk.downloader framenet_v17"
        ) from error


def unnamed_frames(settings: TrainSettings, corpus: Corpus) -> int:
    """How many frames the model has to find by itself; refused if it has no others, and none of these."""
    unnamed: int = settings.values().get("unnamed_frames", 0)
    if len(corpus.frames) + unnamed == 0 and model_class(settings.model).infers_frames:
        free = [name for name, kind in MODELS.items() if not kind.infers_frames]
        finding = models_with("unnamed_frames")
        raise UserError(
            f"no event of {corpus.folder} has a frame, and {settings.model} has frames\n"
            f"let it find some by itself: --unnamed-frames 20, for example (--model {' or '.join(finding)}); "
            f"or train a model without frames: --model {', '.join(free)}"
        )
    return unnamed
