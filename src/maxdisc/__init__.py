"""Generative maximum-entropy classification that chooses its own features."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxdisc.artifact import ModelFileError, load, save
    from maxdisc.classifier import MaxDiscClassifier
    from maxdisc.discriminative import DiscriminativeMaxEnt
    from maxdisc.search import MaxDiscSearchCV
    from maxdisc.text import TermFrequencyVectorizer

# Names are resolved when first used, so that ``import maxdisc`` costs nothing.
_HOMES = {
    "DiscriminativeMaxEnt": "maxdisc.discriminative",
    "MaxDiscClassifier": "maxdisc.classifier",
    "MaxDiscSearchCV": "maxdisc.search",
    "TermFrequencyVectorizer": "maxdisc.text",
    "ModelFileError": "maxdisc.artifact",
    "load": "maxdisc.artifact",
    "save": "maxdisc.artifact",
}

__all__ = [
    "DiscriminativeMaxEnt",
    "MaxDiscClassifier",
    "MaxDiscSearchCV",
    "ModelFileError",
    "TermFrequencyVectorizer",
    "__version__",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("maxdisc")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'maxdisc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
