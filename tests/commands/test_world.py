"""`ssdvae world` writes documents of the storyworld."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdvae.cli import main
from ssdvae.commands.world import world
from ssdvae.data.readers import read_documents
from ssdvae.storyworld.world import World


def test_documents_of_a_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "events.jsonl.gz"
    assert main(["world", str(out), "--documents", "30", "--seed", "5"]) == 0
    assert f"wrote 30 documents to {out}" in capsys.readouterr().err
    documents = list(read_documents(out))
    assert documents == list(World.embedded().documents(30, 5))
    assert world(tmp_path / "same.jsonl", documents=30, seed=5, progress=False) == 30
    assert list(read_documents(tmp_path / "same.jsonl")) == documents


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("world out.csv", "expected a name in .jsonl"),
        ("world out.jsonl --documents 0", "--documents: found 0, expected a whole number, at least 1"),
        ("world out.jsonl --seed -1", "--seed: found -1"),
        ("world", "OUT"),
    ],
)
def test_mistakes_are_said(
    words: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
