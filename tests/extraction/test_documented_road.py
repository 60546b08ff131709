"""From text to a trained model: the commands of docs/text.md as they stand there; the demo's text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ssdvae.cli import main
from ssdvae.commands.annotate import annotate
from ssdvae.commands.extract import extract
from ssdvae.data.readers import read_documents
from ssdvae.extraction.annotate import annotate_example
from tests.extraction.trees import CONSTRUCTIONS, rows_of, shown
from tests.pages import blocks, commands, section

ROAD = "From a folder of texts to a model"


def write_stories(folder: Path, count: int) -> None:
    """Texts of sentences that the tiny parser knows."""
    sentences = [" ".join(row[0] for row in rows_of(tree)) + "." for _, tree, _ in CONSTRUCTIONS.values()]
    folder.mkdir()
    for number in range(count):
        chosen = [sentences[(number * 7 + place * 3) % len(sentences)] for place in range(6)]
        (folder / f"{number:02}.txt").write_text("\n\n".join(chosen) + "\n")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_stories(tmp_path / "stories", 40)
    (tmp_path / "verbs.csv").write_text(blocks(section("text"), "csv")[0])
    return tmp_path


def test_the_documented_road(place: Path, spacy_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    road = [words for words in commands("text", ROAD) if words[0] != "explain"]
    assert [words[0] for words in road] == [
        *("extract", "annotate", "prepare", "train", "evaluate", "infer", "score", "report"),
    ]
    for words in road:
        more = {"train": ["--preset", "tiny"], "extract": ["--spacy-model", str(spacy_model)]}
        assert main([*words, *more.get(words[0], [])]) == 0, capsys.readouterr().err
    assert len((place / "inferred.jsonl").read_text().splitlines()) == 40
    assert "Departing" in (place / "report.html").read_text()
    documents = list(read_documents(place / "framed.jsonl"))
    assert [document.id for document in documents] == [f"{number:02}.txt" for number in range(40)]
    frames = {event.head: event.frame for document in documents for event in document.events}
    assert frames["hit"] == "Impact"
    assert frames["moved"] == "Motion"
    assert frames["gave_up"] == "Surrendering"
    assert frames["sat"] is None
    # Back to the text.
    for document in documents:
        text = (place / "stories" / document.id).read_text()
        for event in document.events:
            assert event.origin is not None
            assert text[event.origin.start : event.origin.end].lower() == event.head.partition("_")[0]


def test_the_same_in_python(place: Path, spacy_model: Path) -> None:
    done = extract("stories", "events.jsonl", spacy_model=str(spacy_model), jobs=1)
    assert done.documents == 40
    annotated = annotate("events.jsonl", "framed.jsonl", frames="verbs.csv", threshold=0.8)
    assert annotated.events == done.events
    assert annotated.labelled > 0
    # Three quarters for Departing are not enough.
    frames = {e.head: e.frame for document in read_documents("framed.jsonl") for e in document.events}
    assert frames["left"] is None


def test_the_text_of_the_demo(tmp_path: Path) -> None:
    document = annotate_example(tmp_path)
    assert document is not None
    assert [(shown(event), event.frame) for event in document.events] == [
        ("left ferry harbour None", "Departing"),
        ("carried it passengers None", "Bringing"),
        ("stop it island at", None),
        ("came storm north from", "Arriving"),
        ("hit storm ship None", "Impact"),
        ("asked captain crew None", "Request"),
        ("turn_back crew None None", "Motion"),
        ("rescued sailors helicopter by", "Rescuing"),
        ("reached ferry port None", "Arriving"),
        ("opened police inquiry None", None),
    ]
    assert "The captain asked the crew to turn back." in {e.origin.text for e in document.events if e.origin}
    # Extracted again, it is the same.
    assert annotate_example(tmp_path) == document


def test_the_demo_does_without_conllu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with caplog.at_level("INFO", "ssdvae"):
        assert annotate_example(tmp_path) is None
    assert "ssdvae[conllu]" in caplog.text


# On real data, where they are: SSDVAE_DATA is a folder with ud/ and framenet/ (see docs/extraction.md).

DATA = os.environ.get("SSDVAE_DATA")
real = pytest.mark.skipif(DATA is None, reason="SSDVAE_DATA names no folder of real data")


@real
def test_real_parses(tmp_path: Path) -> None:
    done = extract(Path(str(DATA)) / "ud" / "en_ewt-dev.conllu", tmp_path / "ewt.jsonl")
    assert (done.documents, done.skipped.count) == (318, 0)
    assert 1.1 < done.events / 2001 < 1.4


@real
@pytest.mark.parametrize("gold", ["exemplars.test", "fulltext.dev"])
def test_the_classifier_is_five_points_above_the_most_frequent_frame(gold: str, tmp_path: Path) -> None:
    from benchmarks.annotate import predict, scores
    from ssdvae.extraction.annotate import load_annotator, read_events
    from ssdvae.extraction.classifier import FrameClassifier

    folder = Path(str(DATA)) / "framenet"
    learned = load_annotator(str(folder / "exemplars.train.jsonl.gz"), candidates=folder / "verb_frames.json")
    assert isinstance(learned, FrameClassifier)
    found = scores(list(predict(learned, list(read_events(folder / f"{gold}.jsonl.gz")))))["ambiguous"]
    assert found["accuracy"] >= found["majority"] + 0.05


@real
def test_running_text_tells_more_than_examples() -> None:
    """Full texts, each judged by a classifier that has read the others, by tenths of documents."""
    from benchmarks.annotate import cross_validate, predict, scores, tenth_of
    from ssdvae.data.readers import read_documents
    from ssdvae.extraction.annotate import load_annotator
    from ssdvae.extraction.classifier import FrameClassifier

    folder = Path(str(DATA)) / "framenet"
    learned = load_annotator(str(folder / "exemplars.train.jsonl.gz"), candidates=folder / "verb_frames.json")
    assert isinstance(learned, FrameClassifier)
    texts = list(read_documents(folder / "fulltext.dev.jsonl.gz"))
    before = scores(list(predict(learned, [e for text in texts for e in text.events])))["all"]
    after = scores(list(cross_validate(learned, texts, tenth_of)))["all"]
    assert after["accuracy"] >= before["accuracy"] + 0.05
    assert after["ece"] < before["ece"]
