"""Paper: re-run its experiments and check its claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.api.signatures import AnyPath, Some, with_settings
from ssdvae.config import (
    MEASURED_ALIKE,
    PRESETS,
    TRAINED_ALIKE,
    EvaluateSettings,
    ReproduceSettings,
    TrainSettings,
)
from ssdvae.config.paper import PRESCRIBED, REPRODUCE_DEFAULTS
from ssdvae.config.settings import unknown_setting
from ssdvae.progress import Progress, resolve

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.paper.cells import Cells
    from ssdvae.paper.reproduce import Reproduced


@with_settings(
    ReproduceSettings,
    Some(TrainSettings, TRAINED_ALIKE, REPRODUCE_DEFAULTS),
    Some(EvaluateSettings, MEASURED_ALIKE),
)
def reproduce(
    what: str,
    data: Corpus | AnyPath,
    out: AnyPath,
    *,
    progress: bool | Progress = True,
    watch: Callable[[Cells], None] | None = None,
    **settings: Any,
) -> Reproduced:
    """Re-run the paper's experiments behind the tables ``what``, and check its claims.

    >>> ssdvae.reproduce("all", "corpus", "paper", scale="tiny", seeds=3, epochs=5).verdicts

    Takes the settings of `train` and `evaluate` that it does not vary itself, too; ``scale`` gives other
    defaults to them. ``watch`` is shown the state of all runs again and again.
    """
    # Not at the top: it asks for more of the system than the rest does (POSIX), and for torch.
    from ssdvae.api.training import as_corpus
    from ssdvae.paper.reproduce import reproduce as run_experiments

    known = (*ReproduceSettings.names(), *TRAINED_ALIKE, *MEASURED_ALIKE)
    for name in settings:
        if name not in known:
            raise unknown_setting(name, known)
    chosen = ReproduceSettings.of(settings)
    training = {
        "preset": chosen.scale,
        **PRESCRIBED,
        **PRESETS[chosen.scale],
        **_only(TRAINED_ALIKE, settings),
    }
    measuring = EvaluateSettings.exactly(_only(MEASURED_ALIKE, settings))
    return run_experiments(
        what, as_corpus(data), Path(out), chosen, training, measuring, resolve(progress), watch
    )


def _only(names: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}
