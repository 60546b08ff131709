"""Script events from few labels: our models beside plain ones, on InScript (Modi et al. 2016).

    ssdvae data get inscript --out inscript
    ssdvae extract inscript --format inscript --out stories.jsonl
    python -m benchmarks.inscript stories.jsonl --vectors glove.100d.txt.gz --out inscript-cells

Five folds over all stories; one in ten of a training part validates, with its labels. A share of the other
training *stories* (the same of each scenario) or *events* is labelled. A cell is a fold, a kind of labelling,
a share, a system and a seed; its row goes to cells.csv, its predictions beside it, and a cell that is there
is not computed again. ``--table`` prints the table and the paired differences.

Every system knows the scenario of a story: it reads it as a word of each event, and predicts only labels that
were seen in that scenario. So labels that are no step of a script need no scenario in their name. Heads are
lemmas. The vector of a phrasal verb is the mean of its words'.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import ssdvae
from benchmarks.story_tagger import Coded, StoryTagger, fit, tag
from ssdvae.data.batches import collate, within_bounds
from ssdvae.data.events import MISSING, SLOTS, Document, Event, document_to_record
from ssdvae.data.readers import read_documents
from ssdvae.data.vectors import read_vectors
from ssdvae.inference.posterior import infer_latents
from ssdvae.models.exact import ExactModel
from ssdvae.models.latents import FramePosterior

FOLDS = 5
VALID = 10
"""One in so many training stories validates."""

STEP = "ScrEv_"
"""The beginning of the labels that are steps of a script."""

SHARES = (0.1, 0.05, 0.9, 0.3)
KINDS = ("stories", "events")
COLUMNS = (
    *("fold", "kind", "share", "system", "seed", "events", "accuracy", "macro_f1", "ami"),
    *("next_accuracy", "next_mrr", "seconds"),
)

EXACT: dict[str, Any] = {"preset": "auto"}
PAPER: dict[str, Any] = {"preset": "auto", "events": None, "window": 5, "batch": 100, "learning_rate": 2e-3}
"""The paper's model in the size of ours: its own takes hours for each cell on a processor."""

TAGGER: dict[str, Any] = {"hidden": 128, "dropout": 0.5, "frozen": False}
TAGGER_FIT: dict[str, Any] = {"epochs": 60, "patience": 10, "learning_rate": 2e-3, "batch": 8}

Labels = tuple[str | None, ...]
"""A label for each event of a story; None is unknown."""


@dataclass(frozen=True)
class Story:
    """A story, its scenario, and the gold labels of its events."""

    id: str
    scenario: str
    events: tuple[Event, ...]
    gold: Labels

    @classmethod
    def of(cls, document: Document, number: int) -> Story:
        scenario = next(event.frame.rpartition("_")[2] for event in document.events if event.frame)
        labels = (event.frame and _without_scenario(event.frame, scenario) for event in document.events)
        events = (Event(e.lemma or e.head, *e.arguments) for e in document.events)
        return cls(f"{number}:{document.id}", scenario, tuple(events), tuple(labels))

    def document(self, labels: Labels) -> Document:
        """Return the story with these labels, and its scenario as a slot."""
        events = (
            Event(event.head, *event.values(len(SLOTS))[1:], self.scenario, frame=label)
            for event, label in zip(self.events, labels, strict=True)
        )
        return Document(self.id, tuple(events))


def _without_scenario(label: str, scenario: str) -> str:
    return label if label.startswith(STEP) else label.removesuffix(f"_{scenario}")


@dataclass(frozen=True)
class Task:
    """What a system gets: stories to train on with some labels, and to validate on and label."""

    train: list[Story]
    known: list[Labels]  # of ``train``
    valid: list[Story]
    test: list[Story]

    @cached_property
    def allowed(self) -> dict[str, list[str]]:
        """The labels of each scenario in the training labels, the most frequent first."""
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for story, labels in zip(self.train, self.known, strict=True):
            counts[story.scenario].update(label for label in labels if label)
        return {scenario: [label for label, _ in found.most_common()] for scenario, found in counts.items()}

    @cached_property
    def labels(self) -> list[str]:
        return sorted({label for labels in self.allowed.values() for label in labels})

    def labelled(self) -> Iterator[tuple[Story, Event, str]]:
        for story, labels in zip(self.train, self.known, strict=True):
            for event, label in zip(story.events, labels, strict=True):
                if label:
                    yield story, event, label


