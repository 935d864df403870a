"""Generative maximum-entropy classification that chooses its own features."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxdisc.classifier import MaxDiscClassifier
    from maxdisc.decisions.joint import Joint
    from maxdisc.discriminative import DiscriminativeMaxEnt
    from maxdisc.model_file.container import ModelFileError
    from maxdisc.model_file.persistence import load, save
    from maxdisc.moments.smoothing import Smoothing
    from maxdisc.search import MaxDiscSearchCV
    from maxdisc.words.vectorizer import TermFrequencyVectorizer

# Names are resolved when first used, so that ``import maxdisc`` costs nothing.
_HOMES = {
    "DiscriminativeMaxEnt": "maxdisc.discriminative",
    "Joint": "maxdisc.decisions.joint",
    "MaxDiscClassifier": "maxdisc.classifier",
    "MaxDiscSearchCV": "maxdisc.search",
    "ModelFileError": "maxdisc.model_file.container",
    "Smoothing": "maxdisc.moments.smoothing",
    "TermFrequencyVectorizer": "maxdisc.words.vectorizer",
    "load": "maxdisc.model_file.persistence",
    "save": "maxdisc.model_file.persistence",
}

__all__ = [
    "DiscriminativeMaxEnt",
    "Joint",
    "MaxDiscClassifier",
    "MaxDiscSearchCV",
    "ModelFileError",
    "Smoothing",
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
    return __all__
