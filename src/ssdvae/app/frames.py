"""The view of frames: one, with its words and its neighbours, or all."""

from __future__ import annotations

from ssdvae.analysis.explain import Explanation
from ssdvae.app.explorer import Explorer
from ssdvae.app.library import Filter
from ssdvae.app.shell import State, address, choose_model, frame_names, part, problem_part, shell
from ssdvae.errors import UserError
from ssdvae.report.documents import reading
from ssdvae.report.frames import RARE, chips, frame_table, neighbours
from ssdvae.report.graph import walk
from ssdvae.report.html import Html, absent, breakable, join, tag

WORDS, AROUND, SHOWN = 20, 7, 3


async def frames(explorer: Explorer, state: State) -> str:
    of = explorer.find(state.run)
    wanted = state.rest.get("q", "").strip()
    error, content = None, None
    try:
        library = await explorer.library(of)
        if library.explanation is None:
            content = absent("There is nothing to show: the model infers no frames, or it has no documents.")
        elif not wanted:
            content = frame_table(library.explanation, "all-frames", lambda name: _to(state, name))
        elif wanted in of.model.frames:
            content = _frame(library.explanation, state, wanted)
            occurs = library.find(Filter(frame=wanted))
            more = address("documents", ("run", state.run), ("frame", wanted))
            content = join(
                [
                    content,
                    tag("h2", f"In {'documents' if library.name else 'scripts'} ({len(occurs):,})"),
                    *map(reading, occurs[:SHOWN]),
                    tag("p", tag("a", "All of them", href=more)) if occurs and library.name else None,
                ]
            )
        else:
            content = _word(library.explanation, state, wanted)
    except UserError as wrong:
        error = str(wrong)
    box = tag(
        "input", type="search", name="q", value=wanted, list="frame-names", autocomplete="off", maxlength=200
    )
    return shell(
        explorer,
        "frames",
        state,
        [
            tag(
                "form",
                choose_model(explorer, of),
                frame_names(of),
                tag("label", "A frame or a word ", box, class_="field"),
                tag("button", "Look"),
                action="/frames",
                class_="filters",
                aria_label="Which frame",
            ),
            problem_part(error),
            tag("p", f"From {of.library.source}.", class_="note"),
            part("found", content),
        ],
    )


def _to(state: State, name: str) -> str:
    return address("frames", ("run", state.run), ("q", name))


def _frame(found: Explanation, state: State, name: str) -> Html:
    around = neighbours(found.transitions, name, AROUND)
    words = None
    if times := found.beliefs.times_of_frame(name):
        top = [(word, p) for word, p in found.beliefs.words_of(name, WORDS) if p >= RARE]
        words = join([tag("h2", "Its words"), chips(top, lambda word: _to(state, word))])
    return join(
        [
            tag("h2", breakable(name)),
            tag("p", f"Events with it in these documents: about {times:,.0f}."),
            tag("h2", "What comes before and after"),
            walk(
                f"Before and after {name}", name, around.before, around.after, lambda other: _to(state, other)
            )
            if around.before or around.after
            else absent("Nothing comes before or after it in these documents."),
            words,
        ]
    )


def _word(found: Explanation, state: State, word: str) -> Html:
    """The frames of a word; or names that look like what was typed."""
    names = found.transitions.frames.names
    alike = [name for name in names if word.lower() in name.lower()]
    parts = []
    if alike:
        parts += [tag("h2", "Frames"), chips([(n, None) for n in alike], lambda name: _to(state, name))]
    if word in found.beliefs.vocabulary and (times := found.beliefs.times_of_word(word)):
        top = [(name, p) for name, p in found.beliefs.frames_of(word, AROUND) if p >= RARE]
        parts += [
            tag("h2", f"Frames of “{word}”"),
            tag("p", f"Events with it as their head in these documents: {times:,}."),
            chips(top, lambda name: _to(state, name)),
        ]
    return join(parts) if parts else absent(f"No frame and no word is called “{word}”.")
