"""The script that makes the English model, on twenty articles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import ssdvae

ROOT = Path(__file__).parents[2]


TEXTS = os.environ.get("SSDVAE_TEXTS")
"""A folder of texts in JSON lines, in files named raw* or plots*: the journey goes over all of them."""

needs_parser = pytest.mark.skipif(
    find_spec("en_core_web_sm") is None, reason="spaCy's en_core_web_sm is not installed"
)


@pytest.mark.slow
@needs_parser
def test_from_articles_to_a_model_and_what_exists_is_not_made_again(tmp_path: Path) -> None:
    _make_model(Path(__file__).parent / "articles", tmp_path)


@pytest.mark.journey
@needs_parser
@pytest.mark.skipif(TEXTS is None, reason="SSDVAE_TEXTS names no folder of texts")
def test_from_many_texts_to_a_model(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for path in (*Path(str(TEXTS)).glob("raw*.jsonl*"), *Path(str(TEXTS)).glob("plots*.jsonl*")):
        (texts / f"raw-{path.name}").symlink_to(path.resolve())
    _make_model(texts, tmp_path)


def _make_model(data: Path, tmp_path: Path) -> None:
    lexicon = tmp_path / "verbs.csv"
    lexicon.write_text("verb,frame\nbear,Being_born\nplay,Competition\nwin,Win_prize\nbecome,Becoming\n")
    command = tmp_path / "ssdvae"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ssdvae.cli "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "SSDVAE": str(command),
        "DATA": str(data),
        "FRAMES": str(lexicon),
        "WORK": str(tmp_path / "work"),
        "PREPARE": "--soft-labels",
        "TRAIN": "--preset tiny --epochs 1",
        "PACK": "--tasks perplexity",
    }
    script = ROOT / "pretrained" / "wiki-en" / "make.sh"
    made = [subprocess.run(["sh", script], env=environment, capture_output=True, text=True) for _ in range(2)]
    assert [run.returncode for run in made] == [0, 0], made[0].stderr + made[1].stderr
    assert "extract" not in made[1].stderr
    (inferred,) = ssdvae.infer(tmp_path / "work" / "wiki-en", [["played she guitar"]])
    assert inferred.events[0].frame in ("Being_born", "Competition", "Win_prize", "Becoming")


def _mend(tmp_path: Path, events: list[dict[str, str]], *options: str) -> list[dict[str, str]]:
    source, target = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    source.write_text(json.dumps({"id": "a", "events": events}) + "\n")
    script = ROOT / "pretrained" / "wiki-en" / "complete.py"
    subprocess.run([sys.executable, script, source, target, *options], check=True)
    return [event for line in target.open() for event in json.loads(line)["events"]]


def test_lost_complements_are_filled_from_the_next_event_or_the_event_is_left_out(tmp_path: Path) -> None:
    tried = {"verb": "tried", "subj": "he", "lemma": "try"}
    escape = {"verb": "escape", "subj": "he", "obj": "prison", "mod": "from", "lemma": "escape"}
    died = {"verb": "died", "subj": "he", "lemma": "die"}
    became = {"verb": "became", "subj": "he", "lemma": "become"}
    hyphen = {"verb": "-", "subj": "he", "lemma": "-"}
    assert _mend(tmp_path, [tried, escape]) == [{**tried, "obj": "escape"}, escape]
    assert _mend(tmp_path, [tried, died]) == [died]
    assert _mend(tmp_path, [tried, {**escape, "subj": "she"}]) == [{**escape, "subj": "she"}]
    assert _mend(tmp_path, [became, hyphen, died]) == [died]
    whole = [{**tried, "obj": "case"}, died, escape]
    assert _mend(tmp_path, whole) == whole
    assert _mend(tmp_path, whole, "2") == whole[:2]
