"""One group of settings a model, composed of shared groups.

A group has what is needed to build the model again: its sizes and the weights of its objective.
``MODEL_SETTINGS`` has all of them by the name of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from ssdvae.config.recipes import Recipe
from ssdvae.config.settings import Settings, setting, unknown_setting
from ssdvae.errors import UserError


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Settings):
    """Those of every model. ``ModelSettings.of`` and ``exactly`` give those of the model that is named."""

    model: ClassVar[str] = ""
    """The name of the model whose settings these are."""
    topic: ClassVar[str] = "all models"

    recipe: Recipe | None = setting(
        "paper",
        "named set of settings, which changes the defaults below: guided, the best that we know; paper, the "
        "paper's",
        topic="recipe and size",
    )
    embedding: int | None = setting(
        None, "dimension of the word vectors; by default that of --vectors, else 300", at_least=1
    )
    hidden: int = setting(
        512,
        "hidden units of each GRU layer and direction; also the dimension of the frame vectors",
        at_least=1,
    )
    layers: int = setting(2, "GRU layers", at_least=1, at_most=1000)
    role_embedding: int = setting(
        300, "dimension of the role vectors, where the model has any (--roles)", at_least=1
    )

    @property
    def word_width(self) -> int:
        """The dimension of the word vectors; without any given, that of the paper's."""
        return self.embedding or 300

    @property
    def role_width(self) -> int:
        """The dimension of the role vectors; 0 for none."""
        return self.role_embedding

    @property
    def keeps_last(self) -> bool:
        """Whether the last weights of a run are kept, and not those of the best validation."""
        return False

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
class OptionalRoleSettings(ModelSettings):
    """Those of the models that may have role vectors."""

    topic: ClassVar[str] = "role vectors"

    roles: bool = setting(False, "concatenate a learned role vector to each word vector")

    @property
    def role_width(self) -> int:
        return self.role_embedding if self.roles else 0


@dataclass(frozen=True, kw_only=True)
class WordPredictionSettings(ModelSettings):
    """Those of the models that give words a probability."""

    topic: ClassVar[str] = "predicting words"

    tied: bool = setting(False, "tie the output layer to the word vectors")
    sampled_words: int = setting(
        0,
        "sampled softmax in training: the expected number of words compared with the true one, drawn by "
        "frequency; 0 for all words. Faster for very large vocabularies, and an approximation; evaluation "
        "is always exact",
        at_least=0,
    )


@dataclass(frozen=True, kw_only=True)
class LatentSettings(WordPredictionSettings):
    """Those of the models whose words depend on latent variables."""

    topic: ClassVar[str] = "latent variables"

    attention: Literal["addition", "concatenation"] = setting(
        "addition", "how attention combines query and context"
    )
    normalize: Literal["word", "document"] = setting(
        "word",
        "word: the weights of the objective are multiplied by the number of words of the document; "
        "document: the formula as printed in the paper",
    )


@dataclass(frozen=True, kw_only=True)
class DocumentVectorSettings(WordPredictionSettings):
    """Those of the models that may have a vector of the whole document."""

    document_vector: int = setting(
        0,
        "dimension of a vector of the whole document, added to the logits of frames and words; 0 in the "
        "paper, 20 in the authors' code of its time. It has read the words that it helps to predict: such a "
        "perplexity is marked, and has no bound",
        at_least=0,
    )


@dataclass(frozen=True, kw_only=True)
class FrameFindingSettings(ModelSettings):
    """Those of the models that may have frames which no label names."""

    topic: ClassVar[str] = "unnamed frames"

    unnamed_frames: int = setting(
        0,
        "frames beside those of the corpus that no label names and the model finds by itself",
        at_least=0,
        at_most=100_000,
    )
    unnamed_start: float = setting(
        1.0,
        "fraction of the training in which events that no label covers have the unnamed frames that counting "
        "gives them; then these are latent",
        at_least=0,
        at_most=1,
        training_only=True,
    )


@dataclass(frozen=True, kw_only=True)
class LexiconSettings(ModelSettings):
    """Those of the models that may be told which frames a head can have."""

    topic: ClassVar[str] = "what is known of frames"

    lexicon: Path | None = setting(
        None,
        "which frames a head can have, beside those that it is observed with: table or JSON of lemmas or "
        "words and their frames, as annotate takes it",
        training_only=True,
    )


@dataclass(frozen=True, kw_only=True)
class SSDVAESettings(
    LatentSettings, DocumentVectorSettings, LexiconSettings, OptionalRoleSettings, FrameFindingSettings
):
    model: ClassVar[str] = "ssdvae"
    topic: ClassVar[str] = "SSDVAE"

    temperature: float = setting(0.5, "temperature of the Gumbel-Softmax (τ)", above=0)
    samples: int = setting(
        1, "frame sequences sampled per document in training (S)", at_least=1, at_most=10_000
    )
    foresight: float = setting(
        0.0,
        "fraction of the training steps in which the encoder reads only the first events and predicts the "
        "frames of the rest, as it does to continue a script; 0 in the paper",
        at_least=0,
        at_most=1,
    )
    injection: Literal["add", "replace"] = setting(
        "add",
        "what an observed frame does to the logits of its event: add to its own, as in the paper, or "
        "replace them all, as in the authors' code of its time",
    )
    entropy_weight: float = setting(0.1, "weight of the entropy of the latent frames (α_q)")
    frame_weight: float = setting(0.1, "weight of the loss of the observed frames (α_c)")
    objective: Literal["paper", "bound"] = setting(
        "paper",
        "paper: the paper's objective, which rewards the entropy of latent frames; bound: the evidence lower "
        "bound, with the KL divergence of latent frames from the prior and −log p(frame) of observed ones",
    )
    prior: Literal["uniform", "markov", "framenet", "history"] = setting(
        "uniform",
        "p(frames): uniform, as in the paper; markov: learned transitions from frame to frame; framenet: the "
        "same, initialised from the observed frames and FrameNet's relations; history: given all earlier "
        "frames and words",
    )
    prior_rank: int = setting(64, "rank of the transition matrix of a markov or framenet prior", at_least=1)
    relations: Path | None = setting(
        None,
        "JSON list of relations between frames, for --prior framenet; by default from NLTK's FrameNet",
        training_only=True,
    )
    kl_weight: float = setting(1.0, "weight of the KL divergence in --objective bound (β)", at_least=0)
    kl_warmup: float = setting(
        0.0,
        "fraction of the training over which that weight rises linearly from 0",
        at_least=0,
        at_most=1,
    )
    free_nats: float = setting(
        0.0, "KL divergence per latent frame that is not penalised, in nats", at_least=0
    )
    estimator: Literal["soft", "straight-through", "reinmax"] = setting(
        "soft",
        "gradient estimator of the frames: Gumbel-Softmax, straight-through Gumbel-Softmax, or ReinMax",
    )
    guide: Literal["attention", "aligned", "local"] = setting(
        "attention",
        "what links frames and words: attention alone; or, aligned, also a direct connection between each "
        "frame and the words of its event; or, local, that connection alone, for documents of any length",
    )
    word_dropout: float = setting(
        0.0,
        "probability that the encoder reads nothing in the place of a word, in training; 0 in the paper",
        at_least=0,
        below=1,
    )
    preference: bool = setting(
        False,
        "prefer the frames that a head (or another form of its lemma) was observed with in training, or has "
        "in --lexicon, as strongly as is learned; others stay possible",
    )
    surroundings: float = setting(
        0.0,
        "fraction of the training steps in which the encoder reads each document between the end of another "
        "and the beginning of a third, so that it need not begin where a text begins",
        at_least=0,
        at_most=1,
    )

    def check_relations(self) -> None:
        self._require("lexicon", self.lexicon is None or self.preference, "no file without --preference")


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings(WordPredictionSettings):
    """Those of the models whose words depend on the words before, and on nothing that is sampled."""

    topic: ClassVar[str] = "language models"

    past_vector: int = setting(
        0, "dimension of a vector of the events so far, added to the states; 0 for none", at_least=0
    )
    state_dropout: float = setting(
        0.0, "dropout rate of the word vectors and of the states", at_least=0, below=1
    )
    contrast: float = setting(
        0.0,
        "weight of a contrastive loss: the true continuation of a first event against those of other "
        "documents. The last weights are then kept, not those of the best perplexity",
        at_least=0,
    )
    contrast_group: int = setting(
        4, "documents whose continuations are compared with each other in that loss", at_least=3
    )

    @property
    def keeps_last(self) -> bool:
        # Contrast is worth some perplexity, and is not to be undone for it.
        return self.contrast > 0


@dataclass(frozen=True, kw_only=True)
class RNNLMSettings(LanguageModelSettings, DocumentVectorSettings, OptionalRoleSettings):
    model: ClassVar[str] = "rnnlm"


@dataclass(frozen=True, kw_only=True)
class RNNLMRoleSettings(LanguageModelSettings, DocumentVectorSettings):
    model: ClassVar[str] = "rnnlm-role"


@dataclass(frozen=True, kw_only=True)
class PlannerSettings(LanguageModelSettings, LexiconSettings, OptionalRoleSettings, FrameFindingSettings):
    model: ClassVar[str] = "planner"
    topic: ClassVar[str] = "planner"

    mixture: Literal["head", "event"] = setting(
        "head", "what is a mixture over frames: p(head) alone, or p(head and arguments)"
    )
    candidates: int = setting(
        8, "candidate frames of a head: its most frequent ones, each with a weight of its own", at_least=1
    )
    frame_vectors: Literal["heads", "random"] = setting(
        "heads", "how the frame vectors are initialised: with the mean vector of their heads, or at random"
    )
    label_weight: float = setting(
        1.0,
        "weight of the observed frames in the loss; with 1 that is −log p(words, observed frames)",
        at_least=0,
    )


@dataclass(frozen=True, kw_only=True)
class HAQAESettings(LatentSettings, OptionalRoleSettings):
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
class RNNLMClassifierSettings(ClassifierSettings, OptionalRoleSettings):
    model: ClassVar[str] = "rnnlm-classifier"


@dataclass(frozen=True, kw_only=True)
class RNNLMRoleClassifierSettings(ClassifierSettings):
    model: ClassVar[str] = "rnnlm-role-classifier"


MODEL_SETTINGS: dict[str, type[ModelSettings]] = {
    kind.model: kind
    for kind in (
        SSDVAESettings,
        RNNLMSettings,
        RNNLMRoleSettings,
        HAQAESettings,
        PlannerSettings,
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
    name = values.get("model", SSDVAESettings.model)
    kind = MODEL_SETTINGS.get(name) if isinstance(name, str) else None
    if kind is None or not issubclass(kind, base):
        raise UserError(f"--model: found {name!r}, expected one of {', '.join(MODEL_SETTINGS)}")
    return kind
