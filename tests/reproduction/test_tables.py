"""Markdown, LaTeX and CSV of a table carry the same numbers, whatever its names are."""

from __future__ import annotations

import csv
import io
import math
import re
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.evaluation.summary import Spread
from ssdvae.evaluation.task import Figure
from ssdvae.report.page import write_page
from ssdvae.report.render import Section
from ssdvae.reproduction.paper import published_figures
from ssdvae.reproduction.reproduce import blocks
from ssdvae.reproduction.results import figure_named
from ssdvae.reproduction.tables import NOTHING, Number, Table, csv_text, latex, markdown

HOSTILE = r"a|b & 50% of $x_1$ {\input{/etc/passwd}} #1 ~ ^ \\ [2em] <script> “ε” été 中 *"
words = st.text(max_size=20) | st.just(HOSTILE)
values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5)
figures = st.builds(lambda digits: Figure("x", "x", digits=digits), st.integers(0, 4))
numbers = st.one_of(
    st.none(),
    st.builds(Number.from_spread, st.builds(Spread, values.map(tuple), st.sampled_from(["", " †"])), figures),
    st.sampled_from(published_figures().figures).map(Number.from_paper),
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names, columns = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    rows = draw(
        st.lists(
            st.tuples(st.tuples(*[words] * names), st.tuples(*[numbers] * columns)), min_size=1, max_size=4
        )
    )
    head = draw(st.tuples(*[words] * (names + columns)))
    return Table("name", draw(words), head, tuple(rows), draw(words))


@given(values)
def test_mean_and_deviation_are_those_of_a_sample(numbers: list[float]) -> None:
    """n·mean = Σ x and (n − 1)·deviation² = Σ (x − mean)², in fractions; and what is shown is near enough."""
    figure = Number.from_spread(Spread(tuple(numbers)), Figure("x", "x", digits=3))
    assert figure is not None
    exact, n = [Fraction(x) for x in numbers], len(numbers)
    mean = sum(exact) / n
    assert figure.mean == pytest.approx(float(mean), rel=1e-12, abs=1e-300)
    shown = [float(part) for part in figure.text.split(" ± ")]
    assert shown[0] == pytest.approx(figure.mean, abs=0.00051)
    if n == 1:
        assert figure.deviation is None
        assert len(shown) == 1
    else:
        variance = float(sum((x - mean) ** 2 for x in exact) / (n - 1))
        assert figure.deviation == pytest.approx(math.sqrt(variance), rel=1e-9)
        assert shown[1] == pytest.approx(figure.deviation, abs=0.00051)


@given(tables())
def test_the_numbers_are_the_same_in_all_formats(table: Table) -> None:
    wanted = [[NOTHING if f is None else f.text for f in row_figures] for _, row_figures in table.rows]

    body = markdown(table).split("\n\n")[1].splitlines()
    lines = [re.split(r"(?<!\\)(?:\\\\)*\|", line) for line in body]
    assert {len(line) for line in lines} == {len(table.head) + 2}
    assert [[x.strip() for x in line[1 + table.names : -1]] for line in lines[2:]] == wanted

    inside = latex(table).split(r"\hline")
    rows = [row.removesuffix(r"\\").strip() for row in inside[2].strip().splitlines()]
    cells = [re.split(r"(?<!\\)&", row) for row in rows]
    assert {len(row) for row in cells} == {len(table.head)}
    shown = [
        [
            c.strip().replace(r"$\pm$", "±").replace(r"\dag{}", "†").replace("--", NOTHING)
            for c in row[table.names :]
        ]
        for row in cells
    ]
    assert [[x.replace("{-}", "-") for x in row] for row in shown] == wanted

    head, *records = csv.reader(io.StringIO(csv_text(table)))
    columns = zip(*(row_figures for _, row_figures in table.rows), strict=True)
    marked = [any(f is not None and f.mark for f in column) for column in columns]
    for (row_names, row_figures), record in zip_longest(table.rows, records):
        assert len(record) == len(head)
        assert record[: table.names] == [" ".join(name.split()) for name in row_names]
        rest = iter(record[table.names :])
        for figure, has_marks in zip(row_figures, marked, strict=True):
            mean, deviation, mark = next(rest), next(rest), next(rest) if has_marks else ""
            if figure is None:
                assert (mean, deviation, mark) == ("", "", "")
            else:
                assert float(mean) == figure.mean
                assert (float(deviation) if deviation else None) == figure.deviation
                assert mark == figure.mark.strip()
        assert not list(rest)


SPECIAL = re.compile(r"\\[&%$#_{}]")


@given(tables())
def test_no_name_is_taken_for_latex(table: Table) -> None:
    """Braces and dollars come in pairs, and no line of the table begins an option."""
    text = latex(table)
    plain = SPECIAL.sub("", text.replace(r"\\", ""))
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert not re.search(r"[#%]", plain)
    for line in text.split(r"\hline")[2].splitlines():
        assert not line.lstrip().startswith(("[", "*"))
    commands = set(re.findall(r"\\([a-z]+)", plain))
    ours = {
        "begin",
        "end",
        "centering",
        "hline",
        "caption",
        "label",
        "linewidth",
        "pm",
        "dag",
        "varepsilon",
        "leq",
        "geq",
    }
    assert commands <= ours | {
        f"text{x}" for x in ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar")
    }


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    table = Table("t", HOSTILE, (HOSTILE, "x"), (((HOSTILE,), (Number(1.5, None, "1.5"),)),), HOSTILE)
    text = latex(table)
    assert r"a\textbar{}b \& 50\% of \$x\_1\$ \{\textbackslash{}input\{/etc/passwd\}\} \#1" in text
    assert r"{[}2em] \textless{}script\textgreater{} ``$\varepsilon$'' été 中 {*}" in text
    page = write_page(tmp_path / "page.html", HOSTILE, HOSTILE, [Section("t", HOSTILE, blocks(table))])
    shown = page.read_text(encoding="utf-8")
    assert "[2em] &lt;script&gt;" in shown
    assert "[2em] <script>" not in shown
    assert r"a\|b" in markdown(table)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [("ppl_bound", 2), ("cloze_nll", 3), ("frame_f1", 3), ("step_best", 0), ("attention_verbs", 3)],
)
def test_digits(figure: str, expected: int) -> None:
    assert figure_named(figure).digits == expected
    below = -0.1 * 10.0**-expected
    assert figure_named(figure).text(below) == figure_named(figure).text(0.0)
