"""Lexicons, and a classifier that chooses among the frames of a verb by the words of the event.

A lexicon has the frames that each verb can evoke, with their weights. The classifier is log-linear:

p(f | event) = exp(s(f)) / Σ_g exp(s(g)), over the candidate frames g of the verb, with
s(f) = Σ_x w[hash(f, x)], over the features x of the event

The features are the words in the slots and which slots are filled, alone (shared by all verbs of a frame) and
with the verb. The weights maximise the log-likelihood of annotated events less λ‖w‖². They are hashed into
one vector by frame and feature.

Examples that were chosen to show each sense do not tell how common it is. Running text does: the weights w₀
of the examples are adapted to it by maximising its log-likelihood less λ‖w − w₀‖² (Chelba and Acero 2006).
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ssdvae.data.events import SLOTS, Event
from ssdvae.data.readers.rows import named_rows
from ssdvae.io.errors import DataError, UserError, shorten
from ssdvae.io.files import atomic_write, stop_at_first_error, write_text
from ssdvae.io.records import Record, read_json

Ranking = Sequence[tuple[str, float]]
"""Frames and their probabilities, the likeliest first."""

COLUMNS = {"verb": ("verb", "lemma"), "frame": ("frame",), "weight": ("weight", "probability", "count")}


@lru_cache(2**16)
def normalize_verb(verb: str) -> str:
    """Return a verb as events have it: "give up" becomes give_up, and "abide (by)" becomes abide."""
    return "_".join(re.sub(r"\(+[^()]*\)+", " ", verb.replace("_", " ")).lower().split())


class Lexicon:
    """The frames of each verb with their weights: p(f | verb) = weight of f / sum of the verb's weights.

    ``forms`` has the verb of each inflected form that was seen.
    """

    def __init__(
        self, frames: Mapping[str, Mapping[str, float]], forms: Mapping[str, str] | None = None
    ) -> None:
        self.frames = {verb: dict(choices) for verb, choices in frames.items()}
        self.forms = dict(forms or {})

    def __len__(self) -> int:
        return len(self.frames)

    def verb(self, event: Event) -> str:
        """Return the entry of an event's verb: its lemma, the word itself, or the verb of its form."""
        words = [normalize_verb(word) for word in (event.lemma, event.head) if word]
        words.append(self.forms.get(event.head.lower(), words[0]))
        return next((word for word in words if word in self.frames), words[0])

    def candidates(self, event: Event) -> dict[str, float]:
        """Return the frames of an event's verb with their weights; none for an unknown verb."""
        return self.frames.get(self.verb(event), {})

    def probabilities(self, event: Event) -> dict[str, float]:
        """Return the probability of each frame of an event's verb."""
        choices = self.candidates(event)
        total = sum(choices.values())
        return {frame: weight / total for frame, weight in choices.items()} if total else {}

    def predict(self, events: Sequence[Event], most: int = 1) -> list[Ranking]:
        """Return the likeliest frames of each event, at most so many; none for an unknown verb."""
        return [ranked(self.probabilities(event), most) for event in events]

    def fingerprint(self) -> str:
        """Return a hash of the entries, in their order, in which probabilities are added up."""
        return hashlib.sha256(json.dumps([self.frames, self.forms]).encode()).hexdigest()


def ranked(probabilities: Mapping[str, float], most: int) -> Ranking:
    """Return the likeliest frames; among equals, the first by name."""
    return sorted(probabilities.items(), key=lambda pair: (-pair[1], pair[0]))[:most]


def read_lexicon(path: Path) -> Lexicon:
    """Read a lexicon from a table (``verb,frame,weight``) or JSON (``{"verb": ["frame", …]}``)."""
    name = path.name.lower().removesuffix(".gz")
    frames: dict[str, dict[str, float]] = {}
    for line, verb, frame, weight in _json_entries(path) if name.endswith(".json") else _csv_entries(path):
        if not (isinstance(verb, str) and normalize_verb(verb) and isinstance(frame, str) and frame.strip()):
            raise DataError(path, line, f"{shorten(verb)}: {shorten(frame)}", "a verb and a frame")
        try:
            value = float(weight)
        except (TypeError, ValueError, OverflowError):
            value = -1.0
        if not 0 <= value < float("inf"):
            raise DataError(path, line, f"the weight {shorten(weight)}", "a number, 0 or more")
        choices = frames.setdefault(normalize_verb(verb), {})
        choices["_".join(frame.split())] = value
    if not frames:
        raise DataError(path, None, "no verbs", "a lexicon of verbs and their frames")
    return Lexicon(frames)


Entry = tuple[int | None, Any, Any, Any]


def _csv_entries(path: Path) -> Iterable[Entry]:
    for line, cells in named_rows(path, "csv", stop_at_first_error, COLUMNS, ("verb", "frame")):
        yield line, cells["verb"], cells["frame"], cells.get("weight") or 1


