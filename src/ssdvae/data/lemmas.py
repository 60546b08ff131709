"""Which lemma a word has as the head of an event: events have forms, and lexicons have lemmas."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssdvae.data.vocabulary import Inventory
from ssdvae.errors import DataError, Malformed
from ssdvae.files import atomic_write
from ssdvae.records import read_json
from ssdvae.shapes import check_shape

LEMMAS = "lemmas.json"


def one_word(lemma: str) -> str:
    """A lemma as the head of an event: ``act up`` is ``act_up``."""
    return "_".join(lemma.split())


def commonest_lemmas(counted: Counter[tuple[str, str]], words: Inventory) -> dict[str, str]:
    """The lemma that each word of an inventory has most often; of equals, the first by spelling."""
    best: dict[str, str] = {}
    for word, lemma in sorted(counted, key=lambda pair: (-counted[pair], pair)):
        if word in words:
            best.setdefault(word, lemma)
    return dict(sorted(best.items()))


def lemma_numbers(words: Sequence[str], lemmas: Mapping[str, str]) -> NDArray[np.int64]:
    """One number for each lemma: words that share it have the same; a word without one is its own lemma."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(lemmas.get(word, word), len(numbers)) for word in words])


def save_lemmas(lemmas: Mapping[str, str], path: Path) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(lemmas, ensure_ascii=False), encoding="utf-8")


def load_lemmas(path: Path) -> dict[str, str]:
    expected = "the lemmas that `ssdvae prepare` wrote"
    record = read_json(path, dict, expected)
    try:
        check_shape(record, dict[str, str])
    except Malformed as error:
        raise DataError(path, None, error.found, expected) from error
    found: dict[str, str] = record
    return found
