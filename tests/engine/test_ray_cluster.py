"""Ray as the engine: what one process gives, in the same order, whatever happens to the machines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ssdvae.data.options import AnnotateOptions, EngineOptions, ExtractOptions
from ssdvae.data.prepare import prepare
from ssdvae.engine.pool import map_in_processes
from ssdvae.extraction.annotate import annotate
from ssdvae.extraction.classifier import Lexicon
from ssdvae.extraction.extract import CHUNK, extract
from ssdvae.io.errors import DataError, UserError
from tests.clusters import Machines, patient, three_machines
from tests.data.test_shards import contents
from tests.extraction.test_extract import corpus

pytest.importorskip("ray")


PATIENCE = 300
"""Seconds after which what a test waits for will not come."""


def attempted(number: int, folder: Path, until: Path | None = None) -> int:
    """The number, once a file is there; each attempt is a line in a file, with its machine."""
    import ray

    with open(folder / str(number), "a") as file:
        file.write(ray.get_runtime_context().get_node_id() + "\n")
    if until is not None:
        wait_for(until.exists)
    if number == 99:
        raise DataError("some.jsonl", 99, "a bad number", "a good one")
    return number


def wait_for(fact: Callable[[], Any]) -> Any:
    """Return what the function returns, once that is true."""
    latest = time.monotonic() + PATIENCE
    while not (found := fact()):
        assert time.monotonic() < latest
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    with pytest.MonkeyPatch.context() as patch, three_machines(patch.setenv) as machines:
        yield machines


def test_a_cluster_of_this_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Order, names relative to our folder, the error as it was raised there, and nothing left in the end."""
    import ray

    patient(monkeypatch.setenv)
    (tmp_path / "attempts").mkdir()
    work = partial(attempted, folder=Path(os.path.relpath(tmp_path / "attempts")))
    engine = EngineOptions(engine="ray", jobs=2)
    results = map_in_processes([*range(12), 99, 12], work, engine)
    first = [next(results) for _ in range(12)]
    assert first == list(range(12))
    with pytest.raises(DataError, match=r"some\.jsonl, line 99: found a bad number") as raised:
        next(results)
    assert raised.value.line == 99
    assert not ray.is_initialized()


def test_a_cluster_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match=r"cannot join the Ray cluster 127\.0\.0\.1:1: "):
        list(map_in_processes([1, 2], abs, EngineOptions(engine="ray", address="127.0.0.1:1")))


