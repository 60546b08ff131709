"""A model that comes with the package is found by its name, and is what answers where none is named."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import ssdvae
from ssdvae.cli import main
from ssdvae.commands.pack import LICENSE, packed_files
from ssdvae.models import hub
from ssdvae.models.quantiles import TYPICAL
from tests.report.conftest import runs as runs


def test_by_its_name_and_by_none(runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "FOLDER", tmp_path)
    with pytest.raises(ssdvae.UserError, match="comes without wiki-en"):
        ssdvae.load()
    shutil.copytree(runs[0], tmp_path / "wiki-en")
    frames = ssdvae.load(runs[0]).frames.names
    assert ssdvae.load().frames.names == frames
    assert ssdvae.load("wiki-en").frames.names == frames
    assert hub.packaged("../wiki-en") is None
    assert hub.packaged("other") is None


def unsealed(folder: Path, **changes: Any) -> None:
    """Take the seal away, and change some options."""
    weights = folder / "model.safetensors"
    save_file(load_file(weights), weights)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def test_a_packaged_model_has_a_seal(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "FOLDER", tmp_path / "pretrained")
    for folder in (tmp_path / "pretrained" / "wiki-en", tmp_path / "mine"):
        shutil.copytree(runs[0], folder)
        unsealed(folder)
    ssdvae.load(tmp_path / "mine")
    with pytest.raises(ssdvae.UserError, match=r"wiki-en/model\.safetensors: found no SHA-256"):
        ssdvae.load("wiki-en")


def test_sizes_that_the_weights_do_not_have_are_refused_before_anything_is_built(
    runs: list[Path], tmp_path: Path
) -> None:
    """In a process that cannot have much memory."""
    folders = []
    for run, name in itertools.product((0, 1), ("hidden", "embedding")):
        folders.append(tmp_path / f"large-{run}-{name}")
        shutil.copytree(runs[run], folders[-1])
        unsealed(folders[-1], **{name: 10**7})
    script = (
        "import resource, sys, ssdvae\n"
        "from ssdvae.models import registry\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31))\n"
        "for folder in sys.argv[1:]:\n"
        "    try: ssdvae.load(folder)\n"
        "    except ssdvae.UserError as error: print(error)"
    )
    command = [sys.executable, "-c", script, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    refused = done.stdout.splitlines()
    assert len(refused) == len(folders), done.stderr
    for folder, message in zip(folders, refused, strict=True):
        assert message.startswith(str(folder))
        assert re.match(r".*model\.safetensors: found \[.* numbers in .*, expected \[.*0000000", message)


def test_weights_that_do_not_fit_into_the_memory_are_refused(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSDVAE_MAX_MEMORY", "1K")
    with pytest.raises(
        ssdvae.UserError, match=r"model\.safetensors: found weights that take .*, expected at most 1 KiB"
    ):
        ssdvae.load(runs[0])


DOCUMENT = ["arrested police suspect in", "charged he murder with", "sentenced he prison to"]


@pytest.fixture(scope="module")
def model() -> ssdvae.Model:
    return ssdvae.load("wiki-en")


def answers(model: Any) -> Iterator[Any]:
    """One question of each kind."""
    yield from ssdvae.infer(model, [DOCUMENT])
    yield from ssdvae.score(model, [DOCUMENT])
    yield from ssdvae.next_events(model, [DOCUMENT], beam=5)
    yield from ssdvae.fill(model, [[*DOCUMENT[:2], "sentenced he ?"]], beam=5)
    yield from ssdvae.embed(model, [DOCUMENT])
    yield from ssdvae.generate(model, DOCUMENT, scripts=1, events=1)
    yield from ssdvae.similar(model, "jailed court man", among=[DOCUMENT])


def test_wiki_en_answers_every_question(model: ssdvae.Model, caplog: pytest.LogCaptureFixture) -> None:
    assert len(model.vocabulary) >= 12_000
    assert all(json.dumps(answer.to_record()) for answer in answers(model))
    (scored,) = ssdvae.score(model, [DOCUMENT])
    assert all(event.percentile is not None for event in scored.events)
    (inferred,) = ssdvae.infer(model, [DOCUMENT])
    assert inferred.events[0].frame == "Arrest"
    assert not caplog.records
    # It has learned something: what is told is less surprising than the same words elsewhere.
    (mixed,) = ssdvae.score(model, [["arrested murder suspect in", "charged he prison with"]])
    assert sum(e.nats for e in scored.events[:2]) < mixed.nats


def test_wiki_en_is_small_and_its_card_says_what_one_needs_to_know() -> None:
    folder = hub.default_model()
    found = {path.name for path in folder.iterdir()}
    assert {*hub.FILES, hub.README, TYPICAL, LICENSE} <= found <= set(packed_files())
    size = {path.name: path.stat().st_size for path in folder.iterdir()}
    learned = sum(size[name] for name in hub.FILES)
    assert learned <= 14e6
    assert sum(size.values()) - learned <= 4e6
    stored = load_file(folder / "model.safetensors").values()
    assert {value.dtype for value in stored if value.is_floating_point()} == {torch.float16}
    card = (folder / "README.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", card, flags=re.MULTILINE)
    expected = ["Data", "Licences", "What it is for, and what not", "Limits", "Biases", "How it was made"]
    assert [name for name in sections if name in expected] == expected
    for part in ("CC BY-SA 3.0", "FrameNet", "ssdvae train", "seed is", "cloze", "next"):
        assert part in card
    (loss,) = re.findall(r"that of the run [\d.]+: ([+-][\d.]+)%", card)
    assert float(loss) < 0.5
    assert not re.search(r"(^|[\s`])/\w+/\w+", card)  # no file of anybody's machine


def test_a_question_needs_nothing_but_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", "arrested police suspect in", "--beam", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exact"]
