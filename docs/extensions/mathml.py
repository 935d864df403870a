"""Formulas as MathML, which browsers show by themselves: no script, no font and nothing to fetch."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
APART = re.compile(r'(<m[io]>(?:log|exp|max|trace)</m[io]>)(?!<mo stretchy="false">&#x00028;|</)')


def mathml(latex: str, display: str, place: Any = None) -> str:
    """A formula as a ``math`` element; a command that is not known is a warning, which ends the build."""
    # A function without brackets stands apart from what it is of.
    markup = re.sub(APART, r'\1<mspace width="0.167em" />', convert(latex, display=display))
    unknown = re.search(r"\\[a-zA-Z]+", markup)
    if unknown:
        logger.warning("a formula has a command that MathML is not made of: %s", unknown[0], location=place)
    return markup


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline", node))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    # A wide formula scrolls by itself, not with the page; what scrolls can be reached by the keyboard.
    self.body.append('<div class="math" tabindex="0" role="group" aria-label="formula">')
    self.body.append(mathml(node.astext(), "block", node))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
