"""Tables fit the terminal: nothing is cut off, and no line is wider."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from ssdvae.answers.generate import Script, ScriptEvent
from ssdvae.cli.demo import show_tour
from ssdvae.cli.layout import fitted
from ssdvae.cli.main import main
from ssdvae.data.events import Document, Event, Origin
from ssdvae.runs import Run
from ssdvae.tour import Tour

WIDTH = 80
TINY = ["--hidden=8", "--embedding=8", "--layers=1", "--epochs=1", "--batch=50"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of the embedded world, and two evaluated runs that differ in many settings."""
    folder = tmp_path_factory.mktemp("width")
    assert main(["world", str(folder / "events.jsonl"), "--documents", "200"]) == 0
    corpus = ["prepare", str(folder / "events.jsonl"), "--out", str(folder / "corpus"), "--preset", "tiny"]
    assert main([*corpus, "--valid-share", "0.2", "--test-share", "0.1"]) == 0
    other = ["--observe=0.123456", "--learning-rate=0.00123", "--epochs=2", "--clip=1.5", "--patience=3"]
    for name, settings in (("a", TINY), ("b", [*TINY, *other])):
        assert main(["train", str(folder / "corpus"), "--out", str(folder / name), *settings]) == 0
        assert main(["evaluate", str(folder / name), "--bound-samples=1", "--cloze-seeds=1", "--json"]) == 0
    return folder


COMMANDS = [
    "scores A B",
    "scores A",
    "evaluate A --bound-samples=1 --cloze-seeds=1",
    "explain A --rows=8 --min-count=0",
    "infer EVENTS --run A",
    "generate arrested --run A --scripts=2",
    "benchmark --model=rnnlm --hidden=8 --embedding=6 --vocabulary=50 --frames=7 --batch=4 --steps=1",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_printed_fits_eighty_columns(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    places = {"A": folder / "a", "B": folder / "b", "EVENTS": folder / "events.jsonl"}
    capsys.readouterr()
    assert main([str(places.get(word, word)) for word in command.split()]) == 0
    shown = capsys.readouterr().out
    assert shown
    assert "…" not in shown
    for line in shown.splitlines():
        assert cell_len(line) <= WIDTH, line


def test_the_demo_fits_eighty_columns(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    tour = Tour(
        folder=Path("demo"),
        run=Run("demo/run"),
        page=Path("demo/report.html"),
        scores={"ssdvae-exact": scores, "ssdvae": scores, "best": scores},
        curve=[9.0, 5.0, 4.0],
        documents=[(document, ["Judgment_communication", "Arriving"])],
        scripts=[(script, -123.4), (script, -math.inf)],
        extracted=Document("ferry", (found,)),
    )
    show_tour(tour)
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
