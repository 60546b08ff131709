"""Event logs in three given splits, as prefixes of cases: what comes next, when, and how long it still takes.

A prefix is the first k ≥ 1 events of a case. After the last event the next class is the end of the case. An
activity that the training split does not have is the class *unknown*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssdvae.data.columns import XES
from ssdvae.data.readers.xes import xes_events
from ssdvae.io.errors import DataError

LOGS = (
    "Helpdesk",
    "env_permit",
    "BPI_Challenge_2012_O",
    "BPI_Challenge_2012_W_Complete",
    "bpi_challenge_2013_incidents",
    "BPI_Challenge_2012_Complete",
)
SPLITS = {"train": "train", "valid": "val", "test": "test"}
DAY = 86_400.0


class Case(NamedTuple):
    """A case: its activities, resources and times in days, in the order of time."""

    id: str
    activities: tuple[str, ...]
    resources: tuple[str, ...]
    days: tuple[float, ...]


def file_of(folder: Path, log: str, split: str) -> Path:
    """Return the file of a split."""
    return folder / f"{SPLITS[split]}_{log}.xes.gz"


def read_cases(path: Path, resource: str = XES.arguments[0]) -> list[Case]:
    """Return the cases of a log in XES, in the order of their first events in the file."""

    def refuse(error: DataError) -> None:
        raise error

    rows: defaultdict[str, list[tuple[float, str, str]]] = defaultdict(list)
    assert XES.time is not None
    for _, event in xes_events(path, refuse):
        when = datetime.fromisoformat(event[XES.time]).timestamp() / DAY
        rows[event[XES.case]].append((when, event[XES.head], event.get(resource, "")))
    cases = []
    for id, events in rows.items():
        days, activities, resources = zip(*sorted(events, key=lambda event: event[0]), strict=True)
        cases.append(Case(id, activities, resources, days))
    return cases


@dataclass(frozen=True)
class Classes:
    """What may come next: the activities of the training split, the end of the case, and the unknown."""

    ids: dict[str, int]

    @classmethod
    def of(cls, cases: Iterable[Case]) -> Classes:
        return cls({name: i for i, name in enumerate(sorted({a for c in cases for a in c.activities}))})

    def __len__(self) -> int:
        return len(self.ids) + 2

    @property
    def end(self) -> int:
        return len(self.ids)

    @property
    def unknown(self) -> int:
        return len(self.ids) + 1

    def encode(self, activities: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.ids.get(name, self.unknown) for name in activities)


@dataclass(frozen=True)
class Prefixes:
    """The prefixes of all cases, case by case and from short to long, and what is to be predicted."""

    case: NDArray[np.int64]
    next: NDArray[np.int64]  # class
    next_days: NDArray[np.float64]  # to the next event; NaN after the last
    remaining_days: NDArray[np.float64]  # to the last event; 0 after it

    def __len__(self) -> int:
        return len(self.case)

    @classmethod
    def of(cls, cases: Sequence[Case], classes: Classes) -> Prefixes:
        times = [np.array(case.days) for case in cases]
        followers = [(*classes.encode(case.activities[1:]), classes.end) for case in cases]
        return cls(
            np.repeat(np.arange(len(cases)), [len(case.days) for case in cases]),
            np.concatenate([np.array(row) for row in followers]),
            np.concatenate([np.append(np.diff(days), np.nan) for days in times]),
            np.concatenate([days[-1] - days for days in times]),
        )


@dataclass(frozen=True)
class Log:
    """The training split and those to choose and to measure on."""

    name: str
    folder: Path

    @cached_property
    def classes(self) -> Classes:
        return Classes.of(self.train)

    @cached_property
    def train(self) -> list[Case]:
        return self.split("train")

    @cached_property
    def valid(self) -> list[Case]:
        return self.split("valid")

    def split(self, name: str) -> list[Case]:
        return read_cases(file_of(self.folder, self.name, name))

    def prefixes(self, cases: Sequence[Case]) -> Prefixes:
        return Prefixes.of(cases, self.classes)
