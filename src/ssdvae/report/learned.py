"""What one model has learned: the words of its frames, and which frames follow which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.clusters import Clusters, no_clusters
from ssdvae.analysis.explain import Explanation, explain
from ssdvae.analysis.transitions import Transitions
from ssdvae.config import ReportSettings
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.errors import UserError
from ssdvae.models.base import EventModel
from ssdvae.report.documents import scripts, timelines, to_documents
from ssdvae.report.figures import figure
from ssdvae.report.graph import Link, link_graph
from ssdvae.report.html import Html, absent, breakable, join, table, tag
from ssdvae.report.runs import Reported

ROWS, TOP_WORDS, TOP_FRAMES, LINKS = 100, 8, 5, 24


def learned_sections(run: Reported, settings: ReportSettings, id: str) -> Iterator[Html]:
    """The parts about one run; those that its model has no answer for are named, with the reason."""
    if run.corpus is None:
        yield absent("Left out: the corpus of this run cannot be opened any more.")
        return
    try:
        model = EventModel.read(run.folder)
        run.corpus.check_names(model.vocabulary, model.frames, model.slots)
        documents = run.corpus.split(settings.split).first(model.reading.measured)
        documents = documents.take(np.arange(len(documents))[: settings.sample])
    except UserError as error:
        yield absent(f"Left out: {run.sentence(error)}")
        return
    shown = to_documents(run.corpus, documents.take(np.arange(len(documents))[: settings.documents]))

    @cache  # one pass over the documents for all parts
    def explanation() -> Explanation:
        return explain(model, documents)

    def clusters() -> Clusters:
        found = explanation().clusters
        if found is None:
            raise no_clusters(model)
        return found

    parts: dict[str, Callable[[], Html]] = {
        "Frames and their words": lambda: cluster_tables(clusters(), id),
        "What follows what": lambda: strongest_links(explanation().transitions),
        "Documents as the model reads them": lambda: timelines(model, explanation().attention, shown),
        "Scripts that the model writes": lambda: scripts(model, shown),
    }
    left_out: dict[str, list[str]] = {}
    for title, part in parts.items():
        try:
            content = part()
        except UserError as error:
            left_out.setdefault(run.sentence(error), []).append(title)
        else:
            yield tag("h4", title)
            yield content
    for reason, titles in left_out.items():
        yield absent(f"Left out ({', '.join(titles)}): {reason}")


def cluster_tables(found: Clusters, id: str) -> Html:
    """Top words of the frames that are inferred most, and top frames of the commonest verbs."""
    frames = _commonest(found.frame_counts, found.frames.names)
    verbs = _commonest(found.slot_counts[:, 0], found.vocabulary.names)
    purity = found.purity()
    fit = (
        ""
        if purity is None
        else f" Of the events whose frame is known, {purity:.1%} have the commonest known frame of their "
        "cluster (purity)."
    )
    return join(
        [
            tag(
                "p",
                "Which words a frame makes likely (β_dec), and which frames a word speaks for (β_enc), "
                f"strongest first, as in the paper's Table 2.{fit}",
            ),
            _filtered(
                "Words of each frame",
                f"{id}-words",
                "frame",
                {f: found.top_words(f, TOP_WORDS) for f in frames},
            ),
            _filtered(
                "Frames of each verb",
                f"{id}-frames",
                "verb",
                {v: found.top_frames(v, TOP_FRAMES) for v in verbs},
            ),
        ]
    )


def _commonest(counts: NDArray[np.int64], names: Sequence[str]) -> list[str]:
    order = np.argsort(-counts, kind="stable")
    return [names[number] for number in order if counts[number] and names[number] != UNKNOWN][:ROWS]


def _filtered(caption: str, id: str, head: str, rows: dict[str, list[tuple[str, float]]]) -> Html:
    """A table with a box to look for a row."""
    lines = [
        [breakable(name), tag("div", *(tag("span", breakable(word)) for word, _ in top), class_="chips")]
        for name, top in rows.items()
    ]
    box = tag("input", type="search", data_filter=id, autocomplete="off")
    return join(
        [
            tag("label", f"Find in “{caption.lower()}”", box, class_="filter"),
            table(f"{caption}, the {len(rows)} commonest", [head, "strongest first"], lines, names=2, id=id),
        ]
    )


def strongest_links(transitions: Transitions) -> Html:
    found = transitions.strongest(LINKS)
    if not found:
        raise UserError("no two frames follow each other often enough in these documents")
    given = [
        Link(
            link.first,
            link.second,
            link.probability,
            f"{link.first} → {link.second}: {link.probability:.0%} of the time, {link.lift:.1f} times chance",
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
        f"{top.probability:.0%} of the time, {top.lift:.0f} times chance. Point at a frame, or tab to it, to "
        "see only its links.",
        link_graph("Strongest links between frames", given),
        table("Strongest links", head, rows, names=2),
    )
