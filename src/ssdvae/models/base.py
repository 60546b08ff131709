"""What every model answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from ssdvae.config import SLOTS, ModelSettings, Slots
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.columns import Columns
from ssdvae.data.reading import Reading
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import UserError
from ssdvae.models.attention import Looks
from ssdvae.models.decoder import Decoder, DecoderState, TiedLinear
from ssdvae.models.foresight import Foresight
from ssdvae.models.io import SavedModel
from ssdvae.models.latent import Sampler, SoftClusters, categorical, most_likely
from ssdvae.models.output import Offsets, linear_cross_entropy
from ssdvae.models.plan import Plan, PlanRequest
from ssdvae.models.recurrent import WordReader, full_precision, to_padded
from ssdvae.models.sampled import Drawn, draw, inclusion_probabilities, sampled_cross_entropy


@dataclass(frozen=True)
class Loss:
    """What is minimised, and the terms it is made of: one number per document each.

    ``codes`` are those that the documents chose, in a model that keeps count of them.
    """

    per_document: Float[Tensor, " B"]
    terms: dict[str, Float[Tensor, " B"]]
    codes: Int[Tensor, "N B"] | None = None


def fastest_device() -> torch.device:
    """A GPU if there is one; not Apple's, which has no doubles to take sums in."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if found is None or found.type == "mps" else found


def refuse_nan(log_p: Tensor) -> None:
    """Refuse probabilities that are no numbers: weights that are too large give them, finite as they are."""
    if bool(log_p.isnan().any()):
        raise UserError(
            "the model gives probabilities that are not finite: its training has diverged\n"
            "train it again with a smaller --learning-rate"
        )


@dataclass(frozen=True)
class Beliefs:
    """What a model takes its latent variables to be, each given the likeliest value of the one before.

    Where they are ``frames``, all have the same values, and these have names. Otherwise each has a codebook
    of its own. ``clusters`` are there where frames and words are joined by addition.
    """

    log_q: Float[Tensor, "B N K"]
    mask: Bool[Tensor, "B N"]
    frames: bool = True
    looks: Looks | None = None
    clusters: SoftClusters | None = None

    @property
    def attention(self) -> Float[Tensor, "B N T"] | None:
        """On each word, computed when it is asked for."""
        return None if self.looks is None else self.looks.shares

    def check_finite(self) -> None:
        """Refuse beliefs that are no numbers."""
        refuse_nan(self.log_q[self.mask])

    @property
    def value(self) -> Int[Tensor, "B N"]:
        """The likeliest values; −1 at padding."""
        return self.log_q.argmax(-1).masked_fill(~self.mask, -1)


