"""One door: every command is a function of the API, with the same settings and the same defaults."""

from __future__ import annotations

import ast
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ssdvae
from ssdvae import api, config
from ssdvae.api.signatures import with_settings
from ssdvae.cli.main import COMMANDS, GROUPS, main, usage
from ssdvae.config import Settings
from ssdvae.config.paper import PRESCRIBED
from ssdvae.config.training import definitions

SOURCE = Path(ssdvae.__file__).parent
TYPES = {"Corpus", "Document", "Event", "Model", "Run", "UserError"}
FUNCTIONS = sorted(set(ssdvae.__all__) - TYPES)

# What the command line alone needs: where settings are read from, and how results are printed.
PRINTED = {"help", "config", "print_config", "json", "markdown"}
# Flags that are called differently in Python: each split of `prepare` is a key of `sources`.
RENAMED = {
    ("prepare", "source"): "sources",
    ("prepare", "train"): "sources",
    ("prepare", "valid"): "sources",
    ("prepare", "test"): "sources",
    ("infer", "file"): "documents",
    ("next", "events"): "documents",
    ("score", "file"): "documents",
    ("fill", "file"): "documents",
    ("embed", "file"): "documents",
}
QUESTIONS = ("infer", "next", "score", "fill", "embed")
# What another function does: `train --resume RUN`, `infer --out FILE`, `score --top N`.
ELSEWHERE = (
    {("train", "resume"): "resume", ("score", "top"): "unusual"}
    | {("data", "action"): "public_sets", ("explain", "swap"): "swap"}
    | {("explain", "transitions"): "write_answers"}
    | {(name, "out"): "write_answers" for name in (*QUESTIONS, "similar")}
    | {(name, flag): "write_answers" for name in QUESTIONS for flag in config.StreamSettings.names()}
)


def parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(api, name)).parameters)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_a_function_with_the_same_settings_and_defaults(name: str) -> None:
    takes = parameters(COMMANDS[name].function)
    reached = set()
    for action in COMMANDS[name].parser([])._actions:
        if action.dest in PRINTED:
            continue
        if other := ELSEWHERE.get((name, action.dest)):
            assert other in ssdvae.__all__
            continue
        meant = RENAMED.get((name, action.dest), action.dest)
        assert meant in takes, f"{COMMANDS[name].function} has no {meant}"
        reached.add(meant)
        default = takes[meant].default
        if action.option_strings and meant == action.dest and default is not inspect.Parameter.empty:
            # A flag that is not given is not in the result: its default is that of the setting.
            given = action.definition.default if hasattr(action, "definition") else action.default
            if (name, meant) != ("generate", "frames"):  # no text is no list of names
                assert (str(given), given is None) == (str(default), default is None), meant
    only_in_python = {"progress", "watch"}
    assert takes.keys() - reached <= only_in_python


def test_the_signature_is_made_of_the_settings() -> None:
    for name in FUNCTIONS:
        assert all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters(name).values()), name
    groups: dict[str, type[Settings]] = {
        "extract": config.ExtractSettings,
        "annotate": config.AnnotateSettings,
        "prepare": config.PrepareSettings,
        "train": config.TrainSettings,
        "evaluate": config.EvaluateSettings,
        "benchmark": config.BenchmarkSettings,
        "explain": config.ExplainSettings,
        "infer": config.InferSettings,
        "generate": config.GenerateSettings,
        "next_events": config.NextSettings,
        "score": config.ScoreSettings,
        "fill": config.FillSettings,
        "embed": config.EmbedSettings,
        "similar": config.SimilarSettings,
        "write_answers": config.StreamSettings,
        "write_report": config.ReportSettings,
        "explore": config.ExploreSettings,
        "reproduce": config.ReproduceSettings,
    }
    for name, kind in groups.items():
        takes, document = parameters(name), getattr(api, name).__doc__
        # The settings of `train` have the defaults of the default model.
        for setting, definition in definitions(kind, {}).items():
            assert takes[setting].kind is inspect.Parameter.KEYWORD_ONLY
            assert (takes[setting].default, takes[setting].annotation) == (
                definition.default,
                definition.type,
            )
            assert f"{setting}: {definition.help}" in document


