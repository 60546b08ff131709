"""Parts of the explorer's pages, without a server."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from ssdvae.app.server import address_of
from ssdvae.app.views import State, Step, download, pieces, suggestions, tour_address
from ssdvae.data.events import Event, Origin
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.inference.forecast import Forecast
from ssdvae.inference.generation import Script, ScriptEvent
from ssdvae.inference.output import Candidate
from ssdvae.report.cases import outcomes
from ssdvae.report.findings import FrameRow, Scripts
from ssdvae.report.render import LOG, TEXT
from tests.report.conftest import render_block


def test_a_text_is_marked_at_the_verbs_of_its_events() -> None:
    text = "Ann left. She was seen and heard."
    places = [(verb, text.index(verb)) for verb in ("heard", "left", "seen", "seen")]
    events = [Event(verb, origin=Origin(0, start, start + len(verb))) for verb, start in places]
    found = pieces(text, events)
    assert "".join(piece for piece, _ in found) == text
    marked = [(piece, place) for piece, place in found if place is not None]
    assert marked == [("left", 1), ("seen", 2), ("heard", 0)]
    assert pieces("", []) == []


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("frames/Arrest", "/frames?q=Arrest"),
        ("Frame/", "/frames"),
        ("documents/police", "/documents?words=police"),
        ("api", "/docs"),
        ("about", "/card"),
        ("variants", "/process"),
        ("cases/T7", "/documents?words=T7"),
        ("index.html", "/read"),
        ("api/nothing", None),
        ("wp-login.php", None),
    ],
)
def test_addresses_that_one_may_guess(path: str, place: str | None) -> None:
    assert address_of(path) == place


def test_an_event_is_in_one_box_or_in_a_field_for_each_slot() -> None:
    fields = [("e0", "met"), ("e1", " the  man "), ("e2", ""), ("f", "Meeting"), ("e0", "left"), ("e1", "")]
    state = State.of([*fields, ("e2", "home"), ("f", ""), ("e0", ""), ("e1", ""), ("e2", ""), ("run", "a")])
    assert [line.text for line in state.lines] == ["met the_man", "left - home", ""]
    assert [line.frame for line in state.lines] == ["Meeting", "", ""]
    assert [[line.word(n) for n in range(3)] for line in state.events] == [
        ["met", "the_man", ""],
        ["left", "", "home"],
    ]
    in_boxes = State.of(state.script())
    assert [(line.text, line.frame) for line in in_boxes.lines] == [
        (line.text, line.frame) for line in state.events
    ]


def test_the_end_of_a_case_is_among_the_activities() -> None:
    heads = (Candidate("closed", 0.5), Candidate("sent", 0.1))
    ahead = Forecast("a", 1, {}, None, (), heads, (), True, "exact", {}, True, end_probability=0.25)
    lists = dict(suggestions(State(), "", "", ahead, LOG))
    names = [one.name.text for one in lists["Activities"]]
    assert names == ["closed", "the case ends", "sent"]
    assert [name.text for name in outcomes(ahead).names] == ["closed", "case ends", "sent"]


def test_the_tour_goes_through_four_views_and_ends() -> None:
    place, seen = tour_address(State(), 1), []
    while place:
        split = urlsplit(place)
        seen.append(split.path)
        step = Step.of(State.of(parse_qsl(split.query)))
        assert step is not None
        assert step.number == len(seen)
        place = step.then
    assert seen == ["/read", "/next", "/frames", "/documents"]
    assert Step.of(State()) is None
    assert Step.of(State(rest={"tour": "9"})) is None


def test_answers_as_a_table_have_every_column() -> None:
    rows = [FrameRow("Arrest", 9.0, [("arrested", 0.5)], [("Trial", 0.25)])]
    lines = bytes(download("frames", rows, "csv").body).decode().splitlines()
    assert lines == [
        "frame,events,word,share,after",
        "Arrest,9,arrested,0.5,",
        "Arrest,9,,0.25,Trial",
    ]
    assert json.loads(bytes(download("frames", rows, "json").body))[0]["frame"] == "Arrest"


def test_a_known_word_can_be_chosen_and_the_unknown_one_cannot() -> None:
    heads = (Candidate("ran", 0.5), Candidate(UNKNOWN, 0.25))
    ahead = Forecast("a", 1, {}, None, (), heads, (), True, "exact", {}, True)
    lists = dict(suggestions(State(), "", "", ahead, TEXT))
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
