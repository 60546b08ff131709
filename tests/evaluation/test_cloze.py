"""The cloze, against the exact distribution of the embedded world and against models that know nothing."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssdvae.data.batches import Batch
from ssdvae.data.events import MISSING, SLOTS, Event
from ssdvae.data.items import ClozeItem, ItemBuilder, credits
from ssdvae.data.options import PrepareOptions
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.evaluation.choices import ROUNDING, EventEncoder, interval
from ssdvae.evaluation.cloze import ClozeTask, score_cloze
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.io.errors import UserError
from ssdvae.models.latents import Latents
from ssdvae.models.options import RNNLMOptions
from ssdvae.models.rnnlm import RNNLM
from ssdvae.storyworld.world import World, best_cloze
from tests.toys import WORDS, toy_model, toy_ssdvae

SETTINGS = EvaluateOptions(cloze_seeds=4, eval_batch=30)


class Oracle(RNNLM):
    """The embedded world itself, in the place of a model."""

    def __init__(self, words: list[str]) -> None:
        config = RNNLMOptions(hidden=1, embedding=1)
        super().__init__(config, Vocabulary(words, [1] * len(words)), Inventory(["F"], [1]))
        self.world = World.embedded()

    def continuations(
        self, seeds: Batch, latents: Latents, options: Int[Tensor, "B O E 4"]
    ) -> Float[Tensor, "B O"]:
        return torch.tensor(
            [
                [self._log_prob([*seed, *option]) - self._log_prob(seed) for option in several]
                for seed, several in zip(seeds.tokens.tolist(), options.tolist(), strict=True)
            ],
            dtype=torch.float64,
        )

    def _log_prob(self, events: list[list[int]]) -> float:
        named = ([self.vocabulary.name(word) for word in event] for event in events)
        return max(self.world.log_prob([Event(*words) for words in named]), -1e6)


@cache
def world_items() -> list[ClozeItem]:
    settings = PrepareOptions(cloze_items=40)
    builder = ItemBuilder(settings)
    for document in World.embedded().documents(120, seed=4):
        builder.add(document.id, [event.padded(len(SLOTS)) for event in document.events])
    return builder.cloze()


@pytest.fixture
def oracle() -> Oracle:
    return Oracle([MISSING, UNKNOWN, *sorted(World.embedded().words)])


def toy_task(items: int = 12, options: int = 6) -> ClozeTask:
    draw = np.random.default_rng(0)
    seeds = draw.integers(2, WORDS, (items, 4)).astype(np.int32)
    return ClozeTask(seeds, draw.integers(2, WORDS, (items, options, 5, 4)).astype(np.int32))


def test_a_task_has_the_numbers_of_the_words() -> None:
    vocabulary = Vocabulary([MISSING, UNKNOWN, "ran", "sat", "in", "ate", "none"], [1] * 7)
    ran, sat = ("ran", "she", MISSING, "in"), ("sat", MISSING, MISSING, MISSING)
    won, ate = ("won", MISSING, "3", "of"), ("Ate", "<x>", "he", MISSING)
    items = [ClozeItem((ran, sat), ((won,), (ate,)))] * 2
    task = ClozeTask.of(items, EventEncoder(vocabulary, lowercase=True))
    assert task.seeds.dtype == task.options.dtype == np.int32
    assert task.seeds.tolist() == [[2, 1, 0, 4]] * 2
    assert task.options.tolist() == [[[[3, 0, 0, 0]], [[1, 0, 1, 1]], [[5, 1, 1, 0]]]] * 2
    as_is = ClozeTask.of(items, EventEncoder(vocabulary, lowercase=False))
    assert as_is.options[0, 2].tolist() == [[1, 1, 1, 0]]
    assert EventEncoder(vocabulary, lowercase=True).unknown_share([ran, sat, won, ate]) == 6 / 16
    with pytest.raises(UserError, match="knows no word of any item"):
        EventEncoder(vocabulary, lowercase=True).unknown_share([won])


def test_the_exact_model_scores_the_exact_best(oracle: Oracle) -> None:
    items = world_items()
    task = ClozeTask.of(items, EventEncoder(oracle.vocabulary, lowercase=False))
    scores = score_cloze(oracle, task, SETTINGS)
    best = best_cloze(oracle.world, items)
    assert scores.figures(1)["cloze_nll"] == pytest.approx(best["nll"])
    # With all other seeds, the mean over seeds is the marginal but for the draw of the seeds.
    every = score_cloze(oracle, task, SETTINGS.changed(cloze_seeds=len(items)))
    assert every.figures(1)["cloze_pmi"] == pytest.approx(best["pmi"], abs=2 / len(items))
    assert best["nll"] > 0.8


def test_pmi_is_the_log_ratio_to_the_mean_over_other_seeds(oracle: Oracle) -> None:
    """By its definition, one item at a time: an item's own seed is no other."""
    task = ClozeTask.of(world_items()[:6], EventEncoder(oracle.vocabulary, lowercase=False))
    scores = score_cloze(oracle, task, SETTINGS.changed(cloze_seeds=100))
    for item in range(6):
        for option in range(6):
            events = task.options[item, option].tolist()
            logs = [
                oracle._log_prob([seed, *events]) - oracle._log_prob([seed]) for seed in task.seeds.tolist()
            ]
            others = np.delete(np.array(logs), item)
            expected = logs[item] - np.logaddexp.reduce(others) + np.log(5)
            assert scores.scores["nll"][item, option] == pytest.approx(logs[item])
            assert scores.scores["pmi"][item, option] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["ssdvae", "ssdvae-exact", "rnnlm", "haqae"])
