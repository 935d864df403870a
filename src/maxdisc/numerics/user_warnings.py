"""Warnings that point at the line of the caller outside the library."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_HERE = str(Path(__file__).parents[1])


def notice(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the first line outside this library that led here."""
    depth, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]  # None after the last
    warnings.warn(message, category, stacklevel=depth)
