"""Nouns in a dependency tree: the one word that stands for a phrase."""

from __future__ import annotations

from ssdvae.extraction import english
from ssdvae.extraction.tree import NO_HEAD, Tree
from ssdvae.extraction.verbs import is_verb

# Clauses through which a relative clause reaches down: "books that I think she wants to read".
REACHED = ("conj", "xcomp", "ccomp")


def antecedent(tree: Tree, word: int, verb: int) -> int:
    """The noun that a relative pronoun stands for; any other word stands for itself."""
    # After the verb, "that" points at something: "people who believe that".
    if word < verb and tree.lower(word) in english.RELATIVE:
        for above in tree.upwards(verb):
            if tree[above].relation == "acl:relcl":
                head = tree[above].head
                # "He left, which surprised us": no noun is meant.
                return word if head == NO_HEAD or is_verb(tree, head) else head
            if tree[above].base not in REACHED:
                break
    return word


def content(tree: Tree, place: int | None, verb: int) -> int | None:
    """The word that says what a phrase is: people of "a lot of people", Putin of "Vladimir Putin"."""
    seen = set[int]()
    while place is not None and place not in seen:
        seen.add(place)
        counted = _counted(tree, place)
        if counted is None:
            return _named(tree, place)
        place = antecedent(tree, counted, verb)
    return place


def _counted(tree: Tree, place: int) -> int | None:
    """What a quantity is a quantity of."""
    word = tree.lower(place)
    indefinite = word in english.INDEFINITE_QUANTITIES and not any(
        tree.lower(c) in english.DEFINITE for c in tree.children(place, "det")
    )
    if indefinite or word in english.QUANTITIES:
        for noun in tree.children(place, "nmod", "obl"):
            if any(tree.lower(c) == "of" for c in tree.children(noun, "case")):
                return noun
    return None


def _named(tree: Tree, place: int) -> int:
    """UD puts names under their first word, months under their day and prices under their currency.

    Other schools have the last word, the month and the price above, and so has an event.
    """
    tag = tree[place].pos
    if tag in ("SYM", "$"):
        return next(iter(tree.children(place, "nummod")), place)
    if tag in ("NUM", "CD"):
        months = (c for c in tree.children(place, "nmod:unmarked", "nmod:tmod") if tree[c].pos == "PROPN")
        return next(months, place)
    names = [c for c in tree.children(place, "flat") if tree[c].pos in ("PROPN", "NNP", "NNPS")]
    return names[-1] if names else place


def asks(tree: Tree, place: int) -> bool:
    """Whether this had to go to the front of its clause: "which song", "whose book", "to whom"."""
    words = (place, *tree.children(place, "det", "nmod:poss", "poss"))
    return any(tree.lower(word) in english.QUESTIONS for word in words)


def is_one_of(tree: Tree, place: int, words: frozenset[str]) -> bool:
    """Whether a word or its lemma is among these."""
    return tree.lower(place) in words or tree[place].lemma.lower() in words
