"""Scores of the exact model of a world: the best that any model can reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ssdvae.data.events import SLOTS, Document, Event
from ssdvae.data.items import ClozeItem, Script, credits
from ssdvae.storyworld.world import World

ROUNDING = 1e-9
"""The largest difference of equal log-probabilities that were summed in another order."""


def best_scores(world: World, documents: Iterable[Document]) -> dict[str, float]:
    """Return the perplexity per word of the exact model, and the accuracy of its likeliest frames."""
    log_prob, right, events, count = 0.0, 0, 0, 0
    for document in documents:
        log_prob += world.log_prob(document.events)
        guesses = world.frame_posterior(document.events).argmax(-1)
        right += sum(world.frames[g] == e.frame for g, e in zip(guesses, document.events, strict=True))
        events, count = events + len(document.events), count + 1
    words = len(SLOTS) * events
    return {
        "ppl": math.exp(-log_prob / words) if words and log_prob > -math.inf else math.inf,
        "frame_accuracy": right / events if events else math.nan,
        "words": words,
        "documents": count,
    }


def best_cloze(world: World, items: Sequence[ClozeItem]) -> dict[str, float]:
    """Return the accuracy of the exact model of the world on inverse narrative cloze.

    With the seed e and a continuation c, the option with the highest score is chosen:

        nll     log p(c | e)
        pmi     log p(c | e) − log p(c), where c comes after one unobserved event

    Distractors are continuations of other documents, so they come from p(c), and the probability that an
    option is the true one is proportional to p(c | e) / p(c): on average no score is better than pmi.

    ``impossible`` counts items whose truth has probability 0, as when `prepare` left out an event.
    """
    if not items:
        return {"nll": math.nan, "pmi": math.nan, "items": 0, "impossible": 0}
    scores: dict[str, list[list[float]]] = {"nll": [], "pmi": []}
    for item in items:
        # log p(e, c) is enough: log p(e) is the same for all options.
        nll = [_log_prob(world, (item.seed, *option)) for option in item.options]
        pmi = [
            # A sequel that cannot follow the seed may be impossible by itself too: −∞, not NaN.
            log_p - _log_prob(world, option, unseen=1) if log_p > -math.inf else log_p
            for log_p, option in zip(nll, item.options, strict=True)
        ]
        scores["nll"].append(nll)
        scores["pmi"].append(pmi)
    shares = {name: credits(np.array(rows), ROUNDING).mean() for name, rows in scores.items()}
    return {
        **{name: float(share) for name, share in shares.items()},
        "items": len(items),
        "impossible": sum(nll[0] == -math.inf for nll in scores["nll"]),
    }


def _log_prob(world: World, sequel: Script, unseen: int = 0) -> float:
    return world.log_prob([Event.of_words(words) for words in sequel], unseen)
