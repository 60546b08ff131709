"""Test what users install: the wheel and the source archive, each in a new environment.

``python tests/try_archives.py dist`` runs the quick tests there, on a copy that does not see the clone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from zipfile import ZipFile

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
QUICK = ("test_imports.py", "laws", "config", "models/test_base.py", "system/test_commands.py")


def run(*words: str | Path, cwd: Path) -> None:
    # Nothing of the clone, nor of the environment that this was started in.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([str(word) for word in words], cwd=cwd, check=True, env={**clean, "OMP_NUM_THREADS": "1"})


def check_files(wheel: Path) -> None:
    """Everything of the package is in it: style sheets, texts and weights, too."""
    with ZipFile(wheel) as packed:
        found = {name for name in packed.namelist() if name.startswith("ssdvae/")}
    files = (path for path in (SOURCE / "ssdvae").rglob("*") if path.is_file())
    there = {path.relative_to(SOURCE).as_posix() for path in files if "__pycache__" not in path.parts}
    assert found == there, found ^ there


def try_archive(archive: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        pip = (folder / "env" / "bin" / "pip", "install", "--quiet", "-c", HERE.parent / "constraints.txt")
        torch = next(
            line
            for line in (HERE.parent / "constraints.txt").read_text().splitlines()
            if line.startswith("torch==")
        )
        run(*pip, torch, cwd=folder)
        run(*pip, f"{archive}[dev]", cwd=folder)
        # Other libraries find it by what the archive says of itself.
        found = "import spacy; spacy.blank('en').add_pipe('ssdvae')"
        run(folder / "env" / "bin" / "python", "-c", found, cwd=folder)
        shutil.copytree(HERE, folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE.parent / "pyproject.toml", folder)  # the settings of pytest
        tests = [Path("tests") / quick for quick in QUICK]
        run(
            folder / "env" / "bin" / "pytest",
            "-n",
            "auto",
            "-m",
            "not slow and not journey",
            *tests,
            cwd=folder,
        )
    print(f"{archive.name}: installed and tested", flush=True)


def main(folder: Path) -> None:
    archives = sorted(folder.resolve().glob("ssdvae-*"))
    assert {"".join(path.suffixes[-1:]) for path in archives} == {".whl", ".gz"}, archives
    check_files(next(path for path in archives if path.suffix == ".whl"))
    for archive in archives:
        try_archive(archive)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
