"""Every public name has a docstring with an example, is in the reference, and changes only on purpose."""

from __future__ import annotations

import inspect

import pytest

from tests.docs.public_surface import HEADING, MODULES, SNAPSHOT, entry, imported, names_of, section


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
