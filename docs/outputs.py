"""Run the commands that README.md and the pages show, and rewrite their outputs and pictures.

    python docs/outputs.py            rewrite what differs
    python docs/outputs.py --check    only report it; numbers may differ a little

A block of the language `console` holds commands, each after `$ `, and what they print:

    ```console
    $ ssdvae next "arrested police suspect in"
    events: after 1 event – exact
    ```

All commands run in one folder, page after page, so that a page can use what an earlier one made.
The folder has a parsed text (ferry.conllu) and a lexicon (verbs.csv) of the package's example.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
EXAMPLE = ROOT / "src" / "ssdvae" / "extraction" / "example"
FIRST = ("logs", "text", "train")
"""Pages whose commands others build on."""

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
SECONDS = re.compile(r"\b\d+(?:\.\d+)? s\b")
BORDERS = re.compile(r"[ \u2500-\u257f]+")
WIDTH = 84


def pages() -> list[Path]:
    """Return the pages, in the order in which their commands run."""
    found = sorted(DOCS.glob("*.md"), key=lambda page: (*(page.stem != name for name in FIRST), page.stem))
    return [ROOT / "README.md", *found]


def commands(block: str) -> list[str]:
    """Return the commands of a block; a line that ends in a backslash goes on in the next."""
    joined = block.replace("\\\n", "\\\0")
    return [line[2:].replace("\\\0", "\\\n") for line in joined.splitlines() if line.startswith("$ ")]


def run(command: str, folder: Path) -> str:
    """Return what a command prints, with what it reports on standard error."""
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": str(WIDTH),
        "OMP_NUM_THREADS": "1",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # 2 is a user's mistake, which a page may show; a pipe hides the status of its first command.
    if done.returncode not in (0, 2) or "Traceback" in done.stdout:
        raise SystemExit(f"{command}\n{done.stdout}")
    lines = done.stdout.replace(str(folder), "/home/you").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def made(page: Path, folder: Path) -> str:
    """Return the text of a page with the outputs of today."""

    def block(found: re.Match[str]) -> str:
        parts = [f"$ {command}\n{run(command, folder)}" for command in commands(found[1])]
        return f"```console\n{''.join(parts)}```"

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


def same(shown: str, made: str) -> bool:
    """Return True if two texts differ in nothing but a little in their numbers."""
    texts, numbers = zip(*(split(text) for text in (shown, made)), strict=True)
    return texts[0] == texts[1] and all(map(near, *numbers))


def split(text: str) -> tuple[str, list[float]]:
    """Return a text without borders, seconds and numbers, and its numbers."""
    plain = BORDERS.sub(" ", SECONDS.sub("#", text))
    return NUMBER.sub("#", plain), [float(number.replace(",", "")) for number in NUMBER.findall(plain)]


def near(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=0.05, abs_tol=0.2)


def outputs(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each page with what it should be."""
    for file in EXAMPLE.iterdir():
        shutil.copy(file, folder)
    for page in pages():
        yield page, made(page, folder)


def pictures(folder: Path) -> dict[str, str]:
    """Return the pictures of answers, as SVG by file name; ``folder`` has what the commands made."""
    import ssdvae
    from ssdvae.report.pictures import Picture
    from ssdvae.report.process import ProcessGraph

    case = ["arrested police suspect in", "charged he murder with", "sang choir hymn in"]
    answers = {
        "next": next(ssdvae.next_events("wiki-en", [case[:1]])),
        "infer": next(ssdvae.infer("wiki-en", folder / "ferry.jsonl")),
        "score": next(ssdvae.score("wiki-en", [case])),
        "fill": next(ssdvae.fill("wiki-en", [["born he city in", None, "graduated he university from"]])),
        "similar": ssdvae.similar("wiki-en", "sailed ship port", folder / "ferry.jsonl"),
        "generate": ssdvae.generate("wiki-en", ["arrested police suspect in"], events=3, scripts=1, seed=3)[
            0
        ],
        "links": ssdvae.explain(folder / "run", split="train", progress=False),
    }
    process = ssdvae.Corpus(folder / "corpus").process
    assert process is not None
    drawn = {"process": Picture(ProcessGraph("Which action follows which", process))}
    drawn |= {name: ssdvae.draw(answer) for name, answer in answers.items()}
    return {f"{name}.svg": picture.svg() for name, picture in drawn.items()}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="report differences, and change nothing")
    check = parser.parse_args().check
    stale = 0
    with TemporaryDirectory() as name:
        for page, text in outputs(Path(name)):
            shown = page.read_text(encoding="utf-8")
            if shown != text and not (check and same(shown, text)):
                stale += 1
                print(f"{'stale' if check else 'rewritten'}: {page.relative_to(ROOT)}")
                if not check:
                    page.write_text(text, encoding="utf-8")
        if not check:
            for file, svg in pictures(Path(name)).items():
                (DOCS / "pictures" / file).write_text(svg, encoding="utf-8")
    return int(check and stale > 0)


if __name__ == "__main__":
    raise SystemExit(main())
