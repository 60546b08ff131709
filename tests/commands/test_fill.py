"""`ssdvae fill`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssdvae.commands.fill import fill
from ssdvae.commands.infer import infer
from ssdvae.io.errors import UserError
from tests.commands.conftest import Ask, records, type_in


def test_fill(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    words = ["--run", folder / "ssdvae-exact", "--top", "2", "--beam", "5"]
    holed = {
        "id": "a",
        "events": [{"verb": "arrested", "subj": "police"}, None, {"verb": "left", "subj": "?"}],
    }
    (tmp_path / "holed.jsonl").write_text(json.dumps(holed) + "\n")
    (record,) = records(ask("fill", tmp_path / "holed.jsonl", *words, "--json"))
    assert [hole["event"] for hole in record["holes"]] == [2, 3]
    (same,) = fill(folder / "ssdvae-exact", holed, top=2, beam=5)
    assert json.loads(json.dumps(same.to_record())) == record
    type_in(monkeypatch, "arrested police\n?\nleft ?\n")
    assert "by both sides" in ask("fill", *words)
    with pytest.raises(UserError, match="expected an event"):
        list(infer(folder / "ssdvae-exact", tmp_path / "holed.jsonl"))
