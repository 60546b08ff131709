"""`ssdvae prepare`: presets, YAML and flags; one file or one for each split; what is counted is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ssdvae.cli import main
from ssdvae.commands.prepare import prepare
from ssdvae.data.corpus import Corpus
from ssdvae.data.readers import write_jsonl
from ssdvae.storyworld.world import World
from tests.system.mistakes import assert_is_a_message


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("prepare") / "events.jsonl.gz"
    write_jsonl(path, World.embedded().documents(100, seed=5))
    return str(path)


def settings(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())["settings"]
    return found


def test_a_preset_gives_defaults_wherever_it_stands(source: str, tmp_path: Path) -> None:
    for place, words in enumerate((["--events=3", "--preset", "tiny"], ["--preset=tiny", "--events=3"])):
        out = tmp_path / str(place)
        assert main(["prepare", source, "--out", str(out), *words]) == 0
        assert (settings(out)["events"], settings(out)["vocabulary"]) == (3, 2000)


def test_yaml_is_between_the_preset_and_the_flags(source: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("events: 3\nvocabulary: 77\n")
    words = ["--events", "4", "--preset", "tiny", "--config", str(tmp_path / "c.yaml")]
    assert main(["prepare", source, "--out", str(tmp_path / "c"), *words]) == 0
    found = settings(tmp_path / "c")
    assert (found["events"], found["vocabulary"], found["frames"]) == (4, 77, 200)


def test_the_command_and_the_function_make_the_same_corpus(source: str, tmp_path: Path) -> None:
    words = ["--jobs", "1", "--valid-share", "0.2", "--no-lowercase", "--drop-unlabelled"]
    assert main(["prepare", source, "--out", str(tmp_path / "a"), *words]) == 0
    options: dict[str, Any] = {"valid_share": 0.2, "lowercase": False, "drop_unlabelled": True}
    made = prepare(source, tmp_path / "b", jobs=1, progress=False, **options)
    assert made.fingerprint == Corpus(tmp_path / "a").fingerprint
    assert made.manifest["settings"] == settings(tmp_path / "a")


def test_one_file_for_each_split(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--train", source, "--test", source, "--out", str(tmp_path / "c"), "--valid-share", "0"]
    assert main(["prepare", *words]) == 0
    said = capsys.readouterr().err
    assert "train: 100 documents" in said
    assert "test: 100 documents" in said
    assert "nothing to measure on: give a file for --valid" in said
    both = prepare({"train": source, "test": source}, tmp_path / "d", valid_share=0, progress=False)
    assert both.fingerprint == Corpus(tmp_path / "c").fingerprint


def test_bins_may_be_named_again_and_again(tmp_path: Path) -> None:
    rows = [f"c{n // 4},a{n % 5},{n % 97},{n % 3}\n" for n in range(400)]
    (tmp_path / "log.csv").write_text("case,act,amount,size\n" + "".join(rows))
    words = "--case case --head act --arguments amount,size --bin amount=4 --bin size=2"
    assert main(["prepare", str(tmp_path / "log.csv"), "--out", str(tmp_path / "c"), *words.split()]) == 0
    columns = Corpus(tmp_path / "c").columns
    assert columns is not None
    assert {name: len(edges) for name, edges in columns.bins.items()} == {"amount": 3, "size": 1}


def test_a_case_with_one_event_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"c{n},opened,K\nc{n},closed,\n" for n in range(60)] + [f"d{n},opened,\n" for n in range(40)]
    (tmp_path / "log.csv").write_text("case,act,kind\n" + "".join(rows))
    named = "--case case --head act --label kind"
    assert main(["prepare", str(tmp_path / "log.csv"), "--out", str(tmp_path / "c"), *named.split()]) == 0
    counts = re.findall(r"(\d+) of them have one event", capsys.readouterr().err)
    assert sum(map(int, counts)) == 40


def test_events_that_are_left_out_are_told(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prepare", source, "--out", str(tmp_path / "c"), "--events", "2"]) == 0
    assert "after the first 2 of their documents left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("prepare nowhere.jsonl --out out", "nowhere.jsonl"),
        ("prepare bad.jsonl --out out", "bad.jsonl, line 2"),
        ("prepare empty.jsonl --out out", "no documents are left for training"),
        ("prepare --train bad.jsonl --out out", "'test'"),
        ("prepare --out out", "--train and --test"),
        ("prepare bad.jsonl --train bad.jsonl --out out", "--train and --test"),
        ("prepare bad.jsonl", "--out"),
        ("prepare bad.jsonl --out out --preset huge", "huge"),
        ("prepare bad.jsonl --out out --events 0", "--events: found 0"),
        ("prepare bad.jsonl --out out --slots verb,verb", "--slots"),
        ("prepare bad.jsonl --out out --cases id", "--case"),
    ],
)
def test_a_mistake_is_a_message(
    words: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "events": []}\n{"id": "b"\n')
    (tmp_path / "empty.jsonl").write_text("")
    assert_is_a_message(words.split(), expected, tmp_path, capsys)
