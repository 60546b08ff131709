"""Masked events, orders and the narrative cloze, against the exact distribution of the embedded world."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from ssdvae.data.batches import Batch
from ssdvae.data.events import MISSING, Event
from ssdvae.data.items import ItemBuilder, Question, Script
from ssdvae.data.options import PrepareOptions
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.evaluation.choices import (
    EventEncoder,
    OptionScores,
    event_log_probs,
    interval,
    score_questions,
    score_scripts,
)
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.io.errors import UserError
from ssdvae.models.options import RNNLMOptions
from ssdvae.models.registry import MODELS
from ssdvae.models.rnnlm import RNNLM
from ssdvae.storyworld.world import World
from tests.toys import WORDS, toy_model

SETTINGS = EvaluateOptions(cloze_seeds=3, eval_batch=30)


class Oracle(RNNLM):
    """The embedded world itself, in the place of a model."""

    def __init__(self, world: World) -> None:
        words = [MISSING, UNKNOWN, *sorted(world.words)]
        config = RNNLMOptions(hidden=1, embedding=1)
        super().__init__(config, Vocabulary(words, [1] * len(words)), Inventory(["F"], [1]))
        self.world = world

    def log_prob(self, script: Sequence[Sequence[str]]) -> float:
        return max(self.world.log_prob([Event.of_words(words) for words in script]), -1e6) if script else 0.0

    def event_log_probs(self, batch: Batch) -> Float[Tensor, "B M"]:
        rows = []
        for tokens, mask in zip(batch.tokens, batch.mask, strict=True):
            script = [[self.vocabulary.name(int(w)) for w in event] for event in tokens[mask]]
            sums = [self.log_prob(script[:m]) for m in range(len(script) + 1)]
            rows.append(np.pad(np.diff(sums), (0, int((~mask).sum()))))
        return torch.tensor(np.array(rows))


def builder(count: int) -> ItemBuilder:
    made = ItemBuilder(PrepareOptions(cloze_items=count, cloze_options=4))
    for document in World.embedded().documents(3 * count, seed=4):
        made.add(document.id, [event.padded(4) for event in document.events])
    return made


def test_the_exact_model_scores_whole_documents_exactly() -> None:
    oracle = Oracle(World.embedded())
    reader, items = EventEncoder(oracle.vocabulary, lowercase=False), builder(12)
    for options in ([m.question.options for m in items.masked()], [o.options for o in items.orders()]):
        scores = score_scripts(oracle, options, reader, SETTINGS)
        best = [[oracle.log_prob(script) for script in some] for some in options]
        assert scores == pytest.approx(np.array(best))
        # What happened is likelier than what did not, far more often than chance has it.
        assert OptionScores("x", {"nll": scores}).ways["nll"].mean() > 0.8


def test_both_sides_of_a_masked_event_are_used() -> None:
    """The likelihood of the whole document ranks at least as well as that of the event after its past."""
    oracle = Oracle(World.embedded())
    items = [item for item in builder(40).masked() if item.place < len(item.events) - 1]
    questions = [item.question for item in items]
    whole, _ = score_questions("masked", oracle, questions, False, SETTINGS)
    past = score_scripts(
        oracle,
        [Question(q.before, q.candidates).options for q in questions],
        EventEncoder(oracle.vocabulary, False),
        SETTINGS,
    )
    credit = OptionScores("past", {"nll": past}).ways["nll"]
    assert whole.ways["nll"].mean() >= credit.mean()


def toy_questions(count: int, seed: int = 0) -> list[Question]:
    """Of different lengths, with different numbers of candidates."""
    draw = np.random.default_rng(seed)
    names = [MISSING, UNKNOWN, *(f"word{i}" for i in range(WORDS - 2))]

    def script(events: int) -> Script:
        words = draw.integers(0, WORDS, (events, 4))
        return tuple(tuple(names[w] for w in event) for event in words)

    return [Question(script(1 + n % 3), script(2 + n % 4), script(n % 2)) for n in range(count)]


@pytest.mark.parametrize("name", [name for name in MODELS if not name.endswith("classifier")])
def test_a_document_is_scored_by_itself(name: str) -> None:
    """Whatever its neighbours and the size of the batch; pmi is the difference to a mean over others."""
    model, questions = toy_model(name), toy_questions(9)
    one, many = (
        score_questions("x", model, questions, False, EvaluateOptions(cloze_seeds=3, eval_batch=size))[0]
        for size in (1, 64)
    )
    for way, scores in one.scores.items():
        assert scores == pytest.approx(many.scores[way], abs=1e-9)
        # An item has no more options than it has, and no score for others.
        assert np.isfinite(scores).sum(1).tolist() == [len(q.candidates) for q in questions]
    reader = EventEncoder(model.vocabulary, False)
    (first,) = event_log_probs(model, [np.array([reader.ids(e) for e in questions[3].options[1]])], 5)
    assert one.scores["nll"][3, 1] == pytest.approx(first.sum())


def test_a_model_that_knows_nothing_gets_chance(tmp_path: Path) -> None:
    """Equal scores share the credit, also where items have different numbers of options."""
    model = toy_model("rnnlm")
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"word{n} 1 0\n" for n in range(WORDS)))
    settings = EvaluateOptions(cloze_seeds=3, floor_vectors=vectors)
    figures = score_questions("x", model, toy_questions(20), False, settings)[0].figures(1)
    chance = figures["x_chance"]
    assert chance == pytest.approx(np.mean([1 / (2 + n % 4) for n in range(20)]))
    assert figures["x_nll"] == pytest.approx(chance)
    assert figures["x_pmi"] == pytest.approx(chance)


def test_the_floors_say_what_they_are() -> None:
    """Frequency takes the candidate with the commonest words."""
    model = toy_model("rnnlm")
    model.vocabulary = Vocabulary(model.vocabulary.names, [10**n for n in range(WORDS)])
    common, rare = ((f"word{n}",) * 4 for n in (8, 1))
    questions = [Question((rare,), (common, rare)), Question((common,), (rare, common))] * 2
    assert score_questions("x", model, questions, False, SETTINGS)[0].ways["frequency"].tolist() == [1, 0] * 2


def test_items_in_another_language_are_refused() -> None:
    event = ("mot",) * 4
    with pytest.raises(UserError, match="the vocabulary knows no word of any item"):
        score_questions("x", toy_model("rnnlm"), [Question((event,), (event, event))] * 2, False, SETTINGS)


def test_an_interval_covers_the_mean_of_what_it_was_drawn_from() -> None:
    """Of 200 samples of a coin, about 95 % have the true mean in their interval."""
    draw = np.random.default_rng(5)
    covered = 0
    for sample in (draw.random((200, 80)) < 0.3).astype(np.float64):
        low, high = interval(sample, 1)
        covered += low <= 0.3 <= high
    assert 180 <= covered <= 200
