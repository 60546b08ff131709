"""The command line, from one end to the other, as a stranger would use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssdvae.cli import main

KEYS = {"ppl", "ppl_official", "ppl_bound", "frame_accuracy", "words", "documents"}
TINY = ["--hidden=8", "--embedding=8", "--layers=1", "--epochs=1", "--batch=50"]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own, so that standard output and standard error are told apart."""
    return subprocess.run(
        [sys.executable, "-m", "ssdvae.cli", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world, a corpus of it and a run on that."""
    folder = tmp_path_factory.mktemp("road")
    assert main(["world", str(folder / "events.jsonl.gz"), "--documents", "200", "--seed", "5"]) == 0
    corpus = ["prepare", str(folder / "events.jsonl.gz"), "--out", str(folder / "corpus"), "--preset", "tiny"]
    assert main([*corpus, "--valid-share", "0.2", "--test-share", "0.1"]) == 0
    assert main(["train", str(folder / "corpus"), "--out", str(folder / "run"), *TINY]) == 0
    return folder


def test_help_answers_without_torch() -> None:
    """What takes the time is importing torch: no --help may do so."""
    script = (
        "import sys\n"
        "from ssdvae.cli import COMMANDS, main\n"
        "for words in ([], *([name] for name in COMMANDS)):\n"
        "    try: main([*words, '--help'])\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'pyarrow', 'accelerate', 'numpy', 'spacy', 'nltk', 'conllu', 'concrete'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for command in ("demo", "world", "import", "extract", "annotate", "prepare", "train", "evaluate"):
        assert command in done.stdout


def test_evaluate_prints_one_json_object_and_nothing_else(folder: Path) -> None:
    done = run("evaluate", folder / "run", "--split", "valid", "--json")
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert scores.keys() == KEYS
    corpus = json.loads((folder / "corpus" / "manifest.json").read_text())
    assert scores["documents"] == corpus["splits"]["valid"]["documents"]
    assert scores["words"] == 4 * corpus["splits"]["valid"]["events"]
    assert 1 < scores["ppl"] < 2 * corpus["words"]
    assert 0 <= scores["frame_accuracy"] <= 1


def test_evaluate_repeats_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["evaluate", str(folder / "run"), "--json", "--bound-samples", "2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


def test_evaluate_takes_its_settings_from_yaml(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("split: test\nbound_samples: 1\n")
    done = run("evaluate", folder / "run", "--json", "--config", tmp_path / "c.yaml")
    corpus = json.loads((folder / "corpus" / "manifest.json").read_text())
    assert json.loads(done.stdout)["documents"] == corpus["splits"]["test"]["documents"]


def test_the_run_folder_explains_itself(folder: Path) -> None:
    names = {path.name for path in (folder / "run").iterdir()}
    assert {"config.yaml", "model.safetensors", "metrics.jsonl", "checkpoint", "README.md"} <= names
    assert not [path for path in (folder / "run").rglob("*") if path.suffix in (".pt", ".pkl", ".bin")]


def test_a_preset_gives_defaults_wherever_it_stands(folder: Path, tmp_path: Path) -> None:
    source = str(folder / "events.jsonl.gz")
    for place, words in enumerate((["--events=3", "--preset", "tiny"], ["--preset=tiny", "--events=3"])):
        assert main(["prepare", source, "--out", str(tmp_path / str(place)), *words]) == 0
        settings = json.loads((tmp_path / str(place) / "manifest.json").read_text())["settings"]
        assert (settings["events"], settings["vocabulary"]) == (3, 2000)


def test_yaml_is_between_the_preset_and_the_flags(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("events: 3\nvocabulary: 77\n")
    words = ["--events", "4", "--preset", "tiny", "--config", str(tmp_path / "c.yaml")]
    assert main(["prepare", str(folder / "events.jsonl.gz"), "--out", str(tmp_path / "c"), *words]) == 0
    settings = json.loads((tmp_path / "c" / "manifest.json").read_text())["settings"]
    assert (settings["events"], settings["vocabulary"], settings["frames"]) == (4, 77, 200)


def test_import_reads_the_files_of_the_authors(tmp_path: Path) -> None:
    (tmp_path / "a_TUP.txt").write_text("Met she HIM _NULL_ <TUP> left he none at\n")
    (tmp_path / "a_frame.txt").write_text("Meet_with __NOFRAME__\n")
    assert main(["import", str(tmp_path / "a_TUP.txt"), "--out", str(tmp_path / "a.jsonl")]) == 0
    first, second = json.loads((tmp_path / "a.jsonl").read_text())["events"]
    assert first == {"verb": "met", "subj": "she", "obj": "him", "mod": None, "frame": "Meet_with"}
    assert second == {"verb": "left", "subj": "he", "obj": None, "mod": "at", "frame": None}


MISTAKES = {
    "no such file": ("prepare nowhere.jsonl --out out", "nowhere.jsonl"),
    "no such corpus": ("train nowhere --out out", "cannot read nowhere"),
    "not a corpus": ("train . --out out", "not a corpus folder"),
    "no such run": ("evaluate nowhere", "cannot read nowhere"),
    "not a run": ("evaluate .", "config.yaml"),
    "a bad line": ("import bad.jsonl --out out.jsonl", "bad.jsonl, line 2"),
    "an empty file": ("prepare empty.jsonl --out out", "no event of the training split"),
    "one split only": ("prepare --train bad.jsonl --out out", "'valid'"),
    "nothing to prepare": ("prepare --out out", "--train, --valid and --test"),
    "nothing to train": ("train", "--resume"),
    "no such model": ("train CORPUS --out out --model vae", "there are: ssdvae, rnnlm"),
    "a chance above one": ("train CORPUS --out out --observe 1.5", "--observe"),
    "a number in words": ("train CORPUS --out out --epochs three", "--epochs: Expected a int"),
    "an unknown split": ("evaluate RUN --split dev", "--split: Expected a value among"),
    "no place to write": ("prepare bad.jsonl", "required: --out"),
    "an unknown flag": ("train CORPUS --out out --epocks 3", "--epocks"),
    "an unknown key": ("train CORPUS --out out --config odd.yaml", "hiden"),
    "settings for a resumed run": ("train --resume RUN --epochs 9", "takes nothing else"),
    "an odd name": ("world out.csv", ".jsonl"),
    "no documents": ("world out.jsonl --documents 0", "at least 1"),
    "nothing to extract from": ("extract nowhere --out out.jsonl", "cannot read nowhere"),
    "a text that is none": ("extract odd.yaml --out out.jsonl", "cannot tell the format of odd.yaml"),
    "an odd format of text": ("extract bad.jsonl --out out.jsonl --format pdf", "text, csv"),
    "an odd name for events": ("extract bad.jsonl --out out.csv", ".jsonl"),
    "no such spaCy model": (
        "extract bad.jsonl --out out.jsonl --spacy-model xx_none",
        "python -m spacy download xx_none",
    ),
    "a negation that is none": ("extract bad.jsonl --out out.jsonl --negation deny", "--negation"),
    "no frames": ("annotate bad.jsonl --out out.jsonl", "required: --frames"),
    "no such lexicon": ("annotate bad.jsonl --out out.jsonl --frames verbs.csv", "cannot read verbs.csv"),
    "no lexicon": ("annotate bad.jsonl --out out.jsonl --frames odd.yaml", "a lexicon ends in .csv"),
    "a probability above one": (
        "annotate bad.jsonl --out out.jsonl --frames verbs.csv --threshold 2",
        "--threshold",
    ),
    "an odd format": ("import bad.jsonl --out out.jsonl --format xml", "jsonl, csv"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_message(
    name: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "events": []}\n{"id": "b"\n')
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "odd.yaml").write_text("hiden: 3\n")
    before = sorted(tmp_path.iterdir())
    words, expected = MISTAKES[name]
    words = words.replace("CORPUS", str(folder / "corpus")).replace("RUN", str(folder / "run"))
    assert main(words.split()) == 2
    said = capsys.readouterr()
    assert expected in said.err
    assert "Traceback" not in said.err
    assert not said.out
    assert sorted(tmp_path.iterdir()) == before


def test_bad_lines_are_counted_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "events": [{"verb": "met"}]}\nnot json\n')
    words = ["import", str(tmp_path / "bad.jsonl"), "--out", str(tmp_path / "good.jsonl"), "--skip-bad"]
    assert main(words) == 0
    assert "line 2" in capsys.readouterr().err
    assert len((tmp_path / "good.jsonl").read_text().splitlines()) == 1
