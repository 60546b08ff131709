"""The component for spaCy finds what `extract` and `infer` find: alone, in a stream, and after saving."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import DocBin

from ssdvae.commands.coerce import load
from ssdvae.commands.extract import extract
from ssdvae.data.events import SLOTS
from ssdvae.data.readers import read_documents
from ssdvae.inference.posterior import infer_documents
from ssdvae.io.errors import UserError
from ssdvae.models import hub
from tests.toys import toy_model

TEXTS = ["The police arrested a man. He left.", "", "She met him in Paris.", "The storm hit the town."]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "toy"
    toy = toy_model("ssdvae")
    toy.slots = SLOTS
    toy.save_pretrained(folder)
    return folder


@pytest.fixture
def nlp(spacy_model: Path, model: Path) -> Any:
    pipeline = spacy.load(spacy_model)
    pipeline.add_pipe("ssdvae", config={"model": str(model)})
    return pipeline


def records(nlp: Any, texts: list[str] = TEXTS) -> list[Any]:
    return [nlp(text)._.events for text in texts]


def test_it_finds_what_extract_and_infer_find(
    nlp: Any, spacy_model: Path, model: Path, tmp_path: Path
) -> None:
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.txt").write_text(text)
    events = tmp_path / "events.jsonl"
    extract(tmp_path, events, spacy_model=str(spacy_model), jobs=1, progress=False)
    answers = infer_documents(load(model), read_documents(events))
    inferred = {answer.id: answer.to_record()["events"] for answer in answers}
    found = {f"{number}.txt": record for number, record in enumerate(records(nlp))}
    assert any(found.values())
    assert {name: found[name] for name in inferred} == inferred


def test_a_stream_is_the_texts_one_by_one(nlp: Any) -> None:
    assert [doc._.events for doc in nlp.pipe(TEXTS, batch_size=3)] == records(nlp)


def test_an_event_says_where_its_verb_stands(nlp: Any) -> None:
    doc = nlp(TEXTS[0])
    for event in doc._.events:
        start, end = event["origin"]["span"]
        assert doc.text[start:end].lower() == event["verb"].partition("_")[0]


def test_it_is_saved_with_the_pipeline(spacy_model: Path, model: Path, tmp_path: Path) -> None:
    """On a disk or as bytes, it goes where the run that it was made from is not known."""
    run = shutil.copytree(model, tmp_path / "run")
    nlp = spacy.load(spacy_model)
    nlp.add_pipe("ssdvae", config={"model": str(run), "top": 2, "lemmas": True})
    found = records(nlp)
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    shutil.rmtree(run)
    assert records(spacy.load(tmp_path / "pipeline")) == found
    assert records(spacy.blank("en").from_config(nlp.config).from_bytes(data)) == found


def test_documents_keep_their_events(nlp: Any) -> None:
    kept = DocBin(store_user_data=True, docs=list(nlp.pipe(TEXTS)))
    again = DocBin(store_user_data=True).from_bytes(kept.to_bytes())
    # A DocBin gives back tuples for lists.
    found = [doc._.events for doc in again.get_docs(nlp.vocab)]
    assert json.loads(json.dumps(found)) == json.loads(json.dumps(records(nlp)))


def test_without_a_name_it_takes_the_model_of_the_package(
    spacy_model: Path, model: Path, nlp: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pipeline = spacy.load(spacy_model)
    pipeline.add_pipe("ssdvae")
    monkeypatch.setattr(hub, "FOLDER", tmp_path)
    with pytest.raises(UserError, match="no model is named"):
        pipeline("She left.")
    shutil.copytree(model, tmp_path / hub.DEFAULT)
    assert records(pipeline) == records(nlp)
