"""`ssdvae report`: write one page about runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.analysis.options import ReportOptions
from ssdvae.commands import AnyPath, Command
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.io.progress import Progress

log = logging.getLogger("ssdvae")


@with_options(ReportOptions)
def write_report(
    runs: AnyPath | Sequence[AnyPath],
    out: AnyPath = "report.html",
    *,
    corpus: Corpus | AnyPath | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> Path:
    """Write one page about runs or other models: what they learned, their scores, how they were trained.

    >>> ssdvae.write_report(["runs/first"], "report.html")

    Args:
        runs: run folders, or names of models
        out: page to write
        corpus: corpus folder to show the models on; by default that of each run, or scripts of the model
    """
    from ssdvae.commands.coerce import as_corpus, folder_of
    from ssdvae.io.progress import resolve
    from ssdvae.report import page
    from ssdvae.reproduction.paper import published_figures

    chosen = ReportOptions(**options)
    folders = [folder_of(run) for run in ([runs] if isinstance(runs, str | Path) else runs)]
    shown = None if corpus is None else as_corpus(corpus)
    published = published_figures() if chosen.paper else None
    with resolve(progress).task("looking at runs", len(folders)) as advance:
        written = page.write_report(folders, Path(out), chosen, advance, published, corpus=shown)
    log.info(f"wrote {written}; open it in a browser")
    return written


COMMAND = Command(
    write_report,
    examples=("ssdvae report runs/first", "ssdvae report runs/first --out first.html --split test"),
)
