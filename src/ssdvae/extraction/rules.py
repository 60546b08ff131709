"""Rules: the events of a dependency tree.

An event is a main verb and the words that fill its slots. docs/extraction.md explains every rule with an
example; ``english.py`` has the words that rules know by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ssdvae.data.events import Document, Event, Origin
from ssdvae.data.options import ExtractOptions
from ssdvae.extraction import english
from ssdvae.extraction.tree import NO_HEAD, ParsedDocument, Token, Tree


@dataclass(frozen=True, slots=True)
class EventTokens:
    """The indices of an event's tokens in their sentence."""

    verb: int
    particles: tuple[int, ...] = ()
    subj: int | None = None
    obj: int | None = None
    mod: tuple[int, ...] = ()
    negated: bool = False


def find_events(tree: Tree) -> Iterator[EventTokens]:
    """Yield the events of a sentence, in its order."""
    for index in range(len(tree)):
        if is_main_verb(tree, index):
            obj, mod = object_of(tree, index)
            yield EventTokens(
                verb=index,
                particles=particles(tree, index),
                subj=content_head(tree, subject_of(tree, index), index),
                obj=content_head(tree, obj, index),
                mod=mod,
                negated=is_negated(tree, index),
            )


def extract_document(parsed: ParsedDocument, options: ExtractOptions) -> Document:
    """Return the events of a parsed document, in the order of the text."""
    found = []
    for number, tree in enumerate(parsed.sentences):
        for slots in find_events(tree):
            if slots.negated and options.negation == "drop":
                continue
            event = make_event(tree, slots, options)
            verb = tree[slots.verb]
            origin = Origin(number, verb.start, verb.end, slots.negated)
            if options.keep_text:
                start, end = min(t.start for t in tree.tokens), max(t.end for t in tree.tokens)
                origin = replace(origin, text=parsed.text[start:end], text_start=start)
            mention = next((m for m in parsed.mentions if m.covers(verb.start, verb.end)), None)
            # A frame is one word.
            if mention is not None and (frame := "_".join(mention.frame.split())):
                event = event.changed(frame=frame, probability=mention.probability)
            found.append(event.changed(origin=origin))
    return Document(parsed.id, tuple(found))


def make_event(tree: Tree, slots: EventTokens, options: ExtractOptions) -> Event:
    """Return the event with the words that fill its slots."""

    def word(indices: Iterable[int | None], lemmas: bool = options.lemmas) -> str | None:
        tokens = [tree[index] for index in indices if index is not None]
        words = [_word_form(t, lemmas).lower() for t in tokens]
        # A slot is one word: "gave up" becomes gave_up.
        return "_".join(" ".join(words).split()) or None

    phrase = (slots.verb, *slots.particles)
    # Only damaged files have a verb of nothing but space.
    verb = word(phrase) or "_"
    return Event(
        f"not_{verb}" if slots.negated and options.negation == "mark" else verb,
        word([slots.subj]),
        word([slots.obj]),
        word(slots.mod),
        lemma=word(phrase, lemmas=True),
    )


def _word_form(token: Token, lemma: bool) -> str:
    """Return a word or its lemma; a part of a contraction is spelled out."""
    if lemma and token.lemma and token.lemma.lower() != token.form.lower():
        return token.lemma
    may_be_part = token.pos in ("VERB", "PRON", "PRP") or token.pos.startswith("VB")
    return (
        english.CONTRACTIONS.get(token.form.lower().replace("’", "'"), token.form)
        if may_be_part
        else token.form
    )


# Verbs.

AUXILIARY_RELATIONS = frozenset(
    ("aux", "cop", "amod", "compound", "case", "mark", "fixed", "flat", "goeswith", "discourse", "reparandum")
)
"""Relations of verbs that are no events: "may go", "retiring judges", "including them"."""


def is_verb(tree: Tree, index: int) -> bool:
    return tree[index].pos == "VERB" or tree[index].pos.startswith("VB")


def is_main_verb(tree: Tree, index: int) -> bool:
    """Tell whether a verb says what happened: no auxiliary, modal, form of "be" or fixed phrase."""
    token = tree[index]
    if not is_verb(tree, index) or token.base in AUXILIARY_RELATIONS or is_fragment(tree, index):
        return False
    word = tree.lower(index)
    if token.lemma.lower() == "be" or word in english.FORMS_OF_BE or is_half_modal(tree, index):
        return False
    if word in english.LIKE_PREPOSITIONS:
        # "depending on the weather", but "the weather permitting"
        return token.base != "advcl" or bool(tree.children(index, "nsubj"))
    # "Thank you for coming", but "I thank you", "to thank you".
    return word != "thank" or bool(tree.children(index, "nsubj", "aux", "mark")) or token.base == "xcomp"


