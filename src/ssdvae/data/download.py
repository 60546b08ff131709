"""A file from the web: resumed where it was cut off, checked, and in its place only when it is whole.

What has come so far is kept beside the file, as ``.NAME.part``; the next call goes on from there, if the
server can (HTTP Range), and begins anew if it cannot.
"""

from __future__ import annotations

import http.client
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from ssdvae.errors import UserError
from ssdvae.files import sha256, translate_os_errors
from ssdvae.locks import held
from ssdvae.progress import SILENT, Advance, Progress

log = logging.getLogger(__name__)

TRIES = 3
"""How often a connection that was cut off is made again."""

TIMEOUT = 30.0
"""Seconds without a byte, after which a connection is cut off."""

BLOCK = 2**16


class _CutOff(Exception):
    """The connection ended before the file did."""


def download(
    url: str, path: Path, digest: str | None, progress: Progress = SILENT, *, size: int | None = None
) -> bool:
    """The file at ``path``, fetched if it is not there; returns whether it was fetched.

    ``digest`` is its SHA-256, and ``size`` its number of bytes, where they are known. Without a digest, that
    of what came is logged.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise UserError(f"cannot fetch {url}: expected an address in http or https")
    with translate_os_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        part, locked = (path.with_name(f".{path.name}.{kind}") for kind in ("part", "lock"))
        with held(locked, f"another process is fetching {path}\nwait for it, or choose another --out"):
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
                    _receive(url, part, advance)
                return
            except _CutOff as error:
                have = part.stat().st_size if part.exists() else 0
                # Nothing came: asking again at once is of no use.
                if not left or have <= before:
                    raise UserError(
                        f"the connection to {url} was cut off after {have:,} bytes ({error})\n"
                        "what has come is kept: the same command goes on from there"
                    ) from error


def _receive(url: str, part: Path, advance: Advance) -> None:
    """Append to what has come so far what is still missing."""
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
        expected = response.headers.get("Content-Length")
        advance(have)
        came = 0
        with open(part, "ab" if have else "wb") as file:
            try:
                while block := response.read(BLOCK):
                    file.write(block)
                    came += len(block)
                    advance(len(block))
            except (OSError, http.client.HTTPException) as error:
                raise _CutOff(str(error) or type(error).__name__) from error
            finally:
                file.flush()
                os.fsync(file.fileno())
        if expected is not None and came < int(expected):
            raise _CutOff(f"{came:,} of {int(expected):,} bytes")


@contextmanager
def translate_network_errors(url: str, path: Path) -> Iterator[None]:
    """What went wrong, and what to do about it."""
    by_hand = f"without a network: fetch it elsewhere, and put it at {path}; it is checked when it is there"
    try:
        yield
    except HTTPError as error:
        with error:
            raise UserError(f"{url}: the server answers {error.code} ({error.reason})\n{by_hand}") from error
    except (URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"cannot reach {url}: {reason}\n{by_hand}") from error
