"""One group of settings a model, composed of shared groups.

A group has what is needed to build the model again: its sizes and the weights of its objective.
``MODEL_SETTINGS`` has all of them by the name of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from ssdvae.config.settings import Settings, setting, unknown_setting
from ssdvae.errors import UserError


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Settings):
    """Those of every model. ``ModelSettings.of`` and ``exactly`` give those of the model that is named."""

    model: ClassVar[str] = ""
    """The name of the model whose settings these are."""
    topic: ClassVar[str] = "all models"

    embedding: int | None = setting(
        None, "dimension of the word vectors; by default that of --vectors, else 300", at_least=1
    )
    hidden: int = setting(
        512,
        "hidden units of each GRU layer and direction; also the dimension of the frame vectors",
        at_least=1,
    )
    layers: int = setting(2, "GRU layers", at_least=1, at_most=1000)

    @property
    def word_width(self) -> int:
        """The dimension of the word vectors; without any given, that of the paper's."""
        return self.embedding or 300

    @property
    def role_width(self) -> int:
        """The dimension of the role vectors; 0 for none."""
        return 0

    @classmethod
    def names_for(cls, values: Mapping[str, Any]) -> Iterable[str]:
        return settings_of_model(values, cls).names()

    @classmethod
    def refuse_unknown(cls, values: Mapping[str, Any]) -> None:
        kind = settings_of_model(values, cls)
        for name in values:
            if name != "model":
                kind.refuse_if_missing(name, kind.names())

    @classmethod
    def refuse_if_missing(cls, name: str, known: tuple[str, ...]) -> None:
        """Refuse a setting that is not among the ``known`` ones of this model; and say whose it is."""
        if name not in known:
            owners = [model for model, kind in MODEL_SETTINGS.items() if name in kind.names()]
            hint = f" ({', '.join(owners)} {'has' if len(owners) == 1 else 'have'} it)" if owners else ""
            raise unknown_setting(name, known, cls.model, hint)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        kind = settings_of_model(values, cls)
        return kind(**{name: values[name] for name in kind.names() if name in values})

    @classmethod
    def exactly(cls, values: Mapping[str, Any]) -> Self:
        cls.refuse_unknown(values)
        return cls.of(values)

    def to_dict(self) -> dict[str, Any]:
        return {"model": self.model, **super().to_dict()}

    def to_publish(self) -> dict[str, Any]:
        """The settings that are saved with a model: those that it takes to build it again."""
        left_out = [name for name, definition in self.table().items() if definition.training_only]
        return {name: value for name, value in self.to_dict().items() if name not in left_out}


@dataclass(frozen=True, kw_only=True)
class RoleSettings(ModelSettings):
    """Those of the models with role vectors."""

    topic: ClassVar[str] = "role vectors"

    role_embedding: int = setting(300, "dimension of the role vectors", at_least=1)

    @property
    def role_width(self) -> int:
        return self.role_embedding


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(ModelSettings):
    """Those of the models whose decoder attends to latent variables."""

    topic: ClassVar[str] = "latent variables"

    attention: Literal["addition", "concatenation"] = setting(
        "addition", "how attention combines query and context"
    )
    normalize: Literal["word", "document"] = setting(
        "word",
        "word: the weights of the objective are multiplied by the number of words of the document; "
        "document: they are taken as printed in the paper",
    )


@dataclass(frozen=True, kw_only=True)
class SSDVAESettings(AttentionSettings):
    model: ClassVar[str] = "ssdvae"
    topic: ClassVar[str] = "SSDVAE"

    variant: Literal["text", "code"] = setting(
        "text",
        "text: the model of the paper; code: that of the authors' code of its time, with a document vector "
        "and observed frames that replace the logits of their events. The vector conditions on the words "
        "that it helps to predict: such a perplexity is marked, and has no bound",
    )
    temperature: float = setting(0.5, "temperature of the Gumbel-Softmax (τ)", above=0)
    samples: int = setting(
        1, "frame sequences sampled per document in training (S)", at_least=1, at_most=10_000
    )
    entropy_weight: float = setting(0.1, "weight of the entropy of the latent frames (α_q)")
    frame_weight: float = setting(0.1, "weight of the loss of the observed frames (α_c)")


