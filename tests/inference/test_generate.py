"""Scripts: against the enumeration of all events, and against the probabilities of the model."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.events import MISSING, SLOTS, Document, Event
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.inference.generation import Script, generate, nucleus
from ssdvae.inference.inputs import to_batch
from ssdvae.inference.options import GenerateOptions
from ssdvae.inference.posterior import infer_documents
from ssdvae.io.errors import UserError
from ssdvae.models.base import LanguageModel, Model
from ssdvae.models.latents import LatentQuery, most_likely
from ssdvae.models.registry import MODELS
from tests.inference.test_decoding import fits
from tests.toys import FRAMES, WORDS, noise, toy_exact, toy_language_model, toy_model, toy_ssdvae

SEED = [Event("word1", "word2", None, "word3")]
SPEAKING = [name for name in MODELS if issubclass(MODELS[name], LanguageModel)]


def made(model: Model, begin: list[Event] = SEED, frames: Any = (), **settings: Any) -> list[Script]:
    return generate(model, GenerateOptions(**settings), seed_events=begin, frames=frames)


def words(script: Script) -> list[tuple[str, ...]]:
    return [event.event.padded(len(SLOTS)) for event in script.events]


@pytest.fixture(params=SPEAKING)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    return toy_language_model(request.param)


def every_event(model: LanguageModel) -> dict[tuple[str, ...], float]:
    """log p of all events that could follow the seed: no <unk>, and a verb."""
    allowed = [w for w in range(WORDS) if w != model.vocabulary.unknown]
    verbs = [w for w in allowed if w != model.vocabulary.missing]
    options = torch.cartesian_prod(*(torch.tensor(v) for v in (verbs, allowed, allowed, allowed)))
    seed = to_batch(model, [Document("a", tuple(SEED))])
    nothing = torch.full((1, 2), -1)
    with torch.no_grad():
        latents = model.latents(LatentQuery.continuing(seed, nothing, most_likely, noise(1)))
        scores = model.continuations(seed, latents, options[None, :, None])[0]
    names = [tuple(model.vocabulary.name(w) for w in event) for event in options.tolist()]
    return dict(zip(names, scores.tolist(), strict=True))


def test_a_wide_beam_is_the_enumeration_of_all_events(model: LanguageModel) -> None:
    exact = every_event(model)
    found = made(model, method="beam", beam=len(exact), scripts=len(exact), events=1)
    assert {words(script)[1] for script in found} == exact.keys()
    assert [s.log_prob for s in found] == pytest.approx(sorted(exact.values(), reverse=True))
    for script in found[::500]:
        assert script.log_prob == pytest.approx(exact[words(script)[1]])


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_narrow_beam_is_never_better(model: LanguageModel, beam: int) -> None:
    exact = every_event(model)
    found = made(model, method="beam", beam=beam, scripts=beam, events=1)
    best = sorted(exact.values(), reverse=True)
    assert len({words(script)[1] for script in found}) == beam
    for script, bound in zip(found, best, strict=False):
        assert script.log_prob == pytest.approx(exact[words(script)[1]])
        assert script.log_prob <= bound + 1e-9


def test_greedy_takes_the_likeliest_word_each_time(model: LanguageModel) -> None:
    (script,) = made(model, method="greedy", events=3)
    assert words(script) == words(made(model, method="beam", beam=1, events=3)[0])
    seed = to_batch(model, [Document("a", tuple(SEED))])
    nothing = torch.full((1, 4), -1)
    latents = model.latents(LatentQuery.continuing(seed, nothing, most_likely, noise(1)))
    state = model.start(seed, latents)
    for event in words(script)[1:]:
        latents, word = latents.after(1), None
        for slot in range(4):
            log_p, state = model.next_word(state, latents, word, slot)
            log_p[:, model.vocabulary.unknown] = -torch.inf
            if slot == 0:
                log_p[:, model.vocabulary.missing] = -torch.inf
            word = log_p.argmax(-1)
            assert model.vocabulary.name(int(word)) == event[slot]
        _, state = model.next_word(state, latents, word, 4)


@pytest.mark.parametrize("method", ["sample", "greedy", "beam"])
def test_a_script_has_the_probability_that_the_model_gives_it(model: LanguageModel, method: str) -> None:
    """Given its frames; temperature and forbidden words change what is drawn, not how likely it is."""
    scripts = made(model, method=method, temperature=2.0, top_p=0.7, scripts=6, events=2, repeat=False)
    assert [s.log_prob for s in scripts] == sorted((s.log_prob for s in scripts), reverse=True)
    for script in scripts:
        document = Document("a", tuple(event.event for event in script.events))
        batch = to_batch(model, [document])
        seed = to_batch(model, [Document("a", document.events[:1])])
        latents = model.latents(LatentQuery.continuing(seed, batch.observed, most_likely, noise(1)))
        if latents.frames is not None:
            frames = torch.tensor([[model.frames.id(event.planned) for event in script.events]])
            latents = dataclasses.replace(latents, frames=frames)
            if latents.vectors.shape[-1]:
                latents = dataclasses.replace(latents, vectors=model.get_parameter("frame_embedding")[frames])
        expected = model.log_probs(batch, latents)[0, 1:].sum().item()
        assert script.log_prob == pytest.approx(expected)


@pytest.mark.parametrize("name", ["rnnlm", "rnnlm-role"])
@pytest.mark.parametrize("top_p", [0.6, 1.0])
def test_scripts_are_drawn_as_often_as_they_are_likely(name: str, top_p: float) -> None:
    """Verbs, and subjects after the commonest verb; <unk> as if it had never been there."""
    model = toy_language_model(name, tied=False)
    size = 8_000
    scripts = made(model, top_p=top_p, scripts=size, events=1, batch=size)
    seed = to_batch(model, [Document("a", tuple(SEED))])
    nothing = torch.full((1, 2), -1)
    latents = model.latents(LatentQuery.continuing(seed, nothing, most_likely, noise(1)))
    log_p, state = model.next_word(model.start(seed, latents), latents, None, 0)
    log_p[:, [model.vocabulary.unknown, model.vocabulary.missing]] = -torch.inf
    verbs = Counter(words(script)[1][0] for script in scripts)
    fits(_counts(verbs, model), nucleus(log_p, top_p=top_p)[0].detach().numpy())
    verb, _ = verbs.most_common(1)[0]
    log_p, _ = model.next_word(state, latents, torch.tensor([model.vocabulary.id(verb)]), 1)
    log_p[:, model.vocabulary.unknown] = -torch.inf
    subjects = Counter(words(script)[1][1] for script in scripts if words(script)[1][0] == verb)
    fits(_counts(subjects, model), nucleus(log_p, top_p=top_p)[0].detach().numpy())


def _counts(words: Counter[str], model: Model) -> np.ndarray:
    return np.array([words[name] for name in model.vocabulary.names])


def test_frames_are_drawn_as_often_as_they_are_likely() -> None:
    model, size = toy_ssdvae(), 4_000
    seed = to_batch(model, [Document("a", tuple(SEED))])
    q = model.posterior(seed).log_q[0, 0].exp()
    drawn = Counter(script.events[0].planned for script in made(model, scripts=size, events=1, batch=size))
    fits(np.array([drawn[name] for name in model.frames.names]), q.detach().numpy())


def test_frames_and_words_share_no_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn from one stream, the words of some scripts would follow from the frames of others."""
    uniform, drawn = Noise.uniform, []

    def watched(self: Noise, *shape: int, device: torch.device | str = "cpu") -> torch.Tensor:
        numbers = uniform(self, *shape, device=device)
        drawn.extend(numbers.flatten().tolist())
        return numbers

    monkeypatch.setattr(Noise, "uniform", watched)
    made(toy_ssdvae(), scripts=10)
    # For each script: three frames of five events, and sixteen words. Equal floats are rare, not impossible.
    assert len(drawn) == 10 * (5 * FRAMES + 16)
    assert len(set(drawn)) > len(drawn) - 3


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_a_seed_makes_the_same_scripts_however_many_are_drawn_at_once(
    model: LanguageModel, batch: int
) -> None:
    before = made(model, scripts=7, seed=5)
    torch.manual_seed(99)  # torch's own generator is not used
    after = made(model, scripts=7, seed=5, batch=batch)
    assert [words(s) for s in after] == [words(s) for s in before]
    assert [[e.planned for e in s.events] for s in after] == [[e.planned for e in s.events] for s in before]
    other = made(model, scripts=7, seed=6)
    assert [words(s) for s in other] != [words(s) for s in before]


