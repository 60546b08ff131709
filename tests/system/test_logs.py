"""docs/logs.md as it stands there: from a table or a log to answers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import adjusted_mutual_info_score

from ssdvae.cli import main
from ssdvae.data.corpus import Corpus
from ssdvae.models.base import Model
from ssdvae.storyworld.tickets import ticket_documents
from tests.data.test_columns import quantile_edges
from tests.pages import commands

SMALL = {"tickets": {"--documents": "400"}, "train": {"--epochs": "1", "--preset": "tiny"}}


def run(page: list[list[str]], changes: dict[str, dict[str, str]]) -> None:
    """Run commands with other values of some flags."""
    for words in page:
        for flag, value in changes.get(words[0], {}).items():
            place = words.index(flag) if flag in words else len(words)
            words = [*words[:place], flag, value, *words[place + 2 :]]
        assert main(words) == 0, words


def main_part() -> list[list[str]]:
    """Return the commands of the page about the log with labels; no file is there for that of a table."""
    return [words for words in commands("logs") if "bare" not in str(words) and "tickets.csv" not in words]


def inferred(file: Path, count: int) -> list[tuple[str, str | None, str | None]]:
    """Of each event the frame that a model has inferred, the stage that the log tells, and the true one."""
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return [
        (event["frame"], event["gold"], one.frame)
        for record, document in zip(found, ticket_documents(count, known=1), strict=True)
        for event, one in zip(record["events"], document.events, strict=True)
    ]


def latent_right(folder: Path, count: int) -> float:
    """The share of the stages that the log does not tell and the model finds."""
    true = [event.frame for document in ticket_documents(count, known=1) for event in document.events]
    with (folder / "stages.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    right = [bool(row["frame"] == stage) for row, stage in zip(rows, true, strict=True) if not row["gold"]]
    return sum(right) / len(right)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_page_as_it_is(place: Path) -> None:
    run(main_part(), {})
    assert (place / "report.html").stat().st_size > 10_000
    corpus, model = Corpus("corpus"), Model.read(Path("run"))
    assert corpus.slots == model.slots == ("concept:name", "org:resource", "product", "channel")
    assert corpus.columns == model.columns is not None
    assert latent_right(place, 500) >= 0.95


def test_the_page_in_small(place: Path) -> None:
    run(main_part(), SMALL)
    assert (place / "report.html").stat().st_size > 10_000
    assert len((place / "stages.csv").read_text().splitlines()) > 400


def agreement(folder: Path, count: int) -> float:
    """Adjusted mutual information of the frames that are found and the true stages."""
    found, _, true = zip(*inferred(folder / "found.jsonl", count), strict=True)
    return float(adjusted_mutual_info_score(true, found))


def test_a_log_without_labels_in_small(place: Path) -> None:
    run(commands("logs", "Without any label"), SMALL)
    assert agreement(place, 400) > 0.2  # by chance: 0


@pytest.mark.journey
def test_a_log_without_labels(place: Path) -> None:
    run(commands("logs", "Without any label"), {})
    assert agreement(place, 3_000) >= 0.9


def events_of(corpus: Corpus) -> dict[str, Any]:
    """Words and frames of each document of all splits, by its name."""
    found = {}
    for split in ("train", "valid", "test"):
        documents = corpus.split(split)
        for id, part in zip(documents.ids, documents.parts(), strict=True):
            words = [[corpus.vocabulary.name(word) for word in event] for event in documents.tokens[part]]
            frames = [corpus.frames.name(f) if f >= 0 else None for f in documents.frames[part].tolist()]
            found[str(id)] = (words, frames)
    return found


def test_a_log_in_xes_is_the_table_again(place: Path) -> None:
    for file in ("tickets.xes", "tickets.csv.gz"):
        assert main(["tickets", file, "--documents", "400"]) == 0
    xes = "--arguments org:resource,product,channel --label stage"
    assert main(["prepare", "tickets.xes", "--out", "corpus-xes", *xes.split()]) == 0
    table = "--case ticket --time when --head action --arguments agent,product,channel --label stage"
    assert main(["prepare", "tickets.csv.gz", "--out", "table", *table.split()]) == 0
    assert events_of(Corpus("corpus-xes")) == events_of(Corpus("table"))


def test_new_tables_are_binned_as_the_old_one(place: Path) -> None:
    header = "case,act,amount,kind\n"
    rows = [f"c{n // 4},a{n % 5},{n % 97},k{n % 3}\n" for n in range(800)]
    Path("log.csv").write_text(header + "".join(rows))
    named = "--case case --head act --arguments amount --label kind --bin amount=4"
    assert main(["prepare", "log.csv", "--out", "corpus", *named.split()]) == 0
    corpus = Corpus("corpus")
    assert corpus.columns is not None
    edges = corpus.columns.bins["amount"]
    training = set(corpus.split("train").ids.to_pylist())
    assert edges == quantile_edges([float(n % 97) for n in range(800) if f"c{n // 4}" in training], 4)
    assert edges != quantile_edges([float(n % 97) for n in range(800)], 4)
    assert main(["train", "corpus", "--out", "run", "--epochs", "1", "--preset", "tiny"]) == 0
    Path("new.csv").write_text("amount,act,case\n-5,a1,x\n1e6,a2,x\n,a3,x\n")
    assert main(["infer", "new.csv", "--run", "run", "--out", "new.jsonl"]) == 0
    [record] = [json.loads(line) for line in Path("new.jsonl").read_text().splitlines()]
    shown = [event["amount"] for event in record["events"]]
    assert shown == [f"amount:<{edges[0]:g}", f"amount:≥{edges[-1]:g}", None]
