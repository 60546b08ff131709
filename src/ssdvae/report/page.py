"""The page: one file that needs nothing else, and asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from ssdvae import __version__
from ssdvae.config import ReportSettings
from ssdvae.evaluation.published import Published
from ssdvae.files import atomic_write
from ssdvae.progress import Advance, no_advance
from ssdvae.report.figures import calibration, latent_use, learning_curves
from ssdvae.report.html import Html, join, tag
from ssdvae.report.learned import learned_sections
from ssdvae.report.overview import data_table, results, runs_table, settings_table, tiles
from ssdvae.report.runs import Reported, read_runs


def write_report(
    folders: Sequence[Path],
    out: Path,
    settings: ReportSettings,
    advance: Advance = no_advance,
    published: Published | None = None,
) -> Path:
    """Write the page about some runs, their scores beside published ones."""
    runs = read_runs(folders)
    sections = [
        (
            "runs",
            "Runs and data",
            join([tiles(runs, settings.split), data_table(runs), runs_table(runs), settings_table(runs)]),
        ),
        ("curves", "Learning curves", learning_curves(runs)),
        ("results", "Results", join(results(runs, published))),
        ("calibration", "Calibration", calibration(runs, settings.split)),
        ("latent", "Use of the latent variables", latent_use(runs, settings.split)),
    ]
    looks = []
    for number, run in enumerate(runs):
        content = join(learned_sections(run, settings, f"run-{number}"))
        # Closed but for the first: each is as long as all that stands before them.
        name = tag("summary", tag("h3", f"{run.name}, {run.settings.model}"))
        looks.append(tag("details", name, content, open=number == 0, class_="run"))
        advance(1)
    sections.append(("inside", "Inside the models", join(looks)))
    return write_page(out, title(runs), lead(runs), sections)


Section = tuple[str, str, Html]
"""Its id, its title and what is in it."""


def write_page(out: Path, title: str, lead: str, sections: Sequence[Section]) -> Path:
    """Write a page of any sections."""
    with atomic_write(out) as path:
        path.write_text(page(title, lead, sections), encoding="utf-8")
    return out


def title(runs: Sequence[Reported]) -> str:
    return f"One run of {runs[0].settings.model}" if len(runs) == 1 else f"{len(runs)} runs side by side"


def lead(runs: Sequence[Reported]) -> str:
    models = ", ".join(dict.fromkeys(run.settings.model for run in runs))
    corpora = {run.corpus.fingerprint: run.corpus for run in runs if run.corpus is not None}
    data = " and ".join(
        f"{corpus.folder.name} ({corpus.manifest['splits']['train']['documents']:,} training documents, "
        f"{corpus.manifest['words']:,} words, {corpus.manifest['frames']:,} frames)"
        for corpus in corpora.values()
    )
    return f"Models of event sequences with partly observed semantic frames: {models}" + (
        f", trained on {data}." if data else "."
    )


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    style, script = (
        (resources.files(__package__) / name).read_text(encoding="utf-8")
        for name in ("style.css", "script.js")
    )
    # Nothing is loaded, and no script runs but the one whose fingerprint is named here.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · ssdvae"),
        tag("style", Html(style)),
    )
    contents = tag(
        "nav",
        tag("ul", *(tag("li", tag("a", name, href=f"#{id}")) for id, name, _ in sections)),
        aria_label="Sections",
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag("header", tag("h1", title), tag("p", lead, class_="lead")),
        contents,
        tag(
            "main",
            *(
                tag(
                    "section",
                    tag("h2", name, id=f"{id}-title"),
                    content,
                    id=id,
                    aria_labelledby=f"{id}-title",
                )
                for id, name, content in sections
            ),
            id="main",
            tabindex="-1",
        ),
        tag("footer", tag("p", f"Made by ssdvae {__version__}. This file needs no network.")),
        tag("div", id="tip", role="status", hidden=True),
        tag("script", Html(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
