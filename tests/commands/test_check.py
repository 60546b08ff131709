"""`ssdvae check` finds damaged files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ssdvae
from ssdvae.cli import main
from ssdvae.commands.check import check
from ssdvae.data.corpus import Corpus
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.io.errors import UserError
from ssdvae.io.run import Run
from ssdvae.storyworld.world import World
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import train

SMALL = {"embedding": 8, "hidden": 8, "layers": 1, "batch": 32, "epochs": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Run]:
    folder = tmp_path_factory.mktemp("made")
    write_jsonl(folder / "events.jsonl", World.embedded().documents(80, seed=3))
    settings = PrepareOptions(vocabulary=100, valid_share=0.2, test_share=0.2, cloze_options=2)
    corpus = prepare(folder / "events.jsonl", folder / "corpus", settings)
    run = train(corpus, folder / "run", TrainOptions.of(SMALL))
    ssdvae.evaluate(run.folder, progress=False)
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


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither a corpus"):
        check(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        check(tmp_path / "nothing")


def test_a_packaged_model_is_checked_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "wiki-en"]) == 0
    assert "ssdvae-exact" in capsys.readouterr().out