@pytest.mark.parametrize("frame", range(FRAMES))
def test_a_frame_that_is_given_becomes_likelier(frame: int) -> None:
    model = toy_ssdvae()
    name = model.frames.name(frame)
    shares = []
    for frames in ((), (None, name)):
        scripts = made(model, frames=frames, scripts=2000, events=3, batch=2000)
        shares.append(np.mean([script.events[2].planned == name for script in scripts]))
    assert shares[1] > shares[0] + 3 * (0.25 / 2000) ** 0.5


def test_only_frames_after_the_seed_can_be_given_and_only_known_ones() -> None:
    model = toy_ssdvae()
    free = [words(script) for script in made(model)]
    known = [SEED[0].changed(frame="Frame2")]
    assert [words(script) for script in made(model, known)] == free
    with pytest.raises(UserError, match="did you mean Frame"):
        made(model, frames=["Frame9"])
    with pytest.raises(UserError, match="found 3 frames for the 2 events"):
        made(model, frames=["Frame1"] * 3, events=2)
    for name in ("rnnlm", "haqae"):
        with pytest.raises(UserError, match="no frames"):
            made(toy_model(name), frames=["Frame1"])


@pytest.mark.parametrize("method", ["sample", "greedy", "beam"])
def test_constraints_hold(model: LanguageModel, method: str) -> None:
    """And do so because of the flags: without them, they are broken."""
    seed = [Event("word1", "word1", "word1", "word1"), *SEED]
    size = {"method": method, "events": 8, "scripts": 20, "beam": 20, "temperature": 0.2}
    free, held = made(model, seed, **size), made(model, seed, repeat=False, distinct_roles=True, **size)
    for script in held:
        assert len(set(words(script))) == len(words(script)) == 10
        for _, subj, obj, _ in words(script)[2:]:
            assert subj != obj or subj == MISSING
    for script in [*free, *held]:
        for verb, *others in words(script)[2:]:
            assert verb != MISSING
            assert UNKNOWN not in (verb, *others)
    assert any(len(set(words(script))) < 10 for script in free)