def is_fragment(tree: Tree, index: int) -> bool:
    """Tell whether a token is no word of its own: a hyphen, a bullet, or "re" of "re-elected"."""
    token = tree[index]
    if sum(letter.isalpha() for letter in token.form) < 2:
        return True
    after = tree[index + 1] if index + 1 < len(tree) else None
    return after is not None and after.form in english.HYPHENS and after.start == token.end


def is_half_modal(tree: Tree, index: int) -> bool:
    """Tell whether a verb only modifies another: "had to leave", "are supposed to know", "let's go"."""
    word = tree.lower(index)
    if word == "let":
        return index + 1 < len(tree) and tree.lower(index + 1) == "'s"
    return (
        word in english.HALF_MODALS
        and all(child < index for child in tree.children(index, "obj"))
        and any(is_infinitive(tree, c) for c in tree.children(index, "xcomp"))
    )


def is_infinitive(tree: Tree, index: int) -> bool:
    return any(tree.lower(c) in english.INFINITIVE_MARKERS for c in tree.children(index, "mark", "aux"))


def is_negated(tree: Tree, index: int) -> bool:
    """Tell whether a verb is negated, itself or by the half-modal above: "he did not have to leave"."""
    for above in tree.path_to_root(index):
        if any(tree.lower(c) in english.NEGATIONS for c in tree.children(above, "advmod")):
            return True
        head = tree[above].head
        if head == NO_HEAD or tree[above].base != "xcomp" or not is_half_modal(tree, head):
            break
    return False


def is_passive(tree: Tree, index: int) -> bool:
    """Tell whether a verb is passive, joined to a passive, or a participle: "the city captured by rebels"."""
    for above in tree.path_to_root(index):
        marks = tree.children(above, "aux", "nsubj", "csubj")
        if any(tree[mark].relation.endswith(":pass") for mark in marks):
            return True
        if tree[above].base != "conj" or marks or tree.children(above, "obj"):
            return tree[above].relation == "acl" and not is_infinitive(tree, above)
    return False


def particles(tree: Tree, index: int) -> tuple[int, ...]:
    """Return the particles of a phrasal verb, also where they were parsed as adverbs: "came out"."""
    adverbs = (
        child
        for child in tree.children(index, "advmod")
        # "went back" and "went back to Rome", but not "called right away" or "met years back"
        if child > index
        and tree.lower(child) in english.PARTICLES
        and all(tree[below].base == "obl" and tree.children(below, "case") for below in tree.children(child))
    )
    return tuple(sorted((*tree.children(index, "compound:prt"), *adverbs)))


# Nouns.

BRIDGE_RELATIONS = ("conj", "xcomp", "ccomp")
"""Clauses through which a relative clause reaches down: "books that I think she wants to read"."""


def antecedent(tree: Tree, word: int, verb: int) -> int:
    """Return the noun that a relative pronoun stands for; any other word stands for itself."""
    # After the verb, "that" points at something: "people who believe that".
    if word < verb and tree.lower(word) in english.RELATIVE_PRONOUNS:
        for above in tree.path_to_root(verb):
            if tree[above].relation == "acl:relcl":
                head = tree[above].head
                # "He left, which surprised us": no noun is meant.
                return word if head == NO_HEAD or is_verb(tree, head) else head
            if tree[above].base not in BRIDGE_RELATIONS:
                break
    return word


def content_head(tree: Tree, index: int | None, verb: int) -> int | None:
    """Return the content word of a phrase: people of "a lot of people", Putin of "Vladimir Putin"."""
    seen = set[int]()
    while index is not None and index not in seen:
        seen.add(index)
        counted = _quantified(tree, index)
        if counted is None:
            return _name_head(tree, index)
        index = antecedent(tree, counted, verb)
    return index


def _quantified(tree: Tree, index: int) -> int | None:
    """Return the noun that a quantity counts; None if the word is no quantity."""
    word = tree.lower(index)
    indefinite = word in english.INDEFINITE_QUANTITIES and not any(
        tree.lower(c) in english.DEFINITE for c in tree.children(index, "det")
    )
    if indefinite or word in english.QUANTITIES:
        for noun in tree.children(index, "nmod", "obl"):
            if any(tree.lower(c) == "of" for c in tree.children(noun, "case")):
                return noun
    return None


