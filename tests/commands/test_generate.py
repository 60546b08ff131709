"""`ssdvae generate` and `unknown_words`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdvae.commands.coerce import load
from ssdvae.commands.generate import generate, unknown_words
from ssdvae.data.events import Event
from ssdvae.io.errors import UserError
from tests.commands.conftest import Ask, assert_is_a_message, records

SEED = "arrested police suspect in"


def test_generate(folder: Path, ask: Ask) -> None:
    words = ["generate", SEED, "met xyzzy", "--run", folder / "ssdvae", "--scripts", "3", "--events", "2"]
    (record,) = records(ask(*words, "--json", "--frames", "_,Arrest"))
    assert record["unknown_words"] == {"xyzzy": None}
    assert len(record["scripts"]) == 3
    for script in record["scripts"]:
        assert len(script["events"]) == 4
        assert script["seeds"] == 2
        assert all(event["planned"] for event in script["events"])
        # The head of a generated event may be a word that was no head in training: its frame is unknown.
        assert all(event["inferred"] for event in script["events"][:2])
    assert ask(*words, "--json") == ask(*words, "--json")
    for method in ("sample", "greedy", "beam"):
        shown = ask(*words, "--method", method, "--no-repeat", "--distinct-roles")
        assert "met xyzzy" in shown
        assert "script 1, log p" in shown
    assert "inferred" not in ask("generate", SEED, "--run", folder / "rnnlm")


def test_an_event_is_an_object_a_mapping_or_a_text(folder: Path, ask: Ask) -> None:
    model = load(folder / "ssdvae")
    event = Event("arrested", "police", "suspect", "in")
    record = {"verb": "arrested", "subj": "police", "obj": "suspect", "mod": "in"}
    forms: list[Any] = [event, record, SEED]
    found = [generate(model, given, scripts=2, events=1) for form in forms for given in (form, [form])]
    assert all(scripts == found[0] for scripts in found)
    (printed,) = records(
        ask("generate", SEED, "--run", folder / "ssdvae", "--scripts", "2", "--events", "1", "--json")
    )
    assert printed["scripts"] == [script.to_record() for script in found[0]]
    assert unknown_words(model, ["arrested xyzzy", {"verb": "plugh"}]) == {"xyzzy": None, "plugh": None}


def test_a_wrong_seed_event_is_a_clear_error(folder: Path) -> None:
    wrong: Any
    for wrong in ([{"subj": "she"}], [3], "a b c d e", [["met"]]):
        with pytest.raises(UserError, match="an event: found"):
            generate(folder / "ssdvae", wrong)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("generate met --run SSDVAE --frames arest", "did you mean Arrest"),
        ("generate met --run SSDVAE --frames _,_ --events 1", "2 frames for the 1 events"),
        ("generate --run SSDVAE --frames Arrest", "there is none"),
        ("generate met --run SSDVAE --temperature 0", "--temperature"),
        ("generate met --run PLAIN --frames Arrest", "no frames"),
    ],
)
def test_a_mistake_is_a_message(
    words: str, expected: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_is_a_message(words, expected, folder, tmp_path, capsys)
