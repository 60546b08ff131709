"""FrameNet through NLTK's reader, over a FrameNet of two frames."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ssdvae.data.events import Event
from ssdvae.errors import UserError
from ssdvae.extraction import framenet
from ssdvae.extraction.annotate import load_annotator
from ssdvae.extraction.classifier import FrameClassifier
from tests.extraction.tiny_framenet import write_framenet


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_framenet(tmp_path_factory.mktemp("framenet") / "fndata")


def test_verbs_and_their_frames(folder: Path) -> None:
    reader = framenet.open_framenet(str(folder))
    found = {(verb, frame) for verb, frame, _ in framenet.verbs(reader)}
    assert found == {
        ("hit", "Impact"),
        ("hit", "Cause_harm"),
        ("beat_up", "Cause_harm"),
        ("strike", "Impact"),
    }


def test_examples_as_events(folder: Path) -> None:
    reader = framenet.open_framenet(str(folder))
    events = {
        framenet.event_of(sentence, verb, frame)
        for verb, frame, unit in framenet.verbs(reader)
        if verb != "strike"
        for sentence in unit.exemplars
    }
    assert events == {
        Event("hit", "wind", "ferry", None, frame="Impact", lemma="hit"),
        Event("hit", "it", "pier", "against", frame="Impact", lemma="hit"),
        Event("hit", "man", "brother", None, frame="Cause_harm", lemma="hit"),
        Event("hit", None, "him", None, frame="Cause_harm", lemma="hit"),
        Event("beat_up", "she", "thief", None, frame="Cause_harm", lemma="beat_up"),
    }


def test_verbs_of_full_texts_as_events(folder: Path) -> None:
    """The second text is listed, but not there; the third sentence is about a noun."""
    assert list(framenet.full_texts(framenet.open_framenet(str(folder)))) == [
        Event("hit", "waves", "pier", None, frame="Impact", lemma="hit"),
        Event("hit", "rain", "it", None, frame="Impact", lemma="hit"),
    ]


def test_a_dependent_that_is_no_prepositional_phrase_is_no_object() -> None:
    from nltk.corpus.reader.framenet import AttrDict

    places = {
        "Target": [(3, 6)],
        "GF": [(0, 2, "Ext"), (7, 13, "Dep")],
        "PT": [(0, 2, "NP"), (7, 13, "VPto")],
    }
    event = framenet.event_of(AttrDict(text="He hit to win", **places), "hit", "Impact")
    assert event == Event("hit", "he", None, None, frame="Impact", lemma="hit")


def test_a_classifier_learns_from_it(folder: Path, tmp_path: Path) -> None:
    load_annotator(str(folder), save=tmp_path / "saved")
    learned = FrameClassifier.load(tmp_path / "saved")
    # Two examples of each, and two verbs of a text.
    assert learned.lexicon.frames["hit"] == {"Cause_harm": 2, "Impact": 4}
    assert learned.probabilities(Event("hit"))["Impact"] > 0.5
    assert learned.lexicon.frames["strike"] == {"Impact": 0}
    against = learned.probabilities(Event("hit", "it", "wall", "against"))
    assert against["Impact"] > 0.5
    brother = learned.probabilities(Event("hit", "man", "brother"))
    assert brother["Cause_harm"] > learned.probabilities(Event("hit", "it", "ferry"))["Cause_harm"]


@pytest.mark.parametrize(
    ("phrase", "head"),
    [
        ("the old man", "man"),
        ("the man in the boat", "man"),
        ("ferries, which sank,", "ferries"),
        ("in", "in"),
        ("the captain 's", "captain"),
        ("...", None),
        ("", None),
    ],
)
def test_the_head_of_a_phrase(phrase: str, head: str | None) -> None:
    assert framenet.head(phrase.split()) == head


@pytest.mark.parametrize(
    ("name", "download"),
    [("framenet", "framenet_v17"), ("framenet17", "framenet_v17"), ("framenet15", "framenet_v15")],
)
def test_a_missing_corpus_gives_the_command_that_installs_it(
    name: str, download: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nltk.data

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(UserError, match=rf"not installed\npython -m nltk.downloader {download}\n"):
        load_annotator(name)


@pytest.mark.parametrize(
    ("name", "folder_name"), [("framenet17", "framenet_v17"), ("framenet15", "framenet_v15")]
)
def test_an_installed_corpus_is_found_by_its_name(
    name: str, folder_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both releases, each where NLTK's downloader puts it."""
    import nltk.corpus
    import nltk.data
    from nltk.corpus.reader.framenet import FramenetCorpusReader
    from nltk.corpus.util import LazyCorpusLoader

    write_framenet(tmp_path / "corpora" / folder_name)
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    attribute = framenet.RELEASES[name][0]
    # A fresh loader: once NLTK has loaded a corpus, it does not look again.
    loader = LazyCorpusLoader(folder_name, FramenetCorpusReader, framenet.INDEXES)
    monkeypatch.setattr(nltk.corpus, attribute, loader)
    learned = load_annotator(name)
    assert isinstance(learned, FrameClassifier)
    assert "hit" in learned.lexicon.frames


def test_a_missing_package_gives_the_command_that_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "nltk"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(UserError, match=r"pip install 'ssdvae\[framenet\]'"):
        load_annotator(str(folder))


def test_a_release_without_examples_is_said(tmp_path: Path) -> None:
    folder = write_framenet(tmp_path / "fndata")
    for path in (folder / "lu").iterdir():
        path.unlink()
    with pytest.raises(UserError, match="no annotated examples of verbs"):
        load_annotator(str(folder))
