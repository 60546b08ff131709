"""Whoever asks a model one question does not wait for packages that the answer does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ssdvae.config import MODEL_SETTINGS
from ssdvae.data.events import MISSING
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.models import MODELS

SCRIPT = """
import sys
from ssdvae.cli.main import main
assert main(["next", "met she him", "--run", sys.argv[1], "--beam", "2"]) == 0
slow = {"accelerate", "fastapi", "pandas", "scipy", "sklearn", "spacy"} & set(sys.modules)
assert not slow, slow
"""


@pytest.mark.parametrize("model", ["ssdvae-exact", "ssdvae"])
def test_one_question_imports_no_more_than_it_needs(model: str, tmp_path: Path) -> None:
    kind = MODEL_SETTINGS[model]
    words = Vocabulary([MISSING, UNKNOWN, "met", "she", "him"], [5] * 5)
    small = MODELS[model](kind(embedding=4, hidden=4, layers=1), words, Inventory(["Meeting"], [5]))
    small.save_pretrained(tmp_path)
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=True, capture_output=True)
