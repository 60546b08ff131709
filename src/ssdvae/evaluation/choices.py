"""Tasks that choose between options by the probability of whole documents.

    mcnc    multiple-choice narrative cloze: which of several events belongs to a document?
    masked  which of several events stood at a place in a document?
    order   is the true order of a document likelier than the one with two events swapped?

A document is scored by log p of its words, or jointly with the most likely latent variables.
For a candidate c in a context:

    nll     log p(the document with c in its place)
    pmi     log p(the document with c) − log p(c), where p(c) is the mean of p(c | e′) over others' events e′

and two baselines: ``frequency``, how common its words are, and ``vectors``, the cosine of averaged word
vectors of candidate and context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from ssdvae.data.batches import collate, generator, in_order
from ssdvae.data.benchmarks import read_mcnc
from ssdvae.data.documents import Documents
from ssdvae.data.events import MISSING, Words, folded
from ssdvae.data.items import MaskedItem, OrderItem, Question, Script, credits, read_items
from ssdvae.data.vectors import read_vectors
from ssdvae.data.vocabulary import Vocabulary
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.task import LIKELIHOOD, Data, Figure, Result, Task, file_data, item_data
from ssdvae.io.errors import UserError
from ssdvae.io.files import AnyPath
from ssdvae.io.progress import Advance, no_advance
from ssdvae.models.base import Model, as_language_model

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation


ROUNDING = 1e-6
"""Log-probabilities that differ by less are ties."""

RESAMPLES = 2000
"""Bootstrap draws of an interval."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OptionScores:
    """Scores of the options of each item, the higher the better; option 0 is right.

    −∞ stands where an item has fewer options than others.
    """

    task: str
    scores: Mapping[str, Array]  # by way of scoring: N O

    @property
    def ways(self) -> dict[str, Array]:
        """The credit of each item, by way of scoring."""
        return {way: credits(scores, ROUNDING) for way, scores in self.scores.items()}

    def figures(self, seed: int) -> dict[str, Any]:
        """Return accuracies with 95 % intervals, the chance level, and the number of items."""
        figures: dict[str, Any] = {}
        for way, credit in self.ways.items():
            figures |= with_interval(f"{self.task}_{way}", credit, seed)
        options = np.isfinite(next(iter(self.scores.values()))).sum(1)
        return {
            **figures,
            f"{self.task}_chance": float((1 / options).mean()),
            f"{self.task}_items": len(options),
        }

    def details(self) -> list[dict[str, Any]]:
        """Return one record per item."""
        ways = self.ways
        return [
            {
                "item": item + 1,
                **{way: _finite(scores[item]) for way, scores in self.scores.items()},
                "credit": {way: float(credit[item]) for way, credit in ways.items()},
            }
            for item in range(len(next(iter(ways.values()))))
        ]


def _finite(scores: Array) -> list[float]:
    return [float(score) for score in scores[np.isfinite(scores)]]


def with_interval(name: str, credit: Array, seed: int) -> dict[str, float]:
    """Return the mean under a name, with its interval."""
    low, high = interval(credit, seed)
    return {name: float(credit.mean()), f"{name}_low": low, f"{name}_high": high}


