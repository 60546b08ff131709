"""How a model is saved and loaded: in a folder of JSON and safetensors, or on the Hugging Face Hub.

Nothing in these files can be executed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from ssdvae.config import ModelSettings
from ssdvae.config.formats import read_model_settings, versioned
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import DataError, UserError
from ssdvae.files import atomic_write, translate_os_errors
from ssdvae.models.card import model_card

if TYPE_CHECKING:
    from ssdvae.models.base import EventModel

FILES = ("config.json", "model.safetensors", "vocab.json", "frames.json")


class SavedModel(ModelHubMixin, library_name="ssdvae", tags=["events", "scripts", "frames"]):
    """What ``EventModel`` inherits to be saved, loaded and published."""

    config: ModelSettings
    vocabulary: Vocabulary
    frames: Inventory

    def generate_model_card(
        self, *args: Any, scores: dict[str, Any] | None = None, **kwargs: Any
    ) -> ModelCard:
        return model_card(self.config, len(self.vocabulary), len(self.frames), scores)

    def save(self, folder: Path, scores: dict[str, Any]) -> None:
        """Write the model to a folder that may hold an older one, with its card."""
        with translate_os_errors(folder, "write"):
            # Not save_pretrained, which first takes the old config.json away.
            self._save_pretrained(folder)
            with atomic_write(folder / "README.md") as path:
                self.generate_model_card(scores=scores).save(path)

    def _save_pretrained(self, save_directory: Path) -> None:
        assert isinstance(self, nn.Module)
        with atomic_write(save_directory / "config.json") as path:
            path.write_text(json.dumps(versioned(self.config.to_publish()), indent=2) + "\n")
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
        """The model in a folder."""
        return read_model(folder)


def read_model(folder: Path) -> EventModel:
    """The model in a folder, whichever it is."""
    from ssdvae.models import model_class  # the table of models needs this module first

    for name in FILES:
        if not (folder / name).is_file():
            raise UserError(
                f"{folder} has no {name}: it holds no model, or its run was not yet validated\n"
                f"go on with a run: ssdvae train --resume {folder}"
            )
    path = folder / "config.json"
    try:
        settings = read_model_settings(json.loads(path.read_text(encoding="utf-8")))
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except (ValueError, TypeError) as error:
        raise DataError(path, None, str(error), "the settings of a model") from error
    vocabulary, frames = Vocabulary.load(folder / "vocab.json"), Inventory.load(folder / "frames.json")
    model = model_class(settings.model)(settings, vocabulary, frames)
    path = folder / "model.safetensors"
    try:
        model.load_state_dict(load_file(path))
    except (SafetensorError, RuntimeError) as error:
        raise DataError(path, None, str(error).splitlines()[0], "the weights of this model") from error
    return model.eval()
