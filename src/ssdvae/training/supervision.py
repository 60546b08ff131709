"""Supervision of a run before its first step: the labels that its mask leaves, and a lexicon."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.data.batches import mask_frames
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.events import Event
from ssdvae.data.vocabulary import lemma_ids
from ssdvae.evaluation.frames import majority_accuracy, majority_frames
from ssdvae.io.errors import UserError
from ssdvae.models.base import FrameModel, Model, as_frame_model
from ssdvae.models.exact import ExactModel
from ssdvae.models.registry import MODELS, model_class
from ssdvae.training.loop import with_classes
from ssdvae.training.options import TrainOptions


class Supervision:
    """The observed frames of a run, and the initialization of its model from them."""

    def __init__(
        self,
        corpus: Corpus,
        documents: Documents,
        options: TrainOptions,
        model: Model,
        say: Callable[[str], None],
    ) -> None:
        self.corpus, self.documents, self.options, self.model = corpus, documents, options, model
        self._say = say

    @cached_property
    def lexicon(self) -> Tensor | None:
        """Pairs of a head and a frame that it can have, from the lexicon."""
        if (path := self.options.values().get("lexicon")) is None:
            return None
        pairs, found = lexicon_pairs(path, self.corpus)
        self._say(found)
        return pairs

    @cached_property
    def observed(self) -> NDArray[np.int32]:
        """The frames that the mask leaves, and those of heads with a single frame in the lexicon."""
        observed = mask_frames(self.documents, self.options.observe, self.options.seed)
        if self.lexicon is None:
            return observed
        heads = self.documents.tokens[:, 0]
        return with_single_frames(observed, heads, self.lexicon, len(self.corpus.vocabulary))

    @cached_property
    def first_observed(self) -> NDArray[np.int32]:
        """The observed frames and, while unnamed ones start, the classes of the other events."""
        return with_classes(self.observed, self.documents, self.model, self.options)

    def initialize_model(self) -> None:
        """Initialize the model from the frames that it will observe."""
        # Each event once, however many windows it is in.
        events = self.corpus.split("train").first(self.options.events)
        heads, known = (
            torch.from_numpy(values[events.in_order()].astype(np.int64))
            for values in (events.tokens[..., 0], self.first_observed)
        )
        lemmas = torch.from_numpy(lemma_ids(self.corpus.vocabulary.names, self.corpus.lemmas))
        self.model.initialize_from_data(heads, known, self.lexicon, lemmas)

    def majority_accuracy(self, documents: Documents) -> float | None:
        """Return the accuracy of the majority frame of each head; None for a model without frames."""
        if as_frame_model(self.model) is None:
            return None
        table = majority_frames(self.documents, self.options, len(self.corpus.vocabulary))
        return majority_accuracy(table, documents)


def unnamed_frames(options: TrainOptions, corpus: Corpus) -> int:
    """Return the number of frames to discover; refuse a corpus without frames for a model that needs them."""
    unnamed: int = options.values().get("unnamed_frames", 0)
    kind = model_class(options.model)
    if not len(corpus.frames) and issubclass(kind, FrameModel) and not issubclass(kind, ExactModel):
        free = [n for n, k in MODELS.items() if issubclass(k, ExactModel) or not issubclass(k, FrameModel)]
        raise UserError(
            f"no event of {corpus.folder} has a frame, and {options.model} needs some\n"
            f"train a model that does not: --model {', '.join(free)}"
        )
    return unnamed


def lexicon_pairs(path: Path, corpus: Corpus) -> tuple[Int[Tensor, "P 2"], str]:
    """Return the pairs of head and frame ids that a lexicon lists, and a sentence with their number.

    A head is looked up by its lemma, where that is known, by itself, and as a regular form of English.
    """
    from ssdvae.extraction.classifier import read_lexicon  # slow to import
    from ssdvae.extraction.english import regular_stems

    lexicon, documents = read_lexicon(path), corpus.split("train")
    heads = np.bincount(documents.tokens[documents.in_order(), 0], minlength=len(corpus.vocabulary))
    pairs, found = [], np.zeros(len(heads), dtype=bool)
    for word in np.flatnonzero(heads).tolist():
        form = corpus.vocabulary.name(word)
        lemma = corpus.lemmas.get(form)
        tried = (lemma,) if lemma else (form, *regular_stems(form))
        frames = next(filter(None, (lexicon.candidates(Event(form, lemma=name)) for name in tried)), {})
        known = [number for frame in frames if (number := corpus.frames.id(frame)) >= 0]
        found[word] = bool(known)
        pairs += [(word, frame) for frame in known]
    if not pairs:
        raise UserError(f"{path} has no head and frame that are both known to {corpus.folder}")
    return torch.tensor(pairs), (
        f"{path} has frames of {found.sum():,} of the {np.count_nonzero(heads):,} heads, which are those of "
        f"{heads[found].sum() / heads.sum():.1%} of the events"
    )


def with_single_frames(
    observed: NDArray[np.int32], heads: NDArray[np.integer], pairs: Int[Tensor, "P 2"], words: int
) -> NDArray[np.int32]:
    """Return the observed frames and, for heads with a single frame, that frame.

    A head has a single frame if the lexicon lists one, and it is observed with no other.
    """
    listed, frames = pairs.numpy().T
    single, frame = np.bincount(listed, minlength=words) == 1, np.full(words, -1, np.int32)
    frame[listed] = frames
    single[heads[(observed >= 0) & (observed != frame[heads])]] = False
    return np.where((observed < 0) & single[heads], frame[heads], observed)
