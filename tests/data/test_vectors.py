"""Word vectors: every word asked for gets its own row, and a broken row is named."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ssdvae.data.vectors import Vectors, read_vectors, words_of_vectors
from ssdvae.io.errors import DataError, UserError

# Vectors are told from a word with spaces only by counting, so a number must not be part of a word here.
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp", "N"]), min_size=1, max_size=5)
WORDS = WORDS.filter(lambda word: word.lower().lstrip("+-") not in ("nan", "inf"))
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def tables(
    least: int = 3, words: st.SearchStrategy[str] = WORDS
) -> st.SearchStrategy[dict[str, list[float]]]:
    """Words and their vectors, all of one length."""
    return st.integers(2, 5).flatmap(
        lambda size: st.dictionaries(
            words, st.lists(FLOATS, min_size=size, max_size=size), min_size=least, max_size=8
        )
    )


def rows(table: dict[str, list[float]]) -> list[bytes]:
    return [" ".join([word, *map(repr, vector)]).encode() for word, vector in table.items()]


def pack(name: str, text: bytes) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(text)
    if name.endswith(".zip"):
        with zipfile.ZipFile(sink := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("folder/", b"")
            archive.writestr("folder/vectors.txt", text)
        return sink.getvalue()
    return text


def read(lines: list[bytes], words: list[str], name: str = "v.txt", end: bytes = b"\n") -> Vectors:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(pack(name, b"".join(line + end for line in lines)))
        return read_vectors(path, words)


@given(
    tables(),
    st.lists(WORDS),
    st.booleans(),
    st.sampled_from(["v.txt", "v.vec", "v.txt.gz", "v.zip"]),
    st.sampled_from([b"\n", b"\r\n", b" \n"]),
    st.randoms(use_true_random=False),
)
def test_each_word_gets_its_row(
    table: dict[str, list[float]], others: list[str], header: bool, name: str, end: bytes, random: Random
) -> None:
    words = [*table, *others]
    random.shuffle(words)
    size = len(next(iter(table.values())))
    lines = [b"%d %d" % (len(table), size)] * header + rows(table)
    vectors = read(lines, words, name, end)
    assert vectors.matrix.shape == (len(words), size)
    assert vectors.matrix.dtype == np.float32
    for word, row, found in zip(words, vectors.matrix, vectors.found, strict=True):
        expected = table.get(word, table.get(word.lower()))
        assert found == (expected is not None)
        assert row.tolist() == (expected or [0.0] * size)
    assert vectors.coverage == sum(vectors.found) / len(words)


@given(tables(words=PHRASES))
def test_words_with_spaces_are_told_from_their_numbers(table: dict[str, list[float]]) -> None:
    size = len(next(iter(table.values())))
    lines = [b"%d %d" % (len(table), size), *rows(table)]
    # Also asked for: the beginnings of the phrases, which must not be given the vectors of the phrases.
    heads = [phrase.split()[0] for phrase in table]
    words = [*table, *heads]
    vectors = read(lines, words)
    for word, row in zip(words, vectors.matrix, strict=True):
        assert row.tolist() == table.get(word, table.get(word.lower(), [0.0] * size))


def test_a_few_words_with_spaces_need_no_header() -> None:
    vectors = read([b". . . 1 2", b"the 3 4", b". 5 6"], [".", "the", ". . ."])
    assert vectors.matrix.tolist() == [[5, 6], [3, 4], [1, 2]]


def test_the_exact_word_goes_before_its_lower_case_and_the_first_row_before_the_second() -> None:
    vectors = read([b"us 1 1", b"US 2 2", b"us 3 3", b"US 4 4"], ["US", "Us", "us", "us", "x"])
    assert vectors.matrix.tolist() == [[2, 2], [1, 1], [1, 1], [1, 1], [0, 0]]
    assert vectors.found.tolist() == [True] * 4 + [False]
    assert read([b"us 1 1", b"x 2 2"], ["US"]).matrix.tolist() == [[1, 1]]


def test_a_header_is_no_word() -> None:
    vectors = read([b"2 1", b"the 5", b"a 6"], ["2", "the"])
    assert vectors.matrix.tolist() == [[0], [5]]


def test_a_byte_order_mark_is_no_part_of_the_first_word() -> None:
    assert read([b"\xef\xbb\xbfthe 1 2", b"a 1 2"], ["the"]).coverage == 1


BROKEN = [
    ("fewer", lambda word, vector: [word, *vector[1:]], "1 numbers|2 numbers|3 numbers|4 numbers"),
    ("more", lambda word, vector: [word, "0.5", *vector], "numbers for"),
    ("word", lambda word, vector: [word, *vector[:-1], "1.2.3"], "'1.2.3', expected a number"),
    ("nan", lambda word, vector: [word, *vector[:-1], "nan"], "nan as number"),
    ("inf", lambda word, vector: [word, *vector[:-1], "-inf"], "-inf as number"),
    ("large", lambda word, vector: [word, *vector[:-1], "1e39"], "1e39 as number"),
]


@pytest.mark.parametrize(("kind", "breaking", "message"), BROKEN, ids=[kind for kind, _, _ in BROKEN])
@settings(max_examples=20)
@given(table=tables(), header=st.booleans(), data=st.data())
def test_a_broken_row_is_named_if_it_is_wanted(
    kind: str,
    breaking: object,
    message: str,
    table: dict[str, list[float]],
    header: bool,
    data: st.DataObject,
) -> None:
    assert callable(breaking)
    place = data.draw(st.integers(0, len(table) - 1))
    size = len(next(iter(table.values())))
    lines = rows(table)
    word, *vector = lines[place].decode().split(" ")
    lines[place] = " ".join(breaking(word, vector)).encode()
    lines = [b"%d %d" % (len(table), size)] * header + lines
    with pytest.raises(DataError, match=message) as caught:
        read(lines, list(table))
    assert caught.value.line == place + 1 + header
    # Nobody asked for it: nobody is troubled.
    rest = [other for other in table if word not in (other, other.lower())]
    assume(rest)
    assert read(lines, rest).coverage == 1


def test_a_file_without_use_is_refused(tmp_path: Path) -> None:
    for lines, message in [
        ([], "found no vectors"),
        ([b"", b" "], "found no vectors"),
        ([b"the", b"a"], "line 1: found a word without numbers"),
        ([b"le 1 2", b"la 1 2"], "none of the 1 words(?s:.*)language"),
        ([b"1 999999999", b"la 1 2"], "found 999,999,999 numbers for each word, expected at most"),
    ]:
        with pytest.raises(UserError, match=message):
            read(lines, ["the"])
    assert read([b"le 1 2"], []).matrix.shape == (0, 2)
    with pytest.raises(UserError, match="no such file"):
        read_vectors(tmp_path / "none.txt", ["the"])
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.50d.txt", "the 1\n")
        archive.writestr("a.100d.txt", "the 1\n")
    with pytest.raises(DataError, match=r"2 files \(a\.50d\.txt, a\.100d\.txt\), expected one file"):
        read_vectors(tmp_path / "two.zip", ["the"])


Edit = tuple[float, int, bytes]
TEXT = b"3 2\nthe 1 2\na b 3 4\n. -1e3 .5\n"


@settings(max_examples=150)
@given(
    st.sampled_from(["v.txt", "v.gz", "v.zip"]),
    st.binary(max_size=100)
    | st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5), st.binary(max_size=4)), min_size=1, max_size=3),
    st.booleans(),
)
def test_any_bytes_are_read_or_refused_in_words(name: str, change: bytes | list[Edit], inside: bool) -> None:
    content = TEXT if inside else pack(name, TEXT)
    for place, length, piece in change if isinstance(change, list) else [(0.0, len(content), change)]:
        start = int(place * len(content))
        content = content[:start] + piece + content[start + length :]
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(pack(name, content) if inside else content)
        try:
            vectors = read_vectors(path, ["the", "."])
        except UserError:
            return
        assert np.isfinite(vectors.matrix).all()
        assert vectors.found.any()


def test_the_words_of_a_file_are_those_that_have_vectors(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("3 2\nthe 1 2\nnew york 3 4\nthe 5 6\n")
    words = words_of_vectors(path)
    assert words == ["the", "new york"]
    assert read_vectors(path, words).matrix.tolist() == [[1, 2], [3, 4]]
