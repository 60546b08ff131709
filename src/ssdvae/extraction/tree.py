"""A dependency tree, whoever parsed it, in the labels of Universal Dependencies (UD).

Parsers of two schools are brought together here, so that nobody after this file need know which one it was:

UD (CoNLL-U files, most spaCy models)    moved ─obl→ Beijing ─case→ to
Stanford, ClearNLP (CoreNLP, English     moved ─prep→ to ─pobj→ Beijing
spaCy models, Concrete communications)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

NO_HEAD = -1

# Labels of the Stanford and ClearNLP schemes that UD calls otherwise. None of them is a label of UD with
# another meaning, so a tree that is UD already passes through unchanged.
UD_LABELS = {
    "ROOT": "root",
    "dobj": "obj",
    "nsubjpass": "nsubj:pass",
    "csubjpass": "csubj:pass",
    "auxpass": "aux:pass",
    "prt": "compound:prt",
    "relcl": "acl:relcl",
    "rcmod": "acl:relcl",
    "vmod": "acl",
    "partmod": "acl",
    "infmod": "acl",
    "dative": "iobj",
    "neg": "advmod",
}
PREPOSITIONS = ("prep", "agent", "dative")
NOUNS = ("NOUN", "PROPN", "PRON", "NN", "NNS", "NNP", "NNPS", "PRP")


class Token(NamedTuple):
    """A word of a sentence: its head is the place of another word, and its span is in the whole document.

    ``pos`` is a tag of UD or, from parsers that know no other, of the Penn Treebank.
    """

    form: str
    lemma: str
    pos: str
    head: int
    relation: str
    start: int
    end: int

    @property
    def base(self) -> str:
        """The relation without its subtype: ``obl`` for ``obl:agent``."""
        return self.relation.partition(":")[0]


class Tree:
    """One sentence. Nothing is taken for granted: a head may be missing, and heads may run in a circle."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self.tokens = _in_ud(list(tokens))
        self._lower = [token.form.lower().replace("’", "'") for token in self.tokens]
        self._bases = [token.base for token in self.tokens]
        self._children: list[list[int]] = [[] for _ in self.tokens]
        for place, token in enumerate(self.tokens):
            if token.head != NO_HEAD:
                self._children[token.head].append(place)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, place: int) -> Token:
        return self.tokens[place]

    def lower(self, place: int) -> str:
        """A word in lower case, with the apostrophe of typewriters."""
        return self._lower[place]

    def below(self, place: int) -> list[int]:
        """All words right under one, in order."""
        return self._children[place]

    def children(self, place: int, *relations: str) -> list[int]:
        """The words under one that are in these relations, named with or without a subtype; in order."""
        tokens, bases = self.tokens, self._bases
        return [c for c in self._children[place] if bases[c] in relations or tokens[c].relation in relations]

    def upwards(self, place: int) -> Iterator[int]:
        """A word, its head, the head of that, and so on; each at most once."""
        seen: set[int] = set()
        while place != NO_HEAD and place not in seen:
            seen.add(place)
            yield place
            place = self.tokens[place].head


def _in_ud(tokens: Sequence[Token]) -> list[Token]:
    """The same words with UD's labels and with prepositions under their nouns."""
    places = range(len(tokens))
    heads = [t.head if t.head in places and t.head != place else NO_HEAD for place, t in enumerate(tokens)]
    labels = [UD_LABELS.get(t.relation, t.relation) for t in tokens]
    new_heads = list(heads)
    for noun in places:
        if tokens[noun].relation not in ("pobj", "pcomp"):
            continue
        # "out of the house" is out ─prep→ of ─pobj→ house: all on the way up are prepositions of the noun.
        chain: list[int] = []
        above = heads[noun]
        while above != NO_HEAD and tokens[above].relation in PREPOSITIONS and above not in chain:
            chain.append(above)
            above = heads[above]
        if not chain:
            continue
        new_heads[noun] = above if above not in (noun, *chain) else NO_HEAD
        if tokens[noun].relation == "pcomp":
            # "before leaving, she …", "a time for leaving": before and for only mark what is a clause.
            at_noun = above != NO_HEAD and tokens[above].pos in NOUNS
            labels[noun], mark = "acl" if at_noun else "advcl", "mark"
        else:
            labels[noun], mark = "obl:agent" if tokens[chain[-1]].relation == "agent" else "obl", "case"
        for preposition in chain:
            new_heads[preposition], labels[preposition] = noun, mark
    return [
        token if (token.head, token.relation) == (head, label) else token._replace(head=head, relation=label)
        for token, head, label in zip(tokens, new_heads, labels, strict=True)
    ]
