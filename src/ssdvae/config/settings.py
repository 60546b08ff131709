"""What a setting is, and what every group of settings can do.

A setting is defined once, as a field of a dataclass: the field is the command-line flag, the YAML key and the
Python argument. Its type and bounds stand beside its default, and are checked alike wherever a value is from.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import numbers
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from ssdvae.config.presets import preset
from ssdvae.errors import UserError, shorten

LARGEST = 2**63
"""Whole numbers are below this: torch has no others to draw from, and Arrow none to count with."""

KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
"""The types that a setting may have, as messages name them; or a choice (``Literal``), or None beside one."""


@dataclass(frozen=True)
class Bounds:
    """Between which numbers a setting lies."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )

    @property
    def two_sided(self) -> bool:
        return (self.at_least, self.above) != (None, None) and (self.at_most, self.below) != (None, None)

    def __str__(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least:g} to {self.at_most:g}"
        parts = [
            f"{name.replace('_', ' ')} {bound:g}" for name, bound in vars(self).items() if bound is not None
        ]
        return " and ".join(parts)


def setting(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    topic: str | None = None,
    training_only: bool = False,
    repeatable: bool = False,
) -> Any:
    """A field with the sentence that explains it, its bounds, and the topic under which it is shown.

    The topic is by default that of the class. What is ``training_only`` is no part of a saved model. A flag
    that is ``repeatable`` may be given again, as if its values stood there with commas between.
    """
    bounds = Bounds(at_least, above, at_most, below)
    metadata = {"help": help, "bounds": bounds, "topic": topic}
    metadata |= {"training_only": training_only, "repeatable": repeatable}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Setting:
    """The definition of one setting."""

    name: str
    type: Any
    default: Any
    help: str
    topic: str
    bounds: Bounds
    training_only: bool = False
    repeatable: bool = False

    @property
    def flag(self) -> str:
        # A word that Python keeps for itself has an underscore behind it: as_ is --as.
        return "--" + self.name.rstrip("_").replace("_", "-")

    @property
    def optional(self) -> bool:
        return NoneType in get_args(self.type)

    @property
    def kind(self) -> Any:
        """The type without None."""
        return next(t for t in get_args(self.type) if t is not NoneType) if self.optional else self.type

    @property
    def choices(self) -> tuple[str, ...]:
        """The values to choose from; none where any is allowed."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def expected(self) -> str:
        """Which values are right, in words."""
        kind = f"one of {', '.join(self.choices)}" if self.choices else KINDS[self.kind]
        return ", ".join(filter(None, [kind, str(self.bounds)]))

    def check(self, value: Any) -> Any:
        """The value as it is kept; one that is wrong is a ``UserError``."""
        found, kind = _converted(value, self.kind), self.kind
        if value is None and self.optional:
            return None
        right = found in self.choices if self.choices else type(found) is kind or isinstance(found, kind)
        if isinstance(found, bool) and kind is not bool:
            right = False
        fits = True
        if right and kind in (int, float):
            # The first of them also because a float cannot hold every whole number.
            fits = not isinstance(value, int) or abs(found) < LARGEST
            right = fits and math.isfinite(found) and found in self.bounds
        if not right:
            expected = self.expected if fits else f"{self.expected}, and of 63 bits"
            raise UserError(f"{self.flag}: found {shorten(value)}, expected {expected}")
        return found

    def parse(self, text: str) -> Any:
        """The value that is written so on a command line."""
        if text.lower() in ("none", "null") and self.optional:
            return None
        if self.kind is bool and text.lower() in ("true", "yes", "false", "no"):
            return text.lower() in ("true", "yes")
        for number in (int, float):
            if self.kind in (int, float):
                try:
                    return self.check(number(text))
                except ValueError:
                    continue
        if self.kind in (int, float):
            raise UserError(f"{self.flag}: found {shorten(text)}, expected {self.expected}")
        return self.check(text)


def _converted(value: Any, kind: Any) -> Any:
    """A path from its text, a float from a whole number, and Python's numbers from those of NumPy."""
    if isinstance(value, bool):
        return value
    if kind is Path and isinstance(value, str):
        return Path(value) if value else value  # no text is no path, and not the folder one is in
    if kind is float and isinstance(value, numbers.Real):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if kind is int and isinstance(value, numbers.Integral):
        return int(value)
    return value


def unknown_setting(name: str, known: Collection[str], owner: str = "", hint: str = "") -> UserError:
    """What to say of a setting that is not there: the nearest one that is, and all of them."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    subject = f"{owner} has no setting {name!r}" if owner else f"no setting {name!r}"
    guess = f"; did you mean {near[0]!r}?" if near else ""
    there = "it has" if owner else "there are"
    return UserError(f"{subject}{hint}{guess}\n{there}: {', '.join(known)}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all groups of settings can do."""

    topic: ClassVar[str] = "settings"
    """Under which its settings are shown, where they do not say otherwise."""

    @classmethod
    def table(cls) -> dict[str, Setting]:
        """The definition of each setting, by name."""
        return _definitions(cls)  # type: ignore[arg-type]  # a class is hashable: mypy takes its instances

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(cls.table())

    @classmethod
    def names_for(cls, values: Mapping[str, Any]) -> Iterable[str]:
        """The settings that there are, given these."""
        return cls.names()

    @classmethod
    def refuse_unknown(cls, values: Mapping[str, Any]) -> None:
        """A setting that is not there is refused by name."""
        known = tuple(cls.names_for(values))
        for name in values:
            if name not in known:
                raise unknown_setting(name, known)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """These settings from a wider mapping: keys that belong to others are passed over."""
        return cls(**{name: values[name] for name in cls.names_for(values) if name in values})

    @classmethod
    def exactly(cls, values: Mapping[str, Any]) -> Self:
        """These settings from a mapping that has nothing else: another key is refused by name."""
        cls.refuse_unknown(values)
        return cls(**values)

    @classmethod
    def sized(cls, name: str | None, /, **changes: Any) -> Self:
        """The named size, with changes: ``PrepareSettings.sized("small", events=5)``."""
        sizes = {} if name is None else preset(name)
        cls.refuse_unknown(changes)
        return cls.of({**sizes, **changes})

    def changed(self, **changes: Any) -> Self:
        """The same settings but for some."""
        return type(self).exactly({**self.values(), **changes})

    def __post_init__(self) -> None:
        for name, definition in self.table().items():
            object.__setattr__(self, name, definition.check(getattr(self, name)))
        self.check_relations()

    def check_relations(self) -> None:
        """What must hold between settings; the types and bounds of each are checked before."""
        return

    def values(self) -> dict[str, Any]:
        """Every setting by its name."""
        return {name: getattr(self, name) for name in self.names()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as YAML and JSON have them."""
        return {k: str(v) if isinstance(v, Path) else v for k, v in self.values().items()}

    def _require(self, name: str, right: bool, expected: str) -> None:
        if not right:
            found = shorten(getattr(self, name))
            raise UserError(f"{self.table()[name].flag}: found {found}, expected {expected}")


@cache
def _definitions(cls: type[Settings]) -> dict[str, Setting]:
    hints = get_type_hints(cls)
    topics = {
        name: group.topic
        for group in reversed(cls.__mro__)
        if issubclass(group, Settings)
        for name in vars(group).get("__annotations__", {})
    }
    return {
        f.name: Setting(
            f.name,
            hints[f.name],
            f.default,
            f.metadata["help"],
            f.metadata["topic"] or topics[f.name],
            f.metadata["bounds"],
            f.metadata["training_only"],
            f.metadata["repeatable"],
        )
        for f in dataclasses.fields(cls)
        if "help" in f.metadata
    }
