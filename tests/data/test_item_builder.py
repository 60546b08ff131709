"""Cloze items of a corpus: truths are its documents, distractors what others went on with."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from ssdvae.cli import main
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import MISSING, SLOTS, Document, Event
from ssdvae.data.items import ItemBuilder, Script, read_cloze
from ssdvae.data.options import PrepareOptions, Split
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.data.source import split_of
from ssdvae.io.errors import UserError
from ssdvae.io.files import sha256

SETTINGS = PrepareOptions(
    valid_share=0.4, test_share=0.3, cloze_events=3, cloze_options=4, cloze_items=20, events=2, frames=2
)


def document(number: int, length: int) -> Document:
    """Every verb names its document and place, so that it shows where an event came from."""
    events = (
        Event(f"V{number}-{place}", "Ann", None, "in", frame="FG"[place % 2]) for place in range(length)
    )
    return Document(f"d{number}", tuple(events))


def corpus_of(folder: Path, name: str, documents: list[Document], **changes: Any) -> Corpus:
    write_jsonl(folder / f"{name}.jsonl", documents)
    settings = PrepareOptions(**{**SETTINGS.to_dict(), **changes})
    return prepare(folder / f"{name}.jsonl", folder / name, settings)


def verbs(events: Script) -> list[str]:
    return [event[0] for event in events]


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [document(number, 1 + number % 5) for number in range(200)]


@pytest.mark.parametrize("split", ["valid", "test"])
def test_truths_are_documents_and_distractors_other_documents(
    tmp_path: Path, documents: list[Document], split: Split
) -> None:
    corpus = corpus_of(tmp_path, "a", documents)
    items = read_cloze(corpus.items("cloze", split))
    long_enough = [d for d in documents if len(d.events) >= 3 and split_of(d.id, SETTINGS) == split]
    sequences = {tuple(e.head.lower() for e in d.events[:3]) for d in long_enough}
    assert len(items) == corpus.manifest["cloze"][split] == 20 < len(sequences)
    assert len({item.truth for item in items}) == 20
    truths = [verbs(item.truth) for item in items]
    for item in items:
        assert tuple(verbs(item.truth)) in sequences
        assert item.seed[1:] == ("ann", MISSING, "in")
        assert len(set(item.options)) == 4
        for distractor in item.distractors:
            assert verbs(distractor) in [truth[1:] for truth in truths]
    # Each is drawn about as often as another: 60 draws among 20, of which none has more than a fifth.
    drawn = [distractor for item in items for distractor in item.distractors]
    assert len(set(drawn)) > 12
    assert max(drawn.count(each) for each in drawn) <= 12


def test_the_choice_depends_on_the_seed_and_the_ids_alone(tmp_path: Path, documents: list[Document]) -> None:
    first, again, other = (
        corpus_of(tmp_path, "a", documents),
        corpus_of(tmp_path, "b", documents[::-1]),
        corpus_of(tmp_path, "c", documents, cloze_seed=2),
    )
    for split in ("valid", "test"):
        assert first.items("cloze", split).read_bytes() == again.items("cloze", split).read_bytes()
        mine, theirs = read_cloze(first.items("cloze", split)), read_cloze(other.items("cloze", split))
        assert {item.truth for item in mine} != {item.truth for item in theirs}
    # All documents are chosen here, whatever the seed; their distractors still differ.
    ones, twos = (
        {item.truth: set(item.distractors) for item in read_cloze(corpus.items("cloze", "valid"))}
        for corpus in (
            corpus_of(tmp_path, f"s{seed}", documents, cloze_seed=seed, cloze_items=99) for seed in (1, 2)
        )
    )
    assert ones.keys() == twos.keys()
    assert sum(ones[truth] != twos[truth] for truth in ones) > len(ones) / 2


def test_more_items_begin_with_the_same_documents(documents: list[Document]) -> None:
    few, many = (ItemBuilder(PrepareOptions(cloze_events=3, cloze_items=n)) for n in (10, 30))
    for builder, document in itertools.product((few, many), documents):
        builder.add(document.id, [event.padded(len(SLOTS)) for event in document.events])
    assert [item.truth for item in few.cloze()] == [item.truth for item in many.cloze()][:10]


def test_events_are_those_that_are_usable(tmp_path: Path) -> None:
    """Cut after `prepare` has dropped what it drops, and at its own length."""
    gapped = [
        Document(f"d{n}", tuple(Event(f"V{n}-{m}", frame=frame) for m, frame in enumerate("FGHGF")))
        for n in range(60)
    ]
    for name, changes, verb, places in (
        # H is not among the two most frequent frames.
        ("a", {"drop_unlabelled": True}, "v", [0, 1, 3]),
        ("b", {"drop_unlabelled": True, "cloze_events": 4, "lowercase": False}, "V", [0, 1, 3, 4]),
        ("c", {}, "v", [0, 1, 2]),
    ):
        for item in read_cloze(corpus_of(tmp_path, name, gapped, **changes).items("cloze", "valid")):
            number = item.seed[0].split("-")[0][1:]
            assert verbs(item.truth) == [f"{verb}{number}-{place}" for place in places]


def test_documents_that_the_split_leaves_out_give_no_items(tmp_path: Path, documents: list[Document]) -> None:
    corpus = corpus_of(tmp_path, "a", documents, events=5, min_events=5, cloze_items=99)
    numbers = {int(item.seed[0][1:].split("-")[0]) for item in read_cloze(corpus.items("cloze", "valid"))}
    assert {f"d{number}" for number in numbers} == set(corpus.split("valid").ids.to_pylist())


def test_equal_sequels_are_one_option() -> None:
    three, four = (ItemBuilder(PrepareOptions(cloze_events=2, cloze_options=n)) for n in (3, 4))
    for builder, number in itertools.product((three, four), range(30)):
        builder.add(f"d{number}", [(f"v{number}", "a", "b", "c"), ("abc"[number % 3], "d", "e", "f")])
    assert len(three.cloze()) == 30
    for item in three.cloze():
        assert sorted(option[0][0] for option in item.options) == ["a", "b", "c"]
    assert four.cloze() == []


def test_a_document_that_cannot_be_written_is_passed_over() -> None:
    builder = ItemBuilder(PrepareOptions(cloze_events=2, cloze_options=2))
    for number, word in enumerate(["fine", "<TUP>", "good", "_null_"]):
        builder.add(f"d{number}", [("ran", "she", "it", "in"), (word, "a", "b", "c")])
    assert {item.truth[1][0] for item in builder.cloze()} == {"fine", "good"}


def test_the_manifest_covers_the_cloze(tmp_path: Path, documents: list[Document]) -> None:
    corpus = corpus_of(tmp_path, "a", documents)
    table = corpus.manifest["sha256"]
    assert {"cloze/valid.txt", "cloze/test.txt", "train.arrow"} < table.keys()
    assert all(sha256(corpus.folder / name) == digest for name, digest in table.items())


def test_too_few_documents_give_no_file_and_say_so(
    tmp_path: Path, documents: list[Document], capsys: pytest.CaptureFixture[str]
) -> None:
    write_jsonl(tmp_path / "a.jsonl", documents)
    words = ["prepare", str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "a"), "--cloze-events=4"]
    assert main([*words, "--valid-share=.3", "--test-share=.01"]) == 0
    shown = capsys.readouterr().err
    corpus = Corpus(tmp_path / "a")
    assert corpus.manifest["cloze"] == {"valid": len(read_cloze(corpus.items("cloze", "valid"))), "test": 0}
    assert f"valid: {corpus.manifest['cloze']['valid']} cloze items\n" in shown
    assert "test: no cloze items, since not 6 different documents have 4 usable events\n" in shown
    with pytest.raises(UserError, match=r"no cloze items for the split 'test'\n(.|\n)*prepare again"):
        corpus.items("cloze", "test")


def test_no_items_need_be_made(tmp_path: Path, documents: list[Document]) -> None:
    corpus = corpus_of(tmp_path, "a", documents, cloze_items=0)
    assert corpus.manifest["cloze"] == {"valid": 0, "test": 0}
    assert not (corpus.folder / "cloze").exists()
    with pytest.raises(UserError, match="prepare again"):
        corpus.items("cloze", "valid")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"cloze_items": -1}, "--cloze-items: found -1, expected a whole number, at least 0"),
        ({"cloze_items": 5}, "--cloze-items: found 5"),
        ({"cloze_events": 1}, "--cloze-events: found 1, expected a whole number, at least 2"),
        ({"cloze_options": 1}, "--cloze-options: found 1, expected a whole number, at least 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(UserError, match=match):
        PrepareOptions(**changes)
