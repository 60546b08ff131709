"""Files: a mistake names its place, and what was written before is never lost."""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.numpy import save_file

from ssdvae.io import files
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.files import (
    atomic_write,
    byte_lines,
    check_exists,
    new_folder,
    open_bytes,
    open_text_for_writing,
    remove_left_overs,
    sha256,
    text_lines,
)
from ssdvae.io.locks import Busy, lock_path
from tests.disks import small_disk

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.sampled_from(["a.txt", "a.txt.gz", "a.GZ"]), st.booleans())
def test_what_is_written_is_read(text: str, name: str, mark: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        with open_text_for_writing(path) as file:
            file.write("\ufeff" * mark + text)
        lines = list(text_lines(path))
    # Only the first of two marks is one; lines end at \n and nowhere else.
    expected = text if mark else text.removeprefix("\ufeff")
    assert "".join(line for _, line in lines) == expected
    assert all("\n" not in line[:-1] for _, line in lines)
    assert [number for number, _ in lines] == list(range(1, len(lines) + 1))


def test_the_same_text_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with open_text_for_writing(tmp_path / name) as file:
            file.write("x\n")
    assert sha256(tmp_path / "a.gz") == sha256(tmp_path / "b.gz")
    # Both may fall in one second: bytes 4 to 8 of the header are the time (RFC 1952).
    assert (tmp_path / "a.gz").read_bytes()[4:8] == bytes(4)


@given(st.binary())
def test_sha256_is_that_of_the_bytes(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "a").write_bytes(content)
        assert sha256(Path(folder, "a")) == hashlib.sha256(content).hexdigest()


@given(st.lists(st.booleans(), min_size=1))
def test_lines_that_are_not_utf8_are_reported_and_the_others_read(good: list[bool]) -> None:
    reported: list[DataError] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_bytes(b"".join(b"\xc3\xa9\n" if is_good else b"a\xff\n" for is_good in good))
        read = [number for number, _ in text_lines(path, reported.append)]
    assert read == [number for number, is_good in enumerate(good, 1) if is_good]
    assert [error.line for error in reported] == [n for n, is_good in enumerate(good, 1) if not is_good]
    assert all("0xff at place 2" in str(error) for error in reported)


# Digits that compress badly, so that a cut falls within many lines.
LINES = [hashlib.sha256(bytes([number])).hexdigest().encode() + b"\n" for number in range(250)]
PACKED = gzip.compress(b"".join(LINES))


@given(st.integers(1, len(PACKED) - 1))
def test_a_gz_file_cut_anywhere_raises_and_gives_no_half_line(cut: int) -> None:
    read: list[bytes] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.gz")
        path.write_bytes(PACKED[:cut])
        with pytest.raises(DataError, match="cut short") as caught:
            read.extend(line for _, line in byte_lines(path))
    assert read == LINES[: len(read)]
    assert caught.value.line == len(read) + 1


# From byte 10 on: the header before it has a time, which may be anything.
@given(st.integers(10, len(PACKED) - 1), st.integers(1, 255))
def test_a_gz_file_with_one_byte_altered_raises(place: int, change: int) -> None:
    altered = PACKED[:place] + bytes([PACKED[place] ^ change]) + PACKED[place + 1 :]
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.gz")
        path.write_bytes(altered)
        with pytest.raises(DataError, match="damaged"):
            list(byte_lines(path))


@given(st.binary(), st.sampled_from([".gz", ".zip", ".txt"]))
def test_any_bytes_are_read_or_refused_in_words(content: bytes, suffix: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a" + suffix)
        path.write_bytes(content)
        try:
            read = b"".join(line for _, line in byte_lines(path, archives=True))
        except UserError:
            return
        assert suffix != ".txt" or read == content.removeprefix(files.BOM)


def test_a_compressed_file_without_its_suffix_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"x"))
    with pytest.raises(DataError, match=r"line 1: (?s:.*) must end in \.gz"):
        list(text_lines(tmp_path / "a.txt"))


