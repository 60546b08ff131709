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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.config import SLOTS, ModelSettings, Slots
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.columns import Columns
from ssdvae.data.reading import Reading
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import UserError
from ssdvae.models.hub import SavedModel
from ssdvae.models.layers import LazyAttention, WordOutput, WordReader, full_precision
from ssdvae.models.losses import Drawn, draw, inclusion_probabilities, word_log_likelihood

Sampler = Callable[[Float[Tensor, "B F"], Noise], Float[Tensor, "B F"]]
"""From logits of a latent variable to a point of the simplex."""


def categorical(logits: Float[Tensor, "B F"], noise: Noise) -> Float[Tensor, "B F"]:
    """Draw a one-hot vector from softmax(logits): the largest of logits + Gumbel noise."""
    noisy = logits + noise.gumbel(logits.shape[-1], device=logits.device)
    return functional.one_hot(noisy.argmax(-1), logits.shape[-1]).to(logits.dtype)


def most_likely(logits: Float[Tensor, "B F"], noise: Noise) -> Float[Tensor, "B F"]:
    """Return the most likely value as a one-hot vector; uses no noise."""
    return functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)


def probabilities(logits: Float[Tensor, "B F"], noise: Noise) -> Float[Tensor, "B F"]:
    """Return softmax(logits), the mean of a hard draw; uses no noise."""
    return logits.softmax(-1)


@dataclass(frozen=True)
class Loss:
    """The loss of each document and its terms.

    ``codes`` are the chosen codes, in a model that keeps count of them.
    """

    per_document: Float[Tensor, " B"]
    terms: dict[str, Float[Tensor, " B"]]
    codes: Int[Tensor, "N B"] | None = None


@dataclass(frozen=True)
class Latents:
    """What the words of a document condition on beside the words before: a vector for each latent variable.

    A plain language model has none (N = 0). ``frames`` names the frame of each vector, −1 where it is summed
    out; None in a model whose variables are not frames. ``event`` is the position of the next event.
    ``word_offsets`` are added to the logits of all words.
    """

    vectors: Float[Tensor, "B N e"]
    mask: Bool[Tensor, "B N"]
    frames: Int[Tensor, "B N"] | None = None
    event: int = 0
    word_offsets: Float[Tensor, "B V"] | None = None

    def select(self, rows: Int[Tensor, " K"]) -> Latents:
        """Return some of the documents, each as often as it is named."""
        frames, offsets = (None if x is None else x[rows] for x in (self.frames, self.word_offsets))
        return Latents(self.vectors[rows], self.mask[rows], frames, self.event, offsets)

    def after(self, events: int) -> Latents:
        """Return the same latents, some events later."""
        return replace(self, event=self.event + events)


@dataclass(frozen=True)
class LatentQuery:
    """A query for the latent variables of documents of N events, of which K are read; K may be 0."""

    read: Batch  # the K events
    observed: Int[Tensor, "B N"]  # observed frames of the N events; −1: latent
    mask: Bool[Tensor, "B N"]
    sampler: Sampler
    noise: Noise

    @classmethod
    def whole(cls, batch: Batch, sampler: Sampler, noise: Noise) -> LatentQuery:
        """Read all events of each document."""
        return cls(batch, batch.observed, batch.mask, sampler, noise)

    @classmethod
    def continuing(
        cls, seed: Batch, observed: Int[Tensor, "B N"], sampler: Sampler, noise: Noise
    ) -> LatentQuery:
        """Read the events of ``seed``, with which documents of N events begin."""
        return cls(seed, observed, torch.ones_like(observed, dtype=torch.bool), sampler, noise)

    @classmethod
    def roll_out(cls, seed: Batch, events: int, frames: Int[Tensor, " B"] | None = None) -> LatentQuery:
        """Read ``seed`` and roll out the distributions of further events; uses no noise.

        ``frames`` are the observed frames of the first of these, −1 where latent.
        """
        size, count = seed.mask.shape
        observed = torch.full((size, count + events), -1, device=seed.tokens.device)
        if frames is not None:
            observed[:, count] = frames
        return cls.continuing(seed, observed, probabilities, Noise(torch.Generator(), size))


@runtime_checkable
class State(Protocol):
    """What a decoder remembers of the words before; only the decoder looks inside."""

    def select(self, rows: Int[Tensor, " K"]) -> State:
        """Return some of the documents, each as often as it is named."""
        ...


@dataclass(frozen=True)
class DecoderOutput:
    """What a decoder computes for M events."""

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


def refuse_nan(log_p: Tensor) -> None:
    """Refuse NaN probabilities: finite weights that are too large give them."""
    if bool(log_p.isnan().any()):
        raise UserError(
            "the model gives probabilities that are not finite: its training has diverged\n"
            "train it again with a smaller --learning-rate"
        )


class Model(nn.Module, SavedModel):
    """A model of documents of events, with its vocabulary, frames and slot names."""

    config: ModelSettings
    any_length = True
    """False if documents longer than those of the training get worse answers."""

    def __init__(
        self, config: ModelSettings, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.frames = frames
        self.slots = slots
        self.reading = Reading()
        self.columns: Columns | None = None  # of the table or log that it was trained on
        self.typical = None
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


@dataclass(frozen=True)
class LatentPosterior:
    """q of discrete latent variables. ``mask`` says which there are."""

    log_q: Float[Tensor, "B N K"]
    mask: Bool[Tensor, "B N"]

    def check_finite(self) -> None:
        refuse_nan(self.log_q[self.mask])

    @property
    def value(self) -> Int[Tensor, "B N"]:
        """The most likely values; −1 at padding."""
        return self.log_q.argmax(-1).masked_fill(~self.mask, -1)


@dataclass(frozen=True)
class SoftClusters:
    """How much each word speaks for each frame, and each event's frame for each word (paper, section 4.2).

    β_enc = W_out tanh(Hᵀ)        β_dec = Ŵ_out tanh(E^Mᵀ)

    Kept as factors: the mean of β is the matrix times the mean of the other factor. W_out and Ŵ_out are
    without their biases, which the paper does not have and which only say what is frequent.
    """

    hidden: Float[Tensor, "B T h"]  # H
    log_q: Float[Tensor, "B M F"]
    frame_embedding: Float[Tensor, "F e"]  # E^F
    w_frames: Float[Tensor, "F h"]  # W_out
    w_words: Callable[[], Float[Tensor, "V e"]]  # Ŵ_out

    @property
    def states(self) -> Float[Tensor, "B T h"]:
        """tanh(H)"""
        return self.hidden.tanh()

    @property
    def memory(self) -> Float[Tensor, "B M e"]:
        """tanh(E^M) with the expected embedding of each frame."""
        return (self.log_q.exp().to(self.frame_embedding.dtype) @ self.frame_embedding).tanh()


@dataclass(frozen=True)
class FramePosterior(LatentPosterior):
    """q of the frame of each event.

    ``parts`` are the distributions that it combines, by name, if there are several.
    """

    attention: LazyAttention | None = None
    clusters: SoftClusters | None = None
    parts: Mapping[str, Float[Tensor, "B N K"]] | None = None


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

    def next_frame(self, read: Batch) -> Float[Tensor, "B F"] | None:
        """Return log p(frame of the event after the last) of documents without padding; None: unknown."""
        return None


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
