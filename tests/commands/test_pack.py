"""A packed model answers as its run does, with half the bytes; its card says how both were made."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import ssdvae
from ssdvae.analysis.statistics import Statistics
from ssdvae.cli import main
from ssdvae.commands.pack import PackedModel, commands, packed_files
from ssdvae.data.corpus import Corpus
from ssdvae.data.options import PrepareOptions
from ssdvae.data.readers import read_documents
from ssdvae.data.readers.jsonl import Title, read_titles
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.models.card import LIMITS
from ssdvae.models.hub import DEFINITIONS, DOCUMENTS, SCRIPTS, STATISTICS
from ssdvae.models.quantiles import SurprisalQuantiles
from ssdvae.models.word_vectors import WORD_VECTORS
from ssdvae.options import Options
from ssdvae.training.options import TrainOptions
from tests.extraction.tiny_framenet import write_framenet
from tests.flags import parse_flags
from tests.report.conftest import TINY
from tests.report.conftest import runs as runs

QUICK: dict[str, Any] = {"tasks": "perplexity,frames", "bound_samples": 1, "progress": False}
TYPED = [["chased ann dog", "caught bob"]]


@pytest.fixture(scope="module")
def packed(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> PackedModel:
    folder = tmp_path_factory.mktemp("packed")
    (folder / "about.md").write_text("## Data\n\nTwo scripts.\n")
    (folder / "license").write_text("Free.\n")
    (folder / "valid.jsonl").write_text(
        '{"id": "enwiki-12", "title": "A trial", "events": [{"verb": "tried", "subj": "zoe"}]}\n'
        '{"id": "b", "title": "B", "url": "javascript:alert(1)", "events": []}\n{"id": "c", "events": []}\n'
    )
    about, license, valid = (folder / name for name in ("about.md", "license", "valid.jsonl"))
    framenet = str(write_framenet(folder / "fndata"))
    return ssdvae.pack(
        runs[0],
        folder / "two-scripts",
        about=about,
        license=license,
        documents=valid,
        framenet=framenet,
        **QUICK,
    )


def test_half_the_bytes_and_nearly_the_same_answers(runs: list[Path], packed: PackedModel) -> None:
    stored, full = (load_file(folder / "model.safetensors") for folder in (packed.folder, runs[0]))
    assert stored.keys() == full.keys()
    for name, value in full.items():
        assert stored[name].dtype == (torch.float16 if value.is_floating_point() else value.dtype)
    model = ssdvae.load(packed.folder)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    (mine,), (whole,) = (list(ssdvae.infer(run, TYPED)) for run in (model, runs[0]))
    assert [e.frame for e in mine.events] == [e.frame for e in whole.events]
    for one, other in zip(mine.events, whole.events, strict=True):
        assert one.probability == pytest.approx(other.probability, rel=0.02)
    assert packed.loss is not None
    assert abs(packed.loss) < 0.005
    assert packed.scores["ppl"] != packed.full["ppl"]
    assert {path.name for path in packed.folder.iterdir()} == set(packed_files()) - {SCRIPTS, WORD_VECTORS}
    weights = [(folder / "model.safetensors").stat().st_size for folder in (packed.folder, runs[0])]
    assert weights[0] < 0.6 * weights[1]


def test_what_the_explorer_shows_is_packed(runs: list[Path], packed: PackedModel) -> None:
    """Counts of the training split, with half precision; documents with titles and addresses."""
    corpus, model = Corpus(runs[0].parent / "corpus"), ssdvae.load(packed.folder)
    found = Statistics.read(packed.folder, model)
    assert found is not None
    assert found.counts.documents == len(corpus.split("train"))
    assert found.count("Trial") == pytest.approx(found.counts.heads["tried"], abs=1)
    assert read_titles(packed.folder / DOCUMENTS) == {
        "enwiki-12": Title("A trial", "https://en.wikipedia.org/?curid=12"),
        "b": Title("B", ""),
    }
    assert [d.id for d in read_documents(packed.folder / DOCUMENTS)] == ["enwiki-12", "b", "c"]


def test_a_folder_of_a_killed_pack_is_gone_on_with(runs: list[Path], tmp_path: Path) -> None:
    """At each file that it writes; other files are still refused."""
    out = tmp_path / "out"
    for name in set(packed_files()) - {DOCUMENTS, DEFINITIONS, STATISTICS, WORD_VECTORS}:  # not written here
        scratch = out / f".{name}.0.tmp"
        scratch.mkdir(parents=True)
        (scratch / "new.json").write_text("half of")
        (out / f".{name}.0.lock").touch()
    ssdvae.pack(runs[1], out, license=Path(__file__), **{**QUICK, "tasks": "perplexity"})
    assert {path.name for path in out.iterdir()} <= set(packed_files())
    for other in (".mine.0.tmp", "notes.txt", ".README.md.tmp"):
        (out / other).touch()
        with pytest.raises(ssdvae.UserError, match=f"has other files .*{other}"):
            ssdvae.pack(runs[1], out, **QUICK)
        (out / other).unlink()


def test_the_figures_are_those_of_the_packed_model(runs: list[Path], packed: PackedModel) -> None:
    corpus = ssdvae.Run(runs[0]).config()[0]
    again = ssdvae.evaluate(packed.folder, corpus=corpus, **QUICK)
    (packed.folder / "scores.json").unlink()
    (packed.folder / ".scores.json.lock").unlink(missing_ok=True)
    assert again["ppl_bound"] == packed.scores["ppl_bound"]
    assert f"{again['ppl']:.2f}" in (packed.folder / "README.md").read_text()


def test_what_is_usual_goes_with_it(packed: PackedModel) -> None:
    assert SurprisalQuantiles.read(packed.folder) is not None
    (scored,) = ssdvae.score(packed.folder, TYPED)
    assert all(event.percentile is not None for event in scored.events)


def test_the_card(packed: PackedModel) -> None:
    card = (packed.folder / "README.md").read_text()
    for part in ("# two-scripts", "Two scripts.", "## How it was made", "seed is 1", "license_link: LICENSE"):
        assert part in card
    assert LIMITS not in card  # another text is in its place
    assert str(packed.folder.parent) not in card  # nor where anything was


@pytest.mark.parametrize("number", [0, 1])
def test_the_commands_make_the_same_again(runs: list[Path], number: int) -> None:
    path, trained = ssdvae.Run(runs[number]).config()
    corpus = ssdvae.Corpus(path)
    prepare, train, _ = commands(runs[number], corpus, EvaluateOptions(), Path("x"))
    assert TrainOptions.chosen(given(TrainOptions, train), corpus.counts) == trained
    assert PrepareOptions(**given(PrepareOptions, prepare)) == PrepareOptions.of(corpus.manifest["settings"])
    assert prepare.split()[2] == "events.jsonl"


def given(kind: type[Options], command: str) -> dict[str, Any]:
    """Return the options that a command line gives."""
    _, *words = shlex.split(command)
    return {name: value for name, value in parse_flags(words).items() if name in kind.names()}


def test_the_command_writes_again_but_not_over_other_files(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pack", str(runs[1]), "--out", str(tmp_path / "m"), "--tasks", "perplexity"]
    for _ in range(2):
        assert main(words) == 0
    assert "MB; half precision changes the perplexity by" in capsys.readouterr().err
    assert LIMITS in (tmp_path / "m" / "README.md").read_text()
    (tmp_path / "m" / "notes.txt").write_text("mine")
    assert main(words) == 2
    assert "notes.txt" in capsys.readouterr().err


def test_the_default_model_is_packed_with_its_reader(runs: list[Path], tmp_path: Path) -> None:
    corpus = ssdvae.Run(runs[0]).config()[0]
    ssdvae.train(corpus, tmp_path / "run", **TINY, progress=False)
    packed = ssdvae.pack(tmp_path / "run", tmp_path / "packed", **QUICK)
    assert packed.loss is not None
    assert abs(packed.loss) < 0.005
    (mine,), (whole,) = (list(ssdvae.infer(tmp_path / run, TYPED)) for run in ("packed", "run"))
    assert [e.frame for e in mine.events] == [e.frame for e in whole.events]
    for one, other in zip(mine.events, whole.events, strict=True):
        assert one.probability == pytest.approx(other.probability, rel=0.02)
    _, trained = ssdvae.Run(tmp_path / "run").config()
    _, train, _ = commands(tmp_path / "run", ssdvae.Corpus(corpus), EvaluateOptions(), Path("x"))
    assert TrainOptions.chosen(given(TrainOptions, train), ssdvae.Corpus(corpus).counts) == trained
