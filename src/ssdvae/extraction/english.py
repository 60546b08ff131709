"""The words of English that the rules of ``tuples.py`` must know by name. Grammar is there, vocabulary here.

All are lower case. Verbs are forms, because not every parser gives lemmas.
"""

from __future__ import annotations

from collections.abc import Iterator


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


FORMS_OF_BE = _words("be am is are was were been being 's 'm 're")
NEGATIONS = _words("not n't nt n never")
INFINITIVE = _words("to na ta")
"""What marks an infinitive; of "gonna" and "gotta", the second half."""

RELATIVE = _words("who whom which that")
RELATIVE_WORDS = RELATIVE | _words("whose where when why how")
QUESTIONS = _words("who whom which whose what whatever whichever whoever where when why how")
"""What stands at the front of its clause, wherever its place would be."""

HALF_MODALS = _words("have has had having going gon used supposed got ought")
"""Before an infinitive they say no event of their own: "had to die", "supposed to know", "gonna go"."""

LIKE_PREPOSITIONS = _words(
    "according based compared concerning considering depending following given including regarding"
)
"""Participles that do the work of a preposition: "depending on the weather, …"."""

ADJUNCT_PREPOSITIONS = _words(
    "according_to along_with apart_from as_well_as in_addition_to instead_of such_as"
)
"""Their noun is never a part of what happened, only of what is said about it."""

PARTICLES = _words(
    "across ahead along apart around aside away back by down forward in off on out over through up"
)
"""What makes one word with a verb, though many parsers call it an adverb: "came out", "turned it back"."""

PARTICIPLE_MARKS = _words(
    "after before by from in of on since through upon when whenever while without instead about for"
)
"""What may stand before a participle that shares the subject: "before leaving, she …"."""

SUBJECT_CONTROL = _words("promise promised promises promising")
"""With an object and an infinitive whose doer is the subject nevertheless."""

NO_CONTROL = _words("advise involve mean recommend require suggest")
"""What they speak of has no doer that is named: "I suggest leaving"."""

TOUGH = _words(
    "bad better best difficult easier easiest easy fun good great hard impossible joy nice pleasure simple",
    "tough",
)
"""Adjectives whose subject is what the infinitive is done to: "dogs are easy to please"."""

GIVEN = _words("asked awarded given granted handed offered owed paid promised sent served shown taught told")
"""Passives that may still have an object: "the story they were told"."""

ADJUNCT_NOUNS = _words(
    "time day date year month week weekend hour minute moment night morning evening summer winter season",
    "place way reason somewhere anywhere everywhere someplace anyplace",
    "degree extent instance manner occasion point rate speed",
)
"""They are when, where, how or why, not whom or what: "the day she left", "the way he spoke"."""

COMPLEMENT_NOUNS = ADJUNCT_NOUNS | _words(
    "ability agreement ambition attempt authority capacity challenge chance choice claim decision demand",
    "desire determination duty effort failure freedom idea inability incentive instruction intent intention",
    "invitation job motivation need obligation offer opportunity option order permission plan potential",
    "power pressure promise proposal refusal request right struggle task temptation tendency threat urge",
    "willingness wish",
)
"""Their infinitive says what they are about and lacks no object: "a plan to leave", "the right to vote"."""

SPENT = ADJUNCT_NOUNS | _words("difficulty experience fun luck problem success trouble")
"""Their participle has the subject of their verb: "she had trouble finding it"."""

FIRST = _words("first second third last next only")
"""With these, the noun does what the infinitive says: "the first man to land there"."""
SOMEONE = _words("someone somebody anyone anybody everyone everybody noone nobody")

QUANTITIES = _words(
    "all any both each either few half hundreds many millions billions thousands dozens lots loads tons more",
    "most much neither none one quarter several some third two three four five six seven eight nine ten",
    "plenty kind kinds sort sorts type types bunch couple majority rest percent %",
)
"""Heads that only say how many or which kind: in "a lot of people died", people die."""
INDEFINITE_QUANTITIES = _words("amount bit dozen handful host lot number pair range ton variety")
"""The same, but not after "the": "a number of people died", yet "the number of deaths rose"."""
DEFINITE = _words("the this that these those")

SPELLED = {
    **{"gon": "going", "wan": "want", "gim": "give", "lem": "let", "no": "know", "'s": "us", "'em": "them"},
    **{"wanna": "want", "gimme": "give", "lemme": "let", "dunno": "know"},
}
"""What verbs and pronouns in contractions stand for: "gon|na", "du|n|no", "let|'s", or "dunno" whole."""


def regular_stems(form: str) -> Iterator[str]:
    """What a regular form may be of, the likeliest first: ``hoping`` of hope, ``hopping`` of hop.

    Most of them are no words: who asks knows which ones are.
    """
    for ending in ("ies", "ied", "s", "es", "ed", "ing"):
        stem = form.removesuffix(ending)
        if stem == form or len(stem) < 2:
            continue
        if ending.startswith("i") and ending != "ing":
            yield f"{stem}y"
            continue
        if ending in ("ed", "ing"):
            if stem[-1] == stem[-2]:
                yield stem[:-1]
            yield f"{stem}e"
        yield stem
