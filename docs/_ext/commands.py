"""Directives for the reference: every command with its flags, every function with its options."""

from __future__ import annotations

import io
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from rich.console import Console
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import ssdvae
from ssdvae.cli import find_command
from ssdvae.commands import GROUPS
from ssdvae.commands.flags import build_parser


def help_text(name: str) -> str:
    """Return what `ssdvae NAME --help` prints."""
    out = io.StringIO()
    build_parser(f"ssdvae {name}", find_command(name), []).help_print([], console=Console(file=out, width=100))
    return out.getvalue().rstrip()


class Commands(SphinxDirective):
    """``{ssdvae-commands}``: a section for each command, with its --help."""

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        for title, commands in GROUPS.items():
            group = self._section(title.capitalize(), f"group-{title}")
            for name in commands:
                section = self._section(f"ssdvae {name}", f"command-{name}")
                text = help_text(name)
                section += nodes.literal_block(text, text, language="text")
                group += section
            sections.append(group)
        return sections

    def _section(self, title: str, name: str) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
        section += nodes.title(title, title)
        return section


class Functions(SphinxDirective):
    """``{ssdvae-functions}``: the functions of the package."""

    def run(self) -> list[nodes.Node]:
        lines = StringList()
        for name in ssdvae.__all__:
            thing = getattr(ssdvae, name)
            if callable(thing) and not isinstance(thing, type):
                lines.append(f".. autofunction:: ssdvae.{name}", name)
                lines.append("", name)
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("ssdvae-commands", Commands)
    app.add_directive("ssdvae-functions", Functions)
    return {"version": "1", "parallel_read_safe": True}
