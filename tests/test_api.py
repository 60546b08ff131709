"""Every command is a public function: its flags, its options and the function's arguments agree."""

from __future__ import annotations

import ast
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docstring_parser import parse as parse_docstring

import ssdvae
from ssdvae.cli import find_command
from ssdvae.commands import GROUPS, Command
from ssdvae.data.options import StreamOptions
from ssdvae.options import flag
from ssdvae.reproduction.options import PRESCRIBED
from tests.flags import shown_help

SOURCE = Path(ssdvae.__file__).parent
TYPES = {"Corpus", "Document", "Event", "Model", "Run", "UserError"}
FUNCTIONS = sorted(set(ssdvae.__all__) - TYPES)
COMMANDS = [name for commands in GROUPS.values() for name in commands]

RENAMED = {"next": "next_events", "import": "import_documents", "data": "get_data", "report": "write_report"}
"""Commands whose function has another name: Python and the types of the library have these."""

PRINTED = {"json", "markdown"}
"""Flags that say how results are printed."""

ARGUMENTS = {"file": "documents", "events": "documents"}
"""Flags that are called differently in Python."""
ARGUMENTS_OF = {("prepare", split): "sources" for split in ("source", "train", "valid", "test")}

ELSEWHERE = {
    ("train", "resume"): "resume",
    ("score", "top"): "anomalies",
    ("score", "by"): "anomalies",
    ("data", "action"): "public_sets",
    ("explain", "swap"): "swap",
    ("explain", "transitions"): "write_answers",
    ("similar", "out"): "write_answers",
} | {
    (name, option): "write_answers"
    for name in ("infer", "next", "score", "fill", "embed")
    for option in ("out", *StreamOptions.names())
}
"""Flags that call another function."""


def function_of(name: str) -> Any:
    return getattr(ssdvae, RENAMED.get(name, name))


def described(command: Command) -> dict[str, inspect.Parameter]:
    """Return the parameters of the command itself that are flags."""
    names = {p.arg_name for p in parse_docstring(command.run.__doc__ or "").params}
    names -= {name for kind in command.options for name in kind.fields()}
    return {name: p for name, p in inspect.signature(command.run).parameters.items() if name in names}


@pytest.mark.parametrize("name", COMMANDS)
def test_flags_and_arguments_agree(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, takes = find_command(name), inspect.signature(function_of(name)).parameters
    own = described(command)
    options = {k: field for kind in command.options for k, field in kind.fields_for({}).items()}
    shown, reached = shown_help([name], capsys), set()
    for option in (*own, *(o for o in options if o not in own)):
        positional = option in own and own[option].kind is not inspect.Parameter.KEYWORD_ONLY
        positional = positional and (option == next(iter(own)) or "list" in str(own[option].annotation))
        assert (option.upper() if positional else flag(option)) in shown
        if option in PRINTED:
            continue
        if other := ELSEWHERE.get((name, option)):
            assert other in ssdvae.__all__
            continue
        argument = ARGUMENTS_OF.get((name, option), option)
        argument = argument if argument in takes else ARGUMENTS.get(option, option)
        assert argument in takes, f"{function_of(name)} has no {argument}"
        reached.add(argument)
        default = takes[argument].default
        if option in options and option not in own:
            assert takes[argument].kind is inspect.Parameter.KEYWORD_ONLY
            assert repr(default) == repr(options[option].default)
            assert takes[argument].annotation == options[option].annotation
            assert f"{option}: {options[option].description}" in function_of(name).__doc__
        elif argument == option and not positional and default is not inspect.Parameter.empty:
            # A list that no flag adds to is None, or empty.
            assert (own[option].default or None) == (default or None) or str(default) == str(
                own[option].default
            )
    assert takes.keys() - reached <= {"progress", "watch"}


def test_the_signatures_spell_out_the_options() -> None:
    for name in FUNCTIONS:
        parameters = inspect.signature(getattr(ssdvae, name)).parameters.values()
        assert all(p.kind is not p.VAR_KEYWORD for p in parameters), name


def test_reproduce_shows_what_the_paper_prescribes() -> None:
    """Not what `train` does with the default model."""
    takes = inspect.signature(ssdvae.reproduce).parameters
    expected = {**PRESCRIBED, "hidden": 512, "embedding": 300, "layers": 2, "batch": 100}
    assert {name: takes[name].default for name in expected} == expected


def test_the_table_of_names_is_what_type_checkers_read() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    imported = {
        alias.asname: str(node.module).removeprefix("ssdvae.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ssdvae.")
        for alias in node.names
        if alias.asname == alias.name
    }
    assert imported == ssdvae.MODULES
    assert set(dir(ssdvae)) == set(ssdvae.__all__)
    assert {RENAMED.get(name, name) for name in COMMANDS} <= set(FUNCTIONS)


def test_help_of_the_package_shows_the_functions() -> None:
    shown = pydoc.plain(pydoc.render_doc(ssdvae))
    for name in FUNCTIONS:
        assert f"    {name}(" in shown
        assert inspect.isfunction(getattr(ssdvae, name))
    assert "learning_rate: float = auto" in shown
    assert "clip: float = 5.0" in shown


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example(name: str) -> None:
    document = inspect.getdoc(getattr(ssdvae, name)) or ""
    lines = [line.strip()[4:] for line in document.splitlines() if line.strip().startswith((">>> ", "... "))]
    calls = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Call)]
    examples = [call for call in calls if ast.unparse(call.func) == f"ssdvae.{name}"]
    assert examples
    for call in examples:
        given = {str(keyword.arg): None for keyword in call.keywords}
        inspect.signature(getattr(ssdvae, name)).bind(*call.args, **given)


def test_importing_is_cheap() -> None:
    script = (
        "import sys, ssdvae; dir(ssdvae); ssdvae.__version__\n"
        "heavy = {'torch', 'numpy', 'pyarrow', 'rich', 'pydantic', 'cyclopts'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import ssdvae.io.progress\n"
        "assert 'rich' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_option_that_does_not_exist_is_told_with_the_nearest() -> None:
    for call in (
        lambda: ssdvae.train("corpus", "run", obsrve=0.5),
        lambda: ssdvae.infer(None, [["met she him"]], observe_frame=True),
        lambda: ssdvae.evaluate("wiki-en", bound_sample=3),
        lambda: ssdvae.reproduce("all", "corpus", "out", hiden=9),
    ):
        with pytest.raises(
            ssdvae.UserError, match=r"did you mean '(observe|observe_frames|bound_samples|hidden)'"
        ):
            call()


def test_only_commands_print_and_draw() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if package in ("commands", "cli", "oldcli"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not calls & {"print", "sys.stdout.write", "sys.stderr.write"}, path
        imports = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        drawing = [name for name in imports if name.split(".")[0] == "rich"]
        assert not drawing or path == SOURCE / "io" / "progress.py", path
