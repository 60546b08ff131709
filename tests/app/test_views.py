"""Parts of the explorer's pages, without a server."""

from __future__ import annotations

import pytest

from ssdvae.answers.generate import Script, ScriptEvent
from ssdvae.answers.next_events import Next
from ssdvae.answers.ranked import Candidate
from ssdvae.app.shell import State
from ssdvae.app.views import _suggestions
from ssdvae.data.events import Event
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.report.documents import script_article


def test_a_known_word_can_be_chosen_and_the_unknown_one_cannot() -> None:
    heads = (Candidate("ran", 0.5), Candidate(UNKNOWN, 0.25))
    ahead = Next("a", 1, {}, None, (), heads, (), True, "exact", 0)
    page = str(_suggestions(State(), "", "", ahead))
    assert "head=ran" in page
    assert "unk" not in page.replace("unknown", "")
    assert page.count("<a ") == 1


@pytest.mark.parametrize(
    ("planned", "inferred", "shown"),
    [("Motion", "Arrest", "Motion"), (None, "Arrest", "Arrest"), (None, None, None)],
)
def test_an_event_of_a_script_has_the_frame_that_was_planned_or_else_read(
    planned: str | None, inferred: str | None, shown: str | None
) -> None:
    page = str(script_article(Script((ScriptEvent(Event("ran"), planned, inferred, None),), 1, -1.0)))
    assert [name for name in ("Motion", "Arrest") if f"[{name}]" in page] == ([shown] if shown else [])
