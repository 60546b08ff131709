"""Pulling the plug: what the tests of all resumable commands have in common."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ssdvae.extraction.stream import Chunk, Progress


class Stopped(Exception):
    """Pulls the plug."""


def stop_after(chunks: int) -> Progress:
    def progress(items: Iterable[Chunk]) -> Iterator[Chunk]:
        for number, item in enumerate(items):
            if number == chunks:
                raise Stopped
            yield item

    return progress


def damage(out: Path, content: bytes) -> None:
    """What a killed process had written without entering it in the journal."""
    with (
        out.with_name(f".{out.name}.part").open("ab") as part,
        out.with_name(f".{out.name}.journal").open("ab") as journal,
    ):
        part.write(content)
        journal.write(content[:10])


def leftovers(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("."))


def stopped_by(how: signal.Signals, words: list[str], out: Path, entries: int, alone: bool = False) -> str:
    """Run a command, stop it (``alone``, or with its processes) after some entries; what it said."""
    journal = out.with_name(f".{out.name}.journal")
    command = [sys.executable, "-m", "ssdvae.cli.main", *words]
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
        return process.communicate(timeout=30)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def go_on(words: list[str]) -> str:
    """The same command again; what it said."""
    done = subprocess.run([sys.executable, "-m", "ssdvae.cli.main", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr
