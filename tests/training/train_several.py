"""Train several runs in each of several processes: `train_several.py CORPUS SETTINGS.json OUT`."""

from __future__ import annotations

import atexit
import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch


def tell_choices(replace: Callable[[type, str, object], object], tell: Callable[[str], object]) -> None:
    """Tell which reader is kept, whenever one is chosen."""
    from ssdvae.models.exact import ExactModel

    keep = ExactModel.keep_reader

    def keep_and_tell(self: ExactModel, which: int, *fitted: float) -> None:
        tell(f"keeps reader {which} with {fitted}")
        keep(self, which, *fitted)

    replace(ExactModel, "keep_reader", keep_and_tell)


if __name__ == "__main__":
    # What is registered first is called last: before the package is imported, to see what it leaves behind.
    atexit.register(lambda: print("in a group" if torch.distributed.is_initialized() else "left the group"))

    from ssdvae.data.corpus import Corpus
    from ssdvae.training.options import TrainOptions
    from ssdvae.training.train import train

    tell_choices(setattr, lambda line: sys.stdout.write(f"{line}\n"))  # in one piece
    corpus, settings, out = map(Path, sys.argv[1:])
    for name, values in json.loads(settings.read_text()).items():
        train(Corpus(corpus), out / name, TrainOptions(**values))
