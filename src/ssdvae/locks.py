"""Keep two processes from doing the same thing at the same time.

Locks are those of the system (``flock``). They go with the process that holds them, however it ends, so that
nobody has to clear them away.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ssdvae.errors import UserError

logger = logging.getLogger(__name__)

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What a file system says that cannot lock files."""


class Busy(UserError):
    """Another process is at it."""


def lock(file: IO[Any], busy: str | None) -> None:
    """Hold a file while it is open, here or in a process that inherits it.

    If it is held already, ``busy`` is said; without it, this one waits.
    """
    try:
        import fcntl
    except ImportError:  # not a Unix: two at once are not noticed
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy is not None else 0))
    except BlockingIOError as error:
        raise Busy(busy or "") from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        logger.warning("the disk has no locks (%s): two processes at once are not noticed", busy or file.name)


@contextlib.contextmanager
def held(path: Path, busy: str | None) -> Iterator[None]:
    """Hold a lock file that is there only while it is held; what a killed process left is not in the way.

    ``busy`` is said if another process has it; without it, this one waits. Raises ``OSError`` where the file
    cannot be made.
    """
    mode = os.O_RDONLY
    while True:
        with os.fdopen(os.open(path, mode | os.O_CREAT, 0o666)) as file:
            try:
                lock(file, busy)
            except OSError as error:
                if error.errno != errno.EBADF or mode == os.O_RDWR:
                    raise
                mode = os.O_RDWR  # NFS locks only what is open for writing
                continue
            # The one before may have removed the file since it was opened: then nobody else looks at it.
            if not _is_at(file, path):
                continue
            try:
                yield
            finally:
                # While it is still held, so that it is ours.
                with contextlib.suppress(OSError):
                    path.unlink()
            return


def _is_at(file: IO[Any], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
