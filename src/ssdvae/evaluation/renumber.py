"""Documents that a model is measured and shown on: also of corpora that were prepared for another model."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from ssdvae.data.corpus import Corpus
from ssdvae.data.documents import Documents
from ssdvae.data.events import folded
from ssdvae.data.options import Split
from ssdvae.data.readers import read_documents
from ssdvae.inference.inputs import to_numbers
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.hub import shown_file

log = logging.getLogger(__name__)


class RenumberedCorpus(Corpus):
    """A corpus with the words and frames of a model: others are out of vocabulary, and latent."""

    def __init__(self, corpus: Corpus, model: Model) -> None:
        super().__init__(corpus.folder)
        self.original = corpus
        # In the place of the cached properties.
        self.__dict__ |= {"vocabulary": model.vocabulary, "frames": model.frames}
        words, names = corpus.vocabulary.names, corpus.frames.names
        words = folded(words) if model.vocabulary.lowercase else words
        self.word_ids = np.array(model.vocabulary.word_ids(words), dtype=np.int32)
        self.frame_ids = np.array([*map(model.frames.id, names), -1], dtype=np.int32)  # −1 stays −1

    def split(self, name: Split) -> Documents:
        found = self.original.split(name)
        places = found.in_order()
        tokens, frames = self.word_ids[found.tokens[places]], self.frame_ids[found.frames[places]]
        oov = (tokens == self.vocabulary.unknown).mean() / (tokens != self.vocabulary.missing).mean()
        log.warning(
            f"{self.folder} was prepared for another model: {oov:.1%} of its words ({name}) are out of the "
            "vocabulary of this one and count as one word\n"
            "compare the perplexity with no model of another vocabulary"
        )
        ends = None if found.ends is None else found.ends[places]
        times = None if found.times is None else found.times[places]
        return Documents.of_events(found.ids, tokens, frames, found.lengths, ends, times)


def shown_documents(model: Model, corpus: Corpus | None, folder: Path | None, split: Split) -> Documents:
    """Return the documents that a model is shown on: a split of a corpus, or what is packed with it."""
    if corpus is not None:
        corpus.check_names(model.vocabulary, model.frames, model.slots)
        return corpus.split(split).first(model.context_window.measured)
    file = None if folder is None else shown_file(folder)
    if file is None:
        raise UserError(f"{folder or 'a model'} has no corpus of its own: name one by --corpus")
    return to_numbers(model, read_documents(file, slots=model.slots))


def in_numbers_of(model: Model, corpus: Corpus) -> Corpus:
    """Return a corpus in the numbers of a model."""
    try:
        corpus.check_names(model.vocabulary, model.frames, model.slots)
    except UserError:
        if corpus.slots != model.slots:
            raise
        return RenumberedCorpus(corpus, model)
    return corpus
