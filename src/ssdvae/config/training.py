"""Settings of a training run, and of the benchmark, which is one on made-up documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from ssdvae.config.models import DEFAULT_MODEL, MODEL_SETTINGS, ExactSettings, ModelSettings, SSDVAESettings
from ssdvae.config.presets import Counts, Preset, sizes
from ssdvae.config.settings import Bounds, Setting, Settings, setting
from ssdvae.config.slots import SLOTS

EVAL_BATCH = 400
"""Documents scored at once: with 200 a step of a GRU has too little to multiply, with 800 it is no faster."""

MODEL = Setting(
    "model",
    Literal[tuple(MODEL_SETTINGS)],
    DEFAULT_MODEL,
    "which model; the classifiers predict frames and give words no probability",
    "all models",
    Bounds(),
)
"""The one setting that decides which others there are."""

PAPER_DEFAULTS: Mapping[str, Any] = {"preset": "paper", "events": 5}
BEST_DEFAULTS: Mapping[str, Any] = {"preset": "auto", "decay": True}
"""How `train` trains by default: the paper's model as the paper does, all others as we know best."""


@dataclass(frozen=True, kw_only=True, init=False)
class TrainSettings(Settings):
    """A training run: a model's own settings, and how it is trained.

    ``TrainSettings(model="rnnlm", hidden=256, epochs=3)`` takes both, as flags and YAML do, and refuses one
    that the model does not have. Inside, they are apart: ``settings.epochs`` and
    ``settings.model_settings.hidden``; ``settings.model`` is the name of the model.

    What is not given has the default of the setting by itself, and ``preset`` is a name and no more.
    ``TrainSettings.chosen`` gives the defaults of the model and of the preset.
    """

    topic: ClassVar[str] = "optimisation"

    model_settings: ModelSettings = field(default_factory=ExactSettings)
    preset: Preset | None = setting(
        None,
        "named size, which changes the defaults below; auto is chosen by the number of events and words",
        topic="size",
    )
    observe: float = setting(
        0.9, "probability that a training frame is observed (ε)", at_least=0, at_most=1, topic="data"
    )
    events: int | None = setting(
        None,
        "read only the first events of each document (M); by default all",
        at_least=1,
        at_most=10_000,
        topic="data",
    )
    window: int | None = setting(
        None,
        "read documents with more events than this as overlapping windows of so many; by default each "
        "document is read in one piece",
        at_least=1,
        at_most=10_000,
        topic="data",
    )
    stride: int | None = setting(
        None,
        "events from the beginning of a window to that of the next; by default half of --window",
        at_least=1,
        topic="data",
    )
    vectors: Path | None = setting(
        None, "pretrained word vectors: GloVe or word2vec text, plain, .gz or .zip", topic="data"
    )
    init: Path | None = setting(
        None, "a run, or a saved model, whose weights training begins with: fine-tuning", topic="data"
    )
    batch: int = setting(100, "batch size: documents per step, over all processes", at_least=1)
    learning_rate: float = setting(1e-3, "learning rate of Adam", above=0)
    decay: bool = setting(False, "decay the learning rate linearly to 0 at the end of the last epoch")
    clip: float = setting(5.0, "gradient-norm clip", above=0)
    epochs: int = setting(40, "epochs, at most", at_least=1)
    patience: int = setting(
        10, "early stopping: validations without improvement before the run ends", at_least=1, topic="the run"
    )
    validate_steps: int | None = setting(
        None, "steps between validations; by default one epoch", at_least=1, topic="the run"
    )
    record_steps: int = setting(
        100, "steps between training records in metrics.jsonl", at_least=1, topic="the run"
    )
    save_minutes: float = setting(
        5.0,
        "minutes between checkpoints, 0 for one after every step; every validation writes one too",
        at_least=0,
        topic="the run",
    )
    seed: int = setting(
        1, "random seed of the initial weights, the order of documents, the masks and the noise", at_least=0
    )
    precision: Literal["no", "bf16", "fp16"] = setting("no", "mixed precision")
    track: str | None = setting(
        None,
        "experiment trackers to show the run in, comma-separated: tensorboard, wandb, mlflow, trackio, or "
        "another one that Accelerate knows; each needs its own package",
        topic="the run",
    )

    def __init__(self, *, model_settings: ModelSettings | None = None, **values: Any) -> None:
        if model_settings is None:
            self.refuse_unknown(values)
            group = ModelSettings.of(values)
        else:
            # What `dataclasses.replace` gives.
            self.refuse_unknown({"model": model_settings.model, **values})
            mine = {name: value for name, value in values.items() if name in model_settings.names()}
            group = model_settings.changed(**mine) if mine else model_settings
        object.__setattr__(self, "model_settings", group)
        for name, definition in self.training_table().items():
            object.__setattr__(self, name, values.get(name, definition.default))
        self.__post_init__()

    def __post_init__(self) -> None:
        for name, definition in self.training_table().items():
            object.__setattr__(self, name, definition.check(getattr(self, name)))
        self.check_relations()

    def check_relations(self) -> None:
        if self.stride is not None:
            self._require("stride", self.window is not None, "no number without --window")
            fits = self.stride <= (self.window or 0)
            self._require("stride", fits, f"at most the {self.window} of --window: no event is left out")

    @property
    def window_stride(self) -> int | None:
        """Events from the beginning of a window to that of the next; None where there are no windows."""
        return None if self.window is None else self.stride or -(-self.window // 2)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.model_settings.model

    @classmethod
    def training_table(cls) -> dict[str, Setting]:
        """The settings that are the same for all models."""
        return super().table()

    @classmethod
    def table(cls) -> dict[str, Setting]:
        """Every setting of every model, and those of the training."""
        models = {name: s for kind in MODEL_SETTINGS.values() for name, s in kind.table().items()}
        return {"model": MODEL, **models, **cls.training_table()}

    @classmethod
    def names_for(cls, values: Mapping[str, Any]) -> Iterable[str]:
        return ("model", *ModelSettings.names_for(values), *cls.training_table())

    @classmethod
    def refuse_unknown(cls, values: Mapping[str, Any]) -> None:
        known = tuple(cls.names_for(values))
        owner = MODEL_SETTINGS[values.get("model", MODEL.default)]
        for name in values:
            owner.refuse_if_missing(name, known)

    @classmethod
    def chosen(cls, given: Mapping[str, Any], counts: Counts | None = None) -> Self:
        """Return what is given, with the defaults of the model and of the size that fits these counts."""
        cls.refuse_unknown(given)
        return cls.of({**cls.defaults_for(given, counts), **given})

    @classmethod
    def model_defaults(cls, model: str) -> Mapping[str, Any]:
        """Return the defaults of a model that are not those of the settings by themselves."""
        return PAPER_DEFAULTS if model == SSDVAESettings.model else BEST_DEFAULTS

    @classmethod
    def defaults_for(cls, given: Mapping[str, Any], counts: Counts | None = None) -> dict[str, Any]:
        """Return the defaults that the given model and preset stand for."""
        named = {**cls.model_defaults(given.get("model", MODEL.default)), **given}
        size = dict(sizes(named.get("preset"), counts))
        if named.get("preset") == "auto" and given.get("vectors") is not None:
            del size["embedding"]  # it is that of the vectors
        return {**named, **size}

    def changed(self, **changes: Any) -> Self:
        """The same settings but for some; another model takes over those that it has, too."""
        self.refuse_unknown({"model": self.model, **changes})
        return self.of({**self.values(), **changes})

    def values(self) -> dict[str, Any]:
        mine = {name: getattr(self, name) for name in self.training_table()}
        return {"model": self.model, **self.model_settings.values(), **mine}


@dataclass(frozen=True, kw_only=True, init=False)
class BenchmarkSettings(TrainSettings):
    """What is timed: steps of a training run on documents that are made up."""

    topic: ClassVar[str] = "what is timed"

    events: str = setting(  # type: ignore[assignment]  # of a run there is one
        "5",
        "events per document (M); several, such as 5,50,200, are timed one after another, each in a process "
        "of its own, with as many events in a batch as the first",
    )
    slots: int = setting(len(SLOTS), "slots of an event", at_least=1, at_most=100)
    vocabulary: int = setting(40_000, "vocabulary size (V)", at_least=3)
    frames: int = setting(500, "number of frames (F)", at_least=1)
    steps: int = setting(5, "number of training steps, and of evaluation batches, that are timed", at_least=1)
    eval_batch: int = setting(EVAL_BATCH, "batch size of the evaluation", at_least=1)

    @classmethod
    def model_defaults(cls, model: str) -> Mapping[str, Any]:
        return {}

    def __init__(self, **values: Any) -> None:
        if isinstance(values.get("events"), int):
            values["events"] = str(values["events"])
        super().__init__(**values)

    def check_relations(self) -> None:
        numbers = [int(part) if part.strip().isdecimal() else 0 for part in self.events.split(",")]
        fits = all(1 <= number <= 10_000 for number in numbers)
        self._require("events", fits, "whole numbers from 1 to 10000, with commas between")

    @property
    def lengths(self) -> list[int]:
        """The numbers of events, each once."""
        return list(dict.fromkeys(int(part) for part in self.events.split(",")))

    def of_length(self, events: int) -> Self:
        """The same for documents of so many events, with as many in a batch as the first number gives."""
        first = self.lengths[0]
        sizes = {name: max(1, getattr(self, name) * first // events) for name in ("batch", "eval_batch")}
        return self.changed(events=str(events), **sizes)


def definitions(kind: type[Settings], given: Mapping[str, Any]) -> dict[str, Setting]:
    """Return the settings of a group, with the defaults that a size and a model give to them."""
    defaults = dict(given)
    if issubclass(kind, TrainSettings):
        defaults |= kind.defaults_for(given)
    else:
        defaults |= sizes(given.get("preset"))
    return {
        name: replace(definition, default=defaults.get(name, definition.default))
        for name, definition in kind.table().items()
    }


def models_with(name: str) -> tuple[str, ...]:
    """The models that have a setting."""
    return tuple(model for model, kind in MODEL_SETTINGS.items() if name in kind.names())
