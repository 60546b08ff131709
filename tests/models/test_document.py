"""The vector of the whole document, which has read the words that it helps to predict."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ssdvae.data.batches import Batch
from ssdvae.data.events import MISSING
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.evaluation.cloze import ClozeTask, score_cloze
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.evaluation.task import mark_of
from ssdvae.io.errors import UserError
from ssdvae.models.base import LanguageModel
from ssdvae.models.latents import LatentQuery, probabilities
from ssdvae.models.options import RNNLMOptions
from ssdvae.models.rnnlm import RNNLM
from ssdvae.models.ssdvae import DOCUMENT_VECTOR
from tests.toys import SLOTS, WORDS, noise, toy_batch, toy_documents, toy_language_model, toy_ssdvae

EVENTS = 4

# The settings that add a document vector.
KINDS: dict[str, dict[str, Any]] = {
    "ssdvae": {"variant": "code"},
    "rnnlm": {"document_vector": 3},
    "rnnlm-role": {"document_vector": 3},
}


def with_vector(kind: str) -> LanguageModel:
    return toy_language_model(kind, **KINDS[kind])


def log_probs(model: LanguageModel, tokens: Tensor) -> Tensor:
    batch = toy_batch([EVENTS] * len(tokens))
    batch.tokens.copy_(tokens)
    latents = model.latents(LatentQuery.whole(batch, probabilities, noise(len(tokens))))
    return model.log_probs(batch, latents)


@pytest.mark.parametrize("kind", KINDS)
def test_it_has_read_the_words_that_it_helps_to_predict(kind: str) -> None:
    """Another last word changes what the first is given; without the vector, a language model's does not."""
    tokens = toy_batch([EVENTS]).tokens
    changed = tokens.clone()
    changed[0, -1, -1] = (changed[0, -1, -1] + 1) % WORDS
    with torch.no_grad():
        model = with_vector(kind)
        assert not torch.equal(log_probs(model, tokens)[0, 0], log_probs(model, changed)[0, 0])
        assert model.conditions_on_targets
        if kind.startswith("rnnlm"):
            plain = toy_language_model(kind)
            torch.testing.assert_close(log_probs(plain, tokens)[0, 0], log_probs(plain, changed)[0, 0])
            assert not plain.conditions_on_targets


@pytest.mark.parametrize("kind", KINDS)
def test_such_a_perplexity_is_marked_and_has_no_bound(kind: str) -> None:
    documents, settings = toy_documents([EVENTS, 2, 1]), EvaluateOptions(bound_samples=2)
    scores = evaluate(with_vector(kind), documents, settings)
    assert scores["ppl_bound"] is None
    assert mark_of("ppl", scores)
    assert mark_of("ppl_with_separators", scores)
    assert not mark_of("frame_accuracy", scores)
    plain = evaluate(toy_language_model(kind), documents, settings)
    assert plain["ppl_bound"] is not None
    assert bool(mark_of("ppl", plain)) == (not kind.startswith("rnnlm"))


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_other_documents_are_not_in_it(kind: str) -> None:
    model, batch = with_vector(kind), toy_batch([EVENTS, 2])
    with torch.no_grad():
        together = model.latents(LatentQuery.whole(batch, probabilities, noise(2))).word_offsets
        alone = batch.part(slice(1, 2)).first(2)
        short = model.latents(LatentQuery.whole(alone, probabilities, noise(1))).word_offsets
    assert together is not None
    assert short is not None
    torch.testing.assert_close(together[1:], short)


