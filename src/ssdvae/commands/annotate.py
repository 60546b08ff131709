"""`ssdvae annotate`: annotate events with frames."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command, jsonl_path_or_shards
from ssdvae.commands.extract import log_counts
from ssdvae.data.options import AnnotateOptions, ReadOptions
from ssdvae.options import split_options, with_options

if TYPE_CHECKING:
    from ssdvae.extraction.annotate import AnnotationCounts
    from ssdvae.io.progress import Progress

log = logging.getLogger("ssdvae")


@with_options(ReadOptions, AnnotateOptions)
def annotate(
    source: AnyPath,
    out: AnyPath,
    *,
    frames: AnyPath,
    save: AnyPath | None = None,
    candidates: AnyPath | None = None,
    running_text: AnyPath | None = None,
    encoder: str | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> AnnotationCounts:
    """Write documents, of a file or a folder of shards, with the frames that an annotator predicts.

    >>> ssdvae.annotate("events.jsonl", "framed.jsonl", frames="verbs.csv", threshold=0.8)

    In a script, call it under ``if __name__ == "__main__"``, or with ``jobs=1``.

    Args:
        source: file of events in any known format, or a folder of shards
        frames: framenet17, framenet15 or a folder of FrameNet; events with frames (.jsonl) to train on; a
            lexicon (.csv, .json); or a folder that --save wrote
        out: file to write (.jsonl or .jsonl.gz), or a folder for shards (no ending)
        save: folder for the trained classifier
        candidates: lexicon of further frames, when training on events
        running_text: events of whole texts with frames, when training on events that were chosen as examples
        encoder: fine-tune a pretrained encoder instead of the small classifier: minilm (all-MiniLM-L6-v2), a
            folder, or a name on the Hugging Face hub
    """
    from ssdvae.data.readers import Skipped
    from ssdvae.extraction import annotate as extraction
    from ssdvae.io.files import check_exists
    from ssdvae.io.progress import resolve

    # Check everything before training, which takes a while.
    read, own = split_options(options, ReadOptions)
    path, reading, chosen = jsonl_path_or_shards(out), ReadOptions(**read), AnnotateOptions(**own)
    check_exists(source)
    files = {"save": save, "candidates": candidates, "running_text": running_text}
    shown = resolve(progress)
    annotator = extraction.load_annotator(
        str(frames),
        encoder=encoder,
        progress=shown,
        **{name: Path(file) if file else None for name, file in files.items()},
    )
    done = extraction.annotate(
        Path(source),
        path,
        annotator,
        chosen,
        format=reading.format,
        skip_bad=Skipped() if reading.skip_bad else None,
        progress=shown,
    )
    log_counts(done.documents, done.events, done.resumed, out)
    log.info(
        f"{done.labelled:,} events got a frame and {done.kept:,} had one; latent: {done.uncertain:,} below "
        f"the threshold, {done.unknown:,} with a verb that has no known frame"
    )
    if done.skipped is not None:
        log.info(str(done.skipped))
    return done


COMMAND = Command(
    annotate,
    examples=(
        "ssdvae annotate stories.jsonl --frames verbs.csv --out framed.jsonl",
        "ssdvae annotate stories.jsonl --frames events.jsonl --out learned.jsonl",
    ),
)
