"""Storyworld: a corpus inside the package whose exact distribution is known.

A model of it can be measured against the best that any model could do. The generative story, with the
content of ``storyworld.txt`` (which also explains its own format):

    scenario        s ~ weights
    filler          c_r ~ pool(r), for each role r of s, once per document and independently
    state           z_1 ~ start(s),  z_m ~ transition(s, z_{m-1})
    event m         verb, subj, obj, mod, independent given (s, z_m, c):
      verb          ~ p(verb | frame(z_m)), or as the scenario has it
      subj, obj     ~ p(· | s, z_m): plain words, the missing word, or the mention of a role
      mod           ~ p(mod | s, z_m)
    mention of r    its filler's name (.5), a noun of the role (.3) or a pronoun (.2)

A state is one step of the scenario or of the coda, and has one frame; a scenario has a frame at most once,
and the coda, a shared chain of general frames, takes over where a scenario has no more to tell. So the
chain never ends: the number of events M is uniform on 4 … 8 and independent of everything else, and the
first k events of a document are distributed as a document of length k.

The probability of the words is a sum over scenarios, fillers and chains,

    p(w) = Σ_s p(s) Σ_c Π_r p(c_r) Σ_z Π_m p(z_m | z_{m-1}, s) p(w_m | z_m, c, s).

The sum over chains is the forward algorithm. In the sum over fillers, all names of a pool that do not occur
in the document give each of its words the same probability, so they are one candidate with their total mass.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ssdvae.data.events import MISSING, SLOTS, Document, Event
from ssdvae.errors import DataError, Malformed, shorten

T = TypeVar("T")
Array = NDArray[np.float64]
Words = Sequence[tuple[str, str, str, str]]

LENGTHS = range(4, 9)
"""The numbers of events of a document, all equally likely."""

SHARES = {"name": 0.5, "noun": 0.3, "pronoun": 0.2}
"""How a role is mentioned; where a pool has no pronoun, the other two in proportion."""

SUBJ, OBJ = SLOTS.index("subj"), SLOTS.index("obj")
LEAD = "@lead"


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """A distribution over a few things: thing → probability."""

    probs: Mapping[T, float]

    @classmethod
    def of(cls, weights: Mapping[T, float]) -> Choice[T]:
        total = sum(weights.values())
        return cls({thing: weight / total for thing, weight in weights.items()})

    def draw(self, rng: np.random.Generator) -> T:
        left = rng.random()
        for thing, prob in self.probs.items():
            left -= prob
            if left < 0:
                return thing
        return thing  # rounding may leave the sum a little below one


@dataclass(frozen=True, slots=True)
class Pool:
    """Names that fill a role, and the pronouns for them as subject and as object."""

    names: Choice[str]
    pronouns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """A part that one filler plays through a document."""

    pool: Pool
    nouns: Choice[str]

    @property
    def named(self) -> float:
        """The probability that a mention is by name."""
        return SHARES["name"] / (sum(SHARES.values()) - (0 if self.pool.pronouns else SHARES["pronoun"]))

    def unnamed(self, slot: int) -> Choice[str]:
        """How it is mentioned in the slot when not by name."""
        weights = {noun: SHARES["noun"] * prob for noun, prob in self.nouns.probs.items()}
        if self.pool.pronouns:
            pronoun = self.pool.pronouns[slot - SUBJ]
            weights[pronoun] = weights.get(pronoun, 0) + SHARES["pronoun"]
        return Choice.of(weights)


@dataclass(frozen=True, slots=True)
class Step:
    """A line of a scenario: a frame, what its four slots may hold, and what may come next."""

    line: int
    frame: str
    slots: tuple[Choice[str], ...]
    then: Choice[str] | None


@dataclass(slots=True)
class Script:
    """A scenario or the coda as it stands in the text."""

    name: str
    weight: float
    line: int
    roles: dict[str, Role] = field(default_factory=dict)
    start: Choice[str] = field(default_factory=lambda: Choice({}))
    steps: dict[str, Step] = field(default_factory=dict)


class Scenario:
    """A script joined to the coda: what it can tell, and how probable it finds a telling of it."""

    def __init__(self, script: Script, coda: Script | None, prior: float) -> None:
        self.name, self.prior, self.roles = script.name, prior, script.roles
        self.start, self.states, self.then = _join(script, coda)
        self.frames = [step.frame for step in self.states]
        self._mentions = {
            slot: {role: self.roles[role].unnamed(slot) for role in self.roles} for slot in (SUBJ, OBJ)
        }
        self._tabulate()

    def tell(self, rng: np.random.Generator) -> tuple[Event, ...]:
        """A document, forwards through the generative story."""
        length = LENGTHS[int(len(LENGTHS) * rng.random())]
        fillers = {name: role.pool.names.draw(rng) for name, role in self.roles.items()}
        state, events = self.start.draw(rng), []
        for _ in range(length):
            step = self.states[state]
            drawn = [choice.draw(rng) for choice in step.slots]
            verb, *rest = (self._say(word, slot, fillers, rng) for slot, word in enumerate(drawn))
            subj, obj, mod = (None if word == MISSING else word for word in rest)
            events.append(Event(verb, subj, obj, mod, step.frame))
            state = self.then[state].draw(rng)
        return tuple(events)

    def _say(self, word: str, slot: int, fillers: Mapping[str, str], rng: np.random.Generator) -> str:
        if not word.startswith("@"):
            return word
        role = word[1:]
        by_name = rng.random() < self.roles[role].named
        return fillers[role] if by_name else self._mentions[slot][role].draw(rng)

    def _tabulate(self) -> None:
        """The story in arrays. V words with row 0 for those unknown here, S states, R roles:

        plain[slot]     [V, S]  p(the word itself | state)
        mention[slot]   [S, R]  p(a mention of the role | state)
        unnamed[slot]   [V, R]  p(word, not by name | mention of the role)
        pool            [V, R]  p(the role's filler has this name)
        able[slot]      word → the set of states, as bits, that can say it there
        """
        found: dict[str, None] = {}
        for step in self.states:
            found.update({word: None for choice in step.slots for word in choice.probs if word[0] != "@"})
        for name, role in self.roles.items():
            found.update(dict.fromkeys([*role.pool.names.probs, *self._mentions[1][name].probs]))
            found.update(dict.fromkeys(self._mentions[2][name].probs))
        self.index = {word: row for row, word in enumerate(found, start=1)}
        V, S, R = len(found) + 1, len(self.states), len(self.roles)
        roles = list(self.roles)
        self.first, self.transition = np.zeros(S), np.zeros((S, S))
        self.plain, self.mention, self.unnamed = np.zeros((4, V, S)), np.zeros((4, S, R)), np.zeros((4, V, R))
        self.pool = np.zeros((V, R))
        self.named = np.array([role.named for role in self.roles.values()])
        for state, prob in self.start.probs.items():
            self.first[state] = prob
        for s, step in enumerate(self.states):
            for state, prob in self.then[s].probs.items():
                self.transition[s, state] = prob
            for slot, choice in enumerate(step.slots):
                for word, prob in choice.probs.items():
                    if word[0] == "@":
                        self.mention[slot, s, roles.index(word[1:])] += prob
                    else:
                        self.plain[slot, self.index[word], s] += prob
        for r, role in enumerate(self.roles.values()):
            for word, prob in role.pool.names.probs.items():
                self.pool[self.index[word], r] = prob
            for slot in (SUBJ, OBJ):
                for word, prob in role.unnamed(slot).probs.items():
                    self.unnamed[slot, self.index[word], r] = (1 - role.named) * prob
        likely = self.word_probs() > 0
        bits = [1 << s for s in range(S)]
        self.able = [
            {
                w: sum(b for b, can in zip(bits, likely[slot, v], strict=True) if can)
                for w, v in self.index.items()
            }
            for slot in range(4)
        ]

    def word_probs(self) -> Array:
        """p(word in slot | state) with the fillers summed out: [4, V, S]."""
        said = self.unnamed + np.isin(np.arange(4), (SUBJ, OBJ))[:, None, None] * self.named * self.pool
        result: Array = self.plain + said @ self.mention.transpose(0, 2, 1)
        return result

    def visits(self) -> Array:
        """The expected number of events in each state, in a document of this scenario: [S]."""
        total, now = np.zeros_like(self.first), self.first
        for m in range(1, LENGTHS[-1] + 1):
            total = total + now * sum(length >= m for length in LENGTHS) / len(LENGTHS)
            now = now @ self.transition
        return total

    def possible(self, words: Words) -> bool:
        """Whether each event by itself could come from some state: a quick no for most scenarios."""
        verbs, subjs, objs, mods = self.able
        return all(
            verbs.get(verb, 0) & subjs.get(subj, 0) & objs.get(obj, 0) & mods.get(mod, 0)
            for verb, subj, obj, mod in words
        )

    def emissions(self, words: Words) -> tuple[Array, Array]:
        """p(c) and p(w_m | z_m, c), as [H] and [M, H, S], for all H combinations of candidate fillers."""
        rows = np.array([[self.index.get(word, 0) for word in event] for event in words])  # [M, 4]
        heard = np.unique(rows[:, (SUBJ, OBJ)])
        candidates = []
        for pool in self.pool.T:
            names = heard[pool[heard] > 0]
            # The last candidate is every other name at once; −1 is the row of no word.
            others = np.delete(pool, names).sum()
            candidates.append((np.append(names, -1), np.append(pool[names], others)))
        grid = np.indices([len(names) for names, _ in candidates]).reshape(len(candidates), -1)  # [R, H]
        fillers = np.stack(
            [names[at] for (names, _), at in zip(candidates, grid, strict=True)], axis=1
        )  # [H, R]
        prior: Array = np.prod([mass[at] for (_, mass), at in zip(candidates, grid, strict=True)], axis=0)
        result: Array = (self.plain[0, rows[:, 0]] * self.plain[3, rows[:, 3]])[:, None]
        for slot in (SUBJ, OBJ):
            row = rows[:, slot]
            said = self.unnamed[slot, row][:, None] + self.named * (
                fillers == row[:, None, None]
            )  # [M, H, R]
            result = result * (self.plain[slot, row][:, None] + said @ self.mention[slot].T)
        return prior, result

    def forward(self, words: Words) -> tuple[float, Array, Array]:
        """log p(w | s); p(z_m, c | w_1 … w_m, s), [M, H, S]; and the emissions."""
        prior, emission = self.emissions(words)
        alpha, log_prob = np.zeros_like(emission), 0.0
        ahead = prior[:, None] * self.first
        for m in range(len(words)):
            alpha[m] = ahead * emission[m]
            total = float(alpha[m].sum())
            if total <= 0:
                return -math.inf, alpha, emission
            alpha[m] /= total  # so that nothing underflows, however long the document
            log_prob += math.log(total)
            ahead = alpha[m] @ self.transition
        return log_prob, alpha, emission

    def smooth(self, alpha: Array, emission: Array) -> Array:
        """p(z_m | w, s), [M, S], from what ``forward`` found."""
        result = np.zeros((len(alpha), len(self.states)))
        beta = np.ones_like(alpha[0])
        for m in reversed(range(len(alpha))):
            gamma = (alpha[m] * beta).sum(0)
            result[m] = gamma / gamma.sum()
            if m:
                beta = (emission[m] * beta) @ self.transition.T
                beta /= beta.max()
        return result


class World:
    """Scenarios with weights: a distribution over documents that can be drawn from and computed exactly."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self.scenarios = tuple(scenarios)
        self.frames: tuple[str, ...] = tuple(sorted({frame for s in scenarios for frame in s.frames}))
        self.words: frozenset[str] = frozenset(self.expected_counts()) - {MISSING}
        self._which = Choice.of({scenario: scenario.prior for scenario in scenarios})
        at = {frame: column for column, frame in enumerate(self.frames)}
        self._columns = {s.name: np.array([at[frame] for frame in s.frames]) for s in scenarios}

    @classmethod
    def parse(cls, text: str, source: str = "storyworld") -> World:
        """The world that a text describes; ``source`` is what an error calls the text."""
        return cls(_scenarios(text, source))

    @classmethod
    def embedded(cls) -> World:
        """The world of ``storyworld.txt``."""
        return _embedded()

    def document(self, rng: np.random.Generator, id: str) -> Document:
        """A document drawn from the world; its events carry their true frames."""
        return Document(id, self._which.draw(rng).tell(rng))

    def documents(self, count: int, seed: int) -> Iterator[Document]:
        """Documents named by scenario and number; number i depends on (seed, i) alone."""
        for number in range(count):
            rng = np.random.default_rng((seed, number))
            scenario = self._which.draw(rng)
            yield Document(f"{scenario.name}-{number:06d}", scenario.tell(rng))

    def log_prob(self, events: Sequence[Event]) -> float:
        """log p(words | their number) in nats, −∞ for the impossible; frames are not looked at."""
        return _log_sum([log_prob for log_prob, *_ in self._tellings(events)]) if events else 0.0

    def frame_posterior(self, events: Sequence[Event]) -> Array:
        """p(f_m | all the words), [M, F] in the order of ``frames``; NaN for an impossible document."""
        result = np.zeros((len(events), len(self.frames)))
        tellings = self._tellings(events) if events else []
        total = _log_sum([log_prob for log_prob, *_ in tellings])
        if not tellings:
            result[:] = np.nan
        for log_prob, scenario, alpha, emission in tellings:
            states = math.exp(log_prob - total) * scenario.smooth(alpha, emission)
            np.add.at(result.T, self._columns[scenario.name], states.T)
        return result

    def _tellings(self, events: Sequence[Event]) -> list[tuple[float, Scenario, Array, Array]]:
        """log p(s, w), s, and its forward quantities, for every scenario that can tell the events."""
        words = [event.words for event in events]
        able = [scenario for scenario in self.scenarios if scenario.possible(words)]
        told = [(scenario, *scenario.forward(words)) for scenario in able]
        return [(math.log(s.prior) + log_p, s, a, e) for s, log_p, a, e in told if log_p > -math.inf]

    def expected_counts(self) -> dict[str, float]:
        """The expected number of occurrences of each word (and of the missing one) in one document."""
        counts: defaultdict[str, float] = defaultdict(float)
        for scenario in self.scenarios:
            rates = scenario.prior * (scenario.word_probs() @ scenario.visits()).sum(0)
            for word, row in scenario.index.items():
                if rates[row] > 0:
                    counts[word] += float(rates[row])
        return dict(counts)


def best_scores(world: World, documents: Iterable[Document]) -> dict[str, float]:
    """What the best possible model scores: perplexity per word, and accuracy of the likeliest frames."""
    log_prob, right, events, count = 0.0, 0, 0, 0
    for document in documents:
        log_prob += world.log_prob(document.events)
        guesses = world.frame_posterior(document.events).argmax(-1)
        right += sum(world.frames[g] == e.frame for g, e in zip(guesses, document.events, strict=True))
        events, count = events + len(document.events), count + 1
    words = len(SLOTS) * events
    return {
        "ppl": math.exp(-log_prob / words) if words and log_prob > -math.inf else math.inf,
        "frame_accuracy": right / events if events else math.nan,
        "words": words,
        "documents": count,
    }


def _log_sum(logs: Sequence[float]) -> float:
    """log Σ exp, −∞ of nothing."""
    top = max(logs, default=-math.inf)
    return top + math.log(sum(math.exp(log - top) for log in logs)) if top > -math.inf else top


@cache
def _embedded() -> World:
    text = resources.files("ssdvae.data").joinpath("storyworld.txt").read_text(encoding="utf-8")
    return World.parse(text, "storyworld.txt")


def _join(script: Script, coda: Script | None) -> tuple[Choice[int], list[Step], list[Choice[int]]]:
    """Start, states and transitions of a script that passes to the coda where it has no more to tell.

    Only steps that can be reached become states.
    """
    lead = "@" + next(iter(script.roles))
    numbers: dict[tuple[str, str], int] = {}  # (script or coda, frame) → state
    states: list[tuple[Script, Step]] = []

    def enter(part: Script, choice: Choice[str], after: str = "") -> Choice[int]:
        # No frame follows itself, so the coda opens with another frame than the one that led to it.
        frames = {frame: prob for frame, prob in choice.probs.items() if frame != after}
        for frame in frames:
            if numbers.setdefault((part.name, frame), len(states)) == len(states):
                step = part.steps[frame]
                slots = [
                    Choice({lead if w == LEAD else w: p for w, p in c.probs.items()}) for c in step.slots
                ]
                states.append((part, replace(step, slots=tuple(slots))))
        return Choice.of({numbers[part.name, frame]: prob for frame, prob in frames.items()})

    start = enter(script, script.start)
    then: list[Choice[int]] = []
    while len(then) < len(states):  # ``enter`` adds to them
        part, step = states[len(then)]
        if step.then is not None:
            then.append(enter(part, step.then))
        elif coda is not None:
            then.append(enter(coda, coda.start, step.frame))
    return start, [step for _, step in states], then


def _scenarios(text: str, source: str) -> list[Scenario]:
    """Read a text line by line, then check what one line alone cannot tell."""
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            reader.read(" ".join(line.partition("#")[0].split()), number)
        except Malformed as error:
            raise DataError(source, number, error.found, error.expected) from None
    if not reader.scripts:
        raise DataError(source, None, "no scenario", "a line such as 'scenario trial'")
    coda = reader.coda
    for script in [*reader.scripts, *([coda] if coda else [])]:
        for number, found, expected in _faults(script, coda):
            raise DataError(source, number, found, expected)
    total = sum(script.weight for script in reader.scripts)
    scenarios = [Scenario(script, coda, script.weight / total) for script in reader.scripts]
    reached = {step.line for scenario in scenarios for step in scenario.states}
    for script in reader.scripts:
        for step in script.steps.values():
            if step.line not in reached:
                raise DataError(
                    source, step.line, f"no way to {step.frame}", "a start or a step that leads to it"
                )
    return scenarios


def _faults(script: Script, coda: Script | None) -> Iterator[tuple[int, str, str]]:
    """What is wrong with a script that was read: line, found, expected."""
    if not script.start.probs:
        yield script.line, f"no start in {script.name!r}", "a line such as 'start Arrest*2 Trial'"
    if not script.roles and script is not coda:
        yield script.line, f"no role in {script.name!r}", "at least one; the first is its lead"
    named = [
        (script.line, script.start),
        *((step.line, step.then) for step in script.steps.values() if step.then),
    ]
    for line, choice in named:
        for frame in choice.probs.keys() - script.steps.keys():
            yield line, f"the frame {frame!r}", f"a frame that has a step in {script.name!r}"
    for step in script.steps.values():
        if step.then is None and not (coda and coda.start.probs.keys() - {step.frame}):
            yield step.line, f"nothing after {step.frame}", "frames that follow, or a coda to pass to"


class _Reader:
    """What has been read so far; a name is declared above its use, except that of a frame to come next."""

    def __init__(self) -> None:
        self.pools: dict[str, Pool] = {}
        self.verbs: dict[str, Choice[str]] = {}
        self.scripts: list[Script] = []
        self.coda: Script | None = None
        self.now: Script | None = None  # the scenario or coda whose lines these are

    def read(self, line: str, number: int) -> None:
        """One line, without comment and with single spaces."""
        keyword, _, rest = line.partition(" ")
        left, _, right = (part.strip() for part in rest.partition("="))
        if "|" in line:
            self._step(line, number)
        elif keyword == "pool":
            name, *pronouns = [_word(token) for token in left.split()] or [""]
            if len(pronouns) not in (0, 2):
                raise Malformed(f"the pronouns {shorten(pronouns)}", "two, for subject and object, or none")
            self.pools[_new(name, self.pools)] = Pool(_choice(right), tuple(pronouns))
        elif keyword == "frame":
            self.verbs[_new(left, self.verbs)] = _choice(right)
        elif keyword == "scenario":
            ((name, weight),) = list(_weights(rest, at_most=1).items())
            self.now = Script(_new(name, [script.name for script in self.scripts]), weight, number)
            self.scripts.append(self.now)
        elif line == "coda":
            _new(line, [self.coda.name] if self.coda else [])
            self.now = self.coda = Script("(coda)", 1.0, number)
        elif keyword == "role":
            pool, _, nouns = (part.strip() for part in right.partition(":"))
            if self.now is self.coda:
                raise Malformed("a role in the coda", f"none: its one role is {LEAD}")
            if pool not in self.pools:
                raise Malformed(f"the pool {pool!r}", f"one declared above: {', '.join(self.pools)}")
            self._script.roles[_new(left, ["lead", *self._script.roles])] = Role(
                self.pools[pool], _choice(nouns)
            )
        elif keyword == "start":
            _new(keyword, [keyword] if self._script.start.probs else [])
            self._script.start = _choice(rest)
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
        frame = _new(name, script.steps)
        if not verbs and frame not in self.verbs:
            raise Malformed(
                f"no verbs for the frame {frame!r}", "a line 'frame … = …' above, or verbs after its name"
            )
        roles = [LEAD] if script is self.coda else ["@" + role for role in script.roles]
        slots = (
            _choice(verbs) if verbs else self.verbs[frame],
            _choice(subj, ["-", *roles]),
            _choice(obj, ["-", *roles]),
            _choice(mod, ["-"]),
        )
        after = _choice(then) if then else None
        if after and frame in after.probs:
            raise Malformed(f"{frame} after itself", "another frame")
        script.steps[frame] = Step(number, frame, slots, after)


def _word(token: str, signs: Collection[str] = ()) -> str:
    """A plain word, or one of the signs: ``@role`` and, for the missing word, ``-``."""
    if token in signs:
        return MISSING if token == "-" else token
    if not token or token in ("-", MISSING) or set(token) & set("@*=:|"):
        raise Malformed(shorten(token), f"a word{''.join(' or ' + sign for sign in signs)}")
    return token


def _weights(text: str, signs: Collection[str] = (), at_most: int | None = None) -> dict[str, float]:
    """``word word*2``: words, each once, with their weights."""
    weights: dict[str, float] = {}
    for token in text.split():
        name, star, number = token.partition("*")
        word = _new(name, weights, signs)
        try:
            weights[word] = float(number) if star else 1.0
        except ValueError:
            weights[word] = math.nan
        if not 1e-6 <= weights[word] <= 1e6:
            raise Malformed(f"the weight {number!r}", "a number from 0.000001 to 1000000")
    if not weights or (at_most and len(weights) > at_most):
        raise Malformed(f"{len(weights)} words", "one" if at_most else "one or more")
    return weights


def _choice(text: str, signs: Collection[str] = ()) -> Choice[str]:
    return Choice.of(_weights(text, signs))


def _new(token: str, known: Collection[str], signs: Collection[str] = ()) -> str:
    """A word that is not among those known."""
    word = _word(token, signs)
    if word in known:
        raise Malformed(f"{token!r} again", "each name once")
    return word
