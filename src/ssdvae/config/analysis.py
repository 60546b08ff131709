"""Settings of what is asked of a trained model, and shown of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ssdvae.config.data import ExtractSettings, Split
from ssdvae.config.settings import Settings, setting
from ssdvae.errors import UserError

LOCAL = ("127.0.0.1", "localhost", "::1")
"""Names of this machine that no other can use."""


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(Settings):
    """What is shown of a trained model: words and frames, its attention, and which frames follow which."""

    topic: ClassVar[str] = "what is shown"

    split: Split = setting("valid", "which split of the corpus", topic="data")
    words: str | None = setting(
        None, "words whose frames are shown, comma-separated; by default the most frequent heads"
    )
    frames: str | None = setting(
        None, "frames whose words are shown, comma-separated; by default the most frequent frames"
    )
    slot: str | None = setting(None, "slot in which words are looked at; by default the head of the event")
    rows: int = setting(10, "words, frames and transitions to show, where they are not named", at_least=1)
    top: int = setting(5, "frames per word, and words per frame", at_least=1)
    min_count: float = setting(
        5.0, "expected count below which a transition, or what is compared, is not shown", at_least=0
    )
    before: str | None = setting(
        None, "show only what usually precedes this frame, at any distance", topic="questions"
    )
    compare: str | None = setting(
        None,
        "show only which frames, transitions and words differ between groups of documents: a column of the "
        "files that the corpus was prepared from, or a file (.csv, .tsv, .jsonl, .parquet) with the columns "
        "id and group",
        topic="questions",
    )
    permutations: int = setting(
        1000, "shuffles of the groups behind the test of --compare", at_least=19, topic="questions"
    )
    seed: int = setting(1, "random seed of these shuffles", at_least=0, topic="questions")
    batch: int = setting(200, "batch size", at_least=1, topic="data")


@dataclass(frozen=True, kw_only=True)
class InferSettings(Settings):
    """How the frames of new documents are inferred."""

    topic: ClassVar[str] = "inference"

    observe_frames: bool = setting(
        False, "use the frames in the file as evidence, not only to compare the inferred ones with"
    )
    top: int = setting(1, "frames of each event to tell, the likeliest first", at_least=1, topic="output")
    attention: bool = setting(
        False, "tell the attention on each word too, of documents of at most 64 events", topic="output"
    )
    batch: int = setting(200, "batch size", at_least=1)


@dataclass(frozen=True, kw_only=True)
class GenerateSettings(Settings):
    """How a script is continued."""

    topic: ClassVar[str] = "decoding"

    method: Literal["sample", "greedy", "beam"] = setting(
        "sample", "how words are decoded: sampling, greedy decoding or beam search"
    )
    events: int = setting(4, "events to generate after the seed", at_least=1, at_most=10_000, topic="scripts")
    scripts: int = setting(
        5,
        "scripts to generate; beam search gives at most --beam, greedy decoding one",
        at_least=1,
        at_most=1_000_000,
        topic="scripts",
    )
    temperature: float = setting(1.0, "sampling: temperature of the word distribution", above=0)
    top_p: float = setting(
        0.9,
        "nucleus sampling: sample from the most likely words with this total probability",
        above=0,
        at_most=1,
    )
    beam: int = setting(10, "beam search: beam size", at_least=1, at_most=10_000)
    repeat: bool = setting(True, "let an event occur twice in a script", topic="constraints")
    distinct_roles: bool = setting(
        False,
        "no event may have the same word in two arguments, such as subject and object",
        topic="constraints",
    )
    seed: int = setting(1, "random seed", at_least=0, topic="computation")
    batch: int = setting(100, "batch size: scripts sampled at once", at_least=1, topic="computation")


@dataclass(frozen=True, kw_only=True)
class ReportSettings(Settings):
    """How a model is shown on the page about runs."""

    topic: ClassVar[str] = "what is shown"

    split: Split = setting("valid", "which split of the corpus the models are shown on")
    sample: int = setting(
        1_000, "documents behind the clusters and the transitions between frames, at most", at_least=1
    )
    documents: int = setting(6, "documents to show with their frames", at_least=1)
    paper: bool = setting(
        False, "show the paper's figures beside those of the runs: they were measured on other data"
    )


@dataclass(frozen=True, kw_only=True)
class ExploreSettings(Settings):
    """How models are explored in the browser."""

    topic: ClassVar[str] = "limits on one request"

    host: str = setting(
        "127.0.0.1", "address to listen on; one that others can reach needs --token", topic="server"
    )
    port: int = setting(
        8765, "port to listen on; 0 for any that is free", at_least=0, at_most=65_535, topic="server"
    )
    token: str | None = setting(
        None, "what a visitor must know, 12 characters or more; the link that is shown has it", topic="server"
    )
    open: bool = setting(True, "open the browser", topic="server")
    split: Split = setting("valid", "which split of a corpus is shown", topic="documents")
    sample: int = setting(1_000, "documents to show, at most", at_least=1, topic="documents")
    spacy_model: str = setting(
        ExtractSettings.spacy_model, "spaCy model for texts that are typed, or its folder", topic="documents"
    )
    max_bytes: int = setting(1_000_000, "bytes of a request, at most", at_least=1_000)
    max_events: int = setting(2_000, "events of a request, at most", at_least=1)
    seconds: float = setting(30.0, "seconds that a request may take", above=0)
    waiting: int = setting(5_000, "documents of all requests that may wait for an answer", at_least=1)
    batch: int = setting(100, "documents that are answered at once, at most", at_least=1)

    def check_relations(self) -> None:
        """Others may only come in with a token."""
        if self.token is not None and len(self.token) < 12:
            raise UserError(f"found a --token of {len(self.token)} characters, expected 12 or more")
        if self.token is None and not self.local:
            raise UserError(
                f"others can reach {self.host}: give a --token of 12 characters or more that they must know\n"
                "or leave --host out: then only this machine can"
            )

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOCAL
