"""Settings as keyword arguments: defined once, in `config`, and shown by ``help`` and by editors.

A function of the API takes ``**settings``. This module makes of them what Python itself shows: one typed
keyword argument with its default for each setting, and a line about it in the docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from pathlib import Path
from typing import Any, TypeVar

from ssdvae.config import Setting, Settings
from ssdvae.config.training import definitions

AnyPath = str | Path
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Some:
    """Some of the settings of a group, with the defaults that a model and a size give to them."""

    kind: type[Settings]
    names: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def definitions(self) -> list[Setting]:
        table = definitions(self.kind, self.defaults)
        return [definition for name, definition in table.items() if name in self.names]

    def parameters(self) -> list[Parameter]:
        return [
            Parameter(setting.name, Parameter.KEYWORD_ONLY, default=setting.default, annotation=setting.type)
            for setting in self.definitions()
        ]


def with_settings(*groups: type[Settings] | Some) -> Callable[[Function], Function]:
    """Say in the signature and in the docstring which ``**settings`` a function takes."""
    chosen = [group if isinstance(group, Some) else Some(group, group.names()) for group in groups]

    def decorated(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        settings = [parameter for group in chosen for parameter in group.parameters()]
        function.__signature__ = signature.replace(parameters=[*own, *settings])  # type: ignore[attr-defined]  # what inspect asks for
        lines = "\n".join(f"    {s.name}: {s.help}" for group in chosen for s in group.definitions())
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nSettings:\n{lines}\n"
        return function

    return decorated
