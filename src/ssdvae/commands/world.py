"""`ssdvae world`: write documents of the storyworld."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command, jsonl_path
from ssdvae.data.options import WorldOptions
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.io.progress import Progress

log = logging.getLogger("ssdvae")


@with_options(WorldOptions)
def world(out: AnyPath, *, progress: bool | Progress = True, **options: Any) -> int:
    """Write documents of the storyworld, whose exact distribution is known; return their number.

    >>> ssdvae.world("events.jsonl", documents=2_000)

    Args:
        out: file to write, .jsonl or .jsonl.gz
    """
    from ssdvae.data.readers import write_jsonl
    from ssdvae.io.progress import resolve, track
    from ssdvae.storyworld.world import World

    chosen = WorldOptions(**options)
    documents = World.embedded().documents(chosen.documents, chosen.seed)
    written = write_jsonl(jsonl_path(out), track(resolve(progress), documents, "writing", chosen.documents))
    log.info(f"wrote {written:,} documents to {out}")
    return written


COMMAND = Command(
    world,
    examples=("ssdvae world events.jsonl", "ssdvae world events.jsonl.gz --documents 2000 --seed 2"),
)
