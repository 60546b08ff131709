"""Names of models: a run folder, one of the package, or one of the hub, which is not asked for a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdvae.commands.coerce import folder_of, load
from ssdvae.io.errors import UserError
from ssdvae.models.hub import default_model


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names that the hub is asked for; it has none of them."""
    asked: list[str] = []

    def download(name: str, **options: Any) -> str:
        asked.append(name)
        raise OSError("no such model")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    return asked


@pytest.mark.parametrize(
    "name",
    ["runs/nope", "./owner/name", "/nowhere", "~/run", "nope", "here/run", "a/b/c", Path("owner/name")],
)
def test_a_local_path_is_not_looked_up_on_the_hub(
    name: str | Path, hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with pytest.raises(UserError, match="cannot read"):
        folder_of(name)
    assert hub == []


def test_an_owner_and_a_name_are_looked_up_on_the_hub(hub: list[str]) -> None:
    with pytest.raises(UserError, match="there is no folder someone/else"):
        load("someone/else")
    assert hub == ["someone/else"]


@pytest.mark.parametrize("name", ["runs/nope", "here/run", "here/there", "wiki-en"])
def test_a_name_with_the_prefix_of_the_hub_is_always_looked_up_there(
    name: str, hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here" / "there").mkdir(parents=True)
    with pytest.raises(UserError, match="gave no model"):
        folder_of(f"hf://{name}")
    assert hub == [name]


def test_a_folder_and_a_packaged_model(folder: Path, hub: list[str]) -> None:
    assert folder_of(folder / "rnnlm") == folder_of(str(folder / "rnnlm")) == folder / "rnnlm"
    assert folder_of("wiki-en") == folder_of(None) == default_model()
    with pytest.raises(UserError, match="is a file"):
        folder_of(folder / "events.jsonl")
    assert hub == []
