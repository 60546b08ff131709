"""The four views. Each is a page that works without a script, and whose address says all that it shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from starlette.responses import RedirectResponse, Response

from ssdvae.answers.generate import Script
from ssdvae.answers.infer import InferredDocument
from ssdvae.answers.next_events import FRAME, Next
from ssdvae.answers.score import ScoredDocument, ScoredEvent
from ssdvae.app.explorer import Continuation, Explorer
from ssdvae.app.library import Filter
from ssdvae.app.shell import (
    State,
    address,
    choose_model,
    editor,
    frame_names,
    part,
    problem_part,
    shell,
    unfamiliar,
)
from ssdvae.app.text import events_of_text, text_form
from ssdvae.app.wire import Limits
from ssdvae.config import GenerateSettings
from ssdvae.data.events import MISSING, Document, Event, Slots, event_to_record
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.errors import UserError
from ssdvae.models.base import LanguageModel
from ssdvae.records import to_json
from ssdvae.report.documents import event_belief, event_words, reading, script_article
from ssdvae.report.html import Html, absent, breakable, percent, tag

EXAMPLE = ("arrested police suspect in", "charged he murder with")
SUGGESTED, PAGE = 8, 10


def typed(event: Event) -> str:
    """An event as it is typed."""
    return " ".join("-" if word == MISSING else word for word in event.words)


async def read(explorer: Explorer, limits: Limits, state: State) -> str | Response:
    of = explorer.find(state.run)
    events: tuple[Event, ...] = ()
    error, found, scored = None, None, None
    try:
        if text := state.rest.get("text", "").strip():
            found_there = await events_of_text(explorer, limits, of, text)
            parts = (("e", typed(event)) for event in found_there)
            return RedirectResponse(address("read", ("run", state.run), *parts), 303)
        events = limits.typed((line.text for line in state.given), of.model.slots)
        told = [line.frame.strip() for line in state.given]
        for name in filter(None, told):
            of.model.frames.find(name, "frame")
        events = tuple(e.changed(frame=frame or None) for e, frame in zip(events, told, strict=True))
        if events:
            document = Document("typed", events)
            if isinstance(of.model, LanguageModel):
                (scored,) = await explorer.score(of, [document])
            (found,) = await explorer.infer(of, [document], top=4, attention=True, observe=any(told))
    except UserError as wrong:
        error = str(wrong)
    example = address("read", ("run", state.run), *(("e", text) for text in EXAMPLE))
    return shell(
        explorer,
        "read",
        state,
        [
            tag(
                "p",
                "Type what happened, an event a line. The model names the frame of each at once. "
                "Where you know a frame, say so beside the event. ",
                tag("a", "Show me an example", href=example),
            ),
            tag(
                "form",
                choose_model(explorer, of),
                problem_part(error),
                editor(state, of, _beliefs(state, found, scored)),
                part("summary", unfamiliar(of, events), _summary(found)),
                tag("p", tag("button", "Read"), " ", _onward(state), class_="actions"),
                action="/read",
                data_live=True,
                aria_label="Events to read",
            ),
            text_form(explorer, of, state),
        ],
    )


def _beliefs(
    state: State, found: InferredDocument | None, scored: ScoredDocument | None
) -> list[Html | None]:
    """What there is to say of each line, empty lines included."""
    if found is None:
        return []
    width = len(found.slots)
    words = [word for inferred in found.events for word in inferred.event.padded(width)]
    answers: list[Html | None] = []
    place = 0
    for line in state.lines:
        if not line.text.strip():
            answers.append(None)
            continue
        inferred = found.events[place]
        # What was told is no truth to be held against.
        shown = replace(inferred, event=inferred.event.changed(frame=None))
        parts = [event_words(shown, place, words, width), event_belief(shown, words)]
        if scored is not None:
            parts.append(_surprise(scored.events[place]))
        answers.append(Html("").join(parts))
        place += 1
    return answers


UNUSUAL = 90
"""Per cent of usual events that are less surprising than one that is called unusual."""


def _surprise(event: ScoredEvent) -> Html:
    """How unusual an event is after those before it."""
    if event.percentile is None:
        return tag("small", f"{event.nats:.1f} nats", class_="surprise")
    words = f"more surprising than {percent(event.percentile / 100)} of events"
    unusual = event.percentile >= UNUSUAL
    return tag(
        "small", f"unusual: {words}" if unusual else words, class_="surprise odd" if unusual else "surprise"
    )


def _summary(found: InferredDocument | None) -> Html | None:
    if found is None or not found.events:
        return None
    count = found.unknown_words
    unknown = f" Words that the model does not know, and reads as one and the same: {count}." if count else ""
    frames = " → ".join(inferred.frame for inferred in found.events)
    return tag("p", f"{frames}.{unknown}", role="status", class_="note")


def _onward(state: State) -> Html:
    return tag("a", "What could happen next?", href=address("next", ("run", state.run), *state.script()))


async def next_event(explorer: Explorer, limits: Limits, state: State) -> str:
    of = explorer.find(state.run)
    pin, seed = state.rest.get("pin", "").strip(), _number(state.rest.get("seed"), 1)
    events: tuple[Event, ...] = ()
    head = state.rest.get("head", "").strip()
    error, ahead, written = None, None, list[Script]()
    try:
        events = limits.typed((line.text for line in state.given), of.model.slots)
        if events:
            given = {FRAME: pin, of.model.slots[0]: head}
            given = {name: value for name, value in given.items() if value}
            (ahead,) = await explorer.next(of, [Document("typed", events)], given, SUGGESTED)
            if "go" in state.rest:
                goal = Continuation(events, (pin,) if pin else ())
                some = GenerateSettings(events=3, scripts=3, seed=seed)
                written = list(await explorer.generate(of, goal, some))
    except UserError as wrong:
        error = str(wrong)
    again = [("run", state.run), *state.script(), ("pin", pin), ("go", "1"), ("seed", str(seed + 1))]
    return shell(
        explorer,
        "next",
        state,
        [
            tag(
                "p",
                "Build a script: take one of the suggestions, or type an event of your own. "
                "Choose a frame or a word to see only what goes with it.",
            ),
            tag(
                "form",
                choose_model(explorer, of),
                problem_part(error),
                editor(state, of, []),
                tag(
                    "p",
                    tag(
                        "label",
                        "Frame of the next event ",
                        tag("input", name="pin", value=pin, list="frame-names", placeholder="any"),
                        class_="field",
                    ),
                    " ",
                    tag(
                        "label",
                        f"Its {of.model.slots[0]} ",
                        tag("input", name="head", value=head, placeholder="any", autocomplete="off"),
                        class_="field",
                    ),
                    " ",
                    tag("button", "Suggest"),
                    class_="actions",
                ),
                part("suggestions", unfamiliar(of, events), _suggestions(state, pin, head, ahead)),
                action="/next",
                data_live=True,
                aria_label="The script so far",
            ),
            part(
                "continuations",
                tag("h2", "How it could go on") if ahead else None,
                tag("p", tag("a", "Write three continuations", href=address("next", *again), class_="button"))
                if ahead
                else None,
                tag("div", *map(script_article, written), class_="scripts") if written else None,
                _copied(events, written, of.model.slots) if ahead else None,
            ),
        ],
    )


def _suggestions(state: State, pin: str, head: str, ahead: Next | None) -> Html | None:
    """Frames and heads to choose, and whole events, each a link to the script with it at the end."""
    if ahead is None:
        return absent("Type an event to begin with.") if not state.given else None
    here = [("run", state.run), *state.script()]

    def ranked(title: str, items: Iterable[tuple[str, float, str | None, str | None]]) -> Html:
        rows = [
            tag(
                "li",
                tag("a", breakable(name), href=href) if href else breakable(name),
                tag("small", f" {percent(p)}", f" {frame}" if frame else None),
                style=f"--sure:{p:.3f}",
            )
            for name, p, href, frame in items
        ]
        return tag("section", tag("h2", title), tag("ol", *rows, class_="suggested"), aria_label=title)

    frames = [(f.name, f.probability, address("next", *here, ("pin", f.name)), None) for f in ahead.frames]
    heads = [
        ("a word unknown to the model", h.probability, None, None)
        if h.name == UNKNOWN  # which nobody can choose
        else (h.name, h.probability, address("next", *here, ("pin", pin), ("head", h.name)), None)
        for h in ahead.heads
    ]
    events = [
        (
            typed(e.event),
            e.probability,
            address("next", ("run", state.run), *state.script(typed(e.event))),
            e.frame.name if e.frame else None,
        )
        for e in ahead.events
    ]
    return tag(
        "div",
        ranked("Events", events),
        ranked("Frames", frames) if frames and not pin else None,
        ranked("Words", heads) if not head else None,
        tag("p", f"Probabilities: {ahead.note}.", class_="note"),
        class_="ahead",
    )


def _copied(events: Sequence[Event], written: Sequence[Script], slots: Slots) -> Html:
    """The script and its continuations as JSON lines, to be copied."""
    scripts = [[e.event for e in script.events] for script in written] or [list(events)]
    lines = "\n".join(
        to_json({"id": str(n), "events": [event_to_record(e, slots) for e in script]}, ensure_ascii=False)
        for n, script in enumerate(scripts, start=1)
    )
    box = tag("textarea", lines, readonly=True, rows=3, id="jsonl", aria_label="The script as JSON lines")
    return tag(
        "details",
        tag("summary", "As JSON lines"),
        box,
        tag("p", tag("button", "Copy", type="button", data_copy="jsonl"), tag("span", role="status")),
    )


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else otherwise


async def documents(explorer: Explorer, limits: Limits, state: State) -> str:
    of = explorer.find(state.run)
    wanted = Filter(state.rest.get("frame", "").strip(), state.rest.get("words", "").strip())
    page, unusual = max(1, _number(state.rest.get("page"), 1)), "unusual" in state.rest
    error, found = None, list[InferredDocument]()
    if of.library.name is None:
        content = [_no_documents()]
    else:
        try:
            library = await (explorer.unusual(of) if unusual else explorer.library(of))
            found = library.find(wanted, unusual)
        except UserError as wrong:
            error = str(wrong)
        content = [
            tag(
                "p",
                f"From {of.library.name}: what the model makes of each document; no frame was given to it.",
            ),
            tag(
                "form",
                choose_model(explorer, of),
                frame_names(of),
                _box("Frame", "frame", wanted.frame, list="frame-names"),
                _box("Words", "words", wanted.words),
                tag(
                    "label",
                    tag("input", type="checkbox", name="unusual", value="1", checked=unusual),
                    " the most unusual first",
                    class_="check",
                )
                if isinstance(of.model, LanguageModel)
                else None,
                tag("button", "Find"),
                action="/documents",
                data_live=True,
                class_="filters",
                aria_label="Which documents",
            ),
            problem_part(error),
            part("found", *_found(state, found, page)),
        ]
    return shell(explorer, "documents", state, content)


def _no_documents() -> Html:
    return absent(
        "There are no documents to show: name some at the start, as in “ssdvae explore RUN --documents "
        "events.jsonl”. A run whose corpus is where it was shows that by itself."
    )


def _box(label: str, name: str, value: str, **more: object) -> Html:
    box = tag("input", type="search", name=name, value=value, autocomplete="off", maxlength=200, **more)
    return tag("label", f"{label} ", box, class_="field")


def _found(state: State, found: Sequence[InferredDocument], page: int) -> list[Html]:
    first = (page - 1) * PAGE
    shown = found[first : first + PAGE]
    if not shown:
        return [absent("No document has all of that.")]
    end = first + len(shown)
    parts = [tag("p", f"{first + 1} to {end} of {len(found):,}", role="status", class_="note")]
    parts += [
        tag(
            "div",
            reading(document),
            tag(
                "p",
                tag(
                    "a",
                    "Open it in Read",
                    href=address(
                        "read", ("run", state.run), *(("e", typed(e.event)) for e in document.events)
                    ),
                ),
                class_="actions",
            ),
        )
        for document in shown
    ]
    here = [("run", state.run), *((k, v) for k, v in state.rest.items() if k != "page")]
    moves = [("Before", page - 1)] if page > 1 else []
    moves += [("More", page + 1)] if end < len(found) else []
    links = (tag("a", name, href=address("documents", *here, ("page", str(to)))) for name, to in moves)
    return [*parts, tag("p", Html(" ").join(links), class_="actions")]
