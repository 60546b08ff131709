"""When: the time to the next event of a case, and its remaining time, as distributions.

Both are mixtures of log-normals of 1 + x, x ≥ 0 in seconds, truncated at 0, since events may share a time:

    p(x) = Σ_k π_k N(y; μ_k, σ_k²) / Φ(μ_k / σ_k) / (1 + x),        y = log(1 + x)

which integrates to one over x ≥ 0. The mixtures depend on the state of the model after the event, as a
constant, so that what it learns of events stays as it was, and on a GRU over the times of the history.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.data.batches import Noise
from ssdvae.models.layers import dropout, full_precision

DAY, WEEK = 86_400, 7 * 86_400
HIDDEN, COMPONENTS = 64, 8
DROPOUT = 0.2

NARROWEST = 0.05
"""The least σ. Without it the density of times that recur exactly, such as 0, has no bound."""

SQRT_HALF = 0.5**0.5

STEPS = 26
"""Halvings in the search for a quantile."""


@dataclass(frozen=True)
class TimeMixture:
    """A distribution of seconds for each row."""

    log_weights: Float[Tensor, "*rows K"]
    means: Float[Tensor, "*rows K"]
    widths: Float[Tensor, "*rows K"]

    def log_prob(self, seconds: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
        """Return the log-density per day."""
        y = seconds.clamp_min(0).log1p().to(self.means)
        z = (y[..., None] - self.means) / self.widths
        log_p = -0.5 * (z**2 + math.log(2 * math.pi)) - self.widths.log() - self._log_positive
        return (self.log_weights + log_p).logsumexp(-1) - y + math.log(DAY)

    @property
    def _log_positive(self) -> Tensor:
        """log Φ(μ / σ)"""
        found: Tensor = torch.special.log_ndtr(self.means / self.widths)
        return found

    def survival(self, seconds: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
        """Return p(at least so many seconds)."""
        y = seconds.clamp_min(0).log1p().to(self.means)[..., None]
        log_p = torch.special.log_ndtr((self.means - y) / self.widths) - self._log_positive
        tail: Tensor = (self.log_weights + log_p).logsumexp(-1).exp()
        return tail

    def quantile(self, p: float) -> Float[Tensor, "*rows"]:
        """Return the seconds below which a share p of the distribution is."""
        widths = self.widths.double()
        # Logarithms would take most of the time. Below −30 σ a mean says hardly more than that x is small.
        z = (self.means / self.widths).double().clamp_min(-30)
        shares = self.log_weights.double().exp() / torch.erfc(-z * SQRT_HALF)  # 2 Φ(z) = erfc(−z / √2)
        low = torch.zeros_like(z[..., 0])
        high = ((z + 8) * widths).amax(-1).clamp(1, 40)
        for _ in range(STEPS):
            middle = (low + high) / 2
            tail = (shares * torch.erfc((middle[..., None] / widths - z) * SQRT_HALF)).sum(-1)
            below = tail > 1 - p
            low, high = middle.where(below, low), high.where(below, middle)
        return high.expm1().to(self.means)

    def select(self, rows: Tensor) -> TimeMixture:
        return TimeMixture(self.log_weights[rows], self.means[rows], self.widths[rows])


@dataclass(frozen=True)
class TimeForecast:
    """Distributions after each event: of the time to the next one, and of the rest of the case."""

    gap: TimeMixture
    rest: TimeMixture


def time_features(times: Float[Tensor, "B M"]) -> Float[Tensor, "B M 6"]:
    """Return the time since the event before and since the first one, and the time of the day and week."""
    gaps = functional.pad(times.diff(dim=1), (1, 0)).clamp_min(0).log1p()
    elapsed = (times - times[:, :1]).clamp_min(0).log1p()
    day, week = (2 * math.pi * (times % period) / period for period in (DAY, WEEK))
    parts = (gaps / 10, elapsed / 10, day.sin(), day.cos(), week.sin(), week.cos())
    return torch.stack(parts, dim=-1)


class TimeModel(nn.Module):
    """p(time to the next event) and p(remaining time) after each event."""

    def __init__(self, states: int) -> None:
        super().__init__()
        self.gru = nn.GRU(6, HIDDEN, batch_first=True)
        self.inner = nn.Linear(states + HIDDEN, 2 * HIDDEN)
        self.outer = nn.Linear(2 * HIDDEN, 2 * 3 * COMPONENTS)
        with torch.no_grad():  # from a second to half a year
            means = torch.linspace(0, 16, COMPONENTS)
            self.outer.bias.copy_(torch.cat([torch.zeros(COMPONENTS), means, torch.ones(COMPONENTS)] * 2))

    def forward(
        self, states: Float[Tensor, "B M h"], times: Float[Tensor, "B M"], noise: Noise | None = None
    ) -> TimeForecast:
        """Return the forecasts after each event from the states of the model there; ``noise`` in training."""
        features = time_features(times).nan_to_num().to(states.dtype)  # NaN at padding
        read = dropout(torch.cat([states.detach(), self.gru(features)[0]], dim=-1), DROPOUT, noise)
        parts = full_precision(self.outer(self.inner(read).relu()))
        parts = parts.view(*times.shape, 2, 3, COMPONENTS)
        weights, means, widths = parts.unbind(-2)
        widths = functional.softplus(widths) + NARROWEST
        each = zip(weights.log_softmax(-1).unbind(-2), means.unbind(-2), widths.unbind(-2), strict=True)
        return TimeForecast(*(TimeMixture(*one) for one in each))


def time_targets(
    times: Float[Tensor, "B M"], mask: Bool[Tensor, "B M"], ends: Bool[Tensor, "B M"] | None
) -> tuple[Float[Tensor, "B M"], Float[Tensor, "B M"]]:
    """Return the seconds to the next event and to the end of the case; NaN where there is none.

    Times that go backwards count as the same.
    """
    following = torch.cat([times[:, 1:], torch.full_like(times[:, :1], torch.nan)], dim=1)
    gap = (following - times).clamp_min(0).masked_fill(~functional.pad(mask[:, 1:], (0, 1)), torch.nan)
    if ends is None:
        return gap, torch.full_like(times, torch.nan)
    over = torch.where(ends, times, torch.nan).nan_to_num(-torch.inf).amax(1, keepdim=True)
    rest = (over - times).clamp_min(0).masked_fill(~(mask & ends.any(1, keepdim=True)), torch.nan)
    return gap, rest