def test_the_order_of_the_options_is_never_used(name: str) -> None:
    """Nor that of the items, nor how many are scored at once."""
    model, task = toy_model(name), toy_task()
    settings = SETTINGS.changed(cloze_seeds=100)
    before = score_cloze(model, task, settings)
    order, rows = [3, 0, 5, 1, 4, 2], np.random.default_rng(1).permutation(12)
    moved = task._replace(seeds=task.seeds[rows], options=task.options[rows][:, order])
    after = score_cloze(model, moved, settings.changed(eval_batch=7))
    for name in ("nll", "pmi"):
        np.testing.assert_allclose(after.scores[name], before.scores[name][rows][:, order], rtol=1e-9)


def test_a_model_that_knows_nothing_scores_chance() -> None:
    model = toy_model()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    scores = score_cloze(model, toy_task(), SETTINGS).figures(1)
    assert scores["cloze_nll"] == scores["cloze_pmi"] == pytest.approx(scores["cloze_chance"])
    assert scores["cloze_chance"] == 1 / 6


def test_equal_options_share_the_credit() -> None:
    given = np.array([[2.0, 2.0, 1.0], [3.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    assert credits(given, ROUNDING).tolist() == [0.5, 1, 0]
    task = toy_task()
    task.options[:, 1] = task.options[:, 0]
    scores = score_cloze(toy_model(), task, SETTINGS)
    assert set(credits(scores.scores["nll"], ROUNDING)) <= {0.0, 0.5}
    assert set(credits(scores.scores["pmi"], ROUNDING)) <= {0.0, 0.5}


def test_the_interval_holds_the_mean_and_shrinks_with_the_items() -> None:
    draw = np.random.default_rng(0)
    widths = []
    for items in (50, 5000):
        credit = (draw.random(items) < 0.4).astype(float)
        low, high = interval(credit, seed=1)
        assert low < credit.mean() < high
        # The normal approximation, which holds for shares away from 0 and 1.
        assert high - low == pytest.approx(2 * 1.96 * credit.std() / items**0.5, rel=0.15)
        widths.append(high - low)
    assert widths[1] < widths[0] / 5


def test_one_item_has_no_other_seeds() -> None:
    with pytest.raises(UserError, match="at least 2 items"):
        score_cloze(toy_model(), toy_task(1), SETTINGS)


@pytest.mark.parametrize("name", ["rnnlm", "ssdvae-exact"])
def test_without_latent_variables_or_with_none_left_reading_is_foreseeing(name: str) -> None:
    task, model = toy_task(), toy_model(name)
    foreseen = score_cloze(model, task, SETTINGS)
    read = score_cloze(model, task, SETTINGS.changed(cloze_frames="read"))
    np.testing.assert_allclose(read.scores["nll"], foreseen.scores["nll"])
    np.testing.assert_allclose(read.scores["pmi"], foreseen.scores["pmi"])


def test_frames_that_are_read_are_paid_for() -> None:
    """Each option scores log p(seed, option, frames) − log p(seed, its frame), frames read off both."""
    task, model = toy_task(), toy_ssdvae()
    read = score_cloze(model, task, SETTINGS.changed(cloze_frames="read"))
    tokens = np.concatenate([task.seeds[0][None], task.options[0, 2]])[None]
    nothing = torch.full(tokens.shape[:2], -1)
    document = Batch(torch.from_numpy(tokens).long(), nothing, nothing, nothing < 0)
    with torch.no_grad():
        events = model.event_log_probs(document)[0]
    assert read.scores["nll"][0, 2] == pytest.approx(float(events[1:].sum()))
