"""Relations between frames, as FrameNet has them: a list in JSON of {"relation": …, "sub": …, "sup": …}."""

from __future__ import annotations

from pathlib import Path

from ssdvae.errors import DataError, shorten
from ssdvae.records import read_json

Relation = dict[str, str]
KEYS = ("relation", "sub", "sup")


def read_relations(path: Path) -> list[Relation]:
    """The relations of a file; what else it says of them (roles) is kept."""
    found: list[Relation] = read_json(path, list, "a list of relations between frames")
    for place, relation in enumerate(found, start=1):
        if not isinstance(relation, dict) or not all(isinstance(relation.get(key), str) for key in KEYS):
            expected = f"names for {', '.join(KEYS)} in each relation"
            raise DataError(path, None, f"relation {place}: {shorten(relation)}", expected)
    return found
