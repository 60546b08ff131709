"""A corpus of single events from a corpus of documents, as frame prediction needs it.

``prepare --single-events`` makes one from a file of documents. Here words, frames and splits stay those of
the corpus, so that what is learned from its documents and from its events can be held side by side.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ssdvae.config import SPLITS, PrepareSettings, Split
from ssdvae.data.corpus import ITEMS, SCHEMA, Corpus, write_manifest
from ssdvae.data.lemmas import LEMMAS
from ssdvae.errors import UserError
from ssdvae.files import new_folder, translate_os_errors


def single_events(corpus: Corpus, out: Path) -> Corpus:
    """Every event a document by itself (M = 1). One that was made from the same corpus before is kept."""
    if out.exists():
        made = Corpus(out)
        if [source["sha256"] for source in made.manifest["sources"]] != [corpus.fingerprint]:
            raise UserError(f"{out} was made from another corpus than {corpus.folder}\nchoose another folder")
        return made
    with new_folder(out) as temporary, translate_os_errors(out, "write"):
        for name in ("vocab.json", "frames.json", LEMMAS):
            if (corpus.folder / name).is_file():
                shutil.copyfile(corpus.folder / name, temporary / name)
        counts = {split: _write_split(corpus, split, temporary / f"{split}.arrow") for split in SPLITS}
        settings = PrepareSettings.of(corpus.manifest["settings"])
        write_manifest(
            temporary,
            sources={str(corpus.folder): corpus.fingerprint},
            settings=replace(settings, single_events=True, events=1, min_events=1, cloze_items=0),
            words=corpus.manifest["words"],
            frames=corpus.manifest["frames"],
            splits=counts,
            items={split: dict.fromkeys(ITEMS, 0) for split in ("valid", "test")},
            skipped={},
            columns=corpus.columns,
        )
    return Corpus(out)


def _write_split(corpus: Corpus, split: Split, path: Path) -> dict[str, int]:
    """Returns what there was to count, as `prepare` counts it."""
    old = corpus.manifest["splits"][split]
    rows: list[pa.RecordBatch] = []
    if old["documents"]:
        documents = corpus.split(split)
        ids = [
            f"{id}#{number}"
            for id, length in zip(documents.ids.to_pylist(), documents.lengths.tolist(), strict=True)
            for number in range(1, length + 1)
        ]
        places = documents.in_order()
        ends = np.arange(len(ids) + 1, dtype=np.int32)
        columns: list[Any] = [
            pa.array(ids, pa.string()),
            pa.ListArray.from_arrays(len(corpus.slots) * ends, documents.tokens[places].reshape(-1)),
            pa.ListArray.from_arrays(ends, documents.frames[places]),
        ]
        rows.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as writer:
        for batch in rows:
            writer.write_batch(batch)
    return {**old, "documents": old["events"], "too_short": 0, "longest": min(1, old["events"])}
