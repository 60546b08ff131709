"""One options class per model, composed of shared groups.

A class has what is needed to build the model again: its sizes and the weights of its objective.
``MODEL_OPTIONS`` has all of them by the name of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field

from ssdvae.io.errors import UserError
from ssdvae.options import FilePath, Options, unknown_option


class ModelOptions(Options):
    """Options of every model. ``ModelOptions.of`` and ``read`` return those of the model that is named."""

    model: ClassVar[str] = ""
    """The name of the model."""
    training_only: ClassVar[frozenset[str]] = frozenset()
    """Options that change the training alone, and are no part of a saved model."""
    group: ClassVar[str] = "all models"

    embedding: int | None = Field(
        None, description="dimension of the word vectors; by default that of --vectors, else 300", ge=1
    )
    hidden: int = Field(
        512,
        description="hidden units of each GRU layer and direction; also the dimension of the frame vectors",
        ge=1,
    )
    layers: int = Field(2, description="GRU layers", ge=1, le=1000)

    @property
    def word_width(self) -> int:
        """The dimension of the word vectors; without any given, that of the paper's."""
        return self.embedding or 300

    @property
    def role_width(self) -> int:
        """The dimension of the role vectors; 0 for none."""
        return 0

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        kind = model_options_class(values, cls)
        return kind(**{name: values[name] for name in kind.names() if name in values})

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Return the options of the model that is named in the values, which have nothing else."""
        kind = model_options_class(values, cls)
        for name in values:
            if name != "model":
                kind.refuse_unknown(name, kind.names())
        return cls.of(values)

    @classmethod
    def refuse_unknown(cls, name: str, known: tuple[str, ...]) -> None:
        """Refuse an option that is not among the ``known`` ones of this model; name models that have it."""
        if name not in known:
            owners = models_with(name)
            hint = f" ({', '.join(owners)} {'has' if len(owners) == 1 else 'have'} it)" if owners else ""
            raise unknown_option(name, known, cls.model, hint)

    def to_dict(self) -> dict[str, Any]:
        return {"model": self.model, **super().to_dict()}

    def to_publish(self) -> dict[str, Any]:
        """Return the options that are saved with a model: those that it takes to build it again."""
        return {name: value for name, value in self.to_dict().items() if name not in self.training_only}


class RoleOptions(ModelOptions):
    """Options of the models with role vectors."""

    group: ClassVar[str] = "role vectors"

    role_embedding: int = Field(300, description="dimension of the role vectors", ge=1)

    @property
    def role_width(self) -> int:
        return self.role_embedding


class AttentionOptions(ModelOptions):
    """Options of the models whose decoder attends to latent variables."""

    group: ClassVar[str] = "latent variables"

    attention: Literal["addition", "concatenation"] = Field(
        "addition", description="how attention combines query and context"
    )
    normalize: Literal["word", "document"] = Field(
        "word",
        description="word: the weights of the objective are multiplied by the number of words of the "
        "document; document: they are taken as printed in the paper",
    )


class SSDVAEOptions(AttentionOptions):
    model: ClassVar[str] = "ssdvae"
    group: ClassVar[str] = "SSDVAE"

    variant: Literal["text", "code"] = Field(
        "text",
        description="text: the model of the paper; code: that of the authors' code of its time, with a "
        "document vector and observed frames that replace the logits of their events. The vector "
        "conditions on the words that it helps to predict: such a perplexity is marked, and has no bound",
    )
    temperature: float = Field(0.5, description="temperature of the Gumbel-Softmax (τ)", gt=0)
    samples: int = Field(
        1, description="frame sequences sampled per document in training (S)", ge=1, le=10_000
    )
    entropy_weight: float = Field(0.1, description="weight of the entropy of the latent frames (α_q)")
    frame_weight: float = Field(0.1, description="weight of the loss of the observed frames (α_c)")


class TiedOptions(ModelOptions):
    """Options of the models that may tie their output layer."""

    group: ClassVar[str] = "predicting words"

    tied: bool = Field(True, description="tie the output layer to the word vectors")


class LanguageModelOptions(TiedOptions):
    """Options of the models whose words condition on the words before alone."""

    sampled_words: int = Field(
        0,
        description="sampled softmax in training: the expected number of words compared with the true one, "
        "drawn by frequency; 0 for all words. Faster for very large vocabularies, and an approximation; "
        "evaluation is always exact",
        ge=0,
    )
    context_vector: int = Field(
        0,
        description="dimension of a running mean of the events so far, added to the states; 0 for none",
        ge=0,
    )


class DocumentVectorOptions(LanguageModelOptions):
    """Options of the language models that may have a vector of the whole document."""

    document_vector: int = Field(
        0,
        description="dimension of a vector of the whole document, added to the logits of words; 0 for "
        "none, 20 in the authors' code of SSDVAE. It conditions on the words that it helps to predict: "
        "such a perplexity is marked, and has no bound",
        ge=0,
    )


class ExactOptions(LanguageModelOptions):
    model: ClassVar[str] = "ssdvae-exact"
    training_only: ClassVar[frozenset[str]] = frozenset({"lexicon", "unnamed_start"})
    group: ClassVar[str] = "frames"

    lexicon: FilePath | None = Field(
        None,
        description="which frames a head can have, beside those that it is observed with: table or JSON of "
        "lemmas or words and their frames, as annotate takes it",
    )
    candidates: int = Field(
        8,
        description="candidate frames of a head: its most frequent ones, each with a weight of its own",
        ge=1,
    )
    unnamed_frames: int = Field(
        0,
        description="frames to discover beside those of the corpus; each is named after its most likely "
        "heads",
        ge=0,
        le=100_000,
    )
    unnamed_start: float = Field(
        1.0,
        description="fraction of the training in which unlabelled events have the unnamed frames that "
        "counting gives them; then these are latent",
        ge=0,
        le=1,
    )


class RNNLMOptions(DocumentVectorOptions):
    model: ClassVar[str] = "rnnlm"


class RNNLMRoleOptions(DocumentVectorOptions, RoleOptions):
    model: ClassVar[str] = "rnnlm-role"


class HAQAEOptions(AttentionOptions, TiedOptions):
    model: ClassVar[str] = "haqae"
    group: ClassVar[str] = "HAQAE"

    structure: Literal["chain", "tree"] = Field(
        "tree", description="dependencies between the latent variables"
    )
    latents: int = Field(5, description="number of latent variables", ge=1, le=10_000)
    codes: int = Field(512, description="codes in the codebook of each latent variable (K)", ge=1)
    code_width: int = Field(256, description="dimension of a code", ge=1)
    commit_weight: float = Field(0.25, description="weight of the commitment loss")
    parent_commit_weight: float = Field(0.15, description="weight of the commitment loss of the parents")
    revive: bool = Field(False, description="re-initialise dead codes beside frequently used ones")


class ClassifierOptions(ModelOptions):
    """Options of both frame classifiers."""

    group: ClassVar[str] = "frame classifiers"

    dropout: float = Field(0.15, description="dropout rate of the last hidden states", ge=0, lt=1)


class RNNLMClassifierOptions(ClassifierOptions):
    model: ClassVar[str] = "rnnlm-classifier"


class RNNLMRoleClassifierOptions(ClassifierOptions, RoleOptions):
    model: ClassVar[str] = "rnnlm-role-classifier"


DEFAULT_MODEL = ExactOptions.model

MODEL_OPTIONS: dict[str, type[ModelOptions]] = {
    kind.model: kind
    for kind in (
        ExactOptions,
        SSDVAEOptions,
        RNNLMOptions,
        RNNLMRoleOptions,
        HAQAEOptions,
        RNNLMClassifierOptions,
        RNNLMRoleClassifierOptions,
    )
}
"""The settings of each model, by its name."""


Group = TypeVar("Group", bound=ModelOptions)


def model_options_class(values: Mapping[str, Any], base: type[Group]) -> type[Group]:
    """Return the options class of the model that a mapping names, which must be a kind of ``base``."""
    if base.model:
        return base
    name = values.get("model", DEFAULT_MODEL)
    kind = MODEL_OPTIONS.get(name) if isinstance(name, str) else None
    if kind is None or not issubclass(kind, base):
        raise UserError(f"--model: found {name!r}, expected one of {', '.join(MODEL_OPTIONS)}")
    return kind


def models_with(name: str) -> tuple[str, ...]:
    """Return the models that have an option."""
    return tuple(model for model, kind in MODEL_OPTIONS.items() if name in kind.names())
