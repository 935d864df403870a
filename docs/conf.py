"""Sphinx configuration; ``make docs`` builds with warnings as errors."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "maxdisc"
author = "the maxdisc developers"
copyright = "2026, the maxdisc developers"  # noqa: A001  # Sphinx asks for this name

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.zip"]
html_theme = "furo"
release = version = installed_version("maxdisc")
html_title = f"maxdisc {release}"
html_static_path = ["static"]
html_css_files = ["docs.css"]
html_theme_options = {"navigation_with_keys": True}
# Nothing is fetched, neither when the pages are built nor when they are read.
html_math_renderer = "mathml"
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # What is called plot_ runs while the pages are built; the tests run all of them.
    "filename_pattern": r"/plot_",
    "within_subsection_order": "stories.Order",
    "backreferences_dir": "gallery/uses",
    "doc_module": ("maxdisc",),
    "reference_url": {"maxdisc": None},
    "default_thumb_file": str(Path(__file__).parent / "pictures" / "accuracy-path.svg"),
    "image_srcset": ["2x"],
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "plot_gallery": "True",
    "download_all_examples": False,
}


def _source_of(_app: Any, module: str, name: str) -> str | None:
    """Do not link the source of names whose file is listed under another module: a page of source has one."""
    elsewhere = {"maxdisc.save", "maxdisc.load", "maxdisc.families.moments"}
    return module if f"{module}.{name}" in elsewhere else None


def setup(app: Any) -> None:
    app.connect("viewcode-follow-imported", _source_of)
