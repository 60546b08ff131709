"""A real Ray cluster of three machines, all of them this one; and how to lose a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from tests.extraction.stopping import Watch

NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 * 2**20}


class Machines:
    """A head, on which the tests are, and two others."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {**NODE, "include_dashboard": False}
        self.cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self.others = [self.cluster.add_node(**NODE) for _ in range(2)]

    @property
    def address(self) -> str:
        address: str = self.cluster.address
        return address

    def lose(self, node: str | None = None) -> None:
        """One machine goes, by its name or the last one, with all that was done on it."""
        lost = next((other for other in self.others if other.node_id == node), self.others[-1])
        self.others.remove(lost)
        # Its workers go first: left alone, they would live to the end of what they do, and hand it in.
        for daemon in lost.all_processes["raylet"]:
            for worker in psutil.Process(daemon.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    worker.kill()
        self.cluster.remove_node(lost, allow_graceful=False)

    def whole(self) -> Machines:
        """As many as in the beginning."""
        while len(self.others) < 2:
            self.others.append(self.cluster.add_node(**NODE))
        self.cluster.wait_for_nodes()
        return self

    def lose_after(self, chunks: int) -> Watch:
        """Progress that loses a machine when some chunks are done."""

        def told(done: int) -> None:
            if done == chunks:
                self.lose()

        return Watch(told)


def patient(setenv: Callable[[str, str], object]) -> None:
    """On a busy machine a process may take minutes to start, the more so as Ray lets others go before it."""
    setenv("RAY_worker_niceness", "0")
    setenv("RAY_USAGE_STATS_ENABLED", "0")
    setenv("RAY_worker_register_timeout_seconds", "600")


@contextmanager
def three_machines(setenv: Callable[[str, str], object]) -> Iterator[Machines]:
    patient(setenv)
    machines = Machines()
    try:
        yield machines
    finally:
        machines.cluster.shutdown()
