"""Controlled generation: does an independent classifier recover the requested frames?

A script is sampled after the first event of each document, with the frames of its other events observed. Then

    as asked        the share of generated events that a classifier reads as the requested frame
    of real events  the same share of the document's own events: an upper bound
    head variety    H(head | frame) of generated events / H(head | frame) of the document's own

The two entropies are of as many events with the same frames, so that both estimates have the same bias. The
classifier is not the model: that would agree with itself.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ssdvae.data.batches import collate
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.events import Document, Event
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.task import FRAMES, WORDS, Data, Figure, Result, Task
from ssdvae.inference.generation import sample_continuations
from ssdvae.inference.options import GenerateOptions
from ssdvae.models.base import Model
from ssdvae.storyworld.world import World

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation
    from ssdvae.extraction.annotate import Annotator


FITTED_EVENTS = 20_000
"""Events of the training split that the classifier is fitted to, at most: some seconds."""


def measure_scripts(
    model: Model, corpus: Corpus, documents: Documents, settings: EvaluateOptions
) -> Result | None:
    """Return None if no document has a second event and all its frames."""
    labelled = [
        row
        for row, part in enumerate(documents.parts())
        if part.stop - part.start > 1 and bool((documents.frames[part] >= 0).all())
    ]
    if not labelled:
        return None
    some = documents.take(np.array(labelled[: settings.scripts]))
    real = some.decode(corpus.vocabulary, corpus.frames)
    made = list(generate_with_frames(model, some, real, settings))
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


def generate_with_frames(
    model: Model, documents: Documents, real: Sequence[Document], settings: EvaluateOptions
) -> Iterator[Document]:
    """Yield a script per document: its first event, then generated ones with the frames of the others."""
    for start in range(0, len(real), settings.eval_batch):
        rows = np.arange(start, min(start + settings.eval_batch, len(real)))
        batch = collate(documents, rows).to(model.device)
        # The frame of the first event is not observed, nor is any beyond the end.
        frames = batch.frames.clone()
        frames[:, 0] = -1
        seed = settings.eval_seed + start
        tokens = sample_continuations(
            model, batch.first(1), frames, GenerateOptions(temperature=1, top_p=1, seed=seed)
        )
        for document, script in zip(real[start:], tokens.tolist(), strict=False):
            first, *others = document.events
            words = (Event.of_words([*map(model.vocabulary.name, event)]) for event in script[1:])
            # A script goes on to the end of the longest document.
            events = [made.changed(frame=event.frame) for made, event in zip(words, others, strict=False)]
            yield Document(document.id, (first, *events))


def _reader(corpus: Corpus, settings: EvaluateOptions) -> Annotator:
    from ssdvae.extraction.annotate import load_annotator  # slow to import
    from ssdvae.extraction.classifier import FrameClassifier

    if settings.script_reader is not None:
        return load_annotator(settings.script_reader)
    train = corpus.split("train")
    order = np.random.default_rng(settings.eval_seed).permutation(len(train))
    enough = int(np.searchsorted(np.cumsum(train.lengths[order]), FITTED_EVENTS)) + 1
    learned_from = train.take(order[:enough]).decode(corpus.vocabulary, corpus.frames)
    return FrameClassifier.fit(event for document in learned_from for event in document.events)


def _agreement(reader: Annotator, documents: Iterable[Document]) -> float:
    """Return the accuracy of the classifier on all events but the first; no guess is wrong."""
    right = total = 0
    for document in documents:
        for event, guess in zip(document.events[1:], reader.predict(document.events[1:]), strict=True):
            right += bool(guess) and guess[0][0] == event.frame
            total += 1
    return right / total


def head_entropy(documents: Iterable[Document]) -> float:
    """Return H(head | frame) = Σ_f p(f) H(head | f) in nats, over all events but the first ones."""
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
    """Return the ratio; 1 where the true entropy is 0."""
    return found / true if true > 0 else 1.0


def is_of_world(corpus: Corpus, world: World) -> bool:
    """Tell whether all words and frames of a corpus are those of the world."""
    special = {corpus.vocabulary.missing, corpus.vocabulary.unknown}
    words = {name for number, name in enumerate(corpus.vocabulary.names) if number not in special}
    return words <= world.words and set(corpus.frames.names) <= set(world.frames)


def by_world(world: World, made: Sequence[Document], real: Sequence[Document]) -> dict[str, float]:
    """Return the share of scripts that are possible in the world, and mean exact log-probabilities."""
    log_probs = [world.log_prob(document.events) for document in made]
    possible = [log_p for log_p in log_probs if log_p > -math.inf]
    true = [log_p for document in real if (log_p := world.log_prob(document.events)) > -math.inf]
    means = {"scripts_log_prob": possible, "scripts_true_log_prob": true}
    return {
        "scripts_possible": len(possible) / len(log_probs),
        **{name: sum(values) / len(values) for name, values in means.items() if values},
    }


def run(evaluation: Evaluation, data: Data) -> Result | None:
    """Return None if no document of the split has a second event and all its frames."""
    return measure_scripts(evaluation.model, evaluation.corpus, evaluation.documents, evaluation.settings)


TASK = Task(
    name="scripts",
    title="Generated scripts",
    explanation="A script is sampled, at temperature 1 from all words, after the first event of each "
    "document, with the frames of its other events asked for. “As asked”: generated events that a classifier "
    "reads as that frame, to be compared with “of real events”, where it reads the documents themselves. It "
    "knows nothing of the model: it learned from the training split, or is that of --script-reader. “Variety "
    "of heads” is the entropy of heads given the frame, over that of the documents: where the likeliest verb "
    "is always said there is none. On storyworld, “possible” are scripts that the world can tell, and their "
    "mean log-probability stands beside that of the true documents.",
    figures=(
        Figure("scripts_as_asked", "as asked", "higher", share=True),
        Figure("scripts_real_as_labelled", "of real events", share=True, compared=False),
        Figure("scripts_head_variety", "variety of heads", "higher", share=True),
        Figure("scripts_possible", "possible", "higher", share=True),
        Figure("scripts_log_prob", "log p", "higher", digits=2, compared=False),
        Figure("scripts_true_log_prob", "log p of true ones", digits=2, compared=False),
    ),
    run=run,
    needs=(WORDS, FRAMES),
    settings=("events", "scripts", "script_reader", "eval_batch", "eval_seed"),
)
