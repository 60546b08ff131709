"""Variants of models of every kind, with few slots and many."""

from __future__ import annotations

from typing import Any

from ssdvae.data.events import Document
from ssdvae.models.base import Model
from tests.toys import named_documents, toy_documents

VARIANTS: list[dict[str, Any]] = [
    {"name": "rnnlm"},
    {"name": "rnnlm", "slots": 2, "context_vector": 5, "document_vector": 3},
    {"name": "ssdvae-exact"},
    {"name": "ssdvae-exact", "slots": 1},
    {"name": "ssdvae-exact", "slots": 2, "context_vector": 3, "tied": False},
    {"name": "ssdvae"},
    {"name": "ssdvae", "slots": 2, "attention": "concatenation"},
    {"name": "ssdvae", "slots": 7},
    {"name": "ssdvae", "variant": "code"},
    {"name": "haqae", "slots": 2},
]


def some_documents(model: Model, lengths: list[int]) -> list[Document]:
    """Documents of as many slots as the model has."""
    return named_documents(toy_documents(lengths, slots=len(model.slots)), model)
