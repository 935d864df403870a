"""The structure of the package stays within its bars."""

from __future__ import annotations

import ast

from tests.house import BARS, figures, size


def test_the_figures_are_within_their_bars():
    now = figures()
    assert {name: now[name] for name in BARS if now[name] > BARS[name]} == {}


def test_the_size_of_a_function_leaves_out_its_docstring():
    (function,) = ast.parse('def f(x):\n    """Add\n\n    one.\n    """\n    return x + 1\n').body
    assert size(function) == 2