def make_task(stories: Sequence[Story], fold: int, kind: str, share: float, seed: int = 1) -> Task:
    """Return a fold with a share of its training labels. Those of a lower share are among those of a higher.

    Of each scenario the same share of stories is labelled, at least one.
    """
    order = np.random.default_rng(seed).permutation(len(stories))
    test = [stories[i] for i in order[fold::FOLDS]]
    rest = [stories[i] for place, i in enumerate(order) if place % FOLDS != fold]
    valid, train = rest[::VALID], [story for place, story in enumerate(rest) if place % VALID]
    draws = np.random.default_rng([seed, fold]).random((len(train), max(len(s.events) for s in stories)))
    known: list[Labels] = []
    sizes, seen = Counter(story.scenario for story in train), Counter[str]()
    for story, row in zip(train, draws, strict=True):
        if kind == "events":
            known.append(tuple(g if d < share else None for g, d in zip(story.gold, row, strict=False)))
        else:
            chosen = seen[story.scenario] < round(share * sizes[story.scenario])
            known.append(story.gold if chosen else (None,) * len(story.gold))
            seen[story.scenario] += 1
    return Task(train, known, valid, test)


# Systems: each yields its name and the predictions for ``task.test``, and perhaps more figures.

Predictions = list[list[str]]
Answer = tuple[str, Predictions, dict[str, float]]


def majority(task: Task) -> Predictions:
    """Predict the most frequent label of the head within the scenario, else of the scenario."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for story, event, label in task.labelled():
        counts[story.scenario, event.head][label] += 1

    def best(story: Story, event: Event) -> str:
        own = counts.get((story.scenario, event.head))
        return own.most_common(1)[0][0] if own else task.allowed[story.scenario][0]

    return [[best(story, event) for event in story.events] for story in task.test]


class Words:
    """Ids and vectors of the words of all stories."""

    def __init__(self, stories: Iterable[Story], path: Path) -> None:
        names = sorted({word for story in stories for e in story.events for word in e.padded(len(SLOTS))})
        parts = sorted({part for name in names for part in name.split("_")})
        found = read_vectors(path, parts)
        rows = dict(zip(parts, found.matrix, strict=True))
        known = dict(zip(parts, found.found, strict=True))
        self.ids = {name: number for number, name in enumerate(names)}
        self.matrix = np.zeros((len(names), found.matrix.shape[1]), np.float32)
        self.known = np.zeros(len(names), bool)
        for name, number in self.ids.items():
            if own := [rows[part] for part in name.split("_") if known[part] and name != MISSING]:
                self.matrix[number], self.known[number] = np.mean(own, axis=0), True

    def code(self, story: Story) -> NDArray[np.int64]:
        return np.array([[self.ids[word] for word in e.padded(len(SLOTS))] for e in story.events])

    def embed(self, story: Story) -> NDArray[np.float32]:
        return self.matrix[self.code(story)].reshape(len(story.events), -1)

    def write(self, path: Path) -> Path:
        """Write the vectors in the format of GloVe."""
        with gzip.open(path, "wt", encoding="utf-8") as file:
            for name, number in self.ids.items():
                if self.known[number]:
                    file.write(f"{name} {' '.join(f'{x:.5g}' for x in self.matrix[number])}\n")
        return path


def quality(stories: Sequence[Story], predictions: Predictions) -> tuple[float, float]:
    """Return accuracy, and macro F1 over the script events of the reference."""
    counts = Confusion(stories, predictions)
    return counts.accuracy(), counts.macro_f1()


def regression(task: Task, words: Words) -> Predictions:
    """Fit a logistic regression for each scenario on head and vectors of the slots; C by validation."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    def features(stories: Sequence[Story]) -> Any:
        heads = np.concatenate([words.code(story)[:, 0] for story in stories])
        dense = np.concatenate([words.embed(story) for story in stories])
        ones = csr_matrix((np.ones(len(heads)), (np.arange(len(heads)), heads)), (len(heads), len(words.ids)))
        return hstack([ones, csr_matrix(dense)]).tocsr()

    answers: dict[str, dict[float, Predictions]] = {"valid": defaultdict(list), "test": defaultdict(list)}
    parts: dict[str, list[Story]] = {"valid": [], "test": []}
    for scenario, labels in task.allowed.items():
        train = [(s, k) for s, k in zip(task.train, task.known, strict=True) if s.scenario == scenario]
        gold = np.array([label or "" for _, known in train for label in known])
        x = features([story for story, _ in train])[gold != ""]
        asked = {
            name: [story for story in stories if story.scenario == scenario]
            for name, stories in (("valid", task.valid), ("test", task.test))
        }
        for strength in (0.03, 0.3, 3.0):
            model = LogisticRegression(C=strength, max_iter=100) if len(labels) > 1 else None
            if model is not None:
                model.fit(x, gold[gold != ""])
            for name, stories in asked.items():
                for story in stories:
                    found = model.predict(features([story])) if model else labels * len(story.events)
                    answers[name][strength].append(list(map(str, found)))
        for name, stories in asked.items():
            parts[name] += stories
    best = max(answers["valid"], key=lambda c: sum(quality(parts["valid"], answers["valid"][c])))
    place = {story.id: found for story, found in zip(parts["test"], answers["test"][best], strict=True)}
    return [place[story.id] for story in task.test]


def tagger(task: Task, words: Words, seed: int, **changes: Any) -> Predictions:
    """Train the BiLSTM-CRF, stopped by validation."""
    scenarios = {name: number for number, name in enumerate(task.allowed)}
    ids = {label: number for number, label in enumerate(task.labels)}
    allowed = {
        number: torch.tensor([ids[label] for label in task.allowed[name]])
        for name, number in scenarios.items()
    }

    def coded(story: Story, labels: Labels) -> Coded:
        known = torch.tensor([-1 if label is None else ids[label] for label in labels])
        return torch.from_numpy(words.code(story)), known

    train: defaultdict[int, list[Coded]] = defaultdict(list)
    for story, labels in zip(task.train, task.known, strict=True):
        if any(labels):
            train[scenarios[story.scenario]].append(coded(story, labels))

    def predict(model: StoryTagger, stories: Sequence[Story]) -> Predictions:
        place: dict[str, list[str]] = {}
        for name, number in scenarios.items():
            own = [story for story in stories if story.scenario == name]
            if own:
                blank = [coded(story, (None,) * len(story.events)) for story in own]
                for story, path in zip(own, tag(model, blank, number, allowed[number]), strict=True):
                    place[story.id] = [task.labels[label] for label in path]
        return [place[story.id] for story in stories]

    torch.manual_seed(seed)
    shape = {**TAGGER, **{name: value for name, value in changes.items() if name in TAGGER}}
    model = StoryTagger(torch.from_numpy(words.matrix), len(SLOTS), len(scenarios), len(task.labels), **shape)
    how = {**TAGGER_FIT, **{name: value for name, value in changes.items() if name in TAGGER_FIT}}
    judge = lambda model: sum(quality(task.valid, predict(model, task.valid)))  # noqa: E731
    fit(model, train, allowed, judge, seed=seed, **how)
    return predict(model, task.test)


def train_ours(task: Task, vectors: Path, folder: Path, seed: int, **options: Any) -> Path:
    """Train one of our models, and return its run; a run that is there is resumed."""
    folder.mkdir(parents=True, exist_ok=True)
    gold = {"valid": [story.gold for story in task.valid], "test": [story.gold for story in task.test]}
    corpus = folder / "corpus"
    if not corpus.is_dir():
        for split, labels in {"train": task.known, **gold}.items():
            with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
                for story, known in zip(getattr(task, split), labels, strict=True):
                    record = document_to_record(story.document(known), (*SLOTS, "scenario"))
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
        files = {split: folder / f"{split}.jsonl" for split in ("train", "valid", "test")}
        slots = ",".join((*SLOTS, "scenario"))
        ssdvae.prepare(files, corpus, slots=slots, cloze_items=0, jobs=1, progress=False)
    run = folder / "run"
    settings = {"observe": 1.0, **options, "vectors": vectors, "seed": seed}
    ssdvae.train(corpus, run, exist_ok=True, progress=False, **settings)
    return run


