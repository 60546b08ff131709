"""The documentation site: `make docs` builds it into docs/_build, with warnings as errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import ssdvae  # noqa: E402

project = "ssdvae"
author = "the authors of ssdvae"
copyright = "the authors of ssdvae, Apache-2.0"
release = version = ssdvae.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "commands",
]
exclude_patterns = ["_build"]
suppress_warnings = ["misc.highlighting_failure"]  # of CSV, which Pygments does not know

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
napoleon_custom_sections = [("Options", "params_style")]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # they are in the docstring, with a line each
highlight_language = "text"  # of blocks that name none
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = False

html_theme = "furo"
html_title = f"ssdvae {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False

# Pages of the repository that are pages of the site, too, under these names.
OUTSIDE = re.compile(
    r"\]\((?:\.\./)+(?:src/ssdvae/pretrained/)?(CONTRIBUTING|CHANGELOG|wiki-en)(?:/README)?\.md"
)


def on_the_site(app: Any, name: str, source: list[str]) -> None:
    """Links out of docs/ that lead to a page of the site."""
    source[0] = OUTSIDE.sub(lambda found: f"](/{found[1].lower()}.md", source[0])


def setup(app: Any) -> None:
    app.connect("source-read", on_the_site)


linkcheck_ignore = [r"http://127\.0\.0\.1.*", r"https://doi\.org/.*"]
