"""Whoever asks a model one question does not wait for packages that the answer does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[1] / "runs" / "format1" / "ssdvae"

SCRIPT = """
import sys
from ssdvae.cli.main import main
assert main(["next", "met she him", "--run", sys.argv[1], "--samples", "2", "--beam", "2"]) == 0
slow = {"accelerate", "fastapi", "pandas", "scipy", "sklearn", "spacy"} & set(sys.modules)
assert not slow, slow
"""


def test_one_question_imports_no_more_than_it_needs() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT, str(RUN)], check=True, capture_output=True)
