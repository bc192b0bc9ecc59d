"""Settings of the documentation site, which `make docs` builds into docs/_site.

The root of the sources is the repository, so that a link between files leads to the same place on
the site, in a clone and on a forge.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from reference_pages import reference_pages  # noqa: E402

project = "embedtopics"
author = "embedtopics"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_nb"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md", "docs/reference/*.rst", "notebooks/*.ipynb", "benchmarks/README.md",
    "data/README.md", "CONTRIBUTING.md", "CHANGELOG.md",
]  # fmt: skip
suppress_warnings = ["mystnb.unknown_mime_type", "myst.xref_missing", "myst.header"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks are stored with what they answered

default_role = "code"
autosummary_generate = False
autodoc_typehints = "none"
# What scikit-learn adds to estimators for its own routing of parameters is left out.
routing = [f"set_{method}_request" for method in ("fit", "predict", "transform", "score")]
autodoc_default_options = {
    "members": True,
    "exclude-members": ", ".join(["get_metadata_routing", "set_output", *routing]),
}
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "embedtopics"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_static/index.html"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 9,
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "footer_start": [],
    "footer_end": [],
}
# Pages without pages below them have nothing to show at the side.
html_sidebars = {
    page: []
    for page in (
        "docs/index",
        "docs/quick_start",
        "docs/methods",
        "docs/caution",
        "docs/coming_from",
        "benchmarks/README",
    )
}
html_math_renderer = "mathml"


def inline_mathml(translator: HTML5Translator, node: nodes.math) -> None:
    """Write an equation in MathML, which browsers draw by themselves."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_mathml(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write an equation that stands in its own line."""
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def write_reference(app: Sphinx) -> None:
    """Write the pages of the reference where they changed, for Sphinx reads files."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for name, page in reference_pages().items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text("utf-8") != page:
            path.write_text(page, "utf-8")


def setup(app: Sphinx) -> None:
    """Add the equations, and the pages of the reference before sources are looked for."""
    app.add_html_math_renderer("mathml", (inline_mathml, None), (block_mathml, None))
    app.connect("builder-inited", write_reference, priority=1)
