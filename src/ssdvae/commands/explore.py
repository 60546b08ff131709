"""`ssdvae explore`: explore models in the browser, or by a REST API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ssdvae.app.options import ExploreOptions
from ssdvae.commands import AnyPath, Command
from ssdvae.io.errors import not_installed
from ssdvae.io.files import check_exists
from ssdvae.options import with_options


@with_options(ExploreOptions)
def explore(
    runs: AnyPath | Sequence[AnyPath] = (), *, documents: AnyPath | None = None, **options: Any
) -> None:
    """Explore models in the browser, until interrupted; a REST API gives the same answers.

    >>> ssdvae.explore("runs/first")

    Args:
        runs: run folders, or names of models; by default the model in the package
        documents: corpus folder or file of documents to show; by default the corpus of each run
    """
    chosen = ExploreOptions(**options)
    try:
        from ssdvae.app import server
    except ModuleNotFoundError as error:
        raise not_installed(str(error.name), "app", "the explorer") from error
    from ssdvae.commands.coerce import folder_of, model_with_quantiles

    file = None if documents is None else Path(documents)
    if file is not None:
        check_exists(file)
    names: Sequence[AnyPath | None] = [runs] if isinstance(runs, str | Path) else runs
    folders = [folder_of(name) for name in names or [None]]
    models = [(folder, model_with_quantiles(folder, True)) for folder in folders]
    server.serve(server.explored(models, file, chosen), chosen)


COMMAND = Command(
    explore,
    examples=("ssdvae explore runs/first", "ssdvae explore runs/first runs/second --documents new.jsonl"),
)
