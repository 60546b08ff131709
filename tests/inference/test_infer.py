"""Frames of new documents: the same one by one, in batches, and as a stream."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ssdvae.data.batches import Batch, collate
from ssdvae.data.events import Document, Event, Origin, document_from_record, event_from_text
from ssdvae.data.readers.text import read_typed
from ssdvae.data.vocabulary import Vocabulary
from ssdvae.inference.inputs import to_batch
from ssdvae.inference.lookup import unknown_words
from ssdvae.inference.posterior import ATTENTION_EVENTS, InferredDocument, infer_documents
from ssdvae.io.errors import DataError, Malformed, UserError
from ssdvae.models.base import as_frame_model
from ssdvae.models.latents import FramePosterior
from ssdvae.models.registry import MODELS
from tests.toys import named_documents, toy_documents, toy_exact, toy_model, toy_ssdvae

LENGTHS = [3, 1, 0, 4, 60, 2, 0, 7]


def close(first: InferredDocument, second: InferredDocument) -> None:
    assert (first.id, first.unknown_words) == (second.id, second.unknown_words)
    for mine, other in zip(first.events, second.events, strict=True):
        for name in (field.name for field in dataclasses.fields(mine)):
            expected = getattr(other, name)
            if name == "attention":
                assert getattr(mine, name) == pytest.approx(expected, abs=1e-9)
            elif name == "frames":
                assert [frame.name for frame in mine.frames] == [frame.name for frame in other.frames]
                chances = [frame.probability for frame in other.frames]
                assert [frame.probability for frame in mine.frames] == pytest.approx(chances, abs=1e-9)
            else:
                assert getattr(mine, name) == expected


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_a_stream_gives_what_one_by_one_gives(batch: int) -> None:
    model = toy_ssdvae()
    documents = named_documents(toy_documents(LENGTHS), model)
    together = list(infer_documents(model, documents, batch=batch, top=2, attention=True))
    assert [document.id for document in together] == [document.id for document in documents]
    assert [len(document.events) for document in together] == LENGTHS
    for document, found in zip(documents, together, strict=True):
        (alone,) = infer_documents(model, [document], top=2, attention=True)
        close(found, alone)


def test_what_is_inferred_is_what_the_model_believes() -> None:
    model = toy_ssdvae()
    split = toy_documents([4, 2, 3])
    posterior = model.posterior(collate(split, np.arange(3)))
    assert posterior.attention is not None
    for row, document in enumerate(
        infer_documents(model, named_documents(split, model), top=2, attention=True)
    ):
        for m, event in enumerate(document.events):
            q = posterior.log_q[row, m].exp().tolist()
            ordered = sorted(range(len(q)), key=lambda f: -q[f])
            assert [frame.name for frame in event.frames] == [model.frames.name(f) for f in ordered[:2]]
            chances = [frame.probability for frame in event.frames]
            assert chances == pytest.approx([q[f] for f in ordered[:2]])
            assert event.attention == pytest.approx(
                posterior.attention.weights[row, m, : 4 * len(document.events)].tolist()
            )
            assert sum(event.attention or ()) == pytest.approx(1)
            assert event.observed is None
            assert event.gold == event.event.frame


def test_no_more_is_read_than_a_batch() -> None:
    model, read = toy_ssdvae(), 0

    def endless() -> Iterator[Document]:
        nonlocal read
        while True:
            read += 1
            yield Document(str(read), (Event("word1"),))

    found = list(islice(infer_documents(model, endless(), batch=4), 9))
    assert [document.id for document in found] == [str(i) for i in range(1, 10)]
    assert read <= 13


def test_long_documents_are_not_padded_against_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long one is, what is held at once grows with that one alone."""
    model, sizes = toy_ssdvae(), []
    posterior = model.posterior

    def watched(batch: Batch) -> FramePosterior:
        sizes.append(batch.mask.numel())
        return posterior(batch)

    monkeypatch.setattr(model, "posterior", watched)
    documents = [Document("long", (Event("word1"),) * 500)]
    documents += [Document(str(i), (Event("word2"),) * 2) for i in range(20)]
    list(infer_documents(model, documents, batch=10))
    assert max(sizes) == 500
    assert len(sizes) == 3


def test_observed_frames_become_likelier() -> None:
    model = toy_ssdvae()
    documents = named_documents(toy_documents([1] * 30, labelled=1), model)
    for document in documents:
        (event,) = document.events
        unlikely = next(iter(infer_documents(model, [document], top=2))).events[0].frames[1].name
        told = [Document("a", (event.changed(frame=unlikely),))]
        (free,), (steered,) = (
            list(infer_documents(model, told, observe_frames=observe, top=2)) for observe in (False, True)
        )
        before, after = free.events[0], steered.events[0]
        assert (before.observed, after.observed) == (None, unlikely)
        chance = next(frame.probability for frame in after.frames if frame.name == unlikely)
        assert chance > before.frames[1].probability


def test_frames_that_are_only_compared_with_change_nothing() -> None:
    model = toy_ssdvae()
    documents = named_documents(toy_documents([3, 2], labelled=1), model)
    bare = [Document(d.id, tuple(event.changed(frame=None) for event in d.events)) for d in documents]
    both = (infer_documents(model, d, attention=True) for d in (documents, bare))
    for with_frame, without in zip(*both, strict=True):
        assert [e.attention for e in with_frame.events] == [e.attention for e in without.events]


