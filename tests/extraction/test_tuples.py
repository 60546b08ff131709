"""The 4-tuple: every rule on trees written by hand in both schools of parsing; and no tree is too odd."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.rules import extract_document, is_passive, subject_of
from ssdvae.extraction.tree import NO_HEAD, UD_LABELS, ParsedDocument, Token, Tree
from ssdvae.io.errors import UserError
from tests.extraction.mended import MENDED
from tests.extraction.trees import (
    CONSTRUCTIONS,
    NEGATED,
    SCHOOLS,
    as_conllu,
    events_of,
    parsed_conllu,
    shown,
)


@pytest.mark.parametrize("school", SCHOOLS)
@pytest.mark.parametrize("name", CONSTRUCTIONS | MENDED)
def test_construction(name: str, school: str) -> None:
    which, parse = SCHOOLS[school]
    *trees, expected = (CONSTRUCTIONS | MENDED)[name]
    assert events_of(parse(trees[which])) == expected


@pytest.mark.parametrize("school", SCHOOLS)
def test_negation_is_kept_marked_or_dropped(school: str) -> None:
    which, parse = SCHOOLS[school]
    parsed = parse(NEGATED[which])
    [event] = extract_document(parsed, ExtractOptions()).events
    assert shown(event) == "leave he None None"
    assert event.origin is not None
    assert event.origin.negated
    assert events_of(parsed, ExtractOptions(negation="mark")) == ["not_leave he None None"]
    assert events_of(parsed, ExtractOptions(negation="drop")) == []


def test_lemmas_by_flag_and_always_beside_the_word() -> None:
    parsed = as_conllu(CONSTRUCTIONS["phrasal verb"][0].replace("it/it", "plans/plan"))
    [event] = extract_document(parsed, ExtractOptions()).events
    assert (shown(event), event.lemma) == ("gave_up he plans None", "give_up")
    assert events_of(parsed, ExtractOptions(lemmas=True)) == ["give_up he plan None"]


def test_tags_of_the_penn_treebank_will_do() -> None:
    """Parsers before UD have no other tags, and some no lemmas."""
    tree = (
        "He/_/PRP/3/nsubj would/_/MD/3/aux go/_/VB/0/root and/_/CC/3/cc was/_/VBD/3/conj there/_/RB/5/advmod"
    )
    assert events_of(as_conllu(tree)) == ["go he None None"]


def test_a_clause_as_predicate_has_a_subject_of_its_own() -> None:
    tree = (
        "Trouble/trouble/NOUN/5/nsubj:outer is/be/AUX/5/cop that/that/SCONJ/5/mark he/he/PRON/5/nsubj "
        "left/leave/VERB/0/root"
    )
    assert events_of(as_conllu(tree)) == ["left he None None"]


def test_a_preposition_of_several_words() -> None:
    tree = (
        "He/he/PRON/2/nsubj left/leave/VERB/0/root because/because/ADP/5/case of/of/ADP/3/fixed "
        "rain/rain/NOUN/2/obl"
    )
    assert events_of(as_conllu(tree)) == ["left he rain because_of"]


def test_what_follows_as_a_clause_is_no_subject() -> None:
    tree = (
        "It/it/PRON/2/expl helps/help/VERB/0/root that/that/SCONJ/5/mark he/he/PRON/5/nsubj "
        "left/leave/VERB/2/csubj"
    )
    assert events_of(as_conllu(tree)) == ["helps None None None", "left he None None"]


def test_who_need_not_is_denied() -> None:
    tree = (
        "He/he/PRON/4/nsubj did/do/AUX/4/aux not/not/PART/4/advmod have/have/VERB/0/root to/to/PART/6/mark "
        "leave/leave/VERB/4/xcomp"
    )
    assert events_of(as_conllu(tree), ExtractOptions(negation="mark")) == ["not_leave he None None"]


def test_a_part_of_a_contraction_is_spelled_out_in_either_form() -> None:
    for lemma in ("know", "no", "_"):
        parsed = as_conllu(f"I/I/PRON/2/nsubj no/{lemma}/VERB/0/root")
        [event] = extract_document(parsed, ExtractOptions()).events
        assert (event.head, event.lemma) == ("know", "know")


def test_multiword_tokens_and_empty_nodes() -> None:
    block = "\n".join(
        line.replace(" ", "\t")
        for line in (
            "1 He he PRON _ _ 4 nsubj _ _",
            "2-3 don't _ _ _ _ _ _ _ _",
            "2 do do AUX _ _ 4 aux _ _",
            "3 n't not PART _ _ 4 advmod _ _",
            "4 leave leave VERB _ _ 0 root _ SpaceAfter=No",
            "4.1 leave leave VERB _ _ _ _ 0:root _",
            "5 . . PUNCT _ _ 4 punct _ _",
        )
    )
    for text in ("", "# text = He  don't leave.\n"):
        parsed = parsed_conllu(text + block)
        [event] = extract_document(parsed, ExtractOptions(keep_text=True)).events
        assert event.origin is not None
        assert event.origin.negated
        assert parsed.text[event.origin.start : event.origin.end] == "leave"
        assert " ".join(str(event.origin.text).split()) == "He don't leave."
        # Both words of a range stand where it is written.
        assert [parsed.text[t.start : t.end] for t in parsed.sentences[0].tokens[1:3]] == ["don't", "don't"]


# Whatever the tree.

RELATIONS = sorted(
    {*UD_LABELS, *UD_LABELS.values(), "prep", "pobj", "pcomp", "agent", "obl", "obl:agent", "case", "fixed"}
    | {"conj", "advcl", "appos", "attr", "flat", "det", "nummod", "amod", "acl:relcl", "obj", "nmod:unmarked"}
    | {"xcomp", "ccomp", "acl", "nsubj", "csubj", "iobj", "aux", "cop", "mark", "root", "punct", "", "nmod"}
)
KNOWN = "he that who to by not is promise Left İ had going let 's thank lot of one back first easy day told"
WORDS = st.sampled_from([*KNOWN.split(), "", " "])
ODD_TOKENS = st.builds(
    Token,
    form=WORDS,
    lemma=WORDS,
    pos=st.sampled_from(["VERB", "VBD", "AUX", "NOUN", "PRON", "PROPN", "NUM", "SYM", "ADP", ""]),
    head=st.integers(-2, 8),
    relation=st.sampled_from(RELATIONS),
    start=st.integers(0, 9),
    end=st.integers(0, 9),
)


@settings(max_examples=500)
@given(st.lists(ODD_TOKENS, max_size=7), st.sampled_from(["keep", "mark", "drop"]), st.booleans())
def test_no_tree_is_too_odd(tokens: list[Token], negation: str, flag: bool) -> None:
    """Circles, words that are their own heads, heads that are not there, no root or several."""
    parsed = ParsedDocument("d", "x" * 10, (Tree(tokens),))
    chosen = ExtractOptions(negation=negation, lemmas=flag, keep_text=flag)  # type: ignore[arg-type]  # one of the three
    document = extract_document(parsed, chosen)
    assert len(document.events) <= sum(token.pos in ("VERB", "VBD") for token in tokens)
    for event in document.events:
        assert len(shown(event).split()) == 4


@settings(max_examples=300)
@given(st.data())
def test_circles(data: st.DataObject) -> None:
    """Small and made of what rules climb along, so that circles of every kind are met."""
    size = data.draw(st.integers(1, 3))
    climbed = (
        "conj xcomp acl:relcl ccomp prep agent pobj obl case acl advcl appos attr obj nmod mark pcomp nsubj"
    )
    tokens = [
        Token(
            form=data.draw(st.sampled_from(["who", "by", "to", "of", "one", "had"])),
            lemma="",
            pos="VERB",
            head=data.draw(st.integers(0, size - 1)),
            relation=data.draw(st.sampled_from(climbed.split())),
            start=0,
            end=1,
        )
        for _ in range(size)
    ]
    extract_document(ParsedDocument("d", "x", (Tree(tokens),)), ExtractOptions())


def circle(*relations: str) -> Tree:
    """Verbs each of which hangs on the next, and the last on the first."""
    return Tree(
        Token("by", "", "VERB", (place + 1) % len(relations), relation, 0, 1)
        for place, relation in enumerate(relations)
    )


def test_a_circle_has_no_subject_and_an_end() -> None:
    for relation in ("conj", "xcomp"):
        assert subject_of(circle(relation, relation), 0) is None
    assert list(circle("conj", "conj", "conj").path_to_root(1)) == [1, 2, 0]
    assert not is_passive(circle("conj", "conj"), 0)
    # A preposition that hangs on itself by way of another.
    assert [token.head for token in circle("prep", "agent", "pobj").tokens] != [1, 2, 0]
    prepositions = [Token("by", "", "ADP", head, "prep", 0, 1) for head in (1, 0)]
    noun = Token("man", "", "NOUN", 0, "pobj", 0, 1)
    assert Tree([*prepositions, noun])[2].head == NO_HEAD


@given(st.lists(ODD_TOKENS, max_size=7))
def test_a_tree_in_ud_stays_as_it_is(tokens: list[Token]) -> None:
    once = Tree(tokens).tokens
    assert Tree(once).tokens == once
    for place, token in enumerate(once):
        assert token.head == NO_HEAD or (0 <= token.head < len(once) and token.head != place)


FIELDS = st.text(st.characters(exclude_characters="\t\r\n", exclude_categories=["Cs"]), max_size=3)
IDS = st.sampled_from(["1", "2", "3", "1-2", "2-3", "3-1", "2.1", "0.1", "x", ""])
HEADS = st.sampled_from(["0", "1", "2", "3", "9", "_", "-1", "x"])


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(IDS, FIELDS, FIELDS, st.sampled_from(["VERB", "NOUN", "_"]), FIELDS, FIELDS, HEADS)
        | st.tuples(IDS, FIELDS),
        max_size=5,
    ),
    FIELDS,
)
def test_any_lines_of_conllu_are_read_or_refused_in_words(lines: list[tuple[str, ...]], text: str) -> None:
    block = f"# text = {text}\n" + "\n".join(
        "\t".join((*line, "nsubj", "_", "_") if len(line) > 2 else line) for line in lines
    )
    try:
        parsed = parsed_conllu(block)
    except UserError:
        return
    for event in extract_document(parsed, ExtractOptions(keep_text=True)).events:
        assert event.origin is not None
        assert 0 <= event.origin.start <= event.origin.end <= len(parsed.text)


@pytest.mark.parametrize("fragment", ["-", "•", "m", "3"])
def test_tokens_without_a_word_are_no_verbs(fragment: str) -> None:
    assert events_of(as_conllu(f"He/he/PRON/2/nsubj {fragment}/{fragment}/VERB/0/root")) == []


def test_a_part_before_a_hyphen_is_no_verb() -> None:
    """A parser splits "re-elected" into three tokens, and may call the first a verb."""
    text = "He re-elected"
    tokens = [
        Token("He", "he", "PRON", 3, "nsubj", 0, 2),
        Token("re", "re", "VERB", 3, "xcomp", 3, 5),
        Token("-", "-", "PUNCT", 3, "punct", 5, 6),
        Token("elected", "elect", "VERB", -1, "root", 6, 13),
    ]
    assert events_of(ParsedDocument("a", text, (Tree(tokens),))) == ["elected he None None"]
