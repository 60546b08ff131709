"""The annotator on a pretrained encoder, over an encoder of two layers that was never trained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from ssdvae.data.events import Document, Event, Origin
from ssdvae.extraction import encoder as module
from ssdvae.extraction.annotate import load_annotator
from ssdvae.extraction.classifier import learn_lexicon
from ssdvae.extraction.encoder import EncoderAnnotator, read_bare, read_sentence, train_encoder
from ssdvae.io import weights
from ssdvae.io.errors import DataError, UserError

transformers = pytest.importorskip("transformers")

WORDS = ["police", "band", "store", "ran", "played", "quickly", "in", "the", "a", "booked", "##s"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small encoder with its tokenizer."""
    found = tmp_path_factory.mktemp("encoder")
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (found / "vocab.txt").write_text("\n".join(names))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(names),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    transformers.BertModel(config).save_pretrained(found)
    tokenizer = transformers.BertTokenizerFast(vocab=str(found / "vocab.txt"))
    tokenizer.save_pretrained(found)
    return found


def in_sentence(event: Event, text: str) -> Event:
    start = text.index(event.head)
    return event.changed(
        origin=Origin(3, 100 + start, 100 + start + len(event.head), text=text, text_start=100)
    )


def examples() -> list[Event]:
    """Return events in which the subject decides between the two frames of "ran" and of "played"."""
    found = []
    for verb in ("ran", "played"):
        for subj, frame in (("police", "Motion"), ("band", "Music")):
            event = Event(verb, subj, "store", "in", frame=frame)
            found += [event, in_sentence(event, f"the {subj} quickly {verb} in a store")]
    return found * 40


@pytest.fixture(scope="module")
def learned(folder: Path) -> EncoderAnnotator:
    events = examples()
    lexicon = learn_lexicon(events, {"booked": ["Motion"]})
    with pytest.MonkeyPatch.context() as patch:
        # It was never trained before.
        patch.setattr(module, "ENCODER_RATE", 3e-3)
        patch.setattr(module, "EPOCHS", 10)
        return EncoderAnnotator.fit(events, lexicon, str(folder))


@pytest.mark.parametrize(
    "event",
    [
        Event("ran", "thief", "store", "from"),
        Event("ran"),
        Event("gave_up", None, "hope"),
        Event("ran", None, None, "quickly"),
    ],
)
def test_the_span_of_a_bare_event_is_its_verb(event: Event) -> None:
    text, start, end = read_bare(event)
    assert text[start:end] == event.head.replace("_", " ")
    assert set(text.split()) == {part for word in event.words if word != "None" for part in word.split("_")}


def test_the_span_in_a_sentence_is_its_verb() -> None:
    event = in_sentence(Event("ran"), "x" * 1000 + " thief ran " + "y" * 1000)
    found = read_sentence(event)
    assert found is not None
    assert found.text[found.start : found.end] == "ran"
    assert len(found.text) == 2 * module.CONTEXT + 3
    assert read_sentence(Event("ran")) is None
    assert read_sentence(event.changed(origin=Origin(0, 5000, 5003, text="short", text_start=0))) is None


def test_arguments_decide_between_the_frames_of_a_verb(learned: EncoderAnnotator) -> None:
    events = examples()[:8]
    assert [ranking[0][0] for ranking in learned.predict(events)] == [e.frame for e in events]


