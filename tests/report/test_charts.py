"""Axes and markup."""

from __future__ import annotations

import math
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.report.charts import Axis, bars, padded_range
from ssdvae.report.html import Html, breakable, join, tag

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
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((name, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


# A parser makes one line end of all kinds, and something else of NUL.
TEXT = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]))


@given(TEXT, TEXT)
def test_text_stays_text(text: str, value: str) -> None:
    read = Reader(tag("p", text, tag("i", value), title=value))
    assert read.text == text + value
    assert [name for name, _ in read.tags] == ["p", "i"]
    assert read.tags[0][1]["title"] == value
    assert Reader(tag("p", breakable(text))).text == text


def test_only_markup_is_left_as_it_is() -> None:
    assert join(["<b>", Html("<i>"), None]) == "&lt;b&gt;<i>"
    assert (
        tag("g", None, class_="a", aria_label=None, hidden=True, x=1.25) == '<g class="a" hidden x="1.2"></g>'
    )


def test_a_variable_of_one_value_has_a_bar_without_width() -> None:
    assert "NaN" not in bars("nothing", [("run", [("said", 0.0), ("left", 0.0)])], "nats").svg()
