"""How the runs were made: on what data, with which settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssdvae.config import SPLITS, TrainSettings
from ssdvae.evaluation.summary import differing
from ssdvae.report.html import Html, absent, join, table, tag
from ssdvae.report.runs import Reported, ppl_text, setting_text


def data_table(runs: Sequence[Reported]) -> Html:
    corpora = {r.corpus.fingerprint: r.corpus for r in runs if r.corpus is not None}
    gone = [absent(f"The corpus of {r.name} cannot be opened any more.") for r in runs if r.corpus is None]
    head = ["corpus", "sources", "words", "frames", "events a document", *(f"{s} documents" for s in SPLITS)]
    rows = [
        [
            corpus.folder.name,
            ", ".join(Path(source["path"]).name for source in corpus.manifest["sources"]),
            f"{corpus.manifest['words']:,}",
            f"{corpus.manifest['frames']:,}",
            str(corpus.events or "all"),
            *(f"{corpus.manifest['splits'][split]['documents']:,}" for split in SPLITS),
        ]
        for corpus in corpora.values()
    ]
    return join([table("Data", head, rows, names=2) if rows else None, *gone])


def runs_table(runs: Sequence[Reported]) -> Html:
    """One row for each run: what it is, what sets it apart, and how far it came."""
    differs = differing([run.settings for run in runs])
    head = ["run", "model", *differs, "seed", "epochs", "minutes", "best valid ppl"]
    rows = []
    for run in runs:
        last = run.curve[-1] if run.curve else None
        rows.append(
            [
                run.name,
                run.settings.model,
                *(setting_text(run.settings.values().get(name)) for name in differs),
                str(run.settings.seed),
                f"{last['epoch']:g}" if last else "–",
                f"{last['seconds'] / 60:.1f}" if last else "–",
                ppl_text(run.best) if run.best else "–",
            ]
        )
    return table("Runs, and the settings in which they differ", head, rows, names=2)


def settings_table(runs: Sequence[Reported]) -> Html:
    """Every setting of every run, empty where its model has none; those that differ are marked."""
    rows = []
    for name in TrainSettings.names():
        known = [run.settings.values() for run in runs]
        if any(name in values for values in known):
            cells = [setting_text(values[name]) if name in values else "" for values in known]
            mark = tag("mark", name) if len(set(cells)) > 1 else name
            rows.append([mark, *cells])
    caption = "All settings" + ("; marked where the runs differ" if len(runs) > 1 else "")
    return tag(
        "details",
        tag("summary", "All settings"),
        table(caption, ["setting", *(run.name for run in runs)], rows, names=len(runs) + 1),
    )
