"""The commands that look into a model, as a stranger would use them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

import ssdvae
from ssdvae.cli.main import main
from tests.system.mistakes import assert_is_a_message

TINY = ["--hidden=8", "--embedding=8", "--layers=1", "--epochs=1", "--batch=50"]
SEED = ["arrested police suspect in"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of the embedded world, and runs of three models on them."""
    folder = tmp_path_factory.mktemp("looking")
    assert main(["world", str(folder / "events.jsonl"), "--documents", "200", "--seed", "5"]) == 0
    corpus = ["prepare", str(folder / "events.jsonl"), "--out", str(folder / "corpus"), "--preset", "tiny"]
    assert main([*corpus, "--valid-share", "0.2", "--test-share", "0.1"]) == 0
    for model in ("ssdvae-exact", "ssdvae", "rnnlm"):
        train = ["train", str(folder / "corpus"), "--out", str(folder / model), "--model", model]
        assert main([*train, *TINY]) == 0
    return folder


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", folder / "ssdvae", "--rows", "3", "--top", "2", "--min-count", "0"]
    (record,) = records(answer(capsys, *words, "--json"))
    assert record.keys() == {"beliefs", "clusters", "attention", "transitions"}
    assert 0 < record["clusters"]["purity"] <= 1
    for table in ("frames_given_tokens", "tokens_given_frames"):
        assert 1 <= len(record["clusters"][table]) <= 3
        assert all(len(top) == 2 for top in record["clusters"][table].values())
    look = record["attention"]["all frames"]
    assert sum(look["own"].values()) + sum(look["elsewhere"].values()) == pytest.approx(1)
    assert len(record["transitions"]["lift"]) == 3
    shown = answer(capsys, *words)
    for name in (*record["clusters"]["tokens_given_frames"], "β_enc", "β_dec", "purity", "entropy", "lift"):
        assert name in shown


