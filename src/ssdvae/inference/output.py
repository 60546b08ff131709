"""Answers as records, table rows and files: JSON lines, CSV, Parquet, shards, or a pandas DataFrame.

JSON lines have one nested record per document; CSV, Parquet and DataFrames have flat rows, one per event or
candidate.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ssdvae.data.dataframes import with_answers
from ssdvae.data.events import Event, Slots
from ssdvae.data.options import StreamOptions
from ssdvae.data.readers import Skipped
from ssdvae.data.readers.jsonl import write_records
from ssdvae.data.shards import filled
from ssdvae.data.stream import Chunk, Streamed, Task, document_files, parse_document, stream
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.inference.inputs import OovStats
from ssdvae.io.errors import UserError
from ssdvae.io.files import AnyPath, atomic_write
from ssdvae.io.progress import SILENT, Progress
from ssdvae.io.records import to_json
from ssdvae.models.base import Model, fastest_device

if TYPE_CHECKING:
    import pandas

ROWS = 10_000
"""Rows of a table that are written at once; the first ones decide the types of the columns."""

DOCUMENTS = 1_000
"""Documents that a process takes at once."""

TABLES = {".csv": pyarrow.csv.CSVWriter, ".parquet": pq.ParquetWriter}
"""Writers of tables, by suffix."""

Row = dict[str, Any]


@runtime_checkable
class Answer(Protocol):
    """The answer to a question about one document."""

    def to_record(self) -> dict[str, Any]: ...

    def rows(self) -> Iterator[Row]: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A frame or a word with its probability."""

    name: str
    probability: float

    def to_record(self, kind: str) -> dict[str, Any]:
        """Return the JSON record; ``kind`` is the key of the name."""
        return {kind: self.name, "probability": round(self.probability, 6)}


Ranked = tuple[Candidate, ...]
"""Candidates, the most likely first."""


def ranked(log_p: Float[Tensor, " K"], names: Inventory, top: int) -> Ranked:
    """Return the most likely names of one distribution."""
    return ranked_everywhere(log_p[None, None], names, top)[0][0]


def suggested(vocabulary: Vocabulary, slot: int) -> Bool[Tensor, " V"]:
    """Return the words that may be suggested for a slot: those that stand there in training."""
    if (by_slot := vocabulary.by_slot) is None:
        return torch.ones(len(vocabulary), dtype=torch.bool)
    return torch.from_numpy(by_slot[slot])


def suggested_heads(log_p: Float[Tensor, "*rows V"], vocabulary: Vocabulary) -> Float[Tensor, "*rows V"]:
    """Return log p of heads, −∞ where a word is never a head in training."""
    return log_p.masked_fill(~suggested(vocabulary, 0).to(log_p.device), -torch.inf)


def ranked_everywhere(log_p: Float[Tensor, "B M K"], names: Inventory, top: int) -> list[list[Ranked]]:
    """Return the most likely names at every event of each document."""
    known = names.names
    best = log_p.topk(min(top, len(names)))
    return [
        [
            tuple([Candidate(known[number], p) for number, p in zip(*event, strict=True) if p > 0])
            for event in zip(*document, strict=True)
        ]
        for document in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    ]


def slot_columns(event: Event, slots: Slots) -> Row:
    """Return the words of an event by the name of their slot."""
    return dict(zip(slots, event.values(len(slots)), strict=True))


def answer_file(path: AnyPath) -> Path:
    """Return the path; refuse a suffix that names no format of answers."""
    if not str(path).endswith((".jsonl", ".jsonl.gz", *TABLES)):
        raise UserError(
            f"found {path} as the file to write, expected a name in .jsonl, .jsonl.gz, .csv or .parquet"
        )
    return Path(path)


def write_one_by_one(path: AnyPath, answers: Answer | Iterable[Answer]) -> int:
    """Write answers one by one and return their number. If anything fails, an old file stays as it was."""
    out, answers = answer_file(path), _each(answers)
    if out.suffix not in TABLES:
        return write_records(out, (answer.to_record() for answer in answers))
    count = 0

    def rows() -> Iterator[Row]:
        nonlocal count
        for answer in answers:
            count += 1
            yield from answer.rows()

    with atomic_write(out) as temporary:
        _write_table(temporary, rows(), TABLES[out.suffix])
    return count


