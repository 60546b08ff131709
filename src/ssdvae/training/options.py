"""Options of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SerializeAsAny
from pydantic.fields import FieldInfo

from ssdvae.models.options import (
    DEFAULT_MODEL,
    MODEL_OPTIONS,
    ExactOptions,
    ModelOptions,
    SSDVAEOptions,
    model_options_class,
    models_with,
)
from ssdvae.options import Counts, FilePath, Options, Preset, sizes, with_default

MODEL_FIELD = FieldInfo(
    annotation=Literal[tuple(MODEL_OPTIONS)],  # type: ignore[arg-type]  # known when it runs
    default=DEFAULT_MODEL,
    description="which model; the classifiers predict frames and give words no probability",
)
"""The one option that decides which others there are."""

PAPER_DEFAULTS: Mapping[str, Any] = {"preset": "paper", "events": 5, "precision": "auto"}
BEST_DEFAULTS: Mapping[str, Any] = {"preset": "auto", "decay": True, "precision": "auto"}
"""Defaults of `train` by model: the paper's for its model, the best known for the others."""


class SizeOptions(Options):
    group: ClassVar[str] = "size"

    preset: Preset | None = Field(
        None,
        description="named size, which changes the defaults below; auto is chosen by the number of events "
        "and words",
    )


class ReadingOptions(Options):
    """Options of the data of a run."""

    group: ClassVar[str] = "data"

    observe: float = Field(0.9, description="probability that a training frame is observed (ε)", ge=0, le=1)
    events: int | None = Field(
        None, description="read only the first events of each document (M); by default all", ge=1, le=10_000
    )
    window: int | None = Field(
        None,
        description="read documents with more events than this as overlapping windows of so many; by "
        "default each document is read in one piece",
        ge=1,
        le=10_000,
    )
    stride: int | None = Field(
        None,
        description="events from the beginning of a window to that of the next; by default half of --window",
        ge=1,
    )
    vectors: FilePath | None = Field(
        None, description="pretrained word vectors: GloVe or word2vec text, plain, .gz or .zip"
    )
    init: FilePath | None = Field(
        None, description="a run, or a saved model, whose weights training begins with: fine-tuning"
    )

    def check_relations(self) -> None:
        super().check_relations()
        if self.stride is not None:
            self._require("stride", self.window is not None, "no number without --window")
            fits = self.stride <= (self.window or 0)
            self._require("stride", fits, f"at most the {self.window} of --window: no event is left out")

    @property
    def window_stride(self) -> int | None:
        """Events from the beginning of a window to that of the next; None where there are no windows."""
        return None if self.window is None else self.stride or -(-self.window // 2)


class OptimizerOptions(Options):
    group: ClassVar[str] = "optimization"

    batch: int = Field(100, description="batch size: documents per step, over all processes", ge=1)
    learning_rate: float = Field(1e-3, description="learning rate of Adam", gt=0)
    decay: bool = Field(
        False, description="decay the learning rate linearly to 0 at the end of the last epoch"
    )
    clip: float = Field(5.0, description="gradient-norm clip", gt=0)
    epochs: int = Field(40, description="epochs, at most", ge=1)
    seed: int = Field(
        1,
        description="random seed of the initial weights, the order of documents, the masks and the noise",
        ge=0,
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "fp32",
        description="arithmetic of the products in training steps; auto: bf16 where the processor or GPU has "
        "it and the model is not small, else fp32. Weights, sums and losses are always fp32",
    )


class ProgressOptions(Options):
    """When a run validates, records, saves and stops."""

    group: ClassVar[str] = "the run"

    patience: int = Field(
        10, description="early stopping: validations without improvement before the run ends", ge=1
    )
    validate_steps: int | None = Field(
        None, description="steps between validations; by default one epoch", ge=1
    )
    record_steps: int = Field(100, description="steps between training records in metrics.jsonl", ge=1)
    save_minutes: float = Field(
        5.0,
        description="minutes between checkpoints, 0 for one after every step; every validation writes one "
        "too",
        ge=0,
    )
    track: str | None = Field(
        None,
        description="experiment trackers to show the run in, comma-separated: tensorboard, wandb, mlflow, "
        "trackio, or another one that Accelerate knows; each needs its own package",
    )


class TrainOptions(ProgressOptions, OptimizerOptions, ReadingOptions, SizeOptions):
    """Options of a training run: those of a model, and how it is trained.

    ``TrainOptions(model="rnnlm", hidden=256, epochs=3)`` takes both, as flags and YAML do, and refuses one
    that the model does not have. Inside, they are apart: ``options.epochs`` and
    ``options.model_options.hidden``; ``options.model`` is the name of the model.

    What is not given has the default of the option by itself, and ``preset`` is a name and no more.
    ``TrainOptions.chosen`` gives the defaults of the model and of the preset.
    """

    model_options: SerializeAsAny[ModelOptions] = ExactOptions()

    def __init__(self, *, model_options: ModelOptions | None = None, **values: Any) -> None:
        named = {"model": model_options.model, **values} if model_options is not None else values
        self.refuse_unknown(named)
        own = {name: value for name, value in values.items() if name in self.training_fields()}
        others = {name: value for name, value in values.items() if name not in own and name != "model"}
        if model_options is None:
            model_options = ModelOptions.of(named)
        elif others:
            model_options = model_options.changed(**others)
        super().__init__(**{"model_options": model_options, **own})

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.model_options.model

    @classmethod
    def training_fields(cls) -> dict[str, FieldInfo]:
        """Return the options that are the same for all models."""
        return {name: field for name, field in cls.model_fields.items() if name != "model_options"}

    @classmethod
    def fields(cls) -> dict[str, FieldInfo]:
        """Return every option of every model, and those of the training."""
        models = {name: field for kind in MODEL_OPTIONS.values() for name, field in kind.fields().items()}
        return {"model": MODEL_FIELD, **models, **cls.training_fields()}

    @classmethod
    def fields_for(cls, given: Mapping[str, Any]) -> dict[str, FieldInfo]:
        """Return the options of the given model, with the defaults that it and the preset have."""
        kind = model_options_class(given, ModelOptions)
        fields = {"model": MODEL_FIELD, **kind.fields(), **cls.training_fields()}
        defaults = {**given, **cls.defaults_for(given)}
        return {
            name: with_default(field, defaults.get(name, field.default)) for name, field in fields.items()
        }

    @classmethod
    def group_of(cls, name: str) -> str:
        if name == "model":
            return "all models"
        owner = next((MODEL_OPTIONS[model] for model in models_with(name)), None)
        return super().group_of(name) if owner is None or name in cls.model_fields else owner.group_of(name)

    @classmethod
    def refuse_unknown(cls, values: Mapping[str, Any]) -> None:
        """Refuse an option that the model does not have."""
        kind = model_options_class(values, ModelOptions)
        known = ("model", *kind.names(), *cls.training_fields())
        for name in values:
            kind.refuse_unknown(name, known)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        kind = model_options_class(values, ModelOptions)
        known = ("model", *kind.names(), *cls.training_fields())
        return cls(**{name: values[name] for name in known if name in values})

    @classmethod
    def chosen(cls, given: Mapping[str, Any], counts: Counts | None = None) -> Self:
        """Return what is given, with the defaults of the model and of the size that fits these counts."""
        cls.refuse_unknown(given)
        return cls.of({**cls.defaults_for(given, counts), **given})

    @classmethod
    def model_defaults(cls, model: str) -> Mapping[str, Any]:
        """Return the defaults of a model that are not those of the options by themselves."""
        return PAPER_DEFAULTS if model == SSDVAEOptions.model else BEST_DEFAULTS

    @classmethod
    def defaults_for(cls, given: Mapping[str, Any], counts: Counts | None = None) -> dict[str, Any]:
        """Return the defaults that the given model and preset stand for."""
        named = {**cls.model_defaults(given.get("model", DEFAULT_MODEL)), **given}
        size = dict(sizes(named.get("preset"), counts))
        if named.get("preset") == "auto" and given.get("vectors") is not None:
            del size["embedding"]  # it is that of the vectors
        return {**named, **size}

    def changed(self, **changes: Any) -> Self:
        """Return the same options with some changes; another model takes over those that it has, too."""
        self.refuse_unknown({"model": self.model, **changes})
        return self.of({**self.values(), **changes})

    def values(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.training_fields()}
        return {"model": self.model, **self.model_options.values(), **own}
