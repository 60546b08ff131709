"""`ssdvae data`: download public benchmark sets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ssdvae.commands import AnyPath, Command
from ssdvae.commands.console import say, show, table_of
from ssdvae.io.errors import UserError

if TYPE_CHECKING:
    from ssdvae.data.benchmarks import Download, PublicSet
    from ssdvae.io.progress import Progress


def get_data(
    names: str | Iterable[str], out: AnyPath = "sets", *, progress: bool | Progress = True
) -> list[Download]:
    """Download public sets into a folder and verify their SHA-256; files that exist are verified and kept.

    >>> ssdvae.get_data(["similarity-hard", "nyt-cloze-valid"], "sets")

    `public_sets` lists them. A download that was cut off is resumed.
    """
    from ssdvae.data.benchmarks import get_sets
    from ssdvae.io.progress import resolve

    return get_sets([names] if isinstance(names, str) else names, Path(out), resolve(progress))


def public_sets() -> list[PublicSet]:
    """Return the public sets that `get_data` can download.

    >>> [found.name for found in ssdvae.public_sets()]
    """
    from ssdvae.data.benchmarks import SETS

    return list(SETS.values())


def main(action: str, names: list[str] = [], *, out: Path = Path("sets")) -> None:  # noqa: B006  # read only
    """Download public benchmark sets: event similarity, narrative cloze, stories with script events.

    Args:
        action: get, to download sets; list, to show which there are
        names: the sets to download; the beginning of a name stands for all that begin so
        out: folder for them
    """
    if action == "list":
        columns = (
            ("name", "{0.name}"),
            ("content", "{0.about}"),
            ("read by", "{0.use}"),
            ("from", "{0.source}"),
        )
        show([table_of("Public sets", public_sets(), *columns)])
    elif action == "get":
        for got in get_data(names, out):
            say(f"{'downloaded' if got.fetched else 'already there:'} {got.path}")
    else:
        raise UserError(f"found {action!r}, expected get or list")


COMMAND = Command(
    main,
    examples=(
        "ssdvae data list",
        "ssdvae data get similarity-hard nyt-cloze-valid --out sets",
        "ssdvae data get inscript --out inscript",
    ),
)
