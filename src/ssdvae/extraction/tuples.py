"""The one definition of an event: which verbs of a dependency tree are events, and what fills their slots.

docs/extraction.md explains every rule with an example.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ssdvae.extraction.tree import NO_HEAD, Tree

# Verbs in these relations only help, modify or name: "may go", "retiring judges", "including them".
NOT_MAIN = frozenset(
    ("aux", "cop", "amod", "compound", "case", "mark", "fixed", "flat", "goeswith", "discourse", "reparandum")
)
# For parsers that give no lemmas.
FORMS_OF_BE = frozenset(("be", "am", "is", "are", "was", "were", "been", "being", "'s", "'m", "'re"))
RELATIVE = frozenset(("who", "whom", "which", "that"))
NEGATIONS = frozenset(("not", "n't", "never"))
# A verb with an object and an open complement whose doer is the subject nevertheless.
SUBJECT_CONTROL = frozenset(("promise",))


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
                particles=tuple(tree.children(place, "compound:prt")),
                subj=subject_of(tree, place),
                obj=obj,
                mod=mod,
                negated=any(_lower(tree, c) in NEGATIONS for c in tree.children(place, "advmod")),
            )


def is_main_verb(tree: Tree, place: int) -> bool:
    """A verb that says what happened: no auxiliary, modal, copula or other form of "be"."""
    token = tree[place]
    if not (token.pos == "VERB" or token.pos.startswith("VB")) or token.base in NOT_MAIN:
        return False
    return token.lemma.lower() != "be" and _lower(tree, place) not in FORMS_OF_BE


def subject_of(tree: Tree, place: int, seen: frozenset[int] = frozenset()) -> int | None:
    """The subject, active or passive: a word's own, or the one that it shares with the clause above."""
    if place in seen:
        return None
    for child in tree.children(place, "nsubj", "csubj"):
        # "The trouble is that he left": the trouble does not leave.
        if not tree[child].relation.endswith(":outer"):
            return antecedent(tree, child, place)
    token, head = tree[place], tree[place].head
    if head == NO_HEAD:
        return None
    above = seen | {place}
    if token.base == "conj":
        return subject_of(tree, head, above)
    if token.base == "xcomp":
        objects = tree.children(head, "obj", "iobj")
        if objects and tree[head].lemma.lower() not in SUBJECT_CONTROL:
            return antecedent(tree, objects[0], head)
        return subject_of(tree, head, above)
    # "the man wounded", "a company that makes cars"; but the plan to attack does not attack.
    if token.base == "acl" and not any(_lower(tree, c) == "to" for c in tree.children(place, "mark", "aux")):
        return head
    return None


def object_of(tree: Tree, place: int) -> tuple[int | None, tuple[int, ...]]:
    """The direct object; without one, the noun of a preposition, and that preposition as the modifier."""
    for child in (*tree.children(place, "obj"), *tree.children(place, "iobj")):
        return antecedent(tree, child, place), ()
    # UD 1 says nmod where UD 2 says obl.
    nouns = [(n, tree.children(n, "case")) for n in tree.children(place, "obl", "nmod")]
    nouns = [(noun, cases) for noun, cases in nouns if cases]
    agents = [(n, cases) for n, cases in nouns if _is_agent(tree, n, cases[0], place)]
    # "On Monday he moved to Beijing": what follows the verb is closer to it than what is put before.
    after = [(n, cases) for n, cases in nouns if n > place]
    for noun, cases in (*agents, *after, *nouns):
        return antecedent(tree, noun, place), (cases[0], *tree.children(cases[0], "fixed"))
    return None, ()


def _is_agent(tree: Tree, noun: int, case: int, verb: int) -> bool:
    """Whether this is who did it: "captured in May by rebels"."""
    return tree[noun].relation == "obl:agent" or (_lower(tree, case) == "by" and is_passive(tree, verb))


def is_passive(tree: Tree, place: int) -> bool:
    """Marked as passive, or joined to such a verb, or a participle: "the city captured by rebels"."""
    for above in tree.upwards(place):
        marks = tree.children(above, "aux", "nsubj", "csubj")
        if any(tree[mark].relation.endswith(":pass") for mark in marks):
            return True
        if tree[above].base != "conj" or marks:
            return tree[above].relation == "acl"
    return False


def antecedent(tree: Tree, word: int, verb: int) -> int:
    """The noun that a relative pronoun stands for; any other word stands for itself."""
    # After the verb, "that" points at something: "people who believe that".
    if word < verb and tree[word].form.lower() in RELATIVE:
        for above in tree.upwards(verb):
            if tree[above].relation == "acl:relcl":
                return tree[above].head if tree[above].head != NO_HEAD else word
            if tree[above].base not in ("conj", "xcomp", "ccomp"):
                break
    return word


def _lower(tree: Tree, place: int) -> str:
    return tree[place].form.lower().replace("’", "'")
