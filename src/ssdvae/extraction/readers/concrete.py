"""Concrete: the format of the Concretely Annotated Wikipedia, the corpus of the paper.

A file is one communication, several in a row, or an archive (.tar, .tar.gz, .zip) with one in each file.
Trees are the basic dependencies; frames are the situation mentions of a FrameNet parser.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.tree import NO_HEAD, FrameMention, ParsedDocument, RawDocument, Token, Tree
from ssdvae.io.errors import DataError, Malformed, not_installed
from ssdvae.io.files import DAMAGE, Report, open_bytes, translate_os_errors
from ssdvae.io.limits import WHOLE, read_whole

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
FRAME_PARSERS = ("framenet", "semafor", "fnparse")
"""Names of tools whose situations are frames; other tools have other label sets."""

BYTES_PER_PART = 16
"""The approximate size of a part of a communication (a token, a span, an edge) in a file."""

TokenIndex = dict[tuple[str, int], Token]
"""Each token by its tokenization and its number there."""


def check(options: ExtractOptions) -> None:
    """Raise if the package that reads Concrete is missing."""
    try:
        # On PyPI it is "concrete"; "concrete-python" is something else that is imported by the same name.
        from concrete.communication.ttypes import Communication  # noqa: F401
    except ImportError as error:
        raise not_installed("concrete", "concrete", "reading Concrete communications") from error


def read(path: Path, options: ExtractOptions, report: Report) -> Iterator[RawDocument]:
    """Yield the communications of a file, as they are stored."""
    if path.name.lower().endswith(ARCHIVES):
        # Each file of an archive is one, and need not be parsed here.
        for count, (name, data) in enumerate(_members(path), start=1):
            yield RawDocument(name, path, count, data)
        return
    with translate_os_errors(path, "read"), open_bytes(path) as file, _damage_explained(path):
        for count in itertools.count(1):
            stream = _Bounded(file, path, count)
            if not stream.left():
                return
            try:
                communication = _communication(stream)
            except Malformed as error:
                # Where the next one begins is not known, so the rest of the file is lost with it.
                report(DataError(path, count, error.found, error.expected, unit="communication"))
                return
            except DataError as error:
                if error.line is None:
                    raise  # about the file as a whole
                report(error)
                return
            yield RawDocument(communication.id or f"{path.name}:{count}", path, count, bytes(stream.data))


class _Bounded:
    """The bytes of one communication, stored as they are read, up to a limit."""

    def __init__(self, file: IO[bytes], path: Path, count: int) -> None:
        self.file, self.path, self.count = file, path, count
        self.data = bytearray()
        self.ahead = b""
        self.most = WHOLE.bytes

    def left(self) -> bool:
        """Tell whether there is more in the file."""
        self.ahead = self.ahead or self.file.read(1)
        return bool(self.ahead)

    def read(self, size: int) -> bytes:
        # A damaged length may be huge: refuse it before reading.
        if len(self.data) + size > self.most:
            raise WHOLE.error(self.path, self.count, "data", unit="communication")
        found, self.ahead = self.ahead[:size], self.ahead[size:]
        if len(found) < size:
            try:
                found += self.file.read(size - len(found))
            except DAMAGE as error:
                raise _damage_error(self.path, error) from error
        self.data += found
        return found


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive."""
    with translate_os_errors(path, "read"), _damage_explained(path):
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as packed:
                for entry in packed.infolist():
                    if not entry.is_dir():
                        with packed.open(entry) as unpacked:
                            yield entry.filename, read_whole(unpacked, path, f"the file {entry.filename!r}")
        else:
            with tarfile.open(path, "r:*") as archive:
                for member in archive:
                    if member.isfile() and (file := archive.extractfile(member)) is not None:
                        yield member.name, read_whole(file, path, f"the file {member.name!r}")


@contextlib.contextmanager
def _damage_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, *DAMAGE) as error:
        raise _damage_error(path, error) from error


def _damage_error(path: Path, error: Exception) -> DataError:
    hint = "the file is cut short, damaged or misnamed: make or download it again"
    found = f"data that cannot be read ({str(error) or type(error).__name__})"
    return DataError(path, None, found, "Concrete communications", hint)


