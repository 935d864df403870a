"""Formulas of the documentation are MathML, and what cannot be is noticed."""

from __future__ import annotations

import importlib.util
import logging
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def extension():
    if any(importlib.util.find_spec(needed) is None for needed in ("sphinx", "latex2mathml")):
        # CI promises that every extra is there.
        skip = pytest.fail if os.environ.get("MAXDISC_REQUIRE_EXTRAS") else pytest.skip
        skip("needs the extra docs")
    spec = importlib.util.spec_from_file_location("mathml", ROOT / "docs" / "extensions" / "mathml.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_formula_is_sound_markup_with_its_letters(extension):
    tree = ElementTree.fromstring(extension.mathml(r"\mu_c = \nabla \log Z(\theta_c)", "block"))
    assert tree.tag.endswith("math")
    assert tree.get("display") == "block"
    letters = [text.strip() for text in tree.itertext() if text.strip()]
    assert letters == [*"μc=∇", "log", *"Z(θc)"]


def test_a_command_that_is_not_known_is_a_warning(extension, caplog):
    from sphinx.util import logging as of_sphinx

    logging.getLogger(of_sphinx.NAMESPACE).propagate = True
    with caplog.at_level(logging.WARNING):
        extension.mathml(r"\nonsense x", "inline")
    assert "nonsense" in caplog.text
