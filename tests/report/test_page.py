"""The page as text: its numbers, what it leaves out, and what it must not tell."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from ssdvae.analysis.options import ReportOptions
from ssdvae.cli import main
from ssdvae.data.events import Event
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.evaluation.task import TASKS
from ssdvae.inference.output import Candidate
from ssdvae.inference.posterior import InferredDocument, InferredEvent
from ssdvae.report.findings import DocumentBlock, document_block
from ssdvae.report.page import write_report
from ssdvae.report.runs import short_names
from ssdvae.reproduction.paper import published_figures
from tests.report.conftest import FRAME, WORD, evaluate_small, render_block, train_small


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def as_number(shown: str) -> float:
    """A figure as the page writes it, perhaps in per cent."""
    share = shown.removesuffix("\N{NO-BREAK SPACE}%")
    return float(share) / 100 if share != shown else float(shown.removesuffix(" †"))


def test_the_numbers_are_those_of_the_scores(page: Path, runs: list[Path]) -> None:
    shown = text(page)
    for measured in json.loads((runs[0] / "scores.json").read_text()):
        caption = f"<caption>{TASKS[measured['task']].title} on {measured['data']}</caption>"
        rows = shown.split(caption)[1].split("<tbody>")[1].split("</tbody>")[0]
        # The figure as it is read, and in full when pointed at.
        cells = re.findall(r'<span title="([^"]+)">([^<]+)</span>', rows)
        figures = {float(full): as_number(short) for full, short in cells}
        scores = [measured["scores"].get(figure.name) for figure in TASKS[measured["task"]].figures]
        assert set(figures) == {score for score in scores if score is not None}
        for full, short in figures.items():
            assert short == pytest.approx(full, abs=0.5 if full > 1 and full == int(full) else 0.005)


def test_the_paper_stands_beside_only_where_it_is_asked_for(
    page: Path, runs: list[Path], tmp_path: Path
) -> None:
    assert "Table 1a" not in text(page)
    beside = text(
        write_report(runs, tmp_path / "paper.html", ReportOptions(documents=1), published=published_figures())
    )
    rows = beside.split("<caption>Perplexity on valid</caption>")[1].split("</table>")[0]
    assert "paper: Table 1a" in rows
    assert "22.52 ± 0.62" in rows  # ε = 0.9, validation
    assert "19.84 ± 0.52" in beside.split("<caption>Perplexity on test</caption>")[1].split("</table>")[0]


def test_a_tile_says_which_figure_it_has_and_what_the_best_would_be(runs: list[Path], tmp_path: Path) -> None:
    """The numbers at the top are those of the table below, under the same names."""
    best = {"cloze_pmi": 0.987, "ppl_bound": 1.5}
    page = text(write_report(runs[:1], tmp_path / "best.html", ReportOptions(documents=1), best=best))
    tiles = dict(re.findall(r"<dt>([^<]+)</dt><dd><strong>([^<]+)</strong></dd>", page))
    table = page.split("<caption>Inverse narrative cloze on valid</caption>")[1].split("</table>")[0]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', table)[1:]
    shown = re.findall(r'<span title="[^"]+">([^<]+)</span>', table)
    assert dict(zip(heads, shown, strict=True)) == {
        "by likelihood": tiles["cloze, by likelihood"],
        "by PMI": tiles["cloze, by PMI"],
    }
    assert "best possible: 98.7\N{NO-BREAK SPACE}%" in page
    assert "best possible: 1.50" in page
    assert table.count("98.7\N{NO-BREAK SPACE}%") == 1  # in the line of the best possible


def test_what_was_found_comes_first(page: Path, runs: list[Path], tmp_path: Path) -> None:
    alone = text(write_report(runs[:1], tmp_path / "alone.html", ReportOptions(documents=1)))
    ids = re.findall(r'<section id="([^"]+)"', alone)
    assert ids == ["run-0-follows", "run-0-read", "run-0-frames", "run-0-scripts", "scores", "setup"]
    assert re.findall(r'<section id="([^"]+)"', text(page)) == ["found", "scores", "setup"]


def test_every_event_of_a_long_document_is_there() -> None:
    frames = (Candidate("Frame", 0.5), Candidate("Other", 0.4))
    events = tuple(InferredEvent(Event(f"verb{n}"), None, frames) for n in range(100))
    shown = render_block(document_block(InferredDocument("long", events, {})))
    assert [f"verb{n}" for n in range(100)] == re.findall(r"verb\d+", shown)
    assert f"and {100 - DocumentBlock.open} more events" in shown
    assert f'start="{DocumentBlock.open + 1}"' in shown


def test_the_splits_of_two_corpora_are_kept_apart(runs: list[Path], tmp_path: Path) -> None:
    """The same run on the same documents with fewer words known is not the same measurement."""
    folder = runs[0].parent
    options = PrepareOptions.sized("tiny", vocabulary=5)
    corpus, run = prepare(folder / "events.jsonl", tmp_path / "smaller", options), tmp_path / "other"
    train_small(corpus, run, epochs=1)
    evaluate_small(run, corpus, tasks="perplexity")
    shown = text(write_report([runs[0], run], tmp_path / "both.html", ReportOptions(documents=1)))
    for name in ("corpus", "smaller"):
        rows = shown.split(f"<caption>Perplexity on valid of {name}</caption>")[1].split("</tbody>")[0]
        assert rows.count('<th scope="row">') == 1
    assert "different corpora" in shown


def test_hostile_words_are_text(page: Path) -> None:
    shown = text(page)
    assert WORD not in shown
    assert FRAME not in shown
    assert WORD in unescape(shown)
    assert FRAME.lower() in unescape(shown).replace("<wbr>", "").lower()
    assert shown.count("<script") == 1
    assert "<img" not in shown


def test_the_page_asks_for_nothing(page: Path) -> None:
    shown = text(page)
    assert "default-src 'none'" in unescape(shown)
    assert not re.search(r"<(link|iframe|object|embed|base)\b|@import|url\(", shown)


def test_the_page_does_not_tell_where_the_files_are(page: Path, runs: list[Path]) -> None:
    assert str(runs[0].parent) not in text(page)
    assert str(page.parent) not in text(page)


def test_what_is_not_there_is_left_out_with_a_sentence(page: Path, runs: list[Path], tmp_path: Path) -> None:
    shown = text(page)
    assert "Not measured yet: rnnlm." in shown
    assert "rnnlm has no frames: there are no frames to look at" in shown
    # A run alone that was never measured, and whose corpus is gone.
    lonely = tmp_path / "lonely"
    shutil.copytree(runs[1], lonely)
    config = lonely / "config.yaml"
    config.write_text(re.sub(r"(?m)^corpus: .*$", "corpus: /nowhere/corpus", config.read_text()))
    (lonely / "metrics.jsonl").write_text("")
    shown = text(write_report([lonely], tmp_path / "lonely.html", ReportOptions()))
    assert "<svg" not in shown
    # What it found, scores, calibration, latent variables, curves, data.
    assert shown.count('class="absent"') == 6
    assert "/nowhere" not in shown


def test_the_same_runs_give_the_same_page(page: Path, runs: list[Path], tmp_path: Path) -> None:
    again = write_report([*runs, runs[0]], tmp_path / "again.html", ReportOptions(documents=3))
    assert text(again) == text(page)


def test_the_command(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["report", str(runs[1]), "--out", str(out), "--documents", "1", "--sample", "20"]) == 0
    assert str(out) in capsys.readouterr().err.replace("\n", "")
    assert text(out).startswith("<!doctype html>")
    assert main(["report", str(tmp_path / "nothing"), "--out", str(out)]) == 2


def test_runs_are_told_apart_by_no_more_than_needed() -> None:
    assert short_names([Path("/a/x/run"), Path("/a/y/run")]) == ["x/run", "y/run"]
    assert short_names([Path("/a/x"), Path("/b/y")]) == ["x", "y"]
