"""What every model answers, and how it is saved and loaded."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.config import ModelSettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.files import atomic_write
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import DataError, UserError
from ssdvae.models.card import model_card
from ssdvae.models.recurrent import full_precision

ROWS = 2048
"""Words whose logits are held at once when nothing is learned from them: V floats each."""

FILES = ("config.json", "model.safetensors", "vocab.json", "frames.json")


@dataclass(frozen=True)
class Loss:
    """What is minimised, and the terms it is made of: one number per document each."""

    per_document: Float[Tensor, " B"]
    terms: dict[str, Float[Tensor, " B"]]


class EventModel(nn.Module, ModelHubMixin, library_name="ssdvae", tags=["events", "scripts", "frames"]):
    """A model of documents of events, with the words and frames it knows.

    Subclasses answer the questions below; training and evaluation never ask which model they have.
    """

    def __init__(self, config: ModelSettings, vocabulary: Vocabulary, frames: Inventory) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.frames = frames

    @abstractmethod
    def forward(self, batch: Batch, noise: Noise) -> Loss:
        """The loss of each document and its terms."""

    @abstractmethod
    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M 4"]:
        """log p(word | what the model conditions on), 0 at padding."""

    @abstractmethod
    def bound(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, " B"]:
        """A lower bound on log p(words), in the mean; log p itself for models without latent variables."""

    @abstractmethod
    def infer(self, batch: Batch) -> Int[Tensor, "B M"] | None:
        """The most likely frames, −1 at padding; None for a model that has no frames."""

    @abstractmethod
    def word_embedding(self) -> nn.Embedding:
        """The table that pretrained vectors are put into."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def generate_model_card(
        self, *args: Any, scores: dict[str, Any] | None = None, **kwargs: Any
    ) -> ModelCard:
        return model_card(self.config, len(self.vocabulary), len(self.frames), scores)

    def _save_pretrained(self, save_directory: Path) -> None:
        settings = ModelSettings.of(self.config.to_dict()).to_dict()
        with atomic_write(save_directory / "config.json") as path:
            path.write_text(json.dumps(settings, indent=2) + "\n")
        self.vocabulary.save(save_directory / "vocab.json")
        self.frames.save(save_directory / "frames.json")
        with atomic_write(save_directory / "model.safetensors") as path:
            save_file({name: value.contiguous() for name, value in self.state_dict().items()}, path)

    @classmethod
    def _from_pretrained(
        cls,
        *,
        model_id: str,
        revision: str | None,
        cache_dir: str | Path | None,
        force_download: bool,
        local_files_only: bool,
        token: str | bool | None,
        **model_kwargs: Any,
    ) -> EventModel:
        folder = Path(model_id)
        if not folder.is_dir():
            folder = Path(
                snapshot_download(
                    model_id,
                    revision=revision,
                    cache_dir=cache_dir,
                    force_download=force_download,
                    local_files_only=local_files_only,
                    token=token,
                    allow_patterns=list(FILES),
                )
            )
        return cls.read(folder)

    @classmethod
    def read(cls, folder: Path) -> EventModel:
        """The model in a folder. Only JSON and safetensors are read: nothing in them can be executed."""
        for name in FILES:
            if not (folder / name).is_file():
                raise UserError(
                    f"{folder} has no {name}: it holds no model, or its run was not yet validated\n"
                    f"go on with a run: ssdvae train --resume {folder}"
                )
        path = folder / "config.json"
        try:
            settings = ModelSettings.of(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise DataError(path, None, str(error), "the settings of a model") from error
        kind: type[EventModel] = cls
        if cls is EventModel:
            from ssdvae.models import model_class  # the table of models needs this module first

            kind = model_class(settings.model)
        model = kind(settings, Vocabulary.load(folder / "vocab.json"), Inventory.load(folder / "frames.json"))
        path = folder / "model.safetensors"
        try:
            model.load_state_dict(load_file(path))
        except (SafetensorError, RuntimeError) as error:
            raise DataError(path, None, str(error).splitlines()[0], "the weights of this model") from error
        return model.eval()


def log_likelihood(
    output: nn.Linear, joined: Float[Tensor, "B M 4 e"], batch: Batch
) -> Float[Tensor, "B M 4"]:
    """log softmax(output(joined))[word], computed only at real words; 0 at padding."""
    rows, words = joined[batch.mask].flatten(0, 1), batch.tokens[batch.mask].flatten()
    # Without gradients the logits of a part can be forgotten before the next.
    parts = 1 if torch.is_grad_enabled() else max(1, -(-len(rows) // ROWS))
    nll = torch.cat(
        [
            functional.cross_entropy(full_precision(output(part)), target, reduction="none")
            for part, target in zip(rows.chunk(parts), words.chunk(parts), strict=True)
        ]
    )
    return nll.new_zeros(batch.tokens.shape).masked_scatter(batch.mask[..., None], -nll)
