"""`ssdvae prepare`: make a corpus folder from documents."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command
from ssdvae.commands.console import say
from ssdvae.data.options import SPLITS, EngineOptions, PrepareOptions, ReadOptions, Split
from ssdvae.io.errors import UserError
from ssdvae.options import split_options, with_options

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.io.progress import Progress


@with_options(ReadOptions, PrepareOptions, EngineOptions)
def prepare(
    sources: AnyPath | Mapping[str, Any] | Any,
    out: AnyPath,
    *,
    preset: str | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> Corpus:
    """Make a corpus folder from one file of documents, or from ``{"train": …, "valid": …, "test": …}``.

    >>> corpus = ssdvae.prepare("events.jsonl", "corpus", preset="tiny", events=5)

    A folder of shards may stand for a file, and so may a `datasets.Dataset`, of which a row is a document; a
    `datasets.DatasetDict` has one for each split. A row of a pandas DataFrame is an event: columns with the
    names of XES (``case:concept:name``, ``concept:name``, ``time:timestamp``) need not be named.

    ``preset`` is a named size (tiny, small, paper) that gives defaults to the other options. Several
    processes share the work on JSON lines and shards: in a script, call it under
    ``if __name__ == "__main__"``, or with ``jobs=1``.
    """
    from ssdvae.commands.to_dataset import dataset_files, is_dataset
    from ssdvae.data import prepare as preparing
    from ssdvae.data.dataframes import dataframe_file, is_dataframe
    from ssdvae.io.progress import resolve

    if is_dataset(sources):
        with dataset_files(sources) as files:  # which are read several times
            return prepare(files, out, preset=preset, progress=progress, **{**options, "format": "jsonl"})
    named = dict(sources) if isinstance(sources, Mapping) else {"log": sources}
    if any(map(is_dataframe, named.values())):
        with ExitStack() as held:
            for name, table in named.items():
                named[name] = (
                    held.enter_context(dataframe_file(table, name)) if is_dataframe(table) else table
                )
            logs: Any = named if isinstance(sources, Mapping) else named["log"]
            return prepare(logs, out, preset=preset, progress=progress, **options)
    engine, own = split_options(options, EngineOptions)
    read, own = split_options(own, ReadOptions)
    paths: Any = (
        {split: Path(path) for split, path in sources.items()}
        if isinstance(sources, Mapping)
        else Path(sources)
    )
    return preparing.prepare(
        paths,
        Path(out),
        PrepareOptions.sized(preset, **own),
        **ReadOptions(**read).values(),
        engine=EngineOptions(**engine),
        progress=resolve(progress),
    )


@with_options(ReadOptions, PrepareOptions, EngineOptions)
def main(
    source: Path | None = None,
    *,
    train: Path | None = None,
    valid: Path | None = None,
    test: Path | None = None,
    out: Path,
    preset: str | None = None,
    **options: Any,
) -> Corpus:
    """Make a corpus folder from documents.

    Args:
        source: one file, or a folder of shards, to be split by document id
        train: or one file for each split: that of the training split
        valid: the file of the validation split; by default a share of the training file
        test: the file of the test split
        out: corpus folder to write
        preset: named size that gives defaults to the options below: tiny, small or paper
    """
    files: dict[Split, Path | None] = {"train": train, "valid": valid, "test": test}
    given = {split: path for split, path in files.items() if path is not None}
    if (source is None) == (not given):
        raise UserError("name one file to be split, or --train and --test (and perhaps --valid)")
    return prepare(source or given, out, preset=preset, **options)


def show(corpus: Corpus) -> None:
    """Print the counts of a new corpus, and what was left out of it."""
    manifest, options = corpus.manifest, PrepareOptions.of(corpus.manifest["settings"])
    for split in SPLITS:
        _show_split(split, manifest["splits"][split], options)
    for split, count in manifest["cloze"].items() if options.cloze_items else ():
        few = f"not {options.cloze_options} different documents have {options.cloze_events} usable events"
        say(f"{split}: {count:,} cloze items" if count else f"{split}: no cloze items, since {few}")
        further = {kind: manifest[kind][split] for kind in ("masked", "order") if manifest[kind][split]}
        if further:
            say(f"{split}: " + ", ".join(f"{number:,} {kind} items" for kind, number in further.items()))
    for path, count in manifest["skipped"].items():
        if count:
            say(f"skipped {count:,} malformed lines of {path}")
    say(f"wrote {corpus.folder}: {manifest['words']:,} words, {manifest['frames']:,} frames")


def _show_split(split: Split, counts: Mapping[str, int], options: PrepareOptions) -> None:
    say(
        f"{split}: {counts['documents']:,} documents, {counts['events']:,} events, "
        f"{counts['unknown_words']:,} unknown words, {counts['too_short']:,} documents too short"
    )
    if counts["one_event"] and not options.single_events:
        say(f"  {counts['one_event']:,} of them have one event, with nothing before or after it")
    if counts["dropped_events"]:
        say(f"  {counts['dropped_events']:,} events without a known frame dropped")
    if counts["cut_events"]:
        share = counts["cut_events"] / (counts["events"] + counts["cut_events"])
        beyond = f"{counts['cut_events']:,} events ({share:.0%}) after the first {options.events}"
        say(f"  {beyond} of their documents left out (without --events they are kept)")
    if not counts["documents"]:
        say(f"  nothing to {'train' if split == 'train' else 'measure'} on: give a file for --{split}")


COMMAND = Command(
    main,
    show,
    examples=(
        "ssdvae prepare events.jsonl --out corpus --preset tiny",
        "ssdvae prepare tickets.csv --case ticket --head action --label stage --out log",
    ),
)