class EventModel(nn.Module, SavedModel):
    """A model of documents of events, with the words and frames it knows, and what their slots are called.

    Subclasses answer what they have an answer to; training, evaluation and analysis never ask which model
    they have. ``decoder`` is None in a model that says nothing about words.
    """

    config: ModelSettings
    decoder: Decoder | None

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
        self.reader = WordReader(len(vocabulary), config.word_width, len(slots), config.role_width)

    @abstractmethod
    def forward(self, batch: Batch, noise: Noise, progress: float = 1.0) -> Loss:
        """The loss of each document and its terms, when a fraction ``progress`` of the training is done."""

    # A model without latent variables answers these as they stand; the others in their own way.

    def flops(self, documents: int, events: int, chains: int = 1) -> int:
        """The work of one pass over documents of as many events each; see ``ssdvae.models.flops``."""
        return self.word_decoder.flops(documents, events, 0)

    infers_frames = False
    """Whether the latent variables that it infers are frames, one for each event."""

    infers_with_attention = False
    """Whether it infers them by attention over the words."""

    @property
    def reads_any_length(self) -> bool:
        """Whether documents longer than those it was trained on are no worse to it."""
        return True

    @property
    def latent_shape(self) -> tuple[int, int]:
        """The number of codebooks, and of values in each; frames are one codebook for all events."""
        return 0, 0

    @property
    def reads_ahead(self) -> bool:
        """Whether ``word_log_probs`` depend on words that are still to come, and nothing pays for that."""
        return self.latent_shape[0] > 0

    @property
    def exact(self) -> bool:
        """Whether the probability that it gives to a word is exact, and depends on the words before alone."""
        return self.decoder is not None and not self.reads_ahead

    @property
    def has_bound(self) -> bool:
        """Whether ``bounds`` are bounds on log p(words): not if something unpaid has read these."""
        return self.decoder is not None

    @property
    def training_sampler(self) -> Sampler:
        """How latent variables are drawn in training, where there is a choice."""
        return most_likely

    @property
    def training_chains(self) -> int:
        """How many values of the latent variables a training step draws for each document."""
        return 1

    @property
    def trained_for_bound(self) -> bool:
        """Whether the best model is that with the lowest ``ppl_bound``, and not ``ppl``."""
        return False

    @property
    def surroundings(self) -> int:
        """How many events on each side of a document it may want to read in training."""
        return 0

    @property
    def needs_relations(self) -> bool:
        """Whether ``initialize_from_data`` wants the relations between frames."""
        return False

    def plan(self, request: PlanRequest) -> Plan:
        """The latent variables of scripts, after reading all of their events or the first ones."""
        read = request.read
        return Plan(self.word_decoder.w_out.weight.new_zeros(len(read), 0, 0), read.mask[:, :0])

    def plan_from_prior(self, size: int, events: int, sampler: Sampler, noise: Noise) -> Plan:
        """The latent variables of scripts of which nothing was read, from the prior."""
        mask = torch.ones(size, 0, dtype=torch.bool, device=self.device)
        return Plan(self.word_decoder.w_out.weight.new_zeros(size, 0, 0), mask)

    def extend_plan(self, plan: Plan, state: DecoderState, sampler: Sampler, noise: Noise) -> Plan:
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

    def next_frame_log_probs(self, batch: Batch) -> Float[Tensor, "B M F"] | None:
        """log p(f_m | the events before), before any word of event m is read; None if it has no such."""
        return None

    def foresee(
        self, read: Batch, samples: int, noise: Noise, given: Int[Tensor, " B"] | None = None
    ) -> Foresight:
        """What may come after the events of documents of the same length.

        ``given`` are the frames of the next events, −1 where one is left open. Latent variables are drawn
        ``samples`` times where there is nothing that they could be read off.
        """
        (size, events), latents = read.mask.shape, self.latent_shape[0] > 0
        draws = samples if latents and not events and not self.exact else 1
        observed = torch.full((size, events + 1), -1, device=self.device)
        if given is not None:
            observed[:, -1] = given
        if events:
            plan = self.plan(PlanRequest.continuing(read, observed, most_likely, noise))
        else:
            # Where nothing is read, all documents have the same draws.
            plan = self.plan_from_prior(draws, 1, categorical, Noise(noise.generator, draws))
            plan = plan.rows(torch.arange(draws, device=self.device).repeat(size))
        if plan.frames is not None:
            plan = replace(plan, frames=observed.where(observed >= 0, plan.frames))
        elif bool((observed >= 0).any()):
            raise UserError(f"{self.config.model} has no frames that could be given to it")
        rows = torch.arange(size, device=self.device).repeat_interleave(draws)
        even = plan.vectors.new_zeros(size, draws).log_softmax(1)
        return Foresight(plan.after(events), self.begin(read.rows(rows), plan), even, self._next_frames(read))

    def _next_frames(self, read: Batch) -> Float[Tensor, "B F"] | None:
        """log p(frame of the event after the last), in documents of the same length."""
        log_p = self.next_frame_log_probs(read.with_another_event())
        return None if log_p is None else log_p[:, -1]

    def parts(self) -> dict[str, nn.Module]:
        """Parts whose output belongs to a document, and can be that of another (``ssdvae.analysis.swap``)."""
        return {}

    def initialize_from_data(
        self,
        heads: Int[Tensor, "N M"],
        observed: Int[Tensor, "N M"],
        relations: Sequence[Mapping[str, Any]],
        lexicon: Int[Tensor, "P 2"] | None = None,
        lemmas: Int[Tensor, " V"] | None = None,
    ) -> None:
        """Before the first step: start from the training split, where a model can.

        ``heads`` are its heads and ``observed`` its observed frames; ``lexicon`` has further heads and the
        frames that they can have; ``lemmas`` numbers the lemma of each word of the vocabulary.
        """
        return

    def after_step(self, loss: Loss, reduce: Callable[[Tensor], Tensor], generator: torch.Generator) -> None:
        """What else a model does after a training step that had this loss; ``reduce`` sums over processes."""
        return

    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M S"]:
        """log p(w_t | f, w_<t), 0 at padding, with latent variables drawn as in training."""
        plan = self.plan(PlanRequest.whole(batch, self.training_sampler, noise))
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
        inputs: Float[Tensor, "B M P d"] | None = None,
        noise: Noise | None = None,
    ) -> Float[Tensor, "B M S"]:
        """log p(w_t | plan, w_<t), 0 at padding; ``inputs`` are the words as the reader gives them."""
        inputs = self.reader(batch.tokens) if inputs is None else inputs
        output = self.word_decoder(inputs, plan, noise if self.training else None)
        return self.likelihood(output.joined, batch, plan, noise)

    def likelihood(
        self, joined: Float[Tensor, "B M S e"], batch: Batch, plan: Plan, noise: Noise | None = None
    ) -> Float[Tensor, "B M S"]:
        """log p of the words, from what the decoder ``joined`` at each.

        Exact, unless a model that is being trained has ``sampled_words``, and ``noise`` to draw them.
        """
        drawn = None
        if self.training and noise is not None and self.word_decoder.sampled_words:
            drawn = draw(self.word_inclusion_probabilities, noise.generator)
        offsets, heads = plan.word_offsets, self.head_offsets(plan, batch.mask)
        return log_likelihood(self.word_decoder.w_out, joined, batch, drawn, offsets, heads)

    def head_offsets(self, plan: Plan, mask: Bool[Tensor, "B M"]) -> Float[Tensor, "N V"] | None:
        """What is added to the logits of the heads of events, from that of the plan on; None: nothing."""
        return None

    @cached_property
    def word_inclusion_probabilities(self) -> Float[Tensor, " V"]:
        """How likely each word is drawn in a training step that looks at some of them."""
        return inclusion_probabilities(self.vocabulary.counts, self.word_decoder.sampled_words)

    def begin(self, batch: Batch, plan: Plan) -> DecoderState:
        """The decoder's state after the events of a batch without padding."""
        if not batch.mask.shape[1]:
            return self.word_decoder.initial_state(plan)
        state: DecoderState = self.word_decoder(self.reader(batch.tokens), plan).state
        return state

    def next_word(
        self, state: DecoderState, plan: Plan, words: Int[Tensor, " B"] | None, position: int
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """Read one position of the plan's current event; returns log p(the next word) and the state.

        Position 0 is the separator (no words), 1 the head, and those of its arguments follow.
        """
        word = self.reader.single_position(words, position, len(plan.mask))
        predicting, state = self.word_decoder.step(word, state, plan, position)
        logits = full_precision(self.word_decoder.logits(predicting, plan))
        if plan.word_offsets is not None:
            logits = logits + plan.word_offsets
        if position == 0:
            heads = self.head_offsets(plan, torch.ones_like(plan.mask[:, :1]))
            logits = logits if heads is None else logits + heads
        return logits.log_softmax(-1), state

    def continuations(
        self, seeds: Batch, plan: Plan, options: Int[Tensor, "B O E S"]
    ) -> Float[Tensor, "B O"]:
        """log p(option | seed, plan). The seed is read once for all of its options."""
        rows = torch.arange(len(options), device=options.device).repeat_interleave(options.shape[1])
        state, tokens = self.begin(seeds, plan).rows(rows), options.flatten(0, 1)
        later = plan.rows(rows).after(seeds.mask.shape[1])
        joined = self.word_decoder.read(self.reader(tokens), state, later).joined
        scored = Batch.of_words(tokens)
        # In training they are compared with each other, and do not weigh the same.
        log_p = log_likelihood(
            self.word_decoder.w_out,
            joined,
            scored,
            offsets=later.word_offsets,
            head_offsets=self.head_offsets(later, scored.mask),
            alike=False,
        )
        return log_p.sum((1, 2)).view(options.shape[:2])

    @property
    def word_decoder(self) -> Decoder:
        """The decoder of a model that has one."""
        if self.decoder is None:
            raise UserError(f"{self.config.model} classifies frames: it gives words no probability")
        return self.decoder

    def event_states(self, batch: Batch) -> Float[Tensor, "B M h"] | None:
        """The decoder's state after each event, with the likeliest latent variables; None without one."""
        if self.decoder is None:
            return None
        plan = self.plan(PlanRequest.whole(batch, most_likely, Noise(torch.Generator(), len(batch))))
        ends: Tensor = self.decoder(self.reader(batch.tokens), plan).ends
        return ends

    def encode(self, inputs: Any, *, normalize: bool = True, batch: int = 200) -> NDArray[np.float32]:
        """Vectors of events, each by itself, or of documents, in the order in which they are given.

        >>> model.encode(["arrested police suspect", "detained officer man"])  # 2 vectors
        >>> model.encode([["arrested police suspect", "jailed court man"]])  # 1 vector of a document

        An event is a text, a mapping or an `Event`; a document is a `Document`, a mapping with ``events``, or
        a list of events. One of them alone has one vector. With ``normalize`` all have the length 1, so that
        their product is the cosine.
        """
        from ssdvae.models.vectors import encode  # which needs this module first

        return encode(self, inputs, batch, normalize)

    def word_embedding(self) -> nn.Embedding:
        """The table that pretrained vectors are put into."""
        return self.reader.words

    def on_fastest_device(self) -> EventModel:
        return self.to(fastest_device())

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


def log_likelihood(
    output: nn.Linear | TiedLinear,
    joined: Float[Tensor, "B M S e"],
    batch: Batch,
    drawn: Drawn | None = None,
    offsets: Float[Tensor, "B V"] | None = None,
    head_offsets: Float[Tensor, "N V"] | None = None,
    alike: bool = True,
) -> Float[Tensor, "B M S"]:
    """log softmax(output(joined) + offset)[word], computed only at real words; 0 at padding.

    With ``drawn``, the sum over all words is estimated by that over some; ``offsets`` are those of the
    documents, ``head_offsets`` those of the heads of real events, and ``alike`` is as in
    ``linear_cross_entropy``.
    """
    rows, words = joined[batch.mask], batch.tokens[batch.mask]
    documents = torch.arange(len(batch), device=words.device).repeat_interleave(batch.mask.sum(1))

    def nll(slots: slice, added: Offsets | None) -> Tensor:
        some, targets = rows[:, slots].flatten(0, 1), words[:, slots].flatten()
        if drawn is None:
            flat = linear_cross_entropy(some, output.weight, output.bias, targets, alike, added)
        else:
            flat = sampled_cross_entropy(some, output.weight, output.bias, targets, drawn, added)
        return flat.view(words[:, slots].shape)

    def of_documents(slots: int) -> Offsets | None:
        return None if offsets is None else Offsets(offsets, documents.repeat_interleave(slots))

    if head_offsets is None:
        found = nll(slice(None), of_documents(words.shape[1]))
    else:
        every = torch.arange(len(words), device=words.device)
        added = head_offsets if offsets is None else head_offsets + offsets[documents]
        rest = nll(slice(1, None), of_documents(words.shape[1] - 1))
        found = torch.cat([nll(slice(1), Offsets(added, every)), rest], dim=1)
    return to_padded(-found, batch.mask)
