"""Sentences may stand in the place of events, where a parser is there; the format is shown where not."""

from __future__ import annotations

from typing import Any

import pytest

from ssdvae.data.events import SLOTS, Document, Event
from ssdvae.data.options import ExtractOptions
from ssdvae.extraction import extract
from ssdvae.inference import sentences
from ssdvae.inference.sentences import is_sentence, read_text, with_format, with_sentences
from ssdvae.io.errors import Malformed
from tests.inference.test_lookup import english_model

MODEL = english_model()
SENTENCE = "Police arrested a suspect in Boston."
EVENT = Event("arrested", "police", "suspect", lemma="arrest")


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that finds one event in a sentence with a verb."""

    def find(text: str, options: ExtractOptions) -> Document:
        return Document("text", (EVENT,) if "arrested" in text else ())

    monkeypatch.setattr(sentences, "has_parser", lambda name: True)
    monkeypatch.setattr(extract, "extract_text", find)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SENTENCE, True),
        ("She left.", True),
        ("“He ran!”", True),
        ("the police arrested a suspect", True),
        ("arrested police suspect in", False),
        ("arrested police ? in", False),
        ("jailed court ?", False),
        ("?", False),
        ("arrested u.s.", True),
        ("left.", False),
    ],
)
def test_a_sentence_ends_like_one_or_has_more_words_than_an_event(text: str, expected: bool) -> None:
    assert is_sentence(text, SLOTS) == expected
    assert not is_sentence(text, ("activity", "resource"))


def test_the_events_of_a_sentence_stand_in_its_place(parser: None) -> None:
    other = {"verb": "left"}
    given: Any = [SENTENCE, "left he city", other]
    found = [EVENT, Event("left", "he", "city"), other]
    assert with_sentences(given, MODEL) == found
    assert with_sentences({"id": "a", "events": given}, MODEL) == {"id": "a", "events": found}


def test_without_a_verb_it_is_typed_or_an_error_with_the_format(parser: None) -> None:
    assert read_text("left u.s.", MODEL) == [Event("left", "u.s.")]
    with pytest.raises(Malformed, match=r"verb subj obj mod.*spaCy"):
        read_text("no verb in all of this.", MODEL)


def test_without_a_parser_a_long_text_is_an_error_with_the_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "has_parser", lambda name: False)
    with pytest.raises(Malformed, match=r"verb subj obj mod.*spaCy"):
        read_text(SENTENCE, MODEL)
    assert read_text("left she.", MODEL) == [Event("left", "she.")]


def test_every_error_shows_the_format_once() -> None:
    assert "verb subj obj mod" in with_format(Malformed("3 under 'verb'", "a word in quotes, or null"), SLOTS)
    with pytest.raises(Malformed) as error:
        read_text("-", MODEL)
    assert with_format(error.value, SLOTS).count("verb subj obj mod") == 1
