"""Evaluation measures from counts."""

from __future__ import annotations

import numpy as np

from maxdisc.numerics.matrices import Booleans, Floats, Integers

# The normal deviate of a two-sided 95 % interval.
_DEVIATE = 1.959963984540054


def wilson_interval(right: int, rows: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a proportion, which holds for few rows and near 0 and 1."""
    share, square = right / rows, _DEVIATE**2
    middle = (share + square / (2 * rows)) / (1 + square / rows)
    half = _DEVIATE * np.sqrt(share * (1 - share) / rows + square / (4 * rows**2)) / (1 + square / rows)
    low = 0.0 if right == 0 else float(middle - half)
    return low, 1.0 if right == rows else float(middle + half)


def reliability_bins(
    right: Booleans, confidence: Floats, n_bins: int = 10
) -> tuple[Floats, Floats, Integers]:
    """Return mean confidence, accuracy and count of non-empty bins of equal width."""
    bins = np.minimum((confidence * n_bins).astype(np.intp), n_bins - 1)
    rows = np.bincount(bins, minlength=n_bins)
    some = rows > 0
    mean = np.bincount(bins, confidence, n_bins)[some] / rows[some]
    return mean, np.bincount(bins, right, n_bins)[some] / rows[some], rows[some]


def confusion_counts(truth: Integers, predicted: Integers, n_labels: int) -> Integers:
    """Return the confusion matrix, shape (n_labels, n_labels); rows are true labels."""
    flat = np.bincount(truth * n_labels + predicted, minlength=n_labels**2)
    return flat.reshape(n_labels, n_labels)


def class_scores(counts: Integers) -> tuple[Floats, Floats, Floats]:
    """Return precision, recall and F1 of each label; NaN where undefined."""
    right, truth, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    return _share(right, predicted), _share(right, truth), _share(2 * right, truth + predicted)


def _share(part: Integers, whole: Integers) -> Floats:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
