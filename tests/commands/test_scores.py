"""`ssdvae scores` puts evaluated runs side by side."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from ssdvae.cli import main
from ssdvae.data.corpus import Corpus
from ssdvae.data.prepare import single_events


def test_scores_are_averaged_over_the_runs_that_differ_in_their_seed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"a": (1, 0.9, 10.0), "b": (2, 0.9, 14.0), "c": (1, 0.2, 20.0)}
    for name, (seed, observe, ppl) in figures.items():
        copy = shutil.copytree(folder / "ssdvae-exact", tmp_path / name)
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


def test_scores_keep_corpora_and_runs_apart(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(folder / "ssdvae-exact", tmp_path / "run")
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
