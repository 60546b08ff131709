"""Folders of shards: the same documents as in one file, and a shard is done or not."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ssdvae.data.events import Document, Event
from ssdvae.data.options import AnnotateOptions, EngineOptions, ExtractOptions, PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import read_documents, write_jsonl
from ssdvae.data.shards import UNFINISHED
from ssdvae.extraction.annotate import annotate
from ssdvae.extraction.classifier import read_lexicon
from ssdvae.extraction.extract import extract
from ssdvae.io.errors import UserError
from tests.extraction.stopping import Stopped, stop_after
from tests.extraction.test_extract import corpus

THREE = ExtractOptions(shard_documents=3, jobs=1)


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder, hidden ones too."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def lines(folder: Path) -> bytes:
    """The shards one after another."""
    return b"".join(gzip.decompress(content) for content in contents(folder).values())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return corpus(tmp_path / "a.conllu", 11, bad=(4,))


def test_shards_one_after_another_are_the_one_file(source: Path, tmp_path: Path) -> None:
    file = extract([source], tmp_path / "all.jsonl", THREE)
    shards = extract([source], tmp_path / "shards", THREE)
    assert list(contents(tmp_path / "shards")) == [f"part-0000{n}.jsonl.gz" for n in range(4)]
    assert lines(tmp_path / "shards") == (tmp_path / "all.jsonl").read_bytes()
    assert (shards.documents, shards.events, str(shards.skipped)) == (
        file.documents,
        file.events,
        str(file.skipped),
    )
    assert list(read_documents(tmp_path / "shards")) == list(read_documents(tmp_path / "all.jsonl"))


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_a_folder_of_shards_stays_cut_as_it_is(ending: Any, source: Path, tmp_path: Path) -> None:
    (tmp_path / "verbs.csv").write_text("verb,frame\nopened,Openness\nwas,Being\ngave,Giving\n")
    lexicon = read_lexicon(tmp_path / "verbs.csv")
    extract([source], tmp_path / "events", ExtractOptions(shard_documents=3, jobs=1, shard_format=ending))
    extract([source], tmp_path / "events.jsonl", THREE)
    annotate(tmp_path / "events.jsonl", tmp_path / "framed.jsonl", lexicon, AnnotateOptions(jobs=1))
    settings = AnnotateOptions(jobs=1, shard_format=ending)
    done = annotate(tmp_path / "events", tmp_path / "framed", lexicon, settings)
    assert [p.name for p in sorted((tmp_path / "framed").iterdir())] == [
        f"part-0000{n}.{ending}" for n in range(4)
    ]
    assert done.documents == 10
    assert list(read_documents(tmp_path / "framed")) == list(read_documents(tmp_path / "framed.jsonl"))


def test_any_number_of_processes_gives_the_same_shards(source: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        extract([source], tmp_path / str(jobs), ExtractOptions(shard_documents=3, jobs=jobs))
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_folder_goes_on_where_it_stopped(source: Path, tmp_path: Path) -> None:
    whole = extract([source], tmp_path / "whole", THREE)
    out = tmp_path / "out"
    with pytest.raises(Stopped):
        extract([source], out, THREE, progress=stop_after(2))
    with pytest.raises(UserError, match=r"is unfinished: some of its shards"):
        read_documents(out)
    # A shard that was cut after it was done, and what a process leaves that is killed while it writes one.
    (out / "part-00001.jsonl.gz").write_bytes(b"half")
    (out / ".part-00003.jsonl.gz.0.tmp").mkdir()
    (out / ".part-00003.jsonl.gz.0.tmp" / "new.gz").write_bytes(b"half")
    done = extract([source], out, THREE)
    assert done.resumed == 3
    assert (done.documents, str(done.skipped)) == (whole.documents, str(whole.skipped))
    assert contents(out) == contents(tmp_path / "whole")


def test_a_shard_that_is_done_is_not_made_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Stopped):
        extract([source], tmp_path / "out", THREE, progress=stop_after(2))
    before = {p.name: p.stat().st_ino for p in (tmp_path / "out").glob("part-*")}
    extract([source], tmp_path / "out", THREE)
    assert {name: (tmp_path / "out" / name).stat().st_ino for name in before} == before


def test_a_shard_killed_between_its_writing_and_its_note_is_made_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extract([source], tmp_path / "whole", THREE)

    def killed(*_: object) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr("ssdvae.data.stream.write_note", killed)
        with pytest.raises(Stopped):
            extract([source], tmp_path / "out", THREE)
    done = extract([source], tmp_path / "out", THREE)
    assert done.resumed == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_process_killed_in_the_middle_of_a_shard(source: Path, tmp_path: Path) -> None:
    """By the system, with half of the shard written: the same command makes it again, and what came after."""
    extract([source], tmp_path / "whole", THREE)
    script = (
        "import itertools, os, signal, sys\n"
        "from pathlib import Path\n"
        "from ssdvae.data import stream\n"
        "from tests.data.test_shards import THREE, extract\n"
        "source, out, write = Path(sys.argv[1]), Path(sys.argv[2]), stream.write_shard\n"
        "def killed(path, lines):\n"
        "    if (out / 'part-00001.jsonl.gz').exists():\n"
        "        write(path, itertools.islice(lines, 1))\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    write(path, lines)\n"
        "stream.write_shard = killed\n"
        "extract([source], out, THREE)\n"
    )
    command = [sys.executable, "-c", script, str(source), str(tmp_path / "out")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert [p.name for p in sorted((tmp_path / "out").glob("part-*"))] == [
        f"part-0000{n}.jsonl.gz" for n in range(2)
    ]
    left = [p for p in (tmp_path / "out").rglob("*") if "part-00002" in p.name]
    assert left, "half of a shard, under another name"
    assert extract([source], tmp_path / "out", THREE).resumed == 6
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_what_a_process_killed_at_its_very_end_left_is_removed(source: Path, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    extract([source], shards, THREE)
    there = {path.name for path in shards.iterdir()}
    (shards / ".unfinished.done").mkdir()
    (shards / ".unfinished.done" / "work.json").write_text("{}")
    with pytest.raises(UserError, match="is already there"):
        extract([source], shards, THREE)
    assert {path.name for path in shards.iterdir()} == there


def test_other_work_is_not_mixed_in(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Stopped):
        extract([source], out, THREE, progress=stop_after(1))
    with pytest.raises(UserError, match="was begun with other input or settings"):
        extract([source], out, ExtractOptions(shard_documents=3, jobs=1, negation="drop"))
    extract([source], out, ExtractOptions(shard_documents=3, jobs=2))  # the processes may be others
    with pytest.raises(UserError, match="is already there"):
        extract([source], out, THREE)


def test_of_work_that_finds_nothing_nothing_is_left(tmp_path: Path) -> None:
    empty = corpus(tmp_path / "a.conllu", 1, bad=(0,))
    with pytest.raises(UserError, match="no document could be read"):
        extract([empty], tmp_path / "out", THREE)
    assert not list((tmp_path / "out").glob("part-*")) or (tmp_path / "out" / UNFINISHED).exists()


def test_bad_lines_of_a_shard_are_told_by_who_reads_them(tmp_path: Path) -> None:
    shards = tmp_path / "in"
    shards.mkdir()
    good = '{"id": "a", "events": [{"verb": "met"}]}\n'
    (shards / "part-00000.jsonl").write_text(good)
    (shards / "part-00001.jsonl").write_bytes(good.encode() + b"\xff\n{}\n")
    (tmp_path / "verbs.csv").write_text("verb,frame\nmet,Meeting\n")
    lexicon = read_lexicon(tmp_path / "verbs.csv")
    settings = AnnotateOptions(jobs=1, shard_format="jsonl")
    with pytest.raises(UserError, match=r"part-00001\.jsonl, line 2"):
        annotate(shards, tmp_path / "out", lexicon, settings)
    shutil.rmtree(tmp_path / "out")
    from ssdvae.data.readers import Skipped

    skipped = Skipped()
    annotate(shards, tmp_path / "out", lexicon, settings, skip_bad=skipped)
    assert skipped.count == 2
    assert len(contents(tmp_path / "out")) == 2


def test_parquet_keeps_all_that_json_lines_keep(source: Path, tmp_path: Path) -> None:
    text = ExtractOptions(jobs=1, keep_text=True)
    extract([source], tmp_path / "lines.jsonl", text)
    extract([source], tmp_path / "table", ExtractOptions(jobs=1, keep_text=True, shard_format="parquet"))
    assert list(read_documents(tmp_path / "table")) == list(read_documents(tmp_path / "lines.jsonl"))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("ending", ["jsonl.gz", "parquet"])
def test_a_corpus_is_the_same_from_a_file_and_from_shards(ending: str, jobs: int, tmp_path: Path) -> None:
    documents = [
        Document(f"d{n}", tuple(Event(f"v{n % 7}", f"s{m}", frame=f"F{n % 3}") for m in range(n % 4 + 1)))
        for n in range(60)
    ]
    write_jsonl(tmp_path / "all.jsonl", documents)
    (tmp_path / "shards").mkdir()
    for number in range(4):
        part = tmp_path / "shards" / f"part-0000{number}.jsonl"
        write_jsonl(part, documents[15 * number : 15 * number + 15])
        if ending == "parquet":
            from ssdvae.data.shards import write_parquet

            write_parquet(part.with_suffix(".parquet"), part.read_text().splitlines())
            part.unlink()
        else:
            part.with_suffix(".jsonl.gz").write_bytes(gzip.compress(part.read_bytes()))
            part.unlink()
    settings = PrepareOptions(cloze_items=0)
    prepare(tmp_path / "all.jsonl", tmp_path / "one", settings)
    prepare(tmp_path / "shards", tmp_path / "many", settings, engine=EngineOptions(jobs=jobs))
    one, many = (contents(tmp_path / name) for name in ("one", "many"))
    assert {n: c for n, c in one.items() if n != "manifest.json"} == {
        n: c for n, c in many.items() if n != "manifest.json"
    }
    sources = json.loads(many["manifest.json"])["sources"]
    assert [Path(source["path"]).name for source in sources] == [
        f"part-0000{number}.{ending}" for number in range(4)
    ]
