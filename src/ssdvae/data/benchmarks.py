"""Public benchmark sets of the field: download them, and read their items.

**Similarity** (Weber et al. 2018, Ding et al. 2019), one item on each line, fields between bars. Either two
pairs of events, of which the first is the more similar one:

    subject | verb | object | subject | verb | object | subject | verb | object | subject | verb | object

or one pair, and how similar people find it:

    subject | verb | object | subject | verb | object | 3.74

**Multiple-choice narrative cloze** (MCNC; Granroth-Wilding and Clark 2016; files of Weber et al. 2018), one
event on each line: those of a document, ``HOLDOUT_SEP``, the event that was taken out, ``NEG_SEP``, wrong
events, ``DOC_SEP``:

    rocket|hurled on|journey

A predicate may have several words: the first is the verb, the others are the modifier.
"""

from __future__ import annotations

import csv
import http.client
import logging
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from ssdvae.data.events import MISSING, Words, one_word
from ssdvae.data.items import Question
from ssdvae.data.readers.jsonl import filled_lines
from ssdvae.io.errors import DataError, Malformed, UserError, locate_errors, shorten
from ssdvae.io.files import AnyPath, sha256, translate_os_errors
from ssdvae.io.locks import lock_path
from ssdvae.io.progress import SILENT, Advance, Progress

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublicSet:
    """A public file of benchmark items."""

    name: str
    about: str
    url: str
    sha256: str | None
    bytes: int | None
    source: str  # to be cited
    use: str  # the option of `evaluate`, or the command, that reads it

    @property
    def file(self) -> str:
        return f"{self.name}.txt"


def _read_sets() -> dict[str, PublicSet]:
    """Read ``benchmarks.csv``. Each address names a commit, so that its content does not change.

    A SHA-256 is that of a copy that was read and evaluated on; without one, that of the download is logged.
    """
    text = (resources.files(__package__) / "benchmarks.csv").read_text(encoding="utf-8")
    _, *lines = csv.reader(text.splitlines())
    return {
        name: PublicSet(name, about, url, digest or None, int(size) if size else None, source, use)
        for name, about, url, digest, size, source, use in lines
    }


SETS = _read_sets()


@dataclass(frozen=True)
class Download:
    """A public set on disk; ``fetched`` is False if it was there already."""

    name: str
    path: Path
    fetched: bool


def get_sets(names: Iterable[str], out: Path, progress: Progress = SILENT) -> list[Download]:
    """Download sets into a folder; files that exist are verified and kept.

    The beginning of a name stands for all that begin so: ``inscript`` for ``inscript-train-bath`` and others.
    """
    wanted: dict[str, PublicSet] = {}
    for name in names:
        chosen = {other: each for other, each in SETS.items() if f"{other}-".startswith(f"{name}-")}
        if not chosen:
            raise UserError(f"no set {name!r}; there are: {', '.join(SETS)}")
        wanted |= chosen
    if not wanted:
        raise UserError(f"no set is named; there are: {', '.join(SETS)}")
    found = []
    for each in wanted.values():
        path = out / each.file
        fetched = download(each.url, path, each.sha256, progress, size=each.bytes)
        found.append(Download(each.name, path, fetched))
    return found


# Downloads

TRIES = 3
"""Attempts at a connection that is cut off."""

TIMEOUT = 30.0
"""Seconds without a byte, after which a connection is cut off."""

BLOCK = 2**16

MOST_BYTES = 2**28
"""Bytes of a file whose size is not known, at most."""


class _CutOff(Exception):
    """The connection ended before the file did."""