def test_reproduce_shows_what_the_paper_prescribes() -> None:
    """Not what `train` does with the default model."""
    takes = parameters("reproduce")
    expected = {**PRESCRIBED, "hidden": 512, "embedding": 300, "layers": 2, "batch": 100}
    assert {name: takes[name].default for name in expected} == expected


def test_a_new_setting_is_a_new_argument() -> None:
    """Nothing has to be written twice."""

    @with_settings(config.InferSettings)
    def function(run: str, **settings: Any) -> None:
        """Does nothing."""

    assert str(inspect.signature(function)).startswith("(run: 'str', *, observe_frames: bool = False, top")


def test_the_api_is_found_by_looking() -> None:
    assert set(dir(ssdvae)) == set(ssdvae.__all__) == set(api.__all__)
    assert {command.function for command in COMMANDS.values()} <= set(FUNCTIONS)
    shown = pydoc.plain(pydoc.render_doc(ssdvae))
    for name in FUNCTIONS:
        assert f"    {name}(" in shown
        assert inspect.isfunction(getattr(ssdvae, name))
    assert "learning_rate: float = auto" in shown
    assert "clip: float = 5.0" in shown
    # Nothing else, such as what these functions use.
    functions = shown.partition("FUNCTIONS")[2].splitlines()
    listed = {line.strip().partition("(")[0] for line in functions if "(" in line}
    assert not listed & {"settings_of", "resolve", "Path", "Any"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example(name: str) -> None:
    document = inspect.getdoc(getattr(ssdvae, name)) or ""
    lines = [line.strip()[4:] for line in document.splitlines() if line.strip().startswith((">>> ", "... "))]
    calls = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Call)]
    mine = [call for call in calls if ast.unparse(call.func) == f"ssdvae.{name}"]
    assert mine
    for call in mine:
        # With arguments that exist.
        given = {str(keyword.arg): None for keyword in call.keywords}
        inspect.signature(getattr(ssdvae, name)).bind(*call.args, **given)


def test_importing_is_cheap() -> None:
    script = (
        "import sys, ssdvae; dir(ssdvae); ssdvae.__version__\n"
        "heavy = {'torch', 'numpy', 'pyarrow', 'rich', 'jsonargparse'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import ssdvae.progress\n"
        "assert 'rich' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_setting_that_does_not_exist_is_told_with_the_nearest(tmp_path: Path) -> None:
    for call in (
        lambda: ssdvae.train("corpus", "run", obsrve=0.5),
        lambda: ssdvae.infer("run", "events.jsonl", observe_frame=True),
        lambda: ssdvae.reproduce("all", "corpus", "out", hiden=9),
    ):
        with pytest.raises(ssdvae.UserError, match=r"did you mean '(observe|observe_frames|hidden)'\?"):
            call()


# What the source says.


def imports(path: Path) -> list[str]:
    """The modules that a file imports, at its top or inside functions, but not for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(SOURCE.rglob("*.py"))


def test_the_library_neither_prints_nor_draws() -> None:
    for path in FILES:
        if room(path) in ("cli", "__main__"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not calls & {"print", "sys.stdout.write", "sys.stderr.write"}, path
        if room(path) != "progress":
            assert not [name for name in imports(path) if name.split(".")[0] == "rich"], path


def test_the_command_line_calls_the_api_and_nothing_else() -> None:
    allowed = {"api", "cli", "config", "errors", "files", "progress", "records", "__version__"}
    for path in FILES:
        rooms = {name.split(".")[1] for name in imports(path) if name.startswith("ssdvae.")}
        if room(path) == "cli":
            assert rooms <= allowed, (path, rooms - allowed)
        elif room(path) != "__main__":
            assert "cli" not in rooms, path
        if room(path) not in ("cli", "api", "__init__", "app", "spacy_pipe"):
            assert "api" not in rooms, path


# Help.


def test_help_groups_the_commands() -> None:
    shown = usage()
    places = [shown.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    for command in COMMANDS.values():
        assert f"\n  {command.name} " in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_two_examples(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([name, "--help"])
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert [line.strip() for line in lines[-3:]] == ["examples:", *COMMANDS[name].examples]
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"usage: ssdvae {name}")
