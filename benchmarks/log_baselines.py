"""Counting baselines: back-off n-grams of activities, and median times after the last activities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.log_data import Case, Classes, Prefixes

START = -1
FEWEST = 5
"""Times that a median needs; with fewer, the shorter context answers."""

Context = tuple[int, ...]


def contexts(cases: Sequence[Case], classes: Classes, size: int) -> Iterator[Context]:
    """Yield the last ``size`` activities of each prefix; the beginning of a case counts as one."""
    for case in cases:
        history = (START, *classes.encode(case.activities))
        for end in range(2, len(history) + 1):
            yield history[max(0, end - size) : end]


class NGram:
    """p(next | last n − 1 activities), smoothed by the shorter contexts as Witten and Bell did:

        p(v | u) = (c(u, v) + T(u) p(v | shorter u)) / (c(u) + T(u))

    T(u) is the number of different v after u. Below the empty context all is unknown, so that an activity
    which was never seen has the probability T / (N + T) there.
    """

    def __init__(self, cases: Sequence[Case], classes: Classes, order: int) -> None:
        self.classes, self.order = classes, order
        self.counts: defaultdict[Context, NDArray[np.float64]] = defaultdict(lambda: np.zeros(len(classes)))
        nexts = Prefixes.of(cases, classes).next.tolist()
        for context, follower in zip(contexts(cases, classes, order - 1), nexts, strict=True):
            for start in range(len(context) + 1):
                self.counts[context[start:]][follower] += 1
        self.cache: dict[Context, NDArray[np.float64]] = {}

    def probabilities(self, context: Context) -> NDArray[np.float64]:
        """Return p(next) after the last activities."""
        if context not in self.cache:
            if context:
                shorter = self.probabilities(context[1:])
            else:
                shorter = np.eye(len(self.classes))[self.classes.unknown]
            counts = self.counts.get(context)
            if counts is None:
                return shorter  # not cached: there are few contexts in training and any number in use
            types = np.count_nonzero(counts)
            self.cache[context] = (counts + types * shorter) / (counts.sum() + types)
        return self.cache[context]

    def log_p(self, cases: Sequence[Case]) -> NDArray[np.float64]:
        """Return log p of each class after each prefix."""
        rows = [self.probabilities(context) for context in contexts(cases, self.classes, self.order - 1)]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.stack(rows)))


class MedianTimes:
    """The median of the training times after the same last ``size`` activities, or after fewer of them."""

    def __init__(self, cases: Sequence[Case], classes: Classes, size: int, days: NDArray[np.float64]) -> None:
        self.classes, self.size = classes, size
        times: defaultdict[Context, list[float]] = defaultdict(list)
        for context, value in zip(contexts(cases, classes, size), days.tolist(), strict=True):
            if not np.isnan(value):
                for start in range(len(context) + 1):
                    times[context[start:]].append(value)
        self.medians = {
            context: float(np.median(values))
            for context, values in times.items()
            if len(values) >= FEWEST or not context
        }

    def forecast(self, cases: Sequence[Case]) -> NDArray[np.float64]:
        """Return the median time after each prefix, in days."""
        found = []
        for context in contexts(cases, self.classes, self.size):
            while context not in self.medians:
                context = context[1:]
            found.append(self.medians[context])
        return np.array(found)
