"""The model card: what a stranger should know before using a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from huggingface_hub import ModelCard

from ssdvae import __version__
from ssdvae.data.documents import ContextWindow
from ssdvae.data.events import SLOTS, Slots
from ssdvae.io.scores import CONDITIONS_ON_TARGETS
from ssdvae.models.options import ModelOptions

PAPER = "https://arxiv.org/abs/2010.04361"

LIMITS = """## Limits

The model has seen only the kind of text it was trained on, and frames that may have been assigned by a
machine. Its scripts repeat the regularities and the biases of that text."""

LICENCE = """
license: other
license_name: in-the-file-LICENSE
license_link: LICENSE"""

TEMPLATE = """---
library_name: ssdvae
tags: [events, scripts, frames]{licence}
---
# {name}: a model of event sequences

A `{model}` over documents of events, each of the slots {slots}.
It knows {words:,} words and {frames:,} frames. {reading}
Made with ssdvae {version}, an implementation of "Event Representation with Sequential, Semi-Supervised
Discrete Variables" ([Rezaee and Ferraro, NAACL 2021]({paper})).

```python
import ssdvae

model = ssdvae.load("path/to/this/folder")
```

{about}
{made}
## Validation

{scores}
{conditions_on_targets}
## Options

{settings}
"""


@dataclass(frozen=True)
class CardExtras:
    """Contents of a card that are not in the model."""

    name: str = ""  # by default that of the kind of model
    about: str = LIMITS  # sections in Markdown: data, licences, limits
    made: str = ""  # the commands that made it
    figures: str = ""  # a table, in the place of that of the scores
    licensed: bool = False  # whether there is a file LICENSE beside the card


NO_EXTRAS = CardExtras()


def model_card(
    config: ModelOptions,
    words: int,
    frames: int,
    scores: dict[str, Any] | None,
    reading: ContextWindow | None = None,
    slots: Slots = SLOTS,
    extras: CardExtras = NO_EXTRAS,
) -> ModelCard:
    return ModelCard(
        TEMPLATE.format(
            name=extras.name or config.model,
            licence=LICENCE if extras.licensed else "",
            model=config.model,
            words=words,
            frames=frames,
            slots=", ".join(slots),
            reading="" if reading is None else reading.sentence,
            version=__version__,
            paper=PAPER,
            about=extras.about.strip() + "\n",
            made=f"## How it was made\n\n{extras.made.strip()}\n" if extras.made else "",
            scores=extras.figures or (_table(_marked(scores)) if scores else "Not measured."),
            conditions_on_targets=_conditions_on_targets(config)
            if scores and scores.get(CONDITIONS_ON_TARGETS)
            else "",
            settings=_table(config.to_publish()),
        )
    )


def _marked(scores: dict[str, Any]) -> dict[str, Any]:
    """Return the scores, with † beside perplexities that condition on the words they predict."""
    told = {name: value for name, value in scores.items() if name != CONDITIONS_ON_TARGETS}
    if not scores.get(CONDITIONS_ON_TARGETS):
        return told
    return {
        name: f"{told[name]} †" if name in ("ppl", "ppl_with_separators") else told[name] for name in told
    }


def _conditions_on_targets(config: ModelOptions) -> str:
    if config.values().get("document_vector") or config.values().get("variant") == "code":
        return (
            "\n† Its document vector has read the very words that are predicted. Such a perplexity compares "
            "with that of\nno other model, and there is no bound.\n"
        )
    return (
        "\n† It conditions on latent variables that are inferred from the very words it predicts. To compare "
        "models with\nand without them, use `ppl_bound` of `ssdvae evaluate`.\n"
    )


def _table(values: dict[str, Any]) -> str:
    return markdown_table(["", ""], [[name, str(v)] for name, v in values.items() if v is not None])


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; any text stays in its cell."""
    lines = [[*map(markdown_text, head)], ["---"] * len(head), *([*map(markdown_text, row)] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    """Return a text as one line of Markdown that is neither markup nor the end of a cell."""
    for character in "\\|<":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
