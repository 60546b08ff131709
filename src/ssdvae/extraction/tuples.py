"""The one definition of an event: a verb of a dependency tree, and what fills its slots.

docs/extraction.md explains every rule with an example. ``verbs.py`` says which verbs are events, ``nouns.py``
which word stands for a phrase, and ``english.py`` has the words that rules know by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ssdvae.extraction import english
from ssdvae.extraction.nouns import REACHED, antecedent, asks, content, is_one_of
from ssdvae.extraction.tree import NO_HEAD, Tree
from ssdvae.extraction.verbs import (
    is_half_modal,
    is_infinitive,
    is_main_verb,
    is_negated,
    is_passive,
    is_verb,
    particles,
)


@dataclass(frozen=True, slots=True)
class Slots:
    """The places of an event's words in their sentence."""

    verb: int
    particles: tuple[int, ...] = ()
    subj: int | None = None
    obj: int | None = None
    mod: tuple[int, ...] = ()
    negated: bool = False


def events(tree: Tree) -> Iterator[Slots]:
    """The events of a sentence, in its order."""
    for place in range(len(tree)):
        if is_main_verb(tree, place):
            obj, mod = object_of(tree, place)
            yield Slots(
                verb=place,
                particles=particles(tree, place),
                subj=content(tree, subject_of(tree, place), place),
                obj=content(tree, obj, place),
                mod=mod,
                negated=is_negated(tree, place),
            )


# Subjects.


def subject_of(tree: Tree, place: int, seen: frozenset[int] = frozenset()) -> int | None:
    """The subject, active or passive: a word's own, or the one that it shares with the clause above."""
    if place in seen:
        return None
    for child in tree.children(place, "nsubj", "csubj"):
        # "The trouble is that he left": the trouble does not leave. "It helps that he left" has no doer.
        outer = tree[child].relation.endswith(":outer")
        if not outer and (tree[child].base == "nsubj" or child < place):
            return antecedent(tree, child, place)
    token, head, infinitive = tree[place], tree[place].head, is_infinitive(tree, place)
    if head == NO_HEAD:
        return None
    seen = seen | {place}
    # Stanford and ClearNLP put a predicate under "be", which has its subject.
    if token.base in ("conj", "acomp", "attr", "oprd"):
        # "… and all she wants is to leave" is a predicate, and shares nothing.
        return None if infinitive and tree.children(place, "cop") else subject_of(tree, head, seen)
    if token.base == "xcomp" or (token.base in ("ccomp", "advcl") and infinitive):
        return _controller(tree, place, seen)
    if token.base == "advcl":
        # "Watching it, she …", "while waiting, she …"; but "as expected", "longer than promised".
        marks = {tree.lower(c) for c in tree.children(place, "mark")}
        # "It was built using wood": who used it also built it, and is not named.
        means = is_passive(tree, head) and ("by" in marks or tree.lower(place) == "using")
        return subject_of(tree, head, seen) if marks <= english.PARTICIPLE_MARKS and not means else None
    if token.base == "acl":
        if infinitive or (token.relation == "acl" and is_one_of(tree, head, english.SPENT)):
            return _subject_at_noun(tree, place, seen)
        # "the man wounded", "a company making cars"; but a time for leaving does not leave.
        return None if tree.children(place, "mark") else head
    # "the man I think left"
    return _relative_noun(tree, place, seen) if token.base == "ccomp" else None


def _controller(tree: Tree, place: int, seen: frozenset[int]) -> int | None:
    """Who does what an infinitive or another open complement says."""
    head, purpose = tree[place].head, tree[place].base == "advcl"
    if is_one_of(tree, head, english.TOUGH) or (
        is_one_of(tree, head, english.NO_CONTROL) and not is_infinitive(tree, place)
    ):
        return None
    objects = [] if purpose else tree.children(head, "obj", "iobj")
    if is_half_modal(tree, head):
        # "what she had to do": what is no doer; "let's go": 's is one.
        objects = [child for child in objects if child > head]
    if objects and not is_one_of(tree, head, english.SUBJECT_CONTROL):
        return antecedent(tree, objects[0], head)
    # "A meeting was held to discuss it": the meeting discusses nothing.
    return None if purpose and is_passive(tree, head) else subject_of(tree, head, seen)


def _subject_at_noun(tree: Tree, place: int, seen: frozenset[int]) -> int | None:
    """Who does what is said at a noun: "she has a day to do it", "she gave him a day to do it"."""
    noun = tree[place].head
    words = {tree.lower(c) for c in (noun, *tree.children(noun, "amod", "advmod", "nummod"))}
    first = words & english.FIRST and not is_one_of(tree, noun, english.COMPLEMENT_NOUNS)
    if first or words & english.SOMEONE:
        return noun
    # "a day of rest, a chance to leave"
    noun = next((above for above in tree.upwards(noun) if tree[above].base != "appos"), noun)
    verb = tree[noun].head
    if tree[noun].base != "obj" or verb == NO_HEAD:
        return None
    for receiver in tree.children(verb, "iobj"):
        return antecedent(tree, receiver, verb)
    return subject_of(tree, verb, seen)


