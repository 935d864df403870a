"""Every public name has a docstring with an example, is in the reference, and changes only on purpose."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from tests.docs.public_surface import HEADING, MODULES, ROOT, SNAPSHOT, entry, imported, names_of, section
from tests.house import public_names


@pytest.mark.parametrize("module", MODULES)
def test_public_names_have_a_docstring_with_an_example(module):
    found = imported(module)
    if found is None:
        pytest.skip(f"{module} needs an extra that is not installed")
    for name in names_of(module):
        doc = inspect.getdoc(getattr(found, name))
        assert doc, f"{module}.{name} has no docstring"
        assert ">>> " in doc, f"{module}.{name} has no example"


@pytest.mark.parametrize("module", MODULES)
def test_signatures_change_only_on_purpose(module):
    """After an intended change: python tests/docs/public_surface.py."""
    now = section(module)
    if now is None:
        pytest.skip(f"{module} needs an extra that is not installed")
    text = SNAPSHOT.read_text(encoding="utf-8").removeprefix(HEADING).strip()
    known = {part.partition("\n")[0]: f"{part}\n" for part in text.split("\n\n")}
    assert list(known) == list(MODULES)
    assert now == known[module]


def imports_of(text):
    """Names that Python code imports from the package, as pairs of module and name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "maxdisc":
            yield from ((node.module, alias.name) for alias in node.names)


def pages():
    """Code of the pages and examples that show users how to do something."""
    for path in (ROOT / "README.md", *(ROOT / "docs" / "how-to").glob("*.md"), *(ROOT / "docs").glob("*.md")):
        # The theory, and what measures the package itself, also look inside.
        if path.name not in ("theory.md", "complexity.md", "performance.md"):
            for block in re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M):
                yield path, block
    for path in (ROOT / "examples").glob("*.py"):
        yield path, path.read_text(encoding="utf-8")


def test_pages_have_users_import_public_names_only():
    public = {(module, name) for module in MODULES for name in public_names(module)}
    public |= {tuple(module.rsplit(".", 1)) for module in MODULES if "." in module}
    found = {(path.name, name) for path, block in pages() for name in imports_of(block)}
    assert len(found) > 50
    inner = {(page, name[0]) for page, name in found if name not in public}
    # The page says that this one is internal.
    assert inner == {("discriminative.md", "maxdisc.conditional.model")}


def test_a_signature_is_shown_as_it_is_called():
    def function(a, /, b=1, *, key=max, **more): ...

    assert entry("function", function) == ["  function(a, b=1, *, key=max, **more)"]


def test_a_public_name_has_one_path():
    things = [
        (getattr(found, name), f"{module}.{name}")
        for module in MODULES
        if (found := imported(module)) is not None
        for name in names_of(module)
    ]
    paths = {}
    for thing, path in things:
        assert paths.setdefault(id(thing), path) == path


def test_the_package_shows_its_public_names_only():
    import maxdisc.classifier  # which python then binds in the package

    assert sorted(dir(maxdisc)) == sorted(maxdisc.__all__)
    assert maxdisc.__version__
    for name in maxdisc.__all__:
        assert getattr(maxdisc, name)
    with pytest.raises(AttributeError, match="no attribute 'Classifier'"):
        _ = maxdisc.Classifier
