"""Settings of what is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from ssdvae.config.data import Split, names_of_text
from ssdvae.config.settings import Settings, setting
from ssdvae.config.training import EVAL_BATCH


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings(Settings):
    """How a trained model is measured."""

    topic: ClassVar[str] = "what is measured"

    split: Split = setting("valid", "which split of the corpus")
    events: int | None = setting(
        None,
        "measure on the first events of each document (M), 0 for all; by default on as many as the model "
        "read in training: models are compared at the same M",
        at_least=0,
        at_most=10_000,
    )
    tasks: str | None = setting(None, "what to measure, comma-separated")
    bound_samples: int = setting(
        10,
        "frame sequences per document for ppl_bound (importance samples)",
        at_least=1,
        at_most=100_000,
        topic="perplexity",
    )
    cloze: Path | None = setting(
        None, "a cloze file in the public <TUP>/<DIST> format, instead of the corpus's own", topic="cloze"
    )
    cloze_seeds: int = setting(
        5, "seed events of other items that pmi scores average over", at_least=1, topic="cloze"
    )
    cloze_frames: Literal["foreseen", "read"] = setting(
        "foreseen",
        "frames in the cloze: foreseen from the seed event alone, as in the paper; or read: inferred from "
        "each option, which is scored by the probability of its words and frames together",
        topic="cloze",
    )
    scripts: int = setting(
        1_000, "scripts to generate, at most: one for each document", at_least=1, topic="generated scripts"
    )
    script_reader: str | None = setting(
        None,
        "what reads the frames of generated events: whatever `annotate --frames` takes; by default its "
        "classifier, fitted to the training split",
        topic="generated scripts",
    )
    similarity: Path | None = setting(
        None,
        "a file of event pairs, as `subject | verb | object | …`: hard pairs, or pairs with ratings "
        "(`ssdvae data get` has them)",
        topic="other sets",
    )
    mcnc: Path | None = setting(
        None,
        "a file of the multiple-choice narrative cloze (`ssdvae data get` has one)",
        topic="other sets",
    )
    floor_vectors: Path | None = setting(
        None,
        "word vectors in GloVe's text format: what their averages get, beside the model (similarity, mcnc, "
        "masked)",
        topic="other sets",
    )
    eval_batch: int = setting(EVAL_BATCH, "batch size", at_least=1, topic="computation")
    eval_seed: int = setting(1, "random seed of the sampled frames", at_least=0, topic="computation")

    @property
    def task_names(self) -> tuple[str, ...] | None:
        """The tasks that were named: the table of tasks says which there are. None is the default ones."""
        if self.tasks is None:
            return None
        return tuple(names_of_text(self.tasks))
