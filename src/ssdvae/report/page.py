"""The page: one file that needs nothing else, and asks nothing of the network.

First what the models found, then how good they are, then how they were made.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from ssdvae import __version__
from ssdvae.config import ReportSettings
from ssdvae.evaluation.published import Published
from ssdvae.files import atomic_write
from ssdvae.progress import Advance, no_advance
from ssdvae.report.figures import calibration, latent_use, learning_curves
from ssdvae.report.found import found_in
from ssdvae.report.html import Html, Section, join, tag
from ssdvae.report.runs import Reported, read_runs
from ssdvae.report.scores import results, tiles
from ssdvae.report.setup import data_table, runs_table, settings_table


def write_report(
    folders: Sequence[Path],
    out: Path,
    settings: ReportSettings,
    advance: Advance = no_advance,
    published: Published | None = None,
    best: Mapping[str, float] | None = None,
) -> Path:
    """Write the page about some runs.

    Their scores stand beside published ones, and beside the best that any model could have (by the names of
    the figures), where these are given.
    """
    runs = read_runs(folders)
    found = []
    for number, run in enumerate(runs):
        found.append((run, list(found_in(run, settings, f"run-{number}"))))
        advance(1)
    scores = [
        tiles(runs, settings.split, best or {}),
        *results(runs, published, best or {}),
        tag("h3", "Calibration"),
        calibration(runs, settings.split),
        tag("h3", "Use of the latent variables"),
        latent_use(runs, settings.split),
    ]
    made = [learning_curves(runs), runs_table(runs), data_table(runs), settings_table(runs)]
    sections = [
        *found_sections(found),
        Section("scores", "How good it is" if len(runs) == 1 else "How good they are", join(scores)),
        Section("setup", "Curves and settings", join(made)),
    ]
    return write_page(out, title(runs), lead(runs), sections)


def found_sections(found: Sequence[tuple[Reported, Sequence[Section]]]) -> list[Section]:
    """What one model found as sections of their own, what several found as one."""
    if len(found) == 1:
        return list(found[0][1])
    looks = []
    for number, (run, parts) in enumerate(found):
        name = tag("summary", tag("h3", f"{run.name}, {run.settings.model}"))
        content = join(join([tag("h4", part.title), part.content]) for part in parts)
        # Closed but for the first: each is as long as all that stands after them.
        looks.append(tag("details", name, content, open=number == 0, class_="run"))
    return [Section("found", "What they found", join(looks))]


def write_page(out: Path, title: str, lead: str, sections: Sequence[Section]) -> Path:
    """Write a page of any sections."""
    with atomic_write(out) as path:
        path.write_text(page(title, lead, sections), encoding="utf-8")
    return out


def title(runs: Sequence[Reported]) -> str:
    return "What the model found" if len(runs) == 1 else f"What {len(runs)} models found"


def lead(runs: Sequence[Reported]) -> str:
    """Which runs, and on what they were trained."""
    names = ", ".join(f"{run.name} ({run.settings.model})" for run in runs)
    corpora = {run.corpus.fingerprint: run.corpus for run in runs if run.corpus is not None}
    data = " and ".join(
        f"{corpus.folder.name} ({corpus.manifest['splits']['train']['documents']:,} documents, "
        f"{corpus.manifest['words']:,} words, {corpus.manifest['frames']:,} frames)"
        for corpus in corpora.values()
    )
    return f"{names}, trained on {data}." if data else f"{names}."


def asset(name: str) -> str:
    """A file beside this one that goes into the page as it is."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def style() -> str:
    """The style sheet: of the pictures, which may stand alone, and of all around them."""
    return asset("picture.css") + asset("style.css")


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    script = asset("script.js")
    # Nothing is loaded, and no script runs but the one whose fingerprint is named here.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · ssdvae"),
        tag("style", Html(style())),
    )
    contents = tag(
        "nav",
        tag("ul", *(tag("li", tag("a", s.short or s.title, href=f"#{s.id}")) for s in sections)),
        aria_label="Sections",
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag("header", tag("h1", title), tag("p", lead, class_="lead")),
        contents,
        tag("main", *map(_section, sections), id="main", tabindex="-1"),
        tag("footer", tag("p", f"Made by ssdvae {__version__}. This file needs no network.")),
        tag("div", id="tip", role="status", hidden=True),
        tag("script", Html(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _section(section: Section) -> Html:
    name = f"{section.id}-title"
    return tag(
        "section",
        tag("h2", section.title, id=name),
        section.content,
        id=section.id,
        aria_labelledby=name,
    )
