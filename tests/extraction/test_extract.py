"""Extraction as a whole: any number of processes and any interruption give the same file."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest

from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers import Skipped, read_documents
from ssdvae.data.stream import Chunk, Streamed, _Journal
from ssdvae.extraction import extract as module
from ssdvae.extraction.extract import CHUNK, extract, extract_text
from ssdvae.extraction.readers.text import load_parser
from ssdvae.extraction.rules import extract_document
from ssdvae.io.errors import UserError
from tests.extraction.stopping import Stopped, damage, leftovers, run_again, stop_after, stopped_by
from tests.extraction.trees import CONSTRUCTIONS, conllu_lines

BAD = "1\tHe\tbroken"


def corpus(path: Path, documents: int, bad: Iterable[int] = ()) -> Path:
    """Documents of one to three sentences; some are broken."""
    trees = [conllu_lines(tree) for tree, _, _ in CONSTRUCTIONS.values()]
    bad = set(bad)
    with path.open("w", encoding="utf-8") as file:
        for number in range(documents):
            file.write(f"# newdoc id = d{number}\n")
            for place in range(number % 3 + 1):
                file.write(trees[(number + place) % len(trees)] + "\n\n")
            if number in bad:
                file.write(BAD + "\n\n")
    return path


def test_documents_and_their_order_are_kept(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 5)
    done = extract([source], tmp_path / "out.jsonl")
    documents = list(read_documents(tmp_path / "out.jsonl"))
    assert [document.id for document in documents] == [f"d{number}" for number in range(5)]
    assert (done.documents, done.events, done.resumed) == (5, sum(len(d.events) for d in documents), 0)
    for document in documents:
        origins = [event.origin for event in document.events]
        assert origins == sorted(origins, key=lambda o: (o.sentence, o.start))  # type: ignore[union-attr]  # all have one
    assert leftovers(tmp_path) == []


def test_any_number_of_processes_gives_the_same_file(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 5 * CHUNK + 3, bad=(7, 40))
    results = {}
    for jobs in (1, 3):
        done = extract([source], tmp_path / f"{jobs}.jsonl", ExtractOptions(jobs=jobs))
        results[jobs] = ((tmp_path / f"{jobs}.jsonl").read_bytes(), str(done.skipped), done.events)
    assert results[1] == results[3]


def test_a_parser_that_fails_costs_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = corpus(tmp_path / "a.conllu", 3)

    def fails(parsed, settings):  # type: ignore[no-untyped-def]  # stands in for to_document
        if parsed.id == "d1":
            raise RecursionError("too deep")
        return extract_document(parsed, settings)

    monkeypatch.setattr(module, "extract_document", fails)
    done = extract([source], tmp_path / "out.jsonl", ExtractOptions(jobs=1))
    assert done.documents == 2
    assert "document 'd1': RecursionError: too deep" in str(done.skipped)


def test_texts_are_parsed_together_and_a_bad_one_alone(
    tmp_path: Path, spacy_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events of a text do not depend on its neighbours; one that spaCy refuses costs itself only."""
    sentences = ["He moved to Beijing in May.", "The wind hit the ferry.\n\nHe moved to Beijing in May.", ""]
    texts = [*sentences, "He moved. " * 50, *sentences]
    records = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    options = ExtractOptions(spacy_model=str(spacy_model), jobs=1)
    alone = [extract_text(text, options).events for text in texts]
    parser = load_parser(options)
    monkeypatch.setattr(parser, "max_length", 400)
    done = extract([tmp_path / "a.jsonl"], tmp_path / "out.jsonl", options)
    found = {document.id: document.events for document in read_documents(tmp_path / "out.jsonl")}
    assert found == {f"d{number}": events for number, events in enumerate(alone) if number != 3}
    assert done.skipped.count == 1
    assert "document 'd3'" in str(done.skipped)


