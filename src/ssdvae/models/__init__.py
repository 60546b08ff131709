"""The models, by name. A new one is a class like the others and one line here."""

from __future__ import annotations

from ssdvae.errors import UserError
from ssdvae.models.base import EventModel
from ssdvae.models.classifier import RNNLMClassifier, RNNLMRoleClassifier
from ssdvae.models.haqae import HAQAE
from ssdvae.models.planner import Planner
from ssdvae.models.rnnlm import RNNLM, RNNLMRole
from ssdvae.models.ssdvae import SSDVAE

MODELS: dict[str, type[EventModel]] = {
    "ssdvae": SSDVAE,
    "rnnlm": RNNLM,
    "rnnlm-role": RNNLMRole,
    "haqae": HAQAE,
    "planner": Planner,
    "rnnlm-classifier": RNNLMClassifier,
    "rnnlm-role-classifier": RNNLMRoleClassifier,
}


def model_class(name: str) -> type[EventModel]:
    if name not in MODELS:
        raise UserError(f"no model {name!r}; there are: {', '.join(MODELS)}")
    return MODELS[name]
