"""Concrete: the format of the Concretely Annotated Wikipedia, the corpus of the paper.

A file is one communication, many of them in a row, or an archive (.tar, .tar.gz, .zip) with one in each file.
Trees are those of the parse with basic dependencies; frames are the situation mentions of a FrameNet parser.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ssdvae.config import ExtractSettings
from ssdvae.errors import DataError, Malformed, not_installed
from ssdvae.extraction.parsed import Mention, Parsed, Raw
from ssdvae.extraction.tree import NO_HEAD, Token, Tree
from ssdvae.files import DAMAGE, Report, open_bytes, translate_os_errors

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
FRAME_PARSERS = ("framenet", "semafor", "fnparse")
"""Names in the tools whose situations are frames; those of others are events in other label sets."""

Places = dict[tuple[str, int], Token]
"""Each token by its tokenization and its number there."""


def check(settings: ExtractSettings) -> None:
    try:
        # On PyPI it is "concrete"; "concrete-python" is something else that is imported by the same name.
        from concrete.communication.ttypes import Communication  # noqa: F401
    except ImportError as error:
        raise not_installed("concrete", "concrete", "reading Concrete communications") from error


def read(path: Path, settings: ExtractSettings, report: Report) -> Iterator[Raw]:
    """The communications of a file, as they are stored."""
    if path.name.lower().endswith(ARCHIVES):
        # Each file of an archive is one. It need not be understood to be found, which would take long.
        for count, (name, data) in enumerate(_members(path), start=1):
            yield Raw(name, path, count, data)
        return
    with open_bytes(path) as file, _damage_explained(path):
        data = file.read()
    stream = io.BytesIO(data)
    count = 0
    while (begin := stream.tell()) < len(data):
        count += 1
        try:
            communication = _communication(stream)
        except Malformed as error:
            # Where the next one begins is not known, so the rest of the file is lost with it.
            report(DataError(path, count, error.found, error.expected, unit="communication"))
            return
        yield Raw(communication.id or f"{path.name}:{count}", path, count, data[begin : stream.tell()])


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """The files of an archive."""
    with translate_os_errors(path, "read"), _damage_explained(path):
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as packed:
                for entry in packed.infolist():
                    if not entry.is_dir():
                        yield entry.filename, packed.read(entry)
        else:
            with tarfile.open(path, "r:*") as archive:
                for member in archive:
                    if member.isfile() and (file := archive.extractfile(member)) is not None:
                        yield member.name, file.read()


@contextlib.contextmanager
def _damage_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, *DAMAGE) as error:
        hint = "the file is cut short, damaged or misnamed: make or download it again"
        found = f"data that cannot be read ({error})"
        raise DataError(path, None, found, "Concrete communications", hint) from error


def _communication(stream: io.BytesIO) -> Any:
    """The next communication of a stream."""
    from concrete.communication.ttypes import Communication
    from thrift.protocol.TCompactProtocol import TCompactProtocol
    from thrift.transport.TTransport import TFileObjectTransport

    communication = Communication()
    try:
        communication.read(TCompactProtocol(TFileObjectTransport(stream)))
    except Exception as error:  # bytes that are none of Thrift's make its reader fail in any way
        found = f"bytes that cannot be read ({type(error).__name__}: {error})"
        raise Malformed(found, "a Concrete communication") from error
    if communication.type is None and communication.id is None:
        raise Malformed("no id and no type", "a Concrete communication")
    return communication


def parse(raw: Raw, settings: ExtractSettings) -> Parsed:
    try:
        communication = _communication(io.BytesIO(raw.content))
    except Malformed as error:
        found = f"{error.found} in {raw.id}"
        raise DataError(raw.path, raw.line, found, error.expected, unit="communication") from error
    text = communication.text or ""
    trees, places = [], Places()
    for section in communication.sectionList or []:
        for sentence in section.sentenceList or []:
            if sentence.tokenization is not None:
                tree = _tree(sentence.tokenization, text)
                trees.append(tree)
                identity = sentence.tokenization.uuid.uuidString
                places |= {(identity, place): token for place, token in enumerate(tree.tokens)}
    return Parsed(communication.id or raw.id, text, tuple(trees), tuple(_mentions(communication, places)))


def _tree(tokenization: Any, text: str) -> Tree:
    tokens = tokenization.tokenList.tokenList if tokenization.tokenList else []
    places = {token.tokenIndex: place for place, token in enumerate(tokens)}
    pos, lemmas = _tags(tokenization, "POS"), _tags(tokenization, "LEMMA")
    heads, relations = [NO_HEAD] * len(tokens), [""] * len(tokens)
    for edge in _dependencies(tokenization):
        if (place := places.get(edge.dep)) is not None:
            # The root has no governor; some tools write −1.
            heads[place] = places.get(edge.gov, NO_HEAD)
            relations[place] = edge.edgeType or ""
    return Tree(
        Token(
            form=token.text or "",
            lemma=lemmas.get(token.tokenIndex, ""),
            pos=pos.get(token.tokenIndex, ""),
            head=heads[place],
            relation=relations[place],
            start=token.textSpan.start if token.textSpan else 0,
            end=token.textSpan.ending if token.textSpan else 0,
        )
        for place, token in enumerate(tokens)
    )


def _tags(tokenization: Any, kind: str) -> dict[int, str]:
    for tagging in tokenization.tokenTaggingList or []:
        if (tagging.taggingType or "").upper() == kind:
            return {t.tokenIndex: t.tag for t in tagging.taggedTokenList or [] if t.tag}
    return {}


def _dependencies(tokenization: Any) -> list[Any]:
    """The edges of the parse to read: of a tool with several, the basic one, which is a tree."""
    parses = tokenization.dependencyParseList or []
    basic = [parse for parse in parses if "basic" in parse.metadata.tool.lower()]
    return list((basic or parses)[0].dependencyList) if parses else []


def _mentions(communication: Any, places: Places) -> Iterator[Mention]:
    """The frames of the situation mentions, at the tokens that evoke them."""
    for group in communication.situationMentionSetList or []:
        if not any(name in group.metadata.tool.lower() for name in FRAME_PARSERS):
            continue
        for mention in group.mentionList or []:
            if mention.tokens is None or not mention.situationKind:
                continue
            identity = mention.tokens.tokenizationId.uuidString
            found = [
                token
                for i in mention.tokens.tokenIndexList
                if (token := places.get((identity, i))) is not None
            ]
            sure = mention.confidence is not None and 0 <= mention.confidence <= 1
            for token in found:
                yield Mention(
                    token.start, token.end, mention.situationKind, mention.confidence if sure else None
                )
