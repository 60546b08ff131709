"""All that is shown of a trained model, from one pass over a split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.clusters import Clusters, ClusterSums
from ssdvae.analysis.transitions import Order, Transitions, TransitionSums
from ssdvae.answers.beliefs import frame_beliefs
from ssdvae.config import ExplainSettings
from ssdvae.data.corpus import Documents
from ssdvae.data.vocabulary import Inventory
from ssdvae.errors import UserError
from ssdvae.evaluation.attention import AttentionSummary, AttentionSums
from ssdvae.models.base import EventModel
from ssdvae.progress import Advance, no_advance

ORDERS: tuple[Order, ...] = ("lift", "probability")


@dataclass(frozen=True)
class Explanation:
    """Clusters and attention are None in a model that infers frames without them."""

    clusters: Clusters | None
    attention: AttentionSummary | None
    transitions: Transitions

    def to_record(self, settings: ExplainSettings) -> dict[str, Any]:
        """For JSON and for tables: the words and frames that ``settings`` name, or the most frequent ones."""
        record: dict[str, Any] = {}
        if self.clusters is None and settings.words is not None:
            raise UserError("this model has no clusters of words and frames: leave --words out")
        if self.clusters is not None:
            vocabulary, verbs = self.clusters.vocabulary, self.clusters.slot_counts[:, 0].copy()
            verbs[[vocabulary.unknown, vocabulary.missing]] = 0  # which say nothing
            words = _named(settings.words, verbs, vocabulary, settings)
            frames = _named(settings.frames, self.clusters.frame_counts, self.clusters.frames, settings)
            record["clusters"] = {
                "purity": self.clusters.purity(),
                "nmi": self.clusters.nmi(),
                "frames_given_tokens": {word: self.clusters.top_frames(word, settings.top) for word in words},
                "tokens_given_frames": {
                    frame: self.clusters.top_words(frame, settings.top) for frame in frames
                },
            }
        if self.attention is not None:
            frames = _named(settings.frames, self.attention.counts, self.attention.frames, settings)
            looks = {"all frames": self.attention.overall()}
            looks |= {frame: self.attention.of(frame) for frame in frames}
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


def _named(
    names: str | None, counts: NDArray[Any], inventory: Inventory, settings: ExplainSettings
) -> Sequence[str]:
    """The names that were given, or the most frequent ones."""
    if names is not None:
        return [name.strip() for name in names.split(",")]
    best = np.argsort(-counts, kind="stable")[: settings.rows]
    return [inventory.name(int(number)) for number in best if counts[number]]


def explain(
    model: EventModel,
    documents: Documents,
    settings: ExplainSettings | None = None,
    advance: Advance = no_advance,
) -> Explanation:
    """Clusters, attention and transitions on a split, as far as the model has them."""
    settings = settings or ExplainSettings()
    clusters, attention, transitions = ClusterSums(model), AttentionSums(model), TransitionSums(model)
    for beliefs, batch in frame_beliefs(model, documents, settings.batch, advance):
        if beliefs.clusters is not None:
            clusters.add(beliefs, batch)
        if beliefs.looks is not None:
            attention.add(beliefs, batch)
        transitions.add(beliefs, batch)
    return Explanation(
        None if beliefs.clusters is None else clusters.result(),
        None if beliefs.looks is None else attention.result(),
        transitions.result(),
    )
