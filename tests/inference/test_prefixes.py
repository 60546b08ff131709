"""Every prefix in one pass: the same answers as prefix by prefix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ssdvae.data.events import Document
from ssdvae.inference.forecast import forecasts, next_events
from ssdvae.inference.prefixes import TimeInterval, duration, every_prefix
from ssdvae.io.errors import UserError
from ssdvae.models.base import LanguageModel
from tests.inference.variants import VARIANTS, some_documents
from tests.models.test_base import variant_id
from tests.models.test_cases import toy_cases
from tests.toys import toy_language_model


def timed(document: Document) -> Document:
    events = (event.changed(time=1e9 + 3600.0 * n * n) for n, event in enumerate(document.events))
    return replace(document, events=tuple(events))


def check(model: LanguageModel, documents: list[Document]) -> None:
    for document, found in zip(documents, every_prefix(model, documents, top=3, batch=2), strict=True):
        assert len(found.prefixes) == len(document.events) == len(list(found.rows()))
        for place, prefix in enumerate(found.prefixes, start=1):
            part = replace(document, events=document.events[:place])
            (alone,) = next_events(model, [part], top=3, beam=3)
            assert [h.name for h in prefix.heads] == [h.name for h in alone.heads]
            assert [h.probability for h in prefix.heads] == pytest.approx(
                [h.probability for h in alone.heads]
            )
            assert [f.name for f in prefix.frames] == [f.name for f in alone.frames]
            assert prefix.end_probability == pytest.approx(alone.end_probability)
            for mine, theirs in zip(prefix.times, alone.times, strict=True):
                assert (mine is None) == (theirs is None)
                if mine is not None and theirs is not None:
                    assert (mine.low, mine.median, mine.high) == pytest.approx(
                        (theirs.low, theirs.median, theirs.high), rel=1e-4, abs=1e-3
                    )


@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_every_prefix_is_prefix_by_prefix(variant: dict[str, object]) -> None:
    model = toy_language_model(**variant)  # type: ignore[arg-type]
    check(model, some_documents(model, [3, 1, 2]))


@pytest.mark.parametrize("name", ["ssdvae-exact", "rnnlm"])
def test_with_ends_and_times(name: str) -> None:
    model = toy_cases(name)
    documents = [timed(document) for document in some_documents(model, [3, 1, 2])]
    check(model, documents)
    found = list(every_prefix(model, [*documents[1:], Document("none", ()), documents[0]]))
    assert found[-1].to_record() == next(iter(every_prefix(model, documents[:1]))).to_record()
    assert found[2].prefixes == ()
    assert all(time is not None for prefix in found[-1].prefixes for time in prefix.times)
    (untimed,) = every_prefix(model, some_documents(model, [2]))
    assert untimed.prefixes[0].times == (None, None)


def test_what_is_given_belongs_to_one_prefix() -> None:
    model = toy_language_model("rnnlm")
    with pytest.raises(UserError, match="--every-prefix"):
        forecasts(model, [], {"slot0": "word1"}, every_prefix=True, top=1, batch=1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0004, "less than a minute"), (60.0, "1 minute"), (5400.0, "1.5 hours"), (86400 * 12.2, "12 days")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_intervals_in_words() -> None:
    assert str(TimeInterval(0.0004, 0.0, 50.0)) == "less than a minute"
    assert TimeInterval(5400.0, 2.0, 864000.0).short == "1.5 h (<1 min–10 d)"
    assert str(TimeInterval(3600.0, 2.0, 7200.0)) == "1 hour, 80% up to 2 hours"
    assert str(TimeInterval(5400.0, 3600.0, 7200.0)) == "1.5 hours, 80% between 1 hour and 2 hours"
