"""The public names and their signatures, as text. Run this file to rewrite public_surface.txt."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.house import PUBLIC_MODULES  # noqa: E402

MODULES = PUBLIC_MODULES
SNAPSHOT = Path(__file__).with_name("public_surface.txt")
HEADING = """\
Public names of maxdisc and their signatures.
After an intended change: python tests/docs/public_surface.py
"""


def imported(name):
    """A module, or None if it needs an extra that is not there."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if "pip install" not in str(error) or os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
            raise
        return None


def names_of(module):
    """The public names of a module; ``__version__`` is one of every package."""
    return [name for name in importlib.import_module(module).__all__ if name != "__version__"]


def reference():
    """The pages of the public names, one after the other."""
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def shown(default):
    return default.__name__ if callable(default) and hasattr(default, "__name__") else repr(default)


def signature_of(function):
    """Parameters with their defaults; annotations would be noise here, mypy checks them."""
    words, before = [], None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self" or parameter.name.startswith("_"):
            continue
        kind = parameter.kind
        if kind is parameter.KEYWORD_ONLY and before not in (kind, parameter.VAR_POSITIONAL):
            words.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        default = "" if parameter.default is parameter.empty else f"={shown(parameter.default)}"
        words.append(f"{star}{parameter.name}{default}")
        before = kind
    return f"({', '.join(words)})"


def is_ours(thing):
    return str(getattr(thing, "__module__", "")).startswith("maxdisc")


def members(cls):
    """Public methods and properties that maxdisc defines."""
    for name in sorted(dir(cls)):
        if name.startswith("_") or (name.startswith("set_") and name.endswith("_request")):
            continue
        thing = inspect.getattr_static(cls, name)
        if isinstance(thing, classmethod | staticmethod):
            thing = thing.__func__
        if not is_ours(getattr(thing, "fget", None) or getattr(thing, "func", None) or thing):
            continue
        if inspect.isfunction(thing):
            # What a class method is called on is no argument.
            yield name + signature_of(getattr(cls, name))
        elif isinstance(thing, property) or hasattr(thing, "func"):
            yield name


def entry(name, thing):
    if not inspect.isclass(thing):
        return [f"  {name}{signature_of(thing)}"]
    if issubclass(thing, Exception):
        return [f"  class {name}"]
    abstract = inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)
    # What a family inherits is listed once, with Family.
    known = {member for base in thing.__mro__[1:] if base.__name__ == "Family" for member in members(base)}
    return [
        f"  class {name}{'' if abstract else signature_of(thing)}",
        *(f"    {member}" for member in members(thing) if member not in known),
    ]


def section(module):
    """The part of the text that is about one module; None without its extra."""
    found = imported(module)
    if found is None:
        return None
    lines = [line for name in names_of(module) for line in entry(name, getattr(found, name))]
    return "\n".join([module, *lines]) + "\n"


if __name__ == "__main__":
    sections = [section(module) for module in MODULES]
    assert None not in sections, "install every extra first: pip install --editable '.[all,dev]'"
    SNAPSHOT.write_text("\n".join([HEADING, *sections]), encoding="utf-8")
