"""Models to give away, their quantiles, and the figures of a sweep, damaged."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import shutil
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from ssdvae.commands.pack import pack
from ssdvae.data.columns import XES
from ssdvae.data.readers import read_documents
from ssdvae.models.base import Model
from ssdvae.models.hub import SCRIPTS
from ssdvae.models.quantiles import TYPICAL, SurprisalQuantiles
from ssdvae.reproduction.results import HEAD, VALIDATION, ResultsCache
from ssdvae.storyworld.tickets import generate_tickets, write_log
from tests.fuzz.damage import NASTY, TEXTS, bytes_changed, header_changed, json_changed, lines_changed
from tests.fuzz.kinds import Kind
from tests.fuzz.logs import CELLS, xml_changed


def model_kinds(folder: Path) -> list[Kind]:
    """Kinds of a packed model, of one without a seal, of quantiles, and of cells."""
    return [*_packs(folder), _cells(folder), _packed_log(folder)]


def _packs(folder: Path) -> list[Kind]:
    packed, unsealed = folder / "packed", folder / "unsealed"
    pack(folder / "run", packed, tasks="perplexity", bound_samples=1, progress=False)
    shutil.copytree(packed, unsealed)
    weights = load_file(packed / "model.safetensors")
    save_file(weights, unsealed / "model.safetensors")
    # Copied: what safetensors gives goes on being the file, which is about to be damaged.
    original = {name: tensor.float().clone() for name, tensor in weights.items()}

    def model_holds(found: tuple[Model, Any]) -> bool:
        """A model has the weights of the file, and quantiles that are finite and in order."""
        state = found[0].state_dict()
        same = all(torch.equal(state[name].float(), tensor) for name, tensor in original.items())
        return state.keys() == original.keys() and same

    def kind(name: str, place: Path, file: str, *damages: Any) -> Kind:
        def read() -> tuple[Model, Any]:
            model = Model.read(place)
            return model, list(read_documents(place / SCRIPTS, slots=model.slots))

        return Kind(f"{name} of {place.name}", place / file, damages, read, model_holds)

    text = (json_changed, bytes_changed)
    quantiles = packed / TYPICAL

    def quantiles_hold(found: SurprisalQuantiles | None) -> bool:
        values = json.loads(quantiles.read_bytes().decode("utf-8-sig"))
        if found is None:  # of other weights
            return bool(values.get("weights", "") != json.loads(kept)["weights"])
        names = ("event", "document", "first_event")
        rows = [*(getattr(found, name) for name in names), *found.slots, *(found.first_slots or [])]
        # Those of first events may be missing.
        orderly = all(row == sorted(row) and all(map(math.isfinite, row)) for row in rows if row is not None)
        written = [*map(values.get, names), *values["slots"], *(values.get("first_slots") or [])]
        return orderly and rows == written

    kept = quantiles.read_bytes()
    return [
        kind("config.json", packed, "config.json", *text),
        kind("weights", packed, "model.safetensors", bytes_changed, header_changed),
        kind(SCRIPTS, packed, SCRIPTS, lines_changed, bytes_changed),
        kind("config.json", unsealed, "config.json", *text, sizes_changed),
        kind("vocab.json", unsealed, "vocab.json", *text),
        Kind(TYPICAL, quantiles, text, lambda: SurprisalQuantiles.read(packed), quantiles_hold),
    ]


def sizes_changed(content: bytes, rng: Random) -> bytes:
    """A number of the options of a model changed to one that may be far too large."""
    values = json.loads(content)
    name = rng.choice([name for name, value in values.items() if type(value) is int])
    values[name] = rng.choice((0, 1, 7, 9, 1000, 10**5, 10**7, 10**9, 2**62))
    return json.dumps(values).encode()


FIGURES = ("ppl", "ppl_bound", "cloze_nll", "frame_accuracy", VALIDATION, "step_best", "other")


def _cells(folder: Path) -> Kind:
    path = folder / "cells.csv"
    lines = [f"trial {n},{n:016x},corpus,{figure},0.{n}5," for n, figure in enumerate(FIGURES, 1)]
    lines += [f"trial 9,b,{step}:0.5,{VALIDATION},{90 - step}.25, †" for step in range(1, 9)]
    path.write_text(
        "\n".join([",".join(HEAD), *(line for line in lines if f"corpus,{VALIDATION}" not in line)]) + "\n"
    )

    def holds(found: ResultsCache) -> bool:
        rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
        values = found.figures["value"].tolist()
        decimal = all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?", row["value"]) for row in rows)
        perplexities = [v for v, row in zip(values, rows, strict=True) if "ppl" in row["figure"].split("_")]
        return (
            values == [float(row["value"]) for row in rows]
            and all(map(math.isfinite, values))
            and min(perplexities, default=1) > 0
            and decimal
            and found.figures["trial"].tolist() == [row["trial"] for row in rows]
        )

    return Kind("cells.csv", path, (bytes_changed, cell_changed), lambda: ResultsCache.read(path), holds)


def cell_changed(content: bytes, rng: Random) -> bytes:
    """A cell of a line replaced, or a line doubled, dropped or without end."""
    lines = [line.split(b",") for line in content.splitlines()]
    at = rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            lines.insert(at, list(lines[rng.randrange(len(lines))]))
        case 1:
            del lines[at]
        case 2:
            lines[at][rng.randrange(len(lines[at]))] = rng.choice(
                (b"a" * 200_000, b'"' + b"a\n" * 5000, b'"')
            )
        case _:
            some = [str(value).encode("utf-8", "surrogatepass") for value in (*CELLS, *NASTY)]
            lines[at][rng.randrange(len(lines[at]))] = rng.choice((*some, *TEXTS, b"1_0", b"1e400", b"-0.0"))
    return b"\n".join(b",".join(line) for line in lines) + b"\n"


def _packed_log(folder: Path) -> Kind:
    """An XES log, compressed."""
    plain, path = folder / "packed-log.xes", folder / "packed-log.xes.gz"
    write_log(plain, generate_tickets(3, seed=4, known=0.5))
    path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))

    def damaged(content: bytes, rng: Random) -> bytes:
        inner = gzip.decompress(content)
        change = rng.choice((bytes_changed, xml_changed))
        return gzip.compress(change(inner, rng), mtime=0)

    def read(place: Path) -> list[Any]:
        return list(read_documents(place, columns=XES, strict=True))

    def holds(found: list[Any]) -> bool:
        """Tell whether the compressed log reads like the plain one."""
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        return found == read(plain)

    return Kind("log.xes.gz", path, (bytes_changed, damaged), lambda: read(path), holds)
