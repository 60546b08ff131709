"""FrameNet's XML, over a FrameNet of two frames."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ssdvae.data.events import Event
from ssdvae.extraction import framenet
from ssdvae.extraction.annotate import load_annotator
from ssdvae.extraction.classifier import FrameClassifier
from ssdvae.io.errors import DataError, UserError
from tests.extraction.tiny_framenet import HEAD, XMLNS, write_framenet


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_framenet(tmp_path_factory.mktemp("framenet") / "fndata")


def test_verbs_and_their_frames(folder: Path) -> None:
    assert {(unit.verb, unit.frame) for unit in framenet.verb_units(folder)} == {
        ("hit", "Impact"),
        ("hit", "Cause_harm"),
        ("beat_up", "Cause_harm"),
        ("strike", "Impact"),
    }


def test_definitions_without_their_marks_and_examples(folder: Path, tmp_path: Path) -> None:
    definition = (
        "&lt;def-root&gt;An &lt;fen&gt;Impactor&lt;/fen&gt; meets\n a &lt;fen&gt;Impactee&lt;/fen&gt;."
        "&lt;ex&gt;It &lt;t&gt;hit&lt;/t&gt; it.&lt;/ex&gt;&lt;/def-root&gt;"
    )
    elements = "".join(
        f'<FE coreType="{core}" name="{name}"><definition>The {name}.</definition></FE>'
        for name, core in (("Impactor", "Core"), ("Impactee", "Core-Unexpressed"), ("Place", "Peripheral"))
    )
    (folder / "frame" / "Impact.xml").write_text(
        f'{HEAD}<frame {XMLNS} name="Impact"><definition>{definition}</definition>{elements}</frame>'
    )
    found = framenet.Definitions.of_framenet(str(folder), ["Impact", "No_such_frame"])
    assert found.frames == {
        "Impact": framenet.FrameDefinition(
            text="An Impactor meets a Impactee.",
            core={"Impactor": "The Impactor.", "Impactee": "The Impactee."},
            others=["Place"],
        )
    }
    assert "CC BY 3.0" in found.source
    found.write(tmp_path / "definitions.json")
    assert framenet.Definitions.read(tmp_path / "definitions.json") == found
    assert framenet.Definitions.read(tmp_path / "none.json") is None


def test_examples_as_events(folder: Path) -> None:
    """The unit strike has no file."""
    events = {event for unit in framenet.verb_units(folder) for event in framenet.examples(unit)}
    for event in events:
        assert event.origin is not None
        assert event.origin.text is not None
        assert event.head.startswith(event.origin.text[event.origin.start : event.origin.end].lower())
    assert {event.changed(origin=None) for event in events} == {
        Event("hit", "wind", "ferry", None, frame="Impact", lemma="hit"),
        Event("hit", "it", "pier", "against", frame="Impact", lemma="hit"),
        Event("hit", "man", "brother", None, frame="Cause_harm", lemma="hit"),
        Event("hit", None, "him", None, frame="Cause_harm", lemma="hit"),
        Event("beat_up", "she", "thief", None, frame="Cause_harm", lemma="beat_up"),
    }


def test_a_verb_that_is_annotated_twice_in_a_sentence_is_two_examples(tmp_path: Path) -> None:
    def annotation(start: int, further: str = "") -> str:
        target = f'<layer name="Target"><label start="{start}" end="{start + 2}" name="Target"/></layer>'
        # The label without a place is of an argument that the sentence does not have.
        missing = '<layer name="GF"><label name="Ext" itype="INI"/></layer>'
        return f'<annotationSet status="MANUAL"{further}>{target}{missing}</annotationSet>'

    text = "<text>hit &amp; hit</text>" + '<annotationSet status="UNANN"/>'
    sets = annotation(0) + annotation(6) + annotation(6, ' cxnID="3"')
    path = tmp_path / "lu11.xml"
    path.write_text(
        f"{HEAD}<lexUnit {XMLNS}><subCorpus><sentence>{text}{sets}</sentence></subCorpus></lexUnit>"
    )
    found = list(framenet.examples(framenet.VerbUnit("hit", "Impact", path)))
    assert [event.changed(origin=None) for event in found] == [Event("hit", frame="Impact", lemma="hit")] * 2


def test_verbs_of_full_texts_as_events(folder: Path) -> None:
    """The third sentence is about a noun."""
    events = [event for document in framenet.full_texts(folder) for event in document.events]
    assert [event.changed(origin=None) for event in events] == [
        Event("hit", "waves", "pier", None, frame="Impact", lemma="hit"),
        Event("hit", "rain", "it", None, frame="Impact", lemma="hit"),
    ]


def test_a_dependent_that_is_no_prepositional_phrase_is_no_object() -> None:
    spans = {
        "Target": [(3, 6, "Target")],
        "GF": [(0, 2, "Ext"), (7, 13, "Dep")],
        "PT": [(0, 2, "NP"), (7, 13, "VPto")],
    }
    event = framenet.to_event("He hit to win", spans, "hit", "Impact")
    assert event is not None
    assert event.changed(origin=None) == Event("hit", "he", None, None, frame="Impact", lemma="hit")


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
    assert framenet.head_of_phrase(phrase.split()) == head


@pytest.fixture
def nltk_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder in which NLTK would look for its data."""
    monkeypatch.setattr(framenet, "_nltk_folders", lambda: [tmp_path / "nowhere", tmp_path])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "download"),
    [("framenet", "framenet_v17"), ("framenet17", "framenet_v17"), ("framenet15", "framenet_v15")],
)
def test_a_missing_corpus_gives_the_command_that_downloads_it(
    name: str, download: str, nltk_data: Path
) -> None:
    with pytest.raises(UserError, match=rf"python -m nltk.downloader {download}\n.*frameIndex\.xml"):
        load_annotator(name)


