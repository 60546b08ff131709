"""Learn what usually happens next from sequences of events, guided by partly known semantic frames.

Every command of ``ssdvae`` is a function here, with the same options and the same defaults.

>>> import ssdvae
>>> ssdvae.world("events.jsonl", documents=2_000)
>>> corpus = ssdvae.prepare("events.jsonl", "corpus")
>>> run = ssdvae.train(corpus, "runs/first")
>>> ssdvae.evaluate("runs/first")["ppl"]
>>> ssdvae.generate("runs/first", ["arrested police suspect in"])

Functions that take a while show a progress bar on a terminal and in a notebook; ``progress=False`` hides it.
Messages go to the logger "ssdvae".
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

MODULES = {
    # Functions.
    "anomalies": "commands.score",
    "annotate": "commands.annotate",
    "check": "commands.check",
    "demo": "commands.demo",
    "draw": "commands.explain",
    "embed": "commands.embed",
    "encode": "commands.embed",
    "evaluate": "commands.evaluate",
    "explain": "commands.explain",
    "explore": "commands.explore",
    "extract": "commands.extract",
    "fill": "commands.fill",
    "find_events": "commands.extract",
    "generate": "commands.generate",
    "get_data": "commands.data",
    "import_documents": "commands.import_documents",
    "infer": "commands.infer",
    "load": "commands.coerce",
    "next_events": "commands.next_events",
    "pack": "commands.pack",
    "prepare": "commands.prepare",
    "public_sets": "commands.data",
    "reproduce": "commands.reproduce",
    "resume": "commands.train",
    "score": "commands.score",
    "scores": "commands.scores",
    "similar": "commands.similar",
    "swap": "commands.explain",
    "tickets": "commands.tickets",
    "to_dataframe": "inference.output",
    "to_dataset": "commands.to_dataset",
    "train": "commands.train",
    "unknown_words": "commands.generate",
    "world": "commands.world",
    "write_answers": "commands.questions",
    "write_report": "commands.report",
    # Types.
    "Corpus": "data.corpus",
    "Document": "data.events",
    "Event": "data.events",
    "Model": "models.base",
    "Run": "io.run",
    "UserError": "io.errors",
}
"""The module of each public name. It is imported on first use: torch alone takes seconds."""

__all__ = list(MODULES)


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'ssdvae' has no attribute {name!r}")
    return getattr(import_module(f"ssdvae.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:  # the same table for tools that read the code and do not run it
    from ssdvae.commands.annotate import annotate as annotate
    from ssdvae.commands.check import check as check
    from ssdvae.commands.coerce import load as load
    from ssdvae.commands.data import get_data as get_data
    from ssdvae.commands.data import public_sets as public_sets
    from ssdvae.commands.demo import demo as demo
    from ssdvae.commands.embed import embed as embed
    from ssdvae.commands.embed import encode as encode
    from ssdvae.commands.evaluate import evaluate as evaluate
    from ssdvae.commands.explain import draw as draw
    from ssdvae.commands.explain import explain as explain
    from ssdvae.commands.explain import swap as swap
    from ssdvae.commands.explore import explore as explore
    from ssdvae.commands.extract import extract as extract
    from ssdvae.commands.extract import find_events as find_events
    from ssdvae.commands.fill import fill as fill
    from ssdvae.commands.generate import generate as generate
    from ssdvae.commands.generate import unknown_words as unknown_words
    from ssdvae.commands.import_documents import import_documents as import_documents
    from ssdvae.commands.infer import infer as infer
    from ssdvae.commands.next_events import next_events as next_events
    from ssdvae.commands.pack import pack as pack
    from ssdvae.commands.prepare import prepare as prepare
    from ssdvae.commands.questions import write_answers as write_answers
    from ssdvae.commands.report import write_report as write_report
    from ssdvae.commands.reproduce import reproduce as reproduce
    from ssdvae.commands.score import anomalies as anomalies
    from ssdvae.commands.score import score as score
    from ssdvae.commands.scores import scores as scores
    from ssdvae.commands.similar import similar as similar
    from ssdvae.commands.tickets import tickets as tickets
    from ssdvae.commands.to_dataset import to_dataset as to_dataset
    from ssdvae.commands.train import resume as resume
    from ssdvae.commands.train import train as train
    from ssdvae.commands.world import world as world
    from ssdvae.data.corpus import Corpus as Corpus
    from ssdvae.data.events import Document as Document
    from ssdvae.data.events import Event as Event
    from ssdvae.inference.output import to_dataframe as to_dataframe
    from ssdvae.io.errors import UserError as UserError
    from ssdvae.io.run import Run as Run
    from ssdvae.models.base import Model as Model
