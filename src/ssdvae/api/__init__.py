"""Every command as a function: the one door to the library, which the command line uses too.

A function is looked up on first use, so that neither ``import ssdvae`` nor ``ssdvae --help`` waits for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssdvae.api.asking import (
        embed,
        encode,
        fill,
        next_events,
        score,
        similar,
        to_dataframe,
        unusual,
        write_answers,
    )
    from ssdvae.api.data import (
        annotate,
        extract,
        get_data,
        import_documents,
        prepare,
        public_sets,
        tickets,
        world,
    )
    from ssdvae.api.exchange import to_dataset
    from ssdvae.api.looking import (
        explain,
        explore,
        generate,
        infer,
        swap,
        unknown_words,
        write_report,
    )
    from ssdvae.api.measuring import benchmark, check, evaluate, scores
    from ssdvae.api.paper import reproduce
    from ssdvae.api.pictures import draw
    from ssdvae.api.training import demo, load, pack, resume, train
    from ssdvae.data.corpus import Corpus
    from ssdvae.data.events import Document, Event
    from ssdvae.errors import UserError
    from ssdvae.models.base import Model
    from ssdvae.runs import Run

WHERE = {
    "ssdvae.api.data": (
        "world",
        "tickets",
        "import_documents",
        "extract",
        "annotate",
        "prepare",
        "get_data",
        "public_sets",
    ),
    "ssdvae.api.exchange": ("to_dataset",),
    "ssdvae.api.training": ("demo", "train", "resume", "load", "pack"),
    "ssdvae.api.measuring": ("evaluate", "scores", "benchmark", "check"),
    "ssdvae.api.looking": (
        "explain",
        "swap",
        "explore",
        "infer",
        "generate",
        "unknown_words",
        "write_report",
    ),
    "ssdvae.api.asking": (
        "next_events",
        "score",
        "unusual",
        "fill",
        "embed",
        "encode",
        "similar",
        "write_answers",
        "to_dataframe",
    ),
    "ssdvae.api.pictures": ("draw",),
    "ssdvae.api.paper": ("reproduce",),
    "ssdvae.data.corpus": ("Corpus",),
    "ssdvae.data.events": ("Document", "Event"),
    "ssdvae.errors": ("UserError",),
    "ssdvae.models.base": ("Model",),
    "ssdvae.runs": ("Run",),
}
"""The module of each function, and of each type that their users need."""

__all__ = [
    "Corpus",
    "Document",
    "Event",
    "Model",
    "Run",
    "UserError",
    "annotate",
    "benchmark",
    "check",
    "demo",
    "draw",
    "embed",
    "encode",
    "evaluate",
    "explain",
    "explore",
    "extract",
    "fill",
    "generate",
    "get_data",
    "import_documents",
    "infer",
    "load",
    "next_events",
    "pack",
    "prepare",
    "public_sets",
    "reproduce",
    "resume",
    "score",
    "scores",
    "similar",
    "swap",
    "tickets",
    "to_dataframe",
    "to_dataset",
    "train",
    "unknown_words",
    "unusual",
    "world",
    "write_answers",
    "write_report",
]


def __getattr__(name: str) -> Any:
    for module, names in WHERE.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
