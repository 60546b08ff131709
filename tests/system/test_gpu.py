"""Every model on a GPU that is not there, so that a tensor on the wrong device fails here.

How that is done, and what it cannot see, is said in ``tests.fake_cuda``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import PartialState
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

import ssdvae
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document, Event
from ssdvae.data.readers import write_jsonl
from ssdvae.models.base import LanguageModel, as_frame_model, fastest_device
from ssdvae.storyworld.world import World
from tests.fake_cuda import CUDA, WrongDevice, fake_cuda
from tests.models.test_base import VARIANTS, variant_id

pytestmark = pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")

SMALL: dict[str, Any] = {"embedding": 6, "hidden": 8, "layers": 1, "batch": 10, "epochs": 1}
OF_ITS_OWN: dict[str, dict[str, Any]] = {
    "rnnlm": {"sampled_words": 20},
    "haqae": {"latents": 3, "codes": 4, "code_width": 5},
}


@contextmanager
def gpu() -> Iterator[None]:
    """A machine with a GPU, as torch and accelerate see it."""
    with pytest.MonkeyPatch.context() as patch, fake_cuda():
        patch.setattr("torch.accelerator.current_accelerator", lambda check_available=False: CUDA)
        patch.setattr(PartialState, "default_device", CUDA)
        # An optimiser asks CUDA whether its steps are being recorded.
        patch.setattr(torch.optim.Optimizer, "_accelerator_graph_capture_health_check", lambda self: None)
        PartialState._reset_state()
        try:
            yield
        finally:
            PartialState._reset_state()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("gpu")
    write_jsonl(folder / "events.jsonl", World.embedded().documents(40, seed=3))
    sizes: dict[str, Any] = {"vocabulary": 60, "events": 4, "cloze_items": 3, "cloze_options": 3}
    return ssdvae.prepare(
        folder / "events.jsonl", folder / "corpus", valid_share=0.2, test_share=0.2, cloze_events=3, **sizes
    )


def everything(corpus: Corpus, folder: Path, variant: dict[str, Any]) -> dict[str, Any]:
    """Train a model, read its last checkpoint, measure the model and ask it: all the figures."""
    variant = dict(variant)
    name = variant.pop("name")
    ssdvae.train(corpus, folder, model=name, **SMALL, **OF_ITS_OWN.get(name, {}), **variant)
    ssdvae.resume(folder)
    figures = ssdvae.evaluate(folder, split="test", bound_samples=2, cloze_seeds=2)
    model = ssdvae.load(folder).on_fastest_device()
    assert model.device == fastest_device()
    seed = Event("arrested", "police", "suspect")
    document = Document("seed", (seed,))
    framed = as_frame_model(model)
    if isinstance(model, LanguageModel):
        for method in ("sample", "beam"):
            for seeds in ([seed], []):
                scripts = ssdvae.generate(model, seeds, method=method, scripts=2, events=2, beam=2)
                figures[f"{method} {len(seeds)}"] = sum(script.log_prob for script in scripts)
        frame, word = corpus.frames.names[0], corpus.vocabulary.names[3]
        told: list[dict[str, str]] = [{}, {"obj": word}, {"frame": frame}, {"frame": frame, "verb": word}]
        for number, given in enumerate(told):
            if "frame" in given and framed is None:
                continue
            (following,) = ssdvae.next_events(model, [document], given=given, beam=3, top=2)
            figures[f"next {number}"] = sum(event.probability for event in following.events)
            figures[f"next {number}, given"] = following.given_probability
        (scored,) = ssdvae.score(model, [document])
        figures["scored"] = scored.nats
        (filled,) = ssdvae.fill(model, [Document("holed", (seed, Event("?", "police")))], beam=3)
        figures["filled"] = filled.holes[0].fillings[0].probability
        figures["embedded"] = float(next(ssdvae.embed(model, [document])).vector[0])
        if model.has_elbo:  # a document vector would read the options
            options = ssdvae.evaluate(folder, split="test", tasks="cloze", cloze_frames="read", cloze_seeds=2)
            figures |= {f"{figure}, frames read": value for figure, value in options.items()}
    if framed is not None:
        (inferred,) = ssdvae.infer(model, [document])
        figures["inferred"] = inferred.events[0].probability
        explained = ssdvae.explain(folder, split="test", min_count=0.0)
        figures["transitions"] = float(explained.transitions.counts.sum())
        if explained.clusters is not None:
            figures["purity"] = explained.clusters.purity
    return {name: value for name, value in figures.items() if isinstance(value, int | float)}


@pytest.mark.parametrize(
    "variant",
    # One of each model always, and all their variants where there is time.
    [
        pytest.param(v, id=variant_id(v), marks=[pytest.mark.slow] if len(v) > 1 else [])
        for v in VARIANTS
        if "slots" not in v  # the corpus has its own
    ],
)
def test_a_model_is_trained_measured_and_asked_on_a_gpu(
    corpus: Corpus, variant: dict[str, Any], tmp_path: Path
) -> None:
    """And the figures are those of the CPU, since all random numbers are drawn there."""
    expected = everything(corpus, tmp_path / "cpu", variant)
    assert fastest_device().type == "cpu"
    with gpu():
        assert fastest_device().type == "cuda"
        found = everything(corpus, tmp_path / "gpu", variant)
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda gpu, cpu: gpu + cpu,
        lambda gpu, cpu: gpu @ cpu,
        lambda gpu, cpu: torch.cat([gpu, cpu]),
        lambda gpu, cpu: gpu.masked_fill(cpu > 0, 0),
        lambda gpu, cpu: gpu.gather(0, cpu.long()),
        lambda gpu, cpu: cpu[gpu.long()],
        lambda gpu, cpu: cpu.add_(gpu),
        lambda gpu, cpu: cpu.sum().add_(gpu.sum()),
        lambda gpu, cpu: cpu[0].index_add_(0, gpu[0].long(), cpu[0]),
        lambda gpu, cpu: gpu.numpy(),
        lambda gpu, cpu: torch.rand(2, device=CUDA, generator=torch.Generator()),
        lambda gpu, cpu: torch.nn.Linear(2, 2)(gpu),
        lambda gpu, cpu: torch.nn.GRU(2, 2).to(CUDA)(cpu),
        lambda gpu, cpu: pack_padded_sequence(gpu, gpu[0].long() + 1),
    ],
)
def test_what_cuda_refuses_is_refused(mistake: Callable[[Tensor, Tensor], object]) -> None:
    cpu = torch.zeros(2, 2)
    with fake_cuda() as cuda, pytest.raises((RuntimeError, TypeError, WrongDevice)):
        mistake(cpu.to(cuda), cpu)


def test_what_cuda_allows_is_allowed() -> None:
    cpu = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with fake_cuda() as cuda:
        gpu = cpu.to(cuda)
        for result, expected in (
            (gpu + cpu[0, 0], cpu + 1),
            (gpu[torch.tensor([1, 0])], cpu[[1, 0]]),
            (gpu[cpu > 2], cpu[cpu > 2]),
            (torch.zeros_like(gpu).copy_(cpu), cpu),
            (gpu[gpu > gpu.mean().item()], cpu[cpu > 2.5]),
        ):
            assert result.device == CUDA
            assert torch.equal(result.cpu(), expected)
            assert result.tolist() == expected.tolist()
