"""The models, by name. To add one, write a class like the others and add a line here."""

from __future__ import annotations

from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.exact import ExactModel
from ssdvae.models.haqae import HAQAE
from ssdvae.models.rnnlm import RNNLM, RNNLMClassifier, RNNLMRole, RNNLMRoleClassifier
from ssdvae.models.ssdvae import SSDVAE

MODELS: dict[str, type[Model]] = {
    "ssdvae-exact": ExactModel,
    "ssdvae": SSDVAE,
    "rnnlm": RNNLM,
    "rnnlm-role": RNNLMRole,
    "haqae": HAQAE,
    "rnnlm-classifier": RNNLMClassifier,
    "rnnlm-role-classifier": RNNLMRoleClassifier,
}


def model_class(name: str) -> type[Model]:
    if name not in MODELS:
        raise UserError(f"no model {name!r}; there are: {', '.join(MODELS)}")
    return MODELS[name]
