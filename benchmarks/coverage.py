"""Verbs of a text that a model would not know: how many of its verb tokens too few training events have.

    python benchmarks/coverage.py en_ewt-dev.conllu train-*.jsonl.gz

counts the words of the training events, the first 24 of each document as in the English model, and looks up
each verb (tag VERB) of the text as a model does: by its form, then by its lemma and its stem. Forms of be are
left out: `extract` makes no event of them.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ssdvae.data.events import MISSING, SLOTS, Event
from ssdvae.data.options import ExtractOptions
from ssdvae.data.vocabulary import UNKNOWN, Vocabulary
from ssdvae.extraction.readers import FORMATS
from ssdvae.inference.lookup import WordLookup
from ssdvae.io.files import stop_at_first_error


def count_words(files: list[Path], events: int) -> list[Counter[str]]:
    """Return how often each word stands in each slot."""
    counts: list[Counter[str]] = [Counter() for _ in SLOTS]
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                for event in json.loads(line)["events"][:events]:
                    for slot, count in zip(SLOTS, counts, strict=True):
                        if (word := event.get(slot)) is not None:
                            count[word.lower()] += 1
    return counts


def vocabulary_of(counts: list[Counter[str]], size: int, at_least: int) -> Vocabulary:
    """Return the most frequent words; as a head, one counts only if it is in so many events."""
    total = sum(counts, Counter[str]())
    names = [MISSING, UNKNOWN, *(word for word, _ in total.most_common(size - 2))]
    slots = np.array([[count[word] for word in names] for count in counts])
    slots[0, slots[0] < at_least] = 0
    return Vocabulary(names, slots.sum(0).tolist(), slots)


def verbs_of(text: Path) -> list[Event]:
    """Return the verbs of a text with their lemmas."""
    options, conllu = ExtractOptions(), FORMATS["conllu"]
    documents = (conllu.parse(raw, options) for raw in conllu.read(text, options, stop_at_first_error))
    trees = (tree for document in documents for tree in document.sentences)
    return [
        Event(token.form.lower(), lemma=token.lemma.lower())
        for tree in trees
        for token in tree.tokens
        if token.pos == "VERB" and token.lemma != "be"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path, help="a text with verb tags, in CoNLL-U")
    parser.add_argument("train", type=Path, nargs="+", help="files of training events, .jsonl.gz")
    parser.add_argument("--vocabulary", type=int, default=30_000, help="words of the model")
    parser.add_argument("--events", type=int, default=24, help="events of a document that are read")
    parser.add_argument("--at-least", type=int, default=5, help="training events that a known head has")
    options = parser.parse_args()
    vocabulary = vocabulary_of(
        count_words(options.train, options.events), options.vocabulary, options.at_least
    )
    model: Any = SimpleNamespace(vocabulary=vocabulary, vectors=None, slots=SLOTS, columns=None)
    known, verbs = WordLookup(model), verbs_of(options.text)
    read = [known.read(verb) for verb in verbs]
    bare = [known.read(verb.changed(lemma=None)) for verb in verbs]
    for name, unknown in (
        ("by its form", [one for one in read if not one.head_known]),
        ("by its form or stem", [one for one in bare if not one.has_evidence]),
        ("by its form, lemma or stem", [one for one in read if not one.has_evidence]),
    ):
        share = len(unknown) / len(verbs)
        print(f"not known {name}: {len(unknown):,} of {len(verbs):,} verb tokens, {share:.2%}")
    rest = Counter(verb.head for verb, one in zip(verbs, read, strict=True) if not one.has_evidence)
    print("most frequent of them:", ", ".join(f"{word} {count}" for word, count in rest.most_common(20)))


if __name__ == "__main__":
    main()
