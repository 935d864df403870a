"""How good predictions are: counts, and what follows from them."""

from __future__ import annotations

import numpy as np

from maxdisc.numerics.matrices import Booleans, Floats, Integers

# The normal deviate of a two-sided 95 % interval.
_DEVIATE = 1.959963984540054


def wilson_interval(right: int, rows: int) -> tuple[float, float]:
    """A 95 % interval for a share, which keeps its promise for few rows and for shares near 0 and 1 too.

    Examples
    --------
    >>> from maxdisc.inspection.measures import wilson_interval
    >>> low, high = wilson_interval(10, 10)
    >>> round(low, 3), high
    (0.722, 1.0)
    """
    share, square = right / rows, _DEVIATE**2
    middle = (share + square / (2 * rows)) / (1 + square / rows)
    half = _DEVIATE * np.sqrt(share * (1 - share) / rows + square / (4 * rows**2)) / (1 + square / rows)
    low = 0.0 if right == 0 else float(middle - half)
    return low, 1.0 if right == rows else float(middle + half)


def reliability_bins(
    right: Booleans, confidence: Floats, n_bins: int = 10
) -> tuple[Floats, Floats, Integers]:
    """Predictions grouped by how sure they were.

    Parameters
    ----------
    right : ndarray of bool, shape (N,)
        Whether each prediction was right.
    confidence : ndarray of shape (N,)
        The probability it was given.
    n_bins : int
        Bins of equal width; empty ones are left out.

    Returns
    -------
    confidence, accuracy : ndarray of shape (B,)
        Mean confidence and share of right predictions in each bin.
    rows : ndarray of shape (B,)
        How many predictions it holds.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.inspection.measures import reliability_bins
    >>> _, accuracy, rows = reliability_bins(np.array([True, False, True]), np.array([0.95, 0.98, 0.41]))
    >>> accuracy, rows
    (array([1. , 0.5]), array([1, 2]))
    """
    bins = np.minimum((confidence * n_bins).astype(np.intp), n_bins - 1)
    rows = np.bincount(bins, minlength=n_bins)
    some = rows > 0
    mean = np.bincount(bins, confidence, n_bins)[some] / rows[some]
    return mean, np.bincount(bins, right, n_bins)[some] / rows[some], rows[some]


def confusion_counts(truth: Integers, predicted: Integers, n_labels: int) -> Integers:
    """How often each label (row) was taken for each (column), shape (n_labels, n_labels).

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.inspection.measures import confusion_counts
    >>> confusion_counts(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    array([[1, 0],
           [1, 1]])
    """
    flat = np.bincount(truth * n_labels + predicted, minlength=n_labels**2)
    return flat.reshape(n_labels, n_labels)


def class_scores(counts: Integers) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1 of each label from confusion counts; NaN where there is nothing to count.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.inspection.measures import class_scores
    >>> precision, recall, f1 = class_scores(np.array([[1, 0], [1, 1]]))
    >>> precision, recall
    (array([0.5, 1. ]), array([1. , 0.5]))
    """
    right, truth, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    return _share(right, predicted), _share(right, truth), _share(2 * right, truth + predicted)


def _share(part: Integers, whole: Integers) -> Floats:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
