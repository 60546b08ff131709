"""Storyworld: an embedded corpus whose exact distribution is known.

A model of it can be compared with the best possible one. The generative process, with the content of
``storyworld.txt`` (which explains its format; ``parser.py`` reads it):

    scenario        s ~ weights
    filler          c_r ~ pool(r), for each role r of s, once per document and independently
    state           z_1 ~ start(s),  z_m ~ transition(s, z_{m-1})
    event m         verb, subj, obj, mod, independent given (s, z_m, c):
      verb          ~ p(verb | frame(z_m)), or as the scenario has it
      subj, obj     ~ p(· | s, z_m): plain words, the missing word, or the mention of a role
      mod           ~ p(mod | s, z_m)
    mention of r    its filler's name (.2), a noun of the role (.45) or a pronoun (.35)

A state is one step of the scenario or of the coda, and has one frame; a scenario has a frame at most once.
The coda, a shared chain of general frames, follows where a scenario ends. So the chain never ends: the number
of events M is uniform on 4 … 8 and independent of everything else, and the first k events of a document are
distributed as a document of length k.

The probability of the words is a sum over scenarios, fillers and chains,

    p(w) = Σ_s p(s) Σ_c Π_r p(c_r) Σ_z Π_m p(z_m | z_{m-1}, s) p(w_m | z_m, c, s).

The sum over chains is the forward algorithm. In the sum over fillers, all names of a pool that do not occur
in the document give each of its words the same probability, so they are one candidate with their total mass.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ssdvae.data.events import MISSING, SLOTS, Document, Event, Words
from ssdvae.data.items import ClozeItem, Script, credits
from ssdvae.storyworld.parser import Categorical, Plot, Role, parse_plots

Array = NDArray[np.float64]

LENGTHS = range(4, 9)
"""The numbers of events of a document, all equally likely."""

MENTION_PROBS = {"name": 0.2, "noun": 0.45, "pronoun": 0.35}
"""Probabilities of the kinds of mention of a role; without a pronoun, the other two in proportion."""

SUBJ, OBJ, MOD = (SLOTS.index(name) for name in ("subj", "obj", "mod"))


class Scenario:
    """The distribution of a plot: sampling, and exact probabilities."""

    def __init__(self, plot: Plot) -> None:
        self.name, self.prior, self.roles = plot.name, plot.prior, plot.roles
        self.start, self.states, self.then = plot.start, plot.states, plot.then
        self.frames = [step.frame for step in self.states]
        self._name_prob = {name: _name_prob(role) for name, role in self.roles.items()}
        self._other_mentions = {
            (name, slot): _other_mentions(role, slot)
            for name, role in self.roles.items()
            for slot in (SUBJ, OBJ)
        }
        self._tabulate()

    def sample_events(self, rng: np.random.Generator) -> tuple[Event, ...]:
        """Return the events of a sampled document."""
        length = LENGTHS[int(len(LENGTHS) * rng.random())]
        fillers = {name: role.pool.names.draw(rng) for name, role in self.roles.items()}
        state, events = self.start.draw(rng), []
        for _ in range(length):
            step = self.states[state]
            drawn = [choice.draw(rng) for choice in step.slots]
            words = [self._mention(word, slot, fillers, rng) for slot, word in enumerate(drawn)]
            events.append(Event.of_words(words, step.frame))
            state = self.then[state].draw(rng)
        return tuple(events)

    def _mention(self, word: str, slot: int, fillers: Mapping[str, str], rng: np.random.Generator) -> str:
        if not word.startswith("@"):
            return word
        role = word[1:]
        by_name = rng.random() < self._name_prob[role]
        return fillers[role] if by_name else self._other_mentions[role, slot].draw(rng)

    def _tabulate(self) -> None:
        """Set up the arrays of the process, with V words (row 0 for unknown ones), S states and R roles:

        plain[slot]     [V, S]  p(the word itself | state)
        mention[slot]   [S, R]  p(a mention of the role | state)
        unnamed[slot]   [V, R]  p(word, not by name | mention of the role)
        pool            [V, R]  p(the role's filler has this name)
        named           [R]     p(by name | mention of the role)
        first           [S]     p(the first state)
        transition      [S, S]  p(the next state | state)
        able[slot]      word → the set of states, as bits, that can emit it there
        """
        words = [w for step in self.states for choice in step.slots for w in choice.probs if w[0] != "@"]
        for name, role in self.roles.items():
            words += role.pool.names.probs
            words += [word for slot in (SUBJ, OBJ) for word in self._other_mentions[name, slot].probs]
        self.index = {word: row for row, word in enumerate(dict.fromkeys(words), start=1)}
        V, S, R = len(self.index) + 1, len(self.states), len(self.roles)
        number = {name: r for r, name in enumerate(self.roles)}

        self.first, self.transition = np.zeros(S), np.zeros((S, S))
        for state, prob in self.start.probs.items():
            self.first[state] = prob
        for s, then in enumerate(self.then):
            for state, prob in then.probs.items():
                self.transition[s, state] = prob

        self.plain, self.mention = np.zeros((len(SLOTS), V, S)), np.zeros((len(SLOTS), S, R))
        for s, step in enumerate(self.states):
            for slot, choice in enumerate(step.slots):
                for word, prob in choice.probs.items():
                    if word[0] == "@":
                        self.mention[slot, s, number[word[1:]]] = prob
                    else:
                        self.plain[slot, self.index[word], s] = prob

        self.named = np.array(list(self._name_prob.values()))
        self.pool, self.unnamed = np.zeros((V, R)), np.zeros((len(SLOTS), V, R))
        for name, r in number.items():
            for word, prob in self.roles[name].pool.names.probs.items():
                self.pool[self.index[word], r] = prob
            for slot in (SUBJ, OBJ):
                for word, prob in self._other_mentions[name, slot].probs.items():
                    self.unnamed[slot, self.index[word], r] = (1 - self.named[r]) * prob

        likely = self.word_probs() > 0
        self.possible_states = [
            {word: sum(1 << int(s) for s in np.flatnonzero(can[row])) for word, row in self.index.items()}
            for can in likely
        ]

    def word_probs(self) -> Array:
        """Return p(word in slot | state) with the fillers summed out: [slots, V, S]."""
        said = self.unnamed + self.named * self.pool
        result: Array = self.plain + said @ self.mention.transpose(0, 2, 1)
        return result

    def visits(self) -> Array:
        """Return the expected number of events in each state, in a document of this scenario: [S]."""
        total, now = np.zeros_like(self.first), self.first
        for m in range(1, LENGTHS[-1] + 1):
            total = total + now * sum(length >= m for length in LENGTHS) / len(LENGTHS)
            now = now @ self.transition
        return total

    def possible(self, words: Sequence[Words]) -> bool:
        """Tell whether each event alone can come from some state, which quickly rules out most scenarios."""
        verbs, subjs, objs, mods = self.possible_states
        return all(
            verbs.get(verb, 0) & subjs.get(subj, 0) & objs.get(obj, 0) & mods.get(mod, 0)
            for verb, subj, obj, mod in words
        )

    def emissions(self, words: Sequence[Words]) -> tuple[Array, Array]:
        """Return p(c), [H], and p(w_m | z_m, c), [M, H, S], for all H combinations of candidate fillers."""
        rows = np.array([[self.index.get(word, 0) for word in event] for event in words])  # [M, slots]
        heard = np.unique(rows[:, (SUBJ, OBJ)])
        candidates = []
        for pool in self.pool.T:
            names = heard[pool[heard] > 0]
            # The last candidate is every other name at once; −1 is the row of no word.
            others = np.delete(pool, names).sum()
            candidates.append((np.append(names, -1), np.append(pool[names], others)))
        grid = np.indices([len(names) for names, _ in candidates]).reshape(len(candidates), -1)  # [R, H]
        chosen = [(names[at], mass[at]) for (names, mass), at in zip(candidates, grid, strict=True)]
        fillers = np.stack([names for names, _ in chosen], axis=1)  # [H, R]
        prior: Array = np.prod([mass for _, mass in chosen], axis=0)
        result: Array = (self.plain[0, rows[:, 0]] * self.plain[MOD, rows[:, MOD]])[:, None]
        for slot in (SUBJ, OBJ):
            row = rows[:, slot]
            is_name = fillers == row[:, None, None]  # [M, H, R]
            said = self.unnamed[slot, row][:, None] + self.named * is_name
            result = result * (self.plain[slot, row][:, None] + said @ self.mention[slot].T)
        return prior, result

    def forward(self, words: Sequence[Words], unseen: int = 0) -> tuple[float, Array, Array]:
        """Return log p(w | s); p(z_m, c | w_1 … w_m, s), [M, H, S]; and the emissions.

        ``unseen`` events before the words are unobserved: their words sum to one.
        """
        prior, emission = self.emissions(words)
        alpha, log_prob = np.zeros_like(emission), 0.0
        ahead = prior[:, None] * (self.first @ np.linalg.matrix_power(self.transition, unseen))
        for m in range(len(words)):
            alpha[m] = ahead * emission[m]
            total = float(alpha[m].sum())
            if total <= 0:
                return -math.inf, alpha, emission
            alpha[m] /= total  # against underflow in long documents
            log_prob += math.log(total)
            ahead = alpha[m] @ self.transition
        return log_prob, alpha, emission

    def smooth(self, alpha: Array, emission: Array) -> Array:
        """Return p(z_m | w, s), [M, S], from the results of ``forward``."""
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
    """A mixture of scenarios: a distribution over documents that can be sampled and computed exactly."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self.scenarios = tuple(scenarios)
        self.frames: tuple[str, ...] = tuple(sorted({frame for s in scenarios for frame in s.frames}))
        self.words: frozenset[str] = frozenset(self.expected_counts()) - {MISSING}
        self._scenario_prior = Categorical.of({scenario: scenario.prior for scenario in scenarios})
        at = {frame: column for column, frame in enumerate(self.frames)}
        self._columns = {s.name: np.array([at[frame] for frame in s.frames]) for s in scenarios}

    @classmethod
    def parse(cls, text: str) -> World:
        """Return the world that a text describes."""
        return cls([Scenario(plot) for plot in parse_plots(text)])

    @classmethod
    def embedded(cls) -> World:
        """Return the world of ``storyworld.txt``."""
        return _embedded()

    def document(self, rng: np.random.Generator, id: str) -> Document:
        """Return a sampled document; its events have their true frames."""
        return Document(id, self._scenario_prior.draw(rng).sample_events(rng))

    def documents(self, count: int, seed: int) -> Iterator[Document]:
        """Yield documents named by scenario and number; number i depends on (seed, i) alone."""
        for number in range(count):
            rng = np.random.default_rng((seed, number))
            scenario = self._scenario_prior.draw(rng)
            yield Document(f"{scenario.name}-{number:06d}", scenario.sample_events(rng))

    def log_prob(self, events: Sequence[Event], unseen: int = 0) -> float:
        """Return log p(words | number of events) in nats, −∞ for the impossible; frames are ignored.

        With ``unseen``, so many unobserved events come before.
        """
        return (
            _log_sum([log_prob for log_prob, *_ in self._scenario_forwards(events, unseen)])
            if events
            else 0.0
        )

    def frame_posterior(self, events: Sequence[Event]) -> Array:
        """Return p(f_m | all words), [M, F] in the order of ``frames``; NaN for an impossible document."""
        result = np.zeros((len(events), len(self.frames)))
        possible = self._scenario_forwards(events) if events else []
        total = _log_sum([log_prob for log_prob, *_ in possible])
        if not possible:
            result[:] = np.nan
        for log_prob, scenario, alpha, emission in possible:
            states = math.exp(log_prob - total) * scenario.smooth(alpha, emission)
            np.add.at(result.T, self._columns[scenario.name], states.T)
        return result

    def _scenario_forwards(
        self, events: Sequence[Event], unseen: int = 0
    ) -> list[tuple[float, Scenario, Array, Array]]:
        """Return log p(s, w), s, and its forward quantities, for each scenario s that allows these events."""
        words = [event.padded(len(SLOTS)) for event in events]
        possible = [scenario for scenario in self.scenarios if scenario.possible(words)]
        passes = [(scenario, *scenario.forward(words, unseen)) for scenario in possible]
        return [(math.log(s.prior) + log_p, s, a, e) for s, log_p, a, e in passes if log_p > -math.inf]

    def expected_counts(self) -> dict[str, float]:
        """Return the expected number of occurrences of each word (and of the missing one) in a document."""
        counts: defaultdict[str, float] = defaultdict(float)
        for scenario in self.scenarios:
            rates = scenario.prior * (scenario.word_probs() @ scenario.visits()).sum(0)
            for word, row in scenario.index.items():
                if rates[row] > 0:
                    counts[word] += float(rates[row])
        return dict(counts)


def _log_sum(logs: Sequence[float]) -> float:
    """Return log Σ exp; −∞ of nothing."""
    top = max(logs, default=-math.inf)
    return top + math.log(sum(math.exp(log - top) for log in logs)) if top > -math.inf else top


@cache
def _embedded() -> World:
    text = resources.files("ssdvae.storyworld").joinpath("storyworld.txt").read_text(encoding="utf-8")
    return World.parse(text)


def _name_prob(role: Role) -> float:
    """Return the probability that a mention of the role is by name."""
    return MENTION_PROBS["name"] / (
        sum(MENTION_PROBS.values()) - (0 if role.pool.pronouns else MENTION_PROBS["pronoun"])
    )


def _other_mentions(role: Role, slot: int) -> Categorical[str]:
    """Return the distribution of mentions of the role in a slot that are not by name."""
    weights = {noun: MENTION_PROBS["noun"] * prob for noun, prob in role.nouns.probs.items()}
    if role.pool.pronouns:
        pronoun = role.pool.pronouns[slot - SUBJ]
        weights[pronoun] = weights.get(pronoun, 0) + MENTION_PROBS["pronoun"]
    return Categorical.of(weights)


# The scores of the exact model: the best that any model can reach.

ROUNDING = 1e-9
"""The largest difference of equal log-probabilities that were summed in another order."""


def best_scores(world: World, documents: Iterable[Document]) -> dict[str, float]:
    """Return the perplexity per word of the exact model, and the accuracy of its likeliest frames."""
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


def best_cloze(world: World, items: Sequence[ClozeItem]) -> dict[str, float]:
    """Return the accuracy of the exact model of the world on inverse narrative cloze.

    With the seed e and a continuation c, the option with the highest score is chosen:

        nll     log p(c | e)
        pmi     log p(c | e) − log p(c), where c comes after one unobserved event

    Distractors are continuations of other documents, so they come from p(c), and the probability that an
    option is the true one is proportional to p(c | e) / p(c): on average no score is better than pmi.

    ``impossible`` counts items whose truth has probability 0, as when `prepare` left out an event.
    """
    if not items:
        return {"nll": math.nan, "pmi": math.nan, "items": 0, "impossible": 0}
    scores: dict[str, list[list[float]]] = {"nll": [], "pmi": []}
    for item in items:
        # log p(e, c) is enough: log p(e) is the same for all options.
        nll = [_log_prob(world, (item.seed, *option)) for option in item.options]
        pmi = [
            # A sequel that cannot follow the seed may be impossible by itself too: −∞, not NaN.
            log_p - _log_prob(world, option, unseen=1) if log_p > -math.inf else log_p
            for log_p, option in zip(nll, item.options, strict=True)
        ]
        scores["nll"].append(nll)
        scores["pmi"].append(pmi)
    shares = {name: credits(np.array(rows), ROUNDING).mean() for name, rows in scores.items()}
    return {
        **{name: float(share) for name, share in shares.items()},
        "items": len(items),
        "impossible": sum(nll[0] == -math.inf for nll in scores["nll"]),
    }


def _log_prob(world: World, sequel: Script, unseen: int = 0) -> float:
    return world.log_prob([Event.of_words(words) for words in sequel], unseen)
