"""Learn what usually happens next from sequences of events, guided by partly known semantic frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ssdvae.api import (
        annotate,
        evaluate,
        explain,
        extract,
        generate,
        infer,
        load,
        prepare,
        reproduce_paper,
        resume,
        train,
        write_report,
    )
    from ssdvae.data.corpus import Corpus
    from ssdvae.data.events import Document, Event

__all__ = [
    "Corpus",
    "Document",
    "Event",
    "annotate",
    "evaluate",
    "explain",
    "extract",
    "generate",
    "infer",
    "load",
    "prepare",
    "reproduce_paper",
    "resume",
    "train",
    "write_report",
]


def __getattr__(name: str) -> Any:
    # Looked up on first use, so that `ssdvae --help` need not wait for torch.
    if name in __all__:
        from ssdvae import api

        return getattr(api, name)
    raise AttributeError(f"module 'ssdvae' has no attribute {name!r}")
