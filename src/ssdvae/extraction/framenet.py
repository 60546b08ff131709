"""FrameNet: the frames of each verb, and annotated verbs as events.

A release is a folder of XML files. ``luIndex.xml`` lists the lexical units: a word in a frame.
``lu/lu11.xml`` has the annotated examples of unit 11, and ``fulltext/`` has texts that are annotated from
beginning to end.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ssdvae.data.events import Document, Event, Origin
from ssdvae.extraction.classifier import normalize_verb
from ssdvae.io.errors import DataError, UserError, not_installed, shorten
from ssdvae.io.files import write_text
from ssdvae.io.records import Record, read_json, to_json

RELEASES = {"framenet17": "framenet_v17", "framenet15": "framenet_v15"}
"""Releases by name, the newest first, and the folder in which NLTK's downloader puts each."""

NAMESPACE = "{http://framenet.icsi.berkeley.edu}"

# Where a noun phrase continues after its head: "the man [in the boat]", "a boat [that sank]".
AFTER_HEAD = frozenset(
    (
        *("of", "in", "on", "at", "to", "from", "by", "with", "for", "about", "into", "over", "under"),
        *("between", "among", "against", "during", "without", "within", "than", "as", "and", "or"),
        *("that", "which", "who", "whom", "whose", "where", "when"),
    )
)


class VerbUnit(NamedTuple):
    """A verb, a frame that it evokes, and the file with examples of it."""

    verb: str
    frame: str
    path: Path


def is_framenet(name: str) -> bool:
    """Tell whether this names a release of FrameNet or is the folder of one."""
    return name == "framenet" or name in RELEASES or (Path(name) / "frameIndex.xml").is_file()


def find_framenet(name: str) -> Path:
    """Return the folder of a release: framenet17, framenet15, framenet (the newer of them), or the folder."""
    if name != "framenet" and name not in RELEASES:
        return Path(name)
    wanted = list(RELEASES.values()) if name == "framenet" else [RELEASES[name]]
    for release in wanted:
        for folder in _nltk_folders():
            if (folder / "corpora" / release / "frameIndex.xml").is_file():
                return folder / "corpora" / release
    raise UserError(
        f"{name} is not in a data folder of NLTK\n"
        f"download it: pip install nltk && python -m nltk.downloader {wanted[0]}\n"
        "or ask for it at https://framenet.icsi.berkeley.edu and name its folder, which has frameIndex.xml"
    )


