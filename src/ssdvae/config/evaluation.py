"""Settings of what is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from ssdvae.config.data import Split
from ssdvae.config.settings import Settings, setting
from ssdvae.config.training import EVAL_BATCH

TASKS = ("perplexity", "frames", "cloze")


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings(Settings):
    """How a trained model is measured."""

    topic: ClassVar[str] = "what is measured"

    split: Split = setting("valid", "which split of the corpus")
    tasks: str = setting(",".join(TASKS), f"what to measure, comma-separated: {', '.join(TASKS)}")
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
        5, "seed events of other items that the pmi score averages over", at_least=1, topic="cloze"
    )
    cloze_frames: Literal["foreseen", "read"] = setting(
        "foreseen",
        "frames in the cloze: foreseen from the seed event alone, as in the paper; or read: inferred from "
        "each option, which is scored by the probability of its words and frames together",
        topic="cloze",
    )
    eval_batch: int = setting(EVAL_BATCH, "batch size", at_least=1, topic="computation")
    eval_seed: int = setting(1, "random seed of the sampled frames", at_least=0, topic="computation")

    @property
    def task_names(self) -> frozenset[str]:
        return frozenset(name.strip() for name in self.tasks.split(","))

    def check_relations(self) -> None:
        self._require("tasks", self.task_names <= set(TASKS), f"some of {', '.join(TASKS)}")
