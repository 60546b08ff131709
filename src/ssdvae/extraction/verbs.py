"""Verbs in a dependency tree: which of them are events, and how they are meant."""

from __future__ import annotations

from ssdvae.extraction import english
from ssdvae.extraction.tree import NO_HEAD, Tree

# Verbs in these relations only help, modify or name: "may go", "retiring judges", "including them".
NOT_MAIN = frozenset(
    ("aux", "cop", "amod", "compound", "case", "mark", "fixed", "flat", "goeswith", "discourse", "reparandum")
)


def is_verb(tree: Tree, place: int) -> bool:
    return tree[place].pos == "VERB" or tree[place].pos.startswith("VB")


def is_main_verb(tree: Tree, place: int) -> bool:
    """A verb that says what happened: no auxiliary, modal, copula or other form of "be", no mere formula."""
    token = tree[place]
    if not is_verb(tree, place) or token.base in NOT_MAIN:
        return False
    word = tree.lower(place)
    if token.lemma.lower() == "be" or word in english.FORMS_OF_BE or is_half_modal(tree, place):
        return False
    if word in english.LIKE_PREPOSITIONS:
        # "depending on the weather", but "the weather permitting"
        return token.base != "advcl" or bool(tree.children(place, "nsubj"))
    # "Thank you for coming", but "I thank you", "to thank you".
    return word != "thank" or bool(tree.children(place, "nsubj", "aux", "mark")) or token.base == "xcomp"


def is_half_modal(tree: Tree, place: int) -> bool:
    """A verb that only says how another is meant: "had to leave", "are supposed to know", "let's go"."""
    word = tree.lower(place)
    if word == "let":
        return place + 1 < len(tree) and tree.lower(place + 1) == "'s"
    return (
        word in english.HALF_MODALS
        and all(child < place for child in tree.children(place, "obj"))
        and any(is_infinitive(tree, c) for c in tree.children(place, "xcomp"))
    )


def is_infinitive(tree: Tree, place: int) -> bool:
    return any(tree.lower(c) in english.INFINITIVE for c in tree.children(place, "mark", "aux"))


def is_negated(tree: Tree, place: int) -> bool:
    """Denied itself, or by the half-modal above: "he did not have to leave"."""
    for above in tree.upwards(place):
        if any(tree.lower(c) in english.NEGATIONS for c in tree.children(above, "advmod")):
            return True
        head = tree[above].head
        if head == NO_HEAD or tree[above].base != "xcomp" or not is_half_modal(tree, head):
            break
    return False


def is_passive(tree: Tree, place: int) -> bool:
    """Marked as passive, or joined to such a verb, or a participle: "the city captured by rebels"."""
    for above in tree.upwards(place):
        marks = tree.children(above, "aux", "nsubj", "csubj")
        if any(tree[mark].relation.endswith(":pass") for mark in marks):
            return True
        if tree[above].base != "conj" or marks or tree.children(above, "obj"):
            return tree[above].relation == "acl" and not is_infinitive(tree, above)
    return False


def particles(tree: Tree, place: int) -> tuple[int, ...]:
    """The rest of a phrasal verb, also where it was parsed as an adverb: "came out"."""
    adverbs = (
        child
        for child in tree.children(place, "advmod")
        # "went back" and "went back to Rome", but not "called right away" or "met years back"
        if child > place
        and tree.lower(child) in english.PARTICLES
        and all(tree[below].base == "obl" and tree.children(below, "case") for below in tree.below(child))
    )
    return tuple(sorted((*tree.children(place, "compound:prt"), *adverbs)))
