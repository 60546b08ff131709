"""Annotation as a whole: any number of processes and any interruption give the same file."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ssdvae.data import stream
from ssdvae.data.events import Document, Event
from ssdvae.data.options import AnnotateOptions
from ssdvae.data.readers import Skipped, read_documents, write_jsonl
from ssdvae.data.readers.jsonl import filled_lines
from ssdvae.engine import pool as pooling
from ssdvae.extraction import annotate as module
from ssdvae.extraction.annotate import Annotator, annotate
from ssdvae.extraction.classifier import FrameClassifier, Lexicon
from ssdvae.io.errors import UserError
from ssdvae.io.files import Report
from tests.extraction.stopping import Stopped, Watch, damage, leftovers, run_again, stop_after, stopped_by

CHUNK = 16
FRAMES = {
    "hit": {"Impact": 3, "Cause_harm": 1},
    "left": {"Departing": 1, "Abandonment": 1},
    "won": {"Win": 1},
}
LEXICON = Lexicon(FRAMES)
BAD = '{"id": "broken", "events": [{"verb": 3}]}'


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", CHUNK)


def stories(count: int) -> list[Document]:
    """Documents of no to three events, whose frames are known, uncertain, unknown or there already."""
    verbs = ["hit", "left", "won", "slept", "hit"]
    return [
        Document(
            f"d{number}",
            tuple(
                Event(verbs[(number + place) % 5], f"s{number % 7}", frame="Old" if place == 2 else None)
                for place in range(number % 4)
            ),
        )
        for number in range(count)
    ]


def corpus(path: Path, documents: int, bad: Iterable[int] = ()) -> Path:
    """JSON lines, of which some are broken and some are blank."""
    write_jsonl(path, stories(documents))
    lines = path.read_text(encoding="utf-8").splitlines()
    for number in bad:
        lines[number] = BAD
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return path


def table(path: Path, documents: int, bad: Iterable[int] = ()) -> Path:
    """The same events as a table; a bad one has a cell too many in its last row."""
    with path.open("w", encoding="utf-8") as file:
        file.write("document,verb,subj,frame\n")
        for number, document in enumerate(stories(documents)):
            for event in document.events:
                file.write(f"{document.id},{event.head},{event.arguments[0]},{event.frame or ''}\n")
            if number in bad:
                file.write(f"{document.id},slept,he,,too,many\n")
    return path


def classifier() -> FrameClassifier:
    """It has learned to look at the subject."""
    choices = [
        (verb, subj, list(frames)[subj % len(frames)]) for verb, frames in FRAMES.items() for subj in range(5)
    ]
    return FrameClassifier.fit(Event(verb, f"s{subj}", frame=frame) for verb, subj, frame in choices)


@pytest.mark.parametrize(("write", "name"), [(corpus, "a.jsonl"), (table, "a.csv")])
@pytest.mark.parametrize("make", [lambda: LEXICON, classifier], ids=["lexicon", "classifier"])
def test_any_number_of_processes_gives_the_same_file(
    write: Callable[..., Path], name: str, make: Callable[[], Annotator], tmp_path: Path
) -> None:
    source, annotator = write(tmp_path / name, 5 * CHUNK + 3, bad=(7, 40)), make()
    results = {}
    for jobs in (1, 2):
        out, skipped = tmp_path / f"{jobs}.jsonl", Skipped()
        done = annotate(source, out, annotator, AnnotateOptions(jobs=jobs), skip_bad=skipped)
        results[jobs] = (out.read_bytes(), done, str(skipped))
        assert skipped.count == 2
        assert done.labelled + done.kept + done.uncertain + done.unknown == done.events > 0
    assert results[1] == results[2]
    ids = [document.id for document in read_documents(tmp_path / "2.jsonl")]
    assert ids == [d.id for d in read_documents(source, skip_bad=Skipped())]


class Counting(Lexicon):
    """Counts how often it is pickled."""

    pickled = 0

    def __reduce__(self) -> tuple[Any, ...]:
        Counting.pickled += 1
        return Lexicon, (self.frames,)


def test_an_annotator_is_handed_to_each_process_once(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.jsonl", 8 * CHUNK)
    Counting.pickled = 0
    annotate(source, tmp_path / "out.jsonl", Counting(FRAMES), AnnotateOptions(jobs=2))
    assert Counting.pickled == 2


def test_few_documents_start_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pool(*args: object, **options: object) -> None:
        raise Stopped

    monkeypatch.setattr(pooling, "ProcessPoolExecutor", pool)
    two = AnnotateOptions(jobs=2)
    annotate(corpus(tmp_path / "few.jsonl", CHUNK), tmp_path / "out.jsonl", LEXICON, two)
    many = corpus(tmp_path / "many.jsonl", CHUNK + 1)
    with pytest.raises(Stopped):
        annotate(many, tmp_path / "out.jsonl", LEXICON, two)


@pytest.mark.parametrize("jobs", [1, 2])
def test_reading_is_little_ahead_of_writing(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory does not grow with the number of documents."""
    source = corpus(tmp_path / "a.jsonl", 20 * CHUNK)
    taken = 0

    def counted(path: Path, report: Report) -> Iterator[tuple[int, str]]:
        nonlocal taken
        for line in filled_lines(path, report):
            taken += 1
            yield line

    def check(written: int) -> None:
        assert taken <= (written + 3 * jobs) * CHUNK

    monkeypatch.setattr(stream, "filled_lines", counted)
    annotate(source, tmp_path / "out.jsonl", LEXICON, AnnotateOptions(jobs=jobs), progress=Watch(check))
    assert taken == 20 * CHUNK


