"""What one model found: how it reads documents, what follows what, and what its frames are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from ssdvae.analysis.explain import Explanation, explain
from ssdvae.config import ReportSettings
from ssdvae.data.named import to_documents
from ssdvae.errors import UserError
from ssdvae.models.base import Model
from ssdvae.report.documents import legible, readings, scripts
from ssdvae.report.frames import frame_table, paper_tables, strongest_links, verb_table
from ssdvae.report.html import Html, Section, absent, join
from ssdvae.report.runs import Reported


def found_in(run: Reported, settings: ReportSettings, id: str) -> Iterator[Section]:
    """The parts about one run; those that its model has no answer for are named, with the reason."""
    try:
        if run.corpus is None:
            raise UserError("the corpus of this run cannot be opened any more")
        model = Model.read(run.folder)
        run.corpus.check_names(model.vocabulary, model.frames, model.slots)
        documents = run.corpus.split(settings.split).first(model.reading.measured)
        documents = documents.take(np.arange(len(documents))[: settings.sample])
    except UserError as error:
        yield Section(f"{id}-found", "What it found", absent(f"Left out: {run.sentence(error)}"))
        return
    shown = to_documents(run.corpus, documents.take(legible(run.corpus, documents, settings.documents)))

    @cache  # one pass over the documents for all parts
    def explanation() -> Explanation:
        return explain(model, documents)

    def words() -> Html:
        found = explanation()
        parts = [frame_table(found, f"{id}-words"), verb_table(found, f"{id}-verbs")]
        if found.clusters is not None:
            parts.append(paper_tables(found, f"{id}-beta"))
        return join(parts)

    parts: tuple[tuple[str, str, str, Callable[[], Html]], ...] = (
        ("read", "Read", "Documents, as the model reads them", lambda: readings(model, explanation(), shown)),
        ("follows", "What follows", "What follows what", lambda: strongest_links(explanation().transitions)),
        ("frames", "Frames", "Frames and their words", words),
        ("scripts", "Scripts", "Scripts that the model writes", lambda: scripts(model, shown)),
    )
    left_out: dict[str, list[str]] = {}
    for name, short, title, part in parts:
        try:
            content = part()
        except UserError as error:
            left_out.setdefault(run.sentence(error), []).append(title)
        else:
            yield Section(f"{id}-{name}", title, content, short)
    if left_out:
        reasons = [absent(f"{', '.join(titles)}: {reason}") for reason, titles in left_out.items()]
        yield Section(f"{id}-left-out", "What cannot be shown", join(reasons))
