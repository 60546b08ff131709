"""The table of figures: read strictly, written as it was read, and only of the trials that are asked for."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data.events import Document, Event
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.io.errors import DataError, UserError
from ssdvae.models.registry import MODELS
from ssdvae.reproduction import results
from ssdvae.reproduction.job import Job, TaskRequest
from ssdvae.reproduction.paper import HAQAE, RNNLM, Trial, ssdvae_row
from ssdvae.reproduction.results import (
    CORPUS,
    HEAD,
    VALIDATION,
    FigureRecord,
    ResultsCache,
    ResultTable,
    collect_figures,
    figure_frame,
    fingerprint,
    write_cells,
)
from ssdvae.training.options import TrainOptions

NAMES = {Path("val.txt"): "nyt"}
TRIAL = Trial(RNNLM, 1, frozenset({"cloze"}))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    documents = [Document(f"d{i}", (Event("ate", "dog", "bone", frame="Eating"),) * 2) for i in range(9)]
    write_jsonl(tmp_path / "events.jsonl", documents)
    corpus = prepare(tmp_path / "events.jsonl", tmp_path / "corpus", PrepareOptions(vocabulary=20))
    requests = (TaskRequest("cloze", "corpus's"), TaskRequest("cloze", "first", Path("val.txt")))
    return Job(tmp_path / "run", corpus.folder, TrainOptions(model="rnnlm"), EvaluateOptions(), requests)


def record(job: Job, figure: str, value: float, data: str = CORPUS, mark: str = "") -> FigureRecord:
    return FigureRecord(TRIAL.name, fingerprint(job, NAMES, data), data, figure, value, mark)


def validation(job: Job, step: int, value: float) -> FigureRecord:
    return record(job, VALIDATION, value)._replace(step=step, epoch=step / 10)


def cache(*records: FigureRecord) -> ResultsCache:
    return ResultsCache(Path("cells.csv"), figure_frame(records))


def test_options_at_their_defaults_leave_no_trace_but_the_model_does(job: Job) -> None:
    """A fingerprint stays the same when a later version adds an option."""
    every = [TrainOptions(model=model) for model in MODELS]
    for training in every:
        own = training.model_options
        assert results._departures(training, training.training_fields(), ()) == {}
        assert results._departures(own, own.fields(), ()) == {}
    assert len({fingerprint(replace(job, training=training), NAMES) for training in every}) == len(MODELS)


def test_a_cloze_file_is_known_by_what_is_in_it(job: Job) -> None:
    file, own = record(job, "cloze_nll", 0.2, "nyt"), record(job, "cloze_nll", 0.3)
    assert cache(file, own).mismatch(TRIAL, job, NAMES) is None
    assert cache(file, own).covers(TRIAL, job, NAMES)
    assert not cache(own).covers(TRIAL, job, NAMES)
    assert not cache().covers(TRIAL, job, NAMES)
    other = replace(job, requests=(job.requests[0], job.requests[1]._replace(sha256="second")))
    assert "another file nyt" in (cache(file, own).mismatch(TRIAL, other, NAMES) or "")
    # Of a file that is not asked for nothing is said.
    assert cache(file, own).mismatch(TRIAL, replace(job, requests=job.requests[:1]), NAMES) is None
    wide = replace(job, training=TrainOptions(model="rnnlm", hidden=9))
    assert "other options or another corpus" in (cache(own).mismatch(TRIAL, wide, NAMES) or "")


def test_a_learning_curve_is_that_of_one_run(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    there = cache(validation(job, 10, 40.0), validation(job, 20, 40.0), record(job, "cloze_nll", 0.2))
    assert list(collect_figures({TRIAL: job}, NAMES, there)["value"]) == [40.0, 40.0, 0.2]
    own = [validation(job, 10, 50.0), record(job, "ppl", 50.0)]
    monkeypatch.setattr(results, "run_figures", lambda *_: own)
    assert list(collect_figures({TRIAL: job}, NAMES, there)["value"]) == [50.0, 50.0, 0.2]
    assert list(collect_figures({TRIAL: job}, NAMES, None)["value"]) == [50.0, 50.0]


def test_the_step_to_haqaes_best_is_the_first_that_reaches_it(job: Job) -> None:
    haqae, ssdvae = Trial(HAQAE, 1), Trial(ssdvae_row(0.5), 1)
    curve = [validation(job, step, value) for step, value in ((10, 9.0), (20, 5.0), (30, 4.0))]
    best = record(job, "ppl_best", 5.0)
    figures = figure_frame([*(r._replace(trial=ssdvae.name) for r in curve), best._replace(trial=haqae.name)])
    found = ResultTable(figures, [haqae, ssdvae]).spread(ssdvae.row, "step_haqae")
    assert found is not None
    assert found.values == (20,)
    assert ResultTable(figures, [ssdvae]).spread(ssdvae.row, "step_haqae") is None
    never = ResultTable(figures.assign(value=figures["value"] + (figures["figure"] == VALIDATION)), [haqae])
    assert never.spread(ssdvae.row, "step_haqae") is None


def test_trials_that_are_not_asked_for_do_not_count(job: Job) -> None:
    records = [record(job, "ppl", float(seed))._replace(trial=f"rnnlm-seed{seed}") for seed in (3, 1, 2)]
    table = ResultTable(figure_frame(records), [Trial(RNNLM, 1), Trial(RNNLM, 2)])
    found = table.spread(RNNLM, "ppl")
    assert found is not None
    assert found.values == (1.0, 2.0)
    assert table.spread(HAQAE, "ppl") is None
    columns = ["model", "observe", "attention", "single", "variant", "seed", "data", "figure", "value"]
    assert set(columns) <= set(table.frame.columns)
    assert ResultTable(figure_frame([]), []).spread(RNNLM, "ppl") is None


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=10)
numbers = st.floats(1e-300, 1e300)
records = st.tuples(texts, texts, texts, st.sampled_from(["ppl", "attention"]), numbers, texts).map(
    lambda values: FigureRecord(*values)
)
validations = st.tuples(texts, st.integers(1, 1000), numbers).map(
    lambda values: FigureRecord(values[0], "", CORPUS, VALIDATION, values[2], "", values[1], values[1] / 4)
)


@given(st.lists(records | validations, unique_by=lambda r: (r.trial, r.data, r.figure, r.step)))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, written: list[FigureRecord]
) -> None:
    path = tmp_path_factory.mktemp("cells") / "cells.csv"
    write_cells(path, figure_frame(written))
    read = ResultsCache.read(path).figures
    expected = figure_frame(sorted(written, key=lambda r: r.trial))
    assert read.equals(expected)
    before = path.read_bytes()
    write_cells(path, read)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        *((f"a,b,corpus,ppl,{value},", "a finite decimal number") for value in ("nan", "inf", "-inf")),
        *((f"a,b,corpus,ppl,{value},", "a finite decimal number") for value in ("1e400", "1_0", "0x10")),
        *((f"a,b,corpus,ppl,{value},", "a finite decimal number") for value in ("much", "", " 5", "５")),
        *((f"a,b,corpus,ppl,{value},", "above 0") for value in ("0", "0.0", "-0.0", "-3.5", "1e-400")),
        *((f"a,b,5:1,validation_ppl,{value},", "above 0") for value in ("0", "-1")),
        *((f"a,b,corpus,{figure},-2,", "above 0") for figure in ("ppl_best", "ppl_bound", "ppl_of_later")),
        *((f"a,b,corpus,cloze_nll,{value},", "from 0 to 1") for value in ("1.5", "-0.1")),
        ("a,b,corpus,attention_entropy,nan,", "a finite decimal number"),
        *((f"a,b,{data},validation_ppl,9,", "step:epoch") for data in ("later", "5", "5:", "1_0:1", "5:nan")),
        *(
            (f"a,b,{data},validation_ppl,9,", "step:epoch")
            for data in ("-5:1", "5:1e400", "1.5:1", "9" * 400)
        ),
        ("a,b,corpus,ppl,9", "6 columns"),
        ("a,b,corpus,ppl,9,,", "6 columns"),
        ("", "6 columns"),
        ("x,b,corpus,ppl,8,", "one line for each figure"),
        ("x,b,5:1.0,validation_ppl,8,", "one line for each figure"),
        ('a,b,corpus,ppl,"9,', "a line of CSV"),
        (f"{'a' * 200_000},b,corpus,ppl,9,", "a line of CSV"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(line: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text(
        f"{','.join(HEAD)}\nx,b,corpus,ppl,9.5, †\nx,b,5:1,validation_ppl,9,\n{line}\n", encoding="utf-8"
    )
    with pytest.raises(DataError) as raised:
        ResultsCache.read(path)
    error = raised.value
    assert (error.path, error.line) == (path, 4)
    assert "cells.csv, line 4: found " in str(error)
    assert expected in error.expected
    assert len(str(error)) < 500


def test_bytes_and_lengths_are_checked_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, head = tmp_path / "cells.csv", ",".join(HEAD).encode()
    path.write_bytes(head + b"\na,b,corpus,ppl,9,\na,b,\xff,ppl,9,\n")
    with pytest.raises(DataError, match=r"cells\.csv, line 3: found the byte 0xff .* expected text in UTF-8"):
        ResultsCache.read(path)
    monkeypatch.setenv("SSDVAE_MAX_LINE", "1000")
    path.write_bytes(head + b"\n" + b"a" * 2000 + b",b,corpus,ppl,9,\n")
    with pytest.raises(DataError, match=r"cells\.csv, line 2: found a line"):
        ResultsCache.read(path)
    for wrong in (b"", b"cell,made_with,data,figure,value,mark\n", b"\n"):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match=r"cells\.csv, line 1: .* expected trial,fingerprint,data"):
            ResultsCache.read(path)
    with pytest.raises(UserError, match=r"nowhere\.csv"):
        ResultsCache.read(tmp_path / "nowhere.csv")


def test_without_pandas_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.delitem(sys.modules, "ssdvae.reproduction.results")
    with pytest.raises(UserError, match=r"ssdvae\[pandas\]"):
        import ssdvae.reproduction.results  # noqa: F401
