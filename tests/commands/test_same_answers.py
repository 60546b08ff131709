"""One source of defaults: Python, the command line, REST and the explorer give the same answer."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from ssdvae.app.views import SUGGESTIONS
from ssdvae.commands.embed import embed
from ssdvae.commands.fill import fill
from ssdvae.commands.generate import generate
from ssdvae.commands.infer import infer
from ssdvae.commands.next_events import next_events
from ssdvae.commands.score import score
from ssdvae.data.options import ReadOptions
from ssdvae.io.records import to_json
from ssdvae.options import Options, flag
from tests.alike import assert_alike
from tests.app.conftest import Served, serving
from tests.commands.conftest import Ask, records

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "events": [{"verb": "arrested", "subj": "police"}, {"verb": "left", "subj": "he"}]},
    {"id": "b", "events": [{"verb": "met", "subj": "she", "obj": "him"}]},
]
HOLED = [{**document, "events": [*document["events"], None]} for document in DOCUMENTS]

QUESTIONS: dict[str, tuple[Callable[..., Any], list[dict[str, Any]], dict[str, Any]]] = {
    "infer": (infer, DOCUMENTS, {"top": 2, "observe_frames": True, "attention": True}),
    "next": (next_events, DOCUMENTS, {"top": 2, "beam": 3, "specificity": 0.5, "every_prefix": True}),
    "score": (score, DOCUMENTS, {"frames": 3, "open": True}),
    "fill": (fill, HOLED, {"top": 2, "beam": 3, "specificity": 0.5, "open": True}),
    "embed": (embed, DOCUMENTS, {"normalize": False}),
}
"""The function of each question, documents for it, and options that are not the defaults."""


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_option_is_compared(name: str) -> None:
    """The batch size changes no answer."""
    function, _, changed = QUESTIONS[name]
    kinds: tuple[type[Options], ...] = function.options  # type: ignore[attr-defined]  # by with_options
    options = {
        option: field for kind in kinds if kind is not ReadOptions for option, field in kind.fields().items()
    }
    assert changed.keys() == options.keys() - {"batch"}
    assert all(changed[option] != options[option].default for option in changed)


@pytest.fixture(scope="module", params=["ssdvae-exact", "ssdvae"])
def run(request: pytest.FixtureRequest, folder: Path) -> Path:
    return folder / str(request.param)


@pytest.fixture(scope="module")
def served(run: Path) -> Iterator[Served]:
    with serving([run]) as found:
        yield found


def flags(options: dict[str, Any]) -> list[str]:
    """Return options as they are typed."""
    found = []
    for name, value in options.items():
        if isinstance(value, bool):
            found.append(flag(name) if value else flag(f"no_{name}"))
        else:
            found += [flag(name), str(value)]
    return found


def as_json(answers: Any) -> list[Any]:
    return [json.loads(to_json(answer.to_record())) for answer in answers]


@pytest.mark.parametrize("changed", [False, True], ids=["defaults", "changed"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_python_command_line_and_rest_agree(
    name: str, changed: bool, run: Path, served: Served, tmp_path: Path, ask: Ask
) -> None:
    function, documents, options = QUESTIONS[name]
    options = dict(options) if changed else {}
    if run.name != "ssdvae":
        options.pop("attention", None)  # which only the paper's model has
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    expected = as_json(function(run, documents, progress=False, **options))
    printed = records(ask(name, tmp_path / "asked.jsonl", "--run", run, "--json", *flags(options)))
    replied = served.ask(f"/api/{name}", {"documents": documents, **options}).json["documents"]
    assert len(expected) == len(documents)
    assert_alike(printed, expected, abs=1e-5)
    assert_alike(replied, expected, abs=1e-5)


@pytest.mark.parametrize("options", [{}, {"events": 2, "scripts": 2, "method": "beam", "seed": 3}])
def test_scripts_agree(options: dict[str, Any], run: Path, served: Served, ask: Ask) -> None:
    seed = "arrested police suspect in"
    expected = as_json(generate(run, [seed], **options))
    (printed,) = records(ask("generate", seed, "--run", run, "--json", *flags(options)))
    replied = served.ask("/api/generate", {"seed_events": [seed], **options}).json["scripts"]
    assert_alike(printed["scripts"], expected, abs=1e-5)
    assert_alike(replied, expected, abs=1e-5)


def shares(page: str) -> list[float]:
    """Return the probabilities in a view of the explorer, in their order."""
    return [float(share) for share in re.findall(r"--sure:([\d.]+)", page)]


def test_the_views_of_the_explorer_agree(run: Path, served: Served) -> None:
    """All events, frames and heads of the forecast, and the frame of each event that is read."""
    typed = ["arrested police suspect in", "left he"]
    address = urlencode([("e", event) for event in typed])
    (ahead,) = next_events(run, [typed], top=SUGGESTIONS, progress=False)
    expected = [one.probability for ranked in (ahead.events, ahead.frames, ahead.heads) for one in ranked]
    assert shares(served.ask(f"/next?{address}").text) == pytest.approx(expected, abs=6e-4)
    (read,) = infer(run, [typed], progress=False)
    page = served.ask(f"/read?{address}").text
    assert shares(page) == pytest.approx([event.probability for event in read.events], abs=6e-4)
    assert " → ".join(event.frame or "unknown" for event in read.events) in page


@pytest.mark.parametrize("name", [*QUESTIONS, "generate"])
def test_the_same_options_with_the_same_defaults(name: str, served: Served) -> None:
    """By the signature in Python, and by the schema of REST."""
    function: Any = generate if name == "generate" else QUESTIONS[name][0]
    schemas = served.ask("/openapi.json").json
    body = schemas["paths"][f"/api/{name}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    properties = schemas["components"]["schemas"][body["$ref"].rpartition("/")[2]]["properties"]
    signature = inspect.signature(function).parameters
    kind: type[Options]
    for kind in function.options:
        for option in () if kind is ReadOptions else kind.names():  # which are of files
            # A default of None is left out of the schema.
            default = properties[option].get("default")
            assert default == signature[option].default == kind.fields()[option].default


def test_a_wrong_value_gets_the_same_message(
    run: Path, served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    from ssdvae.cli import main
    from ssdvae.io.errors import UserError

    expected = "--top: found 0, expected a whole number, at least 1"
    with pytest.raises(UserError, match=expected):
        next_events(run, DOCUMENTS, top=0)
    assert main(["next", "met she", "--run", str(run), "--top", "0"]) == 2
    assert expected in capsys.readouterr().err
    reply = served.ask("/api/next", {"documents": DOCUMENTS, "top": 0})
    assert (reply.status, expected in reply.text) == (422, True)
