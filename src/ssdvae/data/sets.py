"""Public sets of the field: where they are, and how to know that they came whole.

Each address names a commit, so that what is there does not change. The SHA-256 is that of a copy that was
read and measured with; of a set that has none here, `get` tells that of what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdvae.data.download import download
from ssdvae.errors import UserError
from ssdvae.progress import SILENT, Progress

GITHUB = "https://raw.githubusercontent.com"
HAQAE = f"{GITHUB}/StonyBrookNLP/HAQAE/6afd4da800388657d1f1861609a699019a64fbf2/data/Inverse_Cloze_Data"
TENSORS = f"{GITHUB}/StonyBrookNLP/event-tensors/fd9feab07bd9f922bf054e7730855b506187f818/data"
COMMONSENSE = f"{GITHUB}/MagiaSN/CommonsenseERL_EMNLP_2019/375c44bf3bef0eed19beeca3f1e4eee7aad97973/data"


@dataclass(frozen=True)
class PublicSet:
    """One file of others."""

    name: str
    what: str
    url: str
    sha256: str | None
    bytes: int | None
    source: str  # to be cited
    use: str  # the setting of `evaluate` that reads it

    @property
    def file(self) -> str:
        return f"{self.name}.txt"


SETS: dict[str, PublicSet] = {
    found.name: found
    for found in (
        PublicSet(
            "similarity-hard",
            "115 pairs of similar events, each against a pair that shares more words",
            f"{COMMONSENSE}/hard.txt",
            "c78950d8da15259a6e0af6e8c05760e1c9f9cc6da4ca04a5fdb9702c4254f681",
            11_953,
            "Weber et al. 2018, in the format of Ding et al. 2019",
            "--similarity",
        ),
        PublicSet(
            "similarity-extended",
            "1,000 such items",
            f"{COMMONSENSE}/hard_extend.txt",
            None,
            None,
            "Ding et al. 2019",
            "--similarity",
        ),
        PublicSet(
            "similarity-transitive",
            "108 pairs of events with ratings",
            f"{COMMONSENSE}/transitive.txt",
            "13e917c5e0b4ad1c4f8415b0f4f19ac44f7acd5a40cce06860ee902cacbb6e0c",
            6_783,
            "Kartsaklis and Sadrzadeh 2014, in the format of Ding et al. 2019",
            "--similarity",
        ),
        PublicSet(
            "mcnc-test",
            "multiple-choice narrative cloze",
            f"{TENSORS}/mcnc_test_final.txt",
            None,
            None,
            "Weber et al. 2018",
            "--mcnc",
        ),
        PublicSet(
            "cmcnc-dev",
            "the same with coherent chains, development",
            f"{TENSORS}/cmcnc_dev.txt",
            None,
            None,
            "Weber et al. 2018",
            "--mcnc",
        ),
        PublicSet(
            "nyt-cloze-valid",
            "2,000 items of the inverse narrative cloze",
            f"{HAQAE}/inverse_cloze_val_2k.txt",
            "f2c753d284ceb61cebf4de382316e493ac6cec6509fa46bc5e2bf3e7014806c4",
            2_022_347,
            "Weber et al. 2018 (HAQAE)",
            "--cloze",
        ),
        PublicSet(
            "nyt-cloze-test",
            "2,000 more of them",
            f"{HAQAE}/inverse_cloze_test_2k.txt",
            None,
            None,
            "Weber et al. 2018 (HAQAE)",
            "--cloze",
        ),
    )
}


def find_set(name: str) -> PublicSet:
    if name not in SETS:
        raise UserError(f"no set {name!r}; there are: {', '.join(SETS)}")
    return SETS[name]


def get_sets(names: Sequence[str], out: Path, progress: Progress = SILENT) -> dict[str, tuple[Path, bool]]:
    """Fetch sets into a folder, as far as they are not there: where each is, and whether it was fetched."""
    wanted = [find_set(name) for name in dict.fromkeys(names)]
    if not wanted:
        raise UserError(f"no set is named; there are: {', '.join(SETS)}")
    found = {}
    for each in wanted:
        path = out / each.file
        fetched = download(each.url, path, each.sha256, progress, size=each.bytes)
        found[each.name] = (path, fetched)
    return found