def test_words_are_folded_as_those_of_the_model_are() -> None:
    model = toy_ssdvae()
    upper, lower = (Document("a", (Event(verb, None, "Xyzzy"),)) for verb in ("WORD3", "word3"))
    close(*(dataclasses.replace(d, events=()) for d in infer_documents(model, [upper, lower])))
    batch = to_batch(model, [upper, lower])
    assert torch.equal(batch.tokens[0], batch.tokens[1])
    assert batch.tokens[0, 0].tolist() == [
        model.vocabulary.id("word3"),
        model.vocabulary.missing,
        model.vocabulary.unknown,
        model.vocabulary.missing,
    ]
    assert next(infer_documents(model, [upper])).unknown_words == {"xyzzy": None}
    assert next(infer_documents(model, [upper], lowercase=False)).unknown_words.keys() == {"WORD3", "Xyzzy"}
    assert unknown_words(model, upper.events) == {"xyzzy": None}
    assert not Vocabulary(["None", "<unk>", "Taylor"], [1] * 3).lowercase


def test_a_model_with_one_frame_has_no_runner_up() -> None:
    model = toy_model(frames=1)
    (document,) = infer_documents(model, [Document("a", (Event("word1"),))], top=2)
    assert [frame.name for frame in document.events[0].frames] == ["Frame0"]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_infers_frames_or_says_why_not(name: str) -> None:
    model = toy_model(name)
    documents = named_documents(toy_documents([2, 3]), model)
    if as_frame_model(model) is not None:
        assert [len(d.events) for d in infer_documents(model, documents)] == [2, 3]
    else:
        with pytest.raises(UserError, match="no frames"):
            list(infer_documents(model, documents))


def test_an_exact_model_that_was_trained_without_frames_says_so() -> None:
    model = toy_exact(frames=0)
    documents = named_documents(toy_documents([2, 3], labelled=0), model)
    with pytest.raises(UserError, match="ssdvae-exact has no frames"):
        list(infer_documents(model, documents))


def test_a_record_is_a_document_again() -> None:
    model = toy_ssdvae()
    origin = Origin(1, 4, 9, negated=True, text="she did not meet him", text_start=2)
    drawn = toy_documents([2, 3])
    drawn.tokens[:, 0] = np.maximum(drawn.tokens[:, 0], 2)  # a head is never missing
    documents = [
        replace(d, events=tuple(e.changed(lemma="meet", origin=origin) for e in d.events))
        for d in named_documents(drawn, model)
    ]
    for document, found in zip(documents, infer_documents(model, documents), strict=True):
        record = json.loads(json.dumps(found.to_record()))
        again = document_from_record(record, model.slots).events
        assert [event.frame for event in again] == [event.frame for event in found.events]
        for mine, given in zip(again, document.events, strict=True):
            assert mine.changed(frame=None, probability=None) == given.changed(frame=None)
        assert [event["gold"] for event in record["events"]] == [event.frame for event in document.events]


def test_typed_events() -> None:
    assert event_from_text("elected taylor election at") == Event("elected", "taylor", "election", "at")
    for empty in ("-", "_", "None"):
        assert event_from_text(f"released {empty} album") == Event("released", None, "album")
    for wrong in ("", "- she", "a b c d e"):
        with pytest.raises(Malformed, match="verb subj obj mod"):
            event_from_text(wrong)
    lines = b"\nmet she\nleft he - at\n\n  \nmet\n"
    assert [(d.id, len(d.events)) for d in read_typed(io.BytesIO(lines))] == [("1", 2), ("2", 1)]
    with pytest.raises(DataError, match="standard input, line 2"):
        list(read_typed(io.BytesIO(b"met\na b c d e\n")))
    with pytest.raises(DataError, match=r"standard input, line 2: found the byte 0xe9(?s:.*)UTF-8"):
        list(read_typed(io.BytesIO(b"met\nm\xe9t\n")))


def test_memory_and_output_of_a_long_document_are_linear_in_its_events() -> None:
    """Its attention, a number for each pair of event and word, is neither held nor told."""
    model = toy_ssdvae()
    sizes, largest = [], []
    for events in (200, 400):
        split = toy_documents([events, 5])
        batch = collate(split, np.arange(2))
        with torch.no_grad(), LargestTensor() as seen:  # type: ignore[no-untyped-call]
            long, short = infer_documents(model, named_documents(split, model), attention=True)
        largest.append(seen.size)
        sizes.append(len(json.dumps(long.to_record())))
        assert all(event.attention is None for event in long.events)
        assert all(event.attention is not None and len(event.attention) == 20 for event in short.events)
        q = model.posterior(batch).log_q[0].exp().max(-1).values.tolist()
        assert [event.probability for event in long.events] == pytest.approx(q, abs=1e-6)
    assert sizes[1] < 2.1 * sizes[0]
    assert largest[1] <= 2 * largest[0]


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches how many numbers the largest tensor has that is computed."""

    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.size = max(self.size, tensor.numel())
        return result


def test_attention_is_told_up_to_a_length() -> None:
    model = toy_ssdvae()
    for events in (ATTENTION_EVENTS, ATTENTION_EVENTS + 1):
        (found,) = infer_documents(model, named_documents(toy_documents([events]), model), attention=True)
        assert all((event.attention is None) == (events > ATTENTION_EVENTS) for event in found.events)


def test_a_model_that_gives_no_numbers_is_refused() -> None:
    model = toy_ssdvae()
    for parameter in model.parameters():
        parameter.data.fill_(1e300)
    with pytest.raises(UserError, match="not finite: its training has diverged"):
        list(infer_documents(model, named_documents(toy_documents([3]), model)))
