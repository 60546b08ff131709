"""A parser of one's own: no model can be had without a download, so the tests train a tiny one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.extraction.trees import CONSTRUCTIONS, rows_of
from tests.shared import made_once


@pytest.fixture(scope="session")
def spacy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spaCy model that knows the sentences of ``CONSTRUCTIONS`` by heart, each with a full stop."""
    return made_once(tmp_path_factory, "spacy", lambda folder: _train_parser(folder / "tiny")) / "tiny"


def _train_parser(folder: Path) -> None:
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example
    from thinc.api import fix_random_seed

    fix_random_seed(0)
    nlp = spacy.blank("en")
    examples = []
    lemmas: dict[str, str] = {}
    for _, tree, _ in CONSTRUCTIONS.values():
        rows = rows_of(tree)
        root = next(place for place, row in enumerate(rows) if row[3] == "0")
        lemmas |= {row[0].lower(): row[1] for row in rows}
        rows.append([".", ".", "PUNCT", str(root + 1), "punct"])
        gold = Doc(
            nlp.vocab,
            words=[row[0] for row in rows],
            spaces=[place < len(rows) - 2 for place in range(len(rows))],
            pos=[row[2] for row in rows],
            heads=[int(row[3]) - 1 if row[3] != "0" else place for place, row in enumerate(rows)],
            deps=[row[4] for row in rows],
        )
        examples.append(Example(nlp.make_doc(gold.text), gold))
    nlp.add_pipe("morphologizer")
    nlp.add_pipe("parser", config={"min_action_freq": 1})
    nlp.initialize(lambda: examples)
    for epoch in range(15):
        random.Random(epoch).shuffle(examples)
        for start in range(0, len(examples), 7):
            nlp.update(examples[start : start + 7])
    ruler = nlp.add_pipe("attribute_ruler")
    for form, lemma in lemmas.items():
        ruler.add([[{"LOWER": form}]], {"LEMMA": lemma})  # type: ignore[attr-defined]  # an AttributeRuler
    nlp.to_disk(folder)