def test_transitions_are_a_table(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command, the DataFrame and the numbers behind them say the same."""
    pandas = pytest.importorskip("pandas")
    run = folder / "ssdvae-exact"
    words = ["explain", run, "--min-count", "0.5", "--transitions", tmp_path / "t.csv"]
    assert answer(capsys, *words) == ""
    found = ssdvae.explain(run, min_count=0.5).transitions
    table, read = ssdvae.to_dataframe(found), pandas.read_csv(tmp_path / "t.csv")
    assert len(read) == len(table) == (found.counts >= 0.5).sum() > 10
    for column in ("first", "second"):
        assert read[column].to_list() == table[column].to_list()
    for column in ("count", "probability", "lift"):
        assert read[column].to_list() == pytest.approx(table[column].to_list())
    assert read["count"].is_monotonic_decreasing
    # Each row is the entry of the table of counts that its names say.
    for row in table.itertuples():
        f, g = (found.frames.find(name, "frame") for name in (row.first, row.second))
        assert row.count == found.counts[f, g]
        assert row.probability == pytest.approx(found.counts[f, g] / found.counts[f].sum())


def test_infer_a_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["infer", folder / "events.jsonl", "--run", folder / "ssdvae"]
    found = records(answer(capsys, *words, "--json"))
    given = records((folder / "events.jsonl").read_text())
    assert [record["id"] for record in found] == [record["id"] for record in given]
    for mine, other in zip(found, given, strict=True):
        assert [event["gold"] for event in mine["events"]] == [event["frame"] for event in other["events"]]
        assert {event["observed"] for event in mine["events"]} == {None}
        assert not any("attention" in event or "alternatives" in event for event in mine["events"])
    more = records(answer(capsys, *words, "--json", "--attention", "--top", "3"))[0]
    assert {len(event["attention"]) for event in more["events"]} == {4 * len(more["events"])}
    assert {len(event["alternatives"]) for event in more["events"]} == {2}
    told = records(answer(capsys, *words, "--json", "--observe-frames"))
    assert any(event["observed"] for record in told for event in record["events"])
    assert answer(capsys, *words, "--out", tmp_path / "f.jsonl.gz") == ""
    assert records(gzip.decompress((tmp_path / "f.jsonl.gz").read_bytes()).decode()) == found
    assert given[0]["id"] in answer(capsys, *words)
    # What was inferred can be read again, as documents with these frames.
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(record) + "\n" for record in found))
    again = records(answer(capsys, "infer", tmp_path / "f.jsonl", "--run", folder / "ssdvae", "--json"))
    assert [e["gold"] for r in again for e in r["events"]] == [e["frame"] for r in found for e in r["events"]]


def type_in(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    content = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_typed_events_that_are_not_utf8_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, b"met she\nm\xe9t she\n")
    assert main(["infer", "--run", str(folder / "ssdvae")]) == 2
    assert "standard input, line 2: found the byte 0xe9" in capsys.readouterr().err


def test_infer_what_is_typed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = "arrested police suspect in\nXyzzy - - None\n\nmet she\n"
    type_in(monkeypatch, typed)
    first, second = records(answer(capsys, "infer", "--run", folder / "ssdvae", "--json"))
    assert [event["verb"] for event in first["events"]] == ["arrested", "Xyzzy"]
    assert first["events"][1]["obj"] is None
    assert first["unknown_words"] >= 1
    assert len(second["events"]) == 1
    type_in(monkeypatch, typed)
    assert main(["infer", "--run", str(folder / "ssdvae")]) == 0
    said = capsys.readouterr()
    assert "arrested police suspect in" in said.out
    assert "not in the vocabulary" in said.err


def test_generate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["generate", *SEED, "met xyzzy", "--run", folder / "ssdvae", "--scripts", "3", "--events", "2"]
    (record,) = records(answer(capsys, *words, "--json", "--frames", "_,Arrest"))
    assert record["unknown_words"] == ["xyzzy"]
    assert len(record["scripts"]) == 3
    for script in record["scripts"]:
        assert len(script["events"]) == 4
        assert script["seeds"] == 2
        assert all(event["planned"] and event["inferred"] for event in script["events"])
    assert answer(capsys, *words, "--json") == answer(capsys, *words, "--json")
    for method in ("sample", "greedy", "beam"):
        shown = answer(capsys, *words, "--method", method, "--no-repeat", "--distinct-roles")
        assert "met xyzzy" in shown
        assert "script 1, log p" in shown
    plain = answer(capsys, "generate", *SEED, "--run", folder / "rnnlm")
    assert "inferred" not in plain


def test_the_same_in_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ssdvae.load(folder / "ssdvae")
    scripts = ssdvae.generate(folder / "ssdvae", ["arrested police suspect in"], scripts=2, events=1)
    assert scripts == ssdvae.generate(
        model, [ssdvae.Event("arrested", "police", "suspect", "in")], scripts=2, events=1
    )
    words = ["generate", *SEED, "--run", folder / "ssdvae", "--scripts", "2", "--events", "1", "--json"]
    (record,) = records(answer(capsys, *words))
    assert record["scripts"] == [script.to_record() for script in scripts]
    inferred = list(ssdvae.infer(model, folder / "events.jsonl"))
    documents = [ssdvae.Document(d.id, tuple(event.event for event in d.events)) for d in inferred]
    assert [d.id for d in ssdvae.infer(folder / "ssdvae", documents)] == [d.id for d in inferred]
    clusters = ssdvae.explain(folder / "ssdvae", split="test").clusters
    assert clusters is not None
    assert clusters.word_counts.sum() > 0


EVENT = ssdvae.Event("arrested", "police", "suspect", "in")
RECORD = {"verb": "arrested", "subj": "police", "obj": "suspect", "mod": "in"}


def test_events_are_given_as_people_write_them(folder: Path) -> None:
    """As an Event, a mapping or a text; documents as a Document, a mapping or a list of events."""
    model = ssdvae.load(folder / "ssdvae")
    forms: list[Any] = [EVENT, RECORD, str(EVENT)]
    alike = [ssdvae.generate(model, [event], scripts=1, events=1) for event in forms]
    alike += [ssdvae.generate(model, event, scripts=1, events=1) for event in forms]
    assert all(scripts == alike[0] for scripts in alike)
    documents: list[Any] = [ssdvae.Document("a", (EVENT,)), {"id": "a", "events": [RECORD]}]
    documents += [{"events": [event]} for event in forms] + [[event] for event in forms]
    found = list(ssdvae.infer(model, documents, batch=1))  # the last digit depends on the batch
    assert [document.id for document in found] == ["a", "a", "3", "4", "5", "6", "7", "8"]
    assert all(document.events == found[0].events for document in found)
    # One document alone is one document.
    assert [list(ssdvae.infer(model, document)) for document in documents[:2]] == [found[:1]] * 2
    typed = ssdvae.infer(model, io.StringIO(f"{EVENT}\n"))
    assert next(typed).events == found[0].events
    assert ssdvae.unknown_words(model, ["arrested xyzzy", {"verb": "plugh"}]) == ["xyzzy", "plugh"]


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([3], "document 1: found 3, expected a Document"),
        (3, "found 3 as documents"),
        ([["met she"], ["a b c d e"]], "document 2: found 'a b c d e'"),
        (["met she"], "document 1: found 'met she', expected a Document"),
        ([[{"subj": "she"}]], "document 1: found no verb"),
        ([[{"verb": 3}]], "found 3 under 'verb'"),
        ([[None]], "document 1: found None, expected an Event"),
        ([{"id": "a"}], "expected a document such as"),
        ([{"id": "a", "events": "met she"}], "found 'met she', expected a Document"),
        ([ssdvae.Document("a", ({"verb": ""},))], "no verb"),  # type: ignore[arg-type]  # what is tested
        ([[ssdvae.Event("met", 3)]], "found 3 as subj"),  # type: ignore[arg-type]  # the same
    ],
)
def test_a_wrong_event_is_a_clear_error(documents: Any, said: str, folder: Path) -> None:
    with pytest.raises(ssdvae.UserError) as raised:
        list(ssdvae.infer(folder / "ssdvae", documents))
    assert said in str(raised.value)


def test_a_wrong_seed_event_is_a_clear_error(folder: Path) -> None:
    wrong: Any
    for wrong in ([{"subj": "she"}], [3], "a b c d e", [["met"]]):
        with pytest.raises(ssdvae.UserError, match="a seed event: found"):
            ssdvae.generate(folder / "ssdvae", wrong)


MISTAKES = {
    "an unknown frame": ("generate met --run RUN --frames arest", "did you mean Arrest"),
    "too many words": ("generate a,b,c,d,e --run RUN", "expected verb subj obj mod"),
    "too many frames": ("generate met --run RUN --frames _,_ --events 1", "2 frames for the 1 events"),
    "frames without a seed": ("generate --run RUN --frames Arrest", "there is none"),
    "no temperature": ("generate met --run RUN --temperature 0", "--temperature"),
    "frames for a model without": ("generate met --run PLAIN --frames Arrest", "no frames"),
    "an unknown word": ("explain RUN --words arestd", "no word 'arestd'"),
    "an unknown frame to explain": ("explain RUN --frames Arest", "did you mean Arrest"),
    "a model without frames": ("explain PLAIN", "no frames to look at"),
    "no frames to infer": ("infer EVENTS --run PLAIN --json", "no frames to look at"),
    "no such file": ("infer nowhere.jsonl --run RUN", "nowhere.jsonl"),
    "an odd name": ("infer EVENTS --run RUN --out f.xml", ".jsonl"),
    "the old order": ("infer RUN EVENTS", "the data come first, and the model is named by --run"),
    "the old order of scripts": ("generate RUN --seed-event met", "ssdvae generate EVENT … --run"),
    "nothing given": ("next met --run RUN --given Arrest", "expected NAME=VALUE"),
    "no such slot": ("next met --run RUN --given object=him", "no slot 'object'; there are: frame, verb"),
    "an odd table of transitions": ("explain RUN --transitions f.xlsx", ".csv"),
    "an odd table": ("score EVENTS --run PLAIN --out f.xlsx", ".parquet"),
    "no number of events": ("score EVENTS --run PLAIN --top 0", "expected at least 1"),
    "nothing to compare with": ("similar met --run RUN --among nowhere.jsonl", "nowhere.jsonl"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_message(
    name: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    command, expected = MISTAKES[name]
    places = {"RUN": folder / "ssdvae", "PLAIN": folder / "rnnlm", "EVENTS": folder / "events.jsonl"}
    words = [str(places.get(word, word)) for word in command.split()]
    words = [word.replace(",", " ") if word.startswith("a,") else word for word in words]
    assert_is_a_message(words, expected, tmp_path, capsys)