def test_a_node_that_is_not_up_in_time_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray raises an exception of no other class than Exception."""

    def late(**options: Any) -> None:
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr("ray.init", late)
    with pytest.raises(UserError, match=r"Ray cluster of this machine: The current node timed out"):
        list(map_in_processes([1, 2], abs, EngineOptions(engine="ray", jobs=1)))


def test_an_address_is_ray_s() -> None:
    with pytest.raises(UserError, match="--address: found 'auto', expected none without --engine ray"):
        ExtractOptions(address="auto")


@pytest.mark.journey
def test_what_a_lost_machine_had_is_done_again(cluster: Machines, tmp_path: Path) -> None:
    """In order, and some of it twice."""
    engine = EngineOptions(engine="ray", address=cluster.whole().address)
    attempts, lost = tmp_path / "attempts", tmp_path / "lost"
    attempts.mkdir()

    def at_work() -> tuple[str, str] | None:
        """A number that is being done on another machine than the head, and that machine."""
        names = {other.node_id for other in cluster.others}
        machines = {path.name: path.read_text().strip() for path in attempts.iterdir()}
        return next((one for one in machines.items() if one[1] in names), None)

    had = []

    def numbers() -> Iterator[int]:
        yield from range(6)
        # Nothing of it can be done before a machine that has a part of it is lost.
        number, machine = wait_for(at_work)
        had.append(number)
        cluster.lose(machine)
        lost.touch()
        yield from range(6, 20)

    work = partial(attempted, folder=attempts, until=lost)
    assert list(map_in_processes(numbers(), work, engine)) == list(range(20))
    counts = {path.name: len(path.read_text().split()) for path in attempts.iterdir()}
    assert counts[had[0]] >= 2
    assert sum(counts.values()) < 30


@pytest.mark.journey
def test_reading_ahead_is_bounded(cluster: Machines, tmp_path: Path) -> None:
    """Of endless work, no more is begun than can be done soon."""
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    engine = EngineOptions(engine="ray", address=cluster.whole().address)
    results = map_in_processes(endless(), partial(attempted, folder=tmp_path), engine)
    for done in range(1, 6):
        next(results)
        assert taken <= 3 * 3 + done
    results.close()  # type: ignore[attr-defined]  # a generator


@pytest.mark.journey
def test_no_more_at_once_than_was_asked_for(cluster: Machines, tmp_path: Path) -> None:
    engine = EngineOptions(engine="ray", address=cluster.whole().address, jobs=1)
    results = map_in_processes(range(6), partial(attempted, folder=tmp_path), engine)
    for done, _ in enumerate(results, start=1):
        assert len(list(tmp_path.iterdir())) <= done + 3
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.journey
def test_extract_loses_a_machine(cluster: Machines, tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 30 * CHUNK, bad=(7, 40))
    alone = ExtractOptions(jobs=1, shard_documents=20)
    ray = ExtractOptions(engine="ray", address=cluster.whole().address, shard_documents=20)
    for name in ("file.jsonl.gz", "folder"):
        one = extract([source], tmp_path / f"one-{name}", alone)
        many = extract([source], tmp_path / f"many-{name}", ray, progress=cluster.lose_after(3))
        cluster.whole()
        assert (one.documents, one.events, str(one.skipped)) == (
            many.documents,
            many.events,
            str(many.skipped),
        )
    assert (tmp_path / "one-file.jsonl.gz").read_bytes() == (tmp_path / "many-file.jsonl.gz").read_bytes()
    assert contents(tmp_path / "one-folder") == contents(tmp_path / "many-folder")


@pytest.mark.journey
def test_shards_through_annotate_and_prepare(cluster: Machines, tmp_path: Path) -> None:
    source = corpus(tmp_path / "a.conllu", 10 * CHUNK)
    address = cluster.whole().address
    extract([source], tmp_path / "events", ExtractOptions(jobs=1, shard_documents=20))
    lexicon = Lexicon({"open": {"Openness": 1.0}, "give": {"Giving": 1.0}})
    annotate(tmp_path / "events", tmp_path / "one", lexicon, AnnotateOptions(jobs=1))
    ray = AnnotateOptions(engine="ray", address=address)
    annotate(tmp_path / "events", tmp_path / "many", lexicon, ray, progress=cluster.lose_after(2))
    assert contents(tmp_path / "one") == contents(tmp_path / "many")
    prepare(tmp_path / "one", tmp_path / "corpus-one")
    engine = EngineOptions(engine="ray", address=cluster.whole().address)
    prepare(tmp_path / "one", tmp_path / "corpus-many", engine=engine)
    assert contents(tmp_path / "corpus-one") == contents(tmp_path / "corpus-many")


@pytest.mark.journey
def test_a_wrong_token_is_refused_in_words(tmp_path: Path) -> None:
    """Ray's own settings are respected: a cluster that asks for a token gets it, or nobody joins."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from ssdvae.data.options import EngineOptions\n"
        "from ssdvae.io.errors import UserError\n"
        "from ssdvae.engine.pool import map_in_processes\n"
        "try:\n"
        "    engine = EngineOptions(engine='ray', address=sys.argv[1])\n"
        "    print(list(map_in_processes([-1, -2], abs, engine)))\n"
        "except UserError as error:\n"
        "    print('refused:', error)\n"
    )
    head = tmp_path / "head.py"
    head.write_text(
        "import sys\n"
        "from ray.cluster_utils import Cluster\n"
        "args = {'num_cpus': 1, 'object_store_memory': 10**8, 'include_dashboard': False}\n"
        "cluster = Cluster(initialize_head=True, head_node_args=args)\n"
        "print(cluster.address, flush=True)\n"
        "sys.stdin.read()\n"
        "cluster.shutdown()\n"
    )
    token = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64}
    process = subprocess.Popen(
        [sys.executable, str(head)], env=token, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        said = [
            subprocess.run(
                [sys.executable, str(script), address], env=env, text=True, capture_output=True, timeout=300
            ).stdout
            for env in (token, {**token, "RAY_AUTH_TOKEN": "b" * 64})
        ]
    finally:
        process.communicate("", timeout=120)
    assert said[0] == "[1, 2]\n"
    assert said[1].startswith(f"refused: cannot join the Ray cluster {address}: ")
