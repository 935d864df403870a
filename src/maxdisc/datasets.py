"""Text data from the docstrings of installed packages."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["load_docstrings"]

_PACKAGES = ("numpy", "scipy", "sklearn")
_SKIPPED = {
    "tests",
    "test",
    "testing",
    "site-packages",
    "__pycache__",
    "idlelib",
    "externals",
    "lib2to3",
    "distutils",
    "_lib",
}


@dataclass(frozen=True, eq=False)
class Documents:
    """Labelled texts.

    Parameters
    ----------
    data : list of str
        The documents.
    target : ndarray of shape (N,)
        Their labels, as strings.
    names : list of str
        The name of the object that each documents.
    """

    data: list[str]
    target: npt.NDArray[np.str_]
    names: list[str]


def load_docstrings(
    level: Literal["package", "subpackage"] = "subpackage", min_words: int = 20, min_documents: int = 60
) -> Documents:
    """Return the docstrings of the standard library, numpy, scipy and scikit-learn, as installed.

    They are read from the source files without running them, and sorted by module, so the same versions give
    the same documents in the same order.

    Parameters
    ----------
    level : {"package", "subpackage"}
        Whether a document's label is its package ("scipy") or its subpackage ("scipy.stats").
    min_words : int
        Shorter docstrings are left out.
    min_documents : int
        Labels with fewer documents are left out.

    Returns
    -------
    Documents
        Some thousands of documents.

    Examples
    --------
    >>> from maxdisc.datasets import load_docstrings
    >>> documents = load_docstrings("package")
    >>> sorted(set(documents.target.tolist()))
    ['numpy', 'python', 'scipy', 'sklearn']
    """
    texts, labels, names = [], [], []
    for module, name, text in _installed_docstrings():
        if len(text.split()) >= min_words:
            texts.append(text)
            labels.append(".".join(module.split(".")[: 1 if level == "package" else 2]))
            names.append(f"{module}.{name}".replace(".__init__", ""))
    # A docstring that occurs in several places does not identify its package.
    copies = Counter(texts)
    unique = [i for i, text in enumerate(texts) if copies[text] == 1]
    counts = Counter(labels[i] for i in unique)
    keep = [i for i in unique if counts[labels[i]] >= min_documents]
    if not keep:
        raise ValueError(
            "no docstrings were found: the installed packages have no source files, or "
            f"min_documents={min_documents} and min_words={min_words} ask for too much."
        )
    target = np.array([labels[i] for i in keep])
    return Documents([texts[i] for i in keep], target, [names[i] for i in keep])


@cache
def _installed_docstrings() -> list[tuple[str, str, str]]:
    """Return module, name and docstring of everything installed; parsing all sources takes seconds."""
    return [
        (".".join([package, *path.relative_to(root).with_suffix("").parts]), name, text)
        for package, root in _roots()
        for path in _sources(root)
        for name, text in _docstrings(path)
    ]


def _roots() -> Iterator[tuple[str, Path]]:
    yield "python", Path(sysconfig.get_paths()["stdlib"])
    for package in _PACKAGES:
        spec = find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            yield package, Path(next(iter(spec.submodule_search_locations)))


def _sources(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if not _SKIPPED.intersection(parts) and not path.name.startswith("test_"):
            yield path


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other people's invalid escapes
            tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    yield from _documented(tree.body)


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield classes, methods and functions; a walk over every expression would take five times as long."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.name, text
        if isinstance(node, ast.ClassDef):
            yield from _documented(node.body)