def label_ours(task: Task, run: Path, system: str) -> Iterator[Answer]:
    """Yield the predictions of a run: of the exact model by its reader, by its posterior, and by both."""
    model = ssdvae.load(run)
    corpus = ssdvae.Corpus(run.parent / "corpus")
    documents, frames = corpus.split("test"), model.frames
    masks = {
        scenario: np.isin(np.arange(len(frames)), [frames.id(label) for label in labels])
        for scenario, labels in task.allowed.items()
    }
    found: defaultdict[str, Predictions] = defaultdict(list)
    ranks: list[int] = []
    for rows in within_bounds(documents.lengths, 50):
        batch = collate(documents, rows)
        with torch.no_grad():
            posterior = infer_latents(model, batch)
            assert isinstance(posterior, FramePosterior)
            ahead = None
            if isinstance(model, ExactModel):
                scores = model._score(batch, model._no_frames(batch))
                ahead = torch.full(posterior.log_q.shape, -torch.inf).masked_scatter(
                    batch.mask[..., None], scores.log_frames
                )
        kinds = {"both": posterior.log_q, **(posterior.parts or {})}
        for place, row in enumerate(rows.tolist()):
            story = task.test[row]
            size, mask = len(story.events), masks[story.scenario]
            for kind, log_q in kinds.items():
                best = np.where(mask, log_q[place, :size].numpy(), -np.inf).argmax(1)
                found[kind].append([frames.name(int(frame)) for frame in best])
            if ahead is not None:
                ranks += _ranks(story, ahead[place, :size].numpy(), mask, frames)
    for kind, predictions in found.items():
        name = system if kind == "both" else f"{system}:{kind}"
        yield name, predictions, next_figures(ranks) if kind == "both" and ranks else {}


# The next script event.


def _ranks(story: Story, scores: NDArray[Any], mask: NDArray[np.bool_], frames: Any) -> list[int]:
    """Return the rank of each script event but the first among those of its scenario, before it is read."""
    steps = mask & np.array([frames.name(number).startswith(STEP) for number in range(len(mask))])
    ranks = []
    for label, row in zip(story.gold, scores, strict=True):
        if label and label.startswith(STEP):
            own = frames.id(label)
            known = own >= 0 and steps[own]
            ranks.append(1 + int((row[steps] > row[own]).sum()) if known else 10**9)
    return ranks[1:]


def next_figures(ranks: Sequence[int]) -> dict[str, float]:
    """Return accuracy and mean reciprocal rank; a label that was never seen has rank infinity."""
    reciprocal = 1 / np.array(ranks, dtype=float)
    return {"next_accuracy": float((reciprocal == 1).mean()), "next_mrr": float(reciprocal.mean())}


def bigrams(task: Task) -> dict[str, float]:
    """Rank the next script event by the gold one before it, backing off to how common it is."""
    pairs: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for story, labels in zip(task.train, task.known, strict=True):
        steps = [label for label in labels if label and label.startswith(STEP)]
        for before, after in pairwise(steps):
            pairs[story.scenario, before][after] += 1
    ranks = []
    for story in task.test:
        known = [label for label in task.allowed[story.scenario] if label.startswith(STEP)]
        steps = [label for label in story.gold if label and label.startswith(STEP)]
        for before, after in pairwise(steps):
            own = pairs[story.scenario, before]
            order = sorted(known, key=lambda label: (-own[label], known.index(label)))
            ranks.append(1 + order.index(after) if after in order else 10**9)
    return next_figures(ranks)


# Figures.


class Confusion:
    """Counts of each story, so that a bootstrap over stories is a product of matrices."""

    def __init__(self, stories: Sequence[Story], predictions: Predictions) -> None:
        labels = sorted({label for story in stories for label in story.gold if label})
        ids = {label: number for number, label in enumerate(labels)}
        self.right, self.gold, self.predicted = (np.zeros((len(stories), len(labels))) for _ in range(3))
        for row, (story, predicted) in enumerate(zip(stories, predictions, strict=True)):
            for label, guess in zip(story.gold, predicted, strict=True):
                if label:
                    self.gold[row, ids[label]] += 1
                    if guess in ids:
                        self.predicted[row, ids[guess]] += 1
                    self.right[row, ids[label]] += guess == label
        self.steps = np.array([label.startswith(STEP) for label in labels])

    def accuracy(self, weights: NDArray[Any] | None = None) -> Any:
        right, gold = (self._sum(x, weights).sum(-1) for x in (self.right, self.gold))
        return right / gold

    def macro_f1(self, weights: NDArray[Any] | None = None) -> Any:
        right, gold, predicted = (
            self._sum(x, weights)[..., self.steps] for x in (self.right, self.gold, self.predicted)
        )
        f1 = 2 * right / np.maximum(gold + predicted, 1)
        return (f1 * (gold > 0)).sum(-1) / np.maximum((gold > 0).sum(-1), 1)

    def _sum(self, counts: NDArray[Any], weights: NDArray[Any] | None) -> Any:
        return counts.sum(0) if weights is None else weights @ counts


def bootstrap_weights(stories: int, draws: int = 2000, seed: int = 1) -> NDArray[np.int64]:
    """Return how often each story is in each sample."""
    return np.random.default_rng(seed).multinomial(stories, np.full(stories, 1 / stories), draws)


def agreement(stories: Sequence[Story], classes: Sequence[Sequence[Any]]) -> float:
    """Return the adjusted mutual information of labels and classes: the mean over scenarios, by events."""
    from sklearn.metrics import adjusted_mutual_info_score

    pairs: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
    for story, found in zip(stories, classes, strict=True):
        pairs[story.scenario] += [(g, c) for g, c in zip(story.gold, found, strict=True) if g]
    values = [adjusted_mutual_info_score(*map(list, zip(*own, strict=True))) for own in pairs.values()]
    return float(np.average(values, weights=[len(own) for own in pairs.values()]))


def cluster(task: Task, words: Words, seed: int) -> list[list[int]]:
    """Cluster the events of each scenario by k-means on their vectors, one cluster per label."""
    from sklearn.cluster import KMeans

    models = {}
    for scenario in sorted({story.scenario for story in task.train}):
        own = [story for story in task.train if story.scenario == scenario]
        count = len({label for story in own for label in story.gold if label})
        x = np.concatenate([words.embed(story) for story in own])
        models[scenario] = KMeans(count, n_init=4, random_state=seed).fit(x)
    return [models[story.scenario].predict(words.embed(story)).tolist() for story in task.test]


def discover(task: Task, run: Path) -> Predictions:
    """Return the likeliest frame of each event, whatever its name."""
    model = ssdvae.load(run)
    documents = ssdvae.Corpus(run.parent / "corpus").split("test")
    found = []
    for rows in within_bounds(documents.lengths, 50):
        with torch.no_grad():
            posterior = infer_latents(model, collate(documents, rows))
        assert isinstance(posterior, FramePosterior)
        best = posterior.log_q.argmax(-1)
        found += [best[i, : documents.lengths[row]].tolist() for i, row in enumerate(rows.tolist())]
    return found


# Cells.


