"""`ssdvae tickets` writes the same log as a table, as documents and as XES."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ssdvae.cli import main
from ssdvae.commands.tickets import tickets
from ssdvae.io.errors import UserError
from ssdvae.storyworld.tickets import COLUMNS, ticket_documents


def test_the_table_has_the_events_of_the_documents(tmp_path: Path) -> None:
    assert tickets(tmp_path / "t.csv", documents=30, progress=False) == 30
    assert tickets(tmp_path / "t.jsonl", documents=30, progress=False) == 30
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    events = [event for document in ticket_documents(30) for event in document.events]
    for row, event in zip(rows, events, strict=True):
        assert (row["action"], row["agent"], row["product"], row["channel"]) == event.words
        assert row["stage"] == (event.frame or "")
    with pytest.raises(UserError, match="--known: found 2"):
        tickets(tmp_path / "u.csv", known=2)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "t.xes.gz"
    assert main(["tickets", str(out), "--documents", "5", "--known", "1", "--seed", "2"]) == 0
    assert f"wrote 5 tickets to {out}" in capsys.readouterr().err
    assert main(["tickets", str(tmp_path / "t.txt")]) == 2
    assert "expected a name in .jsonl" in capsys.readouterr().err
    assert main(["tickets", str(out), "--documents", "0"]) == 2
    assert "--documents: found 0, expected a whole number, at least 1" in capsys.readouterr().err