@dataclass(frozen=True, kw_only=True)
class TiedSettings(ModelSettings):
    """Those of the models that may tie their output layer."""

    topic: ClassVar[str] = "predicting words"

    tied: bool = setting(True, "tie the output layer to the word vectors")


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings(TiedSettings):
    """Those of the models whose words condition on the words before alone."""

    sampled_words: int = setting(
        0,
        "sampled softmax in training: the expected number of words compared with the true one, drawn by "
        "frequency; 0 for all words. Faster for very large vocabularies, and an approximation; evaluation "
        "is always exact",
        at_least=0,
    )
    context_vector: int = setting(
        0, "dimension of a running mean of the events so far, added to the states; 0 for none", at_least=0
    )


@dataclass(frozen=True, kw_only=True)
class DocumentVectorSettings(LanguageModelSettings):
    """Those of the language models that may have a vector of the whole document."""

    document_vector: int = setting(
        0,
        "dimension of a vector of the whole document, added to the logits of words; 0 for none, 20 in the "
        "authors' code of SSDVAE. It conditions on the words that it helps to predict: such a perplexity is "
        "marked, and has no bound",
        at_least=0,
    )


@dataclass(frozen=True, kw_only=True)
class ExactSettings(LanguageModelSettings):
    model: ClassVar[str] = "ssdvae-exact"
    topic: ClassVar[str] = "frames"

    lexicon: Path | None = setting(
        None,
        "which frames a head can have, beside those that it is observed with: table or JSON of lemmas or "
        "words and their frames, as annotate takes it",
        training_only=True,
    )
    candidates: int = setting(
        8, "candidate frames of a head: its most frequent ones, each with a weight of its own", at_least=1
    )
    unnamed_frames: int = setting(
        0,
        "frames to discover beside those of the corpus; each is named after its most likely heads",
        at_least=0,
        at_most=100_000,
    )
    unnamed_start: float = setting(
        1.0,
        "fraction of the training in which unlabelled events have the unnamed frames that counting gives "
        "them; then these are latent",
        at_least=0,
        at_most=1,
        training_only=True,
    )


@dataclass(frozen=True, kw_only=True)
class RNNLMSettings(DocumentVectorSettings):
    model: ClassVar[str] = "rnnlm"


@dataclass(frozen=True, kw_only=True)
class RNNLMRoleSettings(DocumentVectorSettings, RoleSettings):
    model: ClassVar[str] = "rnnlm-role"


@dataclass(frozen=True, kw_only=True)
class HAQAESettings(AttentionSettings, TiedSettings):
    model: ClassVar[str] = "haqae"
    topic: ClassVar[str] = "HAQAE"

    structure: Literal["chain", "tree"] = setting("tree", "dependencies between the latent variables")
    latents: int = setting(5, "number of latent variables", at_least=1, at_most=10_000)
    codes: int = setting(512, "codes in the codebook of each latent variable (K)", at_least=1)
    code_width: int = setting(256, "dimension of a code", at_least=1)
    commit_weight: float = setting(0.25, "weight of the commitment loss")
    parent_commit_weight: float = setting(0.15, "weight of the commitment loss of the parents")
    revive: bool = setting(False, "re-initialise dead codes beside frequently used ones")


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(ModelSettings):
    """Those of both frame classifiers."""

    topic: ClassVar[str] = "frame classifiers"

    dropout: float = setting(0.15, "dropout rate of the last hidden states", at_least=0, below=1)


@dataclass(frozen=True, kw_only=True)
class RNNLMClassifierSettings(ClassifierSettings):
    model: ClassVar[str] = "rnnlm-classifier"


@dataclass(frozen=True, kw_only=True)
class RNNLMRoleClassifierSettings(ClassifierSettings, RoleSettings):
    model: ClassVar[str] = "rnnlm-role-classifier"


DEFAULT_MODEL = ExactSettings.model

MODEL_SETTINGS: dict[str, type[ModelSettings]] = {
    kind.model: kind
    for kind in (
        ExactSettings,
        SSDVAESettings,
        RNNLMSettings,
        RNNLMRoleSettings,
        HAQAESettings,
        RNNLMClassifierSettings,
        RNNLMRoleClassifierSettings,
    )
}
"""The settings of each model, by its name."""


Group = TypeVar("Group", bound=ModelSettings)


def settings_of_model(values: Mapping[str, Any], base: type[Group]) -> type[Group]:
    """The group of settings that a mapping is about: that of its ``model``, which is a kind of ``base``."""
    if base.model:
        return base
    name = values.get("model", DEFAULT_MODEL)
    kind = MODEL_SETTINGS.get(name) if isinstance(name, str) else None
    if kind is None or not issubclass(kind, base):
        raise UserError(f"--model: found {name!r}, expected one of {', '.join(MODEL_SETTINGS)}")
    return kind
