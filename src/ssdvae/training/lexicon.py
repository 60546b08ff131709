"""What a lexicon says of the heads of a corpus: which frames each can have, and where there is no choice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Event
from ssdvae.errors import UserError


def read_pairs(path: Path, corpus: Corpus) -> tuple[Int[Tensor, "P 2"], str]:
    """The heads and frames of the corpus that a lexicon puts together, by number; and how many, in words.

    A head is looked up by its lemma, where that is known, by itself, and as a regular form of English.
    """
    from ssdvae.extraction.english import regular_stems
    from ssdvae.extraction.lexicon import read_lexicon  # slow to import

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
    """The observed frames and, for the heads that have one frame only, that one.

    A head has one frame if the lexicon lists one, and it is observed with no other.
    """
    listed, frames = pairs.numpy().T
    single, frame = np.bincount(listed, minlength=words) == 1, np.full(words, -1, np.int32)
    frame[listed] = frames
    single[heads[(observed >= 0) & (observed != frame[heads])]] = False
    return np.where((observed < 0) & single[heads], frame[heads], observed)
