"""Attention: which words does the encoder attend to when it infers a frame?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssdvae.evaluation.tasks.base import ATTENTION, FRAMES, Data, Figure, Observer, Result, Task

if TYPE_CHECKING:
    from ssdvae.evaluation.attention import AttentionSums
    from ssdvae.evaluation.measure import Evaluation
    from ssdvae.models.base import Model

NAME = "attention"


def observer(model: Model) -> Observer:
    from ssdvae.evaluation.attention import AttentionSums

    return AttentionSums(model)


def run(evaluation: Evaluation, data: Data) -> Result:
    sums: AttentionSums = evaluation.split_pass.observers[NAME]
    means = sums.result().overall()
    scores = {
        "attention_entropy": means.entropy,
        "attention_most_entropy": means.most_entropy,
        "attention_verbs": means.heads,
        "attention_own_verb": means.own_head,
        "attention_own_event": means.own_event,
    }
    return Result(means.events, scores)


ATTENTION_TASK = Task(
    name=NAME,
    title="Attention of the encoder",
    explanation="Which words the encoder attends to when it infers the frame of an event: the entropy of its "
    "attention, in nats, and the shares that go to heads, to the head of the event itself, and to that "
    "event. Attention that is spread evenly gives heads no more than any other slot. The paper prints no "
    "figures for this: it says that entropy is low and attention on the verb where ε is high.",
    figures=(
        Figure("attention_entropy", "entropy", digits=2),
        Figure("attention_most_entropy", "entropy at most", digits=2),
        Figure("attention_verbs", "on heads", share=True),
        Figure("attention_own_verb", "on the head of the event", share=True),
        Figure("attention_own_event", "on the event", share=True),
    ),
    run=run,
    needs=(FRAMES, ATTENTION),
    settings=(
        "events",
        "eval_batch",
    ),
    default=False,
    observer=observer,
)
