"""Trees written by hand: word/lemma/tag/head/relation, heads counted from 1, in both schools of parsing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ssdvae.data.events import SLOTS, Event
from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.readers import conllu
from ssdvae.extraction.readers.text import trees_of
from ssdvae.extraction.rules import extract_document
from ssdvae.extraction.tree import ParsedDocument, RawDocument

# name: (Universal Dependencies, ClearNLP as English models of spaCy have it, the events)
CONSTRUCTIONS: dict[str, tuple[str, str, list[str]]] = {
    "active subject and object": (
        "The/the/DET/2/det wind/wind/NOUN/3/nsubj "
        "hit/hit/VERB/0/root the/the/DET/5/det ferry/ferry/NOUN/3/obj",
        "The/the/DET/2/det wind/wind/NOUN/3/nsubj "
        "hit/hit/VERB/0/ROOT the/the/DET/5/det ferry/ferry/NOUN/3/dobj",
        ["hit wind ferry None"],
    ),
    "the object of a preposition": (
        "He/he/PRON/2/nsubj moved/move/VERB/0/root to/to/ADP/4/case Beijing/Beijing/PROPN/2/obl "
        "in/in/ADP/6/case May/May/PROPN/2/obl",
        "He/he/PRON/2/nsubj moved/move/VERB/0/ROOT to/to/ADP/2/prep Beijing/Beijing/PROPN/3/pobj "
        "in/in/ADP/2/prep May/May/PROPN/5/pobj",
        ["moved he beijing to"],
    ),
    "a preposition before the verb comes second": (
        "In/in/ADP/2/case May/May/PROPN/4/obl he/he/PRON/4/nsubj moved/move/VERB/0/root to/to/ADP/6/case "
        "Beijing/Beijing/PROPN/4/obl",
        "In/in/ADP/4/prep May/May/PROPN/1/pobj he/he/PRON/4/nsubj moved/move/VERB/0/ROOT to/to/ADP/4/prep "
        "Beijing/Beijing/PROPN/5/pobj",
        ["moved he beijing to"],
    ),
    "two prepositions in a row": (
        "She/she/PRON/2/nsubj ran/run/VERB/0/root out/out/ADP/5/case of/of/ADP/5/case town/town/NOUN/2/obl",
        "She/she/PRON/2/nsubj ran/run/VERB/0/ROOT out/out/ADP/2/prep of/of/ADP/3/prep town/town/NOUN/4/pobj",
        ["ran she town out_of"],
    ),
    "an indirect object stands in for a missing one": (
        "She/she/PRON/2/nsubj told/tell/VERB/0/root him/he/PRON/2/iobj",
        "She/she/PRON/2/nsubj told/tell/VERB/0/ROOT him/he/PRON/2/dative",
        ["told she him None"],
    ),
    "the direct object goes before the indirect one": (
        "She/she/PRON/2/nsubj gave/give/VERB/0/root him/he/PRON/2/iobj bread/bread/NOUN/2/obj",
        "She/she/PRON/2/nsubj gave/give/VERB/0/ROOT him/he/PRON/2/dative bread/bread/NOUN/2/dobj",
        ["gave she bread None"],
    ),
    "passive": (
        "The/the/DET/2/det city/city/NOUN/4/nsubj:pass was/be/AUX/4/aux:pass taken/take/VERB/0/root",
        "The/the/DET/2/det city/city/NOUN/4/nsubjpass was/be/AUX/4/auxpass taken/take/VERB/0/ROOT",
        ["taken city None None"],
    ),
    "passive agent": (
        "Rome/Rome/PROPN/3/nsubj:pass was/be/AUX/3/aux:pass taken/take/VERB/0/root in/in/ADP/5/case "
        "May/May/PROPN/3/obl by/by/ADP/7/case rebels/rebel/NOUN/3/obl",
        "Rome/Rome/PROPN/3/nsubjpass was/be/AUX/3/auxpass taken/take/VERB/0/ROOT in/in/ADP/3/prep "
        "May/May/PROPN/4/pobj by/by/ADP/3/agent rebels/rebel/NOUN/6/pobj",
        ["taken rome rebels by"],
    ),
    "by without a passive is a preposition like others": (
        "He/he/PRON/2/nsubj sat/sit/VERB/0/root on/on/ADP/4/case rocks/rock/NOUN/2/obl by/by/ADP/6/case "
        "rivers/river/NOUN/2/obl",
        "He/he/PRON/2/nsubj sat/sit/VERB/0/ROOT on/on/ADP/2/prep rocks/rock/NOUN/3/pobj by/by/ADP/2/prep "
        "rivers/river/NOUN/5/pobj",
        ["sat he rocks on"],
    ),
    "coordination": (
        "She/she/PRON/2/nsubj came/come/VERB/0/root "
        "saw/see/VERB/2/conj and/and/CCONJ/5/cc won/win/VERB/2/conj",
        "She/she/PRON/2/nsubj came/come/VERB/0/ROOT "
        "saw/see/VERB/2/conj and/and/CCONJ/3/cc won/win/VERB/3/conj",
        ["came she None None", "saw she None None", "won she None None"],
    ),
    "coordination with a subject of its own": (
        "She/she/PRON/2/nsubj came/come/VERB/0/root "
        "and/and/CCONJ/5/cc he/he/PRON/5/nsubj left/leave/VERB/2/conj",
        "She/she/PRON/2/nsubj came/come/VERB/0/ROOT "
        "and/and/CCONJ/2/cc he/he/PRON/5/nsubj left/leave/VERB/2/conj",
        ["came she None None", "left he None None"],
    ),
    "coordinated passives share an agent's voice": (
        "He/he/PRON/3/nsubj:pass was/be/AUX/3/aux:pass shot/shoot/VERB/0/root and/and/CCONJ/5/cc "
        "killed/kill/VERB/3/conj at/at/ADP/7/case "
        "home/home/NOUN/5/obl by/by/ADP/9/case rebels/rebel/NOUN/5/obl",
        "He/he/PRON/3/nsubjpass was/be/AUX/3/auxpass shot/shoot/VERB/0/ROOT and/and/CCONJ/3/cc "
        "killed/kill/VERB/3/conj at/at/ADP/5/prep "
        "home/home/NOUN/6/pobj by/by/ADP/5/agent rebels/rebel/NOUN/8/pobj",
        ["shot he None None", "killed he rebels by"],
    ),
    "open complement, the subject's": (
        "He/he/PRON/2/nsubj wanted/want/VERB/0/root to/to/PART/4/mark leave/leave/VERB/2/xcomp "
        "Rome/Rome/PROPN/4/obj",
        "He/he/PRON/2/nsubj wanted/want/VERB/0/ROOT to/to/PART/4/aux leave/leave/VERB/2/xcomp "
        "Rome/Rome/PROPN/4/dobj",
        ["wanted he leave None", "leave he rome None"],
    ),
    "open complement, the object's": (
        "She/she/PRON/2/nsubj asked/ask/VERB/0/root "
        "him/he/PRON/2/obj to/to/PART/5/mark leave/leave/VERB/2/xcomp",
        "She/she/PRON/2/nsubj asked/ask/VERB/0/ROOT "
        "him/he/PRON/2/dobj to/to/PART/5/aux leave/leave/VERB/2/xcomp",
        ["asked she him None", "leave him None None"],
    ),
    "open complement of a promise": (
        "She/she/PRON/2/nsubj promised/promise/VERB/0/root him/he/PRON/2/obj to/to/PART/5/mark "
        "leave/leave/VERB/2/xcomp",
        "She/she/PRON/2/nsubj promised/promise/VERB/0/ROOT him/he/PRON/2/dobj to/to/PART/5/aux "
        "leave/leave/VERB/2/xcomp",
        ["promised she him None", "leave she None None"],
    ),
    "open complement under coordination": (
        "He/he/PRON/2/nsubj began/begin/VERB/0/root to/to/PART/4/mark run/run/VERB/2/xcomp "
        "and/and/CCONJ/6/cc sing/sing/VERB/4/conj",
        "He/he/PRON/2/nsubj began/begin/VERB/0/ROOT to/to/PART/4/aux run/run/VERB/2/xcomp "
        "and/and/CCONJ/4/cc sing/sing/VERB/4/conj",
        ["began he run None", "run he None None", "sing he None None"],
    ),
    "complement that is a noun": (
        "He/he/PRON/2/nsubj became/become/VERB/0/root president/president/NOUN/2/xcomp in/in/ADP/5/case "
        "May/May/PROPN/2/obl",
        "He/he/PRON/2/nsubj became/become/VERB/0/ROOT president/president/NOUN/2/attr in/in/ADP/2/prep "
        "May/May/PROPN/4/pobj",
        ["became he president None"],
    ),
    "complement of a passive": (
        "He/he/PRON/3/nsubj:pass was/be/AUX/3/aux:pass considered/consider/VERB/0/root "
        "dangerous/dangerous/ADJ/3/xcomp",
        "He/he/PRON/3/nsubjpass was/be/AUX/3/auxpass considered/consider/VERB/0/ROOT "
        "dangerous/dangerous/ADJ/3/oprd",
        ["considered he dangerous None"],
    ),
    "complement below to be": (
        "He/he/PRON/2/nsubj wanted/want/VERB/0/root to/to/PART/6/mark be/be/AUX/6/cop a/a/DET/6/det "
        "doctor/doctor/NOUN/2/xcomp",
        "He/he/PRON/2/nsubj wanted/want/VERB/0/ROOT to/to/PART/4/aux be/be/AUX/2/xcomp a/a/DET/6/det "
        "doctor/doctor/NOUN/4/attr",
        ["wanted he doctor None"],
    ),
    "no complement beside an object": (
        "They/they/PRON/2/nsubj elected/elect/VERB/0/root her/she/PRON/2/obj mayor/mayor/NOUN/2/xcomp",
        "They/they/PRON/2/nsubj elected/elect/VERB/0/ROOT her/she/PRON/2/dobj mayor/mayor/NOUN/2/oprd",
        ["elected they her None"],
    ),
    "relative clause on the subject": (
        "men/man/NOUN/6/nsubj who/who/PRON/3/nsubj came/come/VERB/1/acl:relcl and/and/CCONJ/5/cc "
        "saw/see/VERB/3/conj left/leave/VERB/0/root",
        "men/man/NOUN/6/nsubj who/who/PRON/3/nsubj came/come/VERB/1/relcl and/and/CCONJ/3/cc "
        "saw/see/VERB/3/conj left/leave/VERB/0/ROOT",
        ["came men None None", "saw men None None", "left men None None"],
    ),
    "relative clause on the object": (
        "books/book/NOUN/5/nsubj that/that/PRON/4/obj she/she/PRON/4/nsubj read/read/VERB/1/acl:relcl "
        "burned/burn/VERB/0/root",
        "books/book/NOUN/5/nsubj that/that/PRON/4/dobj she/she/PRON/4/nsubj read/read/VERB/1/relcl "
        "burned/burn/VERB/0/ROOT",
        ["read she books None", "burned books None None"],
    ),
    "relative clause on a preposition": (
        "towns/town/NOUN/6/nsubj in/in/ADP/3/case which/which/PRON/5/obl he/he/PRON/5/nsubj "
        "lived/live/VERB/1/acl:relcl burned/burn/VERB/0/root",
        "towns/town/NOUN/6/nsubj in/in/ADP/5/prep which/which/PRON/2/pobj he/he/PRON/5/nsubj "
        "lived/live/VERB/1/relcl burned/burn/VERB/0/ROOT",
        ["lived he towns in", "burned towns None None"],
    ),
    "relative clause over another": (
        "men/man/NOUN/6/nsubj who/who/PRON/5/nsubj I/I/PRON/4/nsubj think/think/VERB/1/acl:relcl "
        "left/leave/VERB/4/ccomp came/come/VERB/0/root",
        "men/man/NOUN/6/nsubj who/who/PRON/5/nsubj I/I/PRON/4/nsubj think/think/VERB/1/relcl "
        "left/leave/VERB/4/ccomp came/come/VERB/0/ROOT",
        ["think i None None", "left men None None", "came men None None"],
    ),
    "an agent where nothing else marks the passive": (
        "Led/lead/VERB/7/advcl in/in/ADP/3/case war/war/NOUN/1/obl by/by/ADP/5/case "
        "Caesar/Caesar/PROPN/1/obl:agent they/they/PRON/7/nsubj won/win/VERB/0/root",
        "Led/lead/VERB/7/advcl in/in/ADP/1/prep war/war/NOUN/2/pobj by/by/ADP/1/agent "
        "Caesar/Caesar/PROPN/4/pobj they/they/PRON/7/nsubj won/win/VERB/0/ROOT",
        ["led they caesar by", "won they None None"],
    ),
    "a strange form of be is no event": (
        "He/he/PRON/2/nsubj ai/be/VERB/0/root here/here/ADV/2/advmod",
        "He/he/PRON/2/nsubj ai/be/VERB/0/ROOT here/here/ADV/2/advmod",
        [],
    ),
    "reduced relative clause": (
        "a/a/DET/2/det city/city/NOUN/6/nsubj taken/take/VERB/2/acl by/by/ADP/5/case rebels/rebel/NOUN/3/obl "
        "burned/burn/VERB/0/root",
        "a/a/DET/2/det city/city/NOUN/6/nsubj taken/take/VERB/2/acl by/by/ADP/3/agent "
        "rebels/rebel/NOUN/4/pobj burned/burn/VERB/0/ROOT",
        ["taken city rebels by", "burned city None None"],
    ),
    "a plan to leave does not leave": (
        "plans/plan/NOUN/4/nsubj to/to/PART/3/mark leave/leave/VERB/1/acl failed/fail/VERB/0/root",
        "plans/plan/NOUN/4/nsubj to/to/PART/3/aux leave/leave/VERB/1/acl failed/fail/VERB/0/ROOT",
        ["leave None None None", "failed plans None None"],
    ),
    "that after the verb points at something": (
        "men/man/NOUN/5/nsubj who/who/PRON/3/nsubj believe/believe/VERB/1/acl:relcl that/that/PRON/3/obj "
        "left/leave/VERB/0/root",
        "men/man/NOUN/5/nsubj who/who/PRON/3/nsubj believe/believe/VERB/1/relcl that/that/PRON/3/dobj "
        "left/leave/VERB/0/ROOT",
        ["believe men that None", "left men None None"],
    ),
    "phrasal verb": (
        "He/he/PRON/2/nsubj gave/give/VERB/0/root it/it/PRON/2/obj up/up/ADP/2/compound:prt",
        "He/he/PRON/2/nsubj gave/give/VERB/0/ROOT it/it/PRON/2/dobj up/up/ADP/2/prt",
        ["gave_up he it None"],
    ),
    "auxiliaries and modals are no events": (
        "He/he/PRON/4/nsubj may/may/AUX/4/aux have/have/AUX/4/aux left/leave/VERB/0/root",
        "He/he/PRON/4/nsubj may/may/AUX/4/aux have/have/AUX/4/aux left/leave/VERB/0/ROOT",
        ["left he None None"],
    ),
    "copulas are no events": (
        "He/he/PRON/3/nsubj is/be/AUX/3/cop tall/tall/ADJ/0/root and/and/CCONJ/5/cc runs/run/VERB/3/conj",
        "He/he/PRON/2/nsubj is/be/AUX/0/ROOT tall/tall/ADJ/2/acomp and/and/CCONJ/2/cc runs/run/VERB/2/conj",
        ["runs he None None"],
    ),
    "to be there is no event": (
        "There/there/PRON/2/expl is/be/VERB/0/root hope/hope/NOUN/2/nsubj",
        "There/there/PRON/2/expl is/be/VERB/0/ROOT hope/hope/NOUN/2/attr",
        [],
    ),
    "what only modifies a noun is no event": (
        "Retiring/retire/VERB/2/amod judges/judge/NOUN/3/nsubj spoke/speak/VERB/0/root",
        "Retiring/retire/VERB/2/amod judges/judge/NOUN/3/nsubj spoke/speak/VERB/0/ROOT",
        ["spoke judges None None"],
    ),
    "no subject, no object": ("Run/run/VERB/0/root", "Run/run/VERB/0/ROOT", ["run None None None"]),
}

NEGATED = (
    "He/he/PRON/4/nsubj did/do/AUX/4/aux not/not/PART/4/advmod leave/leave/VERB/0/root",
    "He/he/PRON/4/nsubj did/do/AUX/4/aux not/not/PART/4/neg leave/leave/VERB/0/ROOT",
)

Rows = list[list[str]]


def rows_of(tree: str) -> Rows:
    return [word.split("/") for word in tree.split()]


def conllu_lines(tree: str) -> str:
    lines = []
    for number, (form, lemma, tag, head, relation) in enumerate(rows_of(tree), start=1):
        lines.append("\t".join((str(number), form, lemma, tag, "_", "_", head, relation, "_", "_")))
    return "\n".join(lines)


def parsed_conllu(block: str) -> ParsedDocument:
    return conllu.parse(RawDocument("d", Path("d.conllu"), 1, [(1, block)]), ExtractOptions())


def as_conllu(tree: str) -> ParsedDocument:
    return parsed_conllu(conllu_lines(tree))


def spacy_doc(tree: str) -> Doc:
    rows = rows_of(tree)
    return Doc(
        Vocab(),
        words=[row[0] for row in rows],
        lemmas=[row[1] for row in rows],
        pos=[row[2] for row in rows],
        heads=[int(row[3]) - 1 if row[3] != "0" else place for place, row in enumerate(rows)],
        deps=[row[4] for row in rows],
    )


def as_spacy(tree: str) -> ParsedDocument:
    doc = spacy_doc(tree)
    return ParsedDocument("d", doc.text, tuple(trees_of(doc)))


SCHOOLS: dict[str, tuple[int, Callable[[str], ParsedDocument]]] = {
    "conllu": (0, as_conllu),
    "spacy": (1, as_spacy),
}


def shown(event: Event) -> str:
    """All slots of an event, the empty ones too."""
    return " ".join(event.padded(len(SLOTS)))


def events_of(parsed: ParsedDocument, settings: ExtractOptions | None = None) -> list[str]:
    return [shown(event) for event in extract_document(parsed, settings or ExtractOptions()).events]
