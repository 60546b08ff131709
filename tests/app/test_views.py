"""Parts of the explorer's pages, without a server."""

from __future__ import annotations

import pytest

from ssdvae.app.views import State, suggestions
from ssdvae.data.events import Event
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.inference.forecast import Forecast
from ssdvae.inference.generation import Script, ScriptEvent
from ssdvae.inference.output import Candidate
from ssdvae.report.findings import Scripts
from tests.report.conftest import render_block


def test_a_known_word_can_be_chosen_and_the_unknown_one_cannot() -> None:
    heads = (Candidate("ran", 0.5), Candidate(UNKNOWN, 0.25))
    ahead = Forecast("a", 1, {}, None, (), heads, (), True, "exact", {}, True)
    lists = dict(suggestions(State(), "", "", ahead))
    known, unknown = (one.name for one in lists["Words"])
    assert known.href == "/next?head=ran"
    assert (unknown.text, unknown.href) == ("a word unknown to the model", None)


@pytest.mark.parametrize(
    ("planned", "inferred", "shown"),
    [("Motion", "Arrest", "Motion"), (None, "Arrest", "Arrest"), (None, None, None)],
)
def test_an_event_of_a_script_has_the_frame_that_was_planned_or_else_read(
    planned: str | None, inferred: str | None, shown: str | None
) -> None:
    script = Script((ScriptEvent(Event("ran"), planned, inferred, None),), 1, -1.0)
    page = render_block(Scripts([script]))
    assert [name for name in ("Motion", "Arrest") if f"[{name}]" in page] == ([shown] if shown else [])
