"""Train several runs in each of several processes: `train_several.py CORPUS SETTINGS.json OUT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ssdvae.config import TrainSettings
from ssdvae.data.corpus import Corpus
from ssdvae.training.train import train

if __name__ == "__main__":
    corpus, settings, out = map(Path, sys.argv[1:])
    for name, values in json.loads(settings.read_text()).items():
        train(Corpus(corpus), out / name, TrainSettings(**values))
