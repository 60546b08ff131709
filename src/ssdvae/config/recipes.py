"""Named sets of settings: what is learned and how, where a preset says how large.

``paper``   the paper's model and training, as every setting stands by itself, on the first five events
``guided``  the best that we know: frames that follow their events, and a likelihood that pays for them

Each model takes from a recipe what it has. A recipe gives defaults: YAML and flags override it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ssdvae.errors import UserError

Recipe = Literal["guided", "paper"]

EVERY = "every model"

RECIPES: dict[str, dict[str, dict[str, Any]]] = {
    "guided": {
        EVERY: {
            "tied": True,
            "decay": True,
        },
        "ssdvae": {
            "roles": True,
            "guide": "local",
            "surroundings": 0.3,
            "preference": True,
            "prior": "history",
            "objective": "bound",
            "estimator": "straight-through",
            "foresight": 0.3,
        },
    },
    "paper": {EVERY: {"events": 5}},
}
"""By recipe: the settings of every model, and those of one. Role vectors are for SSDVAE only: an RNNLM that
has them is called ``rnnlm-role``."""


def recipe(name: str | None, model: str) -> dict[str, Any]:
    """What a recipe gives to a model; some of it may be a setting that the model does not have."""
    if name is None:
        return {}
    if name not in RECIPES:
        raise UserError(f"no recipe {name!r}; there are: {', '.join(RECIPES)}")
    return {**RECIPES[name].get(EVERY, {}), **RECIPES[name].get(model, {})}


def departures(
    name: str | None, model: str, defaults: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Of ``values`` those that any recipe decides and this one decides differently."""
    decided = {setting for other in RECIPES for setting in recipe(other, model)}
    mine = {**defaults, **recipe(name, model)}
    return {s: value for s, value in values.items() if s in decided and value != mine[s]}
