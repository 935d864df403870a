"""The page of theory: the functions it names exist, links lead to public names, snippets hold."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.docs.public_surface import reference

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
LINKED = sorted(set(re.findall(r"\{py:\w+\}`~?([\w.]+)`", PAGE)))
NAMED = sorted({*LINKED, *re.findall(r"(?<!\})`(maxdisc\.[\w.]+)`", PAGE)})


def found(path):
    """What a dotted name stands for."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            thing = getattr(thing, name)
        return thing
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("name", NAMED)
def test_what_a_formula_names_exists(name):
    assert callable(found(name))


@pytest.mark.parametrize("name", LINKED)
def test_what_a_formula_links_to_is_documented(name):
    owner, _, member = name.rpartition(".")
    listed = re.findall(r":: ([\w.]+)\n(?:   :members:(.*)\n)?", reference())
    members = {entry: [part.strip() for part in some.split(",")] for entry, some in listed}
    assert name in members or member in members.get(owner, []) or members.get(owner) == [""], name


def test_every_section_with_a_formula_names_a_function():
    for section in PAGE.split("\n## ")[1:]:
        if "$$" in section:
            assert "{py:" in section or "`maxdisc." in section, section.splitlines()[0]
    assert len(NAMED) > 40


def test_the_snippets_hold():
    """Asserts of the page itself, in its order, as a reader would paste them."""
    names: dict = {}
    snippets = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert sum("assert" in snippet for snippet in snippets) >= 12
    for snippet in snippets:
        exec(snippet, names)
