"""`ssdvae tickets`: write a generated log of support tickets."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command, jsonl_path
from ssdvae.data.options import TicketOptions
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.io.progress import Progress

log = logging.getLogger("ssdvae")


@with_options(TicketOptions)
def tickets(out: AnyPath, *, progress: bool | Progress = True, **options: Any) -> int:
    """Write a generated log of support tickets, with the stage of some events; return the number of tickets.

    >>> ssdvae.tickets("tickets.csv", known=0.3)

    Documents have the action as verb, agent as subject, product as object and channel as modifier.

    Args:
        out: file to write: a table (.csv), a log (.xes) or documents (.jsonl); .gz too
    """
    from ssdvae.data.readers import write_jsonl
    from ssdvae.io.progress import resolve, track
    from ssdvae.storyworld.tickets import generate_tickets, ticket_documents, write_log

    chosen, bar = TicketOptions(**options), resolve(progress)
    drawn = chosen.documents, chosen.seed, chosen.known
    if str(out).endswith((".csv", ".csv.gz", ".xes", ".xes.gz")):
        count = write_log(Path(out), track(bar, generate_tickets(*drawn), "writing", chosen.documents))
    else:
        path = jsonl_path(out)
        count = write_jsonl(path, track(bar, ticket_documents(*drawn), "writing", chosen.documents))
    log.info(f"wrote {count:,} tickets to {out}")
    return count


COMMAND = Command(
    tickets,
    examples=(
        "ssdvae tickets tickets.jsonl --documents 600",
        "ssdvae tickets tickets.csv --known 1 --seed 2",
    ),
)
