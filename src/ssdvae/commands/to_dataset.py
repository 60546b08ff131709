"""Exchange of documents with the `datasets` library of Hugging Face."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath
from ssdvae.data.options import SPLITS, Split
from ssdvae.io.errors import UserError, not_installed

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus


def to_dataset(corpus: Corpus | AnyPath) -> Any:
    """Return a corpus as a `datasets.DatasetDict`: a row is a document, with its ``id`` and its ``events``.

    >>> ssdvae.to_dataset("corpus")["train"][0]["events"]

    An event has its words by slot, None where a slot is empty, and its ``frame``, None where it is latent.
    Words outside the vocabulary are ``<unk>``. `prepare` takes such a dataset again.
    """
    from ssdvae.data.corpus import Corpus
    from ssdvae.data.events import document_to_record

    try:
        import datasets
    except ImportError as error:
        raise not_installed("datasets", "datasets", "datasets of Hugging Face") from error
    opened = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
    text = datasets.Value("string")
    event = dict.fromkeys((*opened.slots, "frame"), text)
    features = datasets.Features({"id": text, "events": datasets.List(event)})

    def rows(split: Split) -> list[dict[str, Any]]:
        documents = opened.split(split).decode(opened.vocabulary, opened.frames)
        return [document_to_record(d, opened.slots) for d in documents]

    names = [split for split in SPLITS if opened.manifest["splits"][split]["documents"]]
    return datasets.DatasetDict(
        {split: datasets.Dataset.from_list(rows(split), features=features) for split in names}
    )


def is_dataset(source: object) -> bool:
    """Tell whether something is a dataset, or a mapping of them, without importing the library."""
    first = next(iter(source.values()), None) if isinstance(source, Mapping) else source
    return type(first).__module__.partition(".")[0] == "datasets"


@contextmanager
def dataset_files(source: Any) -> Iterator[Path | dict[Split, Path]]:
    """Yield a dataset, or each of a mapping of them by split, as a temporary file of JSON lines."""
    with tempfile.TemporaryDirectory() as folder:
        if not isinstance(source, Mapping):
            yield _write(source, Path(folder) / "dataset.jsonl")
            return
        files: dict[Split, Path] = {}
        for name, rows in source.items():
            split = "valid" if name == "validation" else name
            if split not in SPLITS:
                raise UserError(f"no split {name!r}; there are: {', '.join(SPLITS)}")
            files[split] = _write(rows, Path(folder) / f"{split}.jsonl")
        yield files


def _write(rows: Any, path: Path) -> Path:
    from ssdvae.data.readers.jsonl import write_records

    if "events" not in (names := getattr(rows, "column_names", None) or ["events"]):
        raise UserError(
            f"the dataset has no column 'events'; it has: {', '.join(names)}\n"
            "a row is a document: {'id': …, 'events': [{'verb': …, 'frame': …}]}"
        )
    write_records(path, ({"id": str(n), **row} for n, row in enumerate(rows)))
    return path
