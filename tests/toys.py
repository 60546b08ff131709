"""Small models and documents for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.corpus import Documents
from ssdvae.data.events import MISSING, Document, Event
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.inference.posterior import frame_posteriors
from ssdvae.models.base import LanguageModel, LatentModel, Model
from ssdvae.models.exact import ExactModel
from ssdvae.models.options import MODEL_OPTIONS
from ssdvae.models.registry import MODELS
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
    kind = MODEL_OPTIONS[name]
    sizes = {name: size for name, size in SIZES.items() if name in kind.names()}
    config = kind(**{**sizes, **settings})
    model = MODELS[name](
        config,
        Vocabulary(words, [1] * WORDS),
        Inventory([f"Frame{i}" for i in range(frames)], [1] * frames),
        tuple(f"slot{i}" for i in range(slots)),
    )
    # Some heads have been seen with some frames.
    seen = torch.arange(24)
    if frames:
        model.initialize_from_data(seen % (WORDS - 2), (seen * seen // 5) % frames)
    return _with_large_weights(model).eval()


def _with_large_weights(model: Model) -> Model:
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.double()


def toy_language_model(name: str = "ssdvae", **settings: Any) -> LanguageModel:
    model = toy_model(name, **settings)
    assert isinstance(model, LanguageModel)
    return model


def toy_ssdvae(**settings: Any) -> SSDVAE:
    model = toy_model("ssdvae", **settings)
    assert isinstance(model, SSDVAE)
    return model


def toy_exact(**settings: Any) -> ExactModel:
    model = toy_model("ssdvae-exact", **settings)
    assert isinstance(model, ExactModel)
    return model


def prepared(model: Model) -> Model:
    """The model in training, with all that only training needs."""
    model.prepare_training()
    return _with_large_weights(model).train()


def toy_batch(
    lengths: list[int],
    events: int | None = None,
    frames: int = FRAMES,
    observe: float = 0.5,
    slots: int = SLOTS,
) -> Batch:
    size, events = len(lengths), events or max(lengths)
    mask = torch.arange(events) < torch.tensor(lengths)[:, None]
    gold = torch.randint(0, max(1, frames), (size, events)).masked_fill(~mask | (frames == 0), -1)
    seen = torch.rand(size, events) < observe
    tokens = torch.randint(0, WORDS, (size, events, slots))
    return Batch(tokens, gold, gold.masked_fill(~seen, -1), mask)


def toy_documents(
    lengths: list[int], frames: int = FRAMES, labelled: float = 0.7, slots: int = SLOTS
) -> Documents:
    """A split of a corpus, in which some events have no frame."""
    batch = toy_batch(lengths, frames=frames, observe=labelled, slots=slots)
    ids = pa.chunked_array([[f"d{i}" for i in range(len(lengths))]])
    return padded_documents(ids, batch.tokens.numpy(), batch.observed.numpy(), lengths)


def padded_documents(ids: pa.ChunkedArray, tokens: Any, frames: Any, lengths: list[int]) -> Documents:
    """Return documents with padding between them: tokens N M S, frames N M."""
    count, most = frames.shape
    tokens, frames = tokens.reshape(count * most, -1).astype(np.int32), frames.reshape(-1).astype(np.int32)
    return Documents(ids, tokens, frames, most * np.arange(count), np.array(lengths, np.int32))


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
    if isinstance(model, LanguageModel):
        answers["words"] = model.word_log_probs(batch, noise(len(batch)))
        answers["bound"] = model.bounds(batch, 3, noise(len(batch)))[-1]
    if isinstance(model, LatentModel) and model.latent_shape[1]:
        posterior = model.posterior(batch)
        answers["posterior"] = posterior.log_q.masked_fill(~posterior.mask[..., None], 0)
        answers["values"] = posterior.value
    return answers


def accumulate(sums: Any, model: Model, documents: Documents, batch: int = 200) -> Any:
    """Return sums to which all documents of a split were added."""
    for posterior, some in frame_posteriors(model, documents, batch):
        sums.add(posterior, some)
    return sums