def _each(answers: Answer | Iterable[Answer]) -> Iterable[Answer]:
    return [answers] if isinstance(answers, Answer) else answers


def _write_table(path: Path, rows: Iterator[Row], kind: Any) -> None:
    first = list(islice(rows, ROWS))
    # Columns without any value in the first rows hold text.
    schema = pa.schema(filled(pa.struct(pa.Table.from_pylist(first).schema)))
    if kind is pyarrow.csv.CSVWriter and any(pa.types.is_nested(field.type) for field in schema):
        raise UserError("vectors do not fit into a table of CSV\nwrite .parquet or .jsonl instead")
    with kind(path, schema) as writer:
        for part in chain([first], iter(lambda: list(islice(rows, ROWS)), [])):
            writer.write_table(pa.Table.from_pylist(part, schema))


def to_dataframe(answers: Answer | Iterable[Answer]) -> pandas.DataFrame:
    """Return the answers to any question as a DataFrame: a row for each event, candidate or transition.

    >>> ssdvae.to_dataframe(ssdvae.score("runs/first", "events.jsonl")).nlargest(10, "nats")
    >>> ssdvae.to_dataframe(ssdvae.explain("runs/first").transitions)

    Of answers about the events of a log that is a DataFrame itself, return that log with further columns,
    such as ``ssdvae:frame``.
    """
    try:
        import pandas
    except ImportError as error:
        raise UserError("a DataFrame needs pandas, which is not installed\npip install pandas") from error
    found = pandas.DataFrame.from_records([row for answer in _each(answers) for row in answer.rows()])
    asked, model = getattr(answers, "documents", None), getattr(answers, "model", None)
    columns = model.columns if model is not None and isinstance(asked, pandas.DataFrame) else None
    # Answers about cases, not events, stay a table of their own.
    by_event = {"id", "event"} <= set(found.columns) and not found.duplicated(["id", "event"]).any()
    return with_answers(asked, found, columns) if columns is not None and by_event else found


def answer_files(
    model: Model,
    folder: Path | None,
    source: Path,
    out: Path,
    ask: partial[Any],
    options: StreamOptions,
    *,
    label: str,
    format: str | None = None,
    skip_bad: Skipped | None = None,
    progress: Progress = SILENT,
    hole: str | None = None,
) -> Streamed:
    """Write the answers about the documents of a file or a folder of shards, in their order.

    ``ask(model, documents)`` gives an answer for each document. Many processes share the work; they load the
    model from its ``folder``, if it has one. ``hole`` stands for an event that is missing.
    """
    question = hashlib.sha256(repr(sorted(ask.keywords.items())).encode()).hexdigest()
    return stream(
        document_files(source, format, model.slots, model.columns),
        _Worker(model, folder, ask, hole),
        out,
        options,
        about={"question": label, "asked": question, "format": format, "model": _fingerprint(model)},
        chunk=DOCUMENTS,
        skip_bad=skip_bad,
        progress=progress,
        label=label,
        gpu=fastest_device().type != "cpu",
    )


@dataclass
class _Worker:
    """The work of one process. A model in a folder is not sent to the process, which loads it once."""

    model: Model | None
    folder: Path | None
    ask: partial[Any]
    hole: str | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "model": self.model if self.folder is None else None}

    def __call__(self, tasks: Sequence[Task]) -> Chunk:
        if self.model is None:
            assert self.folder is not None
            self.model = Model.read(self.folder).on_fastest_device()
        documents, errors = [], []
        for _, found in tasks:
            try:
                documents.append(parse_document(found, self.model.slots, self.hole))
            except UserError as error:
                errors.append(str(error))
        with _single_thread():
            answers = self.ask(self.model, documents)
            lines = tuple(to_json(answer.to_record(), ensure_ascii=False) for answer in answers)
        counts = {"documents": len(lines), "events": sum(len(document.events) for document in documents)}
        counts |= OovStats.of(self.model, documents).counts()
        return Chunk(len(tasks), lines, counts, tuple(errors))


@contextlib.contextmanager
def _single_thread() -> Iterator[None]:
    """Use one thread: sums depend on the number of threads, and answers must not."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _fingerprint(model: Model) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