def _json_entries(path: Path) -> Iterable[Entry]:
    expected = 'a lexicon such as {"hit": ["Impact", "Cause_harm"]}'
    for verb, frames in read_json(path, dict[str, str | list[str] | dict[str, float]], expected).items():
        if not frames:
            raise DataError(path, None, f"{shorten(frames)} for {shorten(verb)}", "a frame, or several")
        names = [frames] if isinstance(frames, str) else frames
        for frame in names:
            yield None, verb, frame, frames[frame] if isinstance(frames, dict) else 1


# The classifier.

KIND = "frame-classifier"
SIZE = 2**20
REGULARISATION = 0.5
"""λ, chosen on a held-out tenth of FrameNet's examples (docs/extraction.md); adaptation uses the same."""
STEPS = 60


def features(event: Event, verb: str) -> list[str]:
    """Return the features of an event; their number is always the same."""
    arguments = event.values(len(SLOTS))[1:]
    subj, obj, mod = (word or "-" for word in arguments)
    filled = "".join(letter for letter, word in zip("som", arguments, strict=True) if word)
    words = [f"subj={subj}", f"obj={obj}", f"mod={mod}", f"filled={filled}"]
    return [
        f"verb={verb}",
        f"verb={verb} form={event.head}",
        *(f"verb={verb} {word}" for word in words),
        *words,
        f"mod={mod} obj={obj}",
    ]


def feature_indices(frame: str, names: Iterable[str]) -> list[int]:
    """Return the indices of the weights of a frame's features."""
    return [zlib.crc32(f"{frame} {name}".encode()) % SIZE for name in names]


class _LexiconRecord(Record, extra="ignore"):
    frames: dict[str, dict[str, float]]
    forms: dict[str, str]


