"""`ssdvae reproduce`: run the paper's experiments and check its claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic.fields import FieldInfo
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ssdvae.commands import AnyPath, Command
from ssdvae.commands.console import say
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.io.progress import console
from ssdvae.options import preset, unknown_option, with_default, with_options
from ssdvae.reproduction.options import (
    PRESCRIBED,
    SHARED_EVALUATE_OPTIONS,
    SHARED_TRAIN_OPTIONS,
    ReproduceOptions,
)
from ssdvae.training.options import TrainOptions

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.io.progress import Progress
    from ssdvae.reproduction.reproduce import Reproduced
    from ssdvae.reproduction.sweep import SweepState


class SharedTrainOptions(TrainOptions):
    """Options of `train` that hold for all runs; each model takes those that it has."""

    @classmethod
    def fields(cls) -> dict[str, FieldInfo]:
        return {name: field for name, field in super().fields().items() if name in SHARED_TRAIN_OPTIONS}

    @classmethod
    def fields_for(cls, given: Mapping[str, Any]) -> dict[str, FieldInfo]:
        defaults = {**PRESCRIBED, **preset(given.get("scale") or "paper")}
        return {
            name: with_default(field, defaults.get(name, field.default))
            for name, field in cls.fields().items()
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        return super().of({name: values[name] for name in SHARED_TRAIN_OPTIONS if name in values})


class SharedEvaluateOptions(EvaluateOptions):
    """Options of `evaluate` that hold for all runs."""

    @classmethod
    def fields(cls) -> dict[str, FieldInfo]:
        return {name: field for name, field in super().fields().items() if name in SHARED_EVALUATE_OPTIONS}


OPTIONS = (ReproduceOptions, SharedTrainOptions, SharedEvaluateOptions)


@with_options(*OPTIONS)
def reproduce(
    what: str,
    data: Corpus | AnyPath,
    out: AnyPath,
    *,
    progress: bool | Progress = True,
    watch: Callable[[SweepState], None] | None = None,
    **options: Any,
) -> Reproduced:
    """Run the paper's experiments behind the tables ``what``, and check its claims.

    >>> ssdvae.reproduce("all", "corpus", "paper", scale="tiny", seeds=3, epochs=5).verdicts

    Also takes the options of `train` and `evaluate` that are the same for all runs; ``scale`` gives them
    defaults. ``watch`` is called with the state of all runs, again and again.
    """
    from ssdvae.commands.coerce import as_corpus
    from ssdvae.io.progress import resolve
    from ssdvae.reproduction.reproduce import reproduce as run_experiments

    known = [name for kind in OPTIONS for name in kind.names()]
    for name in options:
        if name not in known:
            raise unknown_option(name, known)
    chosen = ReproduceOptions.of(options)
    shared = {name: value for name, value in options.items() if name in SHARED_TRAIN_OPTIONS}
    training = {"preset": chosen.scale, **PRESCRIBED, **preset(chosen.scale), **shared}
    measuring = EvaluateOptions(
        **{name: options[name] for name in SHARED_EVALUATE_OPTIONS if name in options}
    )
    bar = resolve(progress)
    return run_experiments(what, as_corpus(data), Path(out), chosen, training, measuring, bar, watch)


@with_options(*OPTIONS)
def main(what: str, *, data: Path, out: Path, **options: Any) -> None:
    """Run the paper's experiments and check its claims.

    Args:
        what: tables of the paper, comma-separated: perplexity, frames, cloze, attention, curves; or all
        data: corpus folder
        out: folder for the runs, the tables and the report
    """
    with _live_table() as watch:
        done = reproduce(what, data, out, progress=False, watch=watch, **options)
    for verdict in done.verdicts:
        print(verdict)
    say(f"the tables are in {out / 'tables'}; open {out / 'report.html'} to read them in a browser")


@contextmanager
def _live_table() -> Iterator[Callable[[SweepState], None] | None]:
    """Show the state of the sweep on a terminal; elsewhere, the log has it."""
    if not console().is_terminal:
        yield None
        return
    with Live(console=console(), auto_refresh=False, transient=True) as live:
        yield lambda state: live.update(_render(state), refresh=True)


def _render(state: SweepState) -> Group:
    table = Table("model", "done", "running", "left", "failed")
    for row in state.counts_by_kind():
        table.add_row(*map(str, row))
    return Group(table, Text(f"now: {state.at_work()}"), Text(state.summary))


COMMAND = Command(
    main,
    examples=(
        "ssdvae reproduce perplexity,cloze --data corpus --out paper --scale tiny",
        "ssdvae reproduce all --data corpus --out paper-small --scale small --seeds 3",
    ),
)
