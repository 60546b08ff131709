"""Markdown, LaTeX and CSV of a table carry the same numbers, whatever its names are."""

from __future__ import annotations

import csv
import io
import re
import statistics
from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.evaluation.summary import Spread, digits
from ssdvae.paper.figures import paper_figures
from ssdvae.paper.render import NOTHING, Figure, Table, csv_text, html, latex, markdown

HOSTILE = r"a|b & 50% of $x_1$ {\input{/etc/passwd}} #1 ~ ^ \\ [2em] <script> “ε” été 中 *"
words = st.text(max_size=20) | st.just(HOSTILE)
values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5)
figures = st.one_of(
    st.none(),
    st.builds(Figure.from_spread, values.map(lambda v: Spread(tuple(v))), st.integers(0, 4)),
    st.sampled_from(paper_figures()).map(Figure.from_paper),
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names, columns = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    rows = draw(
        st.lists(
            st.tuples(st.tuples(*[words] * names), st.tuples(*[figures] * columns)), min_size=1, max_size=4
        )
    )
    head = draw(st.tuples(*[words] * (names + columns)))
    return Table("name", draw(words), head, tuple(rows), draw(words))


@given(values)
def test_mean_and_deviation_are_those_of_a_sample(numbers: list[float]) -> None:
    spread = Spread(tuple(numbers))
    figure = Figure.from_spread(spread, 3)
    assert figure is not None
    assert figure.mean == statistics.mean(numbers)
    expected = statistics.stdev(numbers) if len(numbers) > 1 else None
    assert figure.deviation == expected
    parts = [f"{x:.3f}" for x in (figure.mean, figure.deviation) if x is not None]
    assert figure.text == " ± ".join(parts)


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
        [c.strip().replace(r"$\pm$", "±").replace("--", NOTHING) for c in row[table.names :]] for row in cells
    ]
    assert [[x.replace("{-}", "-") for x in row] for row in shown] == wanted

    (*_,), *records = csv.reader(io.StringIO(csv_text(table)))
    for (row_names, row_figures), record in zip_longest(table.rows, records):
        assert record[: table.names] == [" ".join(name.split()) for name in row_names]
        for figure, mean, deviation in zip_longest(
            row_figures, record[table.names :: 2], record[table.names + 1 :: 2]
        ):
            if figure is None:
                assert (mean, deviation) == ("", "")
            else:
                assert float(mean) == figure.mean
                assert (float(deviation) if deviation else None) == figure.deviation


SPECIAL = re.compile(r"\\[&%$#_{}]")


@given(tables())
def test_no_name_is_taken_for_latex(table: Table) -> None:
    """All is ASCII, braces and dollars come in pairs, and no line of the table begins an option."""
    text = latex(table)
    assert text.isascii()
    plain = SPECIAL.sub("", text.replace(r"\\", ""))
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert not re.search(r"[#%]", plain)
    for line in text.split(r"\hline")[2].splitlines():
        assert not line.lstrip().startswith(("[", "*"))
    commands = set(re.findall(r"\\([a-z]+)", plain))
    ssdvae_row = {
        "begin",
        "end",
        "centering",
        "hline",
        "caption",
        "label",
        "linewidth",
        "pm",
        "varepsilon",
        "leq",
        "geq",
    }
    assert commands <= ssdvae_row | {
        f"text{x}" for x in ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar")
    }


def test_hostile_names_stay_names() -> None:
    table = Table("t", HOSTILE, (HOSTILE, "x"), (((HOSTILE,), (Figure(1.5, None, "1.5"),)),), HOSTILE)
    text = latex(table)
    assert r"a\textbar{}b \& 50\% of \$x\_1\$ \{\textbackslash{}input\{/etc/passwd\}\} \#1" in text
    assert r"{[}2em{]} \textless{}script\textgreater{} ``$\varepsilon$'' ete ? {*}" in text
    assert "<script>" not in html(table)
    assert r"a\|b" in markdown(table)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [("ppl_bound", 2), ("cloze_nll", 3), ("frame_f1", 3), ("step_best", 0), ("attention_verbs", 3)],
)
def test_digits(figure: str, expected: int) -> None:
    assert digits(figure) == expected
