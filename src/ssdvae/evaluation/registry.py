"""The table of evaluation tasks.

``evaluate``, ``scores``, the report and ``reproduce`` read it. To add a task, write a module with a ``TASK``
beside this one and add a line here. The modules are imported on first use, since most import torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import Any

from ssdvae.evaluation.task import Figure, Task
from ssdvae.io.errors import UserError


class TaskTable(MutableMapping[str, Task]):
    """Tasks by name; a module stands in the place of its task until that is used."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.entries: dict[str, Task | str] = dict(modules)

    def __getitem__(self, name: str) -> Task:
        task = self.entries[name]
        if isinstance(task, str):
            found: Task = import_module(f"ssdvae.evaluation.{task}").TASK
            self.entries[name] = task = found
        return task

    def __setitem__(self, name: str, task: Task) -> None:
        self.entries[name] = task

    def __delitem__(self, name: str) -> None:
        del self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


TASKS = TaskTable(
    {
        "perplexity": "perplexity",
        "frames": "frames",
        "cloze": "cloze",
        "next": "next_event",
        "mcnc": "mcnc",
        "similarity": "similarity",
        "masked": "masked",
        "order": "order",
        "attention": "attention",
        "scripts": "scripts",
    }
)


def find_task(name: str) -> Task:
    """Return the task of this name."""
    if name not in TASKS:
        raise UserError(f"no task {name!r}; there are: {', '.join(TASKS)}")
    return TASKS[name]


def find_tasks(names: Sequence[str] | None) -> list[Task]:
    """Return the tasks of these names, or the default ones; each once, in the order of the table."""
    if names is None:
        return [task for task in TASKS.values() if task.default]
    chosen = {find_task(name).name for name in names}
    if not chosen:
        raise UserError(f"no task is named; there are: {', '.join(TASKS)}")
    return [TASKS[name] for name in TASKS if name in chosen]


def find_figure(name: str) -> Figure | None:
    """Return a figure of any task by its name."""
    return next((f for task in TASKS.values() for f in task.figures if f.name == name), None)


def mark_of(name: str, scores: Mapping[str, Any]) -> str:
    """Return the mark that is shown beside a figure."""
    figure = find_figure(name)
    return "" if figure is None else figure.mark(scores)
