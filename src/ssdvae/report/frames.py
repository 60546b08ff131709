"""The frames of a model: their words, and which follow which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.clusters import Clusters
from ssdvae.analysis.explain import Explanation
from ssdvae.analysis.transitions import Link as FrameLink
from ssdvae.analysis.transitions import Transitions
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.errors import UserError
from ssdvae.report.charts import Drawing
from ssdvae.report.figures import figure
from ssdvae.report.graph import Link, link_graph
from ssdvae.report.html import Html, breakable, join, percent, searchable, table, tag

ROWS, TOP_WORDS, TOP_FRAMES, LINKS = 200, 8, 5, 24

RARE = 0.01
"""A share below which a name is left out."""

Names = Sequence[tuple[str, float | None]]
"""Names and, where there are any, their probabilities."""


Href = Callable[[str], str]
"""Where more is said of a name."""


def _name(name: str, href: Href | None) -> Html:
    return breakable(name) if href is None else tag("a", breakable(name), href=href(name))


def chips(names: Names, href: Href | None = None) -> Html:
    """Names in a row, each with its probability."""
    return tag(
        "div",
        *(
            tag("span", _name(name, href), None if p is None else tag("small", f" {percent(p)}"))
            for name, p in names
        ),
        class_="chips",
    )


def frame_table(found: Explanation, id: str, href: Href | None = None) -> Html:
    """The frames that are expected most: how often, their words, and what comes next."""
    beliefs, after = found.beliefs, followers(found.transitions)
    rows = [
        [
            _name(beliefs.frames.name(f), href),
            f"{beliefs.frame_counts[f]:,.0f}",
            chips(_likely(beliefs.words_of(beliefs.frames.name(f), TOP_WORDS)), href),
            chips(after[f], href),
        ]
        for f in _commonest(beliefs.frame_counts, beliefs.frames.names)
    ]
    purity = None if found.clusters is None else found.clusters.purity()
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
                "How many events are expected to have each frame, the heads that they have, p(word | frame), "
                f"and the frames of the event after it, with their shares.{fit}",
            ),
            searchable(
                f"The {len(rows)} commonest frames", id, ["frame", "events", "its words", "followed by"], rows
            ),
        ]
    )


def verb_table(found: Explanation, id: str) -> Html:
    """The commonest heads: how often they occur, and what the model takes their frames to be."""
    beliefs = found.beliefs
    rows = [
        [
            breakable(beliefs.vocabulary.name(v)),
            f"{beliefs.word_counts[v]:,}",
            chips(_likely(beliefs.frames_of(beliefs.vocabulary.name(v), TOP_FRAMES))),
        ]
        for v in _commonest(beliefs.word_counts, beliefs.vocabulary.names)
    ]
    return searchable(
        f"The {len(rows)} commonest heads of events, and their frames: p(frame | word), on average",
        id,
        ["word", "events", "its frames"],
        rows,
    )


def paper_tables(found: Explanation, id: str) -> Html:
    """The paper's clusters, under their names: strengths, not probabilities, so without numbers."""
    clusters = _clusters(found)
    names, verbs = clusters.frames.names, clusters.vocabulary.names
    words = [
        [breakable(names[f]), chips([(w, None) for w, _ in clusters.top_words(names[f], TOP_WORDS)])]
        for f in _commonest(clusters.frame_counts, names)
    ]
    frames = [
        [breakable(verbs[v]), chips([(f, None) for f, _ in clusters.top_frames(verbs[v], TOP_FRAMES)])]
        for v in _commonest(clusters.slot_counts[:, 0], verbs)
    ]
    return tag(
        "details",
        tag("summary", "The paper's clusters (its Table 2)"),
        tag(
            "p",
            "Which words a frame makes likely (β_dec), and which frames a word speaks for (β_enc), strongest "
            "first. They weigh a word or a frame by itself, without its event, and may differ from what the "
            "model believes of events, above.",
        ),
        searchable("Words given frames (β_dec)", f"{id}-dec", ["frame", "strongest first"], words),
        searchable("Frames given words (β_enc)", f"{id}-enc", ["word", "strongest first"], frames),
    )


def _likely(shares: Sequence[tuple[str, float]]) -> Names:
    """Those that are not next to impossible."""
    return [(name, p) for name, p in shares if p >= 0.01]


def _clusters(found: Explanation) -> Clusters:
    if found.clusters is None:
        raise UserError("the model has no clusters: its words and frames are not added")
    return found.clusters


def _commonest(counts: NDArray[Any], names: Sequence[str]) -> list[int]:
    order = np.argsort(-counts, kind="stable")
    return [int(number) for number in order if counts[number] and names[number] != UNKNOWN][:ROWS]


def followers(transitions: Transitions) -> list[Names]:
    """For each frame, those that follow it most, and how often."""
    return [_likeliest(row, transitions.frames.names, TOP_FRAMES) for row in transitions.probabilities]


def _likeliest(shares: NDArray[np.float64], names: Sequence[str], k: int) -> Names:
    best = np.argsort(-np.nan_to_num(shares), kind="stable")[:k]
    return [(names[g], float(shares[g])) for g in best if shares[g] >= RARE]


@dataclass(frozen=True)
class Neighbours:
    """A frame among others."""

    count: float  # expected events with a neighbour
    before: Names  # p(frame before | frame)
    after: Names  # p(frame after | frame)


def neighbours(transitions: Transitions, frame: str, k: int) -> Neighbours:
    """The frames that come directly before one, and directly after it."""
    number, names = transitions.frames.find(frame, "frame"), transitions.frames.names
    into = transitions.counts[:, number]
    with np.errstate(invalid="ignore"):
        before = _likeliest(into / into.sum(), names, k)
    after = _likeliest(transitions.probabilities[number], names, k)
    return Neighbours(float(max(into.sum(), transitions.counts[number].sum())), before, after)


def links(transitions: Transitions) -> Drawing:
    """The strongest links between frames as a picture."""
    return link_graph("Strongest links between frames", [_band(link) for link in _strongest(transitions)])


def _strongest(transitions: Transitions) -> Sequence[FrameLink]:
    found = transitions.strongest(LINKS)
    if not found:
        raise UserError("no two frames follow each other often enough in these documents")
    return found


def _band(link: FrameLink) -> Link:
    share = f"{percent(link.probability)} of the time, {link.lift:.1f} times chance"
    return Link(link.first, link.second, link.probability, f"{link.first} → {link.second}: {share}")


def strongest_links(transitions: Transitions) -> Html:
    found = _strongest(transitions)
    top = found[0]
    head = ["frame", "next frame", "probability", "lift", "expected count"]
    rows = [[k.first, k.second, f"{k.probability:.3f}", f"{k.lift:.1f}", f"{k.count:.1f}"] for k in found]
    return figure(
        "The strongest links between frames.",
        "On the left a frame, on the right one that follows it far more often than chance would have it; the "
        f"wider the band, the likelier. The strongest: {top.first} is followed by {top.second} "
        f"{percent(top.probability)} of the time, {top.lift:.0f} times chance. Point at a frame, or tab to "
        "it, to see only its links.",
        join([links(transitions).svg(), _steps(found)]),
        table("Strongest links", head, rows, names=2),
    )


def _steps(found: Sequence[FrameLink]) -> Html:
    """The same in a line each, for a screen on which the letters of the picture would be too small."""
    lines = (
        tag(
            "li",
            breakable(link.first),
            " → ",
            breakable(link.second),
            tag("small", f" {percent(link.probability)}"),
        )
        for link in found
    )
    return tag("ul", *lines, class_="steps")
