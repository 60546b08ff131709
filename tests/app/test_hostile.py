"""Clients that ask for too much, too slowly or without end: the server stays there for the others."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from ssdvae.app.options import ExploreOptions
from ssdvae.io.errors import UserError
from tests.app.conftest import Served, serving

EVENTS = ["chased ann dog", "caught bob", "tried eve cat"]


@pytest.fixture(scope="module")
def strict(runs: list[Path]) -> Iterator[Served]:
    with serving(runs[:1], connections=20) as found:
        yield found


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("guard", "connection"):
        monkeypatch.setattr(f"ssdvae.app.{module}.READ_SECONDS", 2.0)


def connect(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=30)


def head(served: Served, *lines: str, method: str = "POST", path: str = "/api/infer") -> bytes:
    host = f"Host: 127.0.0.1:{served.port}"
    return "\r\n".join([f"{method} {path} HTTP/1.1", host, *lines, "", ""]).encode()


def is_closed(client: socket.socket, seconds: float) -> bool:
    """Tell whether the server hangs up within so many seconds."""
    client.settimeout(seconds)
    try:
        while client.recv(2**16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("nulls", [40, 2_000])
def test_work_that_is_too_much_is_refused_before_it_begins(strict: Served, nulls: int) -> None:
    begun = time.monotonic()
    reply = strict.ask("/api/fill", {"documents": [[None] * nulls]})
    assert reply.status == 422
    assert f"work of {nulls * 100 * (nulls + 1):,} in one request" in reply.json["detail"]
    assert time.monotonic() - begun < 5
    (filled,) = strict.ask("/api/fill", {"documents": [[None, *EVENTS, None]], "beam": 5}).json["documents"]
    assert [hole["event"] for hole in filled["holes"]] == [1, 5]


def test_options_count_as_work(strict: Served) -> None:
    for body in ({"documents": [EVENTS], "top": 10**6}, {"documents": [EVENTS] * 200, "beam": 100}):
        assert strict.ask("/api/next", body).status == 422


def test_a_request_whose_client_leaves_is_given_up(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The next batch is not computed."""
    batches: list[int] = []
    begun, go = threading.Event(), threading.Event()

    def slow(model: Any, documents: Any, **options: Any) -> Iterator[Any]:
        for number in range(1000):
            batches.append(number)
            begun.set()
            assert go.wait(60)
            yield number

    monkeypatch.setattr("ssdvae.app.explorer.infer_documents", slow)
    with serving(runs[:1]) as served:
        body = json.dumps({"documents": [EVENTS] * 3}).encode()
        with connect(served) as client:
            client.sendall(
                head(served, f"Content-Length: {len(body)}", "Content-Type: application/json") + body
            )
            assert begun.wait(60)
        time.sleep(0.5)
        go.set()
        deadline = time.monotonic() + 30
        while served.ask("/api/score", {"documents": [EVENTS]}).status != 200:
            assert time.monotonic() < deadline
    assert batches == [0]


def test_headers_and_addresses_without_end_are_cut_off(strict: Served) -> None:
    for begin in (b"GET /", head(strict)[:-2] + b"X: "):
        with connect(strict) as client:
            client.sendall(begin)
            sent = 0
            with contextlib.suppress(ConnectionError):
                while sent < 10_000_000:
                    client.sendall(b"x" * 1000)
                    sent += 1000
                    time.sleep(0.0005)
            assert sent < 5_000_000
            assert is_closed(client, 20)
    long = strict.ask("/read?e=" + "x" * 17_000)
    assert long.status in (400, 431)
    assert "16,384 bytes" in long.text


@pytest.mark.parametrize("begin", [b"", b"GET / HT", b"POST /api/infer HTTP/1.1\r\nHost: x\r\n"])
def test_a_request_that_does_not_come_is_not_waited_for(strict: Served, begin: bytes) -> None:
    """Also if a byte comes now and then."""
    with connect(strict) as silent, connect(strict) as slow:
        begun = time.monotonic()
        for client in (silent, slow):
            client.sendall(begin)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < 20:
                slow.sendall(b"a")
                time.sleep(0.2)
        assert time.monotonic() - begun < 15
        assert is_closed(silent, 15)


def test_a_body_that_does_not_come_is_told(strict: Served) -> None:
    with connect(strict) as client:
        client.sendall(head(strict, "Content-Length: 1000"))
        assert client.recv(100).startswith(b"HTTP/1.1 408")
        assert is_closed(client, 15)


def test_idle_connections_make_room_for_others(strict: Served) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connect(strict))
        assert strict.ask("/api/infer", {"documents": [EVENTS]}).status == 200
        mine = psutil.Process().net_connections()
        there = [c for c in mine if c.laddr and c.laddr.port == strict.port and c.status == "ESTABLISHED"]
        assert len(there) <= 21


def test_nothing_in_a_request_is_a_server_error(strict: Served) -> None:
    body: Any = {"documents": [EVENTS]}
    for origin in ("http://[", "null", "http://[::1", "//", "http://a:b:c"):
        assert strict.ask("/api/infer", body, Origin=origin).status == 403
    half = "\ud800"
    for path, hostile in (
        ("infer", {"documents": [[f"met {half}"]]}),
        ("infer", {"documents": [[{"verb": half}]]}),
        ("infer", {"documents": [{"id": half, "events": EVENTS}]}),
        ("infer", {"documents": [[{"verb": "met", "frame": half}]]}),
        ("infer", {"documents": [], "run": half}),
        ("infer", {"documents": [], half: 1}),
        ("next", {"documents": [EVENTS], "given": {"verb": half}}),
        ("next", {"documents": [EVENTS], "given": {half: "met"}}),
        ("generate", {"frames": [half]}),
    ):
        reply = strict.ask(f"/api/{path}", hostile)
        assert reply.status == 422, hostile
        assert "ud800" in reply.json["detail"]
    for deep in (
        b"[" * 100_000,
        b'{"documents": ' + b"[" * 100_000,
        b'{"top": ' + b"9" * 5000 + b"}",
        b"\xff",
    ):
        assert strict.ask("/api/infer", deep).status in (400, 422)


