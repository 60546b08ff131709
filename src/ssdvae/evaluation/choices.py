"""Questions about whole documents: which event stood here, and which order is the true one?

A document is scored by log p of its words; with latent variables, by the likeliest ones, which are paid for.
For a candidate c in a context:

    nll     log p(the document with c in its place)
    pmi     log p(the document with c) − log p(c), where p(c) is the mean of p(c | e′) over others' events e′

and two floors, which read no order: ``frequency``, how common its words are, and ``vectors``, the cosine of
averaged word vectors of candidate and context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ssdvae.config import EvaluateSettings
from ssdvae.data.batches import Batch, generator, in_order
from ssdvae.data.choices import Script
from ssdvae.data.events import MISSING, Words, folded
from ssdvae.data.vectors import read_vectors
from ssdvae.errors import UserError
from ssdvae.evaluation.options import Array, OptionScores, log_mean
from ssdvae.evaluation.tasks.base import Result
from ssdvae.files import AnyPath
from ssdvae.models.base import Model, as_language_model
from ssdvae.progress import Advance, no_advance

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """Which of the candidates stood between what is before and what is after? The first."""

    before: Script
    candidates: tuple[Words, ...]
    after: Script = ()

    @property
    def context(self) -> Script:
        return self.before + self.after

    @property
    def options(self) -> tuple[Script, ...]:
        return tuple((*self.before, candidate, *self.after) for candidate in self.candidates)


class Reader:
    """Events in the numbers of a model, folded to lower case if its corpus is."""

    def __init__(self, model: Model, lowercase: bool) -> None:
        self.model, self.lowercase = model, lowercase

    def words(self, event: Words) -> Words:
        return folded(event) if self.lowercase else event

    def ids(self, event: Words) -> tuple[int, ...]:
        return tuple(self.model.vocabulary.word_ids(self.words(event)))

    def unknown_share(self, events: Sequence[Words]) -> float:
        """Of the words; an error if none is known."""
        ids = np.array([self.ids(event) for event in events])
        vocabulary = self.model.vocabulary
        if np.isin(ids, [vocabulary.unknown, vocabulary.id(MISSING)]).all():
            raise UserError(
                "the vocabulary knows no word of any item\n"
                "they must be in the language of the corpus, in its spelling and case"
            )
        return float((ids == vocabulary.unknown).mean())


@torch.no_grad()
def event_log_probs(
    model: Model, documents: Sequence[Tokens], batch: int, advance: Advance = no_advance
) -> list[Array]:
    """log p of each event of some documents [M S], given those before."""
    training = model.training
    model.eval()
    # Neighbours of about the same length share a batch, so that little is padded.
    order = np.argsort([len(document) for document in documents], kind="stable")
    found: list[Array] = [np.empty(0)] * len(documents)
    for rows in in_order(len(order), batch):
        some = [documents[row] for row in order[rows]]
        scores = (
            as_language_model(model).event_log_probs(_padded(some).to(model.device)).double().cpu().numpy()
        )
        for row, document, score in zip(order[rows], some, scores, strict=True):
            found[row] = score[: len(document)]
        advance(len(rows))
    model.train(training)
    return found


def _padded(documents: Sequence[Tokens]) -> Batch:
    longest = max(map(len, documents))
    tokens = np.zeros((len(documents), longest, documents[0].shape[1]), dtype=np.int64)
    for row, document in enumerate(documents):
        tokens[row, : len(document)] = document
    mask = torch.arange(longest) < torch.tensor([[len(document)] for document in documents])
    nothing = torch.full(mask.shape, -1)
    return Batch(torch.from_numpy(tokens), nothing, nothing, mask)


def score_scripts(
    model: Model,
    questions: Sequence[tuple[Script, ...]],
    reader: Reader,
    settings: EvaluateSettings,
    advance: Advance = no_advance,
) -> Array:
    """log p of the options of each item, whole documents; −∞ where an item has fewer options: N O."""
    documents = [np.array([reader.ids(e) for e in script]) for options in questions for script in options]
    scores = np.array([s.sum() for s in event_log_probs(model, documents, settings.eval_batch, advance)])
    return _rows(scores, [len(options) for options in questions])


def _rows(values: Array, lengths: Sequence[int]) -> Array:
    """Values one after another, as rows of these lengths; the rest is −∞."""
    table = np.full((len(lengths), max(lengths)), -np.inf)
    table[np.arange(max(lengths)) < np.array(lengths)[:, None]] = values
    return table


def score_questions(
    task: str,
    model: Model,
    questions: Sequence[Question],
    lowercase: bool,
    settings: EvaluateSettings,
    advance: Advance = no_advance,
) -> tuple[OptionScores, float]:
    """The candidates of every question by each way of scoring, and the share of unknown words."""
    reader = Reader(model, lowercase)
    unknown = reader.unknown_share([e for q in questions for e in (*q.context, *q.candidates)])
    nll = score_scripts(model, [q.options for q in questions], reader, settings, advance)
    scores = {
        "nll": nll,
        "pmi": nll - _marginals(model, questions, reader, settings),
        "frequency": _by_frequency(model, questions, reader),
    }
    if settings.floor_vectors is not None:
        scores["vectors"] = _by_vectors(questions, reader, settings.floor_vectors)
    return OptionScores(task, scores), unknown


def answer(task: str, evaluation: Evaluation, questions: Sequence[Question]) -> Result:
    """What a task finds that asks such questions."""
    settings = evaluation.settings
    with evaluation.progress.task(task, sum(len(q.candidates) for q in questions)) as advance:
        scores, unknown = score_questions(
            task, evaluation.model, questions, evaluation.corpus.lowercase, settings, advance
        )
    figures = {**scores.figures(settings.eval_seed), f"{task}_unknown_words": unknown}
    return Result(len(questions), figures, scores.details())


def _marginals(
    model: Model, questions: Sequence[Question], reader: Reader, settings: EvaluateSettings
) -> Array:
    """log p(c): each different candidate after the first context events of some other items."""
    if len(questions) < 2:
        raise UserError("at least 2 items are needed: pmi compares with the events of others")
    draw = torch.randperm(len(questions), generator=generator(settings.eval_seed, "cloze seeds")).numpy()
    others = draw[: max(2, settings.cloze_seeds)]
    candidates = [reader.ids(candidate) for q in questions for candidate in q.candidates]
    unique, place = np.unique(np.array(candidates), axis=0, return_inverse=True)
    alone = np.empty((len(unique), len(others)))
    for column, other in enumerate(others):
        seed = np.array(reader.ids(questions[other].context[0]))
        pairs = [np.stack([seed, candidate]) for candidate in unique]
        alone[:, column] = [s[1] for s in event_log_probs(model, pairs, settings.eval_batch)]
    lengths = [len(q.candidates) for q in questions]
    # An item's own event is no other.
    own = np.repeat(np.arange(len(questions)), lengths)[:, None] == others
    means = _rows(log_mean(alone[place.reshape(-1)], own), lengths)
    return np.where(np.isfinite(means), means, 0)


def _by_frequency(model: Model, questions: Sequence[Question], reader: Reader) -> Array:
    """Σ log p(word), each as often as it is in the training split."""
    counts = np.array(model.vocabulary.counts) + 1
    log_p = np.log(counts / counts.sum())
    values = np.array([log_p[list(reader.ids(c))].sum() for q in questions for c in q.candidates])
    return _rows(values, [len(q.candidates) for q in questions])


def _by_vectors(questions: Sequence[Question], reader: Reader, path: AnyPath) -> Array:
    events = [[q.context, *((c,) for c in q.candidates)] for q in questions]
    averages = Averages(path, [e for parts in events for part in parts for e in part], reader)
    values = []
    for context, *candidates in events:
        around = averages.of(context)
        values += [float(around @ averages.of(candidate)) for candidate in candidates]
    return _rows(np.array(values), [len(q.candidates) for q in questions])


class Averages:
    """Averaged word vectors of events, of length 1; zeros where no word has a vector."""

    def __init__(self, path: AnyPath, events: Sequence[Words], reader: Reader) -> None:
        self.reader = reader
        words = sorted({word for event in events for word in reader.words(event) if word != MISSING})
        vectors = read_vectors(path, words)
        self.matrix, self.found = vectors.matrix.astype(np.float64), vectors.found
        self.place = {word: place for place, word in enumerate(words)}

    def of(self, events: Sequence[Words]) -> Array:
        rows = [self.place[word] for event in events for word in self.reader.words(event) if word != MISSING]
        mean = self.matrix[rows].sum(0)
        length = float(np.linalg.norm(mean))
        return np.asarray(mean / length if length else mean)

    def of_each(self, events: Sequence[Words]) -> Array:
        return np.stack([self.of([event]) for event in events])

    def products(self, events: Sequence[Words]) -> Array:
        """Each slot by slot: ⊙_s (E[w_s] − mean of E), of the words that have a vector."""
        centred = self.matrix - self.matrix[self.found].mean(0)
        rows = [[self.place[w] for w in self.reader.words(event) if w != MISSING] for event in events]
        return np.stack([centred[[row for row in some if self.found[row]]].prod(0) for some in rows])
