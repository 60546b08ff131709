"""Small models and documents for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from ssdvae.config import MODEL_SETTINGS
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.corpus import Documents
from ssdvae.data.events import MISSING, Document, Event
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.models import MODELS
from ssdvae.models.base import Model
from ssdvae.models.ssdvae import SSDVAE

WORDS, FRAMES, SLOTS = 11, 3, 4
SIZES = {
    "embedding": 6,
    "hidden": 8,
    "layers": 2,
    "role_embedding": 3,
    "latents": 3,
    "codes": 4,
    "code_width": 5,
    "candidates": 2,
}


def toy_model(name: str = "ssdvae", frames: int = FRAMES, slots: int = SLOTS, **settings: Any) -> Model:
    """A model with weights large enough that everything it reads makes a difference."""
    words = [MISSING, UNKNOWN, *(f"word{i}" for i in range(WORDS - 2))]
    kind = MODEL_SETTINGS[name]
    sizes = {name: size for name, size in SIZES.items() if name in kind.names()}
    config = kind.exactly({**sizes, **settings})
    model = MODELS[name](
        config,
        Vocabulary(words, [1] * WORDS),
        Inventory([f"Frame{i}" for i in range(frames)], [1] * frames),
        tuple(f"slot{i}" for i in range(slots)),
    )
    # Some heads have been seen with some frames.
    seen = torch.arange(24)
    model.initialize_from_data(seen[None] % (WORDS - 2), (seen[None] * seen // 5) % frames, [])
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def toy_ssdvae(**settings: Any) -> SSDVAE:
    model = toy_model("ssdvae", **settings)
    assert isinstance(model, SSDVAE)
    return model


def toy_batch(
    lengths: list[int],
    events: int | None = None,
    frames: int = FRAMES,
    observe: float = 0.5,
    slots: int = SLOTS,
) -> Batch:
    size, events = len(lengths), events or max(lengths)
    mask = torch.arange(events) < torch.tensor(lengths)[:, None]
    gold = torch.randint(0, frames, (size, events)).masked_fill(~mask, -1)
    seen = torch.rand(size, events) < observe
    tokens = torch.randint(0, WORDS, (size, events, slots))
    return Batch(tokens, gold, gold.masked_fill(~seen, -1), mask)


def toy_documents(
    lengths: list[int], frames: int = FRAMES, labelled: float = 0.7, slots: int = SLOTS
) -> Documents:
    """A split of a corpus, in which some events have no frame."""
    batch = toy_batch(lengths, frames=frames, observe=labelled, slots=slots)
    ids = pa.chunked_array([[f"d{i}" for i in range(len(lengths))]])
    parts = (batch.tokens, batch.observed, torch.tensor(lengths))
    return Documents.of_padded(ids, *(part.numpy().astype(np.int32) for part in parts))


def named_documents(documents: Documents, model: Model) -> list[Document]:
    """The same with names for numbers."""
    result = []
    for row, part in enumerate(documents.parts()):
        events = []
        for words, frame in zip(documents.tokens[part], documents.frames[part], strict=True):
            known = None if frame < 0 else model.frames.name(int(frame))
            events.append(Event.of_words([model.vocabulary.name(int(word)) for word in words], known))
        result.append(Document(f"d{row}", tuple(events)))
    return result


def noise(size: int, seed: int = 0) -> Noise:
    return Noise(torch.Generator().manual_seed(seed), size)


def outputs(model: Model, batch: Batch) -> dict[str, Tensor]:
    """All that a model answers about a batch, by name."""
    loss = model(batch, noise(len(batch)))
    answers = {"loss": loss.per_document, **loss.terms}
    if model.decoder is not None:
        answers["words"] = model.word_log_probs(batch, noise(len(batch)))
        answers["bound"] = model.bounds(batch, 3, noise(len(batch)))[-1]
    if (beliefs := model.infer(batch)) is not None:
        answers["beliefs"] = beliefs.log_q.masked_fill(~beliefs.mask[..., None], 0)
        answers["values"] = beliefs.value
    return answers
