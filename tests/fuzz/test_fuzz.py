"""Some seconds of `make fuzz`, always of the same seeds; a minute among the slow tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ssdvae.io.errors import UserError
from tests.fuzz import fuzz
from tests.fuzz.damage import bytes_changed
from tests.fuzz.kinds import Kind


@pytest.mark.parametrize(("seconds", "seed"), [(20, 1), pytest.param(60, 2, marks=pytest.mark.slow)])
def test_damaged_folders_are_refused_in_words_or_read_as_they_are(seconds: int, seed: int) -> None:
    """In a process of its own, which limits its memory."""
    command = [sys.executable, "-m", "tests.fuzz.fuzz", "--seconds", str(seconds), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "traceback" in done.stdout


@pytest.mark.parametrize(
    ("error", "end"), [(KeyError("a"), "traceback"), (MemoryError(), "memory"), (UserError("a"), "refused")]
)
def test_the_fuzzer_tells_one_end_from_another(error: Exception, end: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"what was there")

    def read() -> None:
        raise error

    kind = Kind("a", path, (bytes_changed,), read, lambda found: True)
    assert fuzz.one(kind, "1")[0] == end
    assert fuzz.one(Kind("a", path, (bytes_changed,), lambda: 1, lambda found: False), "1")[0] == "wrong"
    assert fuzz.one(Kind("a", path, (bytes_changed,), lambda: 1, lambda found: True), "1")[0] == "accepted"
    assert path.read_bytes() == b"what was there"
