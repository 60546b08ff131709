"""From documents to a corpus folder."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data import prepare as preparing
from ssdvae.data import source
from ssdvae.data.batches import collate
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import MISSING, Document, Event
from ssdvae.data.options import SPLITS, EngineOptions, PrepareOptions, Split
from ssdvae.data.prepare import prepare, usable_events
from ssdvae.data.readers import write_jsonl
from ssdvae.data.source import split_of
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.files import sha256
from ssdvae.storyworld.world import World


def document(id: str, *frames: str | None) -> Document:
    return Document(
        id, tuple(Event(f"verb{i}", "She", None, "in", frame=frame) for i, frame in enumerate(frames))
    )


def write_splits(folder: Path, **splits: list[Document]) -> dict[Split, Path]:
    for name, documents in splits.items():
        write_jsonl(folder / f"{name}.jsonl", documents)
    return {split: folder / f"{split}.jsonl" for split in SPLITS}


@pytest.fixture
def sources(tmp_path: Path) -> dict[Split, Path]:
    train = [document("a", "F", None, "G", "F"), document("b", None, None), document("c", "F")]
    valid = [document("d", "G", "H", "F", "F")]
    return write_splits(tmp_path, train=train, valid=valid, test=[document("e", "G")])


def test_unlabelled_events_are_dropped_before_the_first_m_are_taken(
    sources: dict[Split, Path], tmp_path: Path
) -> None:
    corpus = prepare(sources, tmp_path / "out", PrepareOptions(events=2, drop_unlabelled=True))
    train = corpus.split("train")
    assert train.ids.to_pylist() == ["a", "c"]
    assert train.lengths.tolist() == [2, 1]
    assert [[corpus.frames.name(f) for f in train.frames[part]] for part in train.parts()] == [
        ["F", "G"],
        ["F"],
    ]
    verbs = [corpus.vocabulary.name(t) for t in train.tokens[:2, 0]]
    assert verbs == ["verb0", "verb2"]
    counts = corpus.manifest["splits"]["train"]
    assert counts | {"read": 3, "documents": 2, "too_short": 1, "events": 3, "dropped_events": 3} == counts
    assert (counts["cut_events"], counts["longest"]) == (1, 2)


SOFT = (
    Event("ran", frame="F", probability=0.95),
    Event("ran", frame="F", probability=0.5, alternatives=(("G", 0.3), ("Unheard_of", 0.1), ("G", 0.0))),
    Event("ran", frame="G", probability=0.3, alternatives=(("F", 0.1),)),
    Event("ran", frame="G"),
    Event("ran"),
)


@pytest.mark.parametrize(("least", "known"), [(0.0, "FFGG."), (0.5, "FF.G."), (0.9, "F..G.")])
def test_one_soft_file_gives_labels_at_any_probability(least: float, known: str, tmp_path: Path) -> None:
    paths = write_splits(tmp_path, train=[Document("a", SOFT)], valid=[], test=[])
    hard = prepare(paths, tmp_path / "hard", PrepareOptions(min_probability=least))
    soft = prepare(paths, tmp_path / "soft", PrepareOptions(min_probability=least, soft_labels=True))
    documents = soft.split("train")
    assert documents.frames.tolist() == hard.split("train").frames.tolist()
    assert [soft.frames.name(f) if f >= 0 else "." for f in documents.frames.tolist()] == list(known)
    assert hard.split("train").soft_frames is None
    assert documents.soft_frames is not None
    assert documents.soft_weights is not None
    # The label first; weights sum to one where there is a label.
    assert documents.soft_frames[:, 0].tolist() == documents.frames.tolist()
    np.testing.assert_allclose(documents.soft_weights.sum(1), documents.frames >= 0, rtol=1e-6)
    if least <= 0.5:
        assert documents.soft_frames[1].tolist() == [soft.frames.id("F"), soft.frames.id("G"), -1, -1]
        np.testing.assert_allclose(documents.soft_weights[1], [0.5 / 0.8, 0.3 / 0.8, 0, 0], rtol=1e-6)
    assert collate(documents, np.array([0])).labels()[1].sum() == 0  # nothing is observed


def test_documents_are_kept_whole_and_what_is_cut_is_counted(tmp_path: Path) -> None:
    frames = ["F"] * 40
    train = [document("a", *frames), document("b", *frames[:3])]
    sources = write_splits(tmp_path, train=train, valid=[document("c", *frames)], test=train)
    whole = prepare(sources, tmp_path / "whole")
    assert whole.events is None
    assert whole.split("train").lengths.tolist() == [40, 3]
    assert whole.manifest["splits"]["train"]["cut_events"] == 0
    assert [whole.longest(split) for split in SPLITS] == [40, 40, 40]
    cut = prepare(sources, tmp_path / "cut", PrepareOptions(events=5))
    assert cut.split("train").lengths.tolist() == [5, 3]
    assert cut.manifest["splits"]["train"]["cut_events"] == 35
    assert [cut.longest(split) for split in SPLITS] == [5, 5, 5]


def test_unlabelled_events_are_kept_as_latent(sources: dict[Split, Path], tmp_path: Path) -> None:
    corpus = prepare(sources, tmp_path / "out", PrepareOptions(events=3))
    train = corpus.split("train")
    counts = corpus.manifest["splits"]["train"]
    assert (counts["dropped_events"], counts["frameless_events"], counts["events"]) == (0, 3, 6)
    assert train.lengths.tolist() == [3, 2, 1]
    assert (train.frames >= 0).tolist() == [True, False, True, False, False, True]


def test_a_frame_outside_the_training_inventory_counts_as_none(
    sources: dict[Split, Path], tmp_path: Path
) -> None:
    """H is in the validation split only."""
    corpus = prepare(sources, tmp_path / "out", PrepareOptions(events=3, drop_unlabelled=True))
    assert "H" not in corpus.frames
    valid = corpus.split("valid")
    assert [corpus.frames.name(f) for f in valid.frames] == ["G", "F", "F"]
    latent = prepare(sources, tmp_path / "latent", PrepareOptions(events=3)).split("valid")
    assert latent.frames.tolist() == [corpus.frames.id("G"), -1, corpus.frames.id("F")]


def test_words_are_counted_on_the_training_split_only(sources: dict[Split, Path], tmp_path: Path) -> None:
    labelled = PrepareOptions(events=5, drop_unlabelled=True)
    corpus = prepare(sources, tmp_path / "out", labelled)
    # The verbs of the kept training events: verb0 twice, verb2 and verb3 once; verb1 is in validation only.
    counts = dict(zip(corpus.vocabulary.names, corpus.vocabulary.counts, strict=True))
    assert counts == {MISSING: 4, UNKNOWN: 0, "in": 4, "she": 4, "verb0": 2, "verb2": 1, "verb3": 1}
    assert corpus.split("valid").tokens[1, 0] == corpus.vocabulary.id("verb2")
    small = prepare(sources, tmp_path / "small", labelled.changed(vocabulary=4))
    assert small.vocabulary.names == (MISSING, UNKNOWN, "in", "she")
    assert small.vocabulary.counts[1] == 4
    assert small.manifest["splits"]["train"]["unknown_words"] == 4


def test_short_documents_can_be_left_out(sources: dict[Split, Path], tmp_path: Path) -> None:
    settings = PrepareOptions(events=3, min_events=2)
    assert prepare(sources, tmp_path / "out", settings).split("train").ids.to_pylist() == ["a", "b"]
    labelled = settings.changed(drop_unlabelled=True)
    assert prepare(sources, tmp_path / "labelled", labelled).split("train").ids.to_pylist() == ["a"]


def test_the_manifest_names_its_sources(sources: dict[Split, Path], tmp_path: Path) -> None:
    corpus = prepare(sources, tmp_path / "out", PrepareOptions(events=2))
    recorded = {source["path"]: source["sha256"] for source in corpus.manifest["sources"]}
    assert recorded == {str(path): sha256(path) for path in sources.values()}
    assert corpus.manifest["settings"] == PrepareOptions(events=2, lowercase=True).to_dict()
    for name, digest in corpus.manifest["sha256"].items():
        assert sha256(tmp_path / "out" / name) == digest


def test_one_file_is_split_by_the_names_of_its_documents(tmp_path: Path) -> None:
    settings = PrepareOptions(valid_share=0.2, test_share=0.1)
    documents = [document(f"d{i}", "F") for i in range(2000)]
    write_jsonl(tmp_path / "all.jsonl", documents)
    corpus = prepare(tmp_path / "all.jsonl", tmp_path / "out", settings)
    ids = {split: corpus.split(split).ids.to_pylist() for split in SPLITS}
    assert sorted(id for part in ids.values() for id in part) == sorted(d.id for d in documents)
    for part, share in ((ids["valid"], 0.2), (ids["test"], 0.1)):
        deviation = (2000 * share * (1 - share)) ** 0.5
        assert abs(len(part) - 2000 * share) < 4 * deviation
    # A document stays in its split when others come and go.
    write_jsonl(tmp_path / "half.jsonl", documents[::2])
    half = prepare(tmp_path / "half.jsonl", tmp_path / "half", settings)
    assert half.split("valid").ids.to_pylist() == [i for i in ids["valid"] if int(i[1:]) % 2 == 0]


@given(st.text())
def test_every_id_has_a_split(id: str) -> None:
    assert split_of(id.encode(errors="ignore").decode(), PrepareOptions()) in SPLITS


@given(st.lists(st.sampled_from(["F", "G", None]), max_size=8), st.integers(1, 4))
def test_usable_events_are_the_first_or_the_first_with_a_frame(frames: list[str | None], events: int) -> None:
    for drop in (False, True):
        kept = usable_events(document("a", *frames), PrepareOptions(events=events, drop_unlabelled=drop))
        expected = [f"verb{i}" for i, frame in enumerate(frames) if frame is not None or not drop][:events]
        assert [event.head for event in kept] == expected


def test_nothing_is_left_of_a_failed_preparation(sources: dict[Split, Path], tmp_path: Path) -> None:
    sources["test"].write_text('{"id": "x", "events": [{"subj": "no verb"}]}\n')
    with pytest.raises(UserError, match=r"test\.jsonl, line 1.*verb"):
        prepare(sources, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["test.jsonl", "train.jsonl", "valid.jsonl"]


def test_bad_documents_can_be_skipped_and_are_counted(sources: dict[Split, Path], tmp_path: Path) -> None:
    with open(sources["train"], "a") as file:
        file.write("not json\n")
    corpus = prepare(sources, tmp_path / "out", PrepareOptions(events=2), skip_bad=True)
    assert corpus.manifest["skipped"][str(sources["train"])] == 1
    assert len(corpus.split("train")) == 3


def test_a_corpus_is_never_overwritten(sources: dict[Split, Path], tmp_path: Path) -> None:
    prepare(sources, tmp_path / "out")
    with pytest.raises(UserError, match="already there"):
        prepare(sources, tmp_path / "out")


def test_a_corpus_without_any_frame_keeps_all_events(tmp_path: Path) -> None:
    """Training does not know the labels of other splits, and no event is left out because of them."""
    rows = {"train": [document("a", None, None)], "valid": [document("b", "F", None)], "test": []}
    corpus = prepare(write_splits(tmp_path, **rows), tmp_path / "out")
    assert len(corpus.frames) == 0
    for split in ("train", "valid"):
        assert corpus.split(split).frames.tolist() == [-1, -1]
    with pytest.raises(UserError, match="no event of the training split has a frame"):
        prepare(write_splits(tmp_path, **rows), tmp_path / "none", PrepareOptions(drop_unlabelled=True))
    sources = write_splits(tmp_path, train=[], valid=[], test=[])
    with pytest.raises(UserError, match="no documents are left for training; is the file empty"):
        prepare(sources, tmp_path / "empty")


def test_damaged_folders_are_named(sources: dict[Split, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a corpus folder"):
        Corpus(tmp_path)
    corpus = prepare(sources, tmp_path / "out")
    (tmp_path / "out" / "train.arrow").write_bytes(b"junk")
    with pytest.raises(UserError, match=r"train\.arrow"):
        corpus.split("train")
    (tmp_path / "out" / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match="prepare the corpus again"):
        Corpus(tmp_path / "out")


def test_the_arrow_files_are_plain_streams(sources: dict[Split, Path], tmp_path: Path) -> None:
    """Other tools read them without this package."""
    prepare(sources, tmp_path / "out", PrepareOptions(events=2, drop_unlabelled=True))
    with pa.OSFile(str(tmp_path / "out" / "train.arrow")) as file:
        rows = pa.ipc.open_stream(file).read_all().to_pylist()
    assert [row["id"] for row in rows] == ["a", "c"]
    assert [len(row["tokens"]) for row in rows] == [8, 4]
    assert [len(row["frames"]) for row in rows] == [2, 1]


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


@given(st.dictionaries(words, st.integers(1, 9), max_size=20), st.integers(3, 12))
def test_a_vocabulary_has_the_most_frequent_words(counts: dict[str, int], size: int) -> None:
    vocabulary = Vocabulary.most_frequent(Counter(counts), size)
    assert vocabulary.names[:2] == (MISSING, UNKNOWN)
    kept, rest = set(vocabulary.names), set(counts) - set(vocabulary.names)
    assert len(vocabulary) == min(size, len(set(counts) | {MISSING, UNKNOWN}))
    if rest:
        assert min(counts[w] for w in kept & set(counts) - {MISSING, UNKNOWN}) >= max(counts[w] for w in rest)
    for word in counts:
        assert vocabulary.name(vocabulary.word_ids([word])[0]) == (word if word in kept else UNKNOWN)


def test_inventories_survive_saving(tmp_path: Path) -> None:
    inventory = Inventory(["a", "ß", "“x”"], [3, 2, 1])
    inventory.save(tmp_path / "i.json")
    assert Inventory.load(tmp_path / "i.json") == inventory
    assert inventory.id("ß") == 1
    assert inventory.id(None) == inventory.id("absent") == -1
    for damage in ("[]", '{"names": ["a", "a"], "counts": [1, 1]}', "{", json.dumps({"names": ["a"]})):
        (tmp_path / "i.json").write_text(damage)
        with pytest.raises(UserError, match=r"i\.json"):
            Inventory.load(tmp_path / "i.json")


def test_counts_by_slot_are_those_of_the_training_split_and_survive_saving(
    sources: dict[Split, Path], tmp_path: Path
) -> None:
    corpus = prepare(sources, tmp_path / "corpus", PrepareOptions())
    documents, words = corpus.split("train"), corpus.vocabulary.names
    vocabulary = documents.count_slots(corpus.vocabulary)
    assert vocabulary.slot_counts is not None
    # In all slots together a word stands as often as it was counted, and in the head nothing is missing.
    assert tuple(vocabulary.slot_counts.sum(0)) == corpus.vocabulary.counts
    events = [event.padded(4) for d in documents.decode(vocabulary, corpus.frames) for event in d.events]
    for slot, word in ((0, words[2]), (1, words[3]), (3, MISSING), (0, MISSING)):
        count = vocabulary.slot_counts[slot, vocabulary.id(word)]
        assert count == sum(event[slot] == word for event in events)
    assert corpus.vocabulary.slot_counts is None
    vocabulary.save(tmp_path / "v.json")
    loaded = Vocabulary.load(tmp_path / "v.json")
    assert loaded == vocabulary
    assert np.array_equal(loaded.slot_counts, vocabulary.slot_counts)  # type: ignore[arg-type]
    assert loaded.repeats == vocabulary.repeats
    record = json.loads((tmp_path / "v.json").read_text())
    for damage in ([[1]], [[1, 2], [1]], [[-1] * len(words)], "x"):
        (tmp_path / "v.json").write_text(json.dumps({**record, "slot_counts": damage}))
        with pytest.raises(DataError, match=r"v\.json"):
            Vocabulary.load(tmp_path / "v.json")


def test_repeated_arguments_are_counted_and_rare_below_a_share(tmp_path: Path) -> None:
    plain, repeated = Event("met", "she", "him", "at"), Event("met", "she", "she")
    empty, head = Event("left", None, None, "in"), Event("ann", "ann", "him")
    for events, count in (([plain, repeated, empty, head], 1), ([repeated] + 99 * [plain], 1)):
        folder = tmp_path / str(len(events))
        folder.mkdir()
        documents = [Document(str(n), (event,)) for n, event in enumerate(events)]
        paths = write_splits(folder, train=documents, valid=documents, test=documents)
        corpus = prepare(paths, folder / "corpus", PrepareOptions(min_events=1))
        vocabulary = corpus.split("train").count_slots(corpus.vocabulary)
        assert vocabulary.repeats == count
        assert vocabulary.repeats_are_rare == (len(events) == 100)
        assert not corpus.vocabulary.repeats_are_rare  # not counted


def test_every_event_can_be_a_document_by_itself(sources: dict[Split, Path], tmp_path: Path) -> None:
    """All of them, not only the first M; those without a frame are kept or dropped as ever."""
    settings = PrepareOptions(events=2, single_events=True)
    whole = prepare(sources, tmp_path / "whole", settings).split("train")
    assert whole.ids.to_pylist() == ["a#1", "a#2", "a#3", "a#4", "b#1", "b#2", "c#1"]
    corpus = prepare(sources, tmp_path / "out", settings.changed(drop_unlabelled=True))
    train = corpus.split("train")
    assert train.ids.to_pylist() == ["a#1", "a#3", "a#4", "c#1"]
    assert train.tokens.shape == (4, 4)
    assert [corpus.frames.name(f) for f in train.frames] == ["F", "G", "F", "F"]
    assert corpus.events == 1


def test_without_a_file_validation_is_a_share_of_the_training_file(tmp_path: Path) -> None:
    train = [document(f"t{i}", "F") for i in range(200)]
    write_jsonl(tmp_path / "train.jsonl", train)
    write_jsonl(tmp_path / "test.jsonl", [document("e", "F")])
    given: dict[Split, Path] = {"train": tmp_path / "train.jsonl", "test": tmp_path / "test.jsonl"}
    corpus = prepare(given, tmp_path / "out", PrepareOptions(valid_share=0.2, test_share=0.3))
    parts = {split: set(corpus.split(split).ids.to_pylist()) for split in SPLITS}
    assert parts["train"] | parts["valid"] == {d.id for d in train}
    assert not parts["train"] & parts["valid"]
    assert parts["test"] == {"e"}
    assert abs(len(parts["valid"]) - 40) < 4 * (200 * 0.2 * 0.8) ** 0.5
    with pytest.raises(UserError, match="'test'"):
        prepare({"train": tmp_path / "train.jsonl"}, tmp_path / "other", PrepareOptions())


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small chunks and blocks, so that few documents are many pieces."""
    monkeypatch.setattr(source, "BYTES", 3000)
    monkeypatch.setattr(source, "DOCUMENTS", 7)
    monkeypatch.setattr(preparing, "ROWS", 16)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("frames", [500, 20], ids=["all frames kept", "some frames left out"])
