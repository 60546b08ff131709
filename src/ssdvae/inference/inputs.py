"""Documents as batches of word ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import torch

from ssdvae.data.batches import EVENTS, Batch
from ssdvae.data.documents import Documents
from ssdvae.data.events import Document, folded
from ssdvae.models.base import Model

SPLIT = 200
"""Documents that are encoded at once."""


def to_batch(
    model: Model,
    documents: Sequence[Document],
    lowercase: bool | None = None,
    observe_frames: bool = False,
) -> Batch:
    """Return documents as a batch of word and frame ids.

    Words are folded to lower case if those of the model are, unless ``lowercase`` says otherwise.
    """
    fold = model.vocabulary.lowercase if lowercase is None else lowercase
    width = len(model.slots)
    longest = max(len(document.events) for document in documents)
    words, known = [], []
    for document in documents:
        padding = longest - len(document.events)
        events = (event.padded(width) for event in document.events)
        seen = chain.from_iterable(map(folded, events) if fold else events)
        words.append(model.vocabulary.word_ids(seen) + [0] * (width * padding))
        known.append([model.frames.id(event.frame) for event in document.events] + [-1] * padding)
    tokens = torch.tensor(words, dtype=torch.long).view(len(documents), longest, width)
    frames = torch.tensor(known, dtype=torch.long)
    mask = torch.arange(longest) < torch.tensor([[len(document.events)] for document in documents])
    observed = frames if observe_frames else torch.full_like(frames, -1)
    return Batch(tokens, frames, observed, mask).to(model.device)


def to_numbers(model: Model, documents: Iterable[Document]) -> Documents:
    """Return documents as a split of a corpus; those without events are left out."""
    parts = []
    for group in groups((document for document in documents if document.events), SPLIT):
        batch = to_batch(model, group)
        ids = pa.chunked_array([[document.id for document in group]], pa.string())
        numbers = (batch.tokens[batch.mask], batch.frames[batch.mask], batch.mask.sum(1))
        parts.append(Documents.of_events(ids, *(part.cpu().numpy().astype(np.int32) for part in numbers)))
    return Documents.concat(parts)


def groups(documents: Iterable[Document], batch: int) -> Iterator[list[Document]]:
    """Yield documents in groups that, padded to the longest, are no larger than a batch."""
    group: list[Document] = []
    longest = 0
    for document in documents:
        longest = max(longest, len(document.events))
        if group and (len(group) == batch or (len(group) + 1) * longest > batch * EVENTS):
            yield group
            group, longest = [], len(document.events)
        group.append(document)
    if group:
        yield group
