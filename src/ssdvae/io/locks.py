"""Locks between processes, by the library filelock.

A lock of the system (``flock``) goes with the process that holds it, however it ends, so a killed process
blocks nobody. ``filelock.FileLock`` itself is not used: it leaves its lock file behind, and its descriptor
cannot be handed on to another process.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ssdvae.io.errors import UserError

logger = logging.getLogger(__name__)

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""The errors of a file system that cannot lock files."""


class Busy(UserError):
    """Another process holds the lock."""


def lock_file(file: IO[Any], busy: str | None) -> None:
    """Lock an open file until it is closed, here and in every process that inherits it.

    If another process holds the lock, raise ``Busy`` with the message ``busy``, or wait if that is None.
    """
    from filelock import lock_descriptor

    try:
        if not lock_descriptor(file.fileno(), blocking=busy is None):
            raise Busy(busy or "")
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        logger.warning("the disk has no locks (%s): two processes at once are not noticed", busy or file.name)


@contextlib.contextmanager
def lock_path(path: Path, busy: str | None) -> Iterator[None]:
    """Hold a lock file that exists only while it is held; ``busy`` is as in ``lock_file``."""
    mode = os.O_RDONLY  # a disk can be made read-only meanwhile
    while True:
        with os.fdopen(os.open(path, mode | os.O_CREAT, 0o666)) as file:
            try:
                lock_file(file, busy)
            except OSError as error:
                if error.errno != errno.EBADF or mode == os.O_RDWR:
                    raise
                mode = os.O_RDWR  # NFS locks only what is open for writing
                continue
            # The process before may have removed the file since it was opened: then it locks nothing.
            if not _is_at(file, path):
                continue
            try:
                yield
            finally:
                # While it is still locked, so that it is ours.
                with contextlib.suppress(OSError):
                    path.unlink()
            return


def _is_at(file: IO[Any], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
