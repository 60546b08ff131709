"""Reading files so that a mistake names its place, writing them so that a crash leaves no half of one."""

from __future__ import annotations

import contextlib
import difflib
import errno
import gzip
import hashlib
import io
import itertools
import lzma
import os
import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Protocol

from ssdvae.io.errors import DataError, UserError
from ssdvae.io.limits import LINE, Limit
from ssdvae.io.locks import Busy, lock_path

AnyPath = str | os.PathLike[str]


class HasLines(Protocol):
    """An open file that is read line by line."""

    def readline(self, size: int, /) -> bytes: ...


Report = Callable[[DataError], None]
"""A function that is called with each bad line. It raises, or returns to go on with the next line.

A file that is damaged as a whole always raises.
"""

BOM = b"\xef\xbb\xbf"

# errno: (what is wrong, what to do about it).
REASONS = {
    errno.ENOENT: ("there is no such file or folder", "check the spelling"),
    errno.ENOTDIR: ("a part of this path is a file, not a folder", "check the spelling"),
    errno.EISDIR: ("it is a folder", "name a file in it"),
    errno.EACCES: ("you have no permission", "change the permissions (chmod), or choose another place"),
    errno.EPERM: ("you have no permission", "change the permissions (chmod), or choose another place"),
    errno.ELOOP: ("it is a link that leads back to itself", "make the link anew, or name the file itself"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.EROFS: ("the disk is read-only", "choose another place"),
    errno.ENOSPC: ("the disk is full", "free some space, or choose another place"),
    errno.EDQUOT: ("your disk quota is used up", "free some space, or choose another place"),
}

# What gzip and zipfile raise for data that are cut short or altered.
DAMAGE = (
    EOFError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    RuntimeError,  # a password is needed, or (NotImplementedError) an unknown compression
    ValueError,
    OverflowError,
)


def stop_at_first_error(error: DataError) -> None:
    """Raise the error: the ``Report`` that stops at the first bad line."""
    raise error


@contextlib.contextmanager
def translate_os_errors(path: AnyPath, action: str) -> Iterator[None]:
    """Turn the errors of the operating system about ``path`` into a ``UserError``; ``action`` is a verb."""
    try:
        yield
    except OSError as error:
        raise _explanation(error, Path(path), action) from error
    except ValueError as error:
        if not str(error).startswith("embedded null") and not isinstance(error, UnicodeEncodeError):
            raise
        raise UserError(f"cannot {action} {str(path)!r}: no file can have this name") from error


def real_path(path: AnyPath) -> Path:
    """Return the absolute path without links; a link that leads back to itself stays."""
    return Path(os.path.realpath(path))


def check_exists(path: AnyPath) -> None:
    """Refuse a path that does not exist."""
    with translate_os_errors(path, "read"):
        os.stat(path)


def _explanation(error: OSError, path: Path, action: str) -> UserError:
    what, hint = REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
    if error.errno == errno.ENOENT:
        with contextlib.suppress(OSError):
            near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else hint
    return UserError(f"cannot {action} {path}: {what}" + (f"\n{hint}" if hint else ""))


@contextlib.contextmanager
def _scratch_folder(folder: Path, busy: str) -> Iterator[Path]:
    """Create an empty folder for this process alone; in the end it is removed, with all that is in it."""
    with lock_path(folder.with_suffix(".lock"), busy):
        shutil.rmtree(folder, ignore_errors=True)  # left by a killed process
        try:
            folder.mkdir()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def is_left_over(name: str, written: Iterable[str]) -> bool:
    """Tell whether a killed process left this file while it wrote one of the files ``written``."""
    names = "|".join(re.escape(each[:50]) for each in written)
    return re.fullmatch(rf"\.({names})\.\d+\.(tmp|lock)", name) is not None


def remove_left_overs(folder: Path) -> None:
    """Remove what a process left that was killed while, or just after, it made a folder."""
    scratch = folder.with_name(f".{folder.name}.tmp")
    if scratch.with_suffix(".lock").exists():
        with contextlib.suppress(Busy, OSError), _scratch_folder(scratch, "another process is writing"):
            pass


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill. It gets its name when it is complete; after an exception nothing is left."""
    busy = f"another process is making {path}\nwait for it, or choose another --out"
    with contextlib.ExitStack() as stack:
        with translate_os_errors(path, "write"):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = stack.enter_context(_scratch_folder(path.with_name(f".{path.name}.tmp"), busy))
        yield temporary
        with translate_os_errors(path, "write"):
            temporary.rename(path)


def open_bytes(path: AnyPath, archives: bool = False) -> IO[bytes]:
    """Open a file for reading; unpack it if its name ends in .gz (or .zip, if ``archives``)."""
    name = str(path).lower()
    with translate_os_errors(path, "read"):
        if name.endswith(".gz"):
            # GzipFile finds lines in Python, BufferedReader in C.
            return io.BufferedReader(gzip.open(path, "rb"))
        if archives and name.endswith(".zip"):
            return _open_zip(path)
        return open(path, "rb")


def _open_zip(path: AnyPath) -> IO[bytes]:
    """Open the only member of an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if not name.endswith("/")]
            if len(members) == 1:
                # The member keeps the file open after the archive itself is closed.
                return io.BufferedReader(archive.open(members[0]))  # type: ignore[type-var]  # a raw stream in all but name
    except DAMAGE as error:
        raise _damaged(path, None, error) from error
    listed = ", ".join(members[:10]) + (", …" if len(members) > 10 else "")
    hint = "unpack the archive and name the file that you mean"
    raise DataError(path, None, f"{len(members)} files ({listed})", "one file in the archive", hint)


