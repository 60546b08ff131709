"""Text in the view Read: its events are found by spaCy, where that is installed, and then read."""

from __future__ import annotations

from ssdvae.app.explorer import Explored, Explorer
from ssdvae.app.shell import State
from ssdvae.app.wire import Limits
from ssdvae.config.slots import SLOTS
from ssdvae.data.events import Event
from ssdvae.errors import UserError
from ssdvae.extraction.readers.text import parser_is_there
from ssdvae.report.html import Html, absent, tag

LONGEST = 10_000
"""Characters of a text: it is sent in an address."""


async def events_of_text(explorer: Explorer, limits: Limits, of: Explored, text: str) -> tuple[Event, ...]:
    """The events of a text, in its order."""
    if of.model.slots != SLOTS:
        raise UserError(f"text has events of {', '.join(SLOTS)}, and this model knows others")
    if len(text) > LONGEST:
        raise UserError(
            f"the text has {len(text):,} characters, expected at most {LONGEST:,}: give it in parts"
        )
    found = limits.events(await explorer.extract(of, text), of.model.slots)
    if not found:
        raise UserError("no events were found in this text: it has no sentence with a verb of its own")
    return found


def text_form(explorer: Explorer, of: Explored, state: State) -> Html | None:
    """Where a text is typed; or what to install for it."""
    if of.model.slots != SLOTS:
        return None
    name, text = explorer.settings.spacy_model, state.rest.get("text", "")
    if not parser_is_there(name):
        content: list[Html | None] = [
            absent(
                "To find the events of a text, a parser is needed: “pip install 'ssdvae[text]'”, then "
                "“python -m spacy download en_core_web_sm”; or name another with --spacy-model."
            )
        ]
    else:
        box = tag(
            "textarea",
            text,
            name="text",
            rows=4,
            maxlength=LONGEST,
            aria_label="A text",
            placeholder="The police arrested a suspect. He was charged with murder.",
        )
        content = [
            tag("input", type="hidden", name="run", value=state.run) if state.run else None,
            box,
            tag("p", tag("button", "Find its events"), class_="actions"),
        ]
    return tag(
        "details",
        tag("summary", "Or read a text"),
        tag("form", *content, action="/read", aria_label="A text to read"),
        open=bool(text),
        class_="text",
    )
