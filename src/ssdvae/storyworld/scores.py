"""What the best possible model of a world scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ssdvae.data.cloze import ClozeItem, Sequel, credits
from ssdvae.data.events import SLOTS, Document, Event
from ssdvae.storyworld.world import World

ROUNDING = 1e-9
"""How much equal probabilities may differ that were summed in another order."""


def best_scores(world: World, documents: Iterable[Document]) -> dict[str, float]:
    """What the best possible model scores: perplexity per word, and accuracy of the likeliest frames."""
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


def best_next_frame_nats(world: World, documents: Iterable[Document]) -> float:
    """The mean of −log p(f_m | the words before event m) by the exact model, in nats for each event.

    Documents that the world cannot tell, as when `prepare` left out an event, are passed over from there on.
    """
    number = {frame: column for column, frame in enumerate(world.frames)}
    nats, events = 0.0, 0
    for document in documents:
        probabilities = world.next_frame_probs(document.events)
        frames = [number[str(event.frame)] for event in document.events]
        chances = probabilities[np.arange(len(frames)), frames]
        possible = chances[chances > 0]
        nats, events = nats - float(np.log(possible).sum()), events + len(possible)
    return nats / events if events else math.nan


def best_cloze(world: World, items: Sequence[ClozeItem]) -> dict[str, float]:
    """The share of items that the exact model of the world gets right.

    With the seed e and what may follow it c, the option with the highest score is chosen:

        nll     log p(c | e)
        pmi     log p(c | e) − log p(c), where c stands after one event that nobody saw

    Distractors are what followed in other documents, so they come from p(c), and the chance that an option
    is the true one is proportional to p(c | e) / p(c): on average nothing does better than pmi.

    ``impossible`` counts items whose truth the world cannot tell, as when `prepare` left out an event.
    """
    if not items:
        return {"nll": math.nan, "pmi": math.nan, "items": 0, "impossible": 0}
    scores: dict[str, list[list[float]]] = {"nll": [], "pmi": []}
    for item in items:
        # log p(e, c) will do: log p(e) is the same for all options.
        nll = [_log_prob(world, (item.seed, *option)) for option in item.options]
        pmi = [
            # Where the sequel cannot follow the seed, it may be impossible by itself too: −∞, not NaN.
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


def _log_prob(world: World, sequel: Sequel, unseen: int = 0) -> float:
    return world.log_prob([Event.of_words(words) for words in sequel], unseen)
