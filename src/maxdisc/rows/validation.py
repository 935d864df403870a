"""Validation of estimator parameters."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.joint import Joint
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, column_name

# Squares of smaller numbers leave the range of double precision.
SMALLEST = 1e-140
# A feature that varies by fewer steps between neighbouring numbers has too few digits left to be described.
FEWEST_STEPS = 1000


def require_one_of(name: str, value: Any, allowed: Collection[Any]) -> None:
    """Raise ``ValueError`` unless a parameter has one of the valid values."""
    if not any(value is choice or value == choice for choice in allowed):
        choices = " or ".join(map(repr, allowed))
        raise ValueError(f"{name}={value!r} is not available: use {name}={choices}.")


def given_smoothing(smoothing: Any) -> Smoothing | None:
    """Return the requested smoothing; None for "auto"."""
    if isinstance(smoothing, Smoothing):
        return smoothing
    if isinstance(smoothing, numbers.Real) and not isinstance(smoothing, bool):
        return Smoothing(float(smoothing))
    if isinstance(smoothing, str) and smoothing == "auto":
        return None
    raise ValueError(f"smoothing must be 'auto', a number or a Smoothing, got {smoothing!r}.")


def given_jobs(n_jobs: Any) -> int | None:
    """Validate ``n_jobs`` (joblib convention)."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}.")
    return int(n_jobs)


def given_redundancy(redundancy: Any) -> float:
    """Return the validated redundancy, a number of at least 0."""
    number = isinstance(redundancy, numbers.Real) and not isinstance(redundancy, bool)
    if not (number and 0 <= float(redundancy) < np.inf):
        raise ValueError(f"redundancy must be a number of at least 0, got {redundancy!r}.")
    return float(redundancy)


def given_structure(structure: Any) -> Joint | None:
    """Return the requested joint densities; None for independent features and "auto"."""
    if isinstance(structure, Joint):
        return structure
    if isinstance(structure, str) and structure in ("auto", "independent", "joint"):
        return Joint() if structure == "joint" else None
    raise ValueError(f"structure must be 'auto', 'independent', 'joint' or a Joint, got {structure!r}.")


def given_class_weight(class_weight: Any) -> Mapping[Any, float] | str | None:
    """Return the weights of classes: "balanced", a number for each label, or None."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return class_weight
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict of labels, got {class_weight!r}.")
    for label, weight in class_weight.items():
        if not isinstance(weight, numbers.Real) or not 0 <= float(weight) < np.inf:
            raise ValueError(
                f"class_weight gives {label!r} the weight {weight!r}: use a finite number of at least 0."
            )
    return class_weight


def given_size(n_asked: Any, n_features: int | None = None) -> int | None:
    """Return the requested number of features; None for "auto" or if it depends on D."""
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
    """Return the requested class probabilities, shape (C,); None for those of the data."""
    if prior is None:
        return None
    try:
        values = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != classes.shape or not (values >= 0).all() or abs(values.sum() - 1) > 1e-9:
        raise ValueError(
            f"prior must hold {len(classes)} probabilities, one for each class in sorted order, that sum "
            f"to 1, got {prior!r} (a first batch may lack a class: give partial_fit all of them as classes=)."
        )
    return values


def require_labels(y: Any, instead: str = "drop those rows") -> None:
    """Raise ``ValueError`` for rows without a label (None, NaN, NA), counting them and naming the first."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    _, missing = sorted_out(y)
    if missing is not None:
        raise ValueError(
            f"y has no label (None or NaN) in {missing.sum()} rows, first in row {np.argmax(missing)}: "
            f"{instead}."
        )


def are_too_many(n_classes: int, n_rows: int) -> bool:
    """Return whether there are too many different numbers to be class labels."""
    return n_rows >= 30 and 2 * n_classes > n_rows


def require_classes(labels: npt.NDArray[np.generic], classes: npt.NDArray[np.generic]) -> None:
    """Raise ``ValueError`` for labels that are a quantity: different numbers in most rows."""
    if labels.dtype.kind in "iuf" and are_too_many(len(classes), len(labels)):
        raise ValueError(
            f"y holds {len(classes):,} different numbers in {len(labels):,} rows: is it a quantity? Bin it "
            "into classes, or pass numbers that are names as strings."
        )


def given_unlabelled(unlabelled: Any) -> Any:
    """Return the label that means "no label", in addition to None."""
    if unlabelled is None or isinstance(unlabelled, str | numbers.Real | np.bool_):
        return unlabelled
    raise ValueError(f"unlabelled must be None or a label, such as -1 or 'unknown', got {unlabelled!r}.")