# Bad documents.


def test_what_was_refused_is_gone_on_with_by_skipping(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.jsonl", 5 * CHUNK, bad=[3 * CHUNK + 2])
    out, settings = tmp_path / "out.jsonl", AnnotateOptions(jobs=1)
    with pytest.raises(UserError, match=rf"a\.jsonl, line {2 * (3 * CHUNK + 2) + 1}: "):
        annotate(source, out, LEXICON, settings)
    assert annotate(source, out, LEXICON, settings, skip_bad=Skipped()).resumed == 3 * CHUNK
    annotate(source, tmp_path / "whole.jsonl", LEXICON, settings, skip_bad=Skipped())
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_what_was_skipped_is_refused_without_skipping(tmp_path: Path) -> None:
    source, out = corpus(tmp_path / "a.jsonl", 5 * CHUNK, bad=[3]), tmp_path / "out.jsonl"
    settings = AnnotateOptions(jobs=1)
    with pytest.raises(Stopped):
        annotate(source, out, LEXICON, settings, skip_bad=Skipped(), progress=stop_after(2))
    with pytest.raises(UserError, match=r"a\.jsonl, line 7: "):
        annotate(source, out, LEXICON, settings)
    assert not out.exists()


def test_nothing_to_read_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.jsonl", 1, bad=[0])
    with pytest.raises(UserError, match=r"no document could be read from .*a\.jsonl\n.*line 1"):
        annotate(source, tmp_path / "out.jsonl", LEXICON, skip_bad=Skipped())
    assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(UserError, match=r"cannot read .*b\.jsonl"):
        annotate(tmp_path / "b.jsonl", tmp_path / "out.jsonl", LEXICON, format="jsonl")


# Stopped and gone on with.


@pytest.mark.parametrize("chunks", [0, 1, 3])
@pytest.mark.parametrize("unentered", [b"", b'{"id": "half a li', b'{"id": "whole", "events": []}\n'])
@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_an_annotation_goes_on_where_it_stopped(
    chunks: int, unentered: bytes, name: str, tmp_path: Path
) -> None:
    source = corpus(tmp_path / "a.jsonl", 5 * CHUNK + 3, bad=(3, 70))
    settings, expected, counted = AnnotateOptions(jobs=1), Skipped(), Skipped()
    whole = annotate(source, tmp_path / f"whole-{name}", LEXICON, settings, skip_bad=expected)
    out = tmp_path / name
    with pytest.raises(Stopped):
        annotate(source, out, LEXICON, settings, skip_bad=Skipped(), progress=stop_after(chunks))
    assert not out.exists()
    if chunks:
        damage(out, unentered)
    done = annotate(source, out, LEXICON, settings, skip_bad=counted)
    assert done.resumed == chunks * CHUNK
    assert out.read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    done.resumed = 0
    assert (done, counted) == (whole, expected)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "change", ["threshold", "replace", "source", "lexicon", "order", "classifier", "part"]
)
def test_what_has_changed_is_begun_anew(change: str, tmp_path: Path) -> None:
    source, out = corpus(tmp_path / "a.jsonl", 3 * CHUNK), tmp_path / "out.jsonl"
    settings, annotator = AnnotateOptions(jobs=1), LEXICON if change != "classifier" else classifier()
    with pytest.raises(Stopped):
        annotate(source, out, annotator, settings, progress=stop_after(2))
    if change == "threshold":
        settings = AnnotateOptions(jobs=1, threshold=0.9)
    elif change == "replace":
        settings = AnnotateOptions(jobs=1, replace=True)
    elif change == "source":
        corpus(source, 3 * CHUNK - 1)
    elif change == "lexicon":
        annotator = Lexicon({**FRAMES, "hit": {"Impact": 1, "Cause_harm": 3}})
    elif change == "order":
        annotator = Lexicon(dict(reversed(FRAMES.items())))
    elif isinstance(annotator, FrameClassifier):
        annotator = FrameClassifier(annotator.lexicon, annotator.weights * 2)
    else:
        os.truncate(tmp_path / ".out.jsonl.part", 10)
    assert annotate(source, out, annotator, settings).resumed == 0
    annotate(source, tmp_path / "fresh.jsonl", annotator, settings)
    assert out.read_bytes() == (tmp_path / "fresh.jsonl").read_bytes()


