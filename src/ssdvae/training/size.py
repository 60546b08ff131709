"""How large a model would be and what its training would take, before anything is built.

Both are at least what is said here: the large matrices, and the states of the GRUs that a step keeps for its
gradients. What the machine cannot hold by this count cannot be meant.
"""

from __future__ import annotations

from ssdvae.config import TrainSettings
from ssdvae.errors import UserError
from ssdvae.limits import shown
from ssdvae.memory import memory_limit
from ssdvae.models import model_class
from ssdvae.models.base import LanguageModel

FLOAT = 4
COPIES = 4
"""Of each parameter: its value, its gradient, and the two means of Adam."""


def parameters_at_least(settings: TrainSettings, words: int, frames: int) -> int:
    """Word vectors, output layer, one GRU, and codebooks."""
    values = settings.values()
    hidden, layers, width = values["hidden"], values["layers"], values.get("embedding") or 300
    # A GRU has three gates, each with a matrix for what it reads and one for its state.
    gru = 3 * hidden * (width + hidden) + (layers - 1) * 3 * hidden * 2 * hidden
    predicts_words = issubclass(model_class(settings.model), LanguageModel)
    output = frames * hidden if not predicts_words else 0 if values.get("tied") else words * hidden
    latent = values.get("latents", 0) * values.get("codes", 0) * values.get("code_width", 0)
    return int(words * width + output + gru + latent)


def step_at_least(settings: TrainSettings, documents: int, events: int, slots: int) -> int:
    """Numbers that a step keeps: the states of each layer at each word and separator, for each sample."""
    values = settings.values()
    places = min(values["batch"], documents) * events * (slots + 1)
    return int(places * values["hidden"] * values["layers"] * values.get("samples", 1))


def refuse_if_too_large(
    settings: TrainSettings, words: int, frames: int, documents: int, events: int, slots: int
) -> None:
    """Say what it would take, if that is more than there is."""
    parameters = parameters_at_least(settings, words, frames)
    need = FLOAT * (COPIES * parameters + step_at_least(settings, documents, events, slots))
    limit = memory_limit()
    if need > limit:
        raise UserError(
            f"a model of about {parameters:,} parameters takes {shown(need)} of memory or more to train, and "
            f"this machine has {shown(limit)}\nchoose a smaller --hidden, --embedding, --layers, --batch or "
            "other size; SSDVAE_MAX_MEMORY=64G, for example, allows more"
        )
