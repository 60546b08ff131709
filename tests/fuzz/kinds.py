"""Kinds of input: how they are damaged and read, and what must hold if they are accepted."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import yaml
from concrete.communication.ttypes import Communication
from safetensors.torch import load_file
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.transport.TTransport import TMemoryBuffer

from ssdvae.analysis.options import ReportOptions
from ssdvae.commands.check import check
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import SLOTS
from ssdvae.data.options import ExtractOptions, PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import read_documents, write_jsonl
from ssdvae.data.readers.text import read_typed
from ssdvae.data.vectors import read_vectors
from ssdvae.evaluation.measure import evaluate_run
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.extraction.classifier import normalize_verb, read_lexicon
from ssdvae.extraction.readers import FORMATS
from ssdvae.extraction.rules import extract_document
from ssdvae.inference.options import GenerateOptions
from ssdvae.io.files import stop_at_first_error
from ssdvae.io.run import Run
from ssdvae.io.scores import read_scores
from ssdvae.models.base import Model
from ssdvae.options import read_config
from ssdvae.report.page import write_report
from ssdvae.storyworld.world import World
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import train
from tests.extraction.test_readers import communication, packed
from tests.extraction.trees import CONSTRUCTIONS
from tests.fuzz.damage import (
    Damage,
    bytes_changed,
    columns_changed,
    header_changed,
    json_changed,
    lines_changed,
    yaml_changed,
)

Read = Callable[[], Any]
Holds = Callable[[Any], bool]


@dataclass(frozen=True)
class Kind:
    """A file that is damaged, and everything that reads it."""

    name: str
    path: Path
    damages: Sequence[Damage]
    read: Read
    holds: Holds  # whether what was read is right, given the file as it is now
    vouch: Callable[[], None] = lambda: None  # let others vouch for the damage, to get past them


def make(folder: Path) -> list[Kind]:
    """Real folders, made by the commands, and what there is to damage in them."""
    corpus, run = _folders(folder)
    return [*_corpora(corpus), *_runs(folder, corpus, run), *_settings(folder, run), *_inputs(folder)]


def _folders(folder: Path) -> tuple[Path, Path]:
    events = folder / "events.jsonl"
    write_jsonl(events, World.embedded().documents(120, seed=3))
    settings = PrepareOptions(vocabulary=300, valid_share=0.1, test_share=0.1, cloze_options=2)
    corpus = prepare(events, folder / "corpus", settings)
    small: dict[str, Any] = {
        "embedding": 8,
        "hidden": 8,
        "layers": 1,
        "batch": 32,
        "epochs": 1,
        "record_steps": 2,
    }
    run = train(corpus, folder / "run", TrainOptions(**small))
    _evaluate(run.folder, corpus, "perplexity,frames,cloze")
    return corpus.folder, run.folder


def _evaluate(run: Path, corpus: Corpus, tasks: str) -> dict[str, Any]:
    return evaluate_run(run, Model.read(run), corpus, EvaluateOptions(tasks=tasks))


# Corpora


def _numbers(corpus: Path) -> dict[str, list[Any]]:
    """A split as an independent reader has it."""
    with pa.OSFile(str(corpus / "train.arrow")) as file:
        table = pa.ipc.open_stream(file).read_all()
    return {name: table.column(name).to_pylist() for name in ("tokens", "frames")}


def _corpora(corpus: Path) -> list[Kind]:
    def read() -> tuple[Corpus, Any]:
        opened = Corpus(corpus)
        opened.split("valid")
        opened.items("cloze", "valid")
        return opened, opened.split("train")

    def holds(found: tuple[Corpus, Any]) -> bool:
        opened, documents = found
        numbers = _numbers(corpus)
        words, frames = (json.loads((corpus / n).read_bytes()) for n in ("vocab.json", "frames.json"))
        return (
            [documents.tokens[part].reshape(-1).tolist() for part in documents.parts()] == numbers["tokens"]
            and [documents.frames[part].tolist() for part in documents.parts()] == numbers["frames"]
            and (list(opened.vocabulary.names), list(opened.frames.names))
            == (words["names"], frames["names"])
            and max(map(max, numbers["tokens"])) < len(words["names"])
        )

    def vouching(name: str) -> Callable[[], None]:
        def vouch() -> None:
            content = (corpus / name).read_bytes()
            manifest = json.loads((corpus / "manifest.json").read_bytes())
            manifest["sha256"][name], manifest["bytes"][name] = (
                hashlib.sha256(content).hexdigest(),
                len(content),
            )
            (corpus / "manifest.json").write_text(json.dumps(manifest))

        return vouch

    kinds = [Kind("manifest", corpus / "manifest.json", (json_changed, bytes_changed), read, holds)]
    for name, damages in (
        ("vocab.json", (json_changed, bytes_changed)),
        ("frames.json", (json_changed, bytes_changed)),
        ("train.arrow", (bytes_changed, arrow_changed)),
    ):
        kinds.append(Kind(name, corpus / name, damages, read, holds))
        kinds.append(Kind(f"{name}, vouched for", corpus / name, damages, read, holds, vouching(name)))
    cloze = corpus / "cloze" / "valid.txt"
    kinds.append(Kind("cloze of the corpus", cloze, (bytes_changed,), read, lambda found: False))
    return kinds


def arrow_changed(content: bytes, rng: Random) -> bytes:
    """A number, a column or a type changed, in a file that is otherwise well made."""
    table = pa.ipc.open_stream(content).read_all()
    index = rng.randrange(table.num_columns)
    field, way = table.schema.field(index), rng.random()
    if (changed := columns_changed(table, index, way, rng)) is not None:
        table = changed
    else:
        rows = table.column(index).to_pylist()
        at, value = rng.randrange(len(rows)), rng.choice((None, -1, -2, 0, 5, 6, 299, 300, 10**6, 2**31 - 1))
        if isinstance(rows[at], list):
            rows[at][rng.randrange(len(rows[at]))] = value
        else:
            rows[at] = str(value) if field.type == pa.string() else value
        kind = pa.int64() if field.type == pa.int32() and way > 0.9 else field.type
        table = table.set_column(index, pa.field(field.name, kind), pa.array(rows, kind))
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


# Runs


def _runs(folder: Path, corpus: Path, run: Path) -> list[Kind]:
    names = ("model.safetensors", "checkpoint/state.safetensors")
    # Copied: what safetensors gives goes on being the file, which is about to be damaged.
    original = {name: {k: t.clone() for k, t in load_file(run / name).items()} for name in names}

    def same(name: str, tensors: dict[str, torch.Tensor]) -> bool:
        first = original[name]
        return tensors.keys() == first.keys() and all(torch.equal(t, first[k]) for k, t in tensors.items())

    def model_holds(model: Model) -> bool:
        names = json.loads((run / "vocab.json").read_bytes())["names"]
        return same("model.safetensors", model.state_dict()) and list(model.vocabulary.names) == names

    def records_hold(found: Any) -> bool:
        lines = (run / "metrics.jsonl").read_bytes().split(b"\n")[:-1]
        there = [{k: v for k, v in _loads(line).items() if v is not None} for line in lines]
        return bool(found == there)

    def scores_hold(found: list[Any]) -> bool:
        return bool([m.model_dump() for m in found] == _loads((run / "scores.json").read_bytes()))

    def state_holds(found: Any) -> bool:
        return same("checkpoint/state.safetensors", load_file(run / "checkpoint/state.safetensors"))

    def checked() -> Any:
        problems = [one.problem for one in check(run) if one.problem is not None]
        if problems:
            raise problems[0]
        return _evaluate(run, Corpus(corpus), "frames")

    def report() -> Path:
        return write_report([run], folder / "page.html", ReportOptions(sample=5, documents=1))

    text, tensors = (json_changed, bytes_changed), (bytes_changed, header_changed)
    always: Holds = lambda found: True  # noqa: E731  # what matters is that it ends in words
    return [
        Kind("config.json", run / "config.json", text, lambda: Model.read(run), model_holds),
        Kind("vocab.json of a run", run / "vocab.json", text, lambda: Model.read(run), model_holds),
        Kind("frames.json of a run", run / "frames.json", text, lambda: Model.read(run), model_holds),
        Kind("weights", run / "model.safetensors", tensors, lambda: Model.read(run), model_holds),
        Kind("checkpoint", run / "checkpoint/state.safetensors", tensors, checked, state_holds),
        Kind(
            "metrics", run / "metrics.jsonl", (lines_changed, bytes_changed), Run(run).metrics, records_hold
        ),
        Kind("metrics in a report", run / "metrics.jsonl", (lines_changed,), report, always),
        Kind("scores", run / "scores.json", text, lambda: read_scores(run), scores_hold),
        Kind("scores in a table", run / "scores.json", (json_changed,), lambda: _tables(run), always),
        Kind(
            "config.yaml",
            run / "config.yaml",
            (yaml_changed, bytes_changed),
            Run(run).config,
            lambda found: _settings_hold(found[1], run / "config.yaml"),
        ),
    ]


def _tables(run: Path) -> Any:
    from ssdvae.evaluation.summary import score_tables, summarize

    return list(score_tables(summarize([run])))


def _loads(text: str | bytes) -> Any:
    return json.loads(text, parse_constant=lambda word: None)


# Options


def _settings_hold(settings: Any, path: Path) -> bool:
    """Every value of the file, as YAML itself reads it, is that of the setting."""
    values = yaml.safe_load(path.read_bytes().decode("utf-8-sig"))
    found = settings if isinstance(settings, dict) else settings.to_dict()
    return all(
        name in ("corpus", "format") or _alike(found.get(name), value) for name, value in values.items()
    )


def _alike(found: Any, value: Any) -> bool:
    if isinstance(found, Path):
        found = str(found)
    if isinstance(found, float) and isinstance(value, str | int):
        value = float(value)  # 1e-3, which YAML 1.1 takes for text, and whole numbers, to the nearest
    return bool(found == value)


def _settings(folder: Path, run: Path) -> list[Kind]:
    path = Path(shutil.copy(run / "config.yaml", folder / "settings.yaml"))
    read = lambda: read_config(path, [TrainOptions])  # noqa: E731
    holds: Holds = lambda found: _settings_hold(found, path)  # noqa: E731
    kinds = [Kind("--config", path, (yaml_changed, bytes_changed), read, holds)]
    for group in (TrainOptions, PrepareOptions, EvaluateOptions, GenerateOptions, ReportOptions):
        kinds.append(_python_settings(folder, group))
    return kinds


def _python_settings(folder: Path, group: Any) -> Kind:
    """Options as keyword arguments."""
    path = folder / f"{group.__name__}.json"
    path.write_text(json.dumps(group().to_dict()))
    return Kind(
        group.__name__,
        path,
        (json_changed,),
        lambda: group(**values) if isinstance(values := json.loads(path.read_text()), dict) else None,
        lambda found: (
            found is None
            or all(_alike(found.to_dict()[k], v) for k, v in json.loads(path.read_text()).items())
        ),
    )


# Input files


def _words(event: Any) -> list[str | None]:
    return [*event.values(len(SLOTS)), event.frame]


def _word(value: Any) -> str | None:
    word = "_".join(value.split()) if value is not None else ""
    return None if word in ("", "None") else word


def _concrete(folder: Path) -> Kind:
    path = folder / "damaged.concrete"
    tree = CONSTRUCTIONS["active subject and object"][1]
    path.write_bytes(packed(communication(tree, frames=((2, "Impact"),))))

    def read() -> list[Any]:
        settings, format = ExtractOptions(), FORMATS["concrete"]
        raws = list(format.read(path, settings, stop_at_first_error))
        return [extract_document(format.parse(raw, settings), settings) for raw in raws]

    def holds(found: list[Any]) -> bool:
        """The verbs are tokens, and the frames situations, as the library of Concrete itself reads them."""
        transport = TMemoryBuffer(path.read_bytes())
        tokens: set[str] = set()
        frames: set[str | None] = {None}
        for _ in found:
            comm = Communication()
            comm.read(TCompactProtocol(transport))
            for section in comm.sectionList or []:
                for sentence in section.sentenceList or []:
                    if sentence.tokenization is not None and sentence.tokenization.tokenList is not None:
                        tokens |= {(t.text or "").lower() for t in sentence.tokenization.tokenList.tokenList}
            for group in comm.situationMentionSetList or []:
                frames |= {"_".join((m.situationKind or "").split()) for m in group.mentionList or []}
        events = [event for document in found for event in document.events]
        words = {part for event in events for part in event.head.split("_")}
        parts = {part for token in tokens for part in "_".join(token.split()).split("_")}
        return words <= parts and {event.frame for event in events} <= frames

    return Kind("concrete", path, (bytes_changed,), read, holds)


def _inputs(folder: Path) -> list[Kind]:
    events = folder / "damaged.jsonl"
    write_jsonl(events, World.embedded().documents(6, seed=4))
    table = folder / "damaged.csv"
    with open(table, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["document", "verb", "subj", "obj", "mod", "frame"])
        for document in World.embedded().documents(4, seed=5):
            for event in document.events:
                writer.writerow([document.id, *_words(event)])
    typed, lexicon, vectors = folder / "typed.txt", folder / "lexicon.json", folder / "vectors.txt"
    typed.write_text("met she him\nleft he - at\n\nwon they\n")
    lexicon.write_text(json.dumps({"meet": ["Meet"], "leave": {"Departing": 2, "Quit": 0.5}, "win": "Win"}))
    vectors.write_text("3 4\nmet 1 2 3 4\nleft 0.5 -1e-3 7 8\nwon 1 1 1 1\n")
    wanted = ["met", "left", "won", "None"]

    def jsonl_holds(found: list[Any]) -> bool:
        records = [_loads(x) for x in events.read_bytes().decode("utf-8-sig").split("\n") if x.strip()]
        there = [[r] if "verb" in r and "events" not in r else r["events"] for r in records]
        expected = [
            [[_word(e.get(k)) for k in ("verb", "subj", "obj", "mod", "frame")] for e in document]
            for document in there
        ]
        return [[_words(e) for e in d.events] for d in found] == expected

    def csv_holds(found: list[Any]) -> bool:
        text = io.StringIO(table.read_bytes().decode("utf-8-sig"), newline="")
        header = text.readline()
        delimiter = max(",\t;", key=header.count)
        names = [n.strip().lower() for n in next(csv.reader([header], delimiter=delimiter))]
        rows = [r for r in csv.reader(text, delimiter=delimiter) if any(cell.strip() for cell in r)]
        verbs = [_word(row[names.index("verb")]) for row in rows]
        return [e.head for d in found for e in d.events] == verbs

    def typed_holds(found: list[Any]) -> bool:
        lines = typed.read_bytes().decode("utf-8-sig").split("\n")
        words = [line.split()[0] for line in lines if line.strip()]
        return [e.head for d in found for e in d.events] == words

    def vectors_hold(found: Any) -> bool:
        rows: dict[str, list[float]] = {}
        for line in vectors.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            parts = line.split()
            if parts and len(parts) == found.matrix.shape[1] + 1:
                rows.setdefault(parts[0].decode(errors="replace"), parts[1:])  # type: ignore[arg-type]
        for place, word in enumerate(wanted):
            row = rows.get(word, rows.get(word.lower()))
            if bool(found.found[place]) != (row is not None):
                return False
            if row is not None and not np.allclose(found.matrix[place], [float(x) for x in row], rtol=1e-6):
                return False
        return True

    def lexicon_holds(found: Any) -> bool:
        verbs = {normalize_verb(verb) for verb in _loads(lexicon.read_bytes().removeprefix(b"\xef\xbb\xbf"))}
        finite = all(
            math.isfinite(w) and w >= 0 for choices in found.frames.values() for w in choices.values()
        )
        return set(found.frames) <= verbs and finite

    return [
        _concrete(folder),
        Kind(
            "events.jsonl",
            events,
            (lines_changed, bytes_changed),
            lambda: list(read_documents(events)),
            jsonl_holds,
        ),
        Kind("events.csv", table, (bytes_changed,), lambda: list(read_documents(table)), csv_holds),
        Kind(
            "typed events",
            typed,
            (bytes_changed,),
            lambda: list(read_typed(io.BytesIO(typed.read_bytes()))),
            typed_holds,
        ),
        Kind("vectors", vectors, (bytes_changed,), lambda: read_vectors(vectors, wanted), vectors_hold),
        Kind("lexicon", lexicon, (json_changed, bytes_changed), lambda: read_lexicon(lexicon), lexicon_holds),
    ]
