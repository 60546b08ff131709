"""A table of word vectors beside the weights: what words mean, of more words than the vocabulary has.

The vectors are unit vectors in 8 bits, made by any means, such as an encoder of sentences. A model without
such a table works too.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.io.errors import DataError
from ssdvae.io.weights import load_weights, save_weights

WORD_VECTORS = "words.safetensors"

NEAR = 0.7
"""The cosine from which on one word may stand for another."""

LEVELS = 127
EXPECTED = "a table of word vectors"


class WordVectors:
    """The vectors of words as rows of 8-bit numbers; only their directions matter."""

    def __init__(self, words: Sequence[str], rows: NDArray[np.int8]) -> None:
        self.words, self.rows = tuple(words), rows
        self._ids = {word: row for row, word in enumerate(self.words)}

    @classmethod
    def of(cls, words: Sequence[str], vectors: NDArray[np.floating]) -> WordVectors:
        """Round vectors to 8 bits. Vectors of zeros are left out: they have no direction."""
        largest = np.abs(vectors).max(1)
        some = largest > 0
        rows = np.rint(vectors[some] / largest[some, None] * LEVELS).astype(np.int8)
        return cls([word for word, there in zip(words, some, strict=True) if there], rows)

    @cached_property
    def units(self) -> NDArray[np.float32]:
        rows = self.rows.astype(np.float32)
        units: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return units

    def nearest(self, word: str, known: Container[str]) -> str | None:
        """Return the nearest of the known words; None if none is near, or the word has no vector."""
        if word not in self._ids:
            return None
        cosines = self.units @ self.units[self._ids[word]]
        order: list[int] = np.argsort(-cosines, kind="stable").tolist()
        for row in order:
            if cosines[row] < NEAR:
                return None
            if self.words[row] != word and self.words[row] in known:
                return self.words[row]
        return None

    def of_words(self, words: Iterable[str]) -> Float[Tensor, "V e"]:
        """Return the unit vector of each word; zeros for a word without one."""
        rows = np.array([self._ids.get(word, len(self.words)) for word in words])
        return torch.from_numpy(np.pad(self.units, ((0, 1), (0, 0)))[rows])

    def write(self, folder: Path) -> None:
        text = "\n".join(self.words).encode()
        tensors = {
            "vectors": torch.from_numpy(self.rows),
            "words": torch.frombuffer(bytearray(text), dtype=torch.uint8),
        }
        save_weights(folder / WORD_VECTORS, tensors, {})

    @classmethod
    def read(cls, folder: Path) -> WordVectors | None:
        """Return the table in the folder of a model; None if it has none."""
        path = folder / WORD_VECTORS
        if not path.is_file():
            return None
        tensors, _ = load_weights(path, EXPECTED)
        try:
            rows = tensors["vectors"].numpy()
            words = bytes(tensors["words"].numpy()).decode().split("\n")
        except (KeyError, UnicodeDecodeError) as error:
            raise DataError(path, None, "no words and vectors", EXPECTED) from error
        if rows.dtype != np.int8 or rows.ndim != 2 or len(rows) != len(words) or not rows.any(1).all():
            raise DataError(path, None, f"{len(words)} words and {rows.shape} numbers", EXPECTED)
        return cls(words, rows)