def _nltk_folders() -> list[Path]:
    """Return the folders in which NLTK looks for its data."""
    named = [Path(folder) for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    own = [Path(sys.prefix, inner) for inner in ("", "share", "lib")]
    shared = [Path("/usr", inner) for inner in ("share", "local/share", "lib", "local/lib")]
    return [*named, *(folder / "nltk_data" for folder in (Path.home(), *own, *shared))]


def read_framenet(name: str) -> tuple[list[Event], list[Document], dict[str, list[str]]]:
    """Return the annotated examples of a release, its full texts, and the frames of each verb."""
    folder = find_framenet(name)
    candidates: dict[str, list[str]] = {}
    events: list[Event] = []
    for unit in verb_units(folder):
        candidates.setdefault(unit.verb, []).append(unit.frame)
        events += examples(unit)
    if not events:
        raise UserError(f"{name} has no annotated examples of verbs\nis the folder lu/ of the release there?")
    return events, list(full_texts(folder)), candidates


class FrameDefinition(Record):
    """The definition of a frame and of its core elements, and the names of its other elements."""

    text: str
    core: dict[str, str]
    others: list[str]


class Definitions(Record):
    """The meanings of frames, and their source."""

    source: str
    frames: dict[str, FrameDefinition]

    @classmethod
    def of_framenet(cls, name: str, frames: Iterable[str]) -> Definitions:
        """Return the definitions of those of the frames that a release has."""
        folder = find_framenet(name)
        known = {
            frame.get("name") for frame in _read_xml(folder / "frameIndex.xml").iter(f"{NAMESPACE}frame")
        }
        return cls(
            source=f"FrameNet ({folder.name}), International Computer Science Institute, Berkeley, CC BY 3.0",
            frames={
                frame: _definition(_read_xml(folder / "frame" / f"{frame}.xml"))
                for frame in sorted(known.intersection(frames))
            },
        )

    @classmethod
    def read(cls, path: Path) -> Definitions | None:
        """Return the definitions of a file; None if there is none."""
        return read_json(path, cls, "definitions of frames", "remove the file") if path.is_file() else None

    def write(self, path: Path) -> None:
        write_text(path, to_json(self.model_dump(), ensure_ascii=False) + "\n")


def _definition(frame: Any) -> FrameDefinition:
    elements = list(frame.iterchildren(f"{NAMESPACE}FE"))
    core = {e.get("name"): _plain(e) for e in elements if e.get("coreType", "").startswith("Core")}
    return FrameDefinition(
        text=_plain(frame), core=core, others=[n for e in elements if (n := e.get("name")) not in core]
    )


def _plain(element: Any) -> str:
    """Return the definition of an element without its examples and marks."""
    text = element.findtext(f"{NAMESPACE}definition") or ""
    return " ".join(re.sub(r"<[^>]*>", "", re.sub(r"<ex>.*?(</ex>|$)", " ", text, flags=re.DOTALL)).split())


def verb_units(folder: Path) -> Iterator[VerbUnit]:
    """Yield each verb with each frame that it evokes."""
    for unit in _read_xml(folder / "luIndex.xml").iter(f"{NAMESPACE}lu"):
        name, _, part_of_speech = unit.get("name", "").rpartition(".")
        if part_of_speech == "v":
            path = folder / "lu" / f"lu{unit.get('ID')}.xml"
            yield VerbUnit(normalize_verb(name), unit.get("frameName", ""), path)


def examples(unit: VerbUnit) -> Iterator[Event]:
    """Yield the annotated examples of a verb in a frame. Some units have no file."""
    if unit.path.is_file():
        for text, _, spans in _annotations(unit.path):
            if (event := to_event(text, spans, unit.verb, unit.frame)) is not None:
                yield event


def full_texts(folder: Path) -> Iterator[Document]:
    """Yield the texts that are annotated from beginning to end, with their verbs."""
    for path in sorted((folder / "fulltext").glob("*.xml")):
        events = []
        for text, attributes, spans in _annotations(path):
            verb, _, part_of_speech = attributes.get("luName", "").rpartition(".")
            frame = attributes.get("frameName")
            event = to_event(text, spans, normalize_verb(verb), frame) if frame else None
            if part_of_speech == "v" and event is not None:
                events.append(event)
        yield Document(path.stem, tuple(events))


Span = tuple[int, int, str]
"""The characters [start, end) of a sentence, and their label."""

Spans = dict[str, list[Span]]
"""The spans of the layers Target, GF (grammatical function) and PT (phrase type)."""


def _annotations(path: Path) -> Iterator[tuple[str, Mapping[str, str], Spans]]:
    """Yield the annotated targets of a file: text of the sentence, attributes of the annotation, spans."""
    for sentence in _read_xml(path).iter(f"{NAMESPACE}sentence"):
        text = sentence.findtext(f"{NAMESPACE}text") or ""
        # The first set has the parts of speech.
        for annotation in list(sentence.iterchildren(f"{NAMESPACE}annotationSet"))[1:]:
            if annotation.get("cxnID") is None:  # not of a construction
                yield text, annotation.attrib, _spans(path, annotation)


def _read_xml(path: Path) -> Any:
    """Return the root of a file; no entity of it is expanded and nothing is fetched."""
    try:
        from lxml import etree
    except ImportError as error:
        raise not_installed("lxml", "framenet", "reading FrameNet") from error
    try:
        return etree.parse(path, etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    except (etree.XMLSyntaxError, OSError) as error:
        line = getattr(error, "lineno", None)
        raise DataError(path, line, str(error), "a file of FrameNet in XML") from error


def _spans(path: Path, annotation: Any) -> Spans:
    found: Spans = {}
    for layer in annotation.iterchildren(f"{NAMESPACE}layer"):
        name = layer.get("name")
        if name not in ("Target", "GF", "PT") or found.get(name):
            continue
        found[name] = []
        for label in layer.iterchildren(f"{NAMESPACE}label"):
            start, end = label.get("start"), label.get("end")
            if start is None:
                continue  # an argument that is not expressed
            try:
                found[name].append((int(start), int(end) + 1, label.get("name", "")))
            except (TypeError, ValueError) as error:
                place = f"{shorten(start)} to {shorten(end)}"
                raise DataError(path, label.sourceline, place, "the characters of a label") from error
        found[name].sort()
    return found


def to_event(text: str, spans: Spans, verb: str, frame: str) -> Event | None:
    """Return an annotated example as an event with its sentence; None without a target.

    The grammatical functions give the slots, as `extract` would fill them: Ext (external argument) is the
    subject, Obj the object, and without one, the first dependent that is a prepositional phrase.
    """
    if not spans.get("Target"):
        return None
    form = "_".join(text[start:end] for start, end, _ in spans["Target"])
    subj = obj = mod = None
    prepositional = {(start, end) for start, end, kind in spans.get("PT", []) if kind.startswith("PP")}
    for start, end, function in spans.get("GF", []):
        words = text[start:end].lower().split()
        if function == "Ext" and subj is None:
            subj = head_of_phrase(words)
        elif function == "Obj" and (obj is None or mod is not None):
            obj, mod = head_of_phrase(words), None
        elif function == "Dep" and obj is None and (start, end) in prepositional and len(words) > 1:
            obj, mod = head_of_phrase(words[1:]), words[0]
    start, end, _ = spans["Target"][0]
    origin = Origin(0, start, end, text=text, text_start=0)
    return Event(normalize_verb(form), subj, obj, mod, frame=frame, lemma=verb, origin=origin)


def head_of_phrase(words: list[str]) -> str | None:
    """Return the head of a noun phrase, roughly: its last word before anything that follows a head."""
    phrase: list[str] = []
    for word in words:
        if phrase and word in AFTER_HEAD:
            break
        plain = re.sub(r"^\W+|\W+$", "", word)
        if plain:
            phrase.append(plain)
        if phrase and word.endswith((",", ";", ":")):
            break
    if len(phrase) > 1 and phrase[-1] in ("s", "'s"):
        phrase.pop()
    return phrase[-1] if phrase else None
