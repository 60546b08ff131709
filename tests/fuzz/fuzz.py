"""Damage real folders over and over: `python -m tests.fuzz.fuzz --seconds 600 --seed 1` (`make fuzz`).

Every input ends in one of these ways; the last four are failures, and the seed of each is told:

refused     a ``UserError``: a message, and the exit code 2
accepted    and what was read is what an independent reader, or the undamaged copy, has
wrong       accepted, and it is not
traceback   any other exception
slow        more than SLOW seconds
memory      more than MEMORY bytes beyond what the process had when it began
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from types import FrameType

from ssdvae.io.errors import UserError
from tests.fuzz.kinds import Kind, make
from tests.fuzz.logs import log_kinds
from tests.fuzz.models import model_kinds

SLOW = 60
MEMORY = 3 * 2**30
FAILURES = ("wrong", "traceback", "slow", "memory")


class TooSlow(Exception):
    """It takes longer than anybody waits."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def one(kind: Kind, seed: str) -> tuple[str, str]:
    """Damage the file of a kind as the seed has it, read it, put it back; returns how that ended, and why."""
    rng = Random(seed)
    vouchers = kind.path.parent / "manifest.json"
    kept = {path: path.read_bytes() for path in {kind.path, vouchers} if path.is_file()}
    content = kept[kind.path]
    try:
        damaged = rng.choice(kind.damages)(content, rng)
        kind.path.write_bytes(damaged)
        kind.vouch()
        signal.alarm(SLOW)
        try:
            found = kind.read()
            right = damaged == content or kind.holds(found)
        finally:
            signal.alarm(0)
        return ("accepted", "") if right else ("wrong", "what was read is not what is there")
    except UserError as error:
        return "refused", str(error)
    except MemoryError:
        return "memory", traceback.format_exc()
    except TooSlow:
        return "slow", traceback.format_exc()
    except Exception:
        return "traceback", traceback.format_exc()
    finally:
        for path, before in kept.items():
            path.write_bytes(before)


def fuzz(
    folder: Path, seed: int, *, count: int | None = None, seconds: float | None = None, only: str = ""
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Try so many inputs, or for so long, each kind in turn; return counts by kind, and failures."""
    logging.getLogger("ssdvae").setLevel(logging.ERROR)
    every = (*make(folder), *log_kinds(folder), *model_kinds(folder))
    kinds = [kind for kind in every if only in kind.name]
    counts = {kind.name: Counter[str]() for kind in kinds}
    failures: list[str] = []
    begun, done = time.monotonic(), 0
    signal.signal(signal.SIGALRM, _alarm)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_AS, (_mapped() + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    while (count is None or done < count) and (seconds is None or time.monotonic() - begun < seconds):
        kind = kinds[done % len(kinds)]
        end, why = one(kind, f"{seed} {done}")
        counts[kind.name][end] += 1
        if end in FAILURES:
            failures.append(f"{kind.name}, input {done} of seed {seed}: {end}\n{why}")
        elif end == "refused" and not _names_its_place(kind, why):
            counts[kind.name]["nameless"] += 1
            failures.append(f"{kind.name}, input {done} of seed {seed}: refused without a place: {why}")
        done += 1
    resource.setrlimit(
        resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_AS)[1])
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if peak > used + MEMORY:
        failures.append(f"memory grew from {used:,} to {peak:,} bytes")
    return counts, failures


def _mapped() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _names_its_place(kind: Kind, message: str) -> bool:
    """A refusal says which file, or which option; files vouch for each other."""
    folder = kind.path.parent if kind.path.parent.name != "cloze" else kind.path.parent.parent
    places = [str(path) for path in (kind.path, folder, folder.parent)]
    if kind.name == "typed events":
        places = ["standard input"]
    if kind.name.endswith("Options"):
        places = ["--", "no option"]
    return any(place in message for place in places)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--count", type=int)
    parser.add_argument("--only", default="", help="kinds with this in their name")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SSDVAE_CACHE"] = str(Path(folder, "cache"))
        counts, failures = fuzz(
            Path(folder), args.seed, count=args.count, seconds=args.seconds, only=args.only
        )
    ends = ("accepted", "refused", *FAILURES, "nameless")
    total: Counter[str] = sum(counts.values(), Counter())
    print(f"seed {args.seed}")
    print(f"{'kind':32}{'inputs':>9}" + "".join(f"{end:>11}" for end in ends))
    for name, ended in [*counts.items(), ("all", total)]:
        inputs = sum(ended[end] for end in ends if end != "nameless")
        print(f"{name:32}{inputs:9,}" + "".join(f"{ended[end]:11,}" for end in ends))
    for failure in failures[:20]:
        print(f"\n{failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