def sorted_out(y: Any, unlabelled: Any = None) -> tuple[Any, Booleans | None]:
    """Return labels and a mask of rows without one (None, NaN, NA, NaT, ``unlabelled``), or None."""
    if y is None:
        return None, None
    labels = np.asarray(y)
    if labels.dtype.kind in "US" and not hasattr(y, "dtype") and any(isinstance(v, float) for v in y):
        labels = np.asarray(y, dtype=object)  # numpy makes a word of NaN
    kind = labels.dtype.kind
    if kind == "O":
        found = [_is_missing(v) or (unlabelled is not None and _is(v, unlabelled)) for v in labels.ravel()]
        missing = np.array(found, dtype=np.bool_)
    elif kind in "mM":
        missing = np.isnat(labels)
    elif kind == "f":
        missing = np.isnan(labels)
        if isinstance(unlabelled, numbers.Real):
            missing |= labels == unlabelled
    elif unlabelled is not None and isinstance(unlabelled, str) == (kind in "US"):
        missing = labels == unlabelled
    else:
        return y, None
    if not missing.any() or labels.ndim > 2 or (labels.ndim == 2 and labels.shape[1] != 1):
        return y, missing if missing.any() else None
    missing = missing.ravel()
    known = labels.ravel()[~missing]
    if kind == "O" and all(isinstance(v, numbers.Real | np.bool_) for v in known):
        known = np.array(known.tolist())
    if not len(known):
        return labels, missing
    filled = np.full(len(missing), known[0], dtype=known.dtype)
    filled[~missing] = known
    return filled, missing


def _is(label: Any, value: Any) -> bool:
    """Return whether a label is that value: a word for a word, a number for a number."""
    return isinstance(label, str) == isinstance(value, str) and bool(label == value)


def _is_missing(label: Any) -> bool:
    # pandas.NA, which this library does not import, is the one thing that has no truth value.
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def sorted_union(*label_sets: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Return all labels, sorted; raise ``ValueError`` where some are words and some are numbers."""
    arrays = [a for a in (np.unique(np.asarray(labels)) for labels in label_sets) if len(a)]
    if len({_kind(a) for a in arrays}) > 1:
        shown = " and ".join(repr(a[:1].tolist()[0]) for a in arrays)
        raise ValueError(f"labels must be all of one type, got {shown}.")
    if any(a.dtype.kind == "O" for a in arrays):
        arrays = [a.astype(object) for a in arrays]
    return np.unique(np.concatenate(arrays))


def _kind(labels: npt.NDArray[np.generic]) -> str:
    """Words or numbers, however they are stored."""
    if labels.dtype.kind == "O":
        return _kind(np.asarray(labels.tolist()))
    return "number" if labels.dtype.kind in "biuf" else labels.dtype.kind


def require_numbers(X: Any) -> None:
    """Raise ``ValueError`` with a way out where ``X`` holds text; called when conversion has failed."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        for name in columns:
            values = np.asarray(X[name])
            if values.dtype.kind not in "fiub" and any(isinstance(v, str) for v in values[:1000]):
                raise ValueError(
                    f"column {str(name)!r} holds text, such as {values[0]!r}: drop it, or count its words "
                    "with scikit-learn's CountVectorizer; categories are for fit with family='auto'."
                )
    raise ValueError(
        "X holds text: MaxDiscClassifier takes documents as a list or a column of str; of a table, count "
        "words first, with scikit-learn's CountVectorizer."
    )


def require_representable(moments: ClassMoments, powers: bool, names: npt.ArrayLike | None = None) -> None:
    """Raise ``ValueError``, naming the column, for sums that double precision cannot hold."""
    with np.errstate(over="ignore", invalid="ignore"):
        together = moments.sums.sum() + moments.weight.sum()
    # One that is not finite leaves no sum finite; a sum that is not may be one of large numbers.
    if not np.isfinite(together):
        finite = np.isfinite(moments.sums).all(axis=(0, 1)) & np.isfinite(moments.weight).all()
        if not finite.all():
            where = column_name(int(np.argmin(finite)), names)
            raise ValueError(f"the values or weights of {where} are too large to be summed: rescale them.")
    if powers and (low := moments.sums[1].max(axis=0, initial=0.0) < SMALLEST**2).any():
        center = np.abs(moments.means()).max(axis=0, initial=0.0)
        tiny = (center > 0) & (center < SMALLEST) & low
        if tiny.any():
            where = column_name(int(np.argmax(tiny)), names)
            raise ValueError(f"the values of {where} are too small to be squared: rescale them.")


def has_lost_digits(moments: ClassMoments) -> Booleans:
    """Return which features vary so little about a large mean that rounding shows, shape (D,)."""
    if moments.origin is None or not moments.weight.any():
        return np.zeros(moments.n_features, dtype=np.bool_)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = moments.sums[0] / moments.cells
        mean = shift + moments.origin
        shares = moments.cells / moments.cells.sum(axis=0)
        # Differences from one of the means are exact; those from their average would be rounded.
        highest = np.fmax.reduce(mean, axis=0)
        apart = mean - highest
        squares = np.maximum(moments.sums[1] / moments.cells - shift**2, 0.0) + apart**2
        spread = np.sqrt(
            np.maximum(np.nansum(shares * squares, axis=0) - np.nansum(shares * apart, axis=0) ** 2, 0)
        )
    step = np.spacing(np.abs(highest))
    # The mean of a constant may be rounded to a neighbour.
    return (spread > 2 * step) & (spread < FEWEST_STEPS * step)
