"""Label the rest of a log: accuracy with 1, 5, 10 and 30 % of the labels known.

    python -m benchmarks.log_labels DATA --out CELLS [--logs tickets,Helpdesk --shares 1,10 --seeds 1,2,3]
    python -m benchmarks.log_labels --table --out CELLS

Three systems learn from the same labels, drawn at random in all cases, and label all other events:
``ssdvae-exact``, a classifier that reads one event, and one that reads the whole case (a BiGRU). A tenth of
the cases is for validation; there too only the drawn labels are known. The whole-case systems also read the
known labels of the other events of a case.

The logs: made tickets with their stages; Helpdesk, where the label of an event is its resource; and the
incidents of BPI 2013, where it is the lifecycle transition, which is cut off the name of the activity.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.log_cells import Cells, Key
from benchmarks.log_data import file_of, read_cases
from ssdvae.data.events import Document, Event
from ssdvae.storyworld.tickets import ticket_documents

CASES = 1000
"""Cases of each log."""

SHARES = (1, 5, 10, 30)
WIDTH, EPOCHS, PATIENCE, BATCH, DROPOUTS = 64, 40, 6, 32, (0.0, 0.3)


def labelled_log(name: str, data: Path) -> list[Document]:
    """Return the first cases of a log, every event with its label."""
    if name == "tickets":
        return list(ticket_documents(CASES, known=1.0))
    label = "org:resource" if name == "Helpdesk" else "lifecycle:transition"
    return [
        Document(case.id, tuple(map(_event, case.activities, case.resources)))
        for case in read_cases(file_of(data, name, "train"), resource=label)[:CASES]
    ]


def _event(activity: str, label: str) -> Event:
    return Event(activity.partition("+")[0], frame=label)


LOGS = ("tickets", "Helpdesk", "bpi_challenge_2013_incidents")


class Task(NamedTuple):
    """A log of which some labels are known: ids of words and labels, −1 where one is not known."""

    documents: Sequence[Document]
    words: list[NDArray[np.int64]]  # M by slots, for each case
    labels: list[NDArray[np.int64]]  # the true ones
    known: list[NDArray[np.int64]]
    valid: NDArray[np.bool_]  # cases for validation
    names: list[str]
    size: int  # of the vocabulary

    @classmethod
    def of(cls, documents: Sequence[Document], share: float, seed: int) -> Task:
        """Draw the labels that are known; those of a smaller share are among those of a larger one."""
        draws = np.random.default_rng(seed)
        ids: dict[tuple[int, str], int] = {}
        slots = 1 + max(len(event.arguments) for document in documents for event in document.events)
        names = sorted({event.frame or "" for document in documents for event in document.events})
        words, labels, known = [], [], []
        for document in documents:
            rows = [
                [ids.setdefault((slot, word), len(ids)) for slot, word in enumerate(event.padded(slots))]
                for event in document.events
            ]
            true = np.array([names.index(event.frame or "") for event in document.events])
            words.append(np.array(rows))
            labels.append(true)
            known.append(np.where(draws.random(len(true)) < share, true, -1))
        valid = draws.permutation(len(documents)) < len(documents) // 10
        return cls(documents, words, labels, known, valid, names, len(ids))

    def accuracy(self, found: Sequence[NDArray[np.int64]]) -> float:
        """Return the accuracy where the label is not known."""
        hidden = np.concatenate(self.known) < 0
        return float((np.concatenate(found) == np.concatenate(self.labels))[hidden].mean())


class Classifier(nn.Module):
    """The label of an event from its words, and perhaps from the whole case and its known labels."""

    def __init__(self, task: Task, whole: bool, dropout: float) -> None:
        super().__init__()
        slots, labels = task.words[0].shape[1], len(task.names)
        self.whole = whole
        self.words = nn.Embedding(task.size, WIDTH // 2)
        self.inner = nn.Sequential(nn.Linear(slots * WIDTH // 2, WIDTH), nn.ReLU(), nn.Dropout(dropout))
        self.labels = nn.Embedding(labels + 1, WIDTH)
        self.body = nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(2 * WIDTH if whole else WIDTH, labels)

    def forward(self, words: Tensor, shown: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of the labels; ``shown`` are the known ones that may be read, −1 elsewhere."""
        events = self.inner(self.words(words).flatten(2))
        if not self.whole:
            return self.out(events)  # type: ignore[no-any-return]
        packed = nn.utils.rnn.pack_padded_sequence(
            events + self.labels(shown + 1), lengths, batch_first=True, enforce_sorted=False
        )
        around, _ = nn.utils.rnn.pad_packed_sequence(self.body(packed)[0], batch_first=True)
        return self.out(self.dropout(torch.cat([events, around], dim=2)))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Batch:
    words: Tensor
    known: Tensor
    lengths: Tensor


def pad(task: Task, rows: Sequence[int]) -> Batch:
    longest = max(len(task.known[row]) for row in rows)
    words = torch.zeros(len(rows), longest, task.words[0].shape[1], dtype=torch.long)
    known = torch.full((len(rows), longest), -1)
    for place, row in enumerate(rows):
        words[place, : len(task.words[row])] = torch.from_numpy(task.words[row])
        known[place, : len(task.known[row])] = torch.from_numpy(task.known[row])
    return Batch(words, known, torch.tensor([len(task.known[row]) for row in rows]))


def fit_classifier(task: Task, whole: bool, dropout: float, seed: int) -> tuple[Classifier, float]:
    """Train on the known labels of the training cases; keep the epoch with the lowest validation loss.

    A label is read or learned, never both: in half of the cases all are hidden, in the others some.
    """
    torch.manual_seed(seed)
    model, shuffle = Classifier(task, whole, dropout), np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.01)
    train = [row for row in np.flatnonzero(~task.valid).tolist() if (task.known[row] >= 0).any()]
    valid = pad(task, np.flatnonzero(task.valid).tolist())
    nothing = torch.full_like(valid.known, -1)
    best, weights, stale = float("inf"), copy.deepcopy(model.state_dict()), 0
    for _ in range(EPOCHS):
        model.train()
        order = shuffle.permutation(train)
        for start in range(0, len(order), BATCH):
            batch = pad(task, order[start : start + BATCH].tolist())
            rate = (2 * torch.rand(len(batch.known), 1) - 1).clamp_min(0)
            shown = torch.rand(batch.known.shape) < rate
            logits = model(batch.words, batch.known.where(shown, -1), batch.lengths)
            targets = batch.known.masked_fill(shown, -1) if whole else batch.known
            loss = functional.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="sum"
            )
            (loss / (targets >= 0).sum().clamp_min(1)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            logits = model(valid.words, nothing, valid.lengths)
            figure = functional.cross_entropy(logits.flatten(0, 1), valid.known.flatten(), ignore_index=-1)
        stale += 1
        if float(figure) < best:
            best, weights, stale = float(figure), copy.deepcopy(model.state_dict()), 0
        if stale >= PATIENCE:
            break
    model.load_state_dict(weights)
    return model, best


def classify(task: Task, whole: bool, seed: int) -> list[NDArray[np.int64]]:
    """Return the label of each event by the classifier whose dropout is better on validation."""
    fits = [fit_classifier(task, whole, dropout, seed) for dropout in DROPOUTS]
    model, _ = min(fits, key=lambda one: one[1])
    model.eval()
    found: list[NDArray[np.int64]] = []
    for start in range(0, len(task.words), 10 * BATCH):
        batch = pad(task, range(start, min(start + 10 * BATCH, len(task.words))))
        with torch.no_grad():
            best = model(batch.words, batch.known, batch.lengths).argmax(-1)
        found += [row[:length].numpy() for row, length in zip(best, batch.lengths.tolist(), strict=True)]
    return found


def infer(task: Task, seed: int, folder: Path) -> list[NDArray[np.int64]]:
    """Return the label of each event by our default model."""
    import ssdvae
    from ssdvae.data.readers import write_jsonl

    folder.mkdir(parents=True, exist_ok=True)
    documents = [_with_known(task, row) for row in range(len(task.documents))]
    parts = {"train": ~task.valid, "valid": task.valid, "test": task.valid}
    files = {split: folder / f"{split}.jsonl" for split in parts}
    for split, rows in parts.items():
        write_jsonl(files[split], (documents[row] for row in np.flatnonzero(rows)))
    corpus = folder / "corpus"
    if not corpus.exists():
        ssdvae.prepare(files, corpus, cloze_items=0, jobs=1, progress=False)
    run = ssdvae.train(
        corpus, folder / "run", exist_ok=True, progress=False, observe=1.0, seed=seed, precision="fp32"
    )
    ids = {name: number for number, name in enumerate(task.names)}
    answers = ssdvae.infer(run.folder, documents, observe_frames=True, progress=False)
    return [np.array([ids[event.frames[0].name] for event in answer.events]) for answer in answers]


def _with_known(task: Task, row: int) -> Document:
    document = task.documents[row]
    events = [
        event.changed(frame=task.names[known] if known >= 0 else None)
        for event, known in zip(document.events, task.known[row].tolist(), strict=True)
    ]
    return Document(document.id, tuple(events))


MODELS = ("one-event", "whole-case", "ssdvae-exact")


def measure(
    data: Path, cells: Cells, logs: Sequence[str], shares: Sequence[int], seeds: Sequence[int]
) -> None:
    """Compute the cells that are not there."""
    torch.set_num_threads(1)
    for key in (
        Key(log, model, seed, f"{share}%")
        for log in logs
        for share in shares
        for seed in seeds
        for model in MODELS
    ):
        if key in cells:
            continue
        task = Task.of(labelled_log(key.log, data), int(key.split[:-1]) / 100, key.seed)
        start = time.process_time()
        if key.model == "ssdvae-exact":
            found = infer(task, key.seed, cells.folder / "runs" / key.name.replace("%", ""))
        else:
            found = classify(task, key.model == "whole-case", key.seed)
        figures = {"accuracy": task.accuracy(found), "train_seconds": time.process_time() - start}
        cells.add(key, figures, {}, {})
        print(key.name, f"{figures['accuracy']:.1%}", f"{figures['train_seconds']:.0f} s", flush=True)


def table(cells: Cells) -> str:
    """Return the accuracies in Markdown."""
    found: defaultdict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, row in cells.read().items():
        found[key.log, key.split][key.model].append(100 * float(row["accuracy"]))
    lines = [f"| log | labels known | {' | '.join(MODELS)} |", f"|{'---|' * (2 + len(MODELS))}"]
    for (log, share), models in found.items():
        lines.append(f"| {log} | {share} | {' | '.join(_mean(models[model]) for model in MODELS)} |")
    return "\n".join(lines)


def _mean(values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else "")


def _numbers(text: str) -> Iterator[int]:
    return (int(part) for part in text.split(","))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="?", help="folder of the public logs")
    parser.add_argument("--out", type=Path, required=True, help="folder of the cells")
    parser.add_argument("--table", action="store_true", help="print the table of the cells")
    parser.add_argument("--logs", default=",".join(LOGS))
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), help="known labels, in percent")
    parser.add_argument("--seeds", default="1,2,3")
    given = parser.parse_args(arguments)
    if given.table:
        print(table(Cells(given.out)))
        return
    if given.data is None:
        parser.error("name the folder of the public logs")
    shares, seeds = _numbers(given.shares), _numbers(given.seeds)
    measure(given.data, Cells(given.out), given.logs.split(","), [*shares], [*seeds])


if __name__ == "__main__":
    main()
