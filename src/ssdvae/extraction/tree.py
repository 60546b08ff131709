"""Dependency trees in the labels of Universal Dependencies (UD), and documents before and after parsing.

Trees of two annotation schemes are converted to the first:

UD (CoNLL-U files, most spaCy models)    moved ─obl→ Beijing ─case→ to
Stanford, ClearNLP (CoreNLP, English     moved ─prep→ to ─pobj→ Beijing
spaCy models, Concrete communications)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

NO_HEAD = -1

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
"""Labels of Stanford and ClearNLP, and their names in UD. None of them has another meaning in UD, so that a
tree in UD stays as it is."""

PREPOSITIONS = ("prep", "agent", "dative")
NOUNS = ("NOUN", "PROPN", "PRON", "NN", "NNS", "NNP", "NNPS", "PRP")


class Token(NamedTuple):
    """A word of a sentence: its head is an index in the sentence, its span is in the whole document.

    ``pos`` is a tag of UD or, from parsers that have no other, of the Penn Treebank.
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
        """The relation without its subtype: ``obl`` of ``obl:agent``."""
        return self.relation.partition(":")[0]


class Tree:
    """A sentence. A head may be missing, and heads may form a cycle."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self.tokens = _to_ud(list(tokens))
        self._lower = [token.form.lower().replace("’", "'") for token in self.tokens]
        self._bases = [token.base for token in self.tokens]
        self._children: list[list[int]] = [[] for _ in self.tokens]
        for index, token in enumerate(self.tokens):
            if token.head != NO_HEAD:
                self._children[token.head].append(index)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> Token:
        return self.tokens[index]

    def lower(self, index: int) -> str:
        """Return a word in lower case, with a straight apostrophe."""
        return self._lower[index]

    def children(self, index: int, *relations: str) -> list[int]:
        """Return the children of a word, in order: all, or those in these relations or subtypes."""
        if not relations:
            return self._children[index]
        tokens, bases = self.tokens, self._bases
        return [c for c in self._children[index] if bases[c] in relations or tokens[c].relation in relations]

    def path_to_root(self, index: int) -> Iterator[int]:
        """Yield a word, its head, the head of that, and so on; each at most once."""
        seen: set[int] = set()
        while index != NO_HEAD and index not in seen:
            seen.add(index)
            yield index
            index = self.tokens[index].head


def _to_ud(tokens: Sequence[Token]) -> list[Token]:
    """Return the words with UD's labels and with prepositions under their nouns."""
    indices = range(len(tokens))
    heads = [t.head if t.head in indices and t.head != index else NO_HEAD for index, t in enumerate(tokens)]
    labels = [UD_LABELS.get(t.relation, t.relation) for t in tokens]
    new_heads = list(heads)
    for noun in indices:
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


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A document as it stands in its file, not yet parsed."""

    id: str
    path: Path
    line: int | None
    content: Any


@dataclass(frozen=True, slots=True)
class FrameMention:
    """A frame that a parser found at these characters of a document."""

    start: int
    end: int
    frame: str
    probability: float | None = None

    def covers(self, start: int, end: int) -> bool:
        """Tell whether it shares a character with a span."""
        return self.start < end and start < self.end


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document with the trees of its sentences; all spans are positions in its ``text``.

    ``paragraphs`` and their positions are what spaCy still has to parse.
    """

    id: str
    text: str
    sentences: tuple[Tree, ...] = ()
    mentions: tuple[FrameMention, ...] = ()
    paragraphs: tuple[tuple[str, int], ...] = ()


def find_spans(text: str, words: Iterable[str], start: int = 0) -> list[tuple[int, int]] | None:
    """Return the spans of words that make up a text, with only space between them; None if they do not."""
    spans = []
    for word in words:
        found = text.find(word, start)
        if found < 0 or text[start:found].strip():
            return None
        start = found + len(word)
        spans.append((found, start))
    return spans
