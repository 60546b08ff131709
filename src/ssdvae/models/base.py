"""What every model answers, and how it is saved and loaded."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ssdvae.config import ModelSettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.files import atomic_write
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import DataError, UserError
from ssdvae.models.card import model_card
from ssdvae.models.decoder import Decoder, Plan, State, TiedLinear
from ssdvae.models.latent import Sampler, SoftClusters, training_sampler
from ssdvae.models.output import linear_cross_entropy
from ssdvae.models.recurrent import WordReader, full_precision
from ssdvae.models.sampled import Drawn, chances, draw, sampled_cross_entropy

FILES = ("config.json", "model.safetensors", "vocab.json", "frames.json")


@dataclass(frozen=True)
class Loss:
    """What is minimised, and the terms it is made of: one number per document each."""

    per_document: Float[Tensor, " B"]
    terms: dict[str, Float[Tensor, " B"]]


def fastest_device() -> torch.device:
    """A GPU if there is one; not Apple's, which has no doubles to take sums in."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if found is None or found.type == "mps" else found


@dataclass(frozen=True)
class Beliefs:
    """What a model takes its latent variables to be, each given the likeliest value of the one before.

    Where they are ``frames``, all have the same values, and these have names. Otherwise each has a codebook
    of its own. ``clusters`` are there where frames and words are joined by addition.
    """

    log_q: Float[Tensor, "B N K"]
    mask: Bool[Tensor, "B N"]
    frames: bool = True
    attention: Float[Tensor, "B N T"] | None = None
    clusters: SoftClusters | None = None

    @property
    def value(self) -> Int[Tensor, "B N"]:
        """The likeliest values; −1 at padding."""
        return self.log_q.argmax(-1).masked_fill(~self.mask, -1)


class EventModel(nn.Module, ModelHubMixin, library_name="ssdvae", tags=["events", "scripts", "frames"]):
    """A model of documents of events, with the words and frames it knows.

    Subclasses answer what they have an answer to; training, evaluation and analysis never ask which model
    they have. ``decoder`` is None in a model that says nothing about words.
    """

    has_roles = False
    decoder: Decoder | None
    progress = 1.0
    """How much of its training is done: the training loop says so before each step."""

    def __init__(self, config: ModelSettings, vocabulary: Vocabulary, frames: Inventory) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.frames = frames
        roles = config.role_embedding if self.has_roles or config.roles else 0
        self.reader = WordReader(len(vocabulary), config.word_width, roles)

    @abstractmethod
    def forward(self, batch: Batch, noise: Noise) -> Loss:
        """The loss of each document and its terms."""

    # A model without latent variables answers these as they stand; the others in their own way.

    def flops(self, documents: int, events: int, chains: int = 1) -> int:
        """The work of one pass over documents of as many events each; see ``ssdvae.models.flops``."""
        return self.speaker.flops(documents, events, 0)

    @property
    def latent_shape(self) -> tuple[int, int]:
        """The number of codebooks, and of values in each; frames are one codebook for all events."""
        return 0, 0

    def plan(
        self,
        batch: Batch,
        observed: Int[Tensor, "B N"],
        chain: Bool[Tensor, "B N"],
        sampler: Sampler,
        noise: Noise,
    ) -> Plan:
        """The latent variables of a script of N events, after reading the events of ``batch``.

        These may be all of the script, or the first ones of a script to be continued; ``chain`` says which of
        the N events are wanted, and ``observed`` which of their frames are known.
        """
        return Plan(self.speaker.w_out.weight.new_zeros(len(batch), 0, 0), batch.mask[:, :0])

    def imagined(self, size: int, events: int, sampler: Sampler, noise: Noise) -> Plan:
        """The latent variables of scripts of which nothing was read, from the prior."""
        mask = torch.ones(size, 0, dtype=torch.bool, device=self.device)
        return Plan(self.speaker.w_out.weight.new_zeros(size, 0, 0), mask)

    def foreseen(self, plan: Plan, state: State, sampler: Sampler, noise: Noise) -> Plan:
        """The plan with the variable of its event, where that had to wait for the words before."""
        return plan

    def transitions(self) -> Float[Tensor, "F F"] | None:
        """p(next frame | frame) of a prior that says so much and no more."""
        return None

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        """Lower bounds on log p(words), in the mean, by 1, 2, … S samples of the latent variables.

        A model without latent variables has one row, log p itself.
        """
        return self.word_log_probs(batch, noise).sum((1, 2))[None]

    def infer(self, batch: Batch) -> Beliefs | None:
        """The latent variables of each document; None for a model that has none."""
        return None

    def foretell(self, batch: Batch) -> Float[Tensor, "B M F"] | None:
        """log p(f_m | the events before), before any word of event m is read; None if it does not say."""
        return None

    def start_from(
        self,
        heads: Int[Tensor, "N M"],
        observed: Int[Tensor, "N M"],
        relations: Sequence[Mapping[str, Any]],
        lexicon: Int[Tensor, "P 2"] | None = None,
    ) -> None:
        """What a model takes from the verbs and the observed frames of the training split beforehand.

        ``lexicon`` has further verbs and the frames that they can have.
        """
        return

    def after_step(self, reduce: Callable[[Tensor], Tensor], generator: torch.Generator) -> None:
        """What else a model does after a step of training; ``reduce`` sums over processes."""
        return

    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M 4"]:
        """log p(w_t | f, w_<t), 0 at padding, with latent variables drawn as in training."""
        plan = self.plan(batch, batch.observed, batch.mask, training_sampler(self.config), noise)
        return self.log_probs(batch, plan, noise=noise)

    def event_log_probs(self, batch: Batch) -> Float[Tensor, "B M"]:
        """log p of the words of each event, given those before; with latent variables, the likeliest ones.

        What these cost is in it, as far as it belongs to an event.
        """
        return self.word_log_probs(batch, Noise(torch.Generator(), len(batch))).sum(-1)

    def log_probs(
        self,
        batch: Batch,
        plan: Plan,
        inputs: Float[Tensor, "B M 5 d"] | None = None,
        noise: Noise | None = None,
    ) -> Float[Tensor, "B M 4"]:
        """log p(w_t | plan, w_<t), 0 at padding; ``inputs`` are the words as the reader gives them."""
        inputs = self.reader(batch.tokens) if inputs is None else inputs
        reading = self.speaker(inputs, plan, noise if self.training else None)
        return self.likelihood(reading.joined, batch, noise)

    def likelihood(
        self, joined: Float[Tensor, "B M 4 e"], batch: Batch, noise: Noise | None = None
    ) -> Float[Tensor, "B M 4"]:
        """What a decoder's reading makes of the words.

        Exact, unless a model that is being trained has ``sampled_words``, and ``noise`` to draw them.
        """
        drawn = None
        if self.training and noise is not None and self.config.sampled_words:
            drawn = draw(self.word_chances, noise.generator)
        return log_likelihood(self.speaker.w_out, joined, batch, drawn)

    @cached_property
    def word_chances(self) -> Float[Tensor, " V"]:
        """How likely each word is drawn in a step of training that looks at some of them."""
        return chances(self.vocabulary.counts, self.config.sampled_words)

    def begin(self, batch: Batch, plan: Plan) -> State:
        """The decoder's state after the events of a batch without padding."""
        if not batch.mask.shape[1]:
            return self.speaker.start(plan)
        state: State = self.speaker(self.reader(batch.tokens), plan).state
        return state

    def next_word(
        self, state: State, plan: Plan, words: Int[Tensor, " B"] | None, place: int
    ) -> tuple[Float[Tensor, "B V"], State]:
        """Read one place of the event of the plan; returns log p(the next word) and the state.

        Place 0 is the separator (no words), 1 the verb, 2 the subject, 3 the object, 4 the modifier.
        """
        vectors = self.reader.one(words, place, len(plan.mask))
        speaking, state = self.speaker.step(vectors, state, plan, place)
        return full_precision(self.speaker.logits(speaking, plan)).log_softmax(-1), state

    def continuations(
        self, seeds: Batch, plan: Plan, options: Int[Tensor, "B O E 4"]
    ) -> Float[Tensor, "B O"]:
        """log p(option | seed, plan). The seed is read once for all of its options."""
        rows = torch.arange(len(options), device=options.device).repeat_interleave(options.shape[1])
        state, tokens = self.begin(seeds, plan).rows(rows), options.flatten(0, 1)
        later = plan.rows(rows).after(seeds.mask.shape[1])
        joined = self.speaker.read(self.reader(tokens), state, later).joined
        scored = Batch.of_words(tokens)
        # In training they are compared with each other, and do not weigh the same.
        log_p = log_likelihood(self.speaker.w_out, joined, scored, alike=False)
        return log_p.sum((1, 2)).view(options.shape[:2])

    @property
    def speaker(self) -> Decoder:
        """The decoder of a model that has one."""
        if self.decoder is None:
            raise UserError(f"{self.config.model} classifies frames: it gives words no probability")
        return self.decoder

    def word_embedding(self) -> nn.Embedding:
        """The table that pretrained vectors are put into."""
        return self.reader.words

    def on_fastest_device(self) -> EventModel:
        return self.to(fastest_device())

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def generate_model_card(
        self, *args: Any, scores: dict[str, Any] | None = None, **kwargs: Any
    ) -> ModelCard:
        return model_card(self.config, len(self.vocabulary), len(self.frames), scores)

    def _save_pretrained(self, save_directory: Path) -> None:
        settings = ModelSettings.of(self.config.to_dict()).to_dict()
        with atomic_write(save_directory / "config.json") as path:
            path.write_text(json.dumps(settings, indent=2) + "\n")
        self.vocabulary.save(save_directory / "vocab.json")
        self.frames.save(save_directory / "frames.json")
        with atomic_write(save_directory / "model.safetensors") as path:
            save_file({name: value.contiguous() for name, value in self.state_dict().items()}, path)

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
    ) -> EventModel:
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
                    allow_patterns=list(FILES),
                )
            )
        return cls.read(folder)

    @classmethod
    def read(cls, folder: Path) -> EventModel:
        """The model in a folder. Only JSON and safetensors are read: nothing in them can be executed."""
        for name in FILES:
            if not (folder / name).is_file():
                raise UserError(
                    f"{folder} has no {name}: it holds no model, or its run was not yet validated\n"
                    f"go on with a run: ssdvae train --resume {folder}"
                )
        path = folder / "config.json"
        try:
            settings = ModelSettings.of(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise DataError(path, None, str(error), "the settings of a model") from error
        kind: type[EventModel] = cls
        if cls is EventModel:
            from ssdvae.models import model_class  # the table of models needs this module first

            kind = model_class(settings.model)
        model = kind(settings, Vocabulary.load(folder / "vocab.json"), Inventory.load(folder / "frames.json"))
        path = folder / "model.safetensors"
        try:
            model.load_state_dict(load_file(path))
        except (SafetensorError, RuntimeError) as error:
            raise DataError(path, None, str(error).splitlines()[0], "the weights of this model") from error
        return model.eval()


def log_likelihood(
    output: nn.Linear | TiedLinear,
    joined: Float[Tensor, "B M 4 e"],
    batch: Batch,
    drawn: Drawn | None = None,
    alike: bool = True,
) -> Float[Tensor, "B M 4"]:
    """log softmax(output(joined))[word], computed only at real words; 0 at padding.

    With ``drawn``, the sum over all words is estimated by that over some; ``alike`` is as in
    ``linear_cross_entropy``.
    """
    rows, words = joined[batch.mask].flatten(0, 1), batch.tokens[batch.mask].flatten()
    if drawn is None:
        nll = linear_cross_entropy(rows, output.weight, output.bias, words, alike)
    else:
        nll = sampled_cross_entropy(rows, output.weight, output.bias, words, drawn)
    return nll.new_zeros(batch.tokens.shape).masked_scatter(batch.mask[..., None], -nll)
