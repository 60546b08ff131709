"""Columns: what is kept is read again, bins hold as many numbers each, and names say what is in them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdvae.data.columns import XES, Bins, Columns, columns_of, find_places, no_column, word_of
from ssdvae.data.options import PrepareOptions
from ssdvae.data.readers.tables import sort_rows
from ssdvae.io.errors import DataError, Malformed, UserError
from ssdvae.io.files import stop_at_first_error
from ssdvae.io.records import parse

NAMES = st.text("abcXYZ:_ é", min_size=1, max_size=6).map(str.strip).filter(bool)
NUMBERS = st.floats(-1e9, 1e9) | st.integers(-5, 5).map(float)
EDGES = st.lists(NUMBERS, max_size=5, unique=True).map(lambda edges: tuple(sorted(edges)))


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    names = draw(
        st.lists(NAMES, min_size=2, max_size=6, unique_by=lambda name: "_".join(name.lower().split()))
    )
    case, head, *rest = names
    bins = {name: draw(EDGES) for name in rest if draw(st.booleans())}
    time, label = draw(st.none() | NAMES), draw(st.none() | NAMES)
    return Columns(case=case, head=head, time=time, arguments=tuple(rest), label=label, bins=bins)


@given(columns())
def test_columns_are_kept_as_they_are(mine: Columns) -> None:
    assert parse(Columns, json.loads(mine.model_dump_json())) == mine
    assert len(mine.slots) == 1 + len(mine.arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"case": 3}, "3 at columns.case"),
        ({"head": ""}, "without a name"),
        ({"arguments": "agent"}, "'agent' at columns.arguments"),
        ({"bins": {"amount": [2.0, 1.0]}}, "rising order"),
        ({"bins": {"price": [1.0]}}, "bins of 'price'.*one of the arguments: agent, amount"),
        ({"gaps": True, "time": None}, "--time"),
        ({"arguments": ["agent", "Agent"]}, "the slot Agent twice"),
    ],
)
def test_a_record_that_nobody_wrote_is_refused(change: dict[str, Any], message: str) -> None:
    known = {"case": "ticket", "head": "action", "time": "when", "arguments": ["agent", "amount"]}
    with pytest.raises(Malformed, match=message):
        parse(Columns, {**known, **change}, "columns")


def test_slots_are_called_like_columns_as_far_as_they_can() -> None:
    mine = Columns(case="t", head="Event Name", time="w", arguments=("id", "a,b", "org:resource"), gaps=True)
    assert mine.slots == ("Event_Name", "id_", "a_b", "org:resource", "gap")


def test_settings_name_the_columns() -> None:
    assert columns_of(PrepareOptions(), log=False) is None
    assert columns_of(PrepareOptions(), log=True) == XES
    asked = PrepareOptions(case="t", head="a", arguments="x, y", label="l", bin="y=3")
    assert columns_of(asked, log=False) == Columns(case="t", head="a", arguments=("x", "y"), label="l")
    assert asked.bins == {"y": 3}
    mine = columns_of(PrepareOptions(label="stage", gaps=True), log=True)
    assert mine is not None
    assert (mine.label, mine.gaps, mine.time, mine.head) == ("stage", True, XES.time, XES.head)
    for wrong, message in [
        ({"bin": "y"}, r"--bin: found 'y', expected a column and its number of bins"),
        ({"bin": "y=1"}, "2 to 1000"),
        ({"bin": "z=4"}, r"one of --arguments \(x, y\)"),
        ({"arguments": "x,x"}, "each column once"),
        ({"arguments": "x,a"}, r"other columns than --head \(a\)"),
    ]:
        with pytest.raises(UserError, match=message):
            PrepareOptions(**{"case": "t", "head": "a", "arguments": "x,y", **wrong})  # type: ignore[arg-type]
    with pytest.raises(Malformed, match="no --head"):
        columns_of(PrepareOptions(case="t"), log=False)


def quantile_edges(numbers: list[float], count: int) -> tuple[float, ...]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        path.write_text("case,head,amount\n" + "".join(f"a,b,{number!r}\n" for number in numbers))
        columns = Columns(case="case", head="head", arguments=("amount",))
        binned = frozenset({"amount"})
        with sort_rows(path, "csv", columns, stop_at_first_error, binned=binned) as rows:
            return rows.edges({"amount": count})["amount"]


@settings(max_examples=50, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=60), st.integers(2, 8))
def test_bins_hold_as_many_numbers_each(numbers: list[float], count: int) -> None:
    edges = quantile_edges(numbers, count)
    assert list(edges) == sorted(set(edges))
    assert len(edges) < count
    held = Counter(np.searchsorted(edges, numbers, side="right").tolist())
    assert set(held) == set(range(len(edges) + 1)), "no bin is empty"
    commonest = max(Counter(numbers).values())
    for bin in range(len(edges)):
        # No edge could come sooner: without the numbers that its last number equals, a bin has too few.
        assert held[bin] < len(numbers) / count + commonest
    if len(set(numbers)) == len(numbers) and len(numbers) % count == 0:
        assert set(held.values()) == {len(numbers) // count}


@given(EDGES, NUMBERS)
def test_the_word_of_a_bin_says_where_its_numbers_are(edges: tuple[float, ...], number: float) -> None:
    bins = Bins("amount", edges)
    assert len(set(bins.words)) == len(bins.words) == len(edges) + 1
    word = bins[number].removeprefix("amount:")
    if not edges:
        assert word == "any"
    elif word.startswith("<"):
        assert number < edges[0]
        assert float(word[1:]) == pytest.approx(edges[0], rel=0.006)
    elif word.startswith("≥"):
        assert number >= edges[-1]
    else:
        low, high = map(float, word.split("–"))
        place = bins.words.index(bins[number])
        assert edges[place - 1] <= number < edges[place]
        assert (low, high) == pytest.approx((edges[place - 1], edges[place]), rel=0.006)


def test_names_of_bins_can_be_read() -> None:
    assert Bins("amount", (12.5, 40.0)).words == ["amount:<12.5", "amount:12.5–40", "amount:≥40"]
    assert Bins("n", (12345678.9, 23456789.1)).words[1] == "n:12300000–23500000"
    assert Bins("n", (1.0001, 1.0002)).words[1] == "n:1.0001–1.0002"


def test_a_column_that_is_not_there() -> None:
    there = ["ticket", "When", "action"]
    assert find_places(Path("f"), ["action", "ticket", "stage"], there, optional=["stage"]) == [2, 0, -1]
    with pytest.raises(
        DataError, match=r"no column 'acton'.*there: ticket, When, action\ndid you mean 'action'"
    ):
        find_places(Path("f"), ["acton"], there, ())
    with pytest.raises(DataError, match="did you mean 'When'"):
        find_places(Path("f"), ["when"], there, ())
    assert "parted by commas" in str(no_column(Path("f"), None, "action", ["ticket action when"]))
    with pytest.raises(DataError, match="2 columns 'a'"):
        find_places(Path("f"), ["a"], ["a", "a "], ())


@pytest.mark.parametrize(
    ("value", "word"),
    [("a b", "a b"), ("", None), (None, None), (3, "3"), (2.5, "2.5"), (True, "true"), (float("nan"), None)],
)
def test_cells_become_words(value: Any, word: str | None) -> None:
    assert word_of(value, "x") == word


@pytest.mark.parametrize("value", [["a"], {"a": 1}, b"\xff"])
def test_what_is_no_word_is_refused(value: Any) -> None:
    with pytest.raises(Malformed, match="under 'x'"):
        word_of(value, "x")
