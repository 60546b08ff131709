"""Axes and markup."""

from __future__ import annotations

import math
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.report.charts import Axis, Bars, padded_range
from ssdvae.report.pictures import Picture
from ssdvae.report.render import Cell, Name, Table, breakable
from tests.report.conftest import render_block

RANGES = st.tuples(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3)).map(lambda x: (x[0], x[0] + x[1]))


@given(RANGES)
def test_ticks_are_round_and_inside(ends: tuple[float, float]) -> None:
    axis = Axis("", *ends)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 7
    assert all(-1e-6 <= axis.share(tick) <= 1 + 1e-6 for tick in ticks)
    # Equally far apart, by a step whose first digit is 1, 2 or 5.
    steps = [b - a for a, b in pairwise(ticks)]
    assert max(steps) == pytest.approx(min(steps), rel=1e-3)
    step = steps[0] / 10.0 ** math.floor(math.log10(steps[0]) + 1e-6)
    assert min(abs(step - digit) for digit in (1, 2, 5)) < 1e-3


@given(st.floats(0.05, 500))
def test_the_square_root_scale(high: float) -> None:
    axis = Axis("", 0, high, root=True)
    assert axis.share(high / 4) == pytest.approx(1 / 2)
    places = [axis.share(tick) for tick in axis.ticks()]
    assert places[0] == 0
    assert len(places) >= 3
    assert all(b - a >= 0.09 - 1e-9 for a, b in pairwise(places))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_a_range_holds_its_values(values: list[float]) -> None:
    low, high = padded_range(values)
    assert low < min(values) <= max(values) < high


class Reader(HTMLParser):
    """Reads HTML as a browser does: tags and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(str(text))
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((name, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


# A parser makes one line end of all kinds, and something else of NUL.
TEXT = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]))


@given(TEXT, TEXT)
def test_text_stays_text(text: str, value: str) -> None:
    read = Reader(render_block(Table(value, [text], [[Cell(text, title=value)]])))
    assert read.text.count(text) >= 2
    assert [name for name, _ in read.tags][:3] == ["div", "table", "caption"]
    assert read.tags[0][1]["aria-label"] == value
    assert [values["title"] for name, values in read.tags if name == "span"] == [value] * bool(value)
    assert Reader(breakable(text)).text == text
    assert Reader(render_block(Name(text, href=value or "#"))).text.strip("\n") == text.strip("\n")


def test_a_variable_of_one_value_has_a_bar_without_width() -> None:
    drawing = Bars("nothing", [("run", [("said", 0.0), ("left", 0.0)])], "nats")
    assert "nan" not in Picture(drawing).svg().lower()
