"""Which word comes next: drawn, or the best of all, among those that are allowed. No model is needed here."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ssdvae.config import GenerateSettings
from ssdvae.data.vocabulary import Vocabulary

Choose = Callable[[Float[Tensor, "R V"], Float[Tensor, " R"]], tuple[Int[Tensor, " K"], Int[Tensor, " K"]]]
"""From log p(word) in each of R scripts, −∞ where a word is forbidden, and the log p of each script so far,
to K scripts: which of the R each goes on with, and by which word."""


def nucleus(
    log_p: Float[Tensor, "R V"], temperature: float = 1.0, top_p: float = 1.0
) -> Float[Tensor, "R V"]:
    """p^(1/τ), normalised; of that, the fewest likeliest words that sum to ``top_p`` or more, normalised."""
    p = (log_p.double() / temperature).softmax(-1)
    ordered = p.sort(dim=-1, descending=True, stable=True)
    # A word is left out if those before it are enough.
    left_out = ordered.values.cumsum(-1) - ordered.values >= top_p
    kept = p.masked_fill(left_out.gather(-1, ordered.indices.argsort(-1)), 0)
    return kept / kept.sum(-1, keepdim=True)


def draw(p: Float[Tensor, "R V"], uniform: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """The word at which the sum of the probabilities passes u, for each script its own u in [0, 1)."""
    sums = p.cumsum(-1)
    # In doubles a float u below 1 stays below the sum of all; so the word that is found has a probability.
    return torch.searchsorted(sums, uniform.to(sums)[:, None] * sums[:, -1:], right=True)[:, 0]


def sampling(settings: GenerateSettings, uniform: Callable[[], Float[Tensor, " R"]]) -> Choose:
    """Every script goes on by a word that is drawn for it; ``uniform`` gives a number for each script."""

    def choose(
        log_p: Float[Tensor, "R V"], total: Float[Tensor, " R"]
    ) -> tuple[Int[Tensor, " R"], Int[Tensor, " R"]]:
        p = nucleus(log_p, settings.temperature, settings.top_p)
        return torch.arange(len(p), device=p.device), draw(p, uniform())

    return choose


def searching(beam: int) -> Choose:
    """The ``beam`` likeliest scripts go on, whichever they go on from; greedy, if that is one."""

    def choose(
        log_p: Float[Tensor, "R V"], total: Float[Tensor, " R"]
    ) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
        scores = (total[:, None] + log_p).flatten()
        best = scores.topk(min(beam, int((scores > -torch.inf).sum()))).indices
        return best // log_p.shape[1], best % log_p.shape[1]

    return choose


def forbidden(
    events: Int[Tensor, "R K S"],
    words: Int[Tensor, "R slot"],
    vocabulary: Vocabulary,
    settings: GenerateSettings,
) -> Bool[Tensor, "R V"]:
    """The words that cannot come next, after some events and the first words of another.

    ``<unk>`` is no word, and an event has a head. ``repeat`` and ``distinct_roles`` may forbid more.
    """
    (R, slot), last = words.shape, events.shape[-1] - 1
    banned = torch.zeros(R, len(vocabulary), dtype=torch.bool, device=words.device)
    banned[:, vocabulary.unknown] = True
    if slot == 0:
        banned[:, vocabulary.missing] = True
    if slot > 1 and settings.distinct_roles:
        # Two empty slots are not the same thing in two roles.
        rows, place = (words[:, 1:] != vocabulary.missing).nonzero(as_tuple=True)
        banned[rows, words[rows, 1 + place]] = True
    if slot == last and not settings.repeat:
        rows, event = (events[:, :, :last] == words[:, None]).all(-1).nonzero(as_tuple=True)
        banned[rows, events[rows, event, last]] = True
    return banned