# Objects.


def object_of(tree: Tree, place: int) -> tuple[int | None, tuple[int, ...]]:
    """The direct object; without one, the noun of a preposition, and that preposition as the modifier."""
    for child in tree.children(place, "obj"):
        # "What did he vote for?"
        stranded = _stranded(tree, place) if child < place and asks(tree, child) else ()
        return antecedent(tree, child, place), stranded
    missing = _missing_object(tree, place)
    if missing is not None:
        return missing, _stranded(tree, place)
    for child in tree.children(place, "iobj"):
        return antecedent(tree, child, place), ()
    nouns = sorted(_with_prepositions(tree, place))
    agents = [(noun, words) for noun, words in nouns if _is_agent(tree, noun, words, place)]
    # "In May he left" is about the whole sentence; "in which he lived" had to go before the verb.
    others = [(noun, words) for noun, words in nouns if noun > place or asks(tree, noun)]
    for noun, words in (*agents, *others):
        return antecedent(tree, noun, place), words
    # "They bought and sold cars": what follows both is shared.
    head = tree[place].head
    if tree[place].base == "conj" and head != NO_HEAD:
        for child in tree.children(head, "obj"):
            if child > place:
                return child, ()
    return None, ()


def _with_prepositions(tree: Tree, place: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Nouns with the words of their preposition, which may be several: "because of", "out of"."""
    for above in (place, *particles(tree, place)):
        # UD 1 says nmod where UD 2 says obl. "Back to Rome" may hang on "back".
        for noun in tree.children(above, "obl", "nmod"):
            words: list[int] = []
            for case in tree.children(noun, "case"):
                if not words or case == words[-1] + 1:
                    words += [case, *tree.children(case, "fixed")]
            preposition = "_".join(tree.lower(word) for word in words)
            if words and preposition not in english.ADJUNCT_PREPOSITIONS:
                yield noun, tuple(words)


def _is_agent(tree: Tree, noun: int, preposition: tuple[int, ...], verb: int) -> bool:
    """Whether this is who did it: "captured in May by rebels"."""
    by = tree.lower(preposition[0]) == "by"
    return tree[noun].relation == "obl:agent" or (by and is_passive(tree, verb))


def _stranded(tree: Tree, place: int) -> tuple[int, ...]:
    """A preposition whose noun is elsewhere: "the house he lived in"."""
    for child in tree.children(place, "obl", "prep"):
        if child > place and tree[child].pos in ("ADP", "IN", "TO"):
            return (child,)
    return ()


def _missing_object(tree: Tree, place: int) -> int | None:
    """The noun that a clause is about and that its verb lacks: "data you used", "a thing I want to do"."""
    for child in tree.children(place, "xcomp", "ccomp"):
        # The verb below lacks it instead.
        if tree[child].base == "ccomp" or (is_verb(tree, child) and not tree.children(child, "obj")):
            return None
    noun = _relative_noun(tree, place)
    return None if noun == subject_of(tree, place) else noun


def _relative_noun(tree: Tree, place: int, seen: frozenset[int] = frozenset()) -> int | None:
    """The noun of a relative clause or an infinitive that this verb lacks, where no pronoun stands for it."""
    clause = place
    for clause in tree.upwards(place):
        if tree[clause].base not in REACHED:
            break
        # "a chance to know what he did": what he did is a clause of its own.
        if any(c < clause and asks(tree, c) for c in tree.children(clause, "nsubj", "obj", "obl", "advmod")):
            return None
    noun, infinitive = tree[clause].head, is_infinitive(tree, clause)
    if tree[clause].base != "acl" or not 0 <= noun < clause:
        return None
    if not infinitive and tree[clause].relation != "acl:relcl":
        return None
    between = (word for word in range(noun + 1, clause) if tree.lower(word) in english.RELATIVE_WORDS)
    if any(tree[word].base != "mark" for word in between) or subject_of(tree, clause, seen) == noun:
        return None
    if infinitive and is_one_of(tree, noun, english.TOUGH):
        return None
    if _stranded(tree, place):
        return noun
    # "the story they were told", but "the day they were killed"
    full = is_passive(tree, place) and tree.lower(place) not in english.GIVEN
    others = english.COMPLEMENT_NOUNS if infinitive else english.ADJUNCT_NOUNS
    return None if full or is_one_of(tree, noun, others) else noun