def _damaged(path: AnyPath, line: int | None, error: Exception) -> DataError:
    kind = "a zip archive" if str(path).lower().endswith(".zip") else "a gz file"
    why = str(error) or type(error).__name__
    hint = "the file is cut short, damaged or misnamed: make or download it again"
    return DataError(path, line, f"compressed data that cannot be read ({why})", f"the whole of {kind}", hint)


def byte_lines(path: AnyPath, archives: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, from 1, and its line end; a byte order mark is removed."""
    with translate_os_errors(path, "read"), open_bytes(path, archives) as file:
        yield from numbered_lines(file, path)


def byte_chunks(path: AnyPath, size: int = 2**16) -> Iterator[bytes]:
    """Yield a file piece by piece; unpack it if its name ends in .gz."""
    with translate_os_errors(path, "read"), open_bytes(path) as file:
        try:
            while chunk := file.read(size):
                yield chunk
        except DAMAGE as error:
            raise _damaged(path, None, error) from error


def numbered_lines(file: HasLines, path: AnyPath, limit: Limit = LINE) -> Iterator[tuple[int, bytes]]:
    """Yield each line of an open file, as ``byte_lines``; ``path`` is its name in messages."""
    number, most = 0, limit.bytes
    try:
        while line := file.readline(most + 1):
            number += 1
            if len(line) > most:
                raise limit.error(path, number, "a line")
            yield number, line.removeprefix(BOM) if number == 1 else line
    except DAMAGE as error:
        raise _damaged(path, number + 1, error) from error


def decode_line(path: AnyPath, number: int, line: bytes) -> str:
    """Return the text of a line of ``byte_lines``."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"the byte 0x{line[error.start]:02x} at place {error.start + 1}, which is not UTF-8"
        packed = number == 1 and line.startswith(b"\x1f\x8b")
        hint = "is it compressed? then its name must end in .gz" if packed else "save the file as UTF-8"
        raise DataError(path, number, found, "text in UTF-8", hint) from error


def text_lines(path: AnyPath, report: Report = stop_at_first_error) -> Iterator[tuple[int, str]]:
    """Yield each line of a UTF-8 file with its number, from 1, and its line end; bad ones are reported."""
    for number, line in byte_lines(path):
        try:
            text = decode_line(path, number, line)
        except DataError as error:
            report(error)
        else:
            yield number, text


@contextlib.contextmanager
def open_text_for_writing(path: AnyPath) -> Iterator[IO[str]]:
    """Open a UTF-8 file for writing; compress it if its name ends in .gz."""
    with contextlib.ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(open(path, "wb"))
        if str(path).lower().endswith(".gz"):
            # No name and no time in the header: the same text gives the same bytes.
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
            file = stack.enter_context(packed)  # type: ignore[arg-type]  # GzipFile is no IO[bytes] to mypy
        yield stack.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline="\n"))


def _umask() -> int:
    """Return the permissions that new files do not get. It can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def atomic_write(path: AnyPath) -> Iterator[Path]:
    """Yield a path to write to; it replaces ``path`` at the end. After an exception ``path`` is unchanged.

    The temporary file has the same suffix, which tells writers whether to compress. It is in a folder beside
    ``path`` (a rename must not cross disks), so that the next writer removes all that a killed process left,
    also files of libraries. Two writers at once have a folder each, and the last to finish wins.
    """
    path = Path(path)
    with contextlib.ExitStack() as stack:
        with translate_os_errors(path, "write"):
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            if path.exists() and not path.is_file():
                # /dev/null and pipes are written to, never replaced.
                yield path
                return
            # A link goes on pointing to the file, which gets the new content.
            target = Path(os.path.realpath(path))
            # Some writers create files for the owner alone.
            permissions = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
            # Made at once, so that a read-only folder is known before the work.
            temporary = stack.enter_context(_own_folder(target)) / f"new{target.suffix}"
            temporary.touch(exist_ok=False)
        try:
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.chmod(temporary, permissions)
            os.replace(temporary, target)
        except OSError as error:
            # An error that names some other file is about what the caller reads, not about this one.
            if error.filename not in (None, str(temporary), temporary):
                raise
            raise _explanation(error, path, "write") from error
        except Exception as error:
            # Writers not made in Python (safetensors) wrap the system's error in one of their own.
            if os.strerror(errno.ENOSPC) not in str(error):
                raise
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise _explanation(full, path, "write") from error
        _sync_folder(target.parent)


def write_text(path: AnyPath, text: str) -> None:
    """Write a UTF-8 file; if anything fails, an old one stays as it was."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _own_folder(target: Path) -> Iterator[Path]:
    """Yield a folder for what is to become ``target``; those that killed processes left are removed.

    The names are .NAME.0.tmp, .NAME.1.tmp, …: as many as there are writers at once.
    """
    name = f".{target.name[:50]}."
    with contextlib.ExitStack() as stack:
        for number in itertools.count():
            with contextlib.suppress(Busy):
                folder = target.with_name(f"{name}{number}.tmp")
                stack.enter_context(_scratch_folder(folder, "another process is writing"))
                break
        for other in os.listdir(target.parent):
            if re.fullmatch(re.escape(name) + r"\d+\.lock", other) and other != f"{folder.stem}.lock":
                left = target.with_name(other).with_suffix(".tmp")
                with contextlib.suppress(Busy), _scratch_folder(left, "another process is writing"):
                    pass
        yield folder


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sha256(path: AnyPath) -> str:
    """Return the SHA-256 of a file, in hexadecimal; what has no end, such as a device, is refused."""
    with translate_os_errors(path, "read"), open(path, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DataError(path, None, "a device or a pipe", "a file on disk, which can be read twice")
        return hashlib.file_digest(file, "sha256").hexdigest()