@pytest.mark.parametrize("kind", KINDS)
def test_word_by_word_is_as_all_at_once(kind: str) -> None:
    """Generation adds up the scores that evaluation gives."""
    model, batch = with_vector(kind), toy_batch([2] * 3)
    with torch.no_grad():
        latents = model.latents(LatentQuery.whole(batch, probabilities, noise(3)))
        scored = model.log_probs(batch, latents)
        state = model.start(batch.first(0), latents)
        for event in range(2):
            words = None
            for slot in range(batch.tokens.shape[-1]):
                log_p, state = model.next_word(state, latents.after(event), words, slot)
                words = batch.tokens[:, event, slot]
                torch.testing.assert_close(log_p.gather(1, words[:, None])[:, 0], scored[:, event, slot])
            _, state = model.next_word(state, latents.after(event), words, batch.tokens.shape[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_in_the_cloze_it_reads_the_seed_alone(kind: str) -> None:
    """An option is scored as if the others were not there; with frames read off it, it is refused."""
    model = with_vector(kind)
    seeds = toy_batch([1] * 3).tokens[:, 0].numpy().astype("int32")
    options = toy_batch([2] * 12).tokens.view(3, 4, 2, -1).numpy().astype("int32")

    def scores(options: Any) -> Any:
        task = ClozeTask(seeds, options)
        return score_cloze(model, task, EvaluateOptions(cloze_seeds=2)).scores["nll"]

    before = scores(options)
    changed = options.copy()
    changed[:, 1:] = (changed[:, 1:] + 1) % WORDS
    assert (before[:, 0] == scores(changed)[:, 0]).all()
    with pytest.raises(UserError, match="document vector"):
        score_cloze(model, ClozeTask(seeds, options), EvaluateOptions(cloze_frames="read"))


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_it_learns(kind: str) -> None:
    model, batch = with_vector(kind).train(), toy_batch([EVENTS, 3, 1])
    model(batch, noise(3)).per_document.sum().backward()
    for name, parameter in model.named_parameters():
        if "document" in name:
            assert parameter.grad is not None, name
            assert bool(parameter.grad.any()), name


def test_documents_that_are_all_alike_leave_a_language_model_undecided() -> None:
    """θ stays open for what comes later: words that are frequent everywhere do not drive it into a corner."""
    torch.manual_seed(0)
    words, size, mixture = 200, 50, 20
    names = [MISSING, UNKNOWN, *(f"word{i}" for i in range(words - 2))]
    config = RNNLMOptions(embedding=16, hidden=128, layers=1, document_vector=mixture)
    model = RNNLM(config, Vocabulary(names, [1] * words), Inventory(["Frame"], [1]))
    assert model.document is not None
    logits: list[Tensor] = []
    vector = model.document.vector
    vector.mixture.register_forward_hook(lambda module, inputs, output: logits.append(output))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    zipf, nothing = 1 / torch.arange(1, words + 1), torch.full((size, EVENTS), -1)
    for _ in range(120):
        tokens = torch.multinomial(zipf, size * EVENTS * SLOTS, replacement=True).view(size, EVENTS, SLOTS)
        batch = Batch(tokens, nothing, nothing, torch.ones(size, EVENTS, dtype=torch.bool))
        optimizer.zero_grad()
        model(batch, noise(size)).per_document.mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
    theta = (vector.scale * logits[-1]).softmax(-1)
    assert theta.max() < 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_without_it_a_model_is_what_it_was(kind: str) -> None:
    """The vector is all that it adds."""
    plain, vector = toy_language_model(kind).state_dict(), with_vector(kind).state_dict()
    assert {name for name in vector if name not in plain} == {n for n in vector if n.startswith("document")}


def test_that_of_the_authors_code_has_its_width_and_speaks_of_frames_too() -> None:
    model, batch = toy_ssdvae(variant="code"), toy_batch([EVENTS, 2], observe=0)
    assert model.document is not None
    assert model.document.mixture.out_features == DOCUMENT_VECTOR == 20
    with torch.no_grad():
        before = model.posterior(batch).log_q
        offsets = model._encode(batch).frame_offsets
        assert offsets is not None
        model.document.vector.weight.zero_()
        model.document.vector.bias.zero_()
        after = model.posterior(batch).log_q
    # The first event is inferred from nothing else that changed.
    torch.testing.assert_close(before[:, 0], (after[:, 0] + offsets).log_softmax(-1))
