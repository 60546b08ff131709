"""Settings as keyword arguments: defined once, in `config`, and shown by ``help`` and by editors.

A function of the API takes ``**settings``. This module makes of them what Python itself shows: one typed
keyword argument with its default for each setting, and a line about it in the docstring.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from ssdvae.config import Settings, preset
from ssdvae.errors import UserError

AnyPath = str | Path
Function = TypeVar("Function", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=Settings)


@dataclasses.dataclass(frozen=True)
class Some:
    """Some of the settings of a group."""

    kind: type[Settings]
    names: tuple[str, ...]

    def parameters(self) -> Iterable[inspect.Parameter]:
        hints = get_type_hints(self.kind)
        for field in dataclasses.fields(self.kind):
            if field.name in self.names:
                yield inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=hints[field.name],
                )

    def lines(self) -> Iterable[str]:
        for field in dataclasses.fields(self.kind):
            if field.name in self.names:
                yield f"{field.name}: {field.metadata['help']}"


def with_settings(*groups: type[Settings] | Some) -> Callable[[Function], Function]:
    """Say in the signature and in the docstring which ``**settings`` a function takes."""
    chosen = [group if isinstance(group, Some) else Some(group, group.names()) for group in groups]

    def decorated(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        settings = [parameter for group in chosen for parameter in group.parameters()]
        function.__signature__ = signature.replace(parameters=[*own, *settings])  # type: ignore[attr-defined]
        lines = "\n".join(f"    {line}" for group in chosen for line in group.lines())
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nSettings:\n{lines}\n"
        return function

    return decorated


def settings_of(kind: type[Kind], values: Mapping[str, Any], size: str | None = None) -> Kind:
    """The settings that keyword arguments give; ``size`` is a preset, which gives other defaults."""
    refuse_unknown(values, kind.names())
    return kind.of({**(preset(size) if size is not None else {}), **values})


def refuse_unknown(values: Iterable[str], known: Iterable[str]) -> None:
    """A name that is none of those known is an error, which says the one that may be meant."""
    known = list(known)
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
            raise UserError(f"no setting {name!r}; {hint}")
