"""Parser of the text in which a world is written; errors name the line.

The top of ``storyworld.txt`` explains the format, ``world.py`` the probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from ssdvae.data.events import MISSING
from ssdvae.io.errors import DataError, Malformed, locate_errors, shorten

T = TypeVar("T")

LEAD = "@lead"
"""The first role of the scenario, in the coda."""


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

    line: int
    frame: str
    slots: tuple[Categorical[str], ...]
    then: Categorical[str] | None


@dataclass(slots=True)
class Script:
    """A scenario or the coda, as it stands in the text."""

    name: str
    weight: float
    line: int
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


def parse_plots(text: str, source: str) -> list[Plot]:
    """Parse a text line by line, then check what needs several lines."""
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        with locate_errors(source, number):
            reader.read(" ".join(line.partition("#")[0].split()), number)
    scripts, coda = reader.scripts, reader.coda
    if not scripts:
        raise DataError(source, None, "no scenario", "a line such as 'scenario trial'")
    for script in [*scripts, *([coda] if coda else [])]:
        for number, found, expected in _errors_of(script, coda):
            raise DataError(source, number, found, expected)
    total = sum(script.weight for script in scripts)
    plots = [_join(script, coda, script.weight / total) for script in scripts]
    reached = {step.line for plot in plots for step in plot.states}
    for step in (step for script in scripts for step in script.steps.values()):
        if step.line not in reached:
            expected = "a start or a step that leads to it"
            raise DataError(source, step.line, f"no way to {step.frame}", expected)
    return plots


def _errors_of(script: Script, coda: Script | None) -> Iterator[tuple[int, str, str]]:
    """Yield the errors of a script: line, found, expected."""
    if not script.start.probs:
        yield script.line, f"no start in {script.name!r}", "a line such as 'start Arrest*2 Trial'"
    if not script.roles and script is not coda:
        yield script.line, f"no role in {script.name!r}", "at least one; the first is its lead"
    named = [
        (script.line, script.start),
        *((step.line, step.then) for step in script.steps.values() if step.then),
    ]
    for line, choice in named:
        for frame in (frame for frame in choice.probs if frame not in script.steps):
            yield line, f"the frame {frame!r}", f"a frame that has a step in {script.name!r}"
    for step in script.steps.values():
        if step.then is None and not (coda and coda.start.probs.keys() - {step.frame}):
            yield step.line, f"nothing after {step.frame}", "frames that follow, or a coda to pass to"


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
            assert coda is not None  # checked before
            then.append(enter(coda, coda.start, step.frame))

    lead = "@" + next(iter(script.roles))
    states = [_replace_lead(step, lead) for _, step in steps]
    return Plot(script.name, prior, script.roles, start, states, then)


def _replace_lead(step: Step, lead: str) -> Step:
    """Return the step with the scenario's first role for that of the coda."""
    slots = ({lead if w == LEAD else w: p for w, p in choice.probs.items()} for choice in step.slots)
    return replace(step, slots=tuple(Categorical(probs) for probs in slots))


