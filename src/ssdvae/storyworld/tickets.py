"""A generated log of support tickets: a small corpus that is not text, with stages as frames.

    process         p ~ uniform over PROCESSES
    stage           each stage of p in turn, or not, with its probability; at least three
    action          ~ actions(stage); then, with probability ``VAGUE``, "updated" instead
    agent, channel  ~ agents(stage), channels(stage)
    product         ~ products(p), once per ticket
    known           ~ Bernoulli(``known``): the stage is written

Some actions belong to several stages and a quarter of them are just "updated", so that the action alone gives
the stage of about seven events in ten. The agent and the events around give most of the others.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

import numpy as np

from ssdvae.data.events import Document, Event
from ssdvae.data.options import TicketOptions
from ssdvae.io.files import atomic_write, open_text_for_writing

VAGUE = 0.25
KNOWN = TicketOptions().known

STAGES = {
    # stage: actions, agents, channels
    "Received": ("opened registered reported", "frontdesk bot", "phone mail web"),
    "Identified": ("checked verified", "frontdesk", "phone chat"),
    "Assigned": ("assigned routed moved", "dispatcher bot", "system"),
    "Diagnosed": ("checked traced reproduced", "engineer analyst", "remote lab"),
    "Escalated": ("escalated moved raised", "supervisor", "phone system"),
    "Ordered": ("ordered requested", "buyer", "web mail"),
    "Repaired": ("replaced patched fixed", "engineer technician", "site remote"),
    "Shipped": ("sent dispatched", "courier warehouse", "site"),
    "Tested": ("checked tested reproduced", "engineer technician", "lab remote"),
    "Approved": ("approved signed granted", "manager", "mail system"),
    "Paid": ("paid sent transferred", "accountant", "bank"),
    "Informed": ("called sent explained", "frontdesk agent", "phone mail chat"),
    "Confirmed": ("accepted confirmed", "customer", "mail web"),
    "Closed": ("closed archived resolved", "frontdesk bot", "system"),
}

PROCESSES = {
    # process: products, and its stages in order, each with the probability that it takes place
    "outage": (
        "router modem line",
        "Received:1 Identified:.6 Assigned:.8 Diagnosed:1 Escalated:.4 Repaired:.9 Tested:.7 Informed:.6 "
        "Closed:1",
    ),
    "refund": (
        "invoice subscription voucher",
        "Received:1 Identified:.8 Escalated:.3 Approved:1 Paid:1 Informed:.5 Closed:.8",
    ),
    "password": ("account mailbox", "Received:1 Identified:1 Informed:.7 Confirmed:.5 Closed:1"),
    "delivery": (
        "parcel phone laptop",
        "Received:1 Assigned:.5 Ordered:.6 Approved:.3 Shipped:1 Informed:.7 Confirmed:.8 Closed:.6",
    ),
    "bug": (
        "app website driver",
        "Received:.9 Assigned:.7 Diagnosed:1 Escalated:.3 Repaired:1 Tested:.9 Approved:.4 Shipped:.6 "
        "Closed:1",
    ),
    "cancellation": (
        "contract subscription line",
        "Received:1 Identified:.7 Informed:.6 Approved:.9 Paid:.4 Confirmed:.6 Closed:1",
    ),
}

COLUMNS = ("ticket", "when", "action", "agent", "product", "channel", "stage")

XES_KEYS = {"action": "concept:name", "agent": "org:resource"}


@dataclass(frozen=True)
class TicketEvent:
    """An event of the log: the columns of the table, and whether its stage is written."""

    ticket: str
    when: datetime
    action: str
    agent: str
    product: str
    channel: str
    stage: str
    known: bool

    @property
    def fields(self) -> dict[str, str]:
        """The columns as text; the stage only where it is known."""
        shown = {name: str(getattr(self, name)) for name in COLUMNS}
        stage = self.stage if self.known else ""
        return {**shown, "when": self.when.isoformat(" ", "minutes"), "stage": stage}

    @property
    def event(self) -> Event:
        """The event, with the agent as subject, the product as object and the channel as modifier."""
        stage = self.stage if self.known else None
        return Event(self.action, self.agent, self.product, self.channel, frame=stage)


def generate_tickets(count: int, seed: int = 1, known: float = KNOWN) -> Iterator[list[TicketEvent]]:
    """Yield the events of each ticket; number i depends on (seed, i) alone, and only stages on ``known``."""
    for number in range(count):
        yield _ticket(number, np.random.default_rng((seed, number)), known)


def ticket_documents(count: int, seed: int = 1, known: float = KNOWN) -> Iterator[Document]:
    """Yield each ticket as a document."""
    for rows in generate_tickets(count, seed, known):
        yield Document(rows[0].ticket, tuple(row.event for row in rows))


def write_log(path: Path, rows: Iterable[list[TicketEvent]]) -> int:
    """Write a table (.csv) with a line for each event, or a log (.xes); return the number of tickets."""
    write = _write_xes if ".xes" in path.suffixes else _write_csv
    with atomic_write(path) as temporary, open_text_for_writing(temporary) as file:
        return write(file, rows)


def _write_csv(file: IO[str], tickets: Iterable[list[TicketEvent]]) -> int:
    table, count = csv.writer(file), 0
    table.writerow(COLUMNS)
    for ticket in tickets:
        count += 1
        table.writerows([row.fields.values() for row in ticket])
    return count


def _write_xes(file: IO[str], tickets: Iterable[list[TicketEvent]]) -> int:
    """Write action, agent and time under the names of the XES standard, other columns under their own."""
    count = 0
    file.write('<?xml version="1.0" encoding="UTF-8"?>\n<log xes.version="1.0">\n')
    for ticket in tickets:
        count += 1
        file.write(f'<trace>\n<string key="concept:name" value="{ticket[0].ticket}"/>\n')
        for row in ticket:
            named = {XES_KEYS.get(name, name): cell for name, cell in row.fields.items() if cell}
            del named["ticket"]
            date = f'<date key="time:timestamp" value="{row.when.isoformat()}+00:00"/>'
            words = [f'<string key="{key}" value="{cell}"/>' for key, cell in named.items() if key != "when"]
            file.write(f"<event>{date}{''.join(words)}</event>\n")
        file.write("</trace>\n")
    file.write("</log>\n")
    return count


def _ticket(number: int, rng: np.random.Generator, known: float) -> list[TicketEvent]:
    def one_of(words: str) -> str:
        choices = words.split()
        return choices[int(len(choices) * rng.random())]

    process = one_of(" ".join(PROCESSES))
    products, plan = PROCESSES[process]
    stages: list[str] = []
    while len(stages) < 3:
        steps = [step.split(":") for step in plan.split()]
        stages = [stage for stage, chance in steps if rng.random() < float(chance)]
    product, when = one_of(products), datetime(2024, 1, 1) + timedelta(minutes=7 * number)
    rows = []
    for stage in stages:
        actions, agents, channels = STAGES[stage]
        action = one_of(actions)
        if rng.random() < VAGUE:
            action = "updated"
        row = TicketEvent(
            f"T{number:05d}",
            when,
            action,
            one_of(agents),
            product,
            one_of(channels),
            stage,
            rng.random() < known,
        )
        rows.append(row)
        when += timedelta(minutes=1 + int(600 * rng.random()))
    return rows
