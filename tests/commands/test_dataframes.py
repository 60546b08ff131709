"""A log may be a pandas DataFrame: it is read like a file, and answers come back as its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ssdvae
from ssdvae.commands.score import tables
from ssdvae.data.columns import XES
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.storyworld.tickets import generate_tickets, write_log
from tests.toys import named_documents, toy_documents, toy_exact

pd = pytest.importorskip("pandas")

NAMES = {"ticket": XES.case, "action": XES.head, "when": XES.time, "agent": "org:resource"}


def ticket_log(count: int) -> Any:
    """Tickets with the column names of XES."""
    rows = [row.fields for ticket in generate_tickets(count, seed=2) for row in ticket]
    table = pd.DataFrame(rows).rename(columns=NAMES)
    table[XES.time] = pd.to_datetime(table[XES.time], utc=True)
    return table


def test_a_frame_with_names_of_xes_is_the_log_itself(tmp_path: Path) -> None:
    table = ticket_log(40)
    write_log(tmp_path / "log.xes", generate_tickets(40, seed=2))
    table.to_csv(tmp_path / "log.csv", index=False)
    options: dict[str, Any] = {"cloze_items": 0, "progress": False, "jobs": 1}
    of_frame = ssdvae.prepare(table, tmp_path / "a", **options)
    of_file = ssdvae.prepare(tmp_path / "log.xes", tmp_path / "b", **options)
    of_table = ssdvae.prepare(tmp_path / "log.csv", tmp_path / "c", **options)
    assert of_frame.fingerprint == of_file.fingerprint == of_table.fingerprint
    assert of_frame.columns == XES
    parts = ssdvae.prepare({"train": table[:200], "test": table[200:]}, tmp_path / "d", **options)
    assert parts.manifest["splits"]["train"]["documents"] > 0
    # Nobody need be named in a log, and columns may have any names.
    alone = ssdvae.prepare(table.drop(columns="org:resource"), tmp_path / "e", **options)
    assert alone.slots == ("concept:name",)
    named = ssdvae.prepare(table, tmp_path / "f", case=XES.case, head="channel", **options)
    assert named.slots[0] == "channel"
    with pytest.raises(UserError, match="no-such"):
        ssdvae.prepare(table, tmp_path / "g", head="no-such", **options)


def small_model() -> tuple[Model, Any]:
    """A model of a log, and a log that it knows, in any order of its rows."""
    model = toy_exact(slots=2)
    model.columns = XES
    model.slots = XES.slots
    rows = [
        {
            XES.case: int(document.id[1:]),
            XES.time: pd.Timestamp("2024-01-01") + pd.Timedelta(hours=place),
            XES.head: f"word{place}",
            "org:resource": event.head,
        }
        for document in named_documents(toy_documents([3, 1, 4, 2], slots=2), model)
        for place, event in enumerate(document.events)
    ]
    return model, pd.DataFrame(rows)


def test_answers_are_columns_in_the_order_of_the_rows(tmp_path: Path) -> None:
    model, table = small_model()
    table.to_parquet(tmp_path / "log.parquet")
    plain = ssdvae.to_dataframe(ssdvae.infer(model, tmp_path / "log.parquet"))
    found = ssdvae.to_dataframe(ssdvae.infer(model, table))
    assert list(found.columns[: len(table.columns)]) == list(table.columns)
    assert found["ssdvae:frame"].tolist() == plain["frame"].tolist()
    # Cases may be mixed, and rows stand in any order.
    order = sorted(range(len(table)), key=lambda row: (row % 2, -table[XES.case][row]))
    mixed = table.iloc[order].rename(index=lambda row: "all alike")
    scored = ssdvae.to_dataframe(ssdvae.score(model, table))
    again = ssdvae.to_dataframe(ssdvae.score(model, mixed))
    assert again["ssdvae:nats"].tolist() == pytest.approx(scored["ssdvae:nats"].iloc[order].tolist())
    assert again[table.columns].equals(mixed)
    assert not any(name.startswith("ssdvae:") for name in table.columns)


def test_answers_about_cases_are_a_table_of_their_own() -> None:
    model, table = small_model()
    found = ssdvae.to_dataframe(ssdvae.next_events(model, table, top=2))
    assert set(found["id"]) == {str(case) for case in table[XES.case]}
    vectors = ssdvae.to_dataframe(ssdvae.embed(model, table))
    assert len(vectors) == len(table)
    assert vectors["ssdvae:vector"].map(len).nunique() == 1


def test_cases_are_ranked_by_their_mean_with_the_event_at_fault(tmp_path: Path) -> None:
    model, table = small_model()
    documents = sorted(ssdvae.score(model, table), key=lambda d: -d.nats / len(d.events))
    found = ssdvae.anomalies(model, table, by="case", top=3)
    assert [one.id for one in found] == [document.id for document in documents[:3]]
    for one, document in zip(found, documents, strict=False):
        assert one.scored.nats == pytest.approx(max(event.nats for event in document.events))
    assert "most surprising event" in next(tables(found))[0]
    ssdvae.write_answers(found, tmp_path / "cases.parquet")
    columns = pd.read_parquet(tmp_path / "cases.parquet")
    assert columns["document_nats"].tolist() == pytest.approx([d.nats for d in documents[:3]])
    assert "document_percentile" in columns
    by_event = ssdvae.anomalies(model, table, top=1)[0]
    assert by_event.scored.nats == pytest.approx(max(e.nats for d in documents for e in d.events))