class _Reader:
    """The declarations so far; a name is declared above its use, except that of a next frame."""

    def __init__(self) -> None:
        self.pools: dict[str, Pool] = {}
        self.verbs: dict[str, Categorical[str]] = {}
        self.scripts: list[Script] = []
        self.coda: Script | None = None
        self.now: Script | None = None  # the scenario or coda whose lines these are

    def read(self, line: str, number: int) -> None:
        """Parse a line without comment and with single spaces."""
        keyword, _, rest = line.partition(" ")
        left, _, right = (part.strip() for part in rest.partition("="))
        if "|" in line:
            self._step(line, number)
        elif keyword == "pool":
            name, *pronouns = [_word(token) for token in left.split()] or [""]
            if len(pronouns) not in (0, 2):
                raise Malformed(f"the pronouns {shorten(pronouns)}", "two, for subject and object, or none")
            self.pools[_new_name(name, self.pools)] = Pool(_categorical(right), tuple(pronouns))
        elif keyword == "frame":
            self.verbs[_new_name(left, self.verbs)] = _categorical(right)
        elif keyword == "scenario":
            ((name, weight),) = list(_weights(rest, at_most=1).items())
            self.now = Script(_new_name(name, [script.name for script in self.scripts]), weight, number)
            self.scripts.append(self.now)
        elif line == "coda":
            _new_name(line, [line] if self.coda else [])
            self.now = self.coda = Script("(coda)", 1.0, number)
        elif keyword == "role":
            pool, _, nouns = (part.strip() for part in right.partition(":"))
            if self.now is not None and self.now is self.coda:
                raise Malformed("a role in the coda", f"none: its one role is {LEAD}")
            if pool not in self.pools:
                raise Malformed(f"the pool {pool!r}", f"one declared above: {', '.join(self.pools)}")
            self._script.roles[_new_name(left, ["lead", *self._script.roles])] = Role(
                self.pools[pool], _categorical(nouns)
            )
        elif keyword == "start":
            _new_name(keyword, [keyword] if self._script.start.probs else [])
            self._script.start = _categorical(rest)
        elif line:
            raise Malformed(
                shorten(line), "pool, frame, scenario, coda, role, start, or a step with its bars '|'"
            )

    @property
    def _script(self) -> Script:
        if self.now is None:
            raise Malformed("a line of a scenario", "a line such as 'scenario trial' above it")
        return self.now

    def _step(self, line: str, number: int) -> None:
        fields = [part.strip() for part in line.split("|")]
        if len(fields) != 5:
            raise Malformed(
                f"{len(fields) - 1} bars", "4: frame | subject | object | modifier | what comes next"
            )
        head, subj, obj, mod, then = fields
        name, _, verbs = head.partition(" ")
        script = self._script
        frame = _new_name(name, script.steps)
        if not verbs and frame not in self.verbs:
            raise Malformed(
                f"no verbs for the frame {frame!r}", "a line 'frame … = …' above, or verbs after its name"
            )
        roles = [LEAD] if script is self.coda else ["@" + role for role in script.roles]
        slots = (
            _categorical(verbs) if verbs else self.verbs[frame],
            _categorical(subj, ["-", *roles]),
            _categorical(obj, ["-", *roles]),
            _categorical(mod, ["-"]),
        )
        after = _categorical(then) if then else None
        if after and frame in after.probs:
            raise Malformed(f"{frame} after itself", "another frame")
        script.steps[frame] = Step(number, frame, slots, after)


def _word(token: str, signs: Collection[str] = ()) -> str:
    """Return a plain word, or one of the signs: ``@role`` and, for the missing word, ``-``."""
    if token in signs:
        return MISSING if token == "-" else token
    if not token or token in ("-", MISSING) or set(token) & set("@*=:|"):
        raise Malformed(shorten(token), f"a word{''.join(' or ' + sign for sign in signs)}")
    return token


def _weights(text: str, signs: Collection[str] = (), at_most: int | None = None) -> dict[str, float]:
    """Return the words of ``word word*2``, each once, with their weights."""
    weights: dict[str, float] = {}
    for token in text.split():
        name, star, number = token.partition("*")
        word = _new_name(name, weights, signs)
        try:
            weights[word] = float(number) if star else 1.0
        except ValueError:
            weights[word] = math.nan
        if not 1e-6 <= weights[word] <= 1e6:
            raise Malformed(f"the weight {number!r}", "a number from 0.000001 to 1000000")
    if not weights or (at_most and len(weights) > at_most):
        raise Malformed(f"{len(weights)} words", "one" if at_most else "one or more")
    return weights


def _categorical(text: str, signs: Collection[str] = ()) -> Categorical[str]:
    return Categorical.of(_weights(text, signs))


def _new_name(token: str, known: Collection[str], signs: Collection[str] = ()) -> str:
    """Return a word that is not among those known."""
    word = _word(token, signs)
    if word in known:
        raise Malformed(f"{token!r} again", "each name once")
    return word
