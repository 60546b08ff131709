"""One vector for each event: what its words say together, what each says, and where it stands.

With the unit vectors u_s = (E[w_s] − mean of E) / ‖…‖ of the words that are there, and the decoder's state h
after the event,

    v = [unit(⊙_s u_s);  λ unit(u_head + Σ_s u_s);  μ unit(h)]          λ = 0.3, μ = 0.2

The product is what tells apart events that share most of their words: all slots have to agree at once (the
multiplicative composition of Mitchell and Lapata, 2008). The sum, in which the head counts twice and unknown
words do not, is what finds events of the same kind: there λ is larger. The state has read the events before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from ssdvae.answers.inputs import groups, to_batch
from ssdvae.data.batches import Batch
from ssdvae.data.events import Document, Event, Slots, to_document, to_event
from ssdvae.errors import Malformed, UserError
from ssdvae.models.base import LanguageModel, Model

SUM, STATE = 0.3, 0.2
"""λ and μ: how much the parts beside the product weigh."""

Array = NDArray[np.float32]


def composed(
    words: Float[Tensor, "V e"],
    tokens: Int[Tensor, "B M slots"],
    there: Bool[Tensor, "B M slots"],
    known: Bool[Tensor, "B M slots"],
) -> tuple[Float[Tensor, "B M e"], Float[Tensor, "B M e"]]:
    """unit(⊙_s u_s) of the words that are ``there``, unit(u_head + Σ_s u_s) of those that are ``known``."""
    # Of length √e, so that a product of many is no smaller than one of few.
    units = normalize(words[tokens] - words.mean(0), dim=-1) * words.shape[1] ** 0.5
    product = units.masked_fill(~there[..., None], 1).prod(2)
    summed = units.masked_fill(~known[..., None], 0)
    return normalize(product, dim=-1), normalize(summed.sum(2) + summed[:, :, 0], dim=-1)


def event_vectors(model: Model, batch: Batch, weight: float = SUM) -> Float[Tensor, "B M d"]:
    """The vector of each event in its document, with λ = ``weight``; 0 at padding."""
    there = batch.tokens != model.vocabulary.missing
    known = there & (batch.tokens != model.vocabulary.unknown)
    product, total = composed(model.word_reader.words.weight, batch.tokens, there, known)
    parts = [product, weight * total]
    if isinstance(model, LanguageModel):
        parts.append(STATE * normalize(model.event_states(batch), dim=-1).to(product))
    return torch.cat(parts, dim=-1).masked_fill(~batch.mask[..., None], 0)


def embed_documents(
    model: Model,
    documents: Iterable[Document],
    batch: int = 200,
    normalized: bool = True,
    weight: float = SUM,
) -> Iterator[tuple[Array, Array]]:
    """The vector of each document, the mean over its events, and those of its events (M d).

    ``normalized`` vectors have the length 1.
    """
    for group in groups(documents, batch):
        full = [document for document in group if document.events]
        rows = iter(_embedded(model, full, normalized, weight)) if full else iter(())
        width: int | None = None
        for document in group:
            if document.events:
                yield next(rows)
            else:
                width = width or event_width(model)
                yield np.zeros(width, np.float32), np.zeros((0, width), np.float32)


def event_width(model: Model) -> int:
    """How long the vectors are."""
    width: int = event_vectors(model, to_batch(model, [Document("", (Event("a"),))])).shape[-1]
    return width


@torch.no_grad()
def _embedded(
    model: Model, documents: Sequence[Document], normalized: bool, weight: float
) -> list[tuple[Array, Array]]:
    batch = to_batch(model, documents)
    events = event_vectors(model, batch, weight).float()
    whole = events.sum(1) / batch.mask.sum(1, keepdim=True)
    if normalized:
        events, whole = (normalize(x, dim=-1) for x in (events, whole))
    return [
        (vector.cpu().numpy(), own[: len(document.events)].cpu().numpy())
        for vector, own, document in zip(whole, events, documents, strict=True)
    ]


def encode(model: Model, given: Any, batch: int = 200, normalized: bool = True, weight: float = SUM) -> Array:
    """Vectors of events, each by itself, or of documents, in the order in which they are given: N d.

    One event or document alone has one vector: d.
    """
    single = is_event(given) or isinstance(given, Document) or _has_events(given)
    documents = [
        _document(one, number, model.slots)
        for number, one in enumerate([given] if single else given, start=1)
    ]
    if not documents:
        return np.zeros((0, event_width(model)), np.float32)
    vectors = np.stack([whole for whole, _ in embed_documents(model, documents, batch, normalized, weight)])
    return vectors[0] if single else vectors


def is_event(value: object) -> bool:
    """Whether somebody means an event and not a document."""
    return isinstance(value, str | Event) or (isinstance(value, Mapping) and not _has_events(value))


def _has_events(value: object) -> bool:
    return isinstance(value, Mapping) and "events" in value


def _document(value: object, number: int, slots: Slots) -> Document:
    try:
        if is_event(value):
            return Document(str(number), (to_event(value, slots),))
        return to_document(value, str(number), slots)
    except Malformed as error:
        raise UserError(f"input {number}: {error}") from error