def _name_head(tree: Tree, index: int) -> int:
    """Return the last word of a name, the month of a date, the amount of a price.

    UD puts names under their first word, months under their day and prices under their currency. Other
    schemes do the opposite, and so do events.
    """
    tag = tree[index].pos
    if tag in ("SYM", "$"):
        return next(iter(tree.children(index, "nummod")), index)
    if tag in ("NUM", "CD"):
        months = (c for c in tree.children(index, "nmod:unmarked", "nmod:tmod") if tree[c].pos == "PROPN")
        return next(months, index)
    names = [c for c in tree.children(index, "flat") if tree[c].pos in ("PROPN", "NNP", "NNPS")]
    return names[-1] if names else index


def is_question_phrase(tree: Tree, index: int) -> bool:
    """Tell whether a phrase moved to the front of its clause: "which song", "whose book", "to whom"."""
    words = (index, *tree.children(index, "det", "nmod:poss", "poss"))
    return any(tree.lower(word) in english.QUESTION_WORDS for word in words)


def is_any_of(tree: Tree, index: int, words: frozenset[str]) -> bool:
    """Tell whether a word or its lemma is among these."""
    return tree.lower(index) in words or tree[index].lemma.lower() in words


# Subjects.


def subject_of(tree: Tree, index: int, seen: frozenset[int] = frozenset()) -> int | None:
    """Return the subject: a verb's own, or the one that it shares with the clause above."""
    if index in seen:
        return None
    for child in tree.children(index, "nsubj", "csubj"):
        # "The trouble is that he left": the trouble does not leave. "It helps that he left" has no doer.
        outer = tree[child].relation.endswith(":outer")
        if not outer and (tree[child].base == "nsubj" or child < index):
            return antecedent(tree, child, index)
    token, head, infinitive = tree[index], tree[index].head, is_infinitive(tree, index)
    if head == NO_HEAD:
        return None
    seen = seen | {index}
    # Stanford and ClearNLP put a predicate under "be", which has its subject.
    if token.base in ("conj", "acomp", "attr", "oprd"):
        # "… and all she wants is to leave" is a predicate, and shares nothing.
        return None if infinitive and tree.children(index, "cop") else subject_of(tree, head, seen)
    if token.base == "xcomp" or (token.base in ("ccomp", "advcl") and infinitive):
        return _controller(tree, index, seen)
    if token.base == "advcl":
        # "Watching it, she …", "while waiting, she …"; but "as expected", "longer than promised".
        marks = {tree.lower(c) for c in tree.children(index, "mark")}
        # "It was built using wood": who used it also built it, and is not named.
        means = is_passive(tree, head) and ("by" in marks or tree.lower(index) == "using")
        return subject_of(tree, head, seen) if marks <= english.PARTICIPLE_MARKS and not means else None
    if token.base == "acl":
        if infinitive or (token.relation == "acl" and is_any_of(tree, head, english.SHARED_SUBJECT_NOUNS)):
            return _subject_at_noun(tree, index, seen)
        # "the man wounded", "a company making cars"; but a time for leaving does not leave.
        return None if tree.children(index, "mark") else head
    # "the man I think left"
    return _relative_noun(tree, index, seen) if token.base == "ccomp" else None


def _controller(tree: Tree, index: int, seen: frozenset[int]) -> int | None:
    """Return the subject of an infinitive or another open complement."""
    head, purpose = tree[index].head, tree[index].base == "advcl"
    if is_any_of(tree, head, english.TOUGH_ADJECTIVES) or (
        is_any_of(tree, head, english.NO_CONTROL) and not is_infinitive(tree, index)
    ):
        return None
    objects = [] if purpose else tree.children(head, "obj", "iobj")
    if is_half_modal(tree, head):
        # "what she had to do": what is no doer; "let's go": 's is one.
        objects = [child for child in objects if child > head]
    if objects and not is_any_of(tree, head, english.SUBJECT_CONTROL):
        return antecedent(tree, objects[0], head)
    # "A meeting was held to discuss it": the meeting discusses nothing.
    return None if purpose and is_passive(tree, head) else subject_of(tree, head, seen)


def _subject_at_noun(tree: Tree, index: int, seen: frozenset[int]) -> int | None:
    """Return the subject of a clause at a noun: "she has a day to do it", "she gave him a day to do it"."""
    noun = tree[index].head
    words = {tree.lower(c) for c in (noun, *tree.children(noun, "amod", "advmod", "nummod"))}
    first = words & english.ORDINALS and not is_any_of(tree, noun, english.COMPLEMENT_NOUNS)
    if first or words & english.INDEFINITE_PERSONS:
        return noun
    # "a day of rest, a chance to leave"
    noun = next((above for above in tree.path_to_root(noun) if tree[above].base != "appos"), noun)
    verb = tree[noun].head
    if tree[noun].base != "obj" or verb == NO_HEAD:
        return None
    for receiver in tree.children(verb, "iobj"):
        return antecedent(tree, receiver, verb)
    return subject_of(tree, verb, seen)