@pytest.mark.parametrize("token", ["geheimes Wört", "a token with\ttab", "0123456789ab\n"])
def test_a_token_that_no_header_can_have_is_refused(token: str) -> None:
    with pytest.raises(UserError, match="--token"):
        ExploreOptions(token=token)


def test_the_description_lists_every_answer(strict: Served) -> None:
    paths = strict.ask("/openapi.json").json["paths"]
    for operations in paths.values():
        for operation in operations.values():
            answers = {"200", "400", "401", "403", "408", "413", "421", "422", "431", "503"}
            assert answers <= operation["responses"].keys()


ENDLESS = """
import sys, torch
from pathlib import Path
from ssdvae.app import explorer
from ssdvae.cli import main
def compute(*_, **__):
    print("computing", flush=True)
    while True:  # one long call after another, none of which looks whether anybody waits
        torch.rand(3000, 3000) @ torch.rand(3000, 3000)
explorer.infer_documents = compute
sys.exit(main(["explore", sys.argv[1], "--port", "0", "--no-open"]))
"""


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGINT, signal.SIGINT]])
def test_the_server_ends_whatever_runs(runs: list[Path], signals: list[signal.Signals]) -> None:
    command = [sys.executable, "-c", ENDLESS, str(runs[0])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert server.stdout is not None
            port = next(int(found[1]) for line in server.stderr if (found := re.search(r":(\d+)/", line)))
            served = Served(port)
            body = json.dumps({"documents": [EVENTS]}).encode()
            with connect(served) as client:
                client.sendall(
                    head(served, f"Content-Length: {len(body)}", "Content-Type: application/json") + body
                )
                assert server.stdout.readline() == "computing\n"
                begun = time.monotonic()
                for number in signals:
                    server.send_signal(number)
                    time.sleep(0.2)
                code = server.wait(60)
            assert time.monotonic() - begun < 5
            # Ctrl-C is how one leaves the explorer: it may end well.
            assert code in (0, -signals[0], 128 + signals[0])
        finally:
            server.kill()


@contextlib.contextmanager
def server_process(run: Path) -> Iterator[Served]:
    """The server in a process of its own, as users run it."""
    command = [sys.executable, "-m", "ssdvae.cli", "explore", str(run), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            yield Served(
                next(int(found[1]) for line in server.stderr if (found := re.search(r":(\d+)/", line)))
            )
        finally:
            server.kill()


SECONDS = 60


@pytest.mark.slow
def test_an_honest_client_beside_hostile_ones(runs: list[Path]) -> None:
    """Slow, endless, idle, cancelled and greedy clients, all at once; p95 of the honest one is below 2 s."""
    with server_process(runs[0]) as served:
        until = time.monotonic() + SECONDS
        rounds: Counter[str] = Counter()
        wide = json.dumps({"documents": [[None] * 20], "beam": 100}).encode()
        posted = head(
            served, f"Content-Length: {len(wide)}", "Content-Type: application/json", path="/api/fill"
        )

        def drip(client: socket.socket) -> None:
            client.sendall(b"GET /read HTTP/1.1\r\nX: ")
            for _ in range(100):
                client.sendall(b"x")
                time.sleep(0.2)

        def flood(client: socket.socket) -> None:
            client.sendall(head(served, "Transfer-Encoding: chunked"))
            while True:
                client.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                time.sleep(0.005)

        def endless_header(client: socket.socket) -> None:
            client.sendall(b"GET /")
            while True:
                client.sendall(b"x" * 4096)
                time.sleep(0.005)

        def idle(client: socket.socket) -> None:
            time.sleep(0.1)
            kept.append(client.dup())

        def cancelled(client: socket.socket) -> None:
            client.sendall(posted + wide)
            time.sleep(0.1)

        def greedy(client: socket.socket) -> None:
            client.sendall(posted + wide)
            client.settimeout(60)
            assert client.recv(2**16)

        def again_and_again(act: Callable[[socket.socket], None]) -> None:
            while time.monotonic() < until:
                with contextlib.suppress(OSError), connect(served) as client:
                    act(client)
                rounds[act.__name__] += 1
                time.sleep(0.02)

        kept: list[socket.socket] = []
        acts = [drip] * 5 + [flood] * 2 + [endless_header] * 2 + [idle] * 2 + [cancelled] * 3 + [greedy] * 8
        threads = [threading.Thread(target=again_and_again, args=(act,), daemon=True) for act in acts]
        for thread in threads:
            thread.start()
        waited: list[float] = []
        while time.monotonic() < until:
            begun = time.monotonic()
            assert served.ask("/api/infer", {"documents": [EVENTS]}).status == 200
            waited.append(time.monotonic() - begun)
            time.sleep(0.1)
        for thread in threads:
            thread.join(70)
        for client in kept:
            client.close()
        assert set(rounds) == {act.__name__ for act in acts}
        middle, late = np.quantile(waited, [0.5, 0.95])
        print(f"{len(waited)} answers, p50 {middle:.2f} s, p95 {late:.2f} s; rounds: {dict(rounds)}")
        assert late < 2
        assert served.ask("/api/score", {"documents": [EVENTS]}).status == 200
