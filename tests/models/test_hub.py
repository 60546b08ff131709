"""Loading a model from a hub, here a server on this machine that answers as the Hugging Face hub does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ssdvae.io.files import sha256
from ssdvae.models.hub import FILES
from tests.toys import toy_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """A hub with one model, ``someone/toy``."""
    folder = tmp_path / "toy"
    toy_model().save_pretrained(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:  # the names are http.server's
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path = self.path.partition("?")[0]
            name = path.rpartition("/")[2]
            if path.startswith("/api/models/someone/toy"):
                files = [{"rfilename": f, "type": "file", "path": f, "oid": f, "size": 1} for f in FILES]
                content = json.dumps(
                    files if "/tree/" in path else {"id": "someone/toy", "sha": COMMIT, "siblings": files}
                ).encode()
            elif path.startswith("/someone/toy/resolve/") and name in FILES:
                content = (folder / name).read_bytes()
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Repo-Commit", COMMIT)
            if (folder / name).is_file():
                self.send_header("ETag", f'"{sha256(folder / name)}"')
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def load(names: Sequence[str], endpoint: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the address of the hub is read when its library is imported."""
    script = (
        "import sys, ssdvae\n"
        "from ssdvae.io.errors import UserError\n"
        "for name in sys.argv[1:]:\n"
        "    try: model = ssdvae.load(name)\n"
        "    except UserError as error: sys.exit(str(error))\n"
        "    print(type(model).__name__, len(model.vocabulary), len(model.frames))"
    )
    environment = {
        **os.environ,
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(cache),
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
    }
    command = [sys.executable, "-c", script, *names]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)


def test_a_model_is_loaded_by_its_name_and_one_that_the_hub_does_not_have_is_a_clear_message(
    hub: str, tmp_path: Path
) -> None:
    done = load(["someone/toy", "someone/else"], hub, tmp_path / "cache")
    assert done.stdout.split() == ["SSDVAE", "11", "3"], done.stderr
    assert done.returncode == 1
    assert "there is no folder someone/else" in done.stderr
    assert "Traceback" not in done.stderr
