"""Out-of-vocabulary (OOV) words of events, and the known words that are read in their place.

A head is known if some training event has it; an argument is known if it is in the vocabulary. For a word of
a text that is not, the first of these that is known in its slot is read:

    the lemma of the event · a form with the same stem · the nearest word by the vectors beside the model

Otherwise it is read as it is: as the unknown word, unless the vocabulary has it. Training and evaluation know
nothing of this, and the words of logs are never replaced: an unknown activity is a finding. There each slot
has its own words: a resource in the place of an activity is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ssdvae.data.events import HOLE, MISSING, SLOTS, Event, Words, folded
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.extraction.english import regular_stems
from ssdvae.models.base import Model

STEM = 3
"""Letters of a stem that two forms share, at least."""

OFTEN = 10
"""Training events in which a word is the head, at least, for the head to be looked for there."""

SELDOM = 100
"""Events with a word as an argument for each one with it as the head, at least, for that to be an error."""

CACHED = 2**16
"""Unknown words that are remembered, at most."""

Substitutes = dict[str, str | None]
"""Words that a model does not know, each with the one that is read in its place, None if there is none."""


class ReadEvent(NamedTuple):
    """An event as a model reads it: one word per slot, and the words that it does not know."""

    words: Words
    unknown: Substitutes
    head_known: bool
    has_evidence: bool  # of the head that is read


class WordLookup:
    """The known words of a model, slot by slot."""

    def __init__(self, model: Model) -> None:
        self.vocabulary, self.vectors, self.width = model.vocabulary, model.vectors, len(model.slots)
        self.slots, self.text = model.slots, model.slots == SLOTS and model.columns is None
        self._found: dict[tuple[bool, str, str | None], str | None] = {}

    @cached_property
    def heads(self) -> dict[str, int]:
        """The known heads with their training events; all words, if these were not counted."""
        slots, words = self.vocabulary.slot_counts, self.vocabulary.names
        if slots is None:
            return dict(zip(words, self.vocabulary.counts, strict=True))
        return {word: count for word, count in zip(words, slots[0].tolist(), strict=True) if count}

    @cached_property
    def arguments(self) -> dict[str, int]:
        """All words, with the number of times that they are an argument in training, if it was counted."""
        slots, words = self.vocabulary.slot_counts, self.vocabulary.names
        counts = self.vocabulary.counts if slots is None else slots[1:].sum(0).tolist()
        return dict(zip(words, counts, strict=True))

    @cached_property
    def by_slot(self) -> list[Mapping[str, int]]:
        """The known words of each slot. In a text all arguments have the same; in a log each has its own."""
        counts = self.vocabulary.slot_counts
        if self.text or counts is None:
            return [self.heads, *[self.arguments] * (self.width - 1)]
        names = self.vocabulary.names
        return [
            {w: n for w, n in zip(names, row, strict=True) if n or w == MISSING} for row in counts.tolist()
        ]

    def find_names(self, text: str) -> Event | None:
        """Return the event of a typed text whose words have blanks: of each slot the longest known name.

        None if there is no such event, or no word of the log has blanks.
        """
        if self.text or not self._longest:
            return None
        rest = text.replace(",", " , ").split()
        found: list[str] = []
        for names in self._names:
            rest = rest[1:] if found and rest[:1] == [","] else rest
            sizes = range(min(len(rest), self._longest), 0, -1)
            size = next((n for n in sizes if " ".join(rest[:n]).lower() in names), 0)
            if rest and rest[0] in ("-", "_") and found:
                found.append(MISSING)
                rest = rest[1:]
            elif size:
                found.append(names[" ".join(rest[:size]).lower()])
                rest = rest[size:]
            else:
                break
        return Event.of_words(found) if found and not rest else None

    @cached_property
    def _names(self) -> list[dict[str, str]]:
        """The known words of each slot as they are typed, in any case; the most frequent of several."""
        each = (sorted(known, key=lambda word: known[word]) for known in self.by_slot)
        return [
            {" ".join(w.replace(",", " , ").split()).lower(): w for w in words if w not in (MISSING, UNKNOWN)}
            for words in each
        ]

    @cached_property
    def _longest(self) -> int:
        """The number of words of the longest name; 0 if none has blanks."""
        most = max((len(name.split()) for names in self._names for name in names), default=0)
        return most if most > 1 else 0

    def read(self, event: Event, lowercase: bool | None = None) -> ReadEvent:
        """Return an event as the model reads it, in lower case if its words are, or if ``lowercase``."""
        words = event.padded(self.width)
        if self.vocabulary.lowercase if lowercase is None else lowercase:
            words = folded(words)
        known = [word in there for word, there in zip(words, self.by_slot, strict=True)]
        if all(known):
            return ReadEvent(words, {}, True, True)
        unknown = {
            word: self._substitute(word, slot == 0, None if slot else event.lemma)
            for slot, word in enumerate(words)
            if not known[slot] and word != HOLE
        }
        # A word may be an unknown head and a known argument.
        as_it_is = self.text or self.vocabulary.slot_counts is None
        read = tuple(
            w if k or w == HOLE else unknown.get(w) or (w if as_it_is else UNKNOWN)
            for w, k in zip(words, known, strict=True)
        )
        head_known = words[0] not in unknown or known[0]
        return ReadEvent(read, unknown, head_known, head_known or unknown[words[0]] is not None)

    def reordered(self, event: Event) -> Event | None:
        """Return the event with its first two words exchanged, if only then it begins with a head.

        As in ``police arrested suspect``: the first word hardly ever is a head, and the second usually is.
        """
        words = event.words
        if not self.text or self.vocabulary.slot_counts is None or not 3 <= len(words) <= self.width:
            return None
        first, second = folded(words[:2]) if self.vocabulary.lowercase else words[:2]
        count = self.heads.get(second, 0)
        heads, arguments = self.heads.get(first, 0), self.arguments.get(first, 0)
        if SELDOM * heads > arguments or count < max(OFTEN, self.arguments.get(second, 0)):
            return None
        return Event.of_words((words[1], words[0], *words[2:]))

    def _substitute(self, word: str, head: bool, lemma: str | None) -> str | None:
        if not self.text:
            return None
        key = head, word, lemma
        if key not in self._found:
            if len(self._found) >= CACHED:
                self._found.clear()
            stems = [lemma, word, *_stems(word)]
            index = self._head_stems if head else self._argument_stems
            same = (index[stem] for stem in stems if stem is not None and stem in index)
            self._found[key] = next(same, None) or self._nearest(word, head)
        return self._found[key]

    @cached_property
    def _head_stems(self) -> dict[str, str]:
        return _by_stem(self.heads)

    @cached_property
    def _argument_stems(self) -> dict[str, str]:
        return _by_stem(self.arguments)

    def stem(self, head: str) -> str:
        """Return the known head that this one is a form of, or itself: rob for ``robbing``."""
        return next((stem for stem in _stems(head) if stem in self.heads), head) if self.text else head

    def _nearest(self, word: str, head: bool) -> str | None:
        known = self.heads if head else self.arguments
        return None if self.vectors is None else self.vectors.nearest(word, known)


def _stems(form: str) -> Iterator[str]:
    """Yield possible stems of a form, with the particle if it has one: ``turned_back`` of turn_back."""
    verb, mark, particle = form.partition("_")
    return (f"{stem}{mark}{particle}" for stem in regular_stems(verb) if len(stem) >= STEM)


def _by_stem(words: dict[str, int]) -> dict[str, str]:
    """Return the most frequent form of each stem; a word that is a stem itself comes first."""
    found = {word: word for word in words}
    for word in sorted(words, key=lambda word: -words[word]):
        for stem in _stems(word):
            found.setdefault(stem, word)
    return found


_lookups: WeakKeyDictionary[Model, WordLookup] = WeakKeyDictionary()


def lookup(model: Model) -> WordLookup:
    """Return the known words of a model, found once."""
    if model not in _lookups:
        _lookups[model] = WordLookup(model)
    return _lookups[model]


def unknown_words(model: Model, events: Iterable[Event]) -> Substitutes:
    """Return the words of events that the model does not know, each once, and what is read instead."""
    return all_unknown(map(lookup(model).read, events))


def all_unknown(read: Iterable[ReadEvent]) -> Substitutes:
    """Return the unknown words of several events."""
    return {word: other for event in read for word, other in event.unknown.items()}


def heads_known(model: Model, events: Iterable[Event]) -> bool:
    """Tell whether the model has seen the heads of all these events."""
    known = lookup(model)
    return all(known.read(event).head_known for event in events)