@pytest.mark.parametrize(
    ("name", "folder_name"),
    [("framenet17", "framenet_v17"), ("framenet15", "framenet_v15"), ("framenet", "framenet_v15")],
)
def test_an_installed_corpus_is_found_by_its_name(name: str, folder_name: str, nltk_data: Path) -> None:
    """Both releases, each where NLTK's downloader puts it."""
    write_framenet(nltk_data / "corpora" / folder_name)
    assert framenet.find_framenet(name) == nltk_data / "corpora" / folder_name
    learned = load_annotator(name)
    assert isinstance(learned, FrameClassifier)
    assert "hit" in learned.lexicon.frames


def test_the_data_folders_of_nltk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NLTK_DATA", f"{tmp_path}:/other")
    folders = framenet._nltk_folders()
    assert folders[:3] == [tmp_path, Path("/other"), Path.home() / "nltk_data"]
    assert Path("/usr/share/nltk_data") in folders


def test_a_missing_package_gives_the_command_that_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "lxml"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(UserError, match=r"pip install 'ssdvae\[framenet\]'"):
        load_annotator(str(folder))


def test_a_release_without_examples_is_said(tmp_path: Path) -> None:
    folder = write_framenet(tmp_path / "fndata")
    for path in (folder / "lu").iterdir():
        path.unlink()
    with pytest.raises(UserError, match="no annotated examples of verbs"):
        load_annotator(str(folder))


@pytest.mark.parametrize("name", ["luIndex.xml", "lu/lu11.xml", "fulltext/Tiny__story.xml"])
@pytest.mark.parametrize("content", ["", "<lexUnit>\n<subCorpus>\n</lexUnit>", "no XML"])
def test_a_damaged_file_is_named(name: str, content: str, tmp_path: Path) -> None:
    folder = write_framenet(tmp_path / "fndata")
    (folder / name).write_text(content)
    with pytest.raises(DataError, match=f"{name}.*expected a file of FrameNet"):
        load_annotator(str(folder))


def test_a_label_without_a_number_is_named(tmp_path: Path) -> None:
    folder = write_framenet(tmp_path / "fndata")
    path = folder / "lu" / "lu11.xml"
    path.write_text(path.read_text().replace('start="0"', 'start="first"'))
    with pytest.raises(DataError, match=r"lu11\.xml.*found 'first'"):
        load_annotator(str(folder))


def test_no_entity_is_expanded(tmp_path: Path) -> None:
    """A file of the reader's machine does not become a part of a text."""
    (tmp_path / "secret").write_text("secret")
    folder = write_framenet(tmp_path / "fndata")
    path = folder / "lu" / "lu11.xml"
    entity = f'<!DOCTYPE lexUnit [<!ENTITY x SYSTEM "{(tmp_path / "secret").as_uri()}">]>'
    content = path.read_text().replace(HEAD, HEAD + entity).replace("the ferry", "the &x;")
    path.write_text(content)
    events = [event for unit in framenet.verb_units(folder) for event in framenet.examples(unit)]
    assert not any("secret" in event.words for event in events)
