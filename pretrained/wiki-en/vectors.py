"""Write a vector for each frequent word of some events: what a pretrained sentence encoder makes of it.

    python pretrained/wiki-en/vectors.py EVENTS.jsonl... --out vectors.txt
    python pretrained/wiki-en/vectors.py EVENTS.jsonl... --out heads.txt --heads --words 22000 --width 96

Each word is read alone; the mean of the encoder's states is reduced to its first principal components, which
are scaled to one common size. ``ssdvae train --vectors`` starts from the first file. ``ssdvae pack
--word-vectors`` stores the second one: a head that the model does not know is read as the nearest one.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import torch

from ssdvae.data.events import SLOTS
from ssdvae.data.readers import read_documents
from ssdvae.extraction.encoder import load_encoder

SCALE = 0.3
"""The standard deviation of a coordinate, about that of GloVe's vectors."""


@torch.no_grad()
def main(events: list[Path], out: Path, words: int, width: int, encoder: str, heads: bool) -> None:
    counts = Counter(
        word.lower()
        for path in events
        for document in read_documents(path)
        for event in document.events
        for word in event.values(len(SLOTS))[: 1 if heads else None]
        if word
    )
    chosen = [word for word, _ in counts.most_common(words)]
    network, tokenizer = load_encoder(encoder)
    network.eval()
    rows = []
    for start in range(0, len(chosen), 256):
        texts = [word.replace("_", " ") for word in chosen[start : start + 256]]
        read = tokenizer(texts, padding=True, return_tensors="pt")
        mask = read["attention_mask"].unsqueeze(-1)
        states = network(input_ids=read["input_ids"], attention_mask=read["attention_mask"]).last_hidden_state
        rows.append((states * mask).sum(1) / mask.sum(1))
    found = torch.cat(rows)
    found = found - found.mean(0)
    reduced = found @ torch.linalg.svd(found, full_matrices=False).Vh[:width].T
    reduced *= SCALE / reduced.std()
    with out.open("w", encoding="utf-8") as file:
        for word, row in zip(chosen, reduced.tolist(), strict=True):
            print(word, *(f"{value:.4f}" for value in row), file=file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("events", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--words", type=int, default=30_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--heads", action="store_true", help="read no arguments of events")
    main(**vars(parser.parse_args()))