def test_the_same_annotator_loaded_again_is_the_same(tmp_path: Path) -> None:
    source, out, settings = (
        corpus(tmp_path / "a.jsonl", 3 * CHUNK),
        tmp_path / "out.jsonl",
        AnnotateOptions(),
    )
    learned = classifier()
    learned.save(tmp_path / "saved")
    with pytest.raises(Stopped):
        annotate(source, out, learned, settings, progress=stop_after(2))
    again = FrameClassifier.load(tmp_path / "saved")
    assert classifier().fingerprint() == learned.fingerprint() == again.fingerprint()
    # Nor does the number of processes matter.
    assert annotate(source, out, again, AnnotateOptions(jobs=1)).resumed == 2 * CHUNK


def test_frames_in_a_file_of_their_own_are_a_source_too(tmp_path: Path) -> None:
    events, frames = tmp_path / "a_TUP.txt", tmp_path / "a_frame.txt"
    events.write_text("hit he it _NULL_\n" * 3 * CHUNK)
    frames.write_text("Old\n" * 3 * CHUNK)
    out, settings = tmp_path / "out.jsonl", AnnotateOptions(jobs=1)
    with pytest.raises(Stopped):
        annotate(events, out, LEXICON, settings, progress=stop_after(2))
    frames.write_text("Older\n" * 3 * CHUNK)
    assert annotate(events, out, LEXICON, settings).resumed == 0
    assert {e.frame for document in read_documents(out) for e in document.events} == {"Older"}


@pytest.mark.parametrize(
    ("how", "jobs", "alone"),
    [
        pytest.param(signal.SIGKILL, 1, False, marks=pytest.mark.slow),
        (signal.SIGKILL, 2, False),
        # Its processes must notice, or the test would wait for them.
        (signal.SIGKILL, 2, True),
        # Ctrl-C reaches all processes.
        (signal.SIGINT, 2, False),
    ],
)
def test_a_stopped_annotation_ends_with_the_same_file(
    how: signal.Signals, jobs: int, alone: bool, tmp_path: Path
) -> None:
    source, out = corpus(tmp_path / "a.jsonl", 20_000, bad=[5]), tmp_path / "out.jsonl"
    verbs = tmp_path / "verbs.csv"
    verbs.write_text("verb,frame,weight\nhit,Impact,3\nhit,Cause_harm,1\nwon,Win,1\n")
    words = ["annotate", str(source), "--frames", str(verbs), "--out", str(out), "--skip-bad"]
    for _ in range(5):  # on a busy machine it may be done before it is stopped
        out.unlink(missing_ok=True)
        said = stopped_by(how, [*words, "--jobs", str(jobs)], out, entries=2, alone=alone)
        if not out.exists():
            break
    assert not out.exists()
    if how == signal.SIGINT:
        assert said.endswith("interrupted\n")
    # The number of processes may be another one.
    said = run_again([*words, "--jobs", "1"])
    assert "resumed after" in said
    assert "skipped 1 bad line: " in said
    assert "line 11: " in said
    annotate(
        source,
        tmp_path / "whole.jsonl",
        Lexicon({"hit": {"Impact": 3, "Cause_harm": 1}, "won": {"Win": 1}}),
        AnnotateOptions(jobs=1),
        skip_bad=Skipped(),
    )
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert leftovers(tmp_path) == []
