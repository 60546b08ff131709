"""Answers of two models to everyday events and stories, in random order, for a reader who judges them blind.

    python -m benchmarks.judge answer MODEL POOL --out answers.json
    python -m benchmarks.judge sheets first.json second.json --out FOLDER
    python -m benchmarks.judge count first.json second.json FOLDER

``judged/`` has 150 events with a sentence, 60 stories of five events and 40 events whose neighbours are asked
for; one writer made them up who knew no training data. POOL is a file of documents, among whose events the
neighbours are found. ``sheets`` writes frames.txt and answers.txt, each answer as A or B. The reader writes
frames.csv, lines ``e1,r,n``: right, near or wrong (w) by FrameNet's definitions, x for no answer; and
answers.csv, lines ``n1,1,0``: one of five next events (n) or fillings (f) is plausible, most of five
neighbours (s) are similar. ``count`` sums up what was judged of each model.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ssdvae
from ssdvae.data.events import SLOTS

JUDGED = Path(__file__).parent / "judged"
READ = 3
"""Events of a story that are read before the next one is asked for; the event before the last of them is the
gap of a filled story."""
GAP = READ - 1
SEED = 11


def read(name: str) -> list[dict[str, Any]]:
    """Return the records of a file of the judged set."""
    with (JUDGED / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def event(words: Sequence[str | None]) -> dict[str, str]:
    """Return an event as `ssdvae` reads it."""
    return {slot: word for slot, word in zip(SLOTS, words, strict=True) if word}


def text(words: Sequence[str | None]) -> str:
    return " ".join(word or "-" for word in words)


def answer(name: str, pool: Path) -> dict[str, list[Any]]:
    """Return the answers of a model: a frame and its probability, or the five best texts."""
    model = ssdvae.load(name)
    words = [[record[slot] for slot in SLOTS] for record in read("events")]
    stories = [record["events"] for record in read("stories")]
    asked = [event([record[slot] for slot in SLOTS]) for record in read("neighbours")]
    inferred = ssdvae.infer(model, [[event(one)] for one in words], progress=False)
    before = [[event(one) for one in story[:READ]] for story in stories]
    gaps = [
        {"id": str(n), "events": [None if k == GAP else event(one) for k, one in enumerate(story)]}
        for n, story in enumerate(stories)
    ]
    near: defaultdict[str, list[str]] = defaultdict(list)
    for found in ssdvae.similar(model, asked, pool, progress=False):
        near[str(found.asked)].append(str(found.event))
    return {
        "e": [[document.events[0].frame, document.events[0].probability] for document in inferred],
        "n": [
            [str(e.event) for e in forecast.events]
            for forecast in ssdvae.next_events(model, before, progress=False)
        ],
        "f": [
            [str(e.event) for e in filled.holes[0].fillings]
            for filled in ssdvae.fill(model, gaps, progress=False)
        ],
        "s": list(near.values()),
    }


def questions() -> dict[str, list[str]]:
    """Return the text of each question, by kind."""
    stories = [record["events"] for record in read("stories")]
    return {
        "e": [f"{text([r[slot] for slot in SLOTS])}   [{r['sentence']}]" for r in read("events")],
        "n": ["after: " + "; ".join(map(text, story[:READ])) for story in stories],
        "f": [
            "gap: " + "; ".join("?" if n == GAP else text(one) for n, one in enumerate(story))
            for story in stories
        ],
        "s": ["near to: " + text([r[slot] for slot in SLOTS]) for r in read("neighbours")],
    }


def exchanged(kind: str, number: int) -> bool:
    """Tell whether A is the second model in a question."""
    return random.Random(f"{SEED} {kind} {number}").random() < 0.5


def write_sheets(models: Sequence[dict[str, list[Any]]], out: Path) -> None:
    """Write the answers of two models to each question, in random order."""
    out.mkdir(parents=True, exist_ok=True)
    for name, kinds in (("frames.txt", "e"), ("answers.txt", "nfs")):
        with (out / name).open("w", encoding="utf-8") as file:
            for kind in kinds:
                for number, question in enumerate(questions()[kind]):
                    shown = [model[kind][number] for model in models]
                    texts = [(x[0] or "no answer") if kind == "e" else " | ".join(x) for x in shown]
                    a, b = reversed(texts) if exchanged(kind, number) else texts
                    print(f"{kind}{number + 1}. {question}\n  A: {a}\n  B: {b}\n", file=file)


def count(models: Sequence[dict[str, list[Any]]], folder: Path) -> list[Counter[str]]:
    """Return how often each verdict was given on each of two models."""
    found: list[Counter[str]] = [Counter(), Counter()]
    for name in ("frames.csv", "answers.csv"):
        for id, *verdicts in csv.reader((folder / name).open(encoding="utf-8")):
            kind, number = id[0], int(id[1:]) - 1
            order = reversed(verdicts) if exchanged(kind, number) else verdicts
            for counts, model, verdict in zip(found, models, order, strict=True):
                counts[f"{kind} {verdict}"] += 1
                if kind == "e" and (model["e"][number][1] or 0) >= 0.9:
                    counts[f"e {verdict}, p ≥ 0.9"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    one = steps.add_parser("answer")
    one.add_argument("model")
    one.add_argument("pool", type=Path)
    one.add_argument("--out", type=Path, required=True)
    for name in ("sheets", "count"):
        step = steps.add_parser(name)
        step.add_argument("models", type=Path, nargs=2)
        step.add_argument(*(["--out"] if name == "sheets" else ["folder"]), type=Path)
    given = parser.parse_args()
    if given.step == "answer":
        given.out.write_text(json.dumps(answer(given.model, given.pool), ensure_ascii=False))
        return
    models = [json.loads(path.read_text(encoding="utf-8")) for path in given.models]
    if given.step == "sheets":
        write_sheets(models, given.out)
    else:
        for path, counts in zip(given.models, count(models, given.folder), strict=True):
            print(path, dict(sorted(counts.items())))


if __name__ == "__main__":
    main()
