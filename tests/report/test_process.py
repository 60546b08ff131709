"""The process of a log on the page: where its graph is drawn, and what it says."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from ssdvae.data.process import Activity, Edge, Process, Variant
from ssdvae.inference.surprisal import find_anomalies, score_documents
from ssdvae.report.cases import UNUSUAL, cases_ahead, unusual_cases
from ssdvae.report.layout import lay_out
from ssdvae.report.pictures import Picture
from ssdvae.report.process import DRAWN, ProcessGraph, process_section
from tests.report.conftest import render_block
from tests.toys import named_documents, toy_documents, toy_exact

EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30, unique=True)


@given(EDGES)
def test_nodes_do_not_touch_and_edges_go_from_row_to_row(edges: list[tuple[int, int]]) -> None:
    layout = lay_out(9, edges, node=1.0, bend=0.3)
    for row in range(10):
        places = sorted(x for x, y in layout.places if y == row)
        assert all(b - a >= 1 - 1e-6 for a, b in pairwise(places))
    assert all(row < layout.places[-1][1] for _, row in layout.places[:-1])
    for (source, target), route in layout.routes.items():
        assert (route[0], route[-1]) == (layout.places[source], layout.places[target])
        rows = [row for _, row in route]
        step = 1 if rows[-1] > rows[0] else -1
        assert rows == list(range(rows[0], rows[-1] + step, step))
    assert set(layout.routes) == {edge for edge in edges if edge[0] != edge[1]}


def test_edges_that_come_first_lead_down() -> None:
    layout = lay_out(4, [(0, 1), (1, 2), (2, 0), (2, 3)])
    assert [row for _, row in layout.places] == [0, 1, 2, 3]


def process_of(traces: list[list[int]]) -> Process:
    """The process of some cases, by enumeration."""
    count = 1 + max(map(max, traces))
    pairs = [pair for trace in traces for pair in pairwise(trace)]
    return Process(
        cases=len(traces),
        activities=[
            Activity(
                name=f"<b>activity {n}",
                count=sum(trace.count(n) for trace in traces),
                starts=sum(trace[0] == n for trace in traces),
                ends=sum(trace[-1] == n for trace in traces),
            )
            for n in range(count)
        ],
        edges=[
            Edge(source=a, target=b, count=pairs.count((a, b)), seconds=60.0) for a, b in sorted(set(pairs))
        ],
        variants=len({tuple(trace) for trace in traces}),
        top_variants=[Variant(activities=traces[0], count=1, seconds=60.0)],
        mean_seconds=60.0,
        percentiles=[60.0] * 101,
    )


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 35), min_size=1, max_size=12), min_size=1, max_size=15))
def test_every_drawn_activity_is_on_a_shown_path_from_the_start_to_the_end(traces: list[list[int]]) -> None:
    # Numbers without gaps, as in a log.
    number = {name: n for n, name in enumerate(sorted({name for trace in traces for name in trace}))}
    process = process_of([[number[name] for name in trace] for trace in traces])
    graph = ProcessGraph("", process)
    nodes, paths = graph.shapes
    assert len(nodes) == min(DRAWN, len(process.activities)) + 2
    if len(process.activities) <= DRAWN:
        shown = {(path.source, path.target) for path in paths if not path.hidden}
        start, end = len(nodes) - 2, len(nodes) - 1
        assert reached(shown, start) == reached({(b, a) for a, b in shown}, end) == set(range(len(nodes)))
    boxes = [path.at for path in paths if path.at]
    assert len(set(boxes)) == len(boxes)
    assert all(0 <= node.x <= graph.width and 0 <= node.y <= graph.height for node in nodes)
    page = "".join(map(render_block, process_section(process).blocks))
    assert "<b>" not in page
    ElementTree.fromstring(Picture(graph).svg())  # XML that stands alone


def reached(edges: set[tuple[int, int]], start: int) -> set[Any]:
    found = {start}
    while more := {b for a, b in edges if a in found} - found:
        found |= more
    return found


def test_a_page_names_the_most_unusual_case_and_what_comes_next() -> None:
    model = toy_exact(slots=2)
    documents = named_documents(toy_documents([3, 1, 4, 2], slots=2), model)
    scored = sorted(score_documents(model, documents), key=lambda d: -d.nats / len(d.events))
    unusual = unusual_cases(find_anomalies(model, scored, UNUSUAL), len(documents))[-1]
    worst = max(enumerate(scored[0].events, start=1), key=lambda one: one[1].nats)[0]
    assert [row[0] for row in unusual.rows] == [document.id for document in scored]
    assert unusual.rows[0][2].startswith(f"#{worst} ")
    ahead = cases_ahead(model, documents)[-1]
    assert {row[0]: row[3] for row in ahead.rows} == {
        d.id: d.events[(len(d.events) + 1) // 2].head for d in documents if len(d.events) > 1
    }
    assert f"#{worst} " in render_block(unusual)
    assert "expected next" in render_block(ahead)
