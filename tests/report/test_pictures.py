"""Pictures that stand alone: well-formed, whole, and of what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.analysis.explain import explain
from ssdvae.analysis.transitions import Transitions
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import HOLE, Document, Event, to_document
from ssdvae.data.vocabulary import Inventory
from ssdvae.inference.embedding import similar
from ssdvae.inference.forecast import next_events
from ssdvae.inference.generation import generate
from ssdvae.inference.infill import fill_documents
from ssdvae.inference.options import GenerateOptions
from ssdvae.inference.posterior import infer_documents
from ssdvae.inference.surprisal import score_documents
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.report.charts import WIDTH, Bars
from ssdvae.report.pictures import (
    Picture,
    of_filled,
    of_inferred,
    of_next,
    of_runs,
    of_scored,
    of_script,
    of_similar,
    of_transitions,
)
from tests.report.conftest import FRAME, WORD

SVG = "{http://www.w3.org/2000/svg}"


def read(picture: Any) -> ElementTree.Element:
    """As any reader of SVG takes it, which fetches nothing."""
    text = picture._repr_svg_()
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert not re.search(r"(href|src|url)\s*[=(]", "".join(root.find(f"{SVG}style").itertext()))  # type: ignore[union-attr]
    assert not [e for e in root.iter() if e.tag in (f"{SVG}script", f"{SVG}image", f"{SVG}foreignObject")]
    assert not [name for e in root.iter() for name in e.attrib if name.startswith("on") or "href" in name]
    return root


def words(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def test_how_runs_learned(runs: list[Path]) -> None:
    root = read(Picture(of_runs(runs)))
    assert len(list(root.iter(f"{SVG}polyline"))) == len(runs)
    assert {run.name for run in runs} <= set(words(root)), "the curves are named"
    alone = read(Picture(of_runs(runs[:1])))
    assert runs[0].name not in words(alone), "one curve needs no key"


def test_what_follows_what(runs: list[Path]) -> None:
    model, corpus = Model.read(runs[0]), Corpus(runs[0].parent / "corpus")
    root = read(Picture(of_transitions(explain(model, corpus.split("valid")).transitions)))
    assert {"Romance", "Wedding"} <= set(words(root))
    assert list(root.iter(f"{SVG}path"))


def test_answers(runs: list[Path]) -> None:
    model, document = Model.read(runs[0]), to_document([f"{WORD} ann dog", "chased ann"], "typed")
    (inferred,) = infer_documents(model, [document])
    root = read(Picture(of_inferred(inferred)))
    assert [text for text in words(root) if text.startswith(WORD)]
    # Each bar is as long as all others: the shares of an event are one whole.
    drawn = [float(e.get("width", 0)) for e in root.iter(f"{SVG}rect") if e.get("data-tip")]
    assert drawn[0] + drawn[1] == pytest.approx(drawn[2] + drawn[3], abs=0.2)
    (scored,) = score_documents(model, [document])
    assert {*scored.slots} <= set(words(read(Picture(of_scored(scored)))))
    (ahead,) = next_events(model, [document], top=3)
    names = " ".join(words(read(Picture(of_next(ahead)))))
    assert all(one.name in names for one in (ahead.frames or ahead.heads))
    (filled,) = fill_documents(model, [Document("gap", (*document.events, Event(HOLE)))], top=3)
    shown = words(read(Picture(of_filled(filled))))
    assert [text.split("  ")[1] for text in shown] == [str(one.event) for one in filled.holes[0].fillings]
    (script,) = generate(model, GenerateOptions(scripts=1, events=2), seed_events=document.events)
    assert [text.split(":")[0] for text in words(read(Picture(of_script(script))))[:4]] == [
        str(written.event) for written in script.events
    ]
    near = similar(model, document.events[1:], [document], top=2)
    drawn = [float(e.get("width", 0)) for e in read(Picture(of_similar(near))).iter(f"{SVG}rect")][1:]
    assert drawn == sorted(drawn, reverse=True), "the nearest first"
    with pytest.raises(UserError, match="no events"):
        of_inferred(next(infer_documents(model, [Document("empty", ())])))
    with pytest.raises(UserError, match="nothing is missing"):
        of_filled(next(fill_documents(model, [document])))


def test_saving(tmp_path: Path) -> None:
    found = Transitions(Inventory(["A", FRAME], [1, 1]), np.array([[1.0, 9.0], [8.0, 2.0]]))
    picture = Picture(of_transitions(found))
    assert picture.save(tmp_path / "a.svg").read_text() == picture.svg()
    with pytest.raises(UserError, match=r"a name in \.svg"):
        picture.save(tmp_path / "a.png")
    with pytest.raises(UserError, match="often enough"):
        of_transitions(Transitions(found.frames, np.zeros((2, 2))))


@given(st.lists(st.text(max_size=80), min_size=2, max_size=8, unique=True))
def test_any_names_make_a_picture_and_keys_stay_inside(names: list[str]) -> None:
    root = read(Picture(Bars(names[0], [(names[0], [(name, 1.0) for name in names])], "of 1")))
    box = [float(x) for x in root.get("viewBox", "").split()]
    keys = [e for e in root.iter(f"{SVG}rect") if not e.get("data-tip")][1:]
    assert len(keys) == len(names)
    assert all(float(e.get("x", 0)) < WIDTH and float(e.get("y", 0)) + 10 <= box[3] for e in keys)
