"""A BiLSTM-CRF over the events of a story, learned from partial labels, for benchmarks/inscript.py.

    x_m   = dropout(relu(W [verb; subj; obj; mod; scenario]))      word vectors, and one of the scenario
    e_m   = W_out dropout(BiLSTM(x)_m)                             a score for each label of the scenario
    p(y)  ∝ exp Σ_m e_m,y_m + T_y_(m−1),y_m

The loss is −log Σ p(y) over the labellings that agree with the labels that are known, so that an event
without one is summed out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

NEVER = -1e4
"""The score of a label that another one rules out."""


class StoryTagger(nn.Module):
    """Scores the labels of the events of stories about one scenario."""

    def __init__(
        self,
        vectors: Tensor,
        slots: int,
        scenarios: int,
        labels: int,
        hidden: int,
        dropout: float,
        frozen: bool,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(len(vectors), vectors.shape[1], _weight=vectors.clone())
        self.words.weight.requires_grad = not frozen
        self.scenario = nn.Embedding(scenarios, 32)
        self.event = nn.Linear(slots * vectors.shape[1] + 32, 2 * hidden)
        self.lstm = nn.LSTM(2 * hidden, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, labels)
        self.transitions = nn.Parameter(torch.zeros(labels, labels))
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, mask: Tensor, scenario: int) -> Tensor:
        """Return e, from tokens [B, M, slots]."""
        place = self.scenario(torch.full(tokens.shape[:2], scenario))
        events = torch.cat([self.dropout(self.words(tokens).flatten(2)), place], dim=-1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.event(events).relu()), mask.sum(1), batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores: Tensor = self.out(self.dropout(states))
        return scores


def log_partition(scores: Tensor, transitions: Tensor, mask: Tensor) -> Tensor:
    """Return log Σ_y exp score(y) of each row of ``scores`` [B, M, L]."""
    total = scores[:, 0]
    for place in range(1, scores.shape[1]):
        step = (total[:, :, None] + transitions).logsumexp(1) + scores[:, place]
        total = step.where(mask[:, place, None], total)
    return total.logsumexp(1)


def best_labels(scores: Tensor, transitions: Tensor, mask: Tensor) -> list[list[int]]:
    """Return the labelling with the highest score of each row (Viterbi)."""
    total, back = scores[:, 0], list[Tensor]()
    for place in range(1, scores.shape[1]):
        best = (total[:, :, None] + transitions).max(1)
        back.append(best.indices)
        total = (best.values + scores[:, place]).where(mask[:, place, None], total)
    found = []
    for row, length in enumerate(mask.sum(1).tolist()):
        path = [int(total[row].argmax())]
        for place in range(length - 2, -1, -1):
            path.append(int(back[place][row, path[-1]]))
        found.append(path[::-1])
    return found


Coded = tuple[Tensor, Tensor]
"""The tokens of a story, and its labels, −1 where unknown."""


def fit(
    model: StoryTagger,
    train: Mapping[int, Sequence[Coded]],
    allowed: Mapping[int, Tensor],
    judge: Callable[[StoryTagger], float],
    *,
    epochs: int,
    patience: int,
    learning_rate: float,
    batch: int,
    seed: int,
) -> None:
    """Train on stories by scenario; keep the weights with the highest judgement."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=learning_rate)
    best, kept, stale = -1.0, {}, 0
    for _ in range(epochs):
        model.train()
        parts = [
            (scenario, rows)
            for scenario, stories in train.items()
            for rows in torch.split(torch.randperm(len(stories), generator=random), batch)
        ]
        for number in torch.randperm(len(parts), generator=random).tolist():
            scenario, rows = parts[number]
            tokens, labels, mask = pad([train[scenario][row] for row in rows.tolist()])
            own = allowed[scenario]
            scores, transitions = model(tokens, mask, scenario)[..., own], model.transitions[own][:, own]
            ruled_out = (labels >= 0)[..., None] & (own != labels[..., None])
            known = log_partition(scores.masked_fill(ruled_out, NEVER), transitions, mask)
            loss = (log_partition(scores, transitions, mask) - known).mean()
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        judged = judge(model.eval())
        stale += 1
        if judged > best:
            best, stale = judged, 0
            kept = {name: value.clone() for name, value in model.state_dict().items()}
        if stale >= patience:
            break
    model.load_state_dict(kept)
    model.eval()


def pad(stories: Sequence[Coded]) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens, labels and mask of some stories."""
    tokens = pad_sequence([tokens for tokens, _ in stories], batch_first=True)
    labels = pad_sequence([labels for _, labels in stories], batch_first=True, padding_value=-1)
    lengths = torch.tensor([len(labels) for _, labels in stories])
    return tokens, labels, torch.arange(tokens.shape[1]) < lengths[:, None]


@torch.no_grad()
def tag(model: StoryTagger, stories: Sequence[Coded], scenario: int, own: Tensor) -> list[list[int]]:
    """Return the best label of each event of some stories about one scenario."""
    tokens, _, mask = pad(stories)
    paths = best_labels(model(tokens, mask, scenario)[..., own], model.transitions[own][:, own], mask)
    return [own[torch.tensor(path)].tolist() for path in paths]
