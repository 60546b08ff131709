"""How this process holds its memory."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache

from ssdvae.limits import Limit

KEPT = 2**31 - 1
LARGEST = 32 * 2**20
"""The largest threshold that glibc takes."""


@cache
def keep_freed_memory() -> None:
    """Let glibc give freed memory to the next tensor, instead of back to the system.

    Every step of training asks for the same sizes. By default tensors of some megabytes come fresh from the
    system each time, page by page and zeroed, which on a CPU costs more than much of the arithmetic.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_threshold, LARGEST)
    libc.mallopt(trim_threshold, KEPT)
    libc.mallopt(top_pad, LARGEST)


def memory_limit() -> int:
    """What this machine has, in bytes, or what the environment allows."""
    limit = Limit("SSDVAE_MAX_MEMORY", _physical_memory())
    return limit.bytes


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a Unix: nothing is known, so nothing is refused
        return 2**62


def peak_memory_mb() -> float:
    """The most memory that this process ever had, in millions of bytes."""
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6
