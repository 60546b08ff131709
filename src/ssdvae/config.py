"""Every setting, once: a dataclass field is the command-line flag, the YAML key and the Python argument.

This module imports nothing heavy, so that ``ssdvae --help`` answers at once.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from ssdvae.errors import UserError, shorten

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
TASKS = ("perplexity", "frames", "cloze")
REPRODUCED = (
    "rnnlm",
    "rnnlm-role",
    "haqae",
    "ssdvae",
    "ssdvae-concatenation",
    "rnnlm-classifier",
    "rnnlm-role-classifier",
)
"""The models in the paper's tables, as `reproduce --models` names them."""


def cores() -> int:
    """Cores that this process may use: what 0 means as a number of --jobs."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def setting(default: Any, help: str) -> Any:
    """A field with the sentence that explains it wherever it is shown."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all groups of settings can do."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(f.name for f in dataclasses.fields(cls))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """These settings from a wider mapping: keys that belong to others are passed over."""
        return cls(**{name: values[name] for name in cls.names() if name in values})

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """The named size, with changes: ``TrainSettings.preset("small", observe=0.5)``."""
        if unknown := [change for change in changes if change not in cls.names()]:
            raise UserError(f"no setting {unknown[0]!r}; there are: {', '.join(cls.names())}")
        return cls.of({**preset(name), **changes})

    def __post_init__(self) -> None:
        """Settings come from YAML and Python too, where nobody else has looked at choices and paths."""
        for name, hint in get_type_hints(type(self)).items():
            if get_origin(hint) is Literal:
                self._check(
                    name, getattr(self, name) in get_args(hint), f"one of {', '.join(get_args(hint))}"
                )
            elif Path in get_args(hint) and isinstance(getattr(self, name), str):
                object.__setattr__(self, name, Path(getattr(self, name)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as YAML and JSON have them."""
        return {k: str(v) if isinstance(v, Path) else v for k, v in dataclasses.asdict(self).items()}

    def _check(self, name: str, right: bool, expected: str) -> None:
        if not right:
            raise UserError(
                f"--{name.replace('_', '-')}: found {shorten(getattr(self, name))}, expected {expected}"
            )


@dataclass(frozen=True, kw_only=True)
class PrepareSettings(Settings):
    """From documents to a corpus folder."""

    events: int = setting(5, "events per document (M): the first ones are kept")
    min_events: int = setting(1, "documents with fewer usable events are left out")
    single_events: bool = setting(
        False, "make every event a document by itself (M = 1), as frame prediction needs it"
    )
    vocabulary: int = setting(40_000, "words (V), the most frequent of the training split")
    frames: int = setting(500, "frames (F), the most frequent of the training split")
    keep_frameless: bool = setting(
        False, "keep events without a frame, as always latent, instead of dropping them"
    )
    lowercase: bool = setting(True, "fold the words to lower case")
    valid_share: float = setting(0.05, "share of documents for validation, when one file is split")
    test_share: float = setting(0.05, "share of documents for testing, when one file is split")
    cloze_items: int = setting(2_000, "cloze items for validation and for testing, at most; 0 for none")
    cloze_events: int = setting(
        6, "events of a cloze sequence, the seed included; shorter documents give none"
    )
    cloze_options: int = setting(6, "sequences to choose from in a cloze item, the true one included")
    cloze_seed: int = setting(1, "seed that chooses the documents and the false sequences of the cloze items")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("events", self.events >= 1, "at least 1")
        self._check("min_events", 1 <= self.min_events <= self.events, f"from 1 to {self.events}")
        self._check(
            "vocabulary", self.vocabulary >= 3, "at least 3: the missing word, the unknown one, and one more"
        )
        self._check("frames", self.frames >= 1, "at least 1")
        for name in ("valid_share", "test_share"):
            self._check(name, 0 <= getattr(self, name) < 1, "a share from 0 to 1")
        self._check("test_share", self.valid_share + self.test_share < 1, "something to be left for training")
        for name in ("cloze_events", "cloze_options"):
            self._check(name, getattr(self, name) >= 2, "at least 2")
        # The false sequences of an item come from the documents of the others.
        enough = self.cloze_items == 0 or self.cloze_items >= self.cloze_options
        self._check("cloze_items", enough, f"0, or at least the {self.cloze_options} of --cloze-options")


@dataclass(frozen=True, kw_only=True)
class StreamSettings(Settings):
    """Documents through many processes into one file."""

    jobs: int = setting(0, "processes to share the work; 0 is one for each core")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("jobs", self.jobs >= 0, "0 (one for each core) or more")


@dataclass(frozen=True, kw_only=True)
class ExtractSettings(StreamSettings):
    """From text, or parsed text, to documents of events."""

    spacy_model: str = setting("en_core_web_sm", "spaCy model that parses plain text: a name or a folder")
    text_column: str = setting("text", "column (or key) of a table that has the text")
    lemmas: bool = setting(False, "write dictionary forms (move) instead of the words of the text (moved)")
    negation: Literal["keep", "mark", "drop"] = setting(
        "keep", "events that are denied: keep as any other, mark the verb (not_left), or drop"
    )
    keep_text: bool = setting(False, "keep the sentence with each event, for annotators that read sentences")


@dataclass(frozen=True, kw_only=True)
class AnnotateSettings(StreamSettings):
    """Frames for events."""

    threshold: float = setting(0.5, "a frame with a lower probability is not written: the event stays latent")
    replace: bool = setting(False, "annotate events that have a frame already, too")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("threshold", 0 <= self.threshold <= 1, "a probability from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Settings):
    """The shape of a model and the weights of its objective: what is needed to build it again."""

    model: str = setting(
        "ssdvae",
        "which model: ssdvae, planner, rnnlm, rnnlm-role or haqae; or, for frames alone, rnnlm-classifier or "
        "rnnlm-role-classifier",
    )
    embedding: int | None = setting(None, "width of the word vectors; by default that of --vectors, else 300")
    hidden: int = setting(512, "width of each GRU layer and direction, and of the frame embeddings")
    layers: int = setting(2, "GRU layers")
    role_embedding: int = setting(300, "width of the role vectors of the models with roles")
    attention: Literal["addition", "concatenation"] = setting("addition", "how query and context are joined")
    temperature: float = setting(0.5, "temperature of the Gumbel-Softmax (τ)")
    samples: int = setting(1, "frame chains drawn for each document in training (S)")
    foresight: float = setting(
        0.0,
        "share of the training steps in which the encoder reads only the first events of its documents and "
        "must foresee the frames of the others, as it does to continue a script; 0 in the paper",
    )
    sampled_words: int = setting(
        0,
        "words that a step of training compares the true one with, drawn by their frequency: faster for very "
        "large vocabularies, and an approximation; 0 is all of them. Evaluation is always exact",
    )
    entropy_weight: float = setting(0.1, "weight of the entropy of the frames (α_q)")
    frame_weight: float = setting(0.1, "weight of predicting the observed frames (α_c)")
    normalize: Literal["word", "document"] = setting(
        "word", "word: the weights count per word of the document; document: the formula as printed"
    )
    objective: Literal["paper", "bound"] = setting(
        "paper",
        "paper: the entropy of latent frames is rewarded; bound: their divergence from the prior is paid "
        "for, and so are observed frames, by −log p(f | before)",
    )
    prior: Literal["uniform", "markov", "framenet", "history"] = setting(
        "uniform",
        "p(f): uniform as in the paper; markov: learned, from one frame to the next; framenet: the same, "
        "begun with observed frames and FrameNet's relations; history: given all frames and words before",
    )
    prior_rank: int = setting(64, "rank of the transitions of a markov or framenet prior")
    kl_weight: float = setting(1.0, "weight of the divergence in the bound; 1 makes it one")
    kl_warmup: float = setting(0.0, "share of the training in which that weight rises from 0")
    free_nats: float = setting(0.0, "divergence of a latent frame that costs nothing, in nats")
    estimator: Literal["soft", "straight-through", "reinmax"] = setting(
        "soft", "gradients through the frames: Gumbel-Softmax, the same made hard, or ReinMax"
    )
    guide: Literal["attention", "aligned"] = setting(
        "attention",
        "how frames and words find each other: by attention, or also each frame and its own event directly",
    )
    roles: bool = setting(False, "role vectors beside the word vectors; rnnlm-role always has them")
    tied: bool = setting(False, "let the output layer share the word vectors")
    structure: Literal["chain", "tree"] = setting("tree", "how the latent variables of haqae depend")
    latents: int = setting(5, "latent variables of haqae")
    codes: int = setting(512, "codes in the codebook of each (K)")
    code_width: int = setting(256, "width of a code")
    commit_weight: float = setting(0.25, "weight of haqae's commit loss")
    parent_commit_weight: float = setting(0.15, "weight of the commit loss of haqae's parents")
    revive: bool = setting(False, "put the dead codes of haqae beside living ones")
    dropout: float = setting(0.15, "share of the last states that a frame classifier drops in training")

    # The language models: rnnlm, rnnlm-role and planner.
    past_vector: int = setting(
        0, "width of a vector of the events so far, in the output layer of a language model; 0 is none"
    )
    state_dropout: float = setting(
        0.0, "share of the word vectors and states that a language model drops in training"
    )
    contrast: float = setting(
        0.0,
        "weight of telling the true continuation of a first event from those of other documents, in the "
        "training of a language model; then the last weights are kept, not those of the best perplexity",
    )
    contrast_group: int = setting(4, "documents whose continuations are compared with each other")

    # The planner.
    mixture: Literal["head", "event"] = setting(
        "head", "what planner sums over frames: p(head) alone, or p(head and arguments)"
    )
    candidates: int = setting(
        8, "frames of a head that planner gives a weight of their own, the most frequent ones, at most"
    )
    frame_vectors: Literal["heads", "random"] = setting(
        "heads", "where planner's frame vectors start: at the mean vector of their heads, or anywhere"
    )
    label_weight: float = setting(
        1.0, "weight of the observed frames in planner's loss; 1 is −log p(words, observed frames)"
    )

    @property
    def word_width(self) -> int:
        """The width of the word vectors; without any given, that of the paper's."""
        return self.embedding or 300

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (
            "hidden",
            "layers",
            "role_embedding",
            "samples",
            "latents",
            "codes",
            "code_width",
            "prior_rank",
            "candidates",
        ):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        self._check("embedding", self.embedding is None or self.embedding >= 1, "at least 1")
        self._check("temperature", self.temperature > 0, "a number above 0")
        for name in ("kl_weight", "free_nats", "past_vector", "label_weight", "contrast"):
            self._check(name, getattr(self, name) >= 0, "0 or more")
        self._check("kl_warmup", 0 <= self.kl_warmup <= 1, "a share from 0 to 1")
        self._check("sampled_words", self.sampled_words >= 0, "0 (all words) or more")
        self._check("contrast_group", self.contrast_group >= 3, "at least 3")
        self._check("foresight", 0 <= self.foresight <= 1, "a share from 0 to 1")
        for name in ("dropout", "state_dropout"):
            self._check(name, 0 <= getattr(self, name) < 1, "a share from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class TrainSettings(ModelSettings):
    """A training run: the model, and how it is trained."""

    observe: float = setting(0.9, "chance that a training frame is observed (ε)")
    vectors: Path | None = setting(
        None, "pretrained word vectors: GloVe or word2vec text, plain, .gz or .zip"
    )
    relations: Path | None = setting(
        None, "JSON list of relations between frames, for --prior framenet; by default from NLTK's FrameNet"
    )
    lexicon: Path | None = setting(
        None,
        "table or JSON of verbs, as the corpus has them, and their frames: further candidates for planner",
    )
    init: Path | None = setting(
        None, "a run, or a saved model, whose weights training begins with: fine-tuning"
    )
    batch: int = setting(100, "documents per step, over all processes")
    learning_rate: float = setting(1e-3, "step size of Adam")
    decay: bool = setting(False, "let the step size fall linearly, to zero at the end of the last epoch")
    clip: float = setting(5.0, "largest norm of the gradient")
    epochs: int = setting(40, "passes over the training split, at most")
    patience: int = setting(10, "validations without improvement before stopping")
    validate_steps: int | None = setting(None, "steps between validations; by default one epoch")
    record_steps: int = setting(100, "steps between training records in metrics.jsonl")
    save_minutes: float = setting(5.0, "minutes between checkpoints; every validation saves one too")
    seed: int = setting(1, "seed of the weights, the order, the masks and the noise")
    precision: Literal["no", "bf16", "fp16"] = setting("no", "mixed precision")
    tensorboard: bool = setting(False, "also write TensorBoard events (extra: tensorboard)")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("observe", 0 <= self.observe <= 1, "a chance from 0 to 1")
        for name in ("batch", "epochs", "patience", "record_steps"):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        self._check("validate_steps", self.validate_steps is None or self.validate_steps >= 1, "at least 1")
        for name in ("learning_rate", "clip"):
            self._check(name, getattr(self, name) > 0, "a number above 0")
        self._check("save_minutes", self.save_minutes >= 0, "0 (after every step) or more")
        self._check("seed", self.seed >= 0, "0 or more")


EVAL_BATCH = 400
"""Documents scored at once: with 200 a step of a GRU has too little to multiply, with 800 it is no faster."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkSettings(TrainSettings):
    """What is timed: steps of a training run on documents that are made up."""

    events: int = setting(5, "events of each document (M)")
    vocabulary: int = setting(40_000, "words (V)")
    frames: int = setting(500, "frames (F)")
    steps: int = setting(5, "steps of training, and batches of evaluation, that are timed")
    eval_batch: int = setting(EVAL_BATCH, "documents scored at once")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("events", "frames", "steps", "eval_batch"):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        self._check("vocabulary", self.vocabulary >= 3, "at least 3")


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings(Settings):
    """How a trained model is measured."""

    split: Split = setting("valid", "which split of the corpus")
    tasks: str = setting(",".join(TASKS), f"what to measure, with commas between: {', '.join(TASKS)}")
    bound_samples: int = setting(10, "hard frame chains per document behind ppl_bound")
    cloze: Path | None = setting(
        None, "a cloze file in the public <TUP>/<DIST> format, instead of the corpus's own"
    )
    cloze_seeds: int = setting(5, "seeds of other items behind the pmi score of the cloze")
    cloze_frames: Literal["foreseen", "read"] = setting(
        "foreseen",
        "frames in the cloze: foreseen from the seed alone, as in the paper; or read off each option and "
        "paid for, which scores words and likeliest frames together",
    )
    eval_batch: int = setting(EVAL_BATCH, "documents scored at once")
    eval_seed: int = setting(1, "seed of the frames that are drawn")

    @property
    def task_names(self) -> frozenset[str]:
        return frozenset(name.strip() for name in self.tasks.split(","))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("tasks", self.task_names <= set(TASKS), f"some of {', '.join(TASKS)}")
        for name in ("bound_samples", "eval_batch", "cloze_seeds"):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        self._check("eval_seed", self.eval_seed >= 0, "0 or more")


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(Settings):
    """What is shown of a trained model: its clusters, its attention, and which frames follow which."""

    split: Split = setting("valid", "which split of the corpus")
    words: str | None = setting(
        None, "words whose frames are shown, with commas between; by default the most frequent verbs"
    )
    frames: str | None = setting(
        None, "frames whose words are shown, with commas between; by default the most frequent ones"
    )
    rows: int = setting(10, "words, frames and links that are shown, where they are not named")
    top: int = setting(5, "frames of each word, and words of each frame")
    min_count: float = setting(5.0, "expected times that two frames must follow each other to be a link")
    batch: int = setting(200, "documents read at once")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rows", "top", "batch"):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        self._check("min_count", self.min_count >= 0, "0 or more")


@dataclass(frozen=True, kw_only=True)
class InferSettings(Settings):
    """How the frames of new documents are inferred."""

    observe_frames: bool = setting(False, "take the frames in the file as evidence, not only to compare with")
    batch: int = setting(200, "documents read at once")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("batch", self.batch >= 1, "at least 1")


@dataclass(frozen=True, kw_only=True)
class GenerateSettings(Settings):
    """How a script is continued."""

    method: Literal["sample", "greedy", "beam"] = setting(
        "sample", "draw words, take the likeliest word each time, or search for the likeliest words"
    )
    events: int = setting(4, "events after the seed")
    scripts: int = setting(5, "scripts; beam search finds --beam at most, greedy is one")
    temperature: float = setting(1.0, "sampling: below 1 likely words become likelier, above 1 less likely")
    top_p: float = setting(0.9, "sampling: from the likeliest words that have this probability together")
    beam: int = setting(10, "beam search: scripts kept after each word")
    repeat: bool = setting(True, "let an event occur twice in a script")
    distinct_roles: bool = setting(False, "let no event have the same subject and object")
    seed: int = setting(1, "seed of all that is drawn")
    batch: int = setting(100, "scripts drawn at once")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("events", "scripts", "beam", "batch"):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        self._check("temperature", self.temperature > 0, "a number above 0; for the likeliest, greedy")
        self._check("top_p", 0 < self.top_p <= 1, "a probability above 0")
        self._check("seed", self.seed >= 0, "0 or more")


@dataclass(frozen=True, kw_only=True)
class ReportSettings(Settings):
    """How a model is shown on the page about runs."""

    split: Split = setting("valid", "which split of the corpus the models are shown on")
    sample: int = setting(1_000, "documents behind the clusters and the links between frames, at most")
    documents: int = setting(6, "documents that are shown with their frames")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sample", "documents"):
            self._check(name, getattr(self, name) >= 1, "at least 1")


TRAINED_ALIKE = tuple(
    name for name in TrainSettings.names() if name not in ("model", "attention", "observe", "seed")
)
MEASURED_ALIKE = tuple(name for name in EvaluateSettings.names() if name not in ("split", "tasks", "cloze"))
"""The settings of `train` and `evaluate` that `reproduce` takes for all its runs."""


@dataclass(frozen=True, kw_only=True)
class ReproduceSettings(Settings):
    """Which cells of the paper's tables are made, and how many at a time."""

    scale: str = setting("paper", "named size of all models, as --preset of train: tiny, small or paper")
    seeds: int = setting(3, "runs behind each row of a table, with the seeds 1, 2, …")
    observe: str = setting(
        "0,0.2,0.4,0.5,0.7,0.8,0.9",
        "chances that a training frame is observed (ε), with commas between; by default the paper's",
    )
    models: str | None = setting(
        None, f"models to restrict the tables to, with commas between, of: {', '.join(REPRODUCED)}"
    )
    split: Literal["valid", "test"] = setting("valid", "which split of the corpus is measured")
    cloze: str | None = setting(
        None,
        "further cloze files in the public <TUP>/<DIST> format, as NAME=FILE with commas between; the "
        "paper's figures for the New York Times stand beside the one that is named nyt",
    )
    jobs: int = setting(0, "runs at a time; 0 is one for each GPU or, without a GPU, for each core")

    @property
    def observed(self) -> tuple[float, ...]:
        """ε, each once, from the lowest."""
        return tuple(sorted({float(value) for value in self.observe.split(",")}))

    @property
    def model_names(self) -> frozenset[str]:
        return frozenset(REPRODUCED if self.models is None else _listed(self.models))

    @property
    def cloze_files(self) -> dict[str, Path]:
        """Further cloze files by name; one that was given none is called by that of the file."""
        pairs = [word.rpartition("=") for word in _listed(self.cloze or "")]
        return {name or Path(path).stem: Path(path) for name, _, path in pairs}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("scale", self.scale in PRESETS, f"one of {', '.join(PRESETS)}")
        self._check("seeds", self.seeds >= 1, "at least 1")
        self._check("jobs", self.jobs >= 0, "0 (one for each GPU or core) or more")
        try:
            right = all(0 <= value <= 1 for value in self.observed)
        except ValueError:
            right = False
        self._check("observe", right, "chances from 0 to 1, with commas between")
        known = bool(self.model_names) and self.model_names <= set(REPRODUCED)
        self._check("models", known, f"some of {', '.join(REPRODUCED)}")
        named = len(self.cloze_files) == len(_listed(self.cloze or "")) and all(self.cloze_files)
        self._check("cloze", named, "a different name for each file, as NAME=FILE")


def _listed(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "vocabulary": 2_000,
        "frames": 200,
        "embedding": 32,
        "hidden": 32,
        "layers": 1,
        "role_embedding": 8,
        "codes": 32,
        "code_width": 16,
        "batch": 32,
    },
    "small": {"vocabulary": 10_000, "frames": 500, "hidden": 256, "layers": 2, "batch": 100},
    "paper": {
        "vocabulary": 40_000,
        "frames": 500,
        "embedding": 300,
        "hidden": 512,
        "layers": 2,
        "batch": 100,
    },
}
"""Named sizes; each command takes from one what it knows."""


def preset(name: str) -> dict[str, Any]:
    if name not in PRESETS:
        raise UserError(f"no preset {name!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[name]
