"""Options of evaluation."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ssdvae.data.options import Split
from ssdvae.options import FilePath, Options, names_of_text

EVAL_BATCH = 400
"""Documents scored at once: with 200 a step of a GRU has too little to multiply, with 800 it is no faster."""


class EvaluateOptions(Options):
    """Options of evaluation."""

    group: ClassVar[str] = "what is measured"

    split: Split = Field("valid", description="which split of the corpus")
    events: int | None = Field(
        None,
        description="measure on the first events of each document (M), 0 for all; by default on as many as "
        "the model read in training: models are compared at the same M",
        ge=0,
        le=10_000,
    )
    tasks: str | None = Field(
        None,
        description="what to measure, comma-separated: perplexity, frames, cloze, mcnc, similarity (these "
        "by default), next, time, masked, order, attention, scripts",
    )
    bound_samples: int = Field(
        10, description="frame sequences per document for ppl_bound (importance samples)", ge=1, le=100_000
    )
    cloze: FilePath | None = Field(
        None, description="a cloze file in the public <TUP>/<DIST> format, instead of the corpus's own"
    )
    cloze_seeds: int = Field(5, description="seed events of other items that pmi scores average over", ge=1)
    cloze_frames: Literal["foreseen", "read"] = Field(
        "foreseen",
        description="frames in the cloze. foreseen: predicted from the seed event, as in the paper; read: "
        "inferred from each option, which is scored by the probability of its words and frames together",
    )
    scripts: int = Field(1_000, description="scripts to generate, at most: one for each document", ge=1)
    script_reader: str | None = Field(
        None,
        description="what reads the frames of generated events: whatever `annotate --frames` takes; by "
        "default its classifier, fitted to the training split",
    )
    similarity: FilePath | None = Field(
        None,
        description="a file of event pairs, as `subject | verb | object | …`: hard pairs, or pairs with "
        "ratings (`ssdvae data get` has them)",
    )
    mcnc: FilePath | None = Field(
        None, description="a file of the multiple-choice narrative cloze (`ssdvae data get` has one)"
    )
    floor_vectors: FilePath | None = Field(
        None,
        description="word vectors in GloVe's text format: what their averages get, beside the model "
        "(similarity, mcnc, masked)",
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32",
        description="arithmetic of the products. bf16, for perplexity alone, is faster where the processor "
        "has it, and changes the last digits",
    )
    eval_batch: int = Field(EVAL_BATCH, description="batch size", ge=1)
    eval_seed: int = Field(1, description="random seed of the sampled frames", ge=0)

    def check_relations(self) -> None:
        super().check_relations()
        alone = self.precision == "fp32" or self.task_names == ("perplexity",)
        self._require("precision", alone, "fp32, or --tasks perplexity: answers are in fp32")

    @property
    def task_names(self) -> tuple[str, ...] | None:
        """The names of the tasks; None for the default ones."""
        if self.tasks is None:
            return None
        return tuple(names_of_text(self.tasks))
