"""Reading documents of different lengths in both directions."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ssdvae.models.layers import PaddedGRU

PLACES = 5


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_padded_documents_are_read_as_packed_ones_with_the_same_gradients(layers: int) -> None:
    torch.manual_seed(layers)
    lengths = torch.tensor([6, 1, 3, 4])
    mask = torch.arange(6) < lengths[:, None]
    reader = PaddedGRU(7, 3, layers).double()
    inputs = torch.randn(4, 6, PLACES, 7, dtype=torch.float64, requires_grad=True)
    packed = pack_padded_sequence(
        inputs.flatten(1, 2), PLACES * lengths, batch_first=True, enforce_sorted=False
    )
    padded, _ = pad_packed_sequence(reader.gru(packed)[0], batch_first=True)
    expected = padded.view(4, 6, PLACES, -1)[:, :, 1:].flatten(1, 2)
    found = reader.at_words(inputs, mask)
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    for mine, theirs in zip(
        torch.autograd.grad((found * weights).sum(), [inputs, *reader.parameters()]),
        torch.autograd.grad((expected * weights).sum(), [inputs, *reader.parameters()]),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)