# Objects.

COMPLEMENTS = ("xcomp", "attr", "acomp", "oprd")
"""Relations of open complements: UD's, and those of Stanford and ClearNLP."""


def object_of(tree: Tree, index: int) -> tuple[int | None, tuple[int, ...]]:
    """Return the direct object; or else a complement; or else the noun of a preposition, with it as modifier.

    A complement is what a subject becomes, is called or tries: "became president", "tried to escape".
    """
    for child in tree.children(index, "obj"):
        # "What did he vote for?"
        stranded = _stranded(tree, index) if child < index and is_question_phrase(tree, child) else ()
        return antecedent(tree, child, index), stranded
    missing = _missing_object(tree, index)
    if missing is not None:
        return missing, _stranded(tree, index)
    for child in tree.children(index, "iobj"):
        return antecedent(tree, child, index), ()
    for child in tree.children(index, *COMPLEMENTS, "ccomp"):
        if child > index and (tree[child].base != "ccomp" or is_infinitive(tree, child)):
            # "wanted to be a doctor" under "be", as Stanford and ClearNLP have it
            predicates = tree.children(child, "attr", "acomp") if tree.lower(child) == "be" else ()
            return next(iter(predicates), child), ()
    nouns = sorted(_with_prepositions(tree, index))
    agents = [(noun, words) for noun, words in nouns if _is_agent(tree, noun, words, index)]
    # "In May he left" is about the whole sentence; "in which he lived" had to go before the verb.
    others = [(noun, words) for noun, words in nouns if noun > index or is_question_phrase(tree, noun)]
    for noun, words in (*agents, *others):
        return antecedent(tree, noun, index), words
    # "They bought and sold cars": what follows both is shared.
    head = tree[index].head
    if tree[index].base == "conj" and head != NO_HEAD:
        for child in tree.children(head, "obj"):
            if child > index:
                return child, ()
    return None, ()


def _with_prepositions(tree: Tree, index: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield nouns with the words of their preposition: "because of", "out of"."""
    for above in (index, *particles(tree, index)):
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
    """Tell whether this is the agent of a passive: "captured in May by rebels"."""
    by = tree.lower(preposition[0]) == "by"
    return tree[noun].relation == "obl:agent" or (by and is_passive(tree, verb))


def _stranded(tree: Tree, index: int) -> tuple[int, ...]:
    """Return a preposition whose noun is elsewhere: "the house he lived in"."""
    for child in tree.children(index, "obl", "prep"):
        if child > index and tree[child].pos in ("ADP", "IN", "TO"):
            return (child,)
    return ()


def _missing_object(tree: Tree, index: int) -> int | None:
    """Return the noun outside of the clause that is its object: "data you used", "a thing I want to do"."""
    for child in tree.children(index, "xcomp", "ccomp"):
        # The verb below lacks it instead.
        if tree[child].base == "ccomp" or (is_verb(tree, child) and not tree.children(child, "obj")):
            return None
    noun = _relative_noun(tree, index)
    return None if noun == subject_of(tree, index) else noun


def _relative_noun(tree: Tree, index: int, seen: frozenset[int] = frozenset()) -> int | None:
    """Return the noun of a relative clause or infinitive without a pronoun that stands for it."""
    clause = index
    for clause in tree.path_to_root(index):
        if tree[clause].base not in BRIDGE_RELATIONS:
            break
        # "a chance to know what he did": what he did is a clause of its own.
        if any(
            c < clause and is_question_phrase(tree, c)
            for c in tree.children(clause, "nsubj", "obj", "obl", "advmod")
        ):
            return None
    noun, infinitive = tree[clause].head, is_infinitive(tree, clause)
    if tree[clause].base != "acl" or not 0 <= noun < clause:
        return None
    if not infinitive and tree[clause].relation != "acl:relcl":
        return None
    between = (word for word in range(noun + 1, clause) if tree.lower(word) in english.RELATIVE_WORDS)
    if any(tree[word].base != "mark" for word in between) or subject_of(tree, clause, seen) == noun:
        return None
    if infinitive and is_any_of(tree, noun, english.TOUGH_ADJECTIVES):
        return None
    if _stranded(tree, index):
        return noun
    # "the story they were told", but "the day they were killed"
    full = is_passive(tree, index) and tree.lower(index) not in english.DITRANSITIVE_PARTICIPLES
    others = english.COMPLEMENT_NOUNS if infinitive else english.ADJUNCT_NOUNS
    return None if full or is_any_of(tree, noun, others) else noun