def _communication(stream: io.BytesIO | _Bounded) -> Any:
    """Return the next communication of a stream."""
    from concrete.communication.ttypes import Communication
    from thrift.protocol.TCompactProtocol import TCompactProtocol
    from thrift.transport.TTransport import TFileObjectTransport

    class Counting(TCompactProtocol):  # type: ignore[misc]  # thrift has no types
        """Limits the number of parts: an empty one takes a byte of the file and hundreds in memory."""

        parts = 0

        def readStructBegin(self) -> None:  # noqa: N802  # thrift's name
            self.parts += 1
            if self.parts > most:
                raise Malformed(f"more than {most:,} parts", f"fewer; or {WHOLE.doubled}")
            super().readStructBegin()

    communication, most = Communication(), WHOLE.bytes // BYTES_PER_PART
    try:
        communication.read(Counting(TFileObjectTransport(stream)))
    except (Malformed, DataError):
        raise
    except Exception as error:  # Thrift's reader raises anything on bytes that are not its own
        found = f"bytes that cannot be read ({type(error).__name__}: {error})"
        raise Malformed(found, "a Concrete communication") from error
    if communication.type is None and communication.id is None:
        raise Malformed("no id and no type", "a Concrete communication")
    return communication


def _part(thing: Any, *names: str) -> Any:
    """Return a nested attribute that Concrete requires."""
    for name in names:
        owner, thing = type(thing).__name__, getattr(thing, name)
        if thing is None:
            raise Malformed(f"a {owner} without {name}", "one, as Concrete requires it")
    return thing


def parse(raw: RawDocument, options: ExtractOptions) -> ParsedDocument:
    """Return a communication with its trees and frames."""
    try:
        return _parse_communication(_communication(io.BytesIO(raw.content)), raw)
    except Malformed as error:
        found = f"{error.found} in {raw.id}"
        raise DataError(raw.path, raw.line, found, error.expected, unit="communication") from error


def _parse_communication(communication: Any, raw: RawDocument) -> ParsedDocument:
    text = communication.text or ""
    trees, tokens = [], TokenIndex()
    for section in communication.sectionList or []:
        for sentence in section.sentenceList or []:
            if sentence.tokenization is not None:
                tree = _tree(sentence.tokenization, text)
                trees.append(tree)
                identity = _part(sentence.tokenization, "uuid", "uuidString")
                tokens |= {(identity, index): token for index, token in enumerate(tree.tokens)}
    return ParsedDocument(
        communication.id or raw.id, text, tuple(trees), tuple(_mentions(communication, tokens))
    )


def _tree(tokenization: Any, text: str) -> Tree:
    tokens = _part(tokenization.tokenList, "tokenList") if tokenization.tokenList else []
    indices = {_part(token, "tokenIndex"): index for index, token in enumerate(tokens)}
    pos, lemmas = _tags(tokenization, "POS"), _tags(tokenization, "LEMMA")
    heads, relations = [NO_HEAD] * len(tokens), [""] * len(tokens)
    for edge in _dependencies(tokenization):
        if (index := indices.get(edge.dep)) is not None:
            # The root has no governor; some tools write −1.
            heads[index] = indices.get(edge.gov, NO_HEAD)
            relations[index] = edge.edgeType or ""
    return Tree(
        Token(
            form=token.text or "",
            lemma=lemmas.get(token.tokenIndex, ""),
            pos=pos.get(token.tokenIndex, ""),
            head=heads[index],
            relation=relations[index],
            start=_part(token.textSpan, "start") if token.textSpan else 0,
            end=_part(token.textSpan, "ending") if token.textSpan else 0,
        )
        for index, token in enumerate(tokens)
    )


def _tags(tokenization: Any, kind: str) -> dict[int, str]:
    for tagging in tokenization.tokenTaggingList or []:
        if (tagging.taggingType or "").upper() == kind:
            return {t.tokenIndex: t.tag for t in tagging.taggedTokenList or [] if t.tag}
    return {}


def _dependencies(tokenization: Any) -> list[Any]:
    """Return the edges of the basic parse, which is a tree, or else of the first."""
    parses = tokenization.dependencyParseList or []
    basic = [parse for parse in parses if "basic" in _part(parse, "metadata", "tool").lower()]
    return list(_part((basic or parses)[0], "dependencyList")) if parses else []


def _mentions(communication: Any, tokens: TokenIndex) -> Iterator[FrameMention]:
    """Yield the frames of the situation mentions, at the tokens that evoke them."""
    for group in communication.situationMentionSetList or []:
        if not any(name in _part(group, "metadata", "tool").lower() for name in FRAME_PARSERS):
            continue
        for mention in group.mentionList or []:
            if mention.tokens is None or not mention.situationKind:
                continue
            identity = _part(mention.tokens, "tokenizationId", "uuidString")
            found = [
                token
                for i in _part(mention.tokens, "tokenIndexList")
                if (token := tokens.get((identity, i))) is not None
            ]
            sure = mention.confidence is not None and 0 <= mention.confidence <= 1
            for token in found:
                yield FrameMention(
                    token.start, token.end, mention.situationKind, mention.confidence if sure else None
                )
