"""Generated scripts: do their events have the frames that were asked for, and do they hold together?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssdvae.evaluation.tasks.base import FRAMES, WORDS, Data, Figure, Result, Task

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation


def run(evaluation: Evaluation, data: Data) -> Result | None:
    """None if no document of the split has a second event and all its frames."""
    from ssdvae.evaluation.scripts import measure_scripts

    return measure_scripts(evaluation.model, evaluation.corpus, evaluation.documents, evaluation.settings)


SCRIPTS = Task(
    name="scripts",
    title="Generated scripts",
    explanation="A script is sampled, at temperature 1 from all words, after the first event of each "
    "document, with the frames of its other events asked for. “As asked”: generated events that a classifier "
    "reads as that frame, to be compared with “of real events”, where it reads the documents themselves. It "
    "knows nothing of the model: it learned from the training split, or is that of --script-reader. “Variety "
    "of heads” is the entropy of heads given the frame, over that of the documents: where the likeliest verb "
    "is always said there is none. On storyworld, “possible” are scripts that the world can tell, and their "
    "mean log-probability stands beside that of the true documents.",
    figures=(
        Figure("scripts_as_asked", "as asked", "higher", share=True),
        Figure("scripts_real_as_labelled", "of real events", share=True, compared=False),
        Figure("scripts_head_variety", "variety of heads", "higher", share=True),
        Figure("scripts_possible", "possible", "higher", share=True),
        Figure("scripts_log_prob", "log p", "higher", digits=2, compared=False),
        Figure("scripts_true_log_prob", "log p of true ones", digits=2, compared=False),
    ),
    run=run,
    needs=(WORDS, FRAMES),
    settings=("events", "scripts", "script_reader", "eval_batch", "eval_seed"),
    default=False,
    reproduced=False,
)
