"""The command line: help, mistakes, presets and files of options."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssdvae.cli import find_command, main, usage
from ssdvae.commands import GROUPS
from ssdvae.data.events import MISSING
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.models.options import MODEL_OPTIONS
from ssdvae.models.registry import MODELS
from tests.commands.conftest import folder as folder
from tests.system.mistakes import assert_is_a_message

COMMANDS = [name for commands in GROUPS.values() for name in commands]


def test_help_groups_the_commands() -> None:
    shown = usage()
    places = [shown.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    for name in COMMANDS:
        assert f"\n  {name} " in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_examples(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([name, "--help"]) == 0
    lines = capsys.readouterr().out.rstrip().splitlines()
    examples = find_command(name).examples
    assert examples
    shown = "\n".join(lines).partition("\nexamples:\n")[2]
    assert " ".join(shown.split()) == " ".join(" ".join(examples).split())
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"Usage: ssdvae {name}")


def test_help_imports_nothing_heavy() -> None:
    """Importing torch takes seconds: no --help may do so."""
    script = (
        "import sys\n"
        "from ssdvae.cli import main\n"
        f"for words in ([], *([name] for name in {COMMANDS})):\n"
        "    assert main([*words, '--help']) == 0\n"
        "heavy = {'torch', 'pyarrow', 'accelerate', 'numpy', 'spacy', 'nltk', 'conllu', 'concrete'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in COMMANDS:
        assert name in done.stdout


QUESTION = """
import sys
from ssdvae.cli import main
assert main(["next", "met she him", "--run", sys.argv[1], "--beam", "2"]) == 0
slow = {"accelerate", "fastapi", "pandas", "scipy", "sklearn", "spacy"} & set(sys.modules)
assert not slow, slow
"""


@pytest.mark.parametrize("model", ["ssdvae-exact", "ssdvae"])
def test_one_question_imports_no_more_than_it_needs(model: str, tmp_path: Path) -> None:
    kind = MODEL_OPTIONS[model]
    words = Vocabulary([MISSING, UNKNOWN, "met", "she", "him"], [5] * 5)
    small = MODELS[model](kind(embedding=4, hidden=4, layers=1), words, Inventory(["Meeting"], [5]))
    small.save_pretrained(tmp_path)
    subprocess.run([sys.executable, "-c", QUESTION, str(tmp_path)], check=True, capture_output=True)


def test_the_run_folder_explains_itself(folder: Path) -> None:
    names = {path.name for path in (folder / "ssdvae-exact").iterdir()}
    assert {"config.yaml", "model.safetensors", "metrics.jsonl", "checkpoint", "README.md"} <= names
    assert not [
        path for path in (folder / "ssdvae-exact").rglob("*") if path.suffix in (".pt", ".pkl", ".bin")
    ]


def test_a_preset_gives_defaults_wherever_it_stands(folder: Path, tmp_path: Path) -> None:
    source = str(folder / "events.jsonl")
    for place, words in enumerate((["--events=3", "--preset", "tiny"], ["--preset=tiny", "--events=3"])):
        assert main(["prepare", source, "--out", str(tmp_path / str(place)), *words]) == 0
        settings = json.loads((tmp_path / str(place) / "manifest.json").read_text())["settings"]
        assert (settings["events"], settings["vocabulary"]) == (3, 2000)


def test_yaml_is_between_the_preset_and_the_flags(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("events: 3\nvocabulary: 77\n")
    words = ["--events", "4", "--preset", "tiny", "--config", str(tmp_path / "c.yaml")]
    assert main(["prepare", str(folder / "events.jsonl"), "--out", str(tmp_path / "c"), *words]) == 0
    settings = json.loads((tmp_path / "c" / "manifest.json").read_text())["settings"]
    assert (settings["events"], settings["vocabulary"], settings["frames"]) == (4, 77, 200)


def test_import_reads_the_files_of_the_authors(tmp_path: Path) -> None:
    (tmp_path / "a_TUP.txt").write_text("Met she HIM _NULL_ <TUP> left he none at\n")
    (tmp_path / "a_frame.txt").write_text("Meet_with __NOFRAME__\n")
    assert main(["import", str(tmp_path / "a_TUP.txt"), "--out", str(tmp_path / "a.jsonl")]) == 0
    first, second = json.loads((tmp_path / "a.jsonl").read_text())["events"]
    assert first == {"verb": "met", "subj": "she", "obj": "him", "mod": None, "frame": "Meet_with"}
    assert second == {"verb": "left", "subj": "he", "obj": None, "mod": "at", "frame": None}


def test_bad_lines_are_counted_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "events": [{"verb": "met"}]}\nnot json\n')
    words = ["import", str(tmp_path / "bad.jsonl"), "--out", str(tmp_path / "good.jsonl"), "--skip-bad"]
    assert main(words) == 0
    assert "line 2" in capsys.readouterr().err
    assert len((tmp_path / "good.jsonl").read_text().splitlines()) == 1


MISTAKES = {
    "no such file": ("prepare nowhere.jsonl --out out", "nowhere.jsonl"),
    "no such corpus": ("train nowhere --out out", "cannot read nowhere"),
    "not a corpus": ("train . --out out", "not a corpus folder"),
    "no such run": ("evaluate nowhere", "cannot read nowhere"),
    "not a run": ("evaluate .", "neither a run"),
    "a bad line": ("import bad.jsonl --out out.jsonl", "bad.jsonl, line 2"),
    "an empty file": ("prepare empty.jsonl --out out", "no documents are left for training"),
    "one split only": ("prepare --train bad.jsonl --out out", "'test'"),
    "nothing to prepare": ("prepare --out out", "--train and --test"),
    "nothing to train": ("train", "--resume"),
    "a flag cut short": ("train CORPUS --out out --epoch 1", "mean --epochs?"),
    "no such model": ("train CORPUS --out out --model vae", "expected one of ssdvae-exact, ssdvae, rnnlm"),
    "a chance above one": ("train CORPUS --out out --observe 1.5", "--observe"),
    "a number in words": (
        "train CORPUS --out out --epochs three",
        "--epochs: found 'three', expected a whole",
    ),
    "an unknown split": ("evaluate RUN --split dev", "--split: found 'dev', expected one of train"),
    "no place to write": ("prepare bad.jsonl", "--out"),
    "an option of another model": (
        "train CORPUS --out out --model rnnlm --latents 9",
        "rnnlm has no option 'latents' (haqae has it); did you mean 'layers'?",
    ),
    "no such command": ("trian CORPUS", "no command 'trian'; did you mean train?"),
    "a command like no other": ("xyzzy", "there are: demo, world"),
    "a flag without a command": ("--epochs", "no command '--epochs'"),
    "an unknown flag": ("train CORPUS --out out --epocks 3", "mean --epochs?"),
    "an unknown fixed flag": ("evaluate RUN --detials d.jsonl", "mean --details?"),
    "a flag like no other": ("train CORPUS --out out --xyzzy 3", "see ssdvae train --help"),
    "an unknown key": ("train CORPUS --out out --config odd.yaml", "did you mean 'hidden'?"),
    "options for a resumed run": ("train --resume RUN --epochs 9", "takes nothing else"),
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
    "no frames": ("annotate bad.jsonl --out out.jsonl", "--frames"),
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
    words = words.replace("CORPUS", str(folder / "corpus")).replace("RUN", str(folder / "ssdvae-exact"))
    assert_is_a_message(words.split(), expected, tmp_path, capsys)


@pytest.mark.parametrize(
    "words",
    [
        "train CORPUS --out OUT --config LATIN",
        "train CORPUS --out OUT --seed -1",
        f"train CORPUS --out OUT --seed {10**30}",
        "train CORPUS --out OUT --layers 100000",
        "train CORPUS --out OUT --model haqae --latents 2147483648",
        "train CORPUS --out OUT --lexicon LOOP",
        "prepare LATIN --out OUT --events 1000000000",
        "scores LOOP",
        "report LOOP --out OUT",
        "check LOOP",
        "generate --run RUN --events 1000000000",
        f"evaluate RUN --eval-seed {10**30}",
    ],
)
def test_odd_files_and_huge_numbers_are_a_message(
    words: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "latin.yaml").write_bytes(b"seed: \xe9\n")
    places = {
        "CORPUS": folder / "corpus",
        "RUN": folder / "ssdvae-exact",
        "OUT": tmp_path / "out",
        "LATIN": tmp_path / "latin.yaml",
        "LOOP": tmp_path / "loop",
    }
    assert main([str(places.get(word, word)) for word in words.split()]) == 2
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("words", ["train --help", "infer --json --run RUN"])
def test_any_encoding_of_the_terminal_will_do(encoding: str, words: str, folder: Path) -> None:
    """Characters that it does not have are escaped, in a way that JSON knows."""
    run = str(folder / "ssdvae-exact")
    done = subprocess.run(
        [sys.executable, "-m", "ssdvae.cli", *words.replace("RUN", run).split()],
        input="met zoë 日本 –\n".encode(),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "evaluate RUN --cloze /dev/zero --tasks cloze",
        "evaluate RUN --mcnc /dev/zero --tasks mcnc",
        "evaluate RUN --similarity /dev/zero --tasks similarity",
        "reproduce cloze --data CORPUS --cells /dev/zero --out OUT",
    ],
)
def test_a_file_without_end_is_a_message(words: str, folder: Path, tmp_path: Path) -> None:
    places = {"RUN": folder / "ssdvae-exact", "OUT": tmp_path / "out", "CORPUS": folder / "corpus"}
    command = [str(places.get(word, word)) for word in words.split()]
    done = subprocess.run(
        [sys.executable, "-m", "ssdvae.cli", *command], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert "/dev/zero" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_path_is_a_message(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", str(folder / "corpus"), "--out", str(tmp_path / "out"), "--config", ""]
    assert main(words) == 2
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_of_several_processes_ends_without_destructors(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    assert main(["--version"]) == 0
    assert codes == []
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    assert main(["--version"]) == 0
    assert main(["no such command"]) == 2
    assert codes == [0, 2]