def save_lexicon(folder: Path, lexicon: Lexicon, config: Mapping[str, Any]) -> None:
    """Write the lexicon of an annotator, and its config last: a folder that has a config is complete."""
    files = {"lexicon.json": {"frames": lexicon.frames, "forms": lexicon.forms}, "config.json": config}
    for name, value in files.items():
        write_text(folder / name, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def load_lexicon(folder: Path) -> Lexicon:
    """Read the lexicon of a saved annotator."""
    found = read_json(folder / "lexicon.json", _LexiconRecord, "a lexicon")
    return Lexicon(found.frames, found.forms)


class FrameClassifier:
    """A lexicon and weights."""

    def __init__(self, lexicon: Lexicon, weights: NDArray[np.float32]) -> None:
        self.lexicon, self.weights = lexicon, weights

    def probabilities(self, event: Event) -> dict[str, float]:
        """Return the probability of each frame of the event's verb; none for an unknown verb."""
        frames = list(self.lexicon.candidates(event))
        if len(frames) < 2:
            return dict.fromkeys(frames, 1.0)
        names = features(event, self.lexicon.verb(event))
        scores = np.array(
            [self.weights[feature_indices(frame, names)].sum(dtype=np.float64) for frame in frames]
        )
        weights = np.exp(scores - scores.max())
        return dict(zip(frames, (weights / weights.sum()).tolist(), strict=True))

    def predict(self, events: Sequence[Event], most: int = 1) -> list[Ranking]:
        """Return the likeliest frames of each event, at most so many; none for an unknown verb."""
        return [ranked(self.probabilities(event), most) for event in events]

    def fingerprint(self) -> str:
        """Return a hash of the lexicon and the weights."""
        return hashlib.sha256(self.lexicon.fingerprint().encode() + self.weights.tobytes()).hexdigest()

    @classmethod
    def fit(
        cls,
        events: Iterable[Event],
        candidates: Mapping[str, Iterable[str]] | None = None,
    ) -> FrameClassifier:
        """Return a classifier trained on events with frames; ``candidates`` adds unseen frames of verbs."""
        examples = labelled(events)
        lexicon = learn_lexicon(examples, candidates)
        return cls(lexicon, _fit_weights(examples, lexicon, np.zeros(SIZE, np.float32)))

    def adapt(self, events: Iterable[Event]) -> FrameClassifier:
        """Return the classifier adapted to running text with frames."""
        examples = labelled(events)
        lexicon = _add_counts(self.lexicon, examples)
        return FrameClassifier(lexicon, _fit_weights(examples, lexicon, self.weights))

    def save(self, folder: Path) -> None:
        """Write a folder of JSON and safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / "model.safetensors") as path:
            save_file({"weights": self.weights}, path)
        save_lexicon(folder, self.lexicon, {"kind": KIND, "size": SIZE, "verbs": len(self.lexicon)})

    @classmethod
    def load(cls, folder: Path) -> FrameClassifier:
        """Read a saved classifier. Executes no code."""
        config = read_json(folder / "config.json", dict[str, Any], f"the config of a {KIND}")
        if (config.get("kind"), config.get("size")) != (KIND, SIZE):
            raise DataError(
                folder / "config.json", None, f"{config.get('kind')!r}", f"a {KIND} of this version"
            )
        lexicon = load_lexicon(folder)
        path = folder / "model.safetensors"
        try:
            weights = load_file(path)["weights"]
        except (SafetensorError, OSError, KeyError, AttributeError, TypeError, ValueError) as error:
            raise DataError(path, None, str(error), f"the weights of a {KIND}") from error
        return cls(lexicon, weights)


def labelled(events: Iterable[Event]) -> list[Event]:
    """Return the events that have a frame; there must be one."""
    examples = [event for event in events if event.frame is not None]
    if not examples:
        raise UserError("no event has a frame: there is nothing to learn frames from")
    return examples


def learn_lexicon(
    examples: Sequence[Event], candidates: Mapping[str, Iterable[str]] | None = None
) -> Lexicon:
    """Return the frames of each verb of the examples, and of ``candidates``."""
    known: dict[str, Mapping[str, float]] = {}
    for verb, frames in (candidates or {}).items():
        known[normalize_verb(verb)] = {**known.get(normalize_verb(verb), {}), **dict.fromkeys(frames, 0)}
    return _add_counts(Lexicon(known), examples)


def _add_counts(lexicon: Lexicon, examples: Sequence[Event]) -> Lexicon:
    """Return a lexicon with the frames of examples added, and the forms in which their verbs occur."""
    counts = defaultdict(Counter[str], {verb: Counter(frames) for verb, frames in lexicon.frames.items()})
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for event in examples:
        verb = normalize_verb(event.lemma or event.head)
        counts[verb][str(event.frame)] += 1
        forms[event.head.lower()][verb] += 1
    # Weights are floats, as a lexicon that is read has them: the fingerprint stays the same.
    known = {
        verb: {frame: float(count) for frame, count in sorted(choices.items())}
        for verb, choices in sorted(counts.items())
    }
    # "gave" is of "give", however often "gave … out" is of "give out".
    usual = {
        form: min(verbs, key=lambda v: (v.count("_") != form.count("_"), -verbs[v], v))
        for form, verbs in sorted(forms.items())
    }
    # A form that is its own verb need not be stored.
    return Lexicon(known, {f: verb for f, verb in (usual | lexicon.forms).items() if f != verb})


def _fit_weights(
    examples: Sequence[Event], lexicon: Lexicon, prior_mean: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the weights by L-BFGS, regularised towards a prior mean. Verbs with one frame teach nothing."""
    # Loading torch is slow, and a process that annotates does not need it.
    import torch

    rows: list[list[int]] = []
    owner: list[int] = []
    gold: list[int] = []
    for event in examples:
        verb = normalize_verb(event.lemma or event.head)
        frames = lexicon.frames[verb]
        if len(frames) < 2:
            continue
        names = features(event, verb)
        for frame in frames:
            if frame == event.frame:
                gold.append(len(rows))
            owner.append(len(gold) - 1 if frame >= str(event.frame) else len(gold))
            rows.append(feature_indices(frame, names))
    if not gold:
        return prior_mean
    # The vector is mostly empty: work with the indices that occur.
    used, index = torch.unique(torch.tensor(rows), return_inverse=True)
    group, true, count = torch.tensor(owner), torch.tensor(gold), len(gold)
    start = torch.from_numpy(prior_mean[used.numpy()]).double()
    learned = start.clone()
    learned.grad = torch.zeros_like(learned)
    optimizer = torch.optim.LBFGS([learned], max_iter=STEPS, history_size=10, line_search_fn="strong_wolfe")

    def closure() -> float:
        scores = learned[index].sum(1)
        top = torch.full((count,), -torch.inf, dtype=torch.float64).scatter_reduce(0, group, scores, "amax")
        shares = (scores - top[group]).exp()
        totals = torch.zeros(count, dtype=torch.float64).index_add(0, group, shares)
        away = learned - start
        loss = (totals.log() + top - scores[true]).sum() + REGULARISATION * away.square().sum()
        # d loss / d score is p − 1[gold]; by hand, because autograd's scatter is a hundred times slower.
        slope = shares / totals[group]
        slope[true] -= 1
        spread = slope[:, None].expand(index.shape).flatten()
        gradient = torch.bincount(index.flatten(), spread, len(used)) + 2 * REGULARISATION * away
        assert learned.grad is not None
        learned.grad.copy_(gradient / count)
        return float(loss / count)

    with torch.no_grad():
        optimizer.step(closure)  # type: ignore[no-untyped-call]  # torch's
    weights = prior_mean.copy()
    weights[used.numpy()] = learned.float().numpy()
    return weights
