"""The frames of a model: their words, and which follow which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.clusters import Clusters
from ssdvae.analysis.explain import Explanation
from ssdvae.analysis.transitions import Transitions
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.errors import UserError
from ssdvae.report.figures import figure
from ssdvae.report.graph import Link, link_graph
from ssdvae.report.html import Html, breakable, join, percent, searchable, table, tag

ROWS, TOP_WORDS, TOP_FRAMES, LINKS = 200, 8, 5, 24

Names = Sequence[tuple[str, float | None]]
"""Names and, where there are any, their probabilities."""


def chips(names: Names) -> Html:
    """Names in a row, each with its probability."""
    return tag(
        "div",
        *(
            tag("span", breakable(name), None if p is None else tag("small", f" {percent(p)}"))
            for name, p in names
        ),
        class_="chips",
    )


def frame_table(found: Explanation, id: str) -> Html:
    """The frames that are inferred most: how often, their words, and what comes next."""
    clusters = _clusters(found)
    after = followers(found.transitions)
    rows = [
        [
            breakable(clusters.frames.name(f)),
            f"{clusters.frame_counts[f]:,}",
            chips([(word, None) for word, _ in clusters.top_words(clusters.frames.name(f), TOP_WORDS)]),
            chips(after[f]),
        ]
        for f in _commonest(clusters.frame_counts, clusters.frames.names)
    ]
    purity = clusters.purity()
    fit = (
        ""
        if purity is None
        else f" Of the events whose frame is known, {percent(purity)} have the commonest known frame of "
        "their cluster (purity)."
    )
    return join(
        [
            tag(
                "p",
                "How often each frame was inferred, the words that it makes likely (β_dec, strongest "
                "first), and the frames of the event after it, with their shares."
                f"{fit}",
            ),
            searchable(
                f"The {len(rows)} commonest frames", id, ["frame", "events", "its words", "followed by"], rows
            ),
        ]
    )


def verb_table(found: Explanation, id: str) -> Html:
    """The commonest verbs: how often they occur, and the frames that they speak for."""
    clusters = _clusters(found)
    counts = clusters.slot_counts[:, 0]
    rows = [
        [
            breakable(clusters.vocabulary.name(v)),
            f"{counts[v]:,}",
            chips([(name, None) for name, _ in clusters.top_frames(clusters.vocabulary.name(v), TOP_FRAMES)]),
        ]
        for v in _commonest(counts, clusters.vocabulary.names)
    ]
    return searchable(
        f"The {len(rows)} commonest heads of events, and the frames that each speaks for (β_enc)",
        id,
        ["word", "events", "its frames"],
        rows,
    )


def _clusters(found: Explanation) -> Clusters:
    if found.clusters is None:
        raise UserError("the model has no clusters: its words and frames are not added")
    return found.clusters


def _commonest(counts: NDArray[np.int64], names: Sequence[str]) -> list[int]:
    order = np.argsort(-counts, kind="stable")
    return [int(number) for number in order if counts[number] and names[number] != UNKNOWN][:ROWS]


def followers(transitions: Transitions) -> list[Names]:
    """For each frame, those that follow it most, and how often."""
    found: list[Names] = []
    for row in transitions.probabilities:
        best = np.argsort(-row, kind="stable")[:TOP_FRAMES]
        found.append([(transitions.frames.name(int(g)), float(row[g])) for g in best if row[g] >= 0.01])
    return found


def strongest_links(transitions: Transitions) -> Html:
    found = transitions.strongest(LINKS)
    if not found:
        raise UserError("no two frames follow each other often enough in these documents")
    given = [
        Link(
            link.first,
            link.second,
            link.probability,
            f"{link.first} → {link.second}: {percent(link.probability)} of the time, "
            f"{link.lift:.1f} times chance",
        )
        for link in found
    ]
    top = found[0]
    head = ["frame", "next frame", "probability", "lift", "expected count"]
    rows = [[k.first, k.second, f"{k.probability:.3f}", f"{k.lift:.1f}", f"{k.count:.1f}"] for k in found]
    if top.prior is not None:
        head.append("prior")
        rows = [[*row, f"{k.prior:.3f}"] for row, k in zip(rows, found, strict=True)]
    return figure(
        "The strongest links between frames.",
        "On the left a frame, on the right one that follows it far more often than chance would have it; the "
        f"wider the band, the likelier. The strongest: {top.first} is followed by {top.second} "
        f"{percent(top.probability)} of the time, {top.lift:.0f} times chance. Point at a frame, or tab to "
        "it, to see only its links.",
        join([link_graph("Strongest links between frames", given), _steps(given)]),
        table("Strongest links", head, rows, names=2),
    )


def _steps(links: Sequence[Link]) -> Html:
    """The same in a line each, for a screen on which the letters of the picture would be too small."""
    lines = (
        tag(
            "li",
            breakable(link.source),
            " → ",
            breakable(link.target),
            tag("small", f" {percent(link.weight)}"),
        )
        for link in links
    )
    return tag("ul", *lines, class_="steps")
