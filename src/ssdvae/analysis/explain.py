"""Explain a trained model from one pass over a split: words, frames, clusters, attention, transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.compare import Comparison, FeatureCounts, compare
from ssdvae.analysis.options import ExplainOptions
from ssdvae.analysis.transitions import Order, Preceding, Transitions
from ssdvae.analysis.words import Clusters, WordPosteriors
from ssdvae.data.corpus import Documents
from ssdvae.data.vocabulary import Inventory
from ssdvae.evaluation.attention import AttentionSummary
from ssdvae.inference.posterior import frame_posteriors
from ssdvae.io.errors import UserError
from ssdvae.io.progress import Advance, no_advance
from ssdvae.models.base import Model

ORDERS: tuple[Order, ...] = ("lift", "probability")


@dataclass(frozen=True)
class Explanation:
    """Sums over a split. Clusters and attention are None in a model without them.

    ``before`` and ``comparison`` are set if the options ask for them.
    """

    words: WordPosteriors
    clusters: Clusters | None
    attention: AttentionSummary | None
    transitions: Transitions
    before: Preceding | None = None
    comparison: Comparison | None = None

    def to_record(self, options: ExplainOptions) -> dict[str, Any]:
        """Return the words and frames that the options name, or the most frequent ones.

        With ``before`` or ``compare``, return only their answers.
        """
        if self.before is not None or self.comparison is not None:
            return self._answers(options)
        words, frames = self._names(options)
        record: dict[str, Any] = {"words": self._words(words, frames, options.top)}
        if self.clusters is not None:
            record["clusters"] = {
                "purity": self.clusters.purity(),
                "nmi": self.clusters.nmi(),
                "frames_given_tokens": {word: self.clusters.top_frames(word, options.top) for word in words},
                "tokens_given_frames": {
                    frame: self.clusters.top_words(frame, options.top) for frame in self._inferred(options)
                },
            }
        if self.attention is not None:
            looks = {"all frames": self.attention.overall()}
            named = _named(options.frames, self.attention.counts, self.attention.frames, options)
            looks |= {frame: self.attention.of(frame) for frame in named}
            record["attention"] = {
                name: {**asdict(look), "own_event": look.own_event, "heads": look.heads}
                for name, look in looks.items()
            }
        record["transitions"] = {
            order: [
                asdict(link) for link in self.transitions.strongest(options.rows, order, options.min_count)
            ]
            for order in ORDERS
        }
        return record

    def _inferred(self, options: ExplainOptions) -> Sequence[str]:
        """Return frames that are the most likely one of some event."""
        assert self.clusters is not None
        return _named(options.frames, self.clusters.frame_counts, self.clusters.frames, options)

    def _names(self, options: ExplainOptions) -> tuple[Sequence[str], Sequence[str]]:
        """Return the words and frames to show."""
        vocabulary, counts = self.words.vocabulary, self.words.word_counts.copy()
        counts[[vocabulary.unknown, vocabulary.missing]] = 0  # which say nothing
        words = _named(options.words, counts, vocabulary, options)
        return words, _named(options.frames, self.words.frame_counts, self.words.frames, options)

    def _words(self, words: Sequence[str], frames: Sequence[str], top: int) -> dict[str, Any]:
        found = self.words
        return {
            "frames_given_words": {
                word: {"times": found.times_of_word(word), "frames": found.frames_of(word, top)}
                for word in words
            },
            "words_given_frames": {
                frame: {"times": found.times_of_frame(frame), "words": found.words_of(frame, top)}
                for frame in frames
            },
        }

    def _answers(self, options: ExplainOptions) -> dict[str, Any]:
        record: dict[str, Any] = {}
        if self.before is not None:
            links = self.before.strongest(options.rows, options.min_count)
            record["before"] = {"frame": self.before.target, "preceded_by": [asdict(link) for link in links]}
        if self.comparison is not None:
            found = self.comparison
            record["compare"] = {
                "groups": found.groups,
                "tests": found.tests,
                "permutations": found.permutations,
                "found": len(found.found()),
                "differences": [{**asdict(d), "ratio": d.ratio} for d in found.differences[: options.rows]],
            }
        return record


def _named(
    names: str | None, counts: NDArray[Any], inventory: Inventory, options: ExplainOptions
) -> Sequence[str]:
    """Return the given names, or the most frequent ones."""
    if names is not None:
        return [name.strip() for name in names.split(",")]
    best = np.argsort(-counts, kind="stable")[: options.rows]
    return [inventory.name(int(number)) for number in best if counts[number]]


def explain(
    model: Model,
    documents: Documents,
    options: ExplainOptions | None = None,
    advance: Advance = no_advance,
    groups: Sequence[str | None] | None = None,
) -> Explanation:
    """Explain a model on a split; ``groups`` are the groups of the documents, if they are to be compared."""
    options = options or ExplainOptions()
    words = WordPosteriors(model, slot_number(model, options.slot))
    transitions = Transitions.of(model, options.min_count)
    clusters, attention = Clusters(model), AttentionSummary(model)
    before = None if options.before is None else Preceding(model, options.before)
    features = None if groups is None else FeatureCounts(model, options.min_count)
    for posterior, batch in frame_posteriors(model, documents, options.batch, advance):
        for further in (words, transitions, before, features):
            if further is not None:
                further.add(posterior, batch)
        if posterior.clusters is not None:
            clusters.add(posterior, batch)
        if posterior.attention is not None:
            attention.add(posterior, batch)
    comparison = None
    if groups is not None and features is not None:
        comparison = compare(features.result(), groups, options.permutations, options.seed)
    return Explanation(
        words,
        None if posterior.clusters is None else clusters,
        None if posterior.attention is None else attention,
        transitions,
        before,
        comparison,
    )


def slot_number(model: Model, slot: str | None) -> int:
    """Return the number of a slot; by default that of the head."""
    if slot is None:
        return 0
    if slot not in model.slots:
        raise UserError(f"--slot: found {slot!r}, expected one of {', '.join(model.slots)}")
    return model.slots.index(slot)
