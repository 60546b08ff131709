"""Directives for the reference: every command with its flags, every function with its settings."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ssdvae import api
from ssdvae.api import WHERE
from ssdvae.cli.main import GROUPS


class Commands(SphinxDirective):
    """``{ssdvae-commands}``: a section for each command, with what its --help says."""

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        for title, commands in GROUPS.items():
            group = self._section(title.capitalize(), f"group-{title}")
            for command in commands:
                section = self._section(f"ssdvae {command.name}", f"command-{command.name}")
                text = command.parser([]).format_help()
                section += nodes.literal_block(text, text, language="text")
                group += section
            sections.append(group)
        return sections

    def _section(self, title: str, name: str) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
        section += nodes.title(title, title)
        return section


class Functions(SphinxDirective):
    """``{ssdvae-functions}``: the functions of the package, room by room."""

    def run(self) -> list[nodes.Node]:
        lines = StringList()
        for module, names in WHERE.items():
            functions = [name for name in names if name in api.__all__ and callable(getattr(api, name))]
            for name in functions:
                if not isinstance(getattr(api, name), type):
                    lines.append(f".. autofunction:: ssdvae.{name}", module)
                    lines.append("", module)
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("ssdvae-commands", Commands)
    app.add_directive("ssdvae-functions", Functions)
    return {"version": "1", "parallel_read_safe": True}
