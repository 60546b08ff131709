"""The base class of options, and named sizes (presets).

An option is defined once, as a field of an options class: the field is the command-line flag, the YAML key,
the Python keyword argument and the key in the body of a REST request. Its type, bounds and help stand beside
its default. Options classes are in the ``options.py`` of the package that they configure; these modules
import nothing heavy, so that ``ssdvae --help`` answers at once.
"""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from ssdvae.io.errors import UserError, shorten
from ssdvae.io.records import LARGEST, read_yaml

Preset = Literal["auto", "tiny", "small", "paper"]

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "vocabulary": 2_000,
        "frames": 200,
        "embedding": 32,
        "hidden": 32,
        "layers": 1,
        "role_embedding": 8,
        "codes": 32,
        "code_width": 16,
        "batch": 32,
    },
    "small": {"vocabulary": 10_000, "frames": 500, "hidden": 256, "layers": 2, "batch": 100},
    "paper": {
        "vocabulary": 40_000,
        "frames": 500,
        "embedding": 300,
        "hidden": 512,
        "layers": 2,
        "batch": 100,
    },
}
"""Each command, and each model, takes from a size what it has."""


def preset(name: str) -> dict[str, Any]:
    if name not in PRESETS:
        raise UserError(f"no preset {name!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass(frozen=True)
class Counts:
    """The size of a training split."""

    documents: int  # of the training split
    events: int
    words: int  # in the vocabulary


class Auto:
    """The default of an option that the preset ``auto`` sets when the corpus is known."""

    def __repr__(self) -> str:
        return "auto"


AUTO = Auto()

SET_BY_AUTO = ("embedding", "hidden", "layers", "role_embedding", "batch", "epochs", "learning_rate")
"""The options that the preset ``auto`` sets."""


READ = 300_000
"""Events that a run reads, those that come again counted again."""


def auto(counts: Counts) -> dict[str, Any]:
    """Return a size that fits the data: small corpora are read more often, large ones by a wider network.

    docs/train.md has the table.
    """
    text = counts.words > 5_000  # the words of a text; logs and made worlds have fewer
    large = counts.events > 200_000
    return {
        "embedding": 128 if text else 64,
        "hidden": 256 if large else 128,
        "layers": 1,
        "role_embedding": 16,
        "batch": 64 if large else 32,
        "epochs": min(20, max(3, round(READ / max(1, counts.events)))),
        "learning_rate": 6e-3 if text else 5e-3,
    }


def sizes(name: str | None, counts: Counts | None = None) -> Mapping[str, Any]:
    """Return the options of a named size; without ``counts``, ``auto`` names only those that it sets."""
    if name is None:
        return {}
    if name != "auto":
        return preset(name)
    return dict.fromkeys(SET_BY_AUTO, AUTO) if counts is None else auto(counts)


KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
"""The types that an option may have, as messages name them; or a ``Literal``, or None beside one."""

BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def _not_empty(value: Any) -> Any:
    if value == "":
        raise ValueError("no path")  # not the current folder
    return value


FilePath = Annotated[Path, Field(strict=False), BeforeValidator(_not_empty)]
"""A path, also from its text."""


class Options(BaseModel):
    """The base of all options classes: frozen, strict about types, and without unknown names.

    A wrong value is a ``UserError`` that names the flag, what was found and what was expected.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    group: ClassVar[str] = "options"
    """The title under which ``--help`` shows the fields of this class."""

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise self._explain(error, values) from error

    @classmethod
    def _explain(cls, error: ValidationError, values: Mapping[str, Any]) -> UserError:
        """Return the first mistake in the words of the command line."""
        problem = error.errors(include_url=False)[0]
        # A text that is not Unicode, such as half a surrogate pair, has no place in pydantic's words.
        first = problem["loc"][0] if problem["loc"] else problem["input"]
        name = str(first)
        if problem["type"] == "extra_forbidden" or name in values.keys() - cls.model_fields.keys():
            return unknown_option(name, cls.names())
        if name not in cls.model_fields:
            return UserError(f"found {shorten(problem['input'])}, expected names and values of text")
        expected = describe(cls.model_fields[name])
        value = values.get(name, problem["input"])
        if isinstance(value, int) and abs(value) >= LARGEST:
            expected += ", and of 63 bits"
        return UserError(f"{flag(name)}: found {shorten(value)}, expected {expected}")

    @model_validator(mode="before")
    @classmethod
    def _accept_numpy(cls, values: Any) -> Any:
        """Turn NumPy's numbers into Python's, and refuse whole numbers that no tensor can hold."""
        if not isinstance(values, dict):
            return values
        return {name: _plain(value) for name, value in values.items()}

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_relations()
        return self

    def check_relations(self) -> None:
        """Check what must hold between options; types and bounds are checked before."""

    def _require(self, name: str, right: bool, expected: str) -> None:
        if not right:
            raise UserError(f"{flag(name)}: found {shorten(getattr(self, name))}, expected {expected}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all options."""
        return tuple(cls.fields())

    @classmethod
    def fields(cls) -> dict[str, FieldInfo]:
        """Return the definition of each option."""
        return dict(cls.model_fields)

    @classmethod
    def fields_for(cls, given: Mapping[str, Any]) -> dict[str, FieldInfo]:
        """Return the definition of each option, with the defaults of the given preset."""
        defaults = sizes(given.get("preset"))
        return {
            name: with_default(field, defaults.get(name, field.default))
            for name, field in cls.fields().items()
        }

    @classmethod
    def group_of(cls, name: str) -> str:
        """Return the title under which ``--help`` shows an option: that of the class that defines it."""
        owners = [kind for kind in cls.__mro__ if name in vars(kind).get("__annotations__", {})]
        return str(getattr(owners[0], "group", cls.group)) if owners else cls.group

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return these options from a wider mapping; other keys are ignored."""
        return cls(**{name: values[name] for name in cls.names() if name in values})

    @classmethod
    def sized(cls, size: str | None, /, **changes: Any) -> Self:
        """Return the options of a preset, with changes: ``PrepareOptions.sized("small", events=5)``."""
        sizes = {} if size is None else preset(size)
        return cls(**{**{name: value for name, value in sizes.items() if name in cls.names()}, **changes})

    def changed(self, **changes: Any) -> Self:
        """Return the same options with some changes."""
        return type(self)(**{**self.values(), **changes})

    def values(self) -> dict[str, Any]:
        """Return every option by its name."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as YAML and JSON have them."""
        return {k: str(v) if isinstance(v, Path) else v for k, v in self.values().items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float) or not isinstance(value, numbers.Real):
        if isinstance(value, int) and abs(value) >= LARGEST:
            return math.inf  # refused, where a whole number is expected as where any is
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def differences(options: Sequence[Mapping[str, Any]], ignored: Collection[str] = ()) -> dict[str, list[Any]]:
    """Return the options that are not the same wherever they are present: their values, by name."""
    names = dict.fromkeys(name for values in options for name in values if name not in ignored)
    found = {name: [values[name] for values in options if name in values] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}


def with_default(field: FieldInfo, default: Any) -> FieldInfo:
    """Return the definition of an option with another default."""
    return FieldInfo.merge_field_infos(field, default=default)


def flag(name: str) -> str:
    """Return the flag of an option. A Python keyword has an underscore behind it: ``as_`` is ``--as``."""
    return "--" + name.rstrip("_").replace("_", "-")


def kind_of(field: FieldInfo) -> Any:
    """Return the type of an option, without None."""
    kind: Any = field.annotation
    if get_origin(kind) in (Union, UnionType):
        kind = next(inner for inner in get_args(kind) if inner is not NoneType)
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind


def is_optional(field: FieldInfo) -> bool:
    """Tell whether an option may be None."""
    return NoneType in get_args(field.annotation)


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Return the values to choose from; none where any is allowed."""
    kind = kind_of(field)
    return get_args(kind) if get_origin(kind) is Literal else ()


def bounds_of(field: FieldInfo) -> dict[str, float]:
    """Return the bounds of a number, by pydantic's names for them."""
    return {
        name: getattr(constraint, name)
        for constraint in field.metadata
        for name in BOUNDS
        if getattr(constraint, name, None) is not None
    }


def describe_bounds(field: FieldInfo) -> str:
    bounds = bounds_of(field)
    if "ge" in bounds and "le" in bounds:
        return f"from {bounds['ge']:g} to {bounds['le']:g}"
    return " and ".join(f"{BOUNDS[name]} {bound:g}" for name, bound in bounds.items())


def describe(field: FieldInfo) -> str:
    """Return which values are right, in words."""
    choices = choices_of(field)
    kind = f"one of {', '.join(choices)}" if choices else KINDS.get(kind_of(field), "a value")
    return ", ".join(filter(None, [kind, describe_bounds(field)]))


def parse(field: FieldInfo, text: str) -> Any:
    """Return the value of an option from its text on a command line; the options class checks it."""
    if text.lower() in ("none", "null") and is_optional(field):
        return None
    if kind_of(field) in (int, float):
        for number in (int, float):
            with suppress(ValueError, OverflowError):
                return number(text)
    return text


def unknown_option(name: str, known: Collection[str], owner: str = "", hint: str = "") -> UserError:
    """Return the error for an option that does not exist: the nearest one that does, and all of them."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    subject = f"{owner} has no option {name!r}" if owner else f"no option {name!r}"
    guess = f"; did you mean {near[0]!r}?" if near else ""
    there = "it has" if owner else "there are"
    return UserError(f"{subject}{hint}{guess}\n{there}: {', '.join(known)}")


def names_of_text(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def split_options(options: Mapping[str, Any], kind: type[Options]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the given options of a class, and the others."""
    own = {name: value for name, value in options.items() if name in kind.names()}
    return own, {name: value for name, value in options.items() if name not in own}


Function = TypeVar("Function", bound=Callable[..., Any])


def with_options(*kinds: type[Options]) -> Callable[[Function], Function]:
    """Add the options to the signature and the docstring of a function that takes them as ``**options``."""

    def decorate(function: Function) -> Function:
        fields = {name: field for kind in kinds for name, field in kind.fields_for({}).items()}
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        further = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation
            )
            for name, field in fields.items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *further])  # type: ignore[attr-defined]  # what inspect asks for
        lines = "\n".join(f"    {name}: {field.description}" for name, field in fields.items())
        function.options = kinds  # type: ignore[attr-defined]  # for the command line
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = f"{text}{'' if 'Args:' in text else f'{chr(10)}{chr(10)}Args:'}\n{lines}\n"
        return function

    return decorate


class _YamlLoader(yaml.SafeLoader):
    """As safe as its parent, but 1e-3 is a number, which YAML 1.1 takes for text."""


_YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_config(path: Path, kinds: Collection[type[Options]]) -> dict[str, Any]:
    """Return the options of a YAML file, such as the config.yaml of a run, whose corpus is ignored."""
    values = read_yaml(path, "options by name, as `hidden: 256`", _YamlLoader)
    try:
        if "corpus" in values:
            values = unversioned(values)
            del values["corpus"]
        known = [name for kind in kinds for name in kind.fields()]
        for name in values:
            if name not in known:
                raise unknown_option(name, known)
        for kind in kinds:
            kind.of(values)  # a wrong value is told with the file
        return values
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


FORMAT = 1
"""The format of config.yaml and config.json."""


def versioned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as they are written."""
    return {"format": FORMAT, **values}


def unversioned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return written options without their format, which must be this one."""
    values = dict(values)
    number = values.pop("format", None)
    if number != FORMAT:
        raise UserError(
            f"found options in format {number!r}, expected {FORMAT}\n"
            "they are from another version of ssdvae: train again, or install that version"
        )
    return values
