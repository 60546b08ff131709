"""The paper's model gives the numbers of the implementation that came before it, in both variants.

``ssdvae_reference.safetensors`` was written by the SSDVAE of commit 07e1906 with the paper's settings, in
float64: weights and inputs, and every answer to them. That class had been checked against the algorithms of
the paper by enumeration; this file is the proof that nothing changed when it was written anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from ssdvae.analysis.swap import swap_parts
from ssdvae.data.batches import Batch
from ssdvae.data.events import MISSING
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.models.latents import LatentQuery, categorical
from ssdvae.models.options import SSDVAEOptions
from ssdvae.models.ssdvae import SSDVAE, gumbel_softmax
from tests.toys import noise

WORDS, FRAMES = 9, 3


@cache
def reference() -> dict[str, Tensor]:
    return load_file(Path(__file__).with_name("ssdvae_reference.safetensors"))


class Case:
    """One model of the reference, with its weights."""

    def __init__(self, variant: str, attention: str) -> None:
        self.prefix = f"{variant}-{attention}/"
        self.settings = SSDVAEOptions.of(
            {
                "embedding": 3,
                "hidden": 3,
                "layers": 2,
                "samples": 2,
                "attention": attention,
                "variant": variant,
            }
        )
        torch.manual_seed(7)
        self.model = self._model(self.settings)
        self.first = torch.cat([p.detach().flatten() for p in self.model.parameters()]).double()
        self.model = self.model.double()
        self.model.load_state_dict(self.all("weights/"))
        self.batch = Batch(*(reference()[f"inputs/{n}"] for n in ("tokens", "frames", "observed", "mask")))

    @staticmethod
    def _model(settings: SSDVAEOptions) -> SSDVAE:
        words = Vocabulary([MISSING, UNKNOWN, *(f"w{i}" for i in range(WORDS - 2))], [1] * WORDS)
        return SSDVAE(settings, words, Inventory([f"F{i}" for i in range(FRAMES)], [1] * FRAMES))

    def all(self, kind: str) -> dict[str, Tensor]:
        start = self.prefix + kind
        return {n.removeprefix(start): x for n, x in reference().items() if n.startswith(start)}

    def check(self, name: str, found: Tensor) -> None:
        # The noise is fp32, and its logarithms differ in the last bit between processors.
        torch.testing.assert_close(found, reference()[self.prefix + name], rtol=1e-5, atol=1e-7, msg=name)

    def masked(self, values: Tensor) -> Tensor:
        return values.masked_fill(~self.batch.mask[..., None], 0)

    def cloze(self) -> Tensor:
        seeds = Batch.of_words(self.batch.tokens[:, :1])
        options = reference()["inputs/options"]
        latents = self.model.latents(LatentQuery.roll_out(seeds, options.shape[2]))
        return self.model.continuations(seeds, latents, options)


@pytest.fixture(
    params=[(v, a) for v in ("text", "code") for a in ("addition", "concatenation")], ids="-".join
)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(*request.param)


def test_a_seed_gives_the_same_first_weights(case: Case) -> None:
    case.check("first_weights", case.first)


def test_loss_terms_and_gradients(case: Case) -> None:
    loss = case.model.train()(case.batch, noise(4))
    case.check("loss", loss.per_document)
    assert loss.terms.keys() == case.all("terms/").keys()
    for name, term in loss.terms.items():
        case.check(f"terms/{name}", term)
    loss.per_document.sum().backward()
    gradients = {name: p.grad for name, p in case.model.named_parameters()}
    assert gradients.keys() == case.all("gradients/").keys()
    for name, gradient in gradients.items():
        assert gradient is not None
        case.check(f"gradients/{name}", gradient)
    case.model.config = case.settings.changed(normalize="document")
    case.check("loss_document", case.model(case.batch, noise(4)).per_document)


@torch.no_grad()
def test_samples_bounds_and_scores(case: Case) -> None:
    model = case.model.eval()
    query = LatentQuery.whole(case.batch, gumbel_softmax(0.5), noise(4))
    chain = model._chain(model._encode(case.batch), query)
    case.check("sample", case.masked(chain.sample))
    case.check("logits", case.masked(chain.logits))
    case.check("bounds", model.bounds(case.batch, 3, noise(4)))
    case.check("words", model.word_log_probs(case.batch, noise(4)))
    case.check("events", model.event_log_probs(case.batch))
    case.check("cloze", case.cloze())
    nothing = case.batch.first(0)
    drawn = model.latents(LatentQuery.continuing(nothing, torch.full((4, 3), -1), categorical, noise(4)))
    case.check("prior", drawn.vectors)


@torch.no_grad()
def test_frames_attention_and_clusters(case: Case) -> None:
    posterior = case.model.eval().posterior(case.batch)
    case.check("log_q", case.masked(posterior.log_q))
    assert posterior.attention is not None
    case.check("attention", case.masked(posterior.attention.weights))
    clusters = posterior.clusters
    assert (clusters is None) == ("concatenation" in case.prefix)
    if clusters is not None:
        case.check("clusters_enc", clusters.states @ clusters.w_frames.T)
        case.check("clusters_dec", clusters.memory @ clusters.w_words().T)


@torch.no_grad()
def test_swapped_parts(case: Case) -> None:
    model = case.model.eval()

    def measure() -> dict[str, float]:
        words = model.word_log_probs(case.batch, noise(4)).sum()
        return {"words": float(words), "cloze": float(case.cloze()[:, 0].sum())}

    swapped = [s for s in swap_parts(model, list(model.parts()), measure) if s.part is not None]
    assert {f"{s.part}/{s.way}" for s in swapped} == case.all("swapped/").keys()
    for s in swapped:
        found = torch.tensor([s.figures["words"], s.figures["cloze"]], dtype=torch.float64)
        case.check(f"swapped/{s.part}/{s.way}", found)
