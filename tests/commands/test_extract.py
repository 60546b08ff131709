"""`ssdvae extract`: into a file, or printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssdvae.cli import main
from ssdvae.commands.extract import extract, find_events
from ssdvae.data.readers import read_documents
from ssdvae.extraction.readers import text
from tests.extraction.conftest import spacy_model as spacy_model  # a fixture
from tests.extraction.test_extract import corpus

TEXT = "The wind hit the ferry. He moved to Beijing."


def test_one_bad_document_costs_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = corpus(tmp_path / "a.conllu", 6, bad=(2, 4))
    assert main(["extract", str(source), "--out", str(tmp_path / "out.jsonl"), "--jobs", "1"]) == 0
    said = capsys.readouterr().err
    assert "wrote 4 documents" in said
    assert "skipped 2 bad documents, the first: " in said
    assert "a.conllu, line " in said
    assert "Traceback" not in said
    assert [d.id for d in read_documents(tmp_path / "out.jsonl")] == ["d0", "d1", "d3", "d5"]


def test_without_a_file_to_write_the_events_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = corpus(tmp_path / "a.conllu", 6, bad=(2, 4))
    assert main(["extract", str(source)]) == 0
    printed = capsys.readouterr()
    assert "skipped 2 bad documents, the first: " in printed.err
    assert "wrote" not in printed.err
    extract(source, tmp_path / "out.jsonl", jobs=1, progress=False)
    documents = list(read_documents(tmp_path / "out.jsonl"))
    assert documents == list(find_events(source))
    for document in documents:
        assert f"{document.id}: {len(document.events)} event" in printed.out
        assert all(word in printed.out for event in document.events for word in event.words if word)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.conllu", "out.jsonl"]


def test_events_as_lines_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = corpus(tmp_path / "a.conllu", 3)
    assert main(["extract", str(source), "--json"]) == 0
    lines = capsys.readouterr().out
    extract(source, tmp_path / "out.jsonl", jobs=1, progress=False)
    assert [json.loads(line) for line in lines.splitlines()] == [
        json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()
    ]


def test_a_text_in_quotes(
    spacy_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["extract", TEXT, "--spacy-model", str(spacy_model)]) == 0
    printed = capsys.readouterr().out
    assert "text: 2 events" in printed
    [document] = find_events(TEXT, spacy_model=str(spacy_model))
    assert document.events[0].words == ("hit", "wind", "ferry")
    assert all(word in printed for event in document.events for word in event.words if word)
    # As long as a text may be, it is no name of a file; but a file of that name is one.
    [document] = find_events(TEXT * 100, spacy_model=str(spacy_model))
    assert len(document.events) == 200
    Path("a b.txt").write_text(TEXT)
    [document] = find_events("a b.txt", spacy_model=str(spacy_model))
    assert (document.id, len(document.events)) == ("a b.txt", 2)


def test_frames_of_the_text_are_printed_with_it(
    spacy_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passage = {
        "text": ["The wind hit the ferry."],
        "tokens": ["The", "wind", "hit", "the", "ferry", "."],
        "parse": [{"span": [2, 2], "label": "Impact", "confidence": 0.9}],
    }
    source = tmp_path / "wiki.jsonl"
    source.write_text(json.dumps({"article_title": "Ferry", "entries": [{"passage": passage}]}))
    words = ["extract", str(source), "--format", "megawika", "--spacy-model", str(spacy_model)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "Ferry/0: 1 event\n" in printed
    assert "Impact" in printed
    assert "90.0%" in printed


def test_a_document_that_a_parser_cannot_bear_costs_one_document(
    spacy_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_text("He left. " * 100)
    (tmp_path / "c.txt").write_text(TEXT)
    parser = text._load_parser(str(spacy_model))
    monkeypatch.setattr(parser, "max_length", 500)
    assert main(["extract", str(tmp_path), "--spacy-model", str(spacy_model)]) == 0
    printed = capsys.readouterr()
    assert "a.txt: 2 events" in printed.out
    assert "c.txt: 2 events" in printed.out
    assert "skipped 1 bad document: " in printed.err
    assert "document 'b.txt': ValueError" in printed.err


def test_labels_of_a_text_are_counted(tmp_path: Path, spacy_model: Path) -> None:
    """One label is at a verb, one at a noun; one verb has none. Files of one name stay apart."""
    words = ["The", "wind", "hit#A", "the", "ferry#B", ".", "They", "gave", "up", "."]
    lines = [f"▁{w.split('#')[0]} none none {'#' + w[-1] if '#' in w else 'none'} single none" for w in words]
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").write_text("\n".join([*lines, "<end_of_story>\n"]))
    out = tmp_path / "out.jsonl"
    done = extract(tmp_path, out, format="inscript", spacy_model=str(spacy_model), jobs=1)
    assert (done.events, done.labels, done.labels_without_event, done.events_without_label) == (4, 4, 2, 2)
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["x/a:0", "y/a:0"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("extract nowhere --out out.jsonl", "cannot read nowhere"),
        ("extract nowhere", "cannot read nowhere"),
        ("extract odd.yaml --out out.jsonl", "cannot tell the format of odd.yaml"),
        ("extract a.jsonl --out out.jsonl --format pdf", "text, csv"),
        ("extract a.jsonl --out out.csv", ".jsonl"),
        ("extract a.jsonl --out out.jsonl --spacy-model xx_none", "python -m spacy download xx_none"),
        ("extract a.jsonl --out out.jsonl --negation deny", "--negation: found 'deny'"),
        ("extract a.jsonl --jobs 2", "--jobs goes with --out"),
    ],
)
def test_mistakes_are_said(
    words: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text('{"text": "He left."}\n')
    Path("odd.yaml").touch()
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "odd.yaml"]


@pytest.mark.parametrize("count", [1, 5, 200])
def test_paragraphs_in_a_batch_are_parsed_as_they_are_alone(count: int, spacy_model: Path) -> None:
    sentences = ["The wind hit the ferry.", "He moved to Beijing.", "They gave up."]
    paragraphs = [sentences[number % 3] for number in range(count)]
    [together] = find_events("\n\n".join(paragraphs) + " ", spacy_model=str(spacy_model))
    alone = [
        event.words
        for paragraph in paragraphs
        for document in find_events(paragraph, spacy_model=str(spacy_model))
        for event in document.events
    ]
    assert [event.words for event in together.events] == alone
