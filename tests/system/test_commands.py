"""The command line, from one end to the other, as a stranger would use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import ssdvae
from ssdvae.cli.console import show
from ssdvae.cli.main import main
from ssdvae.data.corpus import Corpus
from ssdvae.data.single import single_events
from tests.system.mistakes import assert_is_a_message

KEYS = {"ppl", "ppl_with_separators", "ppl_bound", "frame_accuracy", "words", "documents"}
TINY = ["--hidden=8", "--embedding=8", "--layers=1", "--epochs=1", "--batch=50"]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own, so that standard output and standard error are told apart."""
    return subprocess.run(
        [sys.executable, "-m", "ssdvae.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world, a corpus of it and a run on that."""
    folder = tmp_path_factory.mktemp("road")
    assert main(["world", str(folder / "events.jsonl.gz"), "--documents", "300", "--seed", "5"]) == 0
    corpus = ["prepare", str(folder / "events.jsonl.gz"), "--out", str(folder / "corpus"), "--preset", "tiny"]
    assert main([*corpus, "--valid-share", "0.2", "--test-share", "0.1"]) == 0
    assert main(["train", str(folder / "corpus"), "--out", str(folder / "run"), *TINY]) == 0
    return folder


def test_help_answers_without_torch() -> None:
    """What takes the time is importing torch: no --help may do so."""
    script = (
        "import sys\n"
        "from ssdvae.cli.main import COMMANDS, main\n"
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
    assert scores.keys() >= KEYS
    corpus = json.loads((folder / "corpus" / "manifest.json").read_text())
    assert scores["documents"] == corpus["splits"]["valid"]["documents"]
    assert scores["words"] == 4 * corpus["splits"]["valid"]["events"]
    assert 1 < scores["ppl"] < 2 * corpus["words"]
    assert 0 <= scores["frame_accuracy"] <= 1


def test_evaluate_keeps_its_figures_with_what_is_needed_to_trust_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """scores.json: one entry for each task and data, the newest; nothing of another task is lost."""
    run_folder, cloze = str(shutil.copytree(folder / "run", tmp_path / "run")), folder / "corpus" / "cloze"
    (tmp_path / "run" / "scores.json").unlink(missing_ok=True)
    shutil.copy(cloze / "valid.txt", tmp_path / "mine.txt")
    common = ["evaluate", run_folder, "--json", "--bound-samples=3", "--cloze-seeds=3"]
    assert main([*common, "--details", str(tmp_path / "details.jsonl")]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*common, "--tasks=cloze", "--cloze", str(tmp_path / "mine.txt")]) == 0
    assert main([*common, "--tasks=perplexity", "--split=test"]) == 0
    assert main([*common, "--tasks=cloze", "--cloze-frames=read"]) == 0
    kept = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert [(m["task"], m["data"]) for m in kept] == [
        ("perplexity", "valid"),
        ("frames", "valid"),
        ("cloze", "valid"),
        ("cloze", str(tmp_path / "mine.txt")),
        ("perplexity", "test"),
        ("cloze", "valid, frames read"),
    ]
    manifest = json.loads((folder / "corpus" / "manifest.json").read_text())
    by_name = {(m["task"], m["data"]): m for m in kept}
    assert by_name["perplexity", "valid"]["sha256"] == manifest["sha256"]["valid.arrow"]
    assert by_name["cloze", "valid"]["sha256"] == manifest["sha256"]["cloze/valid.txt"]
    assert by_name["cloze", "valid"]["scores"] == by_name["cloze", str(tmp_path / "mine.txt")]["scores"]
    assert by_name["cloze", "valid"]["items"] == manifest["cloze"]["valid"]
    for m in kept:
        assert m["version"] == ssdvae.__version__
        assert m["settings"]["bound_samples"] == 3
        assert len(m["model_sha256"]) == 64
    assert {k: v for m in kept[:3] for k, v in m["scores"].items()} == first
    lines = [json.loads(line) for line in (tmp_path / "details.jsonl").read_text().splitlines()]
    assert len(lines) == first["cloze_items"]
    assert sum(line["credit"]["pmi"] for line in lines) / len(lines) == pytest.approx(first["cloze_pmi"])


def test_scores_are_averaged_over_the_runs_that_differ_in_their_seed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"a": (1, 0.9, 10.0), "b": (2, 0.9, 14.0), "c": (1, 0.2, 20.0)}
    for name, (seed, observe, ppl) in figures.items():
        copy = shutil.copytree(folder / "run", tmp_path / name)
        shutil.rmtree(copy / "checkpoint")  # which would say that these are not its settings
        config = yaml.safe_load((copy / "config.yaml").read_text()) | {"seed": seed, "observe": observe}
        (copy / "config.yaml").write_text(yaml.safe_dump(config))
        assert main(["evaluate", str(copy), "--tasks=perplexity", "--bound-samples=1"]) == 0
        measured = json.loads((copy / "scores.json").read_text())
        measured[0]["scores"]["ppl"] = ppl
        (copy / "scores.json").write_text(json.dumps(measured[:1]))
    capsys.readouterr()
    assert main(["scores", *(str(tmp_path / name) for name in figures), "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "| ssdvae-exact | 0.9 | 2 | 12.00 ± 2.83 |" in shown  # the deviation of 10 and 14 is √8
    assert "| ssdvae-exact | 0.2 | 1 | 20.00 |" in shown
    assert main(["scores", str(tmp_path / "c")]) == 0
    assert "20.00" in capsys.readouterr().out


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
    "an empty file": ("prepare empty.jsonl --out out", "no documents are left for training"),
    "one split only": ("prepare --train bad.jsonl --out out", "'test'"),
    "nothing to prepare": ("prepare --out out", "--train and --test"),
    "nothing to train": ("train", "--resume"),
    "a flag cut short": ("train CORPUS --out out --epoch 1", "unrecognized arguments: --epoch"),
    "no such model": ("train CORPUS --out out --model vae", "expected one of ssdvae-exact, ssdvae, rnnlm"),
    "a chance above one": ("train CORPUS --out out --observe 1.5", "--observe"),
    "a number in words": (
        "train CORPUS --out out --epochs three",
        "--epochs: found 'three', expected a whole",
    ),
    "an unknown split": ("evaluate RUN --split dev", "--split: found 'dev', expected one of train"),
    "no place to write": ("prepare bad.jsonl", "required: --out"),
    "a setting of another model": (
        "train CORPUS --out out --model rnnlm --latents 9",
        "rnnlm has no setting 'latents' (haqae has it); did you mean 'layers'?",
    ),
    "no such command": ("trian CORPUS", "no command 'trian'; did you mean train?"),
    "a command like no other": ("xyzzy", "there are: demo, world"),
    "a flag without a command": ("--epochs", "no command '--epochs'"),
    "an unknown flag": ("train CORPUS --out out --epocks 3", "did you mean --epochs?"),
    "an unknown fixed flag": ("evaluate RUN --detials d.jsonl", "did you mean --details?"),
    "a flag like no other": ("train CORPUS --out out --xyzzy 3", "see ssdvae train --help"),
    "an unknown key": ("train CORPUS --out out --config odd.yaml", "did you mean 'hidden'?"),
    "settings for a resumed run": ("train --resume RUN --epochs 9", "takes nothing else"),
    "an odd name": ("world out.csv", ".jsonl"),
    "no documents": ("world out.jsonl --documents 0", "at least 1"),
    "a seed below zero": ("evaluate RUN --eval-seed -1", "--eval-seed"),
    "an unknown task": ("evaluate RUN --tasks cloze,poetry", "perplexity, frames, cloze"),
    "no such cloze file": ("evaluate RUN --tasks cloze --cloze nowhere.txt", "nowhere.txt"),
    "a bad cloze file": ("evaluate RUN --tasks cloze --cloze bad.txt", "bad.txt, line 2"),
    "a cloze file of other words": ("evaluate RUN --tasks cloze --cloze odd.txt", "knows no word"),
    "details of nothing": ("evaluate RUN --tasks frames --details d.jsonl", "--details"),
    "scores of nothing": ("scores CORPUS", "config.yaml"),
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
    event = "a b c d"
    (tmp_path / "bad.txt").write_text(f"{event} <TUP> {event} <DIST> {event}\n{event} <DIST> {event}\n")
    (tmp_path / "odd.txt").write_text(f"{event} <TUP> {event} <DIST> {event}\n" * 2)
    words, expected = MISTAKES[name]
    words = words.replace("CORPUS", str(folder / "corpus")).replace("RUN", str(folder / "run"))
    assert_is_a_message(words.split(), expected, tmp_path, capsys)


def test_bad_lines_are_counted_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "events": [{"verb": "met"}]}\nnot json\n')
    words = ["import", str(tmp_path / "bad.jsonl"), "--out", str(tmp_path / "good.jsonl"), "--skip-bad"]
    assert main(words) == 0
    assert "line 2" in capsys.readouterr().err
    assert len((tmp_path / "good.jsonl").read_text().splitlines()) == 1


def test_scores_keep_corpora_and_runs_apart(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(folder / "run", tmp_path / "run")
    (run / "scores.json").unlink(missing_ok=True)
    single = single_events(Corpus(folder / "corpus"), tmp_path / "single")
    common = ["evaluate", str(run), "--tasks=perplexity", "--bound-samples=1", "--json"]
    assert main(common) == main([*common, "--corpus", str(single.folder)]) == 0
    assert len(json.loads((run / "scores.json").read_text())) == 2
    other = shutil.copytree(run, tmp_path / "other")
    config = yaml.safe_load((other / "config.yaml").read_text())
    (other / "config.yaml").write_text(yaml.safe_dump({**config, "corpus": str(single.folder)}))
    capsys.readouterr()
    assert main(["scores", str(run), str(run), str(other), "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("perplexity, valid") == 2
    assert shown.count("| 1 |") == 4
    assert "±" not in shown


def test_figures_that_cannot_be_kept_are_shown(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(folder / "run", tmp_path / "run")
    (run / "scores.json").unlink(missing_ok=True)
    (run / "scores.json").mkdir()
    assert main(["evaluate", str(run), "--tasks=frames", "--json"]) == 0
    said = capsys.readouterr()
    assert "frame_accuracy" in json.loads(said.out)
    assert "not kept" in said.err
    # What can be known beforehand is said before the work is done.
    assert main(["evaluate", str(run), "--details", str(tmp_path / "nowhere" / "d.jsonl")]) == 2
    assert "cannot write" in capsys.readouterr().err
    # And an older file is there until the new one is.
    (tmp_path / "d.jsonl").write_text("older")
    assert main(["evaluate", str(run), "--tasks=frames", "--details", str(tmp_path / "d.jsonl")]) == 2
    (tmp_path / "bad.txt").write_text("no items\n")
    bad = ["--tasks=cloze", "--cloze", str(tmp_path / "bad.txt"), "--details", str(tmp_path / "d.jsonl")]
    assert main(["evaluate", str(run), *bad]) == 2
    assert (tmp_path / "d.jsonl").read_text() == "older"


def test_words_in_tables_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show([("a [b] title", ["[head]"], [["[edit] :heart: [/b]"]])])
    shown = capsys.readouterr().out
    for text in ("a [b] title", "[head]", "[edit] :heart: [/b]"):
        assert text in shown
