"""Parser of the text in which a world is written.

The top of ``storyworld.txt`` explains the format, ``world.py`` the probabilities. The text is part of the
package: its tests find mistakes in it, not this parser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from ssdvae.data.events import MISSING

T = TypeVar("T")

LEAD, CODA = "@lead", "coda"
"""The first role of the scenario, in the coda; and the name of that."""


@dataclass(frozen=True, slots=True)
class Categorical(Generic[T]):
    """A categorical distribution: thing → probability."""

    probs: Mapping[T, float]

    @classmethod
    def of(cls, weights: Mapping[T, float]) -> Categorical[T]:
        """Return the distribution that is proportional to weights."""
        total = sum(weights.values())
        return cls({thing: weight / total for thing, weight in weights.items()})

    def draw(self, rng: np.random.Generator) -> T:
        """Return a sample."""
        left = rng.random()
        for thing, prob in self.probs.items():
            left -= prob
            if left < 0:
                return thing
        return thing  # rounding may leave the sum a little below one


@dataclass(frozen=True, slots=True)
class Pool:
    """Names that fill a role, and their pronouns as subject and as object."""

    names: Categorical[str]
    pronouns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """A participant that has one filler in a document, and the nouns for it."""

    pool: Pool
    nouns: Categorical[str]


@dataclass(frozen=True, slots=True)
class Step:
    """A line of a scenario: a frame, the words of its four slots, and the next frames (None: the coda)."""

    frame: str
    slots: tuple[Categorical[str], ...]
    then: Categorical[str] | None


@dataclass(slots=True)
class Script:
    """A scenario or the coda, as it stands in the text."""

    name: str
    weight: float = 1.0
    roles: dict[str, Role] = field(default_factory=dict)
    start: Categorical[str] = field(default_factory=lambda: Categorical({}))
    steps: dict[str, Step] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plot:
    """A scenario joined with the coda: a Markov chain over numbered states, each of them a step."""

    name: str
    prior: float
    roles: Mapping[str, Role]
    start: Categorical[int]
    states: Sequence[Step]
    then: Sequence[Categorical[int]]


def parse_plots(text: str) -> list[Plot]:
    """Return the plots of a text."""
    scripts, coda = parse_scripts(text)
    total = sum(script.weight for script in scripts)
    return [_join(script, coda, script.weight / total) for script in scripts]


def parse_scripts(text: str) -> tuple[list[Script], Script | None]:
    """Return the scenarios of a text, and its coda."""
    pools: dict[str, Pool] = {}
    verbs: dict[str, Categorical[str]] = {}
    scripts: list[Script] = []
    for line in text.split("\n"):
        keyword, _, rest = line.partition("#")[0].strip().partition(" ")
        left, _, right = rest.partition("=")
        if "|" in rest:
            step = _step(keyword, rest, verbs)
            scripts[-1].steps[step.frame] = step
        elif keyword == "pool":
            name, *pronouns = left.split()
            pools[name] = Pool(_categorical(right), tuple(pronouns))
        elif keyword == "frame":
            verbs[left.strip()] = _categorical(right)
        elif keyword == "scenario":
            ((name, weight),) = _weights(rest).items()
            scripts.append(Script(name, weight))
        elif keyword == "coda":
            scripts.append(Script(CODA))
        elif keyword == "role":
            pool, _, nouns = right.partition(":")
            scripts[-1].roles[left.strip()] = Role(pools[pool.strip()], _categorical(nouns))
        elif keyword == "start":
            scripts[-1].start = _categorical(rest)
        elif keyword:
            raise ValueError(f"no line of a world: {line}")
    coda = next((script for script in scripts if script.name == CODA), None)
    return [script for script in scripts if script is not coda], coda


def _step(frame: str, rest: str, verbs: Mapping[str, Categorical[str]]) -> Step:
    """Return the step of ``frame own verbs | subject | object | modifier | then``."""
    own, subj, obj, mod, then = rest.split("|")
    head = _categorical(own) if own.strip() else verbs[frame]
    slots = (head, *map(_categorical, (subj, obj, mod)))
    return Step(frame, slots, _categorical(then) if then.strip() else None)


def _weights(text: str) -> dict[str, float]:
    """Return the words of ``word word*2``, with their weights; ``-`` is the missing word."""
    pairs = (token.partition("*") for token in text.split())
    return {MISSING if word == "-" else word: float(number or 1) for word, _, number in pairs}


def _categorical(text: str) -> Categorical[str]:
    return Categorical.of(_weights(text))


def _join(script: Script, coda: Script | None, prior: float) -> Plot:
    """Return the plot of a correct script, which goes on with the coda where it ends.

    Only steps that can be reached become states.
    """
    steps: list[tuple[Script, Step]] = []
    numbers: dict[tuple[bool, str], int] = {}  # (belongs to the coda, frame) → state

    def enter(part: Script, choice: Categorical[str], after: str = "") -> Categorical[int]:
        # No frame follows itself, so the coda opens with another frame than the one that led to it.
        ways = {frame: prob for frame, prob in choice.probs.items() if frame != after}
        for frame in ways:
            if (part is coda, frame) not in numbers:
                numbers[part is coda, frame] = len(steps)
                steps.append((part, part.steps[frame]))
        return Categorical.of({numbers[part is coda, frame]: prob for frame, prob in ways.items()})

    start = enter(script, script.start)
    then: list[Categorical[int]] = []
    for part, step in steps:  # ``enter`` adds to it
        if step.then is not None:
            then.append(enter(part, step.then))
        else:
            assert coda is not None
            then.append(enter(coda, coda.start, step.frame))

    lead = "@" + next(iter(script.roles))
    states = [_replace_lead(step, lead) for _, step in steps]
    return Plot(script.name, prior, script.roles, start, states, then)


def _replace_lead(step: Step, lead: str) -> Step:
    """Return the step with the scenario's first role for that of the coda."""
    slots = ({lead if w == LEAD else w: p for w, p in choice.probs.items()} for choice in step.slots)
    return replace(step, slots=tuple(Categorical(probs) for probs in slots))