def test_nothing_to_read_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 1, bad=[0])
    with pytest.raises(UserError, match=r"no document could be read from .*a\.conllu\n.*line "):
        extract([source], tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    (tmp_path / "b.conllu").touch()
    with pytest.raises(UserError, match="no document could be read"):
        extract([tmp_path / "b.conllu"], tmp_path / "other.jsonl")


def test_files_of_one_name_have_ids_of_their_own(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "a.conllu").write_text(conllu_lines(CONSTRUCTIONS["passive"][0]))
    extract([tmp_path / "in"], tmp_path / "out.jsonl")
    assert [d.id for d in read_documents(tmp_path / "out.jsonl")] == ["x/a.conllu", "y/a.conllu"]


# Stopped and gone on with.


@pytest.mark.parametrize("chunks", [0, 1, 3])
@pytest.mark.parametrize("unentered", [b"", b'{"id": "half a li', b'{"id": "whole", "events": []}\n'])
@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_an_extraction_goes_on_where_it_stopped(
    chunks: int, unentered: bytes, name: str, tmp_path: Path
) -> None:
    """Lines that a killed process wrote without entering them in the journal are cut off."""
    source = corpus(tmp_path / "a.conllu", 5 * CHUNK + 3, bad=(3, 70))
    settings = ExtractOptions(jobs=1)
    whole = extract([source], tmp_path / f"whole-{name}", settings)
    out = tmp_path / name
    with pytest.raises(Stopped):
        extract([source], out, settings, progress=stop_after(chunks))
    assert not out.exists()
    if chunks:
        damage(out, unentered)
    done = extract([source], out, settings)
    assert done.resumed == chunks * CHUNK
    assert out.read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    assert (done.documents, done.events, done.skipped.count) == (
        whole.documents,
        whole.events,
        whole.skipped.count,
    )
    assert leftovers(tmp_path) == []


def test_an_extraction_that_is_stopped_again_and_again(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 5 * CHUNK, bad=[3])
    settings = ExtractOptions(jobs=1)
    whole = extract([source], tmp_path / "whole.jsonl", settings)
    for _ in range(2):
        with pytest.raises(Stopped):
            extract([source], tmp_path / "out.jsonl", settings, progress=stop_after(2))
    done = extract([source], tmp_path / "out.jsonl", settings)
    assert done.resumed == 4 * CHUNK
    assert (done.documents, str(done.skipped)) == (whole.documents, str(whole.skipped))
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("change", ["settings", "source", "part"])
def test_what_has_changed_is_begun_anew(change: str, tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 3 * CHUNK)
    settings = ExtractOptions(jobs=1)
    out = tmp_path / "out.jsonl"
    with pytest.raises(Stopped):
        extract([source], out, settings, progress=stop_after(2))
    if change == "settings":
        settings = ExtractOptions(jobs=1, lemmas=True)
    elif change == "source":
        corpus(source, 3 * CHUNK - 1)
    else:
        os.truncate(tmp_path / ".out.jsonl.part", 10)
    assert extract([source], out, settings).resumed == 0
    extract([source], tmp_path / "fresh.jsonl", settings)
    assert out.read_bytes() == (tmp_path / "fresh.jsonl").read_bytes()


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 3 * CHUNK)
    out = tmp_path / "out.jsonl"
    out.write_text("old\n")
    with pytest.raises(Stopped):
        extract([source], out, ExtractOptions(jobs=1), progress=stop_after(1))
    assert out.read_text() == "old\n"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_extraction_ends_with_the_same_file(jobs: int, tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 60 * CHUNK)
    out = tmp_path / "out.jsonl"
    words = ["extract", str(source), "--out", str(out), "--jobs", str(jobs)]
    stopped_by(signal.SIGKILL, words, out, entries=5)
    assert not out.exists()
    assert "resumed after" in run_again(words)
    extract([source], tmp_path / "whole.jsonl", ExtractOptions(jobs=1))
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert leftovers(tmp_path) == []


def test_compressed_output(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 2)
    extract([source], tmp_path / "out.jsonl.gz")
    lines = gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["d0", "d1"]


def test_a_place_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 1)
    with pytest.raises(UserError, match="cannot write"):
        extract([source], tmp_path / "nowhere" / "out.jsonl")


def test_two_at_the_same_file_are_not_let_in(tmp_path: Path) -> None:
    with _Journal(tmp_path / "out.jsonl", {}, Streamed(), None) as first:
        first.write(Chunk(1, ("one",), {}, ()))
        with (
            pytest.raises(UserError, match="another process is writing"),
            _Journal(tmp_path / "out.jsonl", {}, Streamed(), None),
        ):
            pass
        first.write(Chunk(1, ("two",), {}, ()))
        first.finish()
    assert (tmp_path / "out.jsonl").read_text() == "one\ntwo\n"


def test_a_journal_knows_the_size_of_its_file_after_a_stop(tmp_path: Path) -> None:
    """Also where lines were cut off that had not been entered, and nothing came after them."""
    out, bad = tmp_path / "out.jsonl", Chunk(1, (), {}, ("bad",))
    with _Journal(out, {}, Streamed(), None) as journal:
        journal.write(Chunk(1, ("one",), {}, ()))
        journal.lines.write(b"written and not entered\n")
    with _Journal(out, {}, Streamed(), Skipped()) as journal:
        journal.write(bad)
    with pytest.raises(UserError, match="bad") as refused, _Journal(out, {}, Streamed(), None):
        pass
    done = Streamed()
    with _Journal(out, {}, done, Skipped()):  # the lock was let go, although the error is still held
        assert done.resumed == 2
    assert refused


@pytest.mark.parametrize(
    "line",
    [
        '{"read": 1, "coun',
        "[1]",
        "{}",
        '{"read": 1, "counts": {}, "errors": [], "size": "4"}',
        '{"read": 1, "counts": {"documents": null}, "errors": [], "size": 4}',
        '{"read": 1, "counts": {}, "errors": [], "size": -4}',
        '{"read": 1, "counts": {}, "errors": [], "size": 1}',
        "[" * 100_000,
    ],
)
def test_a_damaged_journal_counts_up_to_the_damage(line: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    first = json.dumps({"read": 3, "counts": {"documents": 3}, "errors": [], "size": 2})
    (tmp_path / ".out.jsonl.part").write_text("{}{}{}")
    (tmp_path / ".out.jsonl.journal").write_text(f'{{"a": 1}}\n{first}\n{line}\n{first}\n')
    done = Streamed()
    with _Journal(out, {"a": 1}, done, None):
        assert (done.resumed, done.counts["documents"]) == (3, 3)
        assert (tmp_path / ".out.jsonl.part").read_text() == "{}"
