"""From scikit-learn's many ways to say ``cv`` to folds whose moments add."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import check_random_state

from maxdisc.matrices import Integers, Matrix
from maxdisc.rows import ALWAYS_TRAINING, LEFT_OUT, FixedFolds, Folds, HashFolds

#: The paper ranks on four fifths and counts on the last.
HOLDOUT_PARTS = 5


def fold_plans(
    cv: Any,
    X: Matrix,
    labels: npt.NDArray[np.generic],
    groups: npt.ArrayLike | None = None,
    random_state: Any = None,
    kept: Integers | None = None,
) -> list[Folds]:
    """The folds that ``cv`` asks for.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test), "holdout" or "hash"
        What :class:`maxdisc.MaxDiscClassifier` takes.
    X : matrix of shape (N, D)
        The rows.
    labels : ndarray of shape (N,)
        Their classes.
    groups : array_like of shape (N,), optional
        Rows of one group are never split.
    random_state : int, RandomState or None
        Shuffles before dealing.
    kept : ndarray of shape (n,), optional
        The rows that carry weight, by default all; folds are of these alone.

    Returns
    -------
    list of Folds
        One plan where each row is held out at most once and trained on otherwise; else one for each split.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.folds import fold_plans
    >>> labels = np.array(["a", "a", "a", "b", "b", "b"])
    >>> fold_plans(3, np.zeros((6, 1)), labels)[0].assignment
    array([0, 1, 2, 0, 1, 2])
    """
    kept = np.arange(len(labels)) if kept is None else kept
    if isinstance(cv, str) and cv == "hash":
        return [HashFolds(5)]
    if isinstance(cv, str) and cv == "holdout":
        fold = dealt(labels[kept], HOLDOUT_PARTS, random_state)
        return [FixedFolds(np.where(fold == 0, 0, ALWAYS_TRAINING), 1)]
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, got {cv}.")
        if groups is None:
            return [FixedFolds(dealt(labels[kept], int(cv), random_state), int(cv))]
        cv = StratifiedGroupKFold(int(cv))
    if hasattr(cv, "split") and not isinstance(cv, str):
        return _of_splits(cv.split(X, labels, groups), kept, len(labels))
    if isinstance(cv, Iterable) and not isinstance(cv, str):
        return _of_splits(cv, kept, len(labels))
    raise ValueError(
        "cv must be a number of folds, a splitter, an iterable of (train, test) indices, 'holdout' or "
        f"'hash', got {cv!r}."
    )


def dealt(labels: npt.NDArray[np.generic], count: int, random_state: Any = None) -> Integers:
    """Rows of each class dealt out in turn, so that folds are alike in size and in classes; shape (N,)."""
    order = np.arange(len(labels))
    if random_state is not None:
        order = check_random_state(random_state).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), dtype=np.intp)
    fold[order] = np.arange(len(labels)) % count
    return fold


def _of_splits(
    splits: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]], kept: Integers, n_rows: int
) -> list[Folds]:
    plans = []
    for train, test in splits:
        fold = np.full(n_rows, LEFT_OUT, dtype=np.intp)
        fold[np.asarray(train)] = ALWAYS_TRAINING
        fold[np.asarray(test)] = 0
        plans.append(fold[kept])
    if not plans:
        raise ValueError("cv gave no splits.")
    held = np.array([fold == 0 for fold in plans])
    trained = np.array([fold == ALWAYS_TRAINING for fold in plans])
    if (held.sum(axis=0) <= 1).all() and (held | trained).all():
        joint = np.where(held.any(axis=0), held.argmax(axis=0), ALWAYS_TRAINING)
        return [FixedFolds(joint, len(plans))]
    return [FixedFolds(fold, 1) for fold in plans]
