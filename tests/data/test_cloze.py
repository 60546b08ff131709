"""Cloze files: what is written is read, all else is refused in words."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data.events import MISSING
from ssdvae.data.items import ClozeItem, Script, read_cloze, writable, write_cloze
from ssdvae.io.errors import DataError, UserError

ODD = st.sampled_from(["None", "none", "<tup", "TUP", "_NULL", "<unk>", "“", "\ufeff", "ß", "\u2028"])
WORDS = (st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5) | ODD).filter(writable)
EVENTS = st.tuples(WORDS, WORDS, WORDS, WORDS)


@st.composite
def item_lists(draw: st.DrawFn) -> list[ClozeItem]:
    events, options = draw(st.integers(2, 4)), draw(st.integers(2, 4))

    def sequels(size: int) -> st.SearchStrategy[Script]:
        return st.lists(EVENTS, min_size=size, max_size=size).map(tuple)

    distractors = st.lists(sequels(events - 1), min_size=options - 1, max_size=options - 1).map(tuple)
    return draw(st.lists(st.builds(ClozeItem, sequels(events), distractors), min_size=1, max_size=3))


# Files.


@given(item_lists(), st.sampled_from(["a.txt", "a.txt.gz"]))
def test_what_was_written_is_read(items: list[ClozeItem], name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        assert write_cloze(path, iter(items)) == len(items)
        assert read_cloze(path) == items


LINE = "ran she _NULL_ in <TUP> sat _NULL_ _NULL_ _NULL_ <DIST> won None 3 of <DIST> Ate <x> he _null_\n"
RAN, SAT = ("ran", "she", MISSING, "in"), ("sat", MISSING, MISSING, MISSING)
WON, ATE = ("won", MISSING, "3", "of"), ("Ate", "<x>", "he", MISSING)


def test_the_public_format_is_read(tmp_path: Path) -> None:
    expected = ClozeItem((RAN, SAT), ((WON,), (ATE,)))
    assert expected.seed == RAN
    assert expected.options == ((SAT,), (WON,), (ATE,))
    for number, text in enumerate(
        (
            LINE * 2,
            "\ufeff" + LINE + "\n \n" + LINE.replace("<TUP>", "<tup>").replace("<DIST>", " <dist> "),
            LINE.replace("\n", "\r\n") + LINE.rstrip(),
        )
    ):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(text.encode())
        assert read_cloze(path) == [expected, expected]
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(LINE.encode()))
    assert read_cloze(tmp_path / "a.txt.gz") == [expected]
    write_cloze(tmp_path / "again.txt", [expected])
    assert (tmp_path / "again.txt").read_text() == LINE.replace("None", "_NULL_").replace("_null_", "_NULL_")


EVENT = "a b c d"
FIRST = f"{EVENT} <TUP> {EVENT} <TUP> {EVENT} <DIST> {EVENT} <TUP> {EVENT} <DIST> {EVENT} <TUP> {EVENT}"
PAIR = f"{EVENT} <TUP> {EVENT}"


@pytest.mark.parametrize(
    ("bad", "found", "expected"),
    [
        (EVENT, "1 option", "at least 2"),
        (f"{FIRST} <DIST> {PAIR}", "4 options", "3, as in the first item"),
        (f"{PAIR} <TUP> {EVENT} <DIST> {PAIR}", "2 options", "3, as in the first item"),
        (f"{PAIR} <DIST> {EVENT} <DIST> {EVENT}", "2 events in option 1", "3, as in the first item"),
        (f"{EVENT} <DIST> {EVENT}", "1 events in option 1", "at least 2"),
        (f"{FIRST} <TUP> {EVENT}", "3 events in option 3", "2: option 1 has 3, with the seed"),
        (FIRST.replace(f"<DIST> {PAIR}", f"<DIST> {EVENT}", 1), "1 events in option 2", "2: option 1 has 3"),
        (f"{FIRST} e", "5 words in event 2 of option 3, 'a b c d e'", "4 words: verb subj obj mod"),
        (f"{FIRST} <TUP>", "0 words in event 3 of option 3, ''", "4 words"),
        (f"{FIRST} <DIST>", "0 words in event 1 of option 4, ''", "4 words"),
        ("a b c", "3 words in event 1 of option 1, 'a b c'", "4 words"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: str, found: str, expected: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{FIRST}\n\n{bad}\n{FIRST}\n")
    with pytest.raises(DataError) as caught:
        read_cloze(path)
    assert (caught.value.path, caught.value.line, caught.value.found) == (path, 3, found)
    assert caught.value.expected.startswith(expected)


@pytest.mark.parametrize("text", ["", "\n \n\n"])
def test_a_file_without_items_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(UserError, match=r"a\.txt: found no cloze items, expected one on each line"):
        read_cloze(tmp_path / "a.txt")
    with pytest.raises(UserError, match=r"cannot read .*no such file"):
        read_cloze(tmp_path / "b.txt")


PIECES = st.sampled_from(
    ["<TUP>", "<DIST>", "_NULL_", "a b c d", "a", "\n", FIRST, FIRST + "\n", "\r", "\x85"]
)


@given(st.binary(max_size=60) | st.lists(PIECES, max_size=12).map(lambda p: " ".join(p).encode()))
def test_any_bytes_are_items_or_a_user_error(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path, again = Path(folder, "a.txt"), Path(folder, "b.txt")
        path.write_bytes(content)
        try:
            items = read_cloze(path)
        except UserError:
            return
        write_cloze(again, items)
        assert read_cloze(again) == items


@pytest.mark.parametrize("word", ["", "as of", "<TUP>", "<dist>", "_Null_", "\ufeffa", "a\n"])
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path, word: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    good = ClozeItem((RAN, SAT), ((WON,),))
    for bad in (
        ClozeItem((RAN, SAT), (((word, "a", "b", "c"),),)),
        ClozeItem((RAN, SAT, SAT), ((WON, WON),)),
    ):
        with pytest.raises(UserError, match=r"cannot write item 2 to .*a\.txt"):
            write_cloze(path, [good, bad])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
