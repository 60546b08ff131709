"""Scripts that are generated with frames asked for, read by somebody who does not know what was asked.

A script is sampled after the first event of each document, with the frames of its other events observed. Then

    as asked        the share of generated events that a reader of frames reads as the frame asked for
    of real events  the same of the document's own events: what the reader gets where all is right
    head variety    H(head | frame) of generated events / H(head | frame) of the document's own

The two entropies are of as many events with the same frames, so that both estimates are too low alike. The
reader is a classifier of its own: were it the model, it would agree with itself.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ssdvae.answers.generate import sample_continuations
from ssdvae.config import EvaluateSettings, GenerateSettings
from ssdvae.data.batches import collate
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.events import Document, Event
from ssdvae.evaluation.tasks.base import Result
from ssdvae.models.base import Model
from ssdvae.storyworld.world import World

if TYPE_CHECKING:
    from ssdvae.extraction.annotate import Annotator

LEARNED_FROM = 20_000
"""Events of the training split that the reader learns from, at most: some seconds."""


def measure_scripts(
    model: Model, corpus: Corpus, documents: Documents, settings: EvaluateSettings
) -> Result | None:
    """None if there is no document with a second event and all its frames."""
    labelled = [
        row
        for row, part in enumerate(documents.parts())
        if part.stop - part.start > 1 and bool((documents.frames[part] >= 0).all())
    ]
    if not labelled:
        return None
    some = documents.take(np.array(labelled[: settings.scripts]))
    real = list(as_documents(corpus, some))
    made = list(generate_as_asked(model, some, real, settings))
    reader = _reader(corpus, settings)
    scores: dict[str, float] = {
        "scripts_as_asked": _agreement(reader, made),
        "scripts_real_as_labelled": _agreement(reader, real),
        "scripts_head_variety": _ratio(head_entropy(made), head_entropy(real)),
    }
    world = World.embedded()
    if is_of_world(corpus, world):
        scores |= by_world(world, made, real)
    return Result(len(real), scores)


def as_documents(corpus: Corpus, documents: Documents) -> Iterator[Document]:
    """Documents of a corpus by their words: rare ones are the unknown word, as the model reads them."""
    word, frame = corpus.vocabulary.name, corpus.frames.name
    for id, part in zip(documents.ids.to_pylist(), documents.parts(), strict=True):
        rows = zip(documents.tokens[part].tolist(), documents.frames[part].tolist(), strict=True)
        events = (Event.of_words([*map(word, words)], frame(f) if f >= 0 else None) for words, f in rows)
        yield Document(id, tuple(events))


def generate_as_asked(
    model: Model, documents: Documents, real: Sequence[Document], settings: EvaluateSettings
) -> Iterator[Document]:
    """A script for each document: its first event, then generated ones, each with the frame asked for."""
    model.eval()
    for start in range(0, len(real), settings.eval_batch):
        rows = np.arange(start, min(start + settings.eval_batch, len(real)))
        batch = collate(documents, rows).to(model.device)
        # The first event is read, not told; and nothing is asked for beyond the end.
        asked = batch.frames.clone()
        asked[:, 0] = -1
        seed = settings.eval_seed + start
        tokens = sample_continuations(
            model, batch.first(1), asked, GenerateSettings(temperature=1, top_p=1, seed=seed)
        )
        for document, script in zip(real[start:], tokens.tolist(), strict=False):
            first, *others = document.events
            words = (Event.of_words([*map(model.vocabulary.name, event)]) for event in script[1:])
            # A script goes on to the end of the longest document.
            events = [made.changed(frame=event.frame) for made, event in zip(words, others, strict=False)]
            yield Document(document.id, (first, *events))


def _reader(corpus: Corpus, settings: EvaluateSettings) -> Annotator:
    from ssdvae.extraction.annotate import load_annotator  # slow to import
    from ssdvae.extraction.classifier import FrameClassifier

    if settings.script_reader is not None:
        return load_annotator(settings.script_reader)
    train = corpus.split("train")
    order = np.random.default_rng(settings.eval_seed).permutation(len(train))
    enough = int(np.searchsorted(np.cumsum(train.lengths[order]), LEARNED_FROM)) + 1
    learned_from = as_documents(corpus, train.take(order[:enough]))
    return FrameClassifier.fit(event for document in learned_from for event in document.events)


def _agreement(reader: Annotator, documents: Iterable[Document]) -> float:
    """How often the reader has the frame of an event, first ones aside; what it does not know is wrong."""
    right = total = 0
    for document in documents:
        for event, guess in zip(document.events[1:], reader.guess(document)[1:], strict=True):
            right += guess is not None and guess[0] == event.frame
            total += 1
    return right / total


def head_entropy(documents: Iterable[Document]) -> float:
    """H(head | frame) in nats over all events but the first ones: Σ_f p(f) H(head | f)."""
    heads: defaultdict[str | None, Counter[str]] = defaultdict(Counter)
    for document in documents:
        for event in document.events[1:]:
            heads[event.frame][event.head] += 1
    total = sum(counts.total() for counts in heads.values())
    nats = 0.0
    for counts in heads.values():
        within = counts.total()
        nats -= sum(n * math.log(n / within) for n in counts.values())
    return nats / total if total else 0.0


def _ratio(found: float, true: float) -> float:
    """1 where there is no variety to be lost."""
    return found / true if true > 0 else 1.0


def is_of_world(corpus: Corpus, world: World) -> bool:
    """Whether the world can have told a corpus: all words and frames are its own."""
    special = {corpus.vocabulary.missing, corpus.vocabulary.unknown}
    words = {name for number, name in enumerate(corpus.vocabulary.names) if number not in special}
    return words <= world.words and set(corpus.frames.names) <= set(world.frames)


def by_world(world: World, made: Sequence[Document], real: Sequence[Document]) -> dict[str, float]:
    """How many scripts the world can tell, and the mean of their exact log p beside that of the documents."""
    log_probs = [world.log_prob(document.events) for document in made]
    possible = [log_p for log_p in log_probs if log_p > -math.inf]
    true = [log_p for document in real if (log_p := world.log_prob(document.events)) > -math.inf]
    means = {"scripts_log_prob": possible, "scripts_true_log_prob": true}
    return {
        "scripts_possible": len(possible) / len(log_probs),
        **{name: sum(values) / len(values) for name, values in means.items() if values},
    }
