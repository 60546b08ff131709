"""The explorer of two small models, some of whose words and frames try to be markup."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ssdvae.app.explorer import Explorer
from ssdvae.app.options import ExploreOptions
from ssdvae.app.server import bind, explored, make_server
from ssdvae.commands.coerce import model_with_quantiles
from ssdvae.commands.prepare import prepare
from ssdvae.commands.tickets import tickets
from ssdvae.commands.train import train
from tests.extraction.conftest import spacy_model as spacy_model
from tests.report.conftest import runs as runs
from tests.shared import made_once


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Served:
    """A server that runs, and a way to ask it anything."""

    port: int

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Reply:
        """A header ``Content_Type`` is written Content-Type."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        connection.request(method or ("GET" if body is None else "POST"), path, content, sent)
        answer = connection.getresponse()
        reply = Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode())
        connection.close()
        return reply


@contextmanager
def serving(folders: list[Path], documents: Path | None = None, **settings: Any) -> Iterator[Served]:
    # A machine that others use too has no known speed.
    chosen = ExploreOptions(port=0, **{"seconds": 600.0, **settings})
    with bind(chosen) as listening:
        port = listening.getsockname()[1]
        models = explored(
            [(folder, model_with_quantiles(folder, False)) for folder in folders], documents, chosen
        )
        explorer = Explorer(models, chosen)
        server = make_server(explorer, port)
        listening.listen(128)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.02)
            yield Served(port)
        finally:
            server.should_exit = True
            thread.join()
            explorer.close()


@pytest.fixture(scope="module")
def served(runs: list[Path], spacy_model: Path) -> Iterator[Served]:
    with serving(runs[:1], spacy_model=str(spacy_model)) as found:
        yield found


@pytest.fixture(scope="session")
def log_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run about tickets."""
    return made_once(tmp_path_factory, "log-run", _make_log_run) / "run"


def _make_log_run(folder: Path) -> None:
    table, corpus = folder / "tickets.csv", folder / "corpus"
    tickets(table, documents=80, progress=False)
    columns: dict[str, Any] = {"case": "ticket", "time": "when", "head": "action", "label": "stage"}
    columns |= {"arguments": "agent,product,channel", "valid_share": 0.3, "preset": "tiny"}
    prepare(table, corpus, progress=False, **columns)
    train(corpus, folder / "run", preset="tiny", epochs=2, progress=False)
