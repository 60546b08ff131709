"""The table of tasks: what can be measured of a model.

``evaluate``, ``scores``, the page, ``reproduce`` and ``--help`` read it. To add a task, add a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssdvae.errors import UserError
from ssdvae.evaluation.tasks.attention import ATTENTION_TASK
from ssdvae.evaluation.tasks.base import Figure, Task
from ssdvae.evaluation.tasks.cloze import CLOZE
from ssdvae.evaluation.tasks.frames import FRAME_PREDICTION
from ssdvae.evaluation.tasks.masked import MASKED
from ssdvae.evaluation.tasks.mcnc import MCNC
from ssdvae.evaluation.tasks.next_event import NEXT_EVENT
from ssdvae.evaluation.tasks.order import ORDER
from ssdvae.evaluation.tasks.perplexity import PERPLEXITY
from ssdvae.evaluation.tasks.scripts import SCRIPTS
from ssdvae.evaluation.tasks.similarity import SIMILARITY

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        PERPLEXITY,
        FRAME_PREDICTION,
        CLOZE,
        NEXT_EVENT,
        MCNC,
        SIMILARITY,
        MASKED,
        ORDER,
        ATTENTION_TASK,
        SCRIPTS,
    )
}


def find_task(name: str) -> Task:
    if name not in TASKS:
        raise UserError(f"no task {name!r}; there are: {', '.join(TASKS)}")
    return TASKS[name]


def find_tasks(names: Sequence[str] | None) -> list[Task]:
    """The tasks of these names, or the default ones; each once, in the order of the table."""
    if names is None:
        return [task for task in TASKS.values() if task.default]
    chosen = {find_task(name).name for name in names}
    if not chosen:
        raise UserError(f"no task is named; there are: {', '.join(TASKS)}")
    return [task for task in TASKS.values() if task.name in chosen]


def task_choices() -> str:
    """The tasks in a line, for the help of a flag."""
    default, other = ([name for name, t in TASKS.items() if t.default is kind] for kind in (True, False))
    return ", ".join(default) + " (these by default)" + "".join(f", {name}" for name in other)


def find_figure(name: str) -> Figure | None:
    """A figure that some task shows, by its name."""
    return next((f for task in TASKS.values() for f in task.figures if f.name == name), None)


def mark_of(name: str, scores: Mapping[str, Any]) -> str:
    """What stands beside a figure wherever it is shown."""
    figure = find_figure(name)
    return "" if figure is None else figure.mark(scores)
