"""Train several runs in each of several processes: `train_several.py CORPUS SETTINGS.json OUT`."""

from __future__ import annotations

import atexit
import json
import sys
from pathlib import Path

import torch

if __name__ == "__main__":
    # What is registered first is called last: before the package is imported, to see what it leaves behind.
    atexit.register(lambda: print("in a group" if torch.distributed.is_initialized() else "left the group"))

    from ssdvae.config import TrainSettings
    from ssdvae.data.corpus import Corpus
    from ssdvae.training.train import train

    corpus, settings, out = map(Path, sys.argv[1:])
    for name, values in json.loads(settings.read_text()).items():
        train(Corpus(corpus), out / name, TrainSettings(**values))
