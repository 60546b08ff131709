"""Which frames, transitions and words differ between groups of documents.

For a feature that document d has x_d times among n_d (events, pairs of neighbours, or words), with the
overall rate r = Σ x / Σ n, a group A has the surplus

    T = Σ_{d in A} (x_d − r n_d),        z = T / √Var T

where Var T is that over all ways to choose as many documents as A has. A **permutation test over documents**
shuffles the groups again and again. The p of a feature is the share of the shuffles in which *any* feature of
*any* group has as large a |z| (the max statistic of Westfall and Young): the chance that anything at all is
found where there is nothing is at most that p, however many features there are. The size of an effect is the
ratio of its rate in the group to that in all others.

Groups are a column of a table (.csv, .tsv, .parquet) or of JSON lines that also has the ids of documents. The
files that a corpus was prepared from are such tables, and may have columns that `prepare` does not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ssdvae.data.batches import Batch
from ssdvae.data.readers.rows import DOCUMENT, json_records, table_cells
from ssdvae.io.errors import DataError, UserError, shorten, shorten_text
from ssdvae.io.files import AnyPath, sha256, stop_at_first_error
from ssdvae.models.base import Model
from ssdvae.models.latents import FramePosterior

if TYPE_CHECKING:
    from scipy.sparse import csr_array


Array = NDArray[np.float64]
Kind = Literal["frame", "transition", "word"]

BLOCK = 64
"""Shuffles at a time, which bounds the memory."""


@dataclass(frozen=True)
class Features:
    """Counts of the features of each document, and its size."""

    kind: Kind
    names: tuple[str, ...]  # K
    counts: csr_array  # N K
    sizes: Array  # N


@dataclass(frozen=True)
class Difference:
    """A feature that a group has more often than the other documents."""

    group: str
    kind: Kind
    name: str
    rate: float  # in the group
    rate_elsewhere: float
    count: float  # in the group
    z: float
    p: float  # corrected for all features and groups

    @property
    def ratio(self) -> float:
        """The size of the effect; infinite for what the others never have."""
        return self.rate / self.rate_elsewhere if self.rate_elsewhere else float("inf")


@dataclass(frozen=True)
class Comparison:
    """All differences, the highest z first."""

    groups: dict[str, int]  # documents of each
    tests: int
    permutations: int
    differences: list[Difference]

    def found(self, level: float = 0.05) -> list[Difference]:
        """Return the differences with p ≤ ``level``, which bounds the family-wise error rate."""
        return [difference for difference in self.differences if difference.p <= level]


class _PermutationTest:
    """One kind of features, with what its test statistic needs."""

    def __init__(self, features: Features) -> None:
        x, n = features.counts, features.sizes
        from scipy.sparse import csr_array  # slow to import, and most of what explains needs none

        self.features, self.transposed = features, csr_array(x.T)
        total, size = np.asarray(x.sum(0)).ravel(), n.sum()
        self.total, self.size, self.rate = total, size, total / max(size, 1)
        squares = np.asarray((x * x).sum(0)).ravel()
        # Σ (x − r n)², without making it dense.
        self.spread = squares - 2 * self.rate * (self.transposed @ n) + self.rate**2 * (n @ n)

    def z(self, chosen: Array) -> Array:
        """Return z of each feature for each choice of documents: N R → K R."""
        documents = len(chosen)
        inside = chosen.sum(0)
        surplus = self.transposed @ chosen - np.outer(self.rate, self.features.sizes @ chosen)
        variance = np.outer(self.spread, inside * (documents - inside) / (documents * (documents - 1)))
        # What every document has at the same rate differs nowhere; rounding must not make it certain.
        steady = self.spread <= 1e-9 * np.maximum(self.total, 1)
        variance[steady] = np.inf
        return np.asarray(surplus / np.sqrt(variance))


def compare(
    features: Sequence[Features], groups: Sequence[str | None], permutations: int = 1000, seed: int = 1
) -> Comparison:
    """Test the features of documents against their groups; documents without a group (None) are left out."""
    known = np.array([group is not None for group in groups])
    names, member = np.unique([group for group in groups if group is not None], return_inverse=True)
    if len(names) < 2:
        found = f"{len(names)} group{'s' * (len(names) != 1)} among these documents"
        raise UserError(f"--compare: found {found}, expected at least 2")
    tested = [
        _PermutationTest(Features(f.kind, f.names, f.counts[known], f.sizes[known]))
        for f in features
        if f.names
    ]
    chosen = (member[:, None] == np.arange(len(names))).astype(np.float64)
    # Of two groups, one is more where the other is less.
    shown = range(len(names)) if len(names) > 2 else range(1)
    z = [t.z(chosen[:, list(shown)]) for t in tested]
    largest = _largest_by_chance(tested, chosen[:, list(shown)], permutations, seed)
    differences = []
    for t, scores in zip(tested, z, strict=True):
        for group in range(len(names)):
            column, sign = (group, 1) if group in shown else (0, -1)
            inside = chosen[:, group]
            counts = t.transposed @ inside
            size = t.features.sizes @ inside
            for k, name in enumerate(t.features.names):
                score = sign * scores[k, column]
                if score <= 0:
                    continue  # the groups that have it less often are in the others' lines
                p = (1 + np.count_nonzero(largest >= score - 1e-9)) / (1 + permutations)
                elsewhere = (t.total[k] - counts[k]) / max(t.size - size, 1)
                differences.append(
                    Difference(
                        str(names[group]),
                        t.features.kind,
                        name,
                        float(counts[k] / max(size, 1)),
                        float(elsewhere),
                        float(counts[k]),
                        float(score),
                        float(p),
                    )
                )
    differences.sort(key=lambda d: -d.z)
    sizes = dict(zip(map(str, names), chosen.sum(0).astype(int).tolist(), strict=True))
    return Comparison(
        sizes, sum(len(t.features.names) for t in tested) * len(shown), permutations, differences
    )


def _largest_by_chance(
    tested: Sequence[_PermutationTest], chosen: Array, permutations: int, seed: int
) -> Array:
    """Return the largest |z| of any feature and group in each shuffle of the documents."""
    draw = np.random.default_rng(seed)
    documents, groups = chosen.shape
    largest = np.zeros(permutations)
    for start in range(0, permutations, BLOCK):
        count = min(BLOCK, permutations - start)
        orders = draw.permuted(np.tile(np.arange(documents), (count, 1)), axis=1)
        shuffled = chosen[orders].transpose(1, 0, 2).reshape(documents, count * groups)
        for t in tested:
            found = np.abs(t.z(shuffled)).max(0).reshape(count, groups).max(1)
            np.maximum(largest[start : start + count], found, out=largest[start : start + count])
    return largest


Ints = NDArray[np.int64]


class FeatureCounts:
    """Counts of the most likely frames, transitions and words of documents, added in their order.

    Features with a total below ``min_count`` are left out: they could not be significant, and would only make
    the correction larger.
    """

    def __init__(self, model: Model, min_count: float) -> None:
        self.model, self.min_count = model, max(min_count, 1)
        self.documents = 0
        self.frames: list[Ints] = []  # pairs of document and number
        self.transitions: list[Ints] = []
        self.words: list[Ints] = []

    def add(self, posterior: FramePosterior, batch: Batch) -> None:
        mask = batch.mask.cpu().numpy()
        frames, tokens = posterior.value.cpu().numpy(), batch.tokens.cpu().numpy()
        rows = self.documents + np.arange(len(mask))[:, None]
        both = mask[:, 1:]  # an event that is there has one before it that is
        self.frames.append(_pairs(np.broadcast_to(rows, mask.shape)[mask], frames[mask]))
        codes = frames[:, :-1] * len(self.model.frames) + frames[:, 1:]
        self.transitions.append(_pairs(np.broadcast_to(rows, both.shape)[both], codes[both]))
        events = np.broadcast_to(rows[..., None], tokens.shape)[mask]
        self.words.append(_pairs(events.ravel(), tokens[mask].ravel()))
        self.documents += len(mask)

    def result(self) -> list[Features]:
        frame, words = self.model.frames.name, self.model.vocabulary
        size = len(self.model.frames)
        silent = (words.missing, words.unknown)  # no content words
        return [
            self._features("frame", self.frames, frame),
            self._features(
                "transition", self.transitions, lambda c: f"{frame(c // size)} → {frame(c % size)}"
            ),
            self._features("word", self.words, words.name, silent),
        ]

    def _features(
        self, kind: Kind, parts: Sequence[Ints], name: Callable[[int], str], silent: Sequence[int] = ()
    ) -> Features:
        documents, numbers = np.concatenate(parts, axis=1)
        sizes = np.bincount(documents, minlength=self.documents).astype(np.float64)
        values, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        kept = (counts >= self.min_count) & ~np.isin(values, silent)
        column = np.cumsum(kept) - 1
        here = kept[place]
        ones = np.ones(int(here.sum()))
        from scipy.sparse import csr_array  # slow to import, and most of what explains needs none

        table = csr_array(
            (ones, (documents[here], column[place[here]])), shape=(self.documents, int(kept.sum()))
        )
        table.sum_duplicates()
        return Features(kind, tuple(name(int(value)) for value in values[kept]), table, sizes)


def _pairs(documents: Ints, numbers: Ints) -> Ints:
    return np.stack([documents, numbers]).astype(np.int64)


# Groups.

GROUP = "group"
"""The default name of the column of groups."""

FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}


def read_groups(path: AnyPath, column: str = GROUP) -> dict[str, str]:
    """Return the group of each document by its id; documents without a group are left out.

    A table of two columns needs no names: the first is the id, the second the group.
    """
    path = Path(path)
    format = FORMATS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if format is None:
        expected = ".csv, .tsv, .jsonl (plain or .gz) or .parquet"
        raise DataError(path, None, "a file of groups of an unknown kind", expected, "name it by its ending")
    if format == "jsonl":
        rows = _json_rows(path, column)
    else:
        choose = partial(_find_places, path, column)
        rows = table_cells(path, format, stop_at_first_error, choose)
    groups: dict[str, str] = {}
    for number, cells in rows:
        id, group = (cell.strip() if isinstance(cell, str) else cell for cell in cells)
        if id is None or group in (None, ""):
            continue
        first = groups.setdefault(str(id), str(group))
        if first != str(group):
            found = f"the document {shorten(id)} in the groups {shorten(first)} and {shorten(group)}"
            raise DataError(path, number, found, "one group for each document")
    if not groups:
        raise DataError(path, None, f"no document with a {column!r}", "the id and the group of documents")
    return groups


def groups_of_sources(sources: Sequence[tuple[Path, str]], column: str) -> dict[str, str]:
    """Return the groups in the files that a corpus was prepared from, given their paths and SHA-256."""
    there = [path for path, digest in sources if path.is_file() and sha256(path) == digest]
    if not there:
        raise UserError(
            f"--compare {column}: there is no such file, and those that the corpus was prepared from are not "
            "where they were\nname a file with the ids and groups of documents"
        )
    groups: dict[str, str] = {}
    problem: DataError | None = None
    for path in there:
        try:
            groups |= read_groups(path, column)
        except DataError as error:
            problem = error
    if not groups and problem is not None:
        raise UserError(
            f"--compare {column}: there is no such file, nor such a column in those that the corpus was "
            f"prepared from\n{problem}"
        ) from problem
    return groups


def _find_places(path: Path, column: str, header: list[str]) -> tuple[int, int]:
    """Return the indices of the ids and of the groups."""
    names = [name.strip().lower() for name in header]
    ids = [names.index(name) for name in DOCUMENT if names.count(name) == 1]
    if ids and names.count(column.lower()) == 1:
        return ids[0], names.index(column.lower())
    if len(names) == 2 and column == GROUP:
        return 0, 1
    found = shorten_text(f"the columns {', '.join(header)}")
    raise DataError(path, None, found, f"the columns {' or '.join(DOCUMENT)}, and {column}")


def _json_rows(path: Path, column: str) -> Iterator[tuple[int, tuple[Any, Any]]]:
    for number, record in json_records(path, stop_at_first_error):
        if not isinstance(record.get("id"), str | int):
            raise DataError(path, number, shorten(dict(record)), f'{{"id": "a", "{column}": "early"}}')
        if not isinstance(record.get(column), str | int | float | None):
            raise DataError(path, number, f"{shorten(record[column])} under {column!r}", "a word or a number")
        yield number, (record["id"], record.get(column))
