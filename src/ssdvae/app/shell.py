"""What all views have around them, and the parts that several have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from ssdvae import __version__
from ssdvae.answers.unknown import Familiarity
from ssdvae.app.explorer import Explored, Explorer
from ssdvae.data.events import Document, Event
from ssdvae.report.html import Html, join, tag

VIEWS = {
    "read": ("Read", "What a model makes of events that you type"),
    "next": ("Next", "What could happen next"),
    "frames": ("Frames", "The frames that a model knows"),
    "documents": ("Documents", "Documents, as a model reads them"),
    "docs": ("API", "The same answers for programs"),
}

Query = Sequence[tuple[str, str]]
"""The address of a view: names and values, in order."""


def address(view: str, *parts: tuple[str, str]) -> str:
    """Where a view shows something: what is empty is left out, but not within a script of events."""
    kept = [(name, value) for name, value in parts if value or name in ("e", "f")]
    return f"/{view}" + (f"?{urlencode(kept)}" if kept else "")


@dataclass(frozen=True)
class Line:
    """An event as it stands in the form: its text, and the frame that the model is told, if any."""

    text: str = ""
    frame: str = ""


@dataclass(frozen=True)
class State:
    """What the address of a view says."""

    run: str = ""
    lines: tuple[Line, ...] = ()
    rest: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Query) -> State:
        texts = [value for name, value in query if name == "e"]
        frames = [value for name, value in query if name == "f"]
        frames += [""] * (len(texts) - len(frames))
        rest = {name: value for name, value in query if name not in ("e", "f", "run")}
        run = next((value for name, value in query if name == "run"), "")
        return cls(run, tuple(map(Line, texts, frames)), rest)

    @property
    def given(self) -> list[Line]:
        """The lines that say something."""
        return [line for line in self.lines if line.text.strip()]

    def script(self, *more: str) -> list[tuple[str, str]]:
        """The events as parts of an address, and some after them."""
        parts = [
            (name, value) for line in self.given for name, value in (("e", line.text), ("f", line.frame))
        ]
        return parts + [pair for text in more for pair in (("e", text), ("f", ""))]


def shell(explorer: Explorer, view: str, state: State, content: Iterable[Html | None]) -> str:
    """A whole page."""
    short, title = VIEWS[view]
    carried = [("run", state.run), *(state.script() if view in ("read", "next") else [])]
    links = [
        tag(
            "li",
            tag(
                "a",
                name,
                href=address(other, *(carried if other in ("read", "next") else carried[:1])),
                aria_current="page" if other == view else None,
            ),
        )
        for other, (name, _) in VIEWS.items()
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{short} · ssdvae"),
        tag("link", rel="stylesheet", href="/assets/style.css"),
        tag("link", rel="stylesheet", href="/assets/app.css"),
        tag("link", rel="icon", href="data:,"),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag("nav", tag("ul", *links), aria_label="Views"),
        tag("main", tag("h1", title), *content, id="main", tabindex="-1"),
        tag("footer", tag("p", f"ssdvae {__version__}: {', '.join(explorer.models)}")),
        tag("div", id="tip", role="status", hidden=True),
        tag("script", src="/assets/script.js"),
        tag("script", src="/assets/app.js"),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def choose_model(explorer: Explorer, of: Explored) -> Html | None:
    """Which model answers, where there are several."""
    if len(explorer.models) == 1:
        return None
    options = (tag("option", name, value=name, selected=name == of.name) for name in explorer.models)
    return tag("label", "Model ", tag("select", *options, name="run"), class_="field")


def frame_names(of: Explored) -> Html:
    """The frames of a model, for boxes in which one is typed."""
    return tag("datalist", *(tag("option", value=name) for name in of.model.frames.names), id="frame-names")


def part(id: str, *children: str | None, **attributes: object) -> Html:
    """A part of the page that changes while one types; the script takes the new one from the answer."""
    return tag("div", *children, id=id, data_part=True, **attributes)


def problem_part(error: str | None) -> Html:
    return part("problem", tag("p", error, class_="problem", role="alert") if error else None)


def unfamiliar(of: Explored, events: Sequence[Event]) -> Html | None:
    """A warning, if most words of some events are unknown to the model."""
    warning = Familiarity.of(of.model, [Document("", tuple(events))]).warning
    return tag("p", warning, class_="problem", role="status") if warning else None


def editor(state: State, of: Explored, answers: Sequence[Html | None]) -> Html:
    """The events, each in a box, with what there is to say of it; the last box is for the next one."""
    slots, rows = of.model.slots, []
    for place, line in enumerate((*state.lines, Line())):
        answer = answers[place] if place < len(answers) else None
        number = place + 1
        rows.append(
            tag(
                "li",
                tag(
                    "div",
                    tag(
                        "input",
                        name="e",
                        value=line.text,
                        placeholder=" ".join(slots),
                        aria_label=f"Event {number}: {', '.join(slots)}",
                        autocomplete="off",
                        autocapitalize="off",
                        spellcheck="false",
                        maxlength=500,
                    ),
                    tag(
                        "input",
                        name="f",
                        value=line.frame,
                        list="frame-names",
                        placeholder="any frame",
                        aria_label=f"Frame of event {number}, if it is known",
                        autocomplete="off",
                        maxlength=200,
                        class_="told",
                    ),
                    tag("button", "×", type="button", data_remove=True, aria_label=f"Remove event {number}"),
                    class_="boxes",
                ),
                part(f"answer-{place}", answer, class_="answer"),
            )
        )
    return join([frame_names(of), tag("ol", *rows, class_="editor document")])
