"""The road from text to events with frames, on a short text that was written and parsed by hand."""

from __future__ import annotations

import importlib.util
import logging
from importlib.resources import as_file, files
from pathlib import Path

from ssdvae.config import AnnotateSettings, ExtractSettings
from ssdvae.data.events import Document
from ssdvae.data.readers import read_documents
from ssdvae.extraction.annotate import annotate
from ssdvae.extraction.extract import extract
from ssdvae.extraction.lexicon import read_lexicon

log = logging.getLogger(__name__)

THRESHOLD = 0.6


def extract_example(out: Path) -> Document | None:
    """Extract and annotate the example into ``out/ferry.jsonl``; its events keep their sentences.

    Without the package that reads CoNLL-U, which a bare install lacks, this says so and gives nothing.
    """
    if importlib.util.find_spec("conllu") is None:
        log.info("to see events found in text, too: pip install 'ssdvae[conllu]'")
        return None
    out.mkdir(parents=True, exist_ok=True)
    events, framed = out / "ferry.events.jsonl", out / "ferry.jsonl"
    with as_file(files("ssdvae.extraction") / "example") as example:
        extract([example / "ferry.conllu"], events, ExtractSettings(keep_text=True, jobs=1))
        lexicon = read_lexicon(example / "verbs.csv")
    annotate(events, framed, lexicon, AnnotateSettings(threshold=THRESHOLD))
    [document] = read_documents(framed)
    return document