def test_probabilities_sum_to_one_and_do_not_depend_on_the_batch(
    learned: EncoderAnnotator, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [*examples()[:8], Event("sang"), Event("unheard_of", "police")]
    together = learned.probabilities(events)
    torch.testing.assert_close(together.sum(1), torch.ones(len(events)))
    monkeypatch.setattr(module, "ANSWER_BATCH", 1)
    torch.testing.assert_close(learned.probabilities(events), together, atol=0.02, rtol=0)
    assert learned.predict([]) == []


def test_equal_events_are_read_once_and_answers_are_those_of_probabilities(
    learned: EncoderAnnotator, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = EncoderAnnotator(
        learned.network, learned.tokenizer, learned.lexicon, learned.frames, learned.sentences, learned.bare
    )
    read, encode = list[int](), fresh._encode

    def count(readings: Sequence[module.Reading]) -> list[module.Encoded]:
        read.append(len(readings))
        return encode(readings)

    monkeypatch.setattr(fresh, "_encode", count)
    monkeypatch.setattr(module, "ANSWERS", 3)
    events = examples()[:24]  # eight different ones
    found = fresh.predict(events, 2)
    assert fresh.predict(events, 2) is not found
    assert read == [8, 5]
    assert [len(ranking) for ranking in fresh.predict(events)] == [1] * 24
    values, numbers = fresh.probabilities(events).topk(2)
    expected = [[fresh.frames[int(n)] for n in row] for row in numbers]
    assert [[frame for frame, _ in ranking] for ranking in found] == expected
    assert [p for ranking in found for _, p in ranking] == pytest.approx(values.flatten().tolist(), abs=0.02)


def test_the_lexicon_is_a_bonus_and_not_a_limit(learned: EncoderAnnotator) -> None:
    event = Event("booked", "band", "store", "in")
    free = EncoderAnnotator(learned.network, learned.tokenizer, learned.lexicon, learned.frames)
    number = learned.frames.index("Motion")  # the only one that the lexicon has
    values = []
    for bonus in (0.0, 2.0, 50.0):
        free.bare = module.Calibration(temperature=1.0, bonus=bonus)
        values.append(float(free.probabilities([event])[0, number]))
    assert values[0] < values[1] < values[2]
    assert values[0] < 0.5 < values[2]


def test_calibration_lowers_the_loss_of_too_sure_answers() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(2000, 4, generator=generator)
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    found = module._calibrate(4 * logits, torch.zeros(2000, 4), labels)
    near = min(module.TEMPERATURES, key=lambda temperature: abs(temperature - 4))
    assert found.temperature == pytest.approx(near, rel=0.2)


def test_saved_and_loaded(learned: EncoderAnnotator, tmp_path: Path) -> None:
    learned.save(tmp_path / "saved")
    loaded = load_annotator(str(tmp_path / "saved"))
    assert loaded.fingerprint() == learned.fingerprint()
    events = examples()[:8]
    assert loaded.predict(events) == learned.predict(events)
    written = {path.suffix for path in (tmp_path / "saved").rglob("*") if path.is_file()}
    assert written == {".json", ".safetensors"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{}"),
        ("config.json", b'{"kind": "frame-encoder", "frames": "x", "sentences": {}, "bare": {}}'),
        ("lexicon.json", b"[]"),
        ("model.safetensors", b"x"),
        ("encoder/config.json", b"{}"),
    ],
)
def test_damaged_folders_are_refused(
    name: str, content: bytes, learned: EncoderAnnotator, tmp_path: Path
) -> None:
    learned.save(tmp_path / "saved")
    (tmp_path / "saved" / name).write_bytes(content)
    with pytest.raises(DataError, match=name.split("/")[0]):
        load_annotator(str(tmp_path / "saved"))


class Killed(Exception):
    pass


def test_a_killed_training_resumes_exactly(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [Document(str(number), tuple(examples()[:8])) for number in range(8)]
    whole = train_encoder(examples(), texts, None, str(folder))
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    save = weights.save_training

    def save_and_die(path: Path, network: Any, optimizer: Any, metadata: dict[str, str]) -> None:
        save(path, network, optimizer, metadata)
        if json.loads(metadata["state"])["step"] == 3:
            raise Killed

    monkeypatch.setattr(module, "save_training", save_and_die)
    with pytest.raises(Killed):
        train_encoder(examples(), texts, None, str(folder), tmp_path / "out")
    monkeypatch.setattr(module, "save_training", save)
    resumed = train_encoder(examples(), texts, None, str(folder), tmp_path / "out")
    assert resumed.fingerprint() == whole.fingerprint()
    assert not list((tmp_path / "out").iterdir())


def test_an_encoder_needs_something_to_learn_from(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "verbs.csv").write_text("verb,frame\nran,Motion\n")
    with pytest.raises(UserError, match="--encoder"):
        load_annotator(str(tmp_path / "verbs.csv"), encoder=str(folder))
    events = tmp_path / "events.jsonl"
    rows = [{"id": "a", "events": [{"verb": "ran", "subj": "police", "frame": "Motion"}]}]
    events.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match="no/such/encoder"):
        load_annotator(str(events), encoder=str(tmp_path / "no/such/encoder"))
    learned = load_annotator(str(events), encoder=str(folder), save=tmp_path / "saved")
    assert isinstance(learned, EncoderAnnotator)
    assert (tmp_path / "saved" / "config.json").is_file()
