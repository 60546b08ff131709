"""Pulling the plug: what the tests of all resumable commands have in common."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ssdvae.io.progress import Advance


class Stopped(Exception):
    """Pulls the plug."""


class Watch:
    """Progress that tells how many chunks are written: at the beginning, and after each."""

    def __init__(self, check: Callable[[int], None]) -> None:
        self.check = check

    @contextlib.contextmanager
    def task(
        self, label: str, total: int | None = None, *, status: str = "", done: int = 0
    ) -> Iterator[Advance]:
        chunks = 0
        self.check(chunks)

        def advance(amount: int = 1, /, **fields: Any) -> None:
            nonlocal chunks
            chunks += 1
            self.check(chunks)

        yield advance


def stop_after(chunks: int) -> Watch:
    def check(written: int) -> None:
        if written == chunks:
            raise Stopped

    return Watch(check)


def damage(out: Path, content: bytes) -> None:
    """Write as a killed process does that has not entered its lines in the journal."""
    with (
        out.with_name(f".{out.name}.part").open("ab") as part,
        out.with_name(f".{out.name}.journal").open("ab") as journal,
    ):
        part.write(content)
        journal.write(content[:10])


def leftovers(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("."))


def stopped_by(how: signal.Signals, words: list[str], out: Path, entries: int, alone: bool = False) -> str:
    """Run a command, stop it (``alone``, or with its processes) after some entries; return its messages."""
    journal = out.with_name(f".{out.name}.journal")
    command = [sys.executable, "-m", "ssdvae", *words]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests that run in the background of a shell ignore Ctrl-C, and so would what they start.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not (journal.exists() and journal.read_bytes().count(b"\n") > entries):
            assert process.poll() is None, "it ended before it could be stopped"
            time.sleep(0.005)
        (os.kill if alone else os.killpg)(process.pid, how)
        # All that share its standard error have ended when this returns.
        return process.communicate(timeout=600)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_again(words: list[str]) -> str:
    """Run the same command again; return its messages."""
    done = subprocess.run([sys.executable, "-m", "ssdvae", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr
