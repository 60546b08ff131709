"""Paper: re-run its experiments and check its claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import Namespace
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ssdvae import api
from ssdvae.api.choices import paper_tables
from ssdvae.cli.command import Command
from ssdvae.cli.console import say
from ssdvae.cli.flags import add_further_settings, add_settings
from ssdvae.cli.parser import Parser
from ssdvae.config import MEASURED_ALIKE, TRAINED_ALIKE, EvaluateSettings, ReproduceSettings, TrainSettings
from ssdvae.config.paper import REPRODUCE_DEFAULTS
from ssdvae.progress import console

if TYPE_CHECKING:
    from ssdvae.paper.cells import Cells


def reproduce_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = parser.add_argument_group("what, and files")
    tables = ", ".join(paper_tables())
    files.add_argument("what", help=f"which tables of the paper, comma-separated: {tables}")
    files.add_argument("--data", type=Path, required=True, help="corpus folder")
    files.add_argument("--out", type=Path, required=True, help="folder for the runs, the tables and the page")
    add_settings(parser, ReproduceSettings)
    # Those that are not given are those of --scale, and the defaults.
    add_further_settings(parser, TrainSettings, TRAINED_ALIKE, REPRODUCE_DEFAULTS)
    add_further_settings(parser, EvaluateSettings, MEASURED_ALIKE)


def reproduce(args: Namespace) -> None:
    names = (*ReproduceSettings.names(), *TRAINED_ALIKE, *MEASURED_ALIKE)
    settings = {name: value for name, value in vars(args).items() if name in names}
    with _cell_table() as watch:
        done = api.reproduce(args.what, args.data, args.out, progress=False, watch=watch, **settings)
    for verdict in done.verdicts:
        print(verdict)
    say(f"the tables are in {args.out / 'tables'}; open {args.out / 'report.html'} to read them in a browser")


@contextmanager
def _cell_table() -> Iterator[Callable[[Cells], None] | None]:
    """Draws the state of the cells on a terminal; elsewhere, what is logged says it all."""
    if not console().is_terminal:
        yield None
        return
    with Live(console=console(), auto_refresh=False, transient=True) as live:
        yield lambda cells: live.update(_state(cells), refresh=True)


def _state(cells: Cells) -> Group:
    table = Table("model", "done", "running", "left", "failed")
    for row in cells.counts_by_kind():
        table.add_row(*map(str, row))
    return Group(table, Text(f"now: {cells.at_work()}"), Text(cells.summary))


COMMANDS = (
    Command(
        "reproduce",
        "re-run the paper's experiments and check its claims",
        "reproduce",
        reproduce_flags,
        reproduce,
        (
            "ssdvae reproduce perplexity,cloze --data corpus --out paper --scale tiny",
            "ssdvae reproduce all --data corpus --out paper-small --scale small --seeds 3",
        ),
    ),
)
