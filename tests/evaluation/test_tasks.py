"""The table of tasks: a task that stands in it is found everywhere, and needs no other place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ssdvae
from ssdvae.cli import main
from ssdvae.data.corpus import Corpus
from ssdvae.evaluation import measure as measuring
from ssdvae.evaluation.attention import AttentionSummary
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.evaluation.summary import summarize
from ssdvae.evaluation.task import ATTENTION, FRAMES, TASKS, WORDS, Data, Figure, Result, Task, find_tasks
from ssdvae.inference.posterior import infer_latents
from ssdvae.io.errors import UserError
from ssdvae.io.scores import Measurement, read_scores, write_scores
from ssdvae.models.base import Decoder
from ssdvae.models.latents import FramePosterior
from ssdvae.models.registry import MODELS
from ssdvae.reproduction.job import Job, run_job
from tests.toys import accumulate, toy_batch, toy_model

TINY: dict[str, Any] = {"preset": "tiny", "hidden": 8, "embedding": 8, "epochs": 1}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("tasks")
    assert main(["world", str(folder / "events.jsonl"), "--documents=120"]) == 0
    shares: dict[str, Any] = {"valid_share": 0.25, "test_share": 0.05, "cloze_items": 6}
    return ssdvae.prepare(folder / "events.jsonl", folder / "corpus", preset="tiny", vocabulary=120, **shares)


@pytest.fixture(scope="module")
def run(corpus: Corpus) -> Path:
    return ssdvae.train(corpus, corpus.folder.parent / "run", model="ssdvae", events=100, **TINY).folder


def whole_documents(evaluation: measuring.Evaluation, data: Data) -> Result:
    """The share of the documents that are whole: something that no other task says."""
    lengths = evaluation.documents.lengths
    return Result(len(lengths), {"toy_whole": float((lengths == lengths.max()).mean())})


TOY = Task(
    "toy",
    "A toy task",
    "How many documents have as many events as the longest.",
    (Figure("toy_whole", "whole documents", "higher", share=True, headline="share of whole documents"),),
    whole_documents,
    default=True,
    reproduced=True,
)


@pytest.fixture
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, TOY.name, TOY)


@pytest.mark.usefixtures("_toy")
def test_a_task_in_the_table_is_found_everywhere(
    run: Path,
    corpus: Corpus,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = corpus.split("valid").lengths
    share = float((lengths == lengths.max()).mean())

    # evaluate: by its name and, being a default one, without any name.
    assert ssdvae.evaluate(run, tasks="toy") == {"toy_whole": share}
    assert ssdvae.evaluate(run, bound_samples=1, cloze_seeds=2)["toy_whole"] == share

    # scores
    capsys.readouterr()
    assert main(["scores", str(run), "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "**toy, valid**" in shown
    assert f"| toy_whole |\n| --- | --- | --- |\n| ssdvae | 1 | {share:.3f} |" in shown

    # The page: its table with its explanation, and its headline.
    page = ssdvae.write_report([run], tmp_path / "page.html", documents=1).read_text(encoding="utf-8")
    assert "<caption>A toy task on valid</caption>" in page
    assert TOY.explanation in page
    assert "<dt>share of whole documents</dt>" in page
    assert f"<strong>{TOY.figures[0].headline_text(share)}</strong>" in page

    # reproduce: a table, with a column for its figure, by itself and among all.
    def here(jobs: dict[object, Job], *_: object) -> dict[object, str]:
        for job in jobs.values():
            run_job(job)
        return {}

    monkeypatch.setattr("ssdvae.reproduction.reproduce.sweep", here)
    small: dict[str, Any] = {"scale": "tiny", "models": "rnnlm", "seeds": 1, "hidden": 8, "epochs": 1}
    # As many events as there are, like the run above: by itself it reads the first five, as the paper does.
    done = ssdvae.reproduce("toy", corpus, tmp_path / "sweep", events=100, **small)
    (table,) = [table for table in done.tables if table.name == "toy-valid"]
    assert table.head == ("model", "ε", "seeds", "whole documents")
    assert table.lines() == [["RNNLM", "–", "1", f"{share:.3f}"]]
    assert TOY.explanation in table.note


def test_help_names_every_task_and_which_are_measured_by_default() -> None:
    text = EvaluateOptions.model_fields["tasks"].description
    assert text is not None
    by_default, others = text.split(" (these by default)")
    assert all(task.name in (by_default if task.default else others) for task in TASKS.values())


def test_without_the_line_in_the_table_it_is_nowhere(run: Path) -> None:
    with pytest.raises(UserError, match=r"no task 'toy'; there are: perplexity, frames, cloze, next"):
        ssdvae.evaluate(run, tasks="toy")


@pytest.mark.parametrize("name", MODELS)
def test_what_a_model_says_that_it_has_it_has(name: str) -> None:
    model = toy_model(name)
    posterior = infer_latents(model, toy_batch([3, 2]))
    assert WORDS.met_by(model) == isinstance(getattr(model, "decoder", None), Decoder)
    assert FRAMES.met_by(model) == isinstance(posterior, FramePosterior)
    attention = posterior.attention if isinstance(posterior, FramePosterior) else None
    assert ATTENTION.met_by(model) == (attention is not None)


def test_an_exact_model_without_frames_has_none_to_measure() -> None:
    model = toy_model("ssdvae-exact", frames=0)
    assert WORDS.met_by(model)
    assert not FRAMES.met_by(model)


def test_tasks_that_are_measured_together_share_one_pass(
    run: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the split, for all of them; and none has other figures than by itself."""
    passes: list[bool] = []

    def counted(*args: Any, words: bool, **options: Any) -> dict[str, Any]:
        passes.append(words)
        return evaluate(*args, words=words, **options)

    monkeypatch.setattr(measuring, "evaluate", counted)
    model = ssdvae.load(run)

    def measured(tasks: str) -> dict[str, dict[str, Any]]:
        settings = EvaluateOptions(tasks=tasks, bound_samples=2)
        return {m.task: m.scores for m in measuring.measure(model, "", corpus, settings)}

    together = measured("attention,frames,perplexity")
    assert passes == [True]
    assert list(together) == ["perplexity", "frames", "attention"]
    for name, scores in together.items():
        assert measured(name) == {name: scores}
    # Words, which take most of the time, are scored for perplexity alone.
    assert passes == [True, True, False, False]


