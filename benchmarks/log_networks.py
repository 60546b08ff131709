"""A plain GRU and a plain transformer for logs, in plain PyTorch: next activity, next and remaining time.

Both read the activity, the time (since the event before, since the beginning of the case, hour and day of the
week) and perhaps the resource, and have three outputs: a softmax over the classes, and two medians in days,
trained by the absolute error. ``tune`` searches the options one after the other on the validation split.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.log_data import Case, Classes, Log, Prefixes

EPOCHS, READ, TRIAL, PATIENCE, BATCH = 20, 300_000, 100_000, 4, 64
"""Most epochs, and events that are read, at least three times, as by our default; in a trial; early stopping;
cases in a batch."""


@dataclass(frozen=True)
class NetworkOptions:
    body: str  # gru or transformer
    width: int = 64
    dropout: float = 0.1
    learning_rate: float = 3e-3
    resource: bool = False


SEARCH: Sequence[tuple[str, Any]] = (
    ("width", 128),
    ("dropout", 0.3),
    ("resource", True),
    ("learning_rate", 1e-3),
)
"""What ``tune`` tries, one after the other; a change stays if it is better on the validation split."""


class Network(nn.Module):
    """Three outputs after each prefix of a case."""

    def __init__(self, options: NetworkOptions, classes: int, resources: int) -> None:
        super().__init__()
        width = options.width
        self.options = options
        self.activity = nn.Embedding(classes, width)
        self.resource = nn.Embedding(resources, width) if options.resource else None
        self.time = nn.Linear(FEATURES, width)
        self.dropout = nn.Dropout(options.dropout)
        self.body: nn.Module
        if options.body == "gru":
            self.body = nn.GRU(width, width, batch_first=True)
        else:
            layer = nn.TransformerEncoderLayer(
                width, 4, 2 * width, options.dropout, "gelu", batch_first=True, norm_first=True
            )
            self.body = nn.TransformerEncoder(layer, 2, nn.LayerNorm(width), enable_nested_tensor=False)
        self.next = nn.Linear(width, classes)
        self.times = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, batch: Padded) -> tuple[Tensor, Tensor]:
        """Return log p of the classes (B T K), and both times in units of their spread (B T 2)."""
        x = self.activity(batch.activities) + self.time(batch.features)
        if self.resource is not None:
            x = x + self.resource(batch.resources)
        x = self.dropout(x)
        if isinstance(self.body, nn.GRU):
            states, _ = self.body(x)
        else:
            length = x.shape[1]
            causal = nn.Transformer.generate_square_subsequent_mask(length)
            states = self.body(x + positions(length, x.shape[2]), mask=causal, is_causal=True)
        states = self.dropout(states)
        return self.next(states).log_softmax(-1), self.times(states)


def positions(length: int, width: int) -> Tensor:
    """Return the sine and cosine vectors of places."""
    angle = torch.arange(length)[:, None] * torch.exp(-np.log(1e4) * torch.arange(0, width, 2) / width)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


FEATURES = 6


def features(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the features of the times of a case."""
    since = np.diff(days, prepend=days[0])
    hour, weekday = 2 * np.pi * (days % 1), 2 * np.pi * (days % 7) / 7
    elapsed = days - days[0]
    logs = [np.log(x * 24 + 0.01) / 3 for x in (since, elapsed)]
    return np.stack([*logs, np.sin(hour), np.cos(hour), np.sin(weekday), np.cos(weekday)], axis=1)


@dataclass(frozen=True)
class Padded:
    """Cases of a batch, padded to the longest."""

    activities: Tensor
    resources: Tensor
    features: Tensor
    next: Tensor  # −1 in the padding
    days: Tensor  # B T 2, next and remaining; NaN where there is none


class Encoder:
    """Turns cases into tensors: the ids of resources, and the spread of the times of the training split."""

    def __init__(self, cases: Sequence[Case], classes: Classes) -> None:
        self.classes = classes
        names = sorted({name for case in cases for name in case.resources})
        self.resources = {name: number for number, name in enumerate(names, start=1)}  # 0 is unknown
        prefixes = Prefixes.of(cases, classes)
        self.unseen = len(classes.ids) / (len(prefixes) + len(classes.ids))
        times = np.stack([prefixes.next_days, prefixes.remaining_days], axis=1)
        self.median = np.nanmedian(times, axis=0)
        self.spread = np.nanmean(np.abs(times - self.median), axis=0) + 1e-6

    def pad(self, cases: Sequence[Case]) -> Padded:
        size, length = len(cases), max(len(case.days) for case in cases)
        activities, resources = (torch.zeros(size, length, dtype=torch.long) for _ in range(2))
        inputs, days = torch.zeros(size, length, FEATURES), torch.full((size, length, 2), torch.nan)
        nexts = torch.full((size, length), -1)
        for row, case in enumerate(cases):
            n, prefixes = len(case.days), Prefixes.of([case], self.classes)
            activities[row, :n] = torch.tensor(self.classes.encode(case.activities))
            resources[row, :n] = torch.tensor([self.resources.get(name, 0) for name in case.resources])
            inputs[row, :n] = torch.from_numpy(features(np.array(case.days)))
            nexts[row, :n] = torch.from_numpy(prefixes.next)
            days[row, :n] = torch.from_numpy(np.stack([prefixes.next_days, prefixes.remaining_days], 1))
        return Padded(activities, resources, inputs, nexts, days)


@dataclass(frozen=True)
class Fit:
    """A trained network, its loss on the validation split, and the seconds of its training."""

    network: Network
    encoder: Encoder
    loss: float
    seconds: float

    @torch.no_grad()
    def predict(self, cases: Sequence[Case]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log p of the classes, and both times in days, after each prefix.

        No class is learned for what was never seen: it has the estimate of Witten and Bell, T / (N + T).
        """
        self.network.eval()
        order = sorted(range(len(cases)), key=lambda row: len(cases[row].days))
        log_p: dict[int, NDArray[np.float64]] = {}
        days: dict[int, NDArray[np.float64]] = {}
        for start in range(0, len(order), 4 * BATCH):
            rows = order[start : start + 4 * BATCH]
            padded = self.encoder.pad([cases[row] for row in rows])
            scores, times = self.network(padded)
            p = scores.double().exp().numpy() * (1 - self.encoder.unseen)
            p[..., self.encoder.classes.unknown] += self.encoder.unseen
            for place, row in enumerate(rows):
                n = len(cases[row].days)
                log_p[row] = np.log(p[place, :n].clip(1e-30))
                found = times[place, :n].double().numpy() * self.encoder.spread + self.encoder.median
                days[row] = found.clip(0)
        every = range(len(cases))
        return np.concatenate([log_p[row] for row in every]), np.concatenate([days[row] for row in every])


def batches(cases: Sequence[Case], encoder: Encoder) -> list[Padded]:
    """Return batches of cases of similar length."""
    order = sorted(cases, key=lambda case: len(case.days))
    return [encoder.pad(order[start : start + BATCH]) for start in range(0, len(order), BATCH)]


def losses(network: Network, batch: Padded, encoder: Encoder) -> Tensor:
    """Return the sums of the three losses over the prefixes of a batch, and their numbers: 2 by 3."""
    log_p, times = network(batch)
    nats = functional.nll_loss(log_p.flatten(0, 1), batch.next.flatten(), ignore_index=-1, reduction="sum")
    true = (batch.days - torch.from_numpy(encoder.median)) / torch.from_numpy(encoder.spread)
    there = ~true.isnan()
    errors = (times - true.nan_to_num().float()).abs() * there
    counts = torch.stack([(batch.next >= 0).sum(), *there.sum((0, 1))])
    return torch.stack([torch.stack([nats, *errors.sum((0, 1))]), counts])


def fit(log: Log, options: NetworkOptions, seed: int, read: int = READ) -> Fit:
    """Train a network on the training split, and keep the epoch that is best on the validation split."""
    torch.manual_seed(seed)
    start, shuffle = time.process_time(), np.random.default_rng(seed)
    encoder = Encoder(log.train, log.classes)
    network = Network(options, len(log.classes), len(encoder.resources) + 1)
    optimizer = torch.optim.AdamW(network.parameters(), options.learning_rate, weight_decay=0.01)
    train, valid = batches(log.train, encoder), batches(log.valid, encoder)
    events = sum(len(case.days) for case in log.train)
    epochs = min(EPOCHS, max(3, round(read / events)))
    best, weights, stale = float("inf"), copy.deepcopy(network.state_dict()), 0
    for epoch in range(epochs):
        network.train()
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * (1 - epoch / epochs)
        for place in shuffle.permutation(len(train)):
            sums, counts = losses(network, train[place], encoder)
            (sums / counts.clamp_min(1)).sum().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        network.eval()
        with torch.no_grad():
            sums, counts = torch.stack([losses(network, batch, encoder) for batch in valid]).sum(0)
        loss = float((sums / counts.clamp_min(1)).sum())
        stale += 1
        if loss < best:
            best, weights, stale = loss, copy.deepcopy(network.state_dict()), 0
        if stale >= PATIENCE:
            break
    network.load_state_dict(weights)
    return Fit(network, encoder, best, time.process_time() - start)


Trial = Callable[[NetworkOptions], float]


def tune(start: NetworkOptions, loss_of: Trial) -> NetworkOptions:
    """Return the best options of a coordinate search: each change of ``SEARCH`` stays if it helps."""
    chosen, best = start, loss_of(start)
    for name, value in SEARCH:
        changed = replace(chosen, **{name: value})
        if (loss := loss_of(changed)) < best:
            chosen, best = changed, loss
    return chosen
