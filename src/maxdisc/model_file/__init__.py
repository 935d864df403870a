"""Model files: safetensors with a JSON header, no pickle."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxdisc.model_file.persistence import describe

__all__ = ["describe"]


def __getattr__(name: str) -> Any:
    # When first used: the command line reads what a file says of itself long before it needs any estimator.
    if name in __all__:
        return getattr(import_module("maxdisc.model_file.persistence"), name)
    raise AttributeError(f"module 'maxdisc.model_file' has no attribute {name!r}")