def download(
    url: str, path: Path, digest: str | None, progress: Progress = SILENT, *, size: int | None = None
) -> bool:
    """Download a file if it does not exist, and return whether it was downloaded.

    ``digest`` is its SHA-256, and ``size`` its number of bytes, if they are known. A partial download is kept
    beside the file, as ``.NAME.part``, and resumed if the server can (HTTP Range). The file gets its name
    when it is complete and verified.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise UserError(f"cannot fetch {url}: expected an address in http or https")
    with translate_os_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        part, locked = (path.with_name(f".{path.name}.{kind}") for kind in ("part", "lock"))
        with lock_path(locked, f"another process is fetching {path}\nwait for it, or choose another --out"):
            if path.exists():
                _check(path, digest, size, f"{path} is there, and is another file: remove it, and try again")
                return False
            _fetch(url, part, path, progress, size)
            try:
                _check(part, digest, size, f"what came from {url} is not the file that was expected")
            except UserError:
                part.unlink()  # going on from it would never mend it
                raise
            if digest is None:
                log.warning(f"no SHA-256 is known of {url}; that of {path} is {sha256(part)}")
            os.replace(part, path)
    return True


def _check(path: Path, digest: str | None, size: int | None, problem: str) -> None:
    found = sha256(path)
    if digest is not None and found != digest:
        raise UserError(f"{problem}\nfound the SHA-256 {found}, expected {digest}")
    if size is not None and path.stat().st_size != size:
        raise UserError(f"{problem}\nfound {path.stat().st_size:,} bytes, expected {size:,}")


def _fetch(url: str, part: Path, path: Path, progress: Progress, size: int | None) -> None:
    with progress.task(path.name, size) as advance:
        for left in reversed(range(TRIES)):
            before = part.stat().st_size if part.exists() else 0
            try:
                with translate_network_errors(url, path):
                    _receive(url, part, advance, MOST_BYTES if size is None else size)
                return
            except _CutOff as error:
                have = part.stat().st_size if part.exists() else 0
                # Nothing came: asking again at once is of no use.
                if not left or have <= before:
                    raise UserError(
                        f"the connection to {url} was cut off after {have:,} bytes ({error})\n"
                        "what has come is kept: the same command goes on from there"
                    ) from error


def _receive(url: str, part: Path, advance: Advance, most: int) -> None:
    """Append the missing bytes to a partial download; a file of more than ``most`` bytes is refused."""
    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"User-Agent": "ssdvae", **({"Range": f"bytes={have}-"} if have else {})})
    try:
        response = urlopen(request, timeout=TIMEOUT)
    except HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        # It is all there, or it is something else: which, the SHA-256 tells.
        error.close()
        return
    with response:
        if have and response.status != http.HTTPStatus.PARTIAL_CONTENT:
            have = 0  # this server always sends the whole
        length = response.headers.get("Content-Length", "")
        expected = int(length) if length.isdecimal() and len(length) < 20 else 0
        advance(have)
        came = 0
        with open(part, "ab" if have else "wb") as file:
            try:
                while block := response.read(BLOCK):
                    if have + came + len(block) > most:
                        part.unlink()
                        raise UserError(f"{url}: found more than {most:,} bytes, expected {most:,} at most")
                    file.write(block)
                    came += len(block)
                    advance(len(block))
            except (OSError, http.client.HTTPException) as error:
                raise _CutOff(str(error) or type(error).__name__) from error
            finally:
                file.flush()
                os.fsync(file.fileno())
        if came < expected:
            raise _CutOff(f"{came:,} of {expected:,} bytes")


@contextmanager
def translate_network_errors(url: str, path: Path) -> Iterator[None]:
    """Turn network errors into a ``UserError`` that says what to do."""
    by_hand = f"without a network: fetch it elsewhere, and put it at {path}; it is checked when it is there"
    try:
        yield
    except HTTPError as error:
        with error:
            raise UserError(f"{url}: the server answers {error.code} ({error.reason})\n{by_hand}") from error
    except (URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"cannot reach {url}: {reason}\n{by_hand}") from error


# Items

Pair = tuple[Words, Words]

HOLDOUT, WRONG, DOCUMENT = "HOLDOUT_SEP", "NEG_SEP", "DOC_SEP"


@dataclass(frozen=True, slots=True)
class SimilarityItem:
    """A pair of events and how similar people find them, or a similar pair and one that shares its words."""

    pairs: tuple[Pair, ...]  # one with a rating; or two, of which the first is the more similar one
    rating: float | None = None


def read_similarity(path: AnyPath) -> list[SimilarityItem]:
    """Return the items of a file, plain or .gz, which are all of one kind; blank lines are ignored."""
    items: list[SimilarityItem] = []
    width = 0
    for number, text in filled_lines(path):
        with locate_errors(path, number):
            fields = [field.strip() for field in text.split("|")]
            if len(fields) not in (7, 12):
                raise Malformed(
                    f"{len(fields)} fields between bars", "12 (two pairs) or 7 (a pair, a number)"
                )
            width = width or len(fields)
            if len(fields) != width:
                raise Malformed(f"{len(fields)} fields between bars", "as many as on the lines before")
            events = [_event(*fields[start : start + 3]) for start in range(0, width - 1, 3)]
            pairs = tuple(zip(events[::2], events[1::2], strict=True))
            items.append(SimilarityItem(pairs, _rating(fields[6]) if width == 7 else None))
    if not items:
        raise DataError(
            path, None, "no pairs of events", "subject | verb | object, two or four times on a line"
        )
    return items


def _event(subject: str, predicate: str, object: str) -> Words:
    verb, *others = predicate.split() or [""]
    if not verb:
        raise Malformed(
            f"no verb between {shorten(subject)} and {shorten(object)}", "subject | verb | object"
        )
    return verb, *(one_word(text) or MISSING for text in (subject, object, " ".join(others)))


def _rating(text: str) -> float:
    try:
        rating = float(text)
    except ValueError:
        raise Malformed(f"{shorten(text)} as the similarity", "a number") from None
    if not math.isfinite(rating):
        raise Malformed(f"{text} as the similarity", "a finite number")
    return rating


def read_mcnc(path: AnyPath) -> list[Question]:
    """Return the items of a file, plain or .gz: the last event of each document is asked for."""
    items = list(_narratives(path))
    if not items:
        raise DataError(path, None, "no items", f"events, {HOLDOUT}, an event, {WRONG}, events, {DOCUMENT}")
    return items


def _narratives(path: AnyPath) -> Iterator[Question]:
    marks = (HOLDOUT, WRONG, DOCUMENT)
    parts: list[list[Words]] = [[]]
    number = 0
    for number, text in filled_lines(path):
        line = text.strip()
        with locate_errors(path, number):
            if line in marks:
                if line != marks[len(parts) - 1]:
                    raise Malformed(line, f"events, or {marks[len(parts) - 1]}")
                parts.append([])
                if line == DOCUMENT:
                    yield _narrative(*parts[:-1])
                    parts = [[]]
            else:
                fields = line.split("|")
                if len(fields) != 3:
                    raise Malformed(shorten(line), "subject|predicate|object")
                parts[-1].append(_event(*fields))
    if parts == [[]]:
        return
    with locate_errors(path, number):  # the last one may do without its mark
        yield _narrative(*parts, *[[]] * (len(marks) - len(parts)))


def _narrative(context: list[Words], truth: list[Words], wrong: list[Words]) -> Question:
    if not context or len(truth) != 1 or not wrong:
        found = f"an item of {len(context)} events, {len(truth)} taken out and {len(wrong)} wrong ones"
        raise Malformed(found, "events, 1 taken out, and wrong ones")
    return Question(tuple(context), (truth[0], *wrong))