@pytest.mark.parametrize("reading", [text_lines, sha256, open_bytes])
def test_what_cannot_be_opened_is_explained(reading: object, tmp_path: Path) -> None:
    assert callable(reading)
    (tmp_path / "train.txt").write_text("")
    for path, message in [
        (tmp_path / "trian.txt", r"no such file(?s:.*)did you mean train\.txt\?"),
        (tmp_path / "no" / "train.txt", "no such file"),
        (tmp_path / "train.txt" / "x", "is a file, not a folder"),
        (tmp_path, "it is a folder"),
    ]:
        with pytest.raises(UserError, match=message):
            _exhaust(reading(path))


def _exhaust(result: object) -> None:
    if isinstance(result, Iterator):
        list(result)


def test_no_permission_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The root user, who may run the tests, has every permission; so the refusal is put in by hand.
    def refuse(path: object, *_: object) -> object:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(files, "open", refuse, raising=False)
    with pytest.raises(UserError, match=r"a\.txt: you have no permission"):
        list(text_lines(tmp_path / "a.txt"))


class Interrupted(BaseException):
    """Like KeyboardInterrupt, which would stop the tests."""


@given(st.none() | st.binary(), st.binary(), st.sampled_from([ValueError, OSError, Interrupted, None]))
def test_after_atomic_write_there_is_the_new_file_or_the_old_one(
    old: bytes | None, new: bytes, failure: type[BaseException] | None
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.b.safetensors")
        if old is not None:
            path.write_bytes(old)

        def write() -> None:
            with atomic_write(path) as temporary:
                assert (temporary.parent.parent, temporary.suffix) == (path.parent, path.suffix)
                temporary.write_bytes(new)
                # While it is being written the old one is what a reader gets.
                assert (path.read_bytes() if path.exists() else None) == old
                if failure is not None:
                    raise failure()

        if failure is None:
            write()
        else:
            with pytest.raises(UserError if failure is OSError else failure):
                write()
        kept = old if failure else new
        assert [file.name for file in Path(folder).iterdir()] == ([] if kept is None else [path.name])
        assert kept is None or path.read_bytes() == kept


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fills_up_late_keeps_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "a.txt").write_text("old")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(UserError, match="the disk is full"), atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, "64k"):
        yield tmp_path


def test_a_full_disk_keeps_the_old_file(tiny_disk: Path) -> None:
    path = tiny_disk / "a.txt"
    path.write_text("old")
    with pytest.raises(UserError, match=r"a\.txt: the disk is full"), atomic_write(path) as temporary:
        temporary.write_bytes(bytes(1_000_000))
    with pytest.raises(UserError, match=r"a\.txt: the disk is full"), atomic_write(path) as temporary:
        save_file({"a": np.zeros(100_000)}, temporary)
    assert [file.read_text() for file in tiny_disk.iterdir()] == ["old"]


def test_a_full_disk_is_seen_through_the_error_of_another_library(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the disk is full"), atomic_write(tmp_path / "a"):
        raise SafetensorError("I/O error: No space left on device (os error 28)")


def test_a_read_only_folder_is_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(UserError, match="read-only"), atomic_write(tmp_path / "a"):
        pytest.fail("the body was reached")
    with pytest.raises(UserError, match="it is a folder"), atomic_write(tmp_path):
        pytest.fail("the body was reached")


def test_an_error_about_another_file_is_not_taken_for_one_about_this(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "a"):
        (tmp_path / "input").read_text()
    assert not list(tmp_path.iterdir())


def test_a_link_goes_on_pointing_and_a_device_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a")
    with atomic_write(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "real" / "a").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    with atomic_write(tmp_path / "pipe") as given_path:
        assert given_path == tmp_path / "pipe"
    assert (tmp_path / "pipe").is_fifo()


def test_the_mode_is_that_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with atomic_write(tmp_path / "a"):
        pass
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_has_its_name_when_it_is_complete(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "out") as folder:
        (folder / "a").write_text("a")
        assert not (tmp_path / "deep" / "out").exists()
        with (
            pytest.raises(UserError, match="another process is making"),
            new_folder(tmp_path / "deep" / "out"),
        ):
            pass
        assert (folder / "a").exists()
    assert (tmp_path / "deep" / "out" / "a").read_text() == "a"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["out"]
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "deep" / "other"):
        raise ZeroDivisionError
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from safetensors.numpy import save_file
from ssdvae.io.files import atomic_write

