"""The flags of a command, made of the parameters of its function and of its options."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from cyclopts import App, Group, Parameter
from docstring_parser import parse as parse_docstring
from pydantic.fields import FieldInfo

from ssdvae.commands import Command
from ssdvae.options import choices_of, describe_bounds, flag, kind_of, parse

FILES = "input and output"
"""The title of the flags that are parameters of the function, not options."""

PLAIN = (bool, int, float, str, Path)
"""The types that a flag may have, by preference: where a path or a text is possible, it is a text."""

METAVARS = {int: "INT", float: "FLOAT", Path: "PATH"}
"""Placeholders of option values in the help, by type."""


def build_parser(program: str, command: Command, words: Sequence[str]) -> App:
    """Return the parser of a command. A model or a preset among the words gives other defaults."""
    groups: dict[str, Group] = {}

    def group(title: str) -> Group:
        return groups.setdefault(title, Group(title, sort_key=len(groups)))

    parameters = _parameters(command, group)
    taken = {p.name for p in parameters}
    given = {key: value for key in ("model", "preset", "scale") if (value := _value_of(f"--{key}", words))}
    for kind in command.options:
        fields = kind.fields_for(given)
        repeatable = getattr(kind, "repeatable", ())
        # Options of other models are not shown, but parsed: the command says which model has them.
        for key, field in {**kind.fields(), **fields}.items():
            if key not in taken:
                title = group(kind.group_of(key)) if key in fields else None
                parameters.append(_option(key, field, title, key in repeatable))
                taken.add(key)
    further: list[tuple[str, Any, str]] = []
    if command.record is not None:
        further.append(("json", bool, "print one JSON object and nothing else"))
    if command.options:
        further.append(("config", Path | None, "YAML file with any of these options; flags win over it"))
    for key, type_, about in further:
        hint = Parameter(name=flag(key), help=about, group=group(FILES), show_default=False, negative=())
        keyword = inspect.Parameter.KEYWORD_ONLY
        default = False if type_ is bool else None
        parameters.append(inspect.Parameter(key, keyword, default=default, annotation=Annotated[type_, hint]))

    def collect(*args: Any, **kwargs: Any) -> None: ...

    collect.__signature__ = inspect.Signature(sorted(parameters, key=lambda p: p.kind))  # type: ignore[attr-defined]  # what inspect asks for
    collect.__annotations__ = {p.name: p.annotation for p in parameters}
    app = App(
        name=program,
        help=command.summary[0].upper() + command.summary[1:] + ".",
        help_format="plaintext",
        help_epilogue="\n".join(["examples:", *(f"  {example}" for example in command.examples)]),
        version_flags=[],
    )
    app["--help"].group = group("help")
    app.default(collect)
    return app


def _option(name: str, field: FieldInfo, group: Group | None, repeatable: bool) -> inspect.Parameter:
    """Return the flag of an option: parsed by its type, shown with its choices, bounds and default.

    Without a group it is not shown.
    """
    kind, choices, bounds = kind_of(field), choices_of(field), describe_bounds(field)
    about = str(field.description)
    if not all(choice in about for choice in choices):
        about += f": {', '.join(choices)}"
    default = str(field.default).lower() if kind is bool else field.default
    ends = [bounds] if " to " in bounds else []
    ends += [] if default is None else [f"default: {default}"]
    about += f" ({'; '.join(ends)})" if ends else ""
    shown = group is not None
    shared = Parameter(
        name=flag(name), help=about, group=group, show=shown, show_default=False, show_choices=False
    )
    annotation: Any
    if kind is bool:
        annotation = Annotated[bool | None, shared]
    elif repeatable:
        annotation = Annotated[list[str] | None, shared, Parameter(negative=())]
    else:
        read = lambda _, tokens: parse(field, tokens[0].value)  # noqa: E731
        reader = Parameter(
            converter=read,
            n_tokens=1,
            accepts_keys=False,
            metavar=METAVARS.get(kind, "CHOICE" if choices else "STR"),
        )
        annotation = Annotated[Any, shared, reader]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _parameters(command: Command, group: Callable[[str], Group]) -> list[inspect.Parameter]:
    """Return the flags of the function itself: what its docstring describes, except options."""
    described = parse_docstring(command.run.__doc__ or "").params
    about = {p.arg_name.lstrip("*"): (p.description or "").replace("\n", " ") for p in described}
    options = {name for kind in command.options for name in kind.fields()}
    found: list[inspect.Parameter] = []
    for p in inspect.signature(command.run).parameters.values():
        if p.name not in about or p.name in options:
            continue
        shown = p.default not in (p.empty, None, False, "", ()) and not isinstance(p.default, list)
        text = about[p.name] + (f" (default: {p.default})" if shown else "")
        hint = Parameter(
            help=text, group=group(FILES), show_default=False, negative=(), consume_multiple=True
        )
        type_ = _type(p.annotation, command.run)
        positional = p.kind is not p.KEYWORD_ONLY and (not found or get_origin(type_) is list)
        name = Parameter(name=p.name.upper() if positional else flag(p.name))
        kind = p.POSITIONAL_ONLY if positional else p.KEYWORD_ONLY
        found.append(p.replace(annotation=Annotated[type_, hint, name], kind=kind))
    return found


def _type(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return the type that a flag has, of the annotation of a parameter, which may allow others in Python."""
    if isinstance(annotation, str):
        names = inspect.unwrap(function).__globals__

        class Names(dict[str, Any]):
            def __missing__(self, name: str) -> Any:  # imported for type checkers alone
                return names.get(name, getattr(builtins, name, object))

        annotation = eval(annotation, {}, Names())
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        lists = [kind for kind in inner if get_origin(kind) in (list, Sequence, Iterable, tuple)]
        kind = _type(lists[0], function) if lists else next((kind for kind in PLAIN if kind in inner), str)
        return kind | None if NoneType in inner else kind
    if origin in (list, Sequence, Iterable, tuple):
        return list[_type(inner[0], function)]  # type: ignore[misc]  # a type that is known when it runs
    return annotation if annotation in PLAIN else str


def _value_of(name: str, words: Sequence[str]) -> str | None:
    """Return the value of a flag before parsing: a preset gives the defaults of the flags around it."""
    for place, word in enumerate(words):
        if word == name and place + 1 < len(words):
            return words[place + 1]
        if word.startswith(name + "="):
            return word.removeprefix(name + "=")
    return None
