"""Downloads, against a server on this machine: whole, resumed, refused, wrong, cut off, and none at all."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ssdvae.data.benchmarks import SETS, download
from ssdvae.io.errors import UserError

CONTENT = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """Answers with the content; ``cuts`` are the bytes after which it hangs up, one answer each."""

    url: str = ""
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    length: str | None = None  # what it says of the length
    endless: bool = False
    sent: int = 0
    status: int | None = None
    asked: list[str | None] = field(default_factory=list)  # the Range of each request


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            state.asked.append(asked)
            if state.status is not None:
                self.send_error(state.status)
                return
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and state.ranges else 0
            if start >= len(CONTENT):
                self.send_error(416)
                return
            body = CONTENT[start:]
            self.send_response(206 if start else 200)
            if not state.endless:
                self.send_header("Content-Length", state.length or str(len(body)))
            self.end_headers()
            while state.endless and state.sent < 2**30:
                try:
                    state.sent += self.wfile.write(CONTENT)
                except OSError:
                    return
            self.wfile.write(body[: state.cuts.pop(0)] if state.cuts else body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state.url = f"http://127.0.0.1:{running.server_address[1]}/set.txt"
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield state
        running.shutdown()


def rest(folder: Path) -> set[str]:
    """Return the names of the files in the folder, except the lock."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "new" / "set.txt"
    assert download(server.url, path, DIGEST, size=len(CONTENT))
    assert path.read_bytes() == CONTENT
    assert rest(path.parent) == {"set.txt"}
    assert not download(server.url, path, DIGEST)
    assert server.asked == [None]


@pytest.mark.parametrize("ranges", [True, False])
def test_what_was_cut_off_goes_on_by_itself(server: Server, tmp_path: Path, ranges: bool) -> None:
    """With a server that knows no ranges, it starts anew."""
    server.ranges, server.cuts = ranges, [1000, 70_000 if ranges else 100_000]
    path = tmp_path / "set.txt"
    assert download(server.url, path, DIGEST)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", f"bytes={71_000 if ranges else 100_000}-"]


def test_what_has_come_is_kept_for_the_next_time(server: Server, tmp_path: Path) -> None:
    server.cuts = [1000, 500, 250]
    path = tmp_path / "set.txt"
    with pytest.raises(UserError, match=r"cut off after 1,750 bytes(.|\n)*the same command goes on"):
        download(server.url, path, DIGEST)
    assert rest(tmp_path) == {".set.txt.part"}
    assert download(server.url, path, DIGEST)
    assert path.read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=1750-"
    assert rest(tmp_path) == {"set.txt"}


def test_a_server_that_sends_nothing_is_not_asked_again_and_again(server: Server, tmp_path: Path) -> None:
    server.cuts = [0] * 9
    with pytest.raises(UserError, match="cut off after 0 bytes"):
        download(server.url, tmp_path / "set.txt", DIGEST)
    assert len(server.asked) == 1


def test_a_part_that_is_whole_already_is_taken(server: Server, tmp_path: Path) -> None:
    """Killed between the last byte and the new name."""
    (tmp_path / ".set.txt.part").write_bytes(CONTENT)
    assert download(server.url, tmp_path / "set.txt", DIGEST)
    assert (tmp_path / "set.txt").read_bytes() == CONTENT


def test_another_file_is_refused_and_not_kept(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "set.txt"
    with pytest.raises(
        UserError, match=rf"is not the file that was expected\nfound the SHA-256 {DIGEST}, expected 0"
    ):
        download(server.url, path, "0" * 64)
    with pytest.raises(UserError, match="found more than 12 bytes, expected 12"):
        download(server.url, path, None, size=12)
    assert rest(tmp_path) == set()
    # Nor is one that was begun with other bytes ever mended by its end.
    (tmp_path / ".set.txt.part").write_bytes(b"x" * 1000)
    with pytest.raises(UserError, match="not the file that was expected"):
        download(server.url, path, DIGEST)
    assert download(server.url, path, DIGEST)


def test_a_file_in_the_way_is_left_alone(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.txt").write_text("mine")
    with pytest.raises(UserError, match=r"is there, and is another file: remove it"):
        download(server.url, tmp_path / "set.txt", DIGEST)
    assert (tmp_path / "set.txt").read_text() == "mine"


@pytest.mark.parametrize("size", [11_953, None])
def test_more_bytes_than_expected_are_not_taken(
    server: Server, tmp_path: Path, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssdvae.data.benchmarks.MOST_BYTES", 2**20)
    server.endless = True
    with pytest.raises(UserError, match=rf"set.txt: found more than {size or 2**20:,} bytes"):
        download(server.url, tmp_path / "set.txt", None, size=size)
    assert rest(tmp_path) == set()
    assert server.sent < 2**27  # what the buffers of the system hold


@pytest.mark.parametrize("length", ["abc", "-5", "9" * 5000, "²"])
def test_a_length_that_is_no_number_is_passed_over(server: Server, tmp_path: Path, length: str) -> None:
    server.length = length
    with contextlib.suppress(UserError):  # of the library: a length without end, too
        assert download(server.url, tmp_path / "set.txt", DIGEST, size=len(CONTENT))
        assert (tmp_path / "set.txt").read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 500])
def test_a_server_that_refuses_is_told(server: Server, tmp_path: Path, status: int) -> None:
    server.status = status
    with pytest.raises(UserError, match=rf"the server answers {status} (.|\n)*put it at .*set.txt"):
        download(server.url, tmp_path / "set.txt", DIGEST)
    assert rest(tmp_path) == set()


def test_without_a_network_it_is_said_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot reach http://127.0.0.1:9/a(.|\n)*fetch it elsewhere, and"):
        download("http://127.0.0.1:9/a", tmp_path / "set.txt", DIGEST)
    with pytest.raises(UserError, match="expected an address in http or https"):
        download("file:///etc/passwd", tmp_path / "set.txt", DIGEST)
    # Put there by hand, it is checked and taken.
    (tmp_path / "set.txt").write_bytes(CONTENT)
    assert not download("http://127.0.0.1:9/a", tmp_path / "set.txt", DIGEST)


def test_a_set_without_a_digest_says_what_came(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert download(server.url, tmp_path / "set.txt", None, size=len(CONTENT))
    assert f"that of {tmp_path / 'set.txt'} is {DIGEST}" in caplog.text


def test_every_set_is_at_an_address_that_does_not_change() -> None:
    for found in SETS.values():
        assert found.url.startswith("https://raw.githubusercontent.com/")
        commit = found.url.split("/")[5]
        assert len(commit) == 40
        assert found.sha256 is None or len(found.sha256) == 64