class Cells:
    """The rows of cells.csv, and the predictions of each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "cells.csv"
        folder.mkdir(parents=True, exist_ok=True)
        self.rows: list[dict[str, str]] = []
        if self.path.is_file():
            with self.path.open(newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))

    def has(self, *key: Any) -> bool:
        return any(tuple(row[name] for name in COLUMNS[:5]) == tuple(map(str, key)) for row in self.rows)

    def predictions(self, row: Mapping[str, Any]) -> Path:
        name = "-".join(str(row[name]).replace(":", ".") for name in COLUMNS[:5])
        return self.folder / "predictions" / f"{name}.json"

    def add(self, predictions: Any, **values: Any) -> None:
        row = {name: _shown(values.get(name, "")) for name in COLUMNS}
        path = self.predictions(row)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(predictions, ensure_ascii=False), encoding="utf-8")
        first = not self.path.is_file()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            if first:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append(row)
        print("  ".join(f"{name} {value}" for name, value in row.items() if value), flush=True)


def _shown(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) and value != round(value, 2) else str(value)


def run_cell(
    cells: Cells, stories: Sequence[Story], words: Words, vectors: Path, key: tuple[int, str, float, str, int]
) -> None:
    """Compute a cell, unless it is there."""
    fold, kind, share, system, seed = key
    if cells.has(*key):
        return
    task, start = make_task(stories, fold, kind, share), time.perf_counter()
    shared: dict[str, Any] = {"fold": fold, "kind": kind, "share": share, "seed": seed}
    events = sum(label is not None for story in task.test for label in story.gold)
    folder = cells.folder / "runs" / "-".join(map(str, key))
    if not share:
        found: Any
        if system == "k-means":
            found = cluster(task, words, seed)
        elif system == "ssdvae-exact":
            labels = {label for story in task.train for label in story.gold if label}
            found = discover(
                task, train_ours(task, vectors, folder, seed, unnamed_frames=len(labels), **EXACT)
            )
        else:
            whole = Task(task.train, [story.gold for story in task.train], task.valid, task.test)
            found = discover(
                task, train_ours(whole, vectors, folder, seed, model=system, observe=0.0, **PAPER)
            )
        figures = {"events": events, "ami": agreement(task.test, found)}
        cells.add(found, **shared, system=system, **figures, seconds=round(time.perf_counter() - start))
        return
    answers: Iterable[Answer]
    if system == "majority":
        answers = [(system, majority(task), bigrams(task))]
    elif system == "regression":
        answers = [(system, regression(task, words), {})]
    elif system == "bilstm-crf":
        answers = [(system, tagger(task, words, seed), {})]
    else:
        options = {"model": system, **(PAPER if system == "ssdvae" else EXACT)}
        answers = label_ours(task, train_ours(task, vectors, folder, seed, **options), system)
    for name, predictions, more in answers:
        accuracy, f1 = quality(task.test, predictions)
        figures = {"events": events, "accuracy": float(accuracy), "macro_f1": float(f1), **more}
        cells.add(predictions, **shared, system=name, **figures, seconds=round(time.perf_counter() - start))


def show_table(cells: Cells, stories: Sequence[Story], reference: str = "bilstm-crf") -> None:
    """Print each setting over the folds that all of its systems have, and differences from the reference."""
    settings: defaultdict[tuple[str, str], defaultdict[tuple[str, str], set[int]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for row in cells.rows:
        settings[row["kind"], row["share"]][row["system"], row["seed"]].add(int(row["fold"]))
    for (kind, share), systems in settings.items():
        folds = sorted(set.intersection(*systems.values()))
        print(f"\n{share} of {kind}, folds {folds}")
        counted: dict[str, Confusion] = {}
        for system, seed in systems:
            tested, found, rows = list[Story](), Predictions(), list[dict[str, str]]()
            for fold in folds:
                key = {"fold": fold, "kind": kind, "share": share, "system": system, "seed": seed}
                tested += make_task(stories, fold, kind, float(share)).test
                found += json.loads(cells.predictions(key).read_text(encoding="utf-8"))
                rows += [row for row in cells.rows if all(row[name] == str(key[name]) for name in key)]
            if float(share):
                counted[f"{system} {seed}"] = Confusion(tested, found)
            else:
                print(f"  {system:<24} AMI {agreement(tested, found):.3f}")
            if rows and rows[0]["next_mrr"]:
                means = [
                    np.mean([float(row[name]) for row in rows]) for name in ("next_accuracy", "next_mrr")
                ]
                print(f"  {system:<24} next script event: accuracy {means[0]:.3f}, MRR {means[1]:.3f}")
        base = next((name for name in counted if name.startswith(f"{reference} ")), None)
        for name, counts in counted.items():
            line = f"  {name:<24} accuracy {counts.accuracy():.3f}  macro F1 {counts.macro_f1():.3f}"
            if base is not None and name != base:
                weights = bootstrap_weights(len(counts.gold))
                for figure in ("accuracy", "macro_f1"):
                    gaps = getattr(counts, figure)(weights) - getattr(counted[base], figure)(weights)
                    low, high = np.quantile(gaps, [0.025, 0.975])
                    line += f"  {figure} − {reference}: {low:+.3f} to {high:+.3f}"
            print(line)


def main(
    stories: Path,
    vectors: Path,
    out: Path,
    folds: str,
    kinds: str,
    shares: str,
    systems: str,
    seed: int,
    table: bool,
) -> None:
    logging.disable(logging.WARNING)
    read = [Story.of(document, number) for number, document in enumerate(read_documents(stories))]
    cells = Cells(out)
    if not table:
        words = Words(read, vectors)
        own = words.write(out / "vectors.txt.gz")
        for fold in map(int, folds.split(",")):
            for share in map(float, shares.split(",")):
                for kind in kinds.split(",") if share else KINDS[:1]:
                    for system in systems.split(","):
                        unnamed = system in ("k-means", "ssdvae-exact", "ssdvae")
                        if unnamed if not share else system != "k-means":
                            run_cell(cells, read, words, own, (fold, kind, share, system, seed))
    show_table(cells, read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stories", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--out", type=Path, default=Path("inscript-cells"))
    parser.add_argument("--folds", default="0,1,2,3,4")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--shares", default="0.1,0.05,0.9,0.3,0")
    every = "majority,regression,bilstm-crf,ssdvae-exact,ssdvae,k-means"
    parser.add_argument("--systems", default=every)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    main(**vars(parser.parse_args()))
