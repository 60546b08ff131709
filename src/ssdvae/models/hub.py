"""Saving and loading models: in a folder of JSON and safetensors, on the Hugging Face Hub, or packaged.

Nothing in these files can be executed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download
from pydantic import AfterValidator, Field, model_validator

from ssdvae.data.columns import Columns
from ssdvae.data.documents import ContextWindow
from ssdvae.data.events import SLOTS, Slots, check_slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.io.errors import DataError, Malformed, UserError
from ssdvae.io.files import atomic_write, sha256, translate_os_errors
from ssdvae.io.records import Record, read_json
from ssdvae.io.weights import (
    SEAL,
    assign_weights,
    check_finite,
    check_shapes,
    compact,
    load_metadata,
    load_weights,
    save_weights,
)
from ssdvae.models.card import NO_EXTRAS, CardExtras, model_card
from ssdvae.models.options import ModelOptions
from ssdvae.models.quantiles import TYPICAL, SurprisalQuantiles
from ssdvae.models.word_vectors import WORD_VECTORS, WordVectors
from ssdvae.options import unversioned, versioned

if TYPE_CHECKING:
    from ssdvae.models.base import Model

FILES = ("config.json", "model.safetensors", "vocab.json", "frames.json")

README = "README.md"
"""The model card."""

EXPECTED = "the weights of this model"

FOLDER = Path(__file__).parents[1] / "pretrained"
"""The folder of the models that come with the package."""

DEFAULT = "wiki-en"
"""The model that answers where none is named."""

SCRIPTS, DOCUMENTS = "scripts.jsonl", "documents.jsonl"
"""Files beside the weights of a packed model, to look at without its corpus: scripts that it generated, or
documents of the validation split."""

STATISTICS, DEFINITIONS = "statistics.json", "definitions.json"
"""Files beside them: counts over the training split, and what frames mean."""

SHOWN = (SCRIPTS, DOCUMENTS, STATISTICS, DEFINITIONS)
"""Files of a packed model that no answer needs, and that reports and the explorer show."""


def packaged(name: str) -> Path | None:
    """Return the folder of a packaged model; None if there is none of this name."""
    folder = FOLDER / name
    return folder if re.fullmatch(r"[\w-]+", name) and (folder / "config.json").is_file() else None


def shown_file(folder: Path) -> Path | None:
    """Return the file of documents or scripts beside the weights of a packed model; None without any."""
    return next((path for name in (DOCUMENTS, SCRIPTS) if (path := folder / name).is_file()), None)


def default_model() -> Path:
    """Return the folder of the model that answers where none is named."""
    folder = packaged(DEFAULT)
    if folder is None:
        raise UserError(
            f"no model is named, and this installation comes without {DEFAULT}, the one that would answer\n"
            "name a run folder, or a model on the Hugging Face Hub; ssdvae demo makes a run in three minutes"
        )
    return folder


class SavedModel(ModelHubMixin, library_name="ssdvae", tags=["events", "scripts", "frames"]):
    """The methods of ``Model`` that save, load and publish it."""

    config: ModelOptions
    vocabulary: Vocabulary
    frames: Inventory
    slots: Slots
    columns: Columns | None
    context_window: ContextWindow
    quantiles: SurprisalQuantiles | None
    vectors: WordVectors | None

    def generate_model_card(
        self, *args: Any, scores: dict[str, Any] | None = None, extras: CardExtras = NO_EXTRAS, **kwargs: Any
    ) -> ModelCard:
        words, frames = len(self.vocabulary), len(self.frames)
        return model_card(self.config, words, frames, scores, self.context_window, self.slots, extras)

    def save(self, folder: Path, scores: dict[str, Any], extras: CardExtras = NO_EXTRAS) -> None:
        """Write the model to a folder that may hold an older one, with its card.

        The weights are written in the precision that they have: ``model.half()`` has half the bytes. Models
        are loaded in full precision.
        """
        with translate_os_errors(folder, "write"):
            # Not save_pretrained, which first takes the old config.json away.
            self._save_pretrained(folder)
            with atomic_write(folder / README) as path:
                self.generate_model_card(scores=scores, extras=extras).save(path)

    def _save_pretrained(self, save_directory: Path) -> None:
        from ssdvae.models.base import Model  # which needs this module first
        from ssdvae.models.cases import CaseModel

        assert isinstance(self, Model)
        weights = {name: compact(x) for name, x in self.weights_to_publish().items()}
        # Before anything is written: what was saved before stays whole.
        check_finite(weights, "the model is not saved")
        with atomic_write(save_directory / "config.json") as path:
            values = versioned(self.config.to_publish())
            values |= {"reading": self.context_window.model_dump(), "slots": self.slots}
            if self.columns is not None:
                values["columns"] = self.columns.model_dump(mode="json")
            if isinstance(self, CaseModel):
                parts = {"ends": self.end, "times": self.clock}
                values |= {name: True for name, part in parts.items() if part is not None}
            path.write_text(json.dumps(values, indent=2) + "\n")
        self.vocabulary.save(save_directory / "vocab.json")
        self.frames.save(save_directory / "frames.json")
        # The weights come last, and vouch for the others.
        digests = {name: sha256(save_directory / name) for name in FILES if name.endswith(".json")}
        save_weights(save_directory / "model.safetensors", weights, digests)
        if self.quantiles is not None:
            self.quantiles.write(save_directory)
        if self.vectors is not None:
            self.vectors.write(save_directory)

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
    ) -> Model:
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
                    allow_patterns=[*FILES, TYPICAL, WORD_VECTORS],
                )
            )
        return cls.read(folder)

    @classmethod
    def read(cls, folder: Path) -> Model:
        """Return the model in a folder."""
        return read_model(folder)


class ModelFile(Record, extra="allow"):
    """The part of ``config.json`` that is no option of the model: slots, columns, windows, cases."""

    reading: ContextWindow = ContextWindow()
    slots: Annotated[Slots, Field(strict=False), AfterValidator(check_slots)] = SLOTS
    columns: Columns | None = None
    ends: bool = False
    times: bool = False

    @model_validator(mode="after")
    def _check(self) -> ModelFile:
        if self.columns is not None and self.columns.slots != self.slots:
            raise Malformed("other slots than those of its columns", ", ".join(self.columns.slots))
        return self


def read_model(folder: Path) -> Model:
    """Return the model in a folder, whichever it is."""
    from ssdvae.models.cases import CaseModel  # these need this module first
    from ssdvae.models.registry import model_class

    for name in FILES:
        if not (folder / name).is_file():
            raise UserError(
                f"{folder} has no {name}: it holds no model, or its run was not yet validated\n"
                f"go on with a run: ssdvae train --resume {folder}"
            )
    weights = folder / "model.safetensors"
    digests = load_metadata(weights, EXPECTED)
    if SEAL not in digests and folder.parent == FOLDER:
        raise DataError(weights, None, "no SHA-256 of the weights", "that of a packaged model")
    for name, digest in digests.items():
        if name in FILES and digest != sha256(folder / name):
            found, expected = "another file than the weights were saved with (SHA-256)", f"their {name}"
            raise DataError(folder / name, None, found, expected, "copy the folder again, or train again")
    path = folder / "config.json"
    file = read_json(path, ModelFile, "the options of a model")
    try:
        settings = ModelOptions.read(unversioned(file.model_extra or {}))
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    vocabulary, frames = Vocabulary.load(folder / "vocab.json"), Inventory.load(folder / "frames.json")

    def create() -> Model:
        model = model_class(settings.model)(settings, vocabulary, frames, file.slots)
        if isinstance(model, CaseModel):
            model.learn_cases(file.ends, file.times)
        return model

    try:
        with torch.device("meta"):
            shapes = create()
    except (RuntimeError, OverflowError, TypeError) as error:  # more numbers than a tensor can have
        raise DataError(path, None, "sizes that no tensor can have", "those of the weights") from error
    check_shapes(weights, shapes, EXPECTED)
    tensors, _ = load_weights(weights, EXPECTED)
    model = create()
    model.context_window, model.columns = file.reading, file.columns
    model.quantiles, model.vectors = SurprisalQuantiles.read(folder), WordVectors.read(folder)
    assign_weights(model, tensors, weights, EXPECTED)
    return model.eval()
