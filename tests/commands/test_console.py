"""Tables fit the terminal: no text is cut off, and no line is wider."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from ssdvae.cli import main
from ssdvae.commands.console import fitted, show
from ssdvae.commands.demo import Demo, print_demo
from ssdvae.data.events import Document, Event, Origin
from ssdvae.inference.generation import Script, ScriptEvent

WIDTH = 80


@pytest.fixture(scope="module")
def two_runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two evaluated runs that differ in many options."""
    out = tmp_path_factory.mktemp("width")
    tiny = ["--hidden=8", "--embedding=8", "--layers=1", "--epochs=1", "--batch=50"]
    other = ["--observe=0.123456", "--learning-rate=0.00123", "--epochs=2", "--clip=1.5", "--patience=3"]
    for name, flags in (("a", tiny), ("b", [*tiny[:3], tiny[4], *other])):
        assert main(["train", str(folder / "corpus"), "--out", str(out / name), *flags]) == 0
        assert main(["evaluate", str(out / name), "--bound-samples=1", "--cloze-seeds=1", "--json"]) == 0
    return {"A": str(out / "a"), "B": str(out / "b"), "EVENTS": str(folder / "events.jsonl")}


COMMANDS = [
    "scores A B",
    "scores A",
    "evaluate A --bound-samples=1 --cloze-seeds=1",
    "explain A --rows=8 --min-count=0",
    "infer EVENTS --run A",
    "next arrested --run A",
    "score EVENTS --run A --top=3",
    "generate arrested --run A --scripts=2",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_printed_fits_eighty_columns(
    command: str,
    two_runs: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    capsys.readouterr()
    assert main([two_runs.get(word, word) for word in command.split()]) == 0
    shown = capsys.readouterr().out
    assert shown
    assert "…" not in shown
    for line in shown.splitlines():
        assert cell_len(line) <= WIDTH, line


def test_the_demo_fits_eighty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    words = ("discussed", "representatives", "responsibilities", "throughout")
    event = Event(*words, frame="Agree_or_refuse_to_act")
    found = event.changed(
        probability=0.75, origin=Origin(0, 0, 1, text=" ".join(["A sentence that is not short."] * 5))
    )
    document = Document("negotiation-000024", (event, Event("met")))
    scores = {
        "documents": 9,
        "words": 1234,
        "ppl_with_separators": 3.0,
        "ppl_bound": 14.0,
        "cloze_chance": 1 / 6,
    }
    scores |= {"ppl": 5.0, "frame_accuracy": 0.9, "cloze_nll": 0.8, "cloze_pmi": 0.8}
    told = ScriptEvent(event, None, "Judgment_communication", 0.9)
    script = Script((told, ScriptEvent(Event("met"), None, "Arriving", 1.0)), 1, -9.0)
    demo = Demo(
        folder=Path("demo"),
        page=Path("demo/report.html"),
        scores=dict.fromkeys(("rnnlm", "ssdvae", "ssdvae-exact", "best"), scores),
        documents=[(document, ["Judgment_communication", "Arriving"])],
        scripts=[(script, -123.4), (script, -math.inf)],
        extracted=Document("ferry", (found,)),
    )
    print_demo(demo)
    *lines, address = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= WIDTH
    assert "…" not in "".join(lines)
    assert "file://" in address  # in one piece, to be clicked on


words = st.text("abcdefgh_", min_size=1, max_size=30)
texts = st.one_of(words, st.lists(words, max_size=5).map(" ".join), st.floats(0, 9).map("{:.3f}".format))
tables = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(texts.filter(bool), min_size=n, max_size=n),
        st.lists(st.lists(texts, min_size=n, max_size=n), max_size=5),
    )
)


@example(([letter * 30 for letter in "abcd"], [["e"] * 4] * 5), False)  # columns that must part
@given(tables, st.booleans())
def test_any_table_fits_and_nothing_is_lost(table: tuple[list[str], list[list[str]]], plain: bool) -> None:
    head, rows = table
    out = Console(width=WIDTH, no_color=True)
    with out.capture() as captured:
        for part in fitted(head, rows, WIDTH, plain):
            out.print(part)
    shown = captured.get()
    assert all(cell_len(line) <= WIDTH for line in shown.splitlines())
    assert "…" not in shown
    for text in (*head, *(cell for row in rows for cell in row)):
        # Broken between words, and nowhere else.
        for word in text.split():
            assert word in shown


def test_words_in_tables_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show([("a [b] title", ["[head]"], [["[edit] :heart: [/b]"]])])
    shown = capsys.readouterr().out
    for text in ("a [b] title", "[head]", "[edit] :heart: [/b]"):
        assert text in shown