def test_subject_and_object_may_be_the_same_unless_forbidden() -> None:
    scripts = made(toy_ssdvae(), scripts=200, events=1, top_p=1.0)
    same = [script for script in scripts if words(script)[1][1] == words(script)[1][2] != MISSING]
    assert same


def test_where_every_event_was_there_before_a_message_says_so() -> None:
    model = toy_model("rnnlm", tied=False)
    with torch.no_grad():  # one word is certain in every place
        model.get_parameter("decoder.output.linear.bias")[:] = -torch.inf
        model.get_parameter("decoder.output.linear.bias")[5] = 0
    assert len(made(model, method="greedy", events=1, repeat=False)) == 1
    with pytest.raises(UserError, match="no word is left"):
        made(model, method="greedy", events=2, repeat=False)


def test_scripts_have_the_frames_that_are_inferred_from_all_of_their_words() -> None:
    model = toy_ssdvae()
    for script in made(model, scripts=3):
        (document,) = infer_documents(model, [Document("a", tuple(e.event for e in script.events))])
        assert [e.inferred for e in script.events] == [e.frame for e in document.events]
        assert [e.probability for e in script.events] == pytest.approx(
            [e.probability for e in document.events]
        )
        assert script.seeds == 1
        assert script.events[0].event == SEED[0]


def test_several_seed_events_and_any_length() -> None:
    model = toy_ssdvae()
    seed = [Event("word1"), Event("word2", "Xyzzy"), Event("word3")]
    for script in made(model, seed, events=9, scripts=2):
        assert len(script.events) == 12
        assert [event.event for event in script.events[:3]] == seed


@pytest.mark.parametrize("name", MODELS)
def test_every_model_writes_scripts_or_says_why_not(name: str) -> None:
    model = toy_model(name)
    if not isinstance(model, LanguageModel):
        with pytest.raises(UserError, match="no probability"):
            made(model)
        return
    assert [len(script.events) for script in made(model)] == [5] * 5


def test_without_a_seed_frames_come_from_the_prior() -> None:
    """The prior is uniform: every pair of frames is as likely."""
    scripts = made(toy_ssdvae(), begin=[], events=2, scripts=3000, top_p=1.0)
    pairs = [f"Frame{first} Frame{second}" for first in range(FRAMES) for second in range(FRAMES)]
    drawn = (" ".join(str(e.planned) for e in script.events) for script in scripts)
    fits(_frame_counts(drawn, pairs), np.full(len(pairs), 1 / len(pairs)))


def test_a_frame_that_is_given_to_the_exact_model_is_certain_and_all_others_are_summed_out() -> None:
    model = toy_exact()
    for script in made(model, frames=(None, "Frame2"), scripts=4, events=3):
        assert [event.planned for event in script.events] == [None, None, "Frame2", None]
    # Heads are drawn from p(v | f, h) of the frame that is given, as whole documents are scored.
    size, seed = 6_000, to_batch(model, [Document("a", tuple(SEED))])
    tokens = seed.tokens.expand(WORDS, -1, -1)
    every = Batch.of_words(torch.cat([tokens, tokens], dim=1))
    every.tokens[:, 1, 0] = torch.arange(WORDS)
    for frame in (None, "Frame1"):
        scripts = made(model, frames=(frame,), scripts=size, events=1, top_p=1.0, batch=size)
        observed = every.observed.clone()
        observed[:, 1] = model.frames.id(frame)
        with torch.no_grad():
            log_p = model.word_log_probs(dataclasses.replace(every, observed=observed), noise(WORDS))[:, 1, 0]
        log_p[[model.vocabulary.unknown, model.vocabulary.missing]] = -torch.inf
        heads = Counter(words(script)[1][0] for script in scripts)
        fits(_counts(heads, model), log_p.softmax(0).numpy())


def _frame_counts(frames: Iterable[str | None], names: Sequence[str]) -> np.ndarray:
    counted = Counter(frames)
    return np.array([counted[name] for name in names])


@pytest.mark.parametrize("method", ["sample", "greedy", "beam"])
def test_every_model_thinks_of_scripts_by_itself(model: LanguageModel, method: Any) -> None:
    for script in made(model, begin=[], events=3, method=method):
        assert len(script.events) == 3
        assert script.seeds == 0
        assert script.log_prob < 0
