"""`ssdvae check` finds what is damaged in a corpus or a run, and sizes that cannot be meant are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ssdvae import api
from ssdvae.checking import check
from ssdvae.cli.main import main
from ssdvae.config import PrepareSettings, TrainSettings
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import MISSING
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.data.vocabulary import UNKNOWN, Vocabulary
from ssdvae.errors import UserError
from ssdvae.models import MODELS
from ssdvae.runs import Run
from ssdvae.storyworld.world import World
from ssdvae.training.loop import new_model
from ssdvae.training.size import parameters_at_least, refuse_if_too_large
from ssdvae.training.train import train

SMALL = {"embedding": 8, "hidden": 8, "layers": 1, "batch": 32, "epochs": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Run]:
    folder = tmp_path_factory.mktemp("made")
    write_jsonl(folder / "events.jsonl", World.embedded().documents(80, seed=3))
    settings = PrepareSettings(vocabulary=100, valid_share=0.2, test_share=0.2, cloze_options=2)
    corpus = prepare(folder / "events.jsonl", folder / "corpus", settings)
    run = train(corpus, folder / "run", TrainSettings.of(SMALL))
    api.evaluate(run.folder)
    return corpus, run


def test_a_whole_folder_has_no_problem(made: tuple[Corpus, Run], capsys: pytest.CaptureFixture[str]) -> None:
    corpus, run = made
    for folder, names in (
        (corpus.folder, {"manifest.json", "vocab.json", "frames.json", "train.arrow", "cloze/valid.txt"}),
        (
            run.folder,
            {"config.yaml", "the corpus", "the model", "checkpoint", "metrics.jsonl"},
        ),
    ):
        found = check(folder)
        assert not [one for one in found if one.problem is not None]
        assert names <= {one.name for one in found}
        assert main(["check", str(folder)]) == 0
        assert "DAMAGED" not in capsys.readouterr().out


CORPUS = ("manifest.json", "vocab.json", "frames.json", "train.arrow", "test.arrow", "cloze/test.txt")
RUN = ("config.yaml", "config.json", "vocab.json", "frames.json", "model.safetensors", "metrics.jsonl",
       "scores.json", "checkpoint/state.safetensors")  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [(0, name) for name in CORPUS] + [(1, name) for name in RUN])
def test_a_damaged_file_is_named_and_the_exit_code_is_2(
    made: tuple[Corpus, Run], kind: int, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(made[kind].folder, tmp_path / "copy"))
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] = 0xFF
    (folder / name).write_bytes(content)
    assert main(["check", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert "DAMAGED" in out
    assert str(folder / name) in err.replace("\n", "")


def test_what_is_neither_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither a corpus"):
        check(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        check(tmp_path / "nothing")


# Sizes


@pytest.mark.parametrize("name", MODELS)
def test_the_estimate_is_never_more_than_the_truth(name: str, made: tuple[Corpus, Run]) -> None:
    corpus, _ = made
    large = Vocabulary([MISSING, UNKNOWN, *map(str, range(5_000))], [1] * 5_002)
    for more in ({}, {"hidden": 32}, {"layers": 3}):
        settings = TrainSettings.of({"model": name, **SMALL, **more})
        for vocabulary in (corpus.vocabulary, large):
            model = new_model(settings, vocabulary, corpus.frames, None)
            truth = sum(parameter.numel() for parameter in model.parameters())
            least = parameters_at_least(settings, len(vocabulary), len(corpus.frames))
            assert truth / 20 < least <= truth  # the same order, whatever the model


@pytest.mark.parametrize(
    "more",
    [
        {"hidden": 10**8},
        {"embedding": 10**10},
        {"batch": 10**9, "hidden": 10**6},
        {"model": "ssdvae", "samples": 10**9},
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_estimate(
    more: dict[str, object], made: tuple[Corpus, Run], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"parameters takes .* of memory|--samples: found"):
        train(made[0], tmp_path / "run", TrainSettings.of({**SMALL, **more}))
    assert not list(tmp_path.iterdir())


def test_the_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TrainSettings.of(SMALL)
    refuse_if_too_large(settings, 100, 10, 100, 5, 4)
    monkeypatch.setenv("SSDVAE_MAX_MEMORY", "1K")
    with pytest.raises(UserError, match=r"takes [\d.]+ KiB of memory .* this machine has 1 KiB"):
        refuse_if_too_large(settings, 100, 10, 100, 5, 4)


@pytest.mark.parametrize(
    "words",
    [
        ["train", "CORPUS", "--out", "OUT", "--config", ""],
        ["train", "CORPUS", "--out", "OUT", "--config", "LATIN"],
        ["train", "CORPUS", "--out", "OUT", "--seed", "-1"],
        ["train", "CORPUS", "--out", "OUT", "--seed", str(10**30)],
        ["train", "CORPUS", "--out", "OUT", "--layers", "100000"],
        ["train", "CORPUS", "--out", "OUT", "--model", "haqae", "--latents", "2147483648"],
        ["train", "CORPUS", "--out", "OUT", "--lexicon", "LOOP"],
        ["prepare", "LATIN", "--out", "OUT", "--events", "1000000000"],
        ["scores", "LOOP"],
        ["report", "LOOP", "--out", "OUT"],
        ["check", "LOOP"],
        ["generate", "--run", "RUN", "--events", "1000000000"],
        ["benchmark", "--vocabulary", "1000000000"],
        ["evaluate", "RUN", "--eval-seed", str(10**30)],
    ],
)
def test_these_end_in_words(
    words: list[str], made: tuple[Corpus, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "latin.yaml").write_bytes(b"seed: \xe9\n")
    places = {
        "CORPUS": made[0].folder,
        "RUN": made[1].folder,
        "OUT": tmp_path / "out",
        "LATIN": tmp_path / "latin.yaml",
        "LOOP": tmp_path / "loop",
    }
    assert main([str(places.get(word, word)) for word in words]) == 2
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
