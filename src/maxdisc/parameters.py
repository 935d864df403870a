"""What a user may ask of the estimator, and the one line that says what is wrong with the rest."""

from __future__ import annotations

import numbers
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.matrices import Floats
from maxdisc.smoothing import Smoothing


def require_one_of(name: str, value: Any, allowed: Collection[Any]) -> None:
    """Raise ``ValueError`` unless a parameter has one of the values that exist."""
    if not any(value is choice or value == choice for choice in allowed):
        choices = " or ".join(map(repr, allowed))
        raise ValueError(f"{name}={value!r} is not available: use {name}={choices}.")


def given_smoothing(smoothing: Any) -> Smoothing | None:
    """The smoothing asked for; None for "auto"."""
    if isinstance(smoothing, Smoothing):
        return smoothing
    if isinstance(smoothing, numbers.Real) and not isinstance(smoothing, bool):
        return Smoothing(float(smoothing))
    if isinstance(smoothing, str) and smoothing == "auto":
        return None
    raise ValueError(f"smoothing must be 'auto', a number or a Smoothing, got {smoothing!r}.")


def given_size(n_asked: Any, n_features: int | None = None) -> int | None:
    """The number of features asked for; None for "auto", or where it takes the number there are to tell."""
    if isinstance(n_asked, str) and n_asked in ("auto", "all"):
        return None if n_asked == "auto" else n_features
    if isinstance(n_asked, numbers.Integral) and not isinstance(n_asked, bool) and int(n_asked) >= 1:
        if n_features is not None and int(n_asked) > n_features:
            raise ValueError(f"n_features={n_asked} is more than the {n_features} features of X.")
        return int(n_asked)
    if isinstance(n_asked, float | np.floating) and 0 < n_asked <= 1:
        return None if n_features is None else max(1, int(np.ceil(float(n_asked) * n_features)))
    raise ValueError(
        "n_features must be 'auto', 'all', a number of features of at least 1, or a share above 0 and "
        f"at most 1, got {n_asked!r}."
    )


def given_prior(prior: Any, classes: npt.NDArray[np.generic]) -> Floats | None:
    """The class probabilities asked for, shape (C,); None for those of the data."""
    if prior is None:
        return None
    values = np.asarray(prior, dtype=np.float64)
    if values.shape != classes.shape or not (values >= 0).all() or abs(values.sum() - 1) > 1e-9:
        raise ValueError(
            f"prior must hold {len(classes)} probabilities, one for each class in sorted order, "
            f"that sum to 1, got {prior!r}."
        )
    return values
