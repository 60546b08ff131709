"""Learn what usually happens next from sequences of events, guided by partly known semantic frames.

Every command of ``ssdvae`` is a function here, with the same settings and the same defaults.

>>> import ssdvae
>>> ssdvae.world("events.jsonl", documents=2_000)
>>> corpus = ssdvae.prepare("events.jsonl", "corpus")
>>> run = ssdvae.train(corpus, "runs/first")
>>> ssdvae.evaluate("runs/first")["ppl_bound"]
>>> ssdvae.generate("runs/first", ["arrested police suspect in"])

Functions that take a while show a bar on a terminal and in a notebook; ``progress=False`` silences it. What
they have to say goes to the logger "ssdvae".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ssdvae.api import __all__ as __all__

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ssdvae.api import *  # noqa: F403  # the functions, for tools that read and do not run


def __getattr__(name: str) -> Any:
    # Looked up on first use: importing torch takes seconds.
    if name in __all__:
        from ssdvae import api

        return getattr(api, name)
    raise AttributeError(f"module 'ssdvae' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
