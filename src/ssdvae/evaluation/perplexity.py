"""Perplexity, frame accuracy and use of the latent variables: sums over a split, divided once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ssdvae.data.batches import Batch, Noise, collate, generator, within_bounds
from ssdvae.data.corpus import Documents
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.task import Data, Figure, Result, Task
from ssdvae.inference.posterior import infer_latents
from ssdvae.io.progress import Advance, no_advance
from ssdvae.io.scores import CONDITIONS_ON_TARGETS
from ssdvae.models.base import LanguageModel, LatentModel, Model
from ssdvae.models.cases import CaseModel
from ssdvae.models.latents import FramePosterior, LatentPosterior
from ssdvae.models.precision import autocast

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation


@dataclass(frozen=True)
class Tally:
    """Sums over documents and processes."""

    documents: Tensor
    words: Tensor
    separators: Tensor
    nats: Tensor  # −log p(w | f) with frames inferred from the words themselves
    case_nats: Tensor  # −log p of ends and times
    bound_nats: Tensor  # [S] −(bound on log p(w)) by the number of samples
    labelled: Tensor  # events whose frame is known to the evaluation
    correct: Tensor  # … and inferred
    labelled_by_parts: Tensor  # … of a model whose posterior has parts: the exact model
    correct_by_reader: Tensor  # … and inferred by its reader alone
    correct_by_exact: Tensor  # … by its exact posterior alone
    frame_nats: Tensor  # −log q(the known frame)
    variables: Tensor  # [C] latent variables of each codebook; frames have one codebook in common
    entropy: Tensor  # [C] that of q, summed over them
    mass: Tensor  # [C, K] Σ q
    chosen: Tensor  # [C, K] how often a value was the likeliest

    @classmethod
    def empty(cls, samples: int, codebooks: int, values: int) -> Tally:
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(cls.__annotations__, ())
        shapes |= {"bound_nats": (samples,), "variables": (codebooks,), "entropy": (codebooks,)}
        shapes |= dict.fromkeys(("mass", "chosen"), (codebooks, values))
        return cls(**{name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()})

    def add(self, **sums: Tensor | float) -> None:
        for name, value in sums.items():
            getattr(self, name).add_(torch.as_tensor(value).double().cpu())

    def add_posterior(self, posterior: LatentPosterior, batch: Batch) -> None:
        """Add what is inferred of a batch."""
        log_q, mask, chosen = posterior.log_q.double(), posterior.mask, posterior.value
        q = log_q.exp()
        entropy = torch.special.entr(q).sum(-1)
        if isinstance(posterior, FramePosterior):
            labelled = mask & (batch.frames >= 0)
            known = log_q.gather(-1, batch.frames.clamp_min(0)[..., None])[..., 0]
            self.add(
                labelled=labelled.sum(),
                correct=((chosen == batch.frames) & labelled).sum(),
                frame_nats=-known[labelled].sum(),
            )
            if posterior.parts:
                self.add(labelled_by_parts=labelled.sum())
            for name, part in (posterior.parts or {}).items():
                right = (part.argmax(-1) == batch.frames) & labelled
                self.add(**{f"correct_by_{name}": right.sum()})
            # All events share the frames: [B, M, …] → [B · M, 1, …].
            q, entropy, mask, chosen = (x.flatten(0, 1)[:, None] for x in (q, entropy, mask, chosen))
        hits = (chosen[..., None] == torch.arange(q.shape[-1], device=q.device)) & mask[..., None]
        self.add(
            variables=mask.sum(0),
            entropy=(entropy * mask).sum(0),
            mass=(q * mask[..., None]).sum(0),
            chosen=hits.sum(0),
        )

    def reduced(self, reduce: Callable[[Tensor], Tensor]) -> Tally:
        """Return the sum over processes."""
        return Tally(**{name: reduce(value) for name, value in vars(self).items()})

    def scores(self, words_scored: bool) -> dict[str, Any]:
        """Return the scores: perplexities only if ``words_scored``.

        ``ppl_with_separators`` counts separators too, which cost nothing. ``ppl_bound`` is the one to compare
        between models: ``ppl`` of a latent-variable model conditions on frames inferred from the very words
        it predicts. ``case_ppl`` is that of events with ends and times, whose densities are per day.
        """
        by_samples = [_exp(nats / self.words) for nats in self.bound_nats]
        scores: dict[str, Any] = {
            "ppl": _exp(self.nats / self.words) if words_scored else None,
            "ppl_with_separators": _exp(self.nats / (self.words + self.separators)) if words_scored else None,
            "ppl_bound": by_samples[-1] if by_samples else None,
            "ppl_bound_by_samples": {str(s + 1): by_samples[s] for s in _shown(len(by_samples))} or None,
            "case_ppl": self._case_ppl() if words_scored else None,
            "frame_accuracy": (self.correct / self.labelled).item() if self.labelled else None,
            # exp of the mean of −log q(known frame)
            "frame_ppl": _exp(self.frame_nats / self.labelled) if self.labelled else None,
            "frame_accuracy_reader": self._share(self.correct_by_reader),
            "frame_accuracy_exact": self._share(self.correct_by_exact),
        }
        return {
            **scores,
            **self._latent_use(),
            "words": int(self.words),
            "documents": int(self.documents),
        }

    def _case_ppl(self) -> float | None:
        """Return exp(−log p(words, ends, times) per event); None without ends and times."""
        events = self.separators + self.documents
        return _exp((self.nats + self.case_nats) / events) if self.case_nats else None

    def _share(self, correct: Tensor) -> float | None:
        """Return the accuracy of a part of the posterior; None for a model without parts."""
        return (correct / self.labelled_by_parts).item() if self.labelled_by_parts else None

    def _latent_use(self) -> dict[str, Any]:
        """Return the information in the latent variables, in nats per variable: 0 if they collapsed.

        The KL is from the uniform prior; the mutual information is from the marginal over all documents.
        ``latent_used`` counts values that are ever the most likely, ``latent_perplexity`` is the exponential
        of the entropy of the marginal.
        """
        names = ("latent_kl", "latent_entropy", "latent_information", "latent_used", "latent_perplexity")
        if not self.variables.sum():
            return dict.fromkeys(names)
        marginal = self.mass / self.variables[:, None]
        total = torch.special.entr(marginal).sum(-1)
        entropy = self.entropy / self.variables
        figures = (
            math.log(self.mass.shape[1]) - entropy.mean().item(),
            entropy.mean().item(),
            (total - entropy).mean().item(),
            int((self.chosen > 0).sum()),
            total.exp().mean().item(),
        )
        return dict(zip(names, figures, strict=True))


def _shown(count: int) -> list[int]:
    """Return the indices of the places 1, 2, 5, 10, 20, 50 … of a list, and of its last."""
    round_numbers = [digit * 10**power for power in range(len(str(count))) for digit in (1, 2, 5)]
    return sorted({number - 1 for number in [*round_numbers, count] if 1 <= number <= count})


def _exp(nats: Tensor) -> float:
    return math.exp(nats) if nats < 700 else math.inf


@torch.no_grad()
def evaluate(
    model: Model,
    documents: Documents,
    settings: EvaluateOptions,
    *,
    words: bool = True,
    bounded: bool = True,
    observe: Callable[[LatentPosterior, Batch], None] = lambda posterior, batch: None,
    process: int = 0,
    processes: int = 1,
    reduce: Callable[[Tensor], Tensor] = lambda tally: tally,
    advance: Advance = no_advance,
) -> dict[str, Any]:
    """Return the scores of a split, with no frame observed. Each process takes every n-th batch.

    Without ``words``, only the latent variables are inferred. ``observe`` receives their posterior.
    """
    training = model.training
    model.eval()
    scoring = model if words and isinstance(model, LanguageModel) else None
    samples = settings.bound_samples if bounded and scoring is not None and scoring.has_elbo else 0
    total = Tally.empty(samples, *(model.latent_shape if isinstance(model, LatentModel) else (0, 0)))
    for number, rows in enumerate(within_bounds(documents.lengths, settings.eval_batch)):
        if number % processes != process:
            continue
        batch = collate(documents, rows).to(model.device)
        # The noise of a batch depends on its place alone: any number of processes gives the same figures.
        noise = Noise(generator(settings.eval_seed, "evaluate", number), len(batch))
        events = int(batch.mask.sum())
        total.add(documents=len(batch), words=batch.tokens.shape[-1] * events, separators=events - len(batch))
        with autocast(settings.precision, model.device):
            if scoring is not None:
                total.add(nats=-scoring.word_log_probs(batch, noise).double().sum())
                if isinstance(scoring, CaseModel) and (scoring.end is not None or scoring.clock is not None):
                    terms = scoring.case_terms(batch, scoring.event_states(batch)).values()
                    total.add(case_nats=-sum(term.double().sum() for term in terms))
                if samples:
                    # A model without latent variables has one row, which holds for any number of samples.
                    bounds = scoring.bounds(batch, samples, noise).double().sum(1)
                    total.add(bound_nats=-bounds.expand(samples))
            posterior = infer_latents(model, batch)
        if posterior is not None:
            posterior.check_finite()
            total.add_posterior(posterior, batch)
            observe(posterior, batch)
        advance(len(batch))
    model.train(training)
    scores = total.reduced(reduce).scores(scoring is not None)
    return {**scores, CONDITIONS_ON_TARGETS: None if scoring is None else int(scoring.conditions_on_targets)}


def run(evaluation: Evaluation, data: Data) -> Result:
    return Result(len(evaluation.documents), evaluation.split_pass.scores)


TASK = Task(
    name="perplexity",
    title="Perplexity",
    explanation="Lower is better. † The model has read the words that it predicts: in SSDVAE and HAQAE “ppl” "
    "conditions on latent variables that were inferred from them, and a document vector reads them too. "
    "Only the bound, which pays for the latent variables, "
    "compares models with and without them. "
    "The paper's perplexity counts separators. “Information” is the mutual information of an event and its "
    "frame, or of a document and a latent variable, in nats: next to 0, the frames say nothing.",
    figures=(
        Figure("ppl", "ppl", "lower", digits=2, marked_by=CONDITIONS_ON_TARGETS),
        Figure(
            "ppl_with_separators",
            "ppl with separators",
            "lower",
            digits=2,
            paper="1a",
            marked_by=CONDITIONS_ON_TARGETS,
        ),
        Figure("ppl_bound", "ppl bound", "lower", digits=2, headline="perplexity bound"),
        Figure(
            "latent_information",
            "information, nats",
            digits=2,
            compared=False,
            note="mutual information of event and frame, nats",
        ),
        Figure("latent_used", "values in use", digits=0, compared=False),
    ),
    # It needs no words: of a model without them, it measures the use of the latent variables.
    run=run,
    default=True,
    reproduced=True,
    settings=("events", "bound_samples", "precision", "eval_batch", "eval_seed"),
    scores_words=True,
)
