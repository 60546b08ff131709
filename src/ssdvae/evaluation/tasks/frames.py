"""Frame prediction: is the inferred frame of an event the known one?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssdvae.evaluation.tasks.base import FRAMES, Data, Figure, Floor, Observer, Result, Task

if TYPE_CHECKING:
    from ssdvae.evaluation.frames import FramePredictions
    from ssdvae.evaluation.measure import Evaluation
    from ssdvae.models.base import Model

NAME = "frames"


def observer(model: Model) -> Observer:
    from ssdvae.evaluation.frames import FramePredictions

    return FramePredictions()


def run(evaluation: Evaluation, data: Data) -> Result | None:
    """None if no event of the split has a known frame."""
    predictions: FramePredictions = evaluation.split_pass.observers[NAME]
    scores = predictions.scores(evaluation.model.frames)
    if not scores:
        return None
    from ssdvae.evaluation.meaning import accuracy_by_head

    scores["frame_commonest"] = accuracy_by_head(evaluation.commonest(), evaluation.documents)
    for name in ("frame_accuracy_reader", "frame_accuracy_exact", "latent_information"):
        if (value := evaluation.split_pass.scores[name]) is not None:
            scores[name] = value
    return Result(scores["frame_events"], scores)


FRAME_PREDICTION = Task(
    name=NAME,
    title="Frame prediction",
    explanation="Higher is better, except for the calibration error; precision and F1 are macro. No frame "
    "was observed. “Commonest of the head” is what counting would get: the frame that the head of an event "
    "had most often in training, as far as frames were observed. The paper classifies single events: only a "
    "corpus of one event a document compares with it. Its classifiers, unlike SSDVAE, learn from the frames "
    "of all training events. Agreement is the adjusted mutual information of inferred and known frames: 1 if "
    "one tells the other, by whatever name, and 0 by chance.",
    figures=(
        Figure(
            "frame_accuracy",
            "accuracy",
            "higher",
            share=True,
            paper="3",
            headline="frames that are right",
            floor=Floor("frame_commonest", "by the commonest of the head"),
        ),
        Figure(
            "frame_commonest",
            "commonest of the head",
            share=True,
            compared=False,
            note="what the head's most frequent frame gets",
        ),
        Figure("frame_precision", "macro precision", "higher", share=True, paper="3"),
        Figure("frame_f1", "macro F1", "higher", share=True, paper="3"),
        Figure("frame_ami", "agreement (AMI)", "higher", compared=False),
        Figure("frame_ece", "calibration error", "lower", share=True, compared=False),
        Figure("frame_accuracy_reader", "by the reader alone", "higher", share=True, compared=False),
        Figure("frame_accuracy_exact", "by the exact posterior alone", "higher", share=True, compared=False),
    ),
    run=run,
    needs=(FRAMES,),
    settings=(
        "events",
        "eval_batch",
    ),
    observer=observer,
    single_events=True,
)
