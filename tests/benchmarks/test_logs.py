"""The laws of the comparison on logs: baselines, measures, and cells that are computed once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import log_networks, logs
from benchmarks.log_baselines import MedianTimes, NGram
from benchmarks.log_cells import Cells, Key
from benchmarks.log_data import Case, Classes, Log, Prefixes, file_of
from benchmarks.log_measures import (
    Predictions,
    calibration_error,
    calibration_range,
    figures_of,
    losses_of,
    macro_f1,
    paired_bootstrap,
)
from benchmarks.log_networks import SEARCH, Encoder, Fit, Network, NetworkOptions, fit, tune
from ssdvae.storyworld.tickets import generate_tickets, write_log

END, UNKNOWN = 2, 3


def case(activities: str, *days: float) -> Case:
    return Case(activities, tuple(activities), ("r",) * len(days), days)


CASES = [case("ab", 0, 1), case("ab", 0, 3), case("a", 5)]
CLASSES = Classes.of(CASES)


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp("logs")
    for seed, split in enumerate(("train", "valid", "test")):
        write_log(file_of(folder, "tickets", split), generate_tickets(30, seed))
    return Log("tickets", folder)


def test_prefixes_have_the_end_as_a_class_and_times_to_what_follows() -> None:
    found = Prefixes.of([case("axb", 0, 1, 4)], CLASSES)
    assert found.next.tolist() == [UNKNOWN, 1, END]
    np.testing.assert_equal(found.next_days, [1, 3, np.nan])
    assert found.remaining_days.tolist() == [4, 3, 0]


def test_an_n_gram_is_the_counts_of_witten_and_bell() -> None:
    """After a: b twice, the end once; after b: the end twice. Nothing else was seen."""
    empty = np.array([0, 2, 3, 2]) / 7  # five prefixes, two types, whose mass is that of the unknown
    assert NGram(CASES, CLASSES, 1).probabilities(()) == pytest.approx(empty)
    after_a = (np.array([0, 2, 1, 0]) + 2 * empty) / 5
    bigram = NGram(CASES, CLASSES, 2)
    assert bigram.probabilities((0,)) == pytest.approx(after_a)
    assert bigram.probabilities((7,)) == pytest.approx(empty)
    trigram = NGram(CASES, CLASSES, 3)
    assert trigram.probabilities((1, 0)) == pytest.approx(after_a)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_the_probabilities_of_an_n_gram_sum_to_one(tickets: Log, order: int) -> None:
    log_p = NGram(tickets.train, tickets.classes, order).log_p(tickets.valid)
    assert log_p.shape == (len(tickets.prefixes(tickets.valid)), len(tickets.classes))
    assert np.exp(log_p).sum(1) == pytest.approx(1)


def test_medians_back_off_to_shorter_contexts() -> None:
    many = [case("ab", 0, day) for day in range(1, 6)] + [case("cb", 0, 100)]
    classes = Classes.of(many)
    medians = MedianTimes(many, classes, 1, Prefixes.of(many, classes).next_days)
    assert medians.forecast([case("a", 0), case("c", 0)]).tolist() == [3, 3.5]


def test_figures_of_certain_and_right_answers() -> None:
    true = Prefixes.of(CASES, CLASSES)
    certain = Predictions(np.log(np.eye(4)[true.next] + 1e-300), np.nan_to_num(true.next_days))
    figures = figures_of(losses_of(certain, true), true)
    assert figures["accuracy"] == figures["macro_f1"] == 1
    assert figures["log_loss"] == figures["next_mae"] == figures["calibration"] == 0
    assert "remaining_mae" not in figures


def test_macro_f1_is_over_the_classes_that_occur() -> None:
    assert macro_f1(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1])) == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_calibration_error_by_hand_and_its_range() -> None:
    """Two bins would be 0 each; with one prefix in a bin, the error is the mean gap."""
    assert calibration_error(np.array([0.5, 0.8]), np.array([True, False])) == pytest.approx(0.65)
    draws = np.random.default_rng(1)
    sure = draws.uniform(0.2, 1, 3000)
    low, high = calibration_range(sure, draws)
    inside = [low <= calibration_error(sure, draws.random(3000) < sure) <= high for _ in range(100)]
    assert np.mean(inside) > 0.85
    assert calibration_error(sure, draws.random(3000) < sure**2) > high


def test_a_system_is_not_behind_itself_but_behind_a_better_one() -> None:
    draws = np.random.default_rng(1)
    losses, cases = draws.random(500), np.repeat(np.arange(100), 5)
    same = paired_bootstrap(losses, losses, cases)
    assert same == (0, 0, 0, 0)
    assert not same.behind
    noise = draws.normal(0, 0.1, 500)
    assert paired_bootstrap(losses + 0.05 + noise, losses, cases).behind
    assert not paired_bootstrap(losses - 0.05 + noise, losses, cases).behind


def test_cases_and_not_prefixes_are_drawn() -> None:
    """If all prefixes of a case have the same loss, more of them tell nothing."""
    draws = np.random.default_rng(1).normal(0, 1, 50)
    few = paired_bootstrap(draws, np.zeros(50), np.arange(50))
    many = paired_bootstrap(np.repeat(draws, 9), np.zeros(450), np.repeat(np.arange(50), 9))
    assert many == pytest.approx(few)


@pytest.mark.parametrize("body", ["gru", "transformer"])
def test_a_network_reads_no_event_of_the_future(tickets: Log, body: str) -> None:
    encoder = Encoder(tickets.train, tickets.classes)
    options = NetworkOptions(body, width=8, resource=True)
    network = Fit(Network(options, len(tickets.classes), len(encoder.resources) + 1), encoder, 0, 0)
    whole = tickets.valid[0]
    cut = Case(whole.id, whole.activities[:2], whole.resources[:2], whole.days[:2])
    (log_p, days), (log_p_cut, days_cut) = network.predict([whole, tickets.valid[1]]), network.predict([cut])
    np.testing.assert_allclose(log_p[:2], log_p_cut, atol=1e-5)
    np.testing.assert_allclose(days[:2], days_cut, atol=1e-5)
    assert np.exp(log_p).sum(1) == pytest.approx(1)


def test_training_beats_a_uniform_guess_and_the_global_median(
    tickets: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_networks, "EPOCHS", 3)
    made = fit(tickets, NetworkOptions("gru", width=8, learning_rate=0.03), 1)
    assert made.loss < np.log(len(tickets.classes)) + 2  # the median has an error of one spread


def test_the_search_keeps_what_helps() -> None:
    tried: list[NetworkOptions] = []

    def loss(options: NetworkOptions) -> float:
        tried.append(options)
        return abs(options.width - 128) + options.dropout

    found = tune(NetworkOptions("gru"), loss)
    assert (found.width, found.dropout) == (128, NetworkOptions("gru").dropout)
    assert len(tried) == 1 + len(SEARCH)


def test_cells_are_computed_once(tmp_path: Path, tickets: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, computed = Cells(tmp_path), []
    build = logs.MODELS["ngram"]

    def counted(log: Log, seed: int, folder: Path) -> logs.System:
        computed.append(seed)
        return build(log, seed, folder)

    monkeypatch.setitem(logs.MODELS, "ngram", counted)
    names = ["ngram", "median-context"]

    def measure() -> str:
        for split in ("valid", "test"):
            logs.measure(tickets.folder, cells, [tickets.name], names, [1, 2], split)
        return (tmp_path / "cells.csv").read_text()

    first = measure()
    assert measure() == first
    assert len(computed) == 2
    assert Key(tickets.name, "ngram", 1, "test") in cells
    lines = first.splitlines(keepends=True)
    (tmp_path / "cells.csv").write_text("".join(lines[:-1]))  # stopped before the last cell was complete
    assert measure().splitlines()[:-1] == first.splitlines()[:-1]
    assert len(cells.read()) == 4
    assert len(computed) == 2
    monkeypatch.setattr(logs, "LOGS", (tickets.name,))
    monkeypatch.setattr(logs, "OURS", "ngram")
    shown = logs.table(cells, "valid")
    assert "| ngram | 1 |" in shown
    assert "| tickets | best | best |  |  |" in shown
