"""The report: one file that needs nothing else, and asks nothing of the network.

First the process, if it is about a log, and what the models found; then how good they are, then how they
were made.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from ssdvae.analysis.options import ReportOptions
from ssdvae.data.corpus import Corpus
from ssdvae.evaluation.summary import Published
from ssdvae.io.files import atomic_write
from ssdvae.io.progress import Advance, no_advance
from ssdvae.report.findings import findings
from ssdvae.report.process import process_section
from ssdvae.report.render import Details, Heading, Section, asset, render, style
from ssdvae.report.runs import ReportedRun, data_tables, options_table, read_runs, runs_table
from ssdvae.report.scores import learning_curves, score_blocks


def write_report(
    folders: Sequence[Path],
    out: Path,
    options: ReportOptions,
    advance: Advance = no_advance,
    published: Published | None = None,
    best: Mapping[str, float] | None = None,
    corpus: Corpus | None = None,
) -> Path:
    """Write a page about some runs, which are shown on ``corpus``, by default each on its own.

    Their scores stand beside published ones, and beside the best that any model could have (by the names of
    the figures), where these are given.
    """
    runs = read_runs(folders, corpus)
    found = []
    for number, run in enumerate(runs):
        found.append(list(findings(run, options, f"run-{number}")))
        advance(1)
    one = len(runs) == 1
    scores = list(score_blocks(runs, options.split, published, best or {}))
    setup = [learning_curves(runs), runs_table(runs), *data_tables(runs), options_table(runs)]
    processes = {run.corpus.fingerprint: run.corpus.process for run in runs if run.corpus is not None}
    sections = [
        *(process_section(p, f"process-{n}") for n, p in enumerate(processes.values()) if p is not None),
        *(found[0] if one else [Section("found", "What they found", list(_by_run(runs, found)))]),
        Section("scores", "How good it is" if one else "How good they are", scores),
        Section("setup", "Curves and settings", setup),
    ]
    title = "What the model found" if one else f"What {len(runs)} models found"
    return write_page(out, title, _lead(runs), sections)


def _by_run(runs: Sequence[ReportedRun], found: Sequence[Sequence[Section]]) -> Iterator[Details]:
    """Yield the sections of each run in a box of its own."""
    for number, (run, sections) in enumerate(zip(runs, found, strict=True)):
        blocks = [block for part in sections for block in (Heading(part.title, 4), *part.blocks)]
        # Closed but for the first: each is as long as all that stands after them.
        title = Heading(_name(run))
        yield Details(title, blocks, open=number == 0, style="run")


def _name(run: ReportedRun) -> str:
    """Return the name of a run with its model, once if they are the same."""
    return run.name if run.name == run.options.model else f"{run.name} ({run.options.model})"


def _lead(runs: Sequence[ReportedRun]) -> str:
    """Return a sentence that names the runs, and on what they were trained."""
    names = ", ".join(map(_name, runs))
    corpora = {run.corpus.fingerprint: run.corpus for run in runs if run.corpus is not None}
    data = " and ".join(
        f"{corpus.folder.name} ({corpus.manifest['splits']['train']['documents']:,} documents, "
        f"{corpus.manifest['words']:,} words, {corpus.manifest['frames']:,} frames)"
        for corpus in corpora.values()
    )
    how = "shown" if any(run.foreign for run in runs) else "trained"
    return f"{names}, {how} on {data}." if data else f"{names}."


def write_page(out: Path, title: str, lead: str, sections: Sequence[Section]) -> Path:
    """Write a page of any sections."""
    script = asset("script.js")
    page = render(
        "report.html",
        title=title,
        lead=lead,
        sections=sections,
        style=Markup(style()),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    with atomic_write(out) as path:
        path.write_text(page, encoding="utf-8")
    return out
