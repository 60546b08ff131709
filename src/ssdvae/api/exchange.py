"""Exchange with other libraries: `datasets` of Hugging Face, and pandas."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.api.signatures import AnyPath
from ssdvae.config import SPLITS, Split
from ssdvae.data.readers.jsonl import write_records
from ssdvae.errors import UserError, not_installed

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus


def to_dataset(corpus: Corpus | AnyPath) -> Any:
    """A corpus as a `datasets.DatasetDict`: a row a document, with its ``id`` and its ``events``.

    >>> ssdvae.to_dataset("corpus")["train"][0]["events"]

    An event has its words by slot, None where a slot is empty, and its ``frame``, None where it is not known.
    Words outside the vocabulary are ``<unk>``. `prepare` takes such a dataset again.
    """
    from ssdvae.data.corpus import Corpus

    datasets = _datasets()
    found = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
    names = [split for split in SPLITS if found.manifest["splits"][split]["documents"]]
    return datasets.DatasetDict({split: _split(datasets, found, split) for split in names})


def _split(datasets: Any, corpus: Corpus, split: Split) -> Any:
    from ssdvae.data.events import document_to_record
    from ssdvae.data.named import to_documents

    slots = corpus.slots
    text = datasets.Value("string")
    event = dict.fromkeys((*slots, "frame"), text)
    features = datasets.Features({"id": text, "events": datasets.List(event)})
    rows = [document_to_record(document, slots) for document in to_documents(corpus, corpus.split(split))]
    return datasets.Dataset.from_list(rows, features=features)


def is_dataset(source: object) -> bool:
    """Whether something is a dataset, or a mapping of them; without importing the library."""
    first = next(iter(source.values()), None) if isinstance(source, Mapping) else source
    return type(first).__module__.partition(".")[0] == "datasets"


@contextmanager
def dataset_files(source: Any) -> Iterator[Path | dict[Split, Path]]:
    """A dataset, or a mapping of them by split, as files of JSON lines for as long as they are needed."""
    with tempfile.TemporaryDirectory() as folder:
        if not isinstance(source, Mapping):
            yield _written(source, Path(folder) / "dataset.jsonl")
            return
        names = {"validation": "valid"}
        files: dict[Split, Path] = {}
        for given, rows in source.items():
            split = names.get(given, given)
            if split not in SPLITS:
                raise UserError(f"no split {given!r}; there are: {', '.join(SPLITS)}")
            files[split] = _written(rows, Path(folder) / f"{split}.jsonl")
        yield files


def _written(rows: Any, path: Path) -> Path:
    if "events" not in (names := getattr(rows, "column_names", None) or ["events"]):
        raise UserError(
            f"the dataset has no column 'events'; it has: {', '.join(names)}\n"
            "a row is a document: {'id': …, 'events': [{'verb': …, 'frame': …}]}"
        )
    write_records(path, ({"id": str(n), **row} for n, row in enumerate(rows)))
    return path


def _datasets() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise not_installed("datasets", "datasets", "datasets of Hugging Face") from error
    return datasets
