"""Time and memory of a command: ``python -m tests.measure ssdvae prepare events.jsonl --out corpus``.

Time, time of all processors, and the most memory that the command and its processes had at once: their own
(anonymous), and with the pages of files that are mapped, which the system takes back when it needs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import psutil

MB = 2**20


def memory(process: psutil.Process) -> tuple[int, int]:
    """Anonymous and resident bytes of a process and its children."""
    own = whole = 0
    for one in [process, *process.children(recursive=True)]:
        with (
            suppress(psutil.Error, OSError, KeyError),
            open(f"/proc/{one.pid}/status", encoding="utf-8") as file,
        ):
            status = dict(line.split(":", 1) for line in file)
            own += 1024 * int(status["RssAnon"].split()[0])
            whole += 1024 * int(status["VmRSS"].split()[0])
    return own, whole


def main(command: list[str]) -> int:
    began, most = time.monotonic(), [0, 0]
    running = subprocess.Popen(command)
    ended = threading.Event()

    def look() -> None:
        process = psutil.Process(running.pid)
        while not ended.wait(0.2):
            with suppress(psutil.Error):
                most[:] = map(max, most, memory(process))

    looking = threading.Thread(target=look)
    looking.start()
    code = running.wait()
    ended.set()
    looking.join()
    processors = sum(os.times()[2:4])
    print(
        f"{time.monotonic() - began:.1f} s, {processors:.1f} s of processors, "
        f"{most[0] / MB:.0f} MB of its own, {most[1] / MB:.0f} MB with mapped files",
        file=sys.stderr,
    )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
