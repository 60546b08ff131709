"""The interfaces of models. A capability is a class that a model implements:

    ================  =============================================================================
    ``Model``         the loss of a batch, and files
    ``LanguageModel`` probabilities of words: of whole documents, and word by word through a ``Decoder``
    ``LatentModel``   the posterior of discrete latent variables
    ``FrameModel``    a latent model whose variables are the frames of the events
    ``Attentive``     a frame model that infers frames by attention over words
    ================  =============================================================================

Training, evaluation and inference ask for these, never for a model by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.columns import Columns
from ssdvae.data.documents import ContextWindow
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.io.errors import UserError
from ssdvae.models.hub import SavedModel
from ssdvae.models.latents import FramePosterior, LatentPosterior, LatentQuery, Latents, most_likely
from ssdvae.models.layers import WordOutput, WordReader, full_precision
from ssdvae.models.losses import Drawn, draw, inclusion_probabilities, word_log_likelihood
from ssdvae.models.options import ModelOptions


@dataclass(frozen=True)
class Loss:
    """The loss of each document, and its terms without their weights.

    ``reconstruction``, ``entropy``, ``end`` and ``time`` are subtracted in the loss, the others added.
    ``codes`` are the chosen codes, in a model that keeps count of them.
    """

    per_document: Float[Tensor, " B"]
    terms: dict[str, Float[Tensor, " B"]]
    codes: Int[Tensor, "N B"] | None = None


@runtime_checkable
class State(Protocol):
    """The memory of a decoder of the words before; opaque to all others."""

    def select(self, rows: Int[Tensor, " K"]) -> State:
        """Return some of the documents, each as often as it is named."""
        ...


@dataclass(frozen=True)
class DecoderOutput:
    """The output of a decoder for M events."""

    states: Float[Tensor, "B M S h"]  # before each word: what the output layer reads
    ends: Float[Tensor, "B M h"]  # after each event
    state: State  # after the last event


class Decoder(nn.Module, ABC):
    """p(w_t | latents, w_<t): states before each word, and an output layer.

    To add an architecture, implement three methods; the state is opaque to all others.
    """

    output: WordOutput

    @abstractmethod
    def init_state(self, latents: Latents) -> State:
        """Return the state before the first event."""

    @abstractmethod
    def forward(self, inputs: Float[Tensor, "B M P d"], state: State, latents: Latents) -> DecoderOutput:
        """Read whole events from a state on, teacher-forced. Position 0 of an event is its separator."""

    @abstractmethod
    def step(
        self, word: Float[Tensor, "B 1 d"], state: State, latents: Latents, position: int
    ) -> tuple[Float[Tensor, "B h"], State]:
        """Read one position of the current event; return what the next word is predicted from."""


def fastest_device() -> torch.device:
    """Return a GPU if there is one, except Apple's, which has no float64 to take sums in."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if found is None or found.type == "mps" else found


class Model(nn.Module, SavedModel):
    """A model of documents of events, with its vocabulary, frames and slot names."""

    config: ModelOptions
    any_length = True
    """False if documents longer than those of the training get worse answers."""

    def __init__(
        self, config: ModelOptions, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.frames = frames
        self.slots = slots
        self.context_window = ContextWindow()
        self.columns: Columns | None = None  # of the table or log that it was trained on
        self.quantiles = None
        self.vectors = None
        self.word_reader = WordReader(len(vocabulary), config.word_width, len(slots), config.role_width)

    @abstractmethod
    def forward(self, batch: Batch, noise: Noise) -> Loss:
        """Return the training loss of each document and its terms."""

    def initialize_from_data(
        self,
        heads: Int[Tensor, " N"],
        observed: Int[Tensor, " N"],
        lexicon: Int[Tensor, "P 2"] | None = None,
        lemmas: Int[Tensor, " V"] | None = None,
    ) -> None:
        """Initialize from the events of the training split, where a model can.

        ``observed`` has the observed frame of each head, −1 where latent; ``lexicon`` pairs of a head and a
        frame that it can have; ``lemmas`` the number of the lemma of each word of the vocabulary.
        """
        return

    def prepare_training(self) -> None:
        """Add what a model needs in training only, before the optimizer is made."""
        return

    def clipping_groups(self) -> list[list[nn.Parameter]]:
        """Return the groups of parameters whose gradient norms are clipped separately."""
        return [list(self.parameters())]

    def after_step(self, loss: Loss, reduce: Callable[[Tensor], Tensor], generator: torch.Generator) -> None:
        """Update what is not trained by gradients; ``reduce`` sums over processes."""
        return

    def weights_to_publish(self) -> Mapping[str, Tensor]:
        """Return the weights of the model without what only training needs."""
        return self.state_dict()

    def start_from(self, weights: Mapping[str, Tensor]) -> None:
        """Load the published weights of another model, to fine-tune them."""
        self.load_state_dict(weights)

    def on_fastest_device(self) -> Model:
        return self.to(fastest_device())

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


class LanguageModel(Model):
    """A model that gives words probabilities, left to right, given latent variables if it has any."""

    decoder: Decoder

    @property
    def conditions_on_targets(self) -> bool:
        """True if ``word_log_probs`` condition on the words they score, without a KL term.

        Otherwise they are exact: their sum is log p(document).
        """
        return False

    @property
    def has_elbo(self) -> bool:
        """True if ``bounds`` are lower bounds on log p(document)."""
        return True

    def parts(self) -> dict[str, nn.Module]:
        """Return the parts whose output belongs to a document and can be swapped (``analysis.swap``)."""
        return {}

    def latents(self, query: LatentQuery) -> Latents:
        """Return the latent variables of documents, after reading some of their events or none."""
        mask = query.read.mask.new_zeros(len(query.read), 0)
        return Latents(self.word_reader.separator.new_zeros(len(query.read), 0, 0), mask)

    def log_probs(
        self,
        batch: Batch,
        latents: Latents,
        state: State | None = None,
        drawn: Drawn | None = None,
    ) -> Float[Tensor, "B M S"]:
        """Return log p(w_t | latents, w_<t), 0 at padding; after ``state``, by default from the start."""
        state = self.decoder.init_state(latents) if state is None else state
        states = self.decoder(self.word_reader(batch.tokens), state, latents).states
        return word_log_likelihood(self.decoder.output, states, batch, drawn, latents.word_offsets)

    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M S"]:
        """Return log p(w_t | latents, w_<t), 0 at padding, with latent variables drawn as in training."""
        return self.log_probs(batch, self.latents(LatentQuery.whole(batch, most_likely, noise)))

    def event_log_probs(self, batch: Batch) -> Float[Tensor, "B M"]:
        """Return log p of each event given those before, with the most likely latent variables.

        If these belong to events, their prior probability is included.
        """
        return self.word_log_probs(batch, Noise(torch.Generator(), len(batch))).sum(-1)

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        """Return importance-weighted lower bounds on log p(words), from 1, 2, … S samples.

        A model without latent variables to sample has one row, log p itself.
        """
        return self.word_log_probs(batch, noise).sum((1, 2))[None]

    def start(self, read: Batch, latents: Latents) -> State:
        """Return the decoder's state after the events of a batch without padding."""
        state = self.decoder.init_state(latents)
        if not read.mask.shape[1]:
            return state
        after: State = self.decoder(self.word_reader(read.tokens), state, latents).state
        return after

    def next_word(
        self, state: State, latents: Latents, words: Int[Tensor, " B"] | None, position: int
    ) -> tuple[Float[Tensor, "B V"], State]:
        """Read one position of the current event; return log p(next word) and the new state.

        Position 0 is the separator (no words), 1 the head; its arguments follow.
        """
        word = self.word_reader.single_position(words, position, len(latents.mask))
        states, state = self.decoder.step(word, state, latents, position)
        logits = full_precision(self.decoder.output(states))
        if latents.word_offsets is not None:
            logits = logits + latents.word_offsets
        return logits.log_softmax(-1), state

    def next_frame(self, latents: Latents, state: State) -> Float[Tensor, "B F"] | None:
        """Return log p(frame of the next event) after a state; None in a model without frames."""
        if latents.frame_logits is None:
            return None
        return latents.frame_logits[:, latents.event].log_softmax(-1)

    def continuations(
        self, seeds: Batch, latents: Latents, options: Int[Tensor, "B O E S"]
    ) -> Float[Tensor, "B O"]:
        """Return log p(option | seed, latents). A seed is read once for all of its options."""
        rows = torch.arange(len(options), device=options.device).repeat_interleave(options.shape[1])
        state, later = self.start(seeds, latents).select(rows), latents.select(rows)
        log_p = self.log_probs(Batch.of_words(options.flatten(0, 1)), later.after(seeds.mask.shape[1]), state)
        return log_p.sum((1, 2)).view(options.shape[:2])

    def event_states(self, batch: Batch) -> Float[Tensor, "B M h"]:
        """Return the decoder's state after each event, with the most likely latent variables."""
        noise = Noise(torch.Generator(), len(batch))
        latents = self.latents(LatentQuery.whole(batch, most_likely, noise))
        inputs, state = self.word_reader(batch.tokens), self.decoder.init_state(latents)
        ends: Tensor = self.decoder(inputs, state, latents).ends
        return ends

    def draw_words(self, noise: Noise) -> Drawn | None:
        """Draw the words of a training step with ``--sampled-words``; None: use the full softmax."""
        if not self.training or not self.config.values().get("sampled_words"):
            return None
        return draw(self._inclusion_probabilities, noise.generator)

    @cached_property
    def _inclusion_probabilities(self) -> Float[Tensor, " V"]:
        return inclusion_probabilities(self.vocabulary.counts, self.config.values()["sampled_words"])


class LatentModel(ABC):
    """A model with discrete latent variables."""

    @property
    @abstractmethod
    def latent_shape(self) -> tuple[int, int]:
        """The number of codebooks and of values in each; frames are one codebook for all events."""

    @abstractmethod
    def posterior(self, batch: Batch) -> LatentPosterior:
        """Return the posterior of the latent variables of each document."""


class FrameModel(LatentModel):
    """A model whose latent variables are the frames of the events."""

    frames: Inventory

    @property
    def latent_shape(self) -> tuple[int, int]:
        return 1, len(self.frames)

    @abstractmethod
    def posterior(self, batch: Batch) -> FramePosterior:
        """Return q(frame of each event | document). This names frames, wherever they are named."""


class Attentive(FrameModel):
    """A frame model whose posterior has ``attention`` over the words."""


def as_frame_model(model: Model) -> FrameModel | None:
    """Return the model if it names frames: it must be a frame model, and have frames."""
    return model if isinstance(model, FrameModel) and len(model.frames) else None


def as_language_model(model: Model) -> LanguageModel:
    """Return the model if it gives words probabilities; refuse it otherwise."""
    if not isinstance(model, LanguageModel):
        raise UserError(f"{model.config.model} classifies frames: it gives words no probability")
    return model
