"""The public sets of subject, predicate and object."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data.benchmarks import SimilarityItem, read_mcnc, read_similarity
from ssdvae.data.events import MISSING, Words
from ssdvae.data.items import Question
from ssdvae.io.errors import DataError

CHARACTERS = st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="|\ufeff")
WORD = st.text(CHARACTERS, min_size=1)
PLAIN = WORD.filter(lambda word: word != MISSING)
SLOT = PLAIN | st.just(MISSING)
EVENT = st.tuples(PLAIN, SLOT, SLOT, SLOT)


def text(event: Words) -> str:
    verb, subj, obj, mod = ("" if word == MISSING else word for word in event)
    return f"{subj} | {verb} {mod} | {obj}"


PAIR = st.tuples(EVENT, EVENT)
HARD = st.builds(SimilarityItem, st.tuples(PAIR, PAIR))
RATED = st.builds(SimilarityItem, st.tuples(PAIR), st.floats(-1e6, 1e6))


@given(st.lists(HARD, min_size=1, max_size=3) | st.lists(RATED, min_size=1, max_size=3))
def test_pairs_are_read_as_they_were_written(items: list[SimilarityItem]) -> None:
    lines = []
    for item in items:
        events = [event for pair in item.pairs for event in pair]
        rating = [] if item.rating is None else [repr(item.rating)]
        lines.append(" | ".join([*map(text, events), *rating]))
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_text("\n\n".join(lines) + "\n", encoding="utf-8", newline="")
        assert read_similarity(path) == items


EVENTS = st.lists(EVENT, min_size=1, max_size=3).map(tuple)
CANDIDATES = st.lists(EVENT, min_size=2, max_size=4).map(tuple)


@given(st.lists(st.builds(Question, EVENTS, CANDIDATES), min_size=1, max_size=3))
def test_narratives_are_read_as_they_were_written(items: list[Question]) -> None:
    lines = []
    for item in items:
        truth, *wrong = map(text, item.candidates)
        lines += [*map(text, item.context), "HOLDOUT_SEP", "", truth, "NEG_SEP", *wrong, "DOC_SEP", ""]
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_text("\n".join(lines), encoding="utf-8", newline="")
        assert read_mcnc(path) == items


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_words(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        for start in (b"", b"a|b|c\nHOLDOUT_SEP\na|b|c\nNEG_SEP\n", b"a|b|c|d|e|f|1\n"):
            path.write_bytes(start + content)
            for read in (read_mcnc, read_similarity):
                with suppress(DataError):
                    read(path)


def test_the_public_formats_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("army | starts | war | it | set up as | base | he | ran | home | he | ran | shop\r\n")
    (item,) = read_similarity(path)
    assert (len(item.pairs), item.rating) == (2, None)
    assert item.pairs[0] == (("starts", "army", "war", MISSING), ("set", "it", "base", "up_as"))
    path.write_text(
        "rocket|hurled on|journey\nHOLDOUT_SEP\n\nit|pass|moon\nNEG_SEP\n\nwe|in|voyage\nDOC_SEP\n"
    )
    (narrative,) = read_mcnc(path)
    assert narrative.context == (("hurled", "rocket", "journey", "on"),)
    assert narrative.candidates == (("pass", "it", "moon", MISSING), ("in", "we", "voyage", MISSING))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("a|b|c|d\n", "line 1: found 4 fields between bars"),
        (
            "a|b|c|d|e|f|1\na|b|c|d|e|f|g|h|i|j|k|l\n",
            "line 2: found 12 fields .* as many as on the lines before",
        ),
        ("a|b|c|d|e|f|high\n", "line 1: found 'high' as the similarity, expected a number"),
        ("a|b|c|d|e|f|inf\n", "line 1: found inf as the similarity, expected a finite number"),
        ("a| |c|d|e|f|1\n", "line 1: found no verb between 'a' and 'c'"),
        ("\n", "found no pairs of events"),
    ],
)
def test_pairs_that_are_wrong_are_named(tmp_path: Path, content: str, match: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(DataError, match=match):
        read_similarity(tmp_path / "a.txt")


START = "a|b|c\nHOLDOUT_SEP\na|b|c\n"


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (START + "DOC_SEP\n", "line 4: found DOC_SEP, expected events, or NEG_SEP"),
        (START + "NEG_SEP\nDOC_SEP\n", "line 5: found an item of 1 events, 1 taken out and 0 wrong ones"),
        (START + "a|b|c\nNEG_SEP\na|b|c\nDOC_SEP\n", "line 7: found an item of 1 events, 2 taken out"),
        (START + "NEG_SEP\na|b\n", "line 5: found 'a.b', expected subject"),
        (START, "line 3: found an item of 1 events, 1 taken out and 0 wrong ones"),
        ("\n", "found no items"),
    ],
)
def test_narratives_that_are_wrong_are_named(tmp_path: Path, content: str, match: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(DataError, match=match):
        read_mcnc(tmp_path / "a.txt")