def test_a_corpus_is_the_same_however_its_documents_are_shared_out(
    tmp_path: Path, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one process in one piece, in small pieces, and by two processes; with bad lines among the good."""
    path = tmp_path / "events.jsonl"
    write_jsonl(path, World.embedded().documents(90, seed=1))
    path.write_bytes(path.read_bytes() + b"not json\n\n\xff\n")
    settings = PrepareOptions(valid_share=0.2, test_share=0.2, cloze_items=6, frames=frames)
    monkeypatch.setattr(preparing, "ROWS", 16)
    whole = prepare(path, tmp_path / "whole", settings, skip_bad=True)
    assert whole.manifest["skipped"] == {str(path): 2}
    for name, jobs in (("pieces", 1), ("two", 2)):
        monkeypatch.setattr(source, "BYTES", 9000)
        prepare(path, tmp_path / name, settings, skip_bad=True, engine=EngineOptions(jobs=jobs))
        assert contents(tmp_path / name) == contents(tmp_path / "whole")


def test_files_do_not_show_where_the_pieces_were(tmp_path: Path, small_blocks: None) -> None:
    """Each file of a split has as many rows, in one block, and is as it would be alone."""
    documents = [document(f"d{i}" * (1 + i % 5), "F") for i in range(100)]
    write_jsonl(tmp_path / "all.jsonl", documents)
    corpus = prepare(tmp_path / "all.jsonl", tmp_path / "out")
    rows = []
    for name in corpus.split_files("train"):
        with pa.OSFile(str(corpus.folder / name)) as file:
            (block,) = pa.ipc.open_stream(file)
        alone = pa.BufferOutputStream()
        with pa.ipc.new_stream(alone, block.schema) as writer:
            writer.write_batch(pa.RecordBatch.from_pylist(block.to_pylist(), schema=block.schema))
        assert alone.getvalue().to_pybytes() == (corpus.folder / name).read_bytes()
        rows.append(len(block))
    assert rows[:-1] == [16] * (len(rows) - 1)
    assert len(rows) > 3


def test_the_first_bad_line_is_named_whoever_reads_it(tmp_path: Path, small_blocks: None) -> None:
    """Later errors do not matter, even if reading ahead has reached them."""
    path = tmp_path / "events.jsonl"
    good = b'{"id": "a", "events": [{"verb": "met", "frame": "F"}]}\n'
    bad = {"json": b"{\n", "bytes": b"\xff\n", "event": b'{"id": 1, "events": [{"subj": "x"}]}\n'}
    for kind, line in bad.items():
        path.write_bytes(70 * good + line + 70 * good + b"".join(bad.values()))
        said = []
        for jobs in (1, 2) if kind == "event" else (1,):
            with pytest.raises(DataError) as caught:
                prepare(path, tmp_path / "out", engine=EngineOptions(jobs=jobs))
            assert (caught.value.path, caught.value.line) == (path, 71)
            said.append(str(caught.value))
        assert len(set(said)) == 1


def test_a_damaged_file_is_told_after_the_bad_lines_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl.gz"
    lines = [json.dumps({"id": i, "events": [{"verb": f"v{i**3}", "frame": "F"}]}) for i in range(2000)]
    packed = gzip.compress("\n".join(lines).encode())
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="compressed data"):
        prepare(path, tmp_path / "out")
    lines[3] = "{"
    packed = gzip.compress("\n".join(lines).encode())
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="line 4"):
        prepare(path, tmp_path / "out")


def test_bad_rows_of_a_table_are_counted_wherever_they_are(tmp_path: Path, small_blocks: None) -> None:
    rows = [f"d{i},met,she,,,F" for i in range(14)]
    path = tmp_path / "events.csv"
    for place in (0, 5, 14):
        bad = ["x,,she,,,F"]
        path.write_text("\n".join(["id,verb,subj,obj,mod,frame", *rows[:place], *bad, *rows[place:]]) + "\n")
        corpus = prepare(path, tmp_path / f"out{place}", skip_bad=True)
        assert corpus.manifest["skipped"] == {str(path): 1}


def test_a_split_that_is_none_is_refused(sources: dict[Split, Path], tmp_path: Path) -> None:
    odd: Any = {"train": sources["train"], "dev": sources["valid"], "test": sources["test"]}
    with pytest.raises(UserError, match="no split 'dev'; there are: train, valid, test"):
        prepare(odd, tmp_path / "out")


def test_a_place_that_cannot_be_written_is_told_before_anything_is_read(
    sources: dict[Split, Path], tmp_path: Path
) -> None:
    class Never:
        def task(self, *_: object, **__: object) -> Any:
            raise AssertionError("a file was read")

    with pytest.raises(UserError, match="cannot write"):
        prepare(sources, sources["test"] / "out", progress=Never())


def test_a_source_may_have_a_name_that_is_no_text(sources: dict[Split, Path], tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"K\xf6ln.jsonl")
    try:
        sources["train"].rename(odd)
    except OSError:
        pytest.skip("this disk has text for names")
    corpus = prepare({**sources, "train": odd}, tmp_path / "out")
    assert corpus.manifest["sources"][0]["path"] == str(odd)