def test_attention_is_a_task_that_is_asked_for_by_name(run: Path, corpus: Corpus) -> None:
    assert "attention" not in [task.name for task in find_tasks(None)]
    scores = ssdvae.evaluate(run, tasks="attention")
    model = ssdvae.load(run)
    means = accumulate(AttentionSummary(model), model, corpus.split("valid")).overall()
    assert scores["attention_entropy"] == pytest.approx(means.entropy)
    assert scores["attention_verbs"] == pytest.approx(means.heads)


def test_a_task_that_the_model_cannot_do_is_left_out_with_a_warning(
    corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rnnlm = ssdvae.train(corpus, tmp_path / "rnnlm", model="rnnlm", **TINY).folder
    assert ssdvae.evaluate(rnnlm, tasks="attention") == {}
    assert "rnnlm has no inferred frames and no attention over words: no attention" in caplog.text
    caplog.clear()
    # Nobody asked for frames here.
    assert ssdvae.evaluate(rnnlm, bound_samples=1, cloze_seeds=2)["ppl"] > 1
    assert not caplog.text


def test_scores_of_a_task_that_is_not_in_the_table_do_no_harm(run: Path, tmp_path: Path) -> None:
    """A file from another version: what is known of it is shown."""
    old = {"sha256": "0", "items": 3, "settings": {}, "version": "0.0.1", "model_sha256": "0"}
    records = [
        {"task": "poetry", "data": "valid", **old, "scores": {"rhymes": 1.0}},
        {"task": "attention", "data": "valid", **old, "scores": {"attention_entropy": 2.5}},
    ]
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_bytes((run / "config.yaml").read_bytes())
    (folder / "scores.json").write_text(json.dumps(records))
    assert [(row.task, row.values) for row in summarize([folder])] == [
        ("attention", {"attention_entropy": [2.5]})
    ]
    write_scores(folder, [])
    assert read_scores(folder) == [Measurement(**record) for record in records]
    ssdvae.write_report([folder], tmp_path / "page.html")
