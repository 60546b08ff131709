"""All that is shown of a trained model, from one pass over a split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.before import Preceding, PrecedingSums
from ssdvae.analysis.clusters import Clusters, ClusterSums
from ssdvae.analysis.compare import Comparison, compare
from ssdvae.analysis.features import FeatureCounts
from ssdvae.analysis.transitions import Order, Transitions, TransitionSums
from ssdvae.analysis.words import WordBeliefs, WordBeliefSums
from ssdvae.answers.beliefs import frame_beliefs
from ssdvae.config import ExplainSettings
from ssdvae.data.corpus import Documents
from ssdvae.data.vocabulary import Inventory
from ssdvae.errors import UserError
from ssdvae.evaluation.attention import AttentionSummary, AttentionSums
from ssdvae.models.base import Model
from ssdvae.progress import Advance, no_advance

ORDERS: tuple[Order, ...] = ("lift", "probability")


@dataclass(frozen=True)
class Explanation:
    """Clusters and attention are None in a model that infers frames without them.

    ``before`` and ``comparison`` answer a question, if it was asked.
    """

    beliefs: WordBeliefs
    clusters: Clusters | None
    attention: AttentionSummary | None
    transitions: Transitions
    before: Preceding | None = None
    comparison: Comparison | None = None

    def to_record(self, settings: ExplainSettings) -> dict[str, Any]:
        """For JSON and for tables: the words and frames that ``settings`` name, or the most frequent ones.

        If a question was asked, its answer and nothing else.
        """
        if self.before is not None or self.comparison is not None:
            return self._answers(settings)
        words, frames = self._names(settings)
        record: dict[str, Any] = {"beliefs": self._beliefs(words, frames, settings.top)}
        if self.clusters is not None:
            record["clusters"] = {
                "purity": self.clusters.purity(),
                "nmi": self.clusters.nmi(),
                "frames_given_tokens": {word: self.clusters.top_frames(word, settings.top) for word in words},
                "tokens_given_frames": {
                    frame: self.clusters.top_words(frame, settings.top) for frame in self._inferred(settings)
                },
            }
        if self.attention is not None:
            looks = {"all frames": self.attention.overall()}
            named = _named(settings.frames, self.attention.counts, self.attention.frames, settings)
            looks |= {frame: self.attention.of(frame) for frame in named}
            record["attention"] = {
                name: {**asdict(look), "own_event": look.own_event, "heads": look.heads}
                for name, look in looks.items()
            }
        record["transitions"] = {
            order: [
                asdict(link) for link in self.transitions.strongest(settings.rows, order, settings.min_count)
            ]
            for order in ORDERS
        }
        return record

    def _inferred(self, settings: ExplainSettings) -> Sequence[str]:
        """Frames that are the likeliest one of some event."""
        assert self.clusters is not None
        return _named(settings.frames, self.clusters.frame_counts, self.clusters.frames, settings)

    def _names(self, settings: ExplainSettings) -> tuple[Sequence[str], Sequence[str]]:
        """Words and frames to show."""
        vocabulary, counts = self.beliefs.vocabulary, self.beliefs.word_counts.copy()
        counts[[vocabulary.unknown, vocabulary.missing]] = 0  # which say nothing
        words = _named(settings.words, counts, vocabulary, settings)
        return words, _named(settings.frames, self.beliefs.frame_counts, self.beliefs.frames, settings)

    def _beliefs(self, words: Sequence[str], frames: Sequence[str], top: int) -> dict[str, Any]:
        found = self.beliefs
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

    def _answers(self, settings: ExplainSettings) -> dict[str, Any]:
        record: dict[str, Any] = {}
        if self.before is not None:
            links = self.before.strongest(settings.rows, settings.min_count)
            record["before"] = {"frame": self.before.target, "preceded_by": [asdict(link) for link in links]}
        if self.comparison is not None:
            found = self.comparison
            record["compare"] = {
                "groups": found.groups,
                "tests": found.tests,
                "permutations": found.permutations,
                "found": len(found.found()),
                "differences": [{**asdict(d), "ratio": d.ratio} for d in found.differences[: settings.rows]],
            }
        return record


def _named(
    names: str | None, counts: NDArray[Any], inventory: Inventory, settings: ExplainSettings
) -> Sequence[str]:
    """The names that were given, or the most frequent ones."""
    if names is not None:
        return [name.strip() for name in names.split(",")]
    best = np.argsort(-counts, kind="stable")[: settings.rows]
    return [inventory.name(int(number)) for number in best if counts[number]]


def explain(
    model: Model,
    documents: Documents,
    settings: ExplainSettings | None = None,
    advance: Advance = no_advance,
    groups: Sequence[str | None] | None = None,
) -> Explanation:
    """What a model makes of a split, as far as it has an answer.

    ``groups`` are those of the documents, None for one that is in no group, if they are to be compared.
    """
    settings = settings or ExplainSettings()
    beliefs_of_words = WordBeliefSums(model, slot_number(model, settings.slot))
    clusters, attention, transitions = ClusterSums(model), AttentionSums(model), TransitionSums(model)
    before = None if settings.before is None else PrecedingSums(model, settings.before)
    features = None if groups is None else FeatureCounts(model, settings.min_count)
    for beliefs, batch in frame_beliefs(model, documents, settings.batch, advance):
        beliefs_of_words.add(beliefs, batch)
        transitions.add(beliefs, batch)
        for further in (before, features):
            if further is not None:
                further.add(beliefs, batch)
        if beliefs.clusters is not None:
            clusters.add(beliefs, batch)
        if beliefs.attention is not None:
            attention.add(beliefs, batch)
    comparison = None
    if groups is not None and features is not None:
        comparison = compare(features.result(), groups, settings.permutations, settings.seed)
    return Explanation(
        beliefs_of_words.result(),
        None if beliefs.clusters is None else clusters.result(),
        None if beliefs.attention is None else attention.result(),
        replace(transitions.result(), min_count=settings.min_count),
        None if before is None else before.result(),
        comparison,
    )


def slot_number(model: Model, slot: str | None) -> int:
    """The place of a slot by its name; the head by default."""
    if slot is None:
        return 0
    if slot not in model.slots:
        raise UserError(f"--slot: found {slot!r}, expected one of {', '.join(model.slots)}")
    return model.slots.index(slot)
