"""English words that the rules of ``rules.py`` know by name.

All are lower case. Verbs are inflected forms, because not every parser gives lemmas.
"""

from __future__ import annotations

from collections.abc import Iterator


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


FORMS_OF_BE = _words("be am is are was were been being 's 'm 're")
NEGATIONS = _words("not n't nt n never")
HYPHENS = _words("- – ‐ ‑")
INFINITIVE_MARKERS = _words("to na ta")
"""Marks of an infinitive; na and ta are the second halves of "gonna" and "gotta"."""

RELATIVE_PRONOUNS = _words("who whom which that")
RELATIVE_WORDS = RELATIVE_PRONOUNS | _words("whose where when why how")
QUESTION_WORDS = _words("who whom which whose what whatever whichever whoever where when why how")
"""Words that move to the front of their clause."""

HALF_MODALS = _words("have has had having going gon used supposed got ought")
"""Verbs that are no event before an infinitive: "had to die", "supposed to know", "gonna go"."""

LIKE_PREPOSITIONS = _words(
    "according based compared concerning considering depending following given including regarding"
)
"""Participles that are used as prepositions: "depending on the weather, …"."""

ADJUNCT_PREPOSITIONS = _words(
    "according_to along_with apart_from as_well_as in_addition_to instead_of such_as"
)
"""Prepositions whose noun takes no part in the event."""

PARTICLES = _words(
    "across ahead along apart around aside away back by down forward in off on out over through up"
)
"""Particles of phrasal verbs, which many parsers tag as adverbs: "came out", "turned it back"."""

PARTICIPLE_MARKS = _words(
    "after before by from in of on since through upon when whenever while without instead about for"
)
"""Words before a participle that shares the subject: "before leaving, she …"."""

SUBJECT_CONTROL = _words("promise promised promises promising")
"""Verbs with an object and an infinitive whose subject is still that of the verb."""

NO_CONTROL = _words("advise involve mean recommend require suggest")
"""Verbs whose complement has no named subject: "I suggest leaving"."""

TOUGH_ADJECTIVES = _words(
    "bad better best difficult easier easiest easy fun good great hard impossible joy nice pleasure simple",
    "tough",
)
"""Adjectives whose subject is the object of the infinitive: "dogs are easy to please"."""

DITRANSITIVE_PARTICIPLES = _words(
    "asked awarded given granted handed offered owed paid promised sent served shown taught told"
)
"""Passives that can have an object: "the story they were told"."""

ADJUNCT_NOUNS = _words(
    "time day date year month week weekend hour minute moment night morning evening summer winter season",
    "place way reason somewhere anywhere everywhere someplace anyplace",
    "degree extent instance manner occasion point rate speed",
)
"""Nouns of time, place, manner and reason, which are no objects: "the day she left", "the way he spoke"."""

COMPLEMENT_NOUNS = ADJUNCT_NOUNS | _words(
    "ability agreement ambition attempt authority capacity challenge chance choice claim decision demand",
    "desire determination duty effort failure freedom idea inability incentive instruction intent intention",
    "invitation job motivation need obligation offer opportunity option order permission plan potential",
    "power pressure promise proposal refusal request right struggle task temptation tendency threat urge",
    "willingness wish",
)
"""Nouns whose infinitive is complete without them: "a plan to leave", "the right to vote"."""

SHARED_SUBJECT_NOUNS = ADJUNCT_NOUNS | _words("difficulty experience fun luck problem success trouble")
"""Nouns whose participle has the subject of their verb: "she had trouble finding it"."""

ORDINALS = _words("first second third last next only")
"""With these, the noun is the subject of the infinitive: "the first man to land there"."""
INDEFINITE_PERSONS = _words("someone somebody anyone anybody everyone everybody noone nobody")

QUANTITIES = _words(
    "all any both each either few half hundreds many millions billions thousands dozens lots loads tons more",
    "most much neither none one quarter several some third two three four five six seven eight nine ten",
    "plenty kind kinds sort sorts type types bunch couple majority rest percent %",
)
"""Heads that only say how many or which kind: "most of the people died"."""
INDEFINITE_QUANTITIES = _words("amount bit dozen handful host lot number pair range ton variety")
"""Quantities unless after "the": "a number of people died", yet "the number of deaths rose"."""
DEFINITE = _words("the this that these those")

CONTRACTIONS = {
    **{"gon": "going", "wan": "want", "gim": "give", "lem": "let", "no": "know", "'s": "us", "'em": "them"},
    **{"wanna": "want", "gimme": "give", "lemme": "let", "dunno": "know"},
}
"""Verbs and pronouns in contractions, spelled out: "gon|na", "du|n|no", "let|'s", or "dunno" whole."""


def regular_stems(form: str) -> Iterator[str]:
    """Yield possible stems of a regular form, the likeliest first: ``hoping`` of hope, ``hopping`` of hop.

    Most of them are no words; the caller looks them up.
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
