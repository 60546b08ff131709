"""FrameNet through NLTK's reader: the frames of each verb, annotated examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ssdvae.data.events import Event
from ssdvae.errors import UserError, not_installed
from ssdvae.extraction.classifier import FrameClassifier
from ssdvae.extraction.lexicon import entry

# What to say on the command line, the name in nltk.corpus, the name to download.
RELEASES = {"framenet17": ("framenet", "framenet_v17"), "framenet15": ("framenet15", "framenet_v15")}
INDEXES = ["frRelation.xml", "frameIndex.xml", "fulltextIndex.xml", "luIndex.xml", "semTypes.xml"]

# Where a noun phrase goes on after its head: "the man [in the boat]", "a boat [that sank]".
AFTER_HEAD = frozenset(
    (
        *("of", "in", "on", "at", "to", "from", "by", "with", "for", "about", "into", "over", "under"),
        *("between", "among", "against", "during", "without", "within", "than", "as", "and", "or"),
        *("that", "which", "who", "whom", "whose", "where", "when"),
    )
)


def is_framenet(name: str) -> bool:
    """Whether this names a release of FrameNet, or a folder with one in it."""
    return name == "framenet" or name in RELEASES or (Path(name) / "frameIndex.xml").is_file()


def open_framenet(name: str) -> Any:
    """NLTK's reader of a release: ``framenet17``, ``framenet15``, the newer one there is, or a folder."""
    try:
        import nltk.corpus
        import nltk.data
        from nltk.corpus.reader.framenet import FramenetCorpusReader
    except ImportError as error:
        raise not_installed("nltk", "framenet", "reading FrameNet") from error
    if name not in ("framenet", *RELEASES):
        # NLTK reads only what is in its data folders; one that the user names is made such a folder.
        folder = str(Path(name).resolve())
        if folder not in nltk.data.path:
            nltk.data.path.append(folder)
        return FramenetCorpusReader(folder, INDEXES)
    wanted = list(RELEASES) if name == "framenet" else [name]
    for release in wanted:
        reader = getattr(nltk.corpus, RELEASES[release][0])
        try:
            reader.ensure_loaded()
        except LookupError:
            continue
        return reader
    raise UserError(
        f"the corpus {name} is not installed\npython -m nltk.downloader {RELEASES[wanted[0]][1]}\n"
        "or name the folder of a FrameNet release, the one with frameIndex.xml in it"
    )


def verbs(framenet: Any) -> Iterator[tuple[str, str, Any]]:
    """Each verb with a frame that it evokes, and NLTK's record of the two (a lexical unit)."""
    for frame in framenet.frames():
        for unit in frame.lexUnit.values():
            if unit.POS == "V":
                yield entry(unit.name.rpartition(".")[0]), frame.name, unit


def train(name: str) -> FrameClassifier:
    """A classifier that has learned from the annotated examples of a release, and from its full texts."""
    framenet = open_framenet(name)
    candidates: dict[str, list[str]] = {}
    events: list[Event] = []
    for verb, frame, unit in verbs(framenet):
        candidates.setdefault(verb, []).append(frame)
        for sentence in _sentences(unit):
            event = event_of(sentence, verb, frame)
            if event is not None:
                events.append(event)
    if not events:
        raise UserError(f"{name} has no annotated examples of verbs\nis the folder lu/ of the release there?")
    classifier = FrameClassifier.fit(events, candidates)
    texts = list(full_texts(framenet))
    return classifier.adapt(texts) if texts else classifier


def full_texts(framenet: Any) -> Iterator[Event]:
    """The verbs of the texts that were annotated from beginning to end."""
    for document in framenet.docs_metadata():
        try:
            sentences = framenet.doc(document.ID).sentence
        except OSError:
            # As with lexical units: listed, but not there.
            continue
        for sentence in sentences:
            # The first set has the parts of speech.
            for annotation in sentence.annotationSet[1:]:
                verb, _, kind = annotation.get("luName", "").rpartition(".")
                event = event_of(annotation, entry(verb), annotation.frameName) if kind == "v" else None
                if event is not None:
                    yield event


def _sentences(unit: Any) -> Any:
    from nltk.corpus.reader.framenet import FramenetError

    try:
        return unit.exemplars
    except FramenetError:
        # Some lexical units are listed, but have no file.
        return []


def event_of(sentence: Any, verb: str, frame: str) -> Event | None:
    """An annotated example as an event.

    The grammatical functions give the slots, as `extract` would fill them: Ext (external argument) is the
    subject, Obj the object, and without one, the first dependent that is a prepositional phrase.
    """
    if not sentence.get("Target"):
        return None
    text = sentence.text
    form = "_".join(text[start:end] for start, end in sentence.Target)
    subj = obj = mod = None
    prepositional = {(start, end) for start, end, kind in sentence.get("PT", []) if kind.startswith("PP")}
    for start, end, function in sentence.get("GF", []):
        words = text[start:end].lower().split()
        if function == "Ext" and subj is None:
            subj = head(words)
        elif function == "Obj" and (obj is None or mod is not None):
            obj, mod = head(words), None
        elif function == "Dep" and obj is None and (start, end) in prepositional and len(words) > 1:
            obj, mod = head(words[1:]), words[0]
    return Event(entry(form), subj, obj, mod, frame=frame, lemma=verb)


def head(words: list[str]) -> str | None:
    """The head of a noun phrase, roughly: its last word before anything that goes on after a head."""
    kept: list[str] = []
    for word in words:
        if kept and word in AFTER_HEAD:
            break
        plain = re.sub(r"^\W+|\W+$", "", word)
        if plain:
            kept.append(plain)
        if kept and word.endswith((",", ";", ":")):
            break
    if len(kept) > 1 and kept[-1] in ("s", "'s"):
        kept.pop()
    return kept[-1] if kept else None