with atomic_write(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    (temporary.parent / ".tmpXYZ").write_text("what a library left")  # as safetensors does
    if sys.argv[2:]:
        with atomic_write(Path(sys.argv[1])):
            os.kill(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("more", [(), ("two at once",)])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, more: tuple[str, ...]) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_text("old")
    (tmp_path / ".a.jsonl.gz.0.tmpx").write_text("not ours")
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", KILLED, str(path), *more], check=False)
        assert done.returncode == -signal.SIGKILL
        left = [p for p in tmp_path.iterdir() if p.name.endswith(".tmp")]
        assert len(left) == 1 + len(more)  # of the last one only
    assert path.read_text() == "old"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert sorted(p.name for p in tmp_path.iterdir()) == [".a.jsonl.gz.0.tmpx", "a.jsonl.gz"]


def test_of_two_writers_at_once_each_writes_its_own_and_the_last_wins(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_write(path) as first:
        first.write_text("first")
        with atomic_write(path) as second:
            assert second != first
            second.write_text("second")
        assert path.read_text() == "second"
        assert first.read_text() == "first"
    assert path.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


WRITER = """
import sys
from pathlib import Path
from ssdvae.io.files import atomic_write
from ssdvae.io.locks import lock_path

folder, name = Path(sys.argv[1]), sys.argv[2]
for turn in range(60):
    with atomic_write(folder / "shared.txt") as path:
        path.write_text(name * 1000)
    with lock_path(folder / ".lock", None):
        count = int((folder / "count").read_text())
        (folder / "count").write_text(str(count + 1))
"""


def test_many_processes_lose_no_write_and_mix_none(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "abcd"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if (tmp_path / "shared.txt").exists():
            seen.add((tmp_path / "shared.txt").read_text())
    assert [writer.wait() for writer in writers] == [0] * 4
    assert (tmp_path / "count").read_text() == str(4 * 60)
    assert seen <= {name * 1000 for name in "abcd"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["count", "shared.txt"]


def test_a_lock_is_refused_while_it_is_held_and_gone_after(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.write_text("left by a killed process")
    with lock_path(path, "busy"):
        with pytest.raises(Busy, match="busy"), lock_path(path, "busy"):
            pytest.fail("two hold it")
        assert path.exists()
    assert not path.exists()
    with pytest.raises(ZeroDivisionError), lock_path(path, "busy"):
        raise ZeroDivisionError
    assert not path.exists()


def test_a_disk_without_locks_is_said_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with lock_path(tmp_path / ".lock", "busy"):
        pass
    assert "the disk has no locks" in caplog.text


def test_a_link_to_itself_and_a_nul_in_a_name_are_explained(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UserError, match="loop: it is a link that leads back to itself"):
        list(text_lines(tmp_path / "loop"))
    with pytest.raises(UserError, match="no file can have this name"):
        check_exists(str(tmp_path / "a\0b"))


def test_what_a_killed_process_left_beside_a_folder_is_removed(tmp_path: Path) -> None:
    lock, scratch = tmp_path / ".out.lock", tmp_path / ".out.tmp"
    scratch.mkdir()
    with lock_path(lock, None):
        remove_left_overs(tmp_path / "out")
        assert {path.name for path in tmp_path.iterdir()} == {lock.name, scratch.name}  # somebody is at work
    lock.touch()
    remove_left_overs(tmp_path / "out")
    assert not list(tmp_path.iterdir())
