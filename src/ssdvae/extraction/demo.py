"""The road from text to events with frames, on a short text that was written and parsed by hand."""

from __future__ import annotations

import importlib.util
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ssdvae.cli.console import say
from ssdvae.config import AnnotateSettings, ExtractSettings
from ssdvae.data.events import Document
from ssdvae.data.readers import read_documents
from ssdvae.extraction.annotate import annotate
from ssdvae.extraction.extract import extract
from ssdvae.extraction.lexicon import read_lexicon

THRESHOLD = 0.6


def show_extraction(out: Path, console: Console) -> Document | None:
    """Extract and annotate the example into a folder, and show each event beside the sentence it is from.

    Without the package that reads CoNLL-U, which a bare install lacks, this says so and shows nothing.
    """
    if importlib.util.find_spec("conllu") is None:
        say("to see events found in text, too: pip install 'ssdvae[conllu]'")
        return None
    out.mkdir(parents=True, exist_ok=True)
    events, framed = out / "ferry.events.jsonl", out / "ferry.jsonl"
    with as_file(files("ssdvae.extraction") / "example") as example:
        extract([example / "ferry.conllu"], events, ExtractSettings(keep_text=True, jobs=1))
        lexicon = read_lexicon(example / "verbs.csv")
    annotate(events, framed, lexicon, AnnotateSettings(threshold=THRESHOLD))
    [document] = read_documents(framed)
    table = Table(title="Events found in a text", title_justify="left", box=None, padding=(0, 3, 0, 0))
    for heading in ("sentence", "event", "frame"):
        table.add_column(heading)
    last = -1
    for event in document.events:
        assert event.origin is not None
        sentence = "" if event.origin.sentence == last else str(event.origin.text)
        last = event.origin.sentence
        frame = f"{event.frame} ({event.probability:.2f})" if event.frame else "[dim]latent[/]"
        table.add_row(sentence, str(event), frame)
    console.print(table)
    console.print(
        f"Frames below {THRESHOLD} or of unknown verbs are latent: the model infers them. "
        f"The events are in {framed}.\n"
    )
    return document
