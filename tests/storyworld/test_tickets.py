"""The generated log of support tickets: its properties, and that the default run finds its hidden stages."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

import ssdvae
from ssdvae.storyworld.tickets import (
    KNOWN,
    PROCESSES,
    STAGES,
    VAGUE,
    generate_tickets,
    ticket_documents,
)


def test_a_log_is_as_it_is_said_to_be() -> None:
    drawn = list(generate_tickets(2_000))
    assert {len(rows) for rows in drawn} == set(range(3, 10))
    rows = [row for ticket in drawn for row in ticket]
    assert len({row.ticket for row in rows}) == len(drawn)
    # Shares of many independent draws: within five deviations.
    for share, found in ((VAGUE, [r.action == "updated" for r in rows]), (KNOWN, [r.known for r in rows])):
        deviation = (share * (1 - share) / len(rows)) ** 0.5
        assert abs(sum(found) / len(rows) - share) < 5 * deviation
    assert {row.stage for row in rows} == STAGES.keys()
    assert {row.product for row in rows} == {p for ps, _ in PROCESSES.values() for p in ps.split()}
    for ticket in drawn:
        times = [row.when for row in ticket]
        assert times == sorted(set(times))
        assert len({row.product for row in ticket}) == 1


def test_what_is_known_changes_nothing_else() -> None:
    for some, all_ in zip(ticket_documents(50), ticket_documents(50, known=1), strict=True):
        assert [event.words for event in some.events] == [event.words for event in all_.events]
        for mine, true in zip(some.events, all_.events, strict=True):
            assert mine.frame in (None, true.frame)
    assert [*ticket_documents(9)] == [*ticket_documents(12)][:9]
    assert [*ticket_documents(9, seed=2)] != [*ticket_documents(9)]


def right(found: list[list[str | None]], count: int = 3_000) -> float:
    """The share of the hidden stages that are right."""
    pairs = [
        (guess, true.frame)
        for guesses, mine, all_ in zip(
            found, ticket_documents(count), ticket_documents(count, known=1), strict=True
        )
        for guess, event, true in zip(guesses, mine.events, all_.events, strict=True)
        if event.frame is None
    ]
    return sum(guess == true for guess, true in pairs) / len(pairs)


def test_the_action_alone_tells_about_seven_in_ten() -> None:
    seen: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    documents = list(ticket_documents(3_000))
    for event in (e for document in documents for e in document.events if e.frame):
        seen[event.head][event.frame] += 1
    commonest = [[seen[event.head].most_common(1)[0][0] for event in d.events] for d in documents]
    assert 0.65 < right(commonest) < 0.75


@pytest.mark.journey
def test_the_default_run_finds_the_hidden_stages(tmp_path: Path) -> None:
    ssdvae.tickets(tmp_path / "tickets.jsonl", progress=False)
    corpus = ssdvae.prepare(tmp_path / "tickets.jsonl", tmp_path / "corpus", events=9, progress=False)
    run = ssdvae.train(corpus, tmp_path / "run", progress=False)
    inferred = ssdvae.infer(run.folder, tmp_path / "tickets.jsonl")
    assert right([[event.frame for event in document.events] for document in inferred]) >= 0.95
