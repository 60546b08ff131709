"""Next activity and times on public event logs: our models, plain networks, n-grams and medians.

    python -m benchmarks.logs measure DATA --out CELLS [--logs … --models … --seeds 1,2,3 --split test]
    python -m benchmarks.logs table --out CELLS [--split test]

DATA has ``train_``, ``val_`` and ``test_`` files in XES of each log. Every model is trained on the training
split; every choice (order of n-grams, options of networks, early stopping) is made on the validation split.
The end of a case counts as a class. A stopped run resumes: a cell that is in CELLS is not computed again.
``measure`` ends with the table that ``table`` prints.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.log_baselines import MedianTimes, NGram
from benchmarks.log_cells import Cells, Key
from benchmarks.log_data import LOGS, Case, Log
from benchmarks.log_measures import (
    MEASURES,
    Difference,
    Floats,
    Predictions,
    figures_of,
    losses_of,
    paired_bootstrap,
)
from benchmarks.log_networks import READ, TRIAL, Encoder, Fit, Network, NetworkOptions, fit, tune

ORDERS = range(1, 6)
TUNED_WITH = 1
"""The seed of the trials."""


class System(NamedTuple):
    """A trained system."""

    predict: Callable[[Sequence[Case], str], Predictions]  # of the cases of a split
    options: Mapping[str, Any]
    seconds: float  # of its training


Build = Callable[[Log, int, Path], System]


def build_ngram(log: Log, seed: int, folder: Path) -> System:
    """Return the n-gram whose order has the lowest log loss on the validation split."""
    start, true = time.process_time(), log.prefixes(log.valid).next

    def log_loss(order: int) -> float:
        log_p = NGram(log.train, log.classes, order).log_p(log.valid)
        return float(-log_p[np.arange(len(true)), true].mean())

    order = min(ORDERS, key=log_loss)
    model = NGram(log.train, log.classes, order)
    seconds = time.process_time() - start
    return System(lambda cases, split: Predictions(model.log_p(cases)), {"order": order}, seconds)


def build_medians(sizes: Iterable[int]) -> Build:
    """Return a builder of median times after the last activities, as many as are best on validation."""

    def build(log: Log, seed: int, folder: Path) -> System:
        start, train, valid = time.process_time(), log.prefixes(log.train), log.prefixes(log.valid)
        models = {}
        for name in ("next_days", "remaining_days"):
            fitted = [MedianTimes(log.train, log.classes, k, getattr(train, name)) for k in sizes]
            errors = [np.abs(model.forecast(log.valid) - getattr(valid, name)) for model in fitted]
            models[name] = fitted[int(np.argmin([np.nanmean(error) for error in errors]))]
        seconds = time.process_time() - start
        return System(
            lambda cases, split: Predictions(None, *(model.forecast(cases) for model in models.values())),
            {name: model.size for name, model in models.items()},
            seconds,
        )

    return build


def build_network(body: str) -> Build:
    """Return a builder of a plain network, tuned once and trained with each seed."""

    def build(log: Log, seed: int, folder: Path) -> System:
        start = NetworkOptions(body)
        options = tune(start, lambda tried: trained(log, tried, TUNED_WITH, folder, TRIAL).loss)
        model = trained(log, options, seed, folder)

        def predict(cases: Sequence[Case], split: str) -> Predictions:
            log_p, days = model.predict(cases)
            return Predictions(log_p, *days.T)

        return System(predict, asdict(options), model.seconds)

    return build


def trained(log: Log, options: NetworkOptions, seed: int, folder: Path, read: int = READ) -> Fit:
    """Return a trained network: that of the folder, or a new one."""
    name = "-".join(map(str, (log.name, *asdict(options).values(), seed, read)))
    path = folder / "networks" / f"{name}.pt"
    if not path.is_file():
        made = fit(log, options, seed, read)
        path.parent.mkdir(parents=True, exist_ok=True)
        saved = {"loss": made.loss, "seconds": made.seconds, "weights": made.network.state_dict()}
        torch.save(saved, path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    saved = torch.load(path, weights_only=True)
    encoder = Encoder(log.train, log.classes)
    network = Network(options, len(log.classes), len(encoder.resources) + 1)
    network.load_state_dict(saved["weights"])
    return Fit(network, encoder, saved["loss"], saved["seconds"])


def build_ours(name: str) -> Build:
    """Return a builder of one of our models, with its defaults."""

    def build(log: Log, seed: int, folder: Path) -> System:
        from benchmarks.log_ours import OurModel

        model = OurModel(log, name, seed, folder)
        return System(model.predict, {}, model.seconds)

    return build


OURS = "ssdvae-exact"

MODELS: dict[str, Build] = {
    "median-global": build_medians([0]),
    "median-activity": build_medians([1]),
    "median-context": build_medians(ORDERS),
    "ngram": build_ngram,
    "gru": build_network("gru"),
    "transformer": build_network("transformer"),
    "rnnlm": build_ours("rnnlm"),
    OURS: build_ours(OURS),
}
SEEDLESS = frozenset({"median-global", "median-activity", "median-context", "ngram"})
"""Systems that count: one seed is enough."""


def measure(
    data: Path, cells: Cells, logs: Sequence[str], models: Sequence[str], seeds: Sequence[int], split: str
) -> None:
    """Compute the cells that are not there."""
    torch.set_num_threads(1)
    for name in logs:
        log = Log(name, data)
        for model in models:
            for seed in seeds[:1] if model in SEEDLESS else seeds:
                key = Key(name, model, seed, split)
                if key not in cells:
                    figures = measure_cell(log, key, cells)
                    print(key.name, json.dumps({k: round(v, 4) for k, v in figures.items()}), flush=True)


def measure_cell(log: Log, key: Key, cells: Cells) -> dict[str, float]:
    """Train, or load, a system, predict all prefixes of a split, and write the cell."""
    log.train, log.valid  # noqa: B018  # read before the clock runs
    system = MODELS[key.model](log, key.seed, cells.folder)
    cases = log.valid if key.split == "valid" else log.split(key.split)
    true, start = log.prefixes(cases), time.process_time()
    found = system.predict(cases, key.split)
    seconds = time.process_time() - start
    losses = losses_of(found, true)
    figures = figures_of(losses, true)
    figures |= {"train_seconds": system.seconds, "prefixes_per_second": len(true) / seconds}
    cells.add(key, figures, system.options, losses)
    return figures


def mean_losses(cells: Cells, split: str) -> dict[str, dict[str, dict[str, Floats]]]:
    """Return the losses of each prefix by log and model, averaged over the seeds."""
    runs: defaultdict[tuple[str, str], list[dict[str, Floats]]] = defaultdict(list)
    for key in cells.read():
        if key.split == split:
            runs[key.log, key.model].append(cells.losses(key))
    found: defaultdict[str, dict[str, dict[str, Floats]]] = defaultdict(dict)
    for (log, model), losses in runs.items():
        found[log][model] = {name: np.mean([one[name] for one in losses], axis=0) for name in losses[0]}
    return found


def compare(
    models: Mapping[str, Mapping[str, Floats]], measure: str, mine: str
) -> tuple[str, Difference | None]:
    """Return the best system by a measure, and how much another one is behind it; None if it is the best."""
    there = {name: losses for name, losses in models.items() if measure in losses}
    best = min(there, key=lambda name: float(np.nanmean(there[name][measure])))
    if best == mine or mine not in there:
        return best, None
    case = there[best]["case"].astype(int)
    return best, paired_bootstrap(there[mine][measure], there[best][measure], case)


COLUMNS: dict[str, tuple[str, float, int]] = {
    # heading: figure, factor, decimals
    "accuracy %": ("accuracy", 100, 1),
    "macro F1": ("macro_f1", 1, 3),
    "log loss": ("log_loss", 1, 3),
    "next MAE, days": ("next_mae", 1, 3),
    "remaining MAE, days": ("remaining_mae", 1, 3),
    "train s": ("train_seconds", 1, 0),
    "prefixes/s": ("prefixes_per_second", 1, 0),
}


def table(cells: Cells, split: str) -> str:
    """Return the results of a split in Markdown: a table for each log, and how our default compares."""
    rows: defaultdict[str, defaultdict[str, list[Mapping[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for key, row in cells.read().items():
        if key.split == split:
            rows[key.log][key.model].append(row)
    lines: list[str] = []
    for log in (name for name in LOGS if name in rows):
        lines += ["", f"### {log} ({split})", "", *_log_table(rows[log])]
    return "\n".join([*lines, "", *_comparisons(mean_losses(cells, split)), ""]).lstrip("\n")


def _log_table(models: Mapping[str, Sequence[Mapping[str, str]]]) -> list[str]:
    heads = ["model", "seeds", *COLUMNS, "calibration error % (range by chance)", "options"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for model in sorted(models, key=[*MODELS].index):
        runs = models[model]
        figures = [_mean(runs, figure, factor, digits) for figure, factor, digits in COLUMNS.values()]
        parts = [_mean(runs, f"calibration{end}", 100, 2) for end in ("", "_low", "_high")]
        calibration = f"{parts[0]} ({parts[1]}–{parts[2]})" if parts[0] else ""
        options = ", ".join(f"{name} {value}" for name, value in json.loads(runs[0]["options"]).items())
        lines.append(f"| {' | '.join([model, str(len(runs)), *figures, calibration, options])} |")
    return lines


def _mean(runs: Sequence[Mapping[str, str]], figure: str, factor: float, digits: int) -> str:
    """Return the mean of a figure and, with several seeds, its standard deviation."""
    values = [factor * float(run[figure]) for run in runs if run[figure]]
    if not values:
        return ""
    deviation = f" ± {np.std(values, ddof=1):,.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):,.{digits}f}{deviation}"


def _comparisons(logs: Mapping[str, Mapping[str, Mapping[str, Floats]]]) -> list[str]:
    heads = ["log", *MEASURES]
    lines = [
        f"How far {OURS} is behind the best: the difference in standard errors of a paired bootstrap over",
        "cases; † significantly behind (95 %).",
        "",
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
    ]
    best_of = good = total = 0
    for log in (name for name in LOGS if name in logs):
        shown = []
        for measure in MEASURES:
            if OURS not in logs[log] or measure not in logs[log][OURS]:
                shown.append("")
                continue
            best, behind = compare(logs[log], measure, OURS)
            total += 1
            best_of += behind is None
            good += behind is None or not behind.behind
            shown.append("best" if behind is None else _shown(best, behind))
        lines.append(f"| {' | '.join([log, *shown])} |")
    counts = f"best in {best_of}, not significantly behind in {good - best_of}, behind in {total - good}"
    return [*lines, "", f"Of {total} cells {counts}."]


def _shown(best: str, behind: Difference) -> str:
    return f"{behind.mean / behind.error:+.1f}{' †' if behind.behind else ''} ({best})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    measuring, printing = commands.add_parser("measure"), commands.add_parser("table")
    measuring.add_argument("data", type=Path, help="folder of the logs")
    measuring.add_argument("--logs", default=",".join(LOGS))
    measuring.add_argument("--models", default=",".join(MODELS))
    measuring.add_argument("--seeds", default="1,2,3")
    for command in (measuring, printing):
        command.add_argument("--out", type=Path, required=True, help="folder of the cells")
        command.add_argument("--split", choices=("valid", "test"), default="valid")
    given = parser.parse_args(arguments)
    cells = Cells(given.out)
    if given.command == "measure":
        seeds = [int(seed) for seed in given.seeds.split(",")]
        measure(given.data, cells, given.logs.split(","), given.models.split(","), seeds, given.split)
    print(table(cells, given.split))


if __name__ == "__main__":
    main()