def interval(credit: Array, seed: int) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean."""
    # Few different values: it is enough to draw how often each comes.
    values, counts = np.unique(credit, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(credit), counts / len(credit), RESAMPLES)
    low, high = np.quantile(drawn @ values / len(credit), [0.025, 0.975])
    return float(low), float(high)


def log_mean(log_probs: Array, left_out: NDArray[np.bool_]) -> Array:
    """Return the log of the mean probability over the last axis, without what is left out."""
    kept = np.where(left_out, -np.inf, log_probs)
    top = kept.max(-1, keepdims=True)
    total = np.exp(kept - top).sum(-1)
    return np.asarray(top[..., 0] + np.log(total / (~left_out).sum(-1)))


Tokens = NDArray[np.int64]


class EventEncoder:
    """Events as word ids of a vocabulary, folded to lower case if the corpus is."""

    def __init__(self, vocabulary: Vocabulary, lowercase: bool) -> None:
        self.vocabulary, self.lowercase = vocabulary, lowercase

    def words(self, event: Words) -> Words:
        return folded(event) if self.lowercase else event

    def ids(self, event: Words) -> tuple[int, ...]:
        return tuple(self.vocabulary.word_ids(self.words(event)))

    def unknown_share(self, events: Sequence[Words]) -> float:
        """Return the share of unknown words; refuse events without any known word."""
        ids = np.array([self.ids(event) for event in events])
        if np.isin(ids, [self.vocabulary.unknown, self.vocabulary.missing]).all():
            raise UserError(
                "the vocabulary knows no word of any item\n"
                "they must be in the language of the corpus, in its spelling and case"
            )
        return float((ids == self.vocabulary.unknown).mean())


@torch.no_grad()
def event_log_probs(
    model: Model, documents: Sequence[Tokens], batch: int, advance: Advance = no_advance
) -> list[Array]:
    """Return log p of each event given those before, of documents as word ids [M S].

    Latent variables are inferred from the scored events, too. For surprisal as in `score`, use
    ``inference.surprisal.surprisals``.
    """
    training = model.training
    model.eval()
    lengths = np.array([len(document) for document in documents], np.int32)
    tokens = np.concatenate(documents).astype(np.int32)
    nothing = np.full(len(tokens), -1, np.int32)
    ids = pa.chunked_array([[""] * len(documents)])
    events = Documents.of_events(ids, tokens, nothing, lengths)
    # Documents of about the same length share a batch, for little padding.
    order = np.argsort(lengths, kind="stable")
    found: list[Array] = [np.empty(0)] * len(documents)
    for rows in in_order(len(order), batch):
        part = collate(events, order[rows]).to(model.device)
        scores = as_language_model(model).event_log_probs(part).double().cpu().numpy()
        for row, score in zip(order[rows], scores, strict=True):
            found[row] = score[: lengths[row]]
        advance(len(rows))
    model.train(training)
    return found


def score_scripts(
    model: Model,
    questions: Sequence[tuple[Script, ...]],
    encoder: EventEncoder,
    settings: EvaluateOptions,
    advance: Advance = no_advance,
) -> Array:
    """Return log p of the options of each item, which are whole documents (N O); −∞ where there is none."""
    documents = [np.array([encoder.ids(e) for e in script]) for options in questions for script in options]
    scores = np.array([s.sum() for s in event_log_probs(model, documents, settings.eval_batch, advance)])
    return _rows(scores, [len(options) for options in questions])


def _rows(values: Array, lengths: Sequence[int]) -> Array:
    """Return values as rows of these lengths, padded with −∞."""
    table = np.full((len(lengths), max(lengths)), -np.inf)
    table[np.arange(max(lengths)) < np.array(lengths)[:, None]] = values
    return table


def score_questions(
    task: str,
    model: Model,
    questions: Sequence[Question],
    lowercase: bool,
    settings: EvaluateOptions,
    advance: Advance = no_advance,
) -> tuple[OptionScores, float]:
    """Return the scores of the candidates of every question, and the share of unknown words."""
    encoder = EventEncoder(model.vocabulary, lowercase)
    unknown = encoder.unknown_share([e for q in questions for e in (*q.context, *q.candidates)])
    nll = score_scripts(model, [q.options for q in questions], encoder, settings, advance)
    scores = {
        "nll": nll,
        "pmi": nll - _marginals(model, questions, encoder, settings),
        "frequency": _by_frequency(model, questions, encoder),
    }
    if settings.floor_vectors is not None:
        scores["vectors"] = _by_vectors(questions, encoder, settings.floor_vectors)
    return OptionScores(task, scores), unknown


def answer(task: str, evaluation: Evaluation, questions: Sequence[Question]) -> Result:
    """Return the result of a task that asks such questions."""
    settings = evaluation.settings
    with evaluation.progress.task(task, sum(len(q.candidates) for q in questions)) as advance:
        scores, unknown = score_questions(
            task, evaluation.model, questions, evaluation.corpus.lowercase, settings, advance
        )
    figures = {**scores.figures(settings.eval_seed), f"{task}_unknown_words": unknown}
    return Result(len(questions), figures, scores.details())


def _marginals(
    model: Model, questions: Sequence[Question], encoder: EventEncoder, settings: EvaluateOptions
) -> Array:
    """Return log p(c): each candidate after the first context events of some other items."""
    if len(questions) < 2:
        raise UserError("at least 2 items are needed: pmi compares with the events of others")
    draw = torch.randperm(len(questions), generator=generator(settings.eval_seed, "cloze seeds")).numpy()
    others = draw[: max(2, settings.cloze_seeds)]
    candidates = [encoder.ids(candidate) for q in questions for candidate in q.candidates]
    unique, place = np.unique(np.array(candidates), axis=0, return_inverse=True)
    alone = np.empty((len(unique), len(others)))
    for column, other in enumerate(others):
        seed = np.array(encoder.ids(questions[other].context[0]))
        pairs = [np.stack([seed, candidate]) for candidate in unique]
        alone[:, column] = [s[1] for s in event_log_probs(model, pairs, settings.eval_batch)]
    lengths = [len(q.candidates) for q in questions]
    # Leave out the item's own event.
    own = np.repeat(np.arange(len(questions)), lengths)[:, None] == others
    means = _rows(log_mean(alone[place.reshape(-1)], own), lengths)
    return np.where(np.isfinite(means), means, 0)


def _by_frequency(model: Model, questions: Sequence[Question], encoder: EventEncoder) -> Array:
    """Return Σ log p(word) by the frequency in the training split."""
    counts = np.array(model.vocabulary.counts) + 1
    log_p = np.log(counts / counts.sum())
    values = np.array([log_p[list(encoder.ids(c))].sum() for q in questions for c in q.candidates])
    return _rows(values, [len(q.candidates) for q in questions])


def _by_vectors(questions: Sequence[Question], encoder: EventEncoder, path: AnyPath) -> Array:
    events = [[q.context, *((c,) for c in q.candidates)] for q in questions]
    averages = Averages(path, [e for parts in events for part in parts for e in part], encoder)
    values = []
    for context, *candidates in events:
        around = averages.of(context)
        values += [float(around @ averages.of(candidate)) for candidate in candidates]
    return _rows(np.array(values), [len(q.candidates) for q in questions])


class Averages:
    """Averaged word vectors of events, normalised; zeros where no word has a vector."""

    def __init__(self, path: AnyPath, events: Sequence[Words], encoder: EventEncoder) -> None:
        self.encoder = encoder
        words = sorted({word for event in events for word in encoder.words(event) if word != MISSING})
        vectors = read_vectors(path, words)
        self.matrix, self.found = vectors.matrix.astype(np.float64), vectors.found
        self.place = {word: place for place, word in enumerate(words)}

    def of(self, events: Sequence[Words]) -> Array:
        rows = [self.place[word] for event in events for word in self.encoder.words(event) if word != MISSING]
        mean = self.matrix[rows].sum(0)
        length = float(np.linalg.norm(mean))
        return np.asarray(mean / length if length else mean)

    def of_each(self, events: Sequence[Words]) -> Array:
        return np.stack([self.of([event]) for event in events])

    def products(self, events: Sequence[Words]) -> Array:
        """Return ⊙_s (E[w_s] − mean of E) of each event, over the words that have a vector."""
        centred = self.matrix - self.matrix[self.found].mean(0)
        rows = [[self.place[w] for w in self.encoder.words(event) if w != MISSING] for event in events]
        return np.stack([centred[[row for row in some if self.found[row]]].prod(0) for some in rows])


def run_mcnc(evaluation: Evaluation, data: Data) -> Result:
    settings = evaluation.settings
    # With the candidate, no more events than a document that the model is measured on.
    most = max(1, settings.events - 1) if settings.events else None
    questions = [
        replace(question, before=question.before[-most:]) if most else question
        for question in read_mcnc(data.path)
    ]
    return answer("mcnc", evaluation, questions)


def run_masked(evaluation: Evaluation, data: Data) -> Result:
    questions = [item.question for item in read_items(data.path, MaskedItem)]
    return answer("masked", evaluation, questions)


def run_order(evaluation: Evaluation, data: Data) -> Result:
    items = [item.options for item in read_items(data.path, OrderItem)]
    settings = evaluation.settings
    encoder = EventEncoder(evaluation.model.vocabulary, evaluation.corpus.lowercase)
    unknown = encoder.unknown_share([event for true, _ in items for event in true])
    with evaluation.progress.task("order", 2 * len(items)) as advance:
        nll = score_scripts(evaluation.model, items, encoder, settings, advance)
    scores = OptionScores("order", {"nll": nll})
    figures = {**scores.figures(settings.eval_seed), "order_unknown_words": unknown}
    return Result(len(items), figures, scores.details())


CHOICE_NOTE = (
    "PMI takes away how likely the candidate is anyway. Frequency (the candidate with the most frequent "
    "words) and averaged word vectors (the one nearest to the other events; with --floor-vectors) are what "
    "counting and word similarity get."
)


def _figures(task: str, headline: str) -> tuple[Figure, ...]:
    """Return the figures of a task that chooses an event, by way of scoring."""
    return (
        Figure(f"{task}_nll", "by likelihood", "higher", share=True),
        Figure(f"{task}_pmi", "by PMI", "higher", share=True, headline=headline),
        Figure(f"{task}_frequency", "by frequency", share=True, note="majority baseline"),
        Figure(f"{task}_vectors", "by word vectors", share=True, note="what averaged word vectors get"),
    )


MCNC = Task(
    name="mcnc",
    title="Multiple-choice narrative cloze",
    explanation="Higher is better: the share of items whose held-out event is chosen among wrong ones, after "
    "the last events of its document (as many as the model is measured on, less one). By likelihood. "
    f"{CHOICE_NOTE} Published, for the items of Granroth-Wilding and Clark (2016; five candidates): 52.5 % "
    "(Li et al. 2018), 56.0 % (Ding et al. 2019).",
    figures=_figures("mcnc", "narrative-cloze accuracy"),
    run=run_mcnc,
    default=True,
    needs=(LIKELIHOOD,),
    settings=("events", "cloze_seeds", "eval_batch", "eval_seed"),
    data=lambda corpus, settings: file_data("mcnc", settings.mcnc, corpus, settings),
    has_details=True,
)

MASKED = Task(
    name="masked",
    title="Masked event",
    explanation="Higher is better: the share of items whose true event is chosen for its place in a "
    "document, with what came before and after. By the likelihood of the whole document with each candidate. "
    f"{CHOICE_NOTE}",
    figures=_figures("masked", "masked-event accuracy"),
    run=run_masked,
    needs=(LIKELIHOOD,),
    settings=("cloze_seeds", "eval_batch", "eval_seed"),
    data=partial(item_data, "masked"),
    has_details=True,
)

ORDER = Task(
    name="order",
    title="Order of events",
    explanation="Higher is better: the share of documents whose true order is likelier than the one with two "
    "events swapped. Chance is one half, and so is whatever reads no order: frequency, word vectors.",
    figures=(Figure("order_nll", "by likelihood", "higher", share=True, headline="order accuracy"),),
    run=run_order,
    needs=(LIKELIHOOD,),
    settings=("eval_batch", "eval_seed"),
    data=partial(item_data, "order"),
    has_details=True,
)
