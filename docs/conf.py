"""Sphinx configuration; ``make docs`` builds with warnings as errors."""

from __future__ import annotations

project = "maxdisc"
author = "the maxdisc developers"
copyright = "2026, the maxdisc developers"  # noqa: A001  # Sphinx asks for this name

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "maxdisc"
# Nothing is fetched at build time; formulas are set by the reader's browser.
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
