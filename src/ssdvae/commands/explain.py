"""`ssdvae explain`: show what a model learned. Also `swap`, what parts of it are worth, and `draw`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.analysis.options import ExplainOptions
from ssdvae.commands import AnyPath, Command
from ssdvae.commands.console import Column, TableText, say, show, table_of
from ssdvae.commands.questions import write_answers
from ssdvae.data.options import Split
from ssdvae.io.errors import UserError
from ssdvae.io.records import to_json
from ssdvae.options import names_of_text, with_options

if TYPE_CHECKING:
    from ssdvae.analysis.explain import Explanation
    from ssdvae.analysis.swap import Ablation
    from ssdvae.analysis.transitions import Transitions
    from ssdvae.commands.coerce import AnyModel
    from ssdvae.data.corpus import Corpus
    from ssdvae.evaluation.task import Figure
    from ssdvae.inference.embedding import SimilarEvent
    from ssdvae.inference.forecast import Forecast
    from ssdvae.inference.generation import Script
    from ssdvae.inference.infill import FilledDocument
    from ssdvae.inference.posterior import InferredDocument
    from ssdvae.inference.surprisal import ScoredDocument
    from ssdvae.io.progress import Progress
    from ssdvae.io.run import Run
    from ssdvae.report.pictures import Picture

log = logging.getLogger("ssdvae")


@with_options(ExplainOptions)
def explain(
    run: AnyModel,
    *,
    corpus: Corpus | AnyPath | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> Explanation:
    """Explain what a model learned from one split of a corpus: words, frames and which frames follow which.

    >>> ssdvae.explain("runs/first").words.frames_of("arrested")
    >>> ssdvae.explain("runs/first", before="Arrest").before.strongest()
    >>> ssdvae.explain("runs/first", compare="groups.csv").comparison.found()

    By default the corpus is that of the run. A packed model is explained by the documents that were packed
    with it, if no corpus is named.
    """
    from ssdvae.analysis import explain as analysis
    from ssdvae.commands.coerce import as_corpus, as_model, folder_of, own_corpus
    from ssdvae.evaluation.measure import in_numbers_of, shown_documents
    from ssdvae.io.progress import resolve
    from ssdvae.models.base import Model

    chosen, model = ExplainOptions(**options), as_model(run)
    found = own_corpus(run) if corpus is None else in_numbers_of(model, as_corpus(corpus))
    folder = None if isinstance(run, Model) else folder_of(run)
    documents = shown_documents(model, found, folder, chosen.split)
    if found is None:
        log.info(
            f"{run} has no corpus of its own: it is shown on the {len(documents)} documents that were packed "
            "with it; with --min-count 1 also on what is rare in them"
        )
    groups = None if chosen.compare is None else _groups(chosen.compare, found, documents.ids.to_pylist())
    with resolve(progress).task("reading", len(documents)) as advance:
        return analysis.explain(model, documents, chosen, advance, groups)


def _groups(source: str, corpus: Corpus | None, ids: Sequence[str]) -> list[str | None]:
    """Return the group of each document, from a file or a column; log how many have none."""
    from ssdvae.analysis.compare import groups_of_sources, read_groups

    if Path(source).suffix:
        known = read_groups(source)
    elif corpus is None:
        raise UserError(f"--compare: found {source!r}, expected a file of groups, since there is no corpus")
    else:
        sources = [(Path(source["path"]), source["sha256"]) for source in corpus.manifest["sources"]]
        known = groups_of_sources(sources, source)
    groups = [known.get(id) for id in ids]
    if without := groups.count(None):
        log.info(f"{without:,} of {len(groups):,} documents are in no group of {source}")
    return groups


def swap(
    run: AnyModel,
    parts: str | Sequence[str],
    *,
    corpus: Corpus | AnyPath | None = None,
    split: Split = "valid",
) -> list[Ablation]:
    """Measure what parts of a model are worth: perplexity and cloze when each is the mean, or another's.

    >>> ssdvae.swap("runs/first", "frames, state")

    ``parts`` are some of document-vector, frames and state. The first row is the model as it is.
    """
    from ssdvae.analysis.swap import swap_parts
    from ssdvae.commands.coerce import as_model, corpus_of
    from ssdvae.evaluation.measure import flat, in_numbers_of, measure
    from ssdvae.evaluation.options import EvaluateOptions
    from ssdvae.io.scores import CONDITIONS_ON_TARGETS
    from ssdvae.models.base import as_language_model

    names = names_of_text(parts) if isinstance(parts, str) else list(parts)
    found, model = corpus_of(run, corpus), as_model(run)
    found = found if corpus is None else in_numbers_of(model, found)
    options = EvaluateOptions(split=split, tasks="perplexity,cloze", bound_samples=1)
    shown = ("ppl", CONDITIONS_ON_TARGETS, "cloze_nll", "cloze_pmi")

    def figures() -> dict[str, float]:
        scores = flat(measure(model, "", found, options))
        return {name: scores[name] for name in shown if scores.get(name) is not None}

    return list(swap_parts(as_language_model(model), names, figures))


def draw(
    subject: Run
    | AnyPath
    | Sequence[Run | AnyPath]
    | Explanation
    | Transitions
    | Forecast
    | InferredDocument
    | ScoredDocument
    | FilledDocument
    | Sequence[SimilarEvent]
    | Script,
) -> Picture:
    """Draw runs, what a model has learned, or an answer; a notebook shows it, ``save`` writes it as SVG.

    >>> ssdvae.draw(["runs/first", "runs/second"])  # their learning curves
    >>> ssdvae.draw(ssdvae.explain("runs/first"))  # which frames follow which
    >>> ssdvae.draw(next(ssdvae.next_events("runs/first", [["arrested police suspect"]]))).save("next.svg")

    An answer of `infer` or a script of `generate` is drawn as the frame of each event, one of `score` as the
    surprisal of each word, one of `next` or `fill` as its candidates, and that of `similar` as cosines.
    """
    from ssdvae.analysis.explain import Explanation
    from ssdvae.analysis.transitions import Transitions
    from ssdvae.inference.embedding import SimilarEvent
    from ssdvae.inference.forecast import Forecast
    from ssdvae.inference.generation import Script
    from ssdvae.inference.infill import FilledDocument
    from ssdvae.inference.posterior import InferredDocument
    from ssdvae.inference.surprisal import ScoredDocument
    from ssdvae.io.run import Run
    from ssdvae.report import pictures

    match subject:
        case Explanation():
            drawing = pictures.of_transitions(subject.transitions)
        case Transitions():
            drawing = pictures.of_transitions(subject)
        case Forecast():
            drawing = pictures.of_next(subject)
        case InferredDocument():
            drawing = pictures.of_inferred(subject)
        case ScoredDocument():
            drawing = pictures.of_scored(subject)
        case FilledDocument():
            drawing = pictures.of_filled(subject)
        case Script():
            drawing = pictures.of_script(subject)
        case Run() | str() | Path():
            return draw([subject])
        case _:
            found = [one for one in subject if isinstance(one, SimilarEvent)]
            runs = [one for one in subject if not isinstance(one, SimilarEvent)]
            folders = [run.folder if isinstance(run, Run) else Path(run) for run in runs]
            drawing = pictures.of_similar(found) if found else pictures.of_runs(folders)
    return pictures.Picture(drawing)


def tables(record: Mapping[str, Any]) -> Iterator[TableText]:
    """Yield the tables of ``Explanation.to_record``."""
    if "words" in record:
        found = record["words"]
        title = "What a word means: p(frame | word), averaged over its events"
        yield _top_table(title, "word", found["frames_given_words"], "frames")
        title = "How a frame is expressed: p(word | frame)"
        yield _top_table(title, "frame", found["words_given_frames"], "words")
    if "before" in record:
        yield _before_table(record["before"])
    if "compare" in record:
        yield _compare_table(record["compare"])
    if "clusters" in record:
        yield from _cluster_tables(record["clusters"])
    if "attention" in record:
        yield _attention_table(record["attention"])
    for order, links in record.get("transitions", {}).items():
        yield table_of(
            f"Which frame follows which, by {order}",
            links,
            ("frame", "{first}"),
            ("next frame", "{second}"),
            ("times", "{count:.1f}"),
            ("probability", "{probability:.0%}"),
            ("lift", "{lift:.1f}"),
        )


def _top_table(title: str, key: str, by_name: Mapping[str, Any], part: str) -> TableText:
    width = max((len(one[part]) for one in by_name.values()), default=0)

    def cell(place: int, one: Mapping[str, Any]) -> str:
        return "{} {:.0%}".format(*one[part][place]) if place < len(one[part]) else ""

    ranks: list[Column] = [(str(place + 1), partial(cell, place)) for place in range(width)]
    records = [{"name": name, **one} for name, one in by_name.items()]
    return table_of(title, records, (key, "{name}"), ("events", "{times:,.0f}"), *ranks)


def _cluster_tables(found: Mapping[str, Any]) -> Iterator[TableText]:
    for title, key, by_name in (
        ("Frames given words (β_enc)", "word", found["frames_given_tokens"]),
        ("Words given frames (β_dec)", "frame", found["tokens_given_frames"]),
    ):
        width = max(map(len, by_name.values()), default=0)
        rows = [[name, *(best for best, _ in top)] for name, top in by_name.items()]
        yield title, [key, *map(str, range(1, width + 1))], rows
    if found["purity"] is not None:
        yield table_of("Purity of clusters", [found], ("purity", "{purity:.3f}"), ("nmi", "{nmi:.3f}"))


def _attention_table(found: Mapping[str, Any]) -> TableText:
    def own(slot: str, look: Mapping[str, Any]) -> str:
        return f"{look['own'][slot]:.0%}"

    return table_of(
        "Attention of each frame, and its entropy in nats",
        [{**look, "frame": frame, "elsewhere": 1 - look["own_event"]} for frame, look in found.items()],
        ("frame", "{frame}"),
        ("events", "{events:,}"),
        *((f"own {slot}", partial(own, slot)) for slot in found["all frames"]["own"]),
        ("elsewhere", "{elsewhere:.0%}"),
        ("heads", "{heads:.0%}"),
        ("entropy", "{entropy:.2f}"),
        ("of", "{most_entropy:.2f}"),
    )


def _before_table(found: Mapping[str, Any]) -> TableText:
    def lift(distance: str, link: Mapping[str, Any]) -> str:
        return f"{link['by_distance'][distance][1]:.1f}"

    links = found["preceded_by"]
    distances = dict.fromkeys(name for link in links for name in link["by_distance"])
    return table_of(
        f"What comes before {found['frame']}, at any distance",
        links,
        ("frame", "{frame}"),
        ("times", "{count:.1f}"),
        ("lift", "{lift:.1f}"),
        ("PMI", "{pmi:.2f}"),
        *((f"lift {name} before", partial(lift, name)) for name in distances),
    )


def _compare_table(found: Mapping[str, Any]) -> TableText:
    sizes = ", ".join(f"{name} ({count:,} documents)" for name, count in found["groups"].items())
    return table_of(
        f"Differences between {sizes}: {found['found']:,} with p ≤ 0.05, corrected for all "
        f"{found['tests']:,} tests by {found['permutations']:,} permutations",
        found["differences"],
        ("group", "{group}"),
        ("kind", "{kind}"),
        ("more often", "{name}"),
        ("times", "{count:,.0f}"),
        ("rate", "{rate:.2%}"),
        ("elsewhere", "{rate_elsewhere:.2%}"),
        ("ratio", "{ratio:.1f}"),
        ("z", "{z:.1f}"),
        ("p", "{p:.3f}"),
    )


def swap_table(found: Sequence[Ablation]) -> TableText:
    """Return the figures of the model as it is, and with each part swapped."""
    from ssdvae.evaluation.task import find_figure

    def text(figure: Figure, row: Ablation) -> str:
        return figure.headline_text(row.figures[figure.name]) + figure.mark(row.figures)

    shown = [figure for name in found[0].figures if (figure := find_figure(name)) is not None]
    ways = {None: "", "mean": "the mean", "other": "another document's"}
    return table_of(
        "Figures when a part is swapped",
        found,
        ("part", lambda row: row.part or "none"),
        ("swapped for", lambda row: ways[row.way]),
        *((figure.name, partial(text, figure)) for figure in shown),
    )


_swap = swap


@with_options(ExplainOptions)
def main(
    run: str,
    *,
    corpus: Path | None = None,
    swap: str | None = None,
    transitions: Path | None = None,
    json: bool = False,
    **options: Any,
) -> None:
    """Show what a model learned: words, frames, which frames follow which.

    Args:
        run: run folder, or the name of a model
        corpus: corpus folder; by default that of the run, or scripts of the model
        swap: show only what parts of the model are worth: perplexity and cloze when each is the mean, or that
            of another document; some of document-vector, frames, state, comma-separated
        transitions: file to write, .csv, .parquet or .jsonl: which frame follows which, how often and with
            what probability; all that are expected at least --min-count times
        json: print one JSON object and nothing else
    """
    if swap is not None:
        swapped = _swap(run, swap, corpus=corpus, split=options.get("split", "valid"))
        if json:
            print(to_json([asdict(row) for row in swapped]))
        else:
            show([swap_table(swapped)])
    elif transitions is not None:
        # Explained when the first answer is asked for: a wrong name of the file is refused before.
        found = (explain(name, corpus=corpus, **options).transitions for name in [run])
        write_answers(found, transitions)
        say(f"wrote {transitions}")
    else:
        record = explain(run, corpus=corpus, **options).to_record(ExplainOptions(**options))
        if json:
            print(to_json(record))
        else:
            show(tables(record))


COMMAND = Command(
    main,
    examples=(
        "ssdvae explain runs/first",
        "ssdvae explain runs/first --words told,left --frames Arriving --json",
    ),
)
