"""From scikit-learn's many ways to say ``cv`` to folds whose moments add."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import check_random_state

from maxdisc.numerics.matrices import Integers, Matrix
from maxdisc.rows.row_sources import (
    ALWAYS_TRAINING,
    LEFT_OUT,
    FixedFolds,
    Folds,
    HashFolds,
    class_starts,
)

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
    """Return the folds for ``cv``: one plan if every row is held out at most once, else one per split."""
    kept = np.arange(len(labels)) if kept is None else kept
    if isinstance(cv, str) and cv == "hash":
        if groups is not None:
            raise ValueError("cv='hash' deals rows by their content and cannot keep groups together.")
        return [HashFolds(5)]
    if isinstance(cv, str) and cv == "holdout":
        (folds,) = fold_plans(HOLDOUT_PARTS, X, labels, groups, random_state, kept)
        assignment = folds.of(X[kept], 0)
        return [FixedFolds(np.where(assignment == 0, 0, ALWAYS_TRAINING), 1)]
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        if int(cv) < 2:
            raise ValueError(f"cv must be at least 2 folds, got {cv}.")
        count = max(2, min(int(cv), len(kept)))
        if groups is None:
            return [FixedFolds(dealt(labels[kept], count, random_state), count)]
        cv = StratifiedGroupKFold(count, shuffle=random_state is not None, random_state=random_state)
        return _of_splits(cv.split(X, class_starts(labels), groups), kept, len(labels))
    if hasattr(cv, "split") and not isinstance(cv, str):
        return _of_splits(cv.split(X, labels, groups), kept, len(labels))
    if isinstance(cv, Iterable) and not isinstance(cv, str):
        return _of_splits(cv, kept, len(labels))
    raise ValueError(
        "cv must be a number of folds, a splitter, an iterable of (train, test) indices, 'holdout' or "
        f"'hash', got {cv!r}."
    )


def plans_beside(
    cv: Any,
    X: Matrix,
    labels: npt.NDArray[np.generic],
    kept: Integers,
    others: Integers,
    groups: npt.ArrayLike | None = None,
    random_state: Any = None,
) -> list[tuple[Folds, Integers]]:
    """Return folds of labelled rows, each with the fold that leaves out each unlabelled row."""
    if isinstance(cv, Iterable) and not isinstance(cv, str) and not hasattr(cv, "split"):
        both = _of_splits(cv, np.r_[kept, others], len(labels))
        of_all = [(folds, folds.of(X, 0)) for folds in both]
        return [(FixedFolds(fold[: len(kept)], f.count), fold[len(kept) :]) for f, fold in of_all]
    known, free = X[kept], np.full(len(others), ALWAYS_TRAINING)
    if groups is None:
        return [(folds, free) for folds in fold_plans(cv, known, labels[kept], None, random_state)]
    group = np.asarray(groups)
    if group.shape != labels.shape:
        raise ValueError(f"groups must be one for each of the {len(labels)} rows, got shape {group.shape}.")
    plans = fold_plans(cv, known, labels[kept], group[kept], random_state)
    names, first = np.unique(group[kept], return_index=True)
    at = np.minimum(np.searchsorted(names, group[others]), len(names) - 1)
    together = names[at] == group[others]
    return [(folds, np.where(together, folds.of(known, 0)[first[at]], free)) for folds in plans]


def dealt(labels: npt.NDArray[np.generic], count: int, random_state: Any = None) -> Integers:
    """Rows of each class dealt out in turn, so that folds are alike in size and in classes; shape (N,).

    A class begins in the fold after that of the last row of the class before it. So classes come in the order
    of their first rows: labels may be renamed.
    """
    order = np.arange(len(labels))
    if random_state is not None:
        order = check_random_state(random_state).permutation(len(labels))
    order = order[np.argsort(class_starts(labels)[order], kind="stable")]
    fold = np.empty(len(labels), dtype=np.intp)
    fold[order] = np.arange(len(labels)) % count
    return fold


def _of_splits(
    splits: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]], kept: Integers, n_rows: int
) -> list[Folds]:
    """One plan while every split trains on all it does not test and tests no row twice, else one each."""
    joint = np.full(n_rows, ALWAYS_TRAINING, dtype=np.intp)
    separate: list[Integers] = []
    count = 0
    for split in splits:
        fold = _assignment(split, n_rows)
        held = fold == 0
        if not separate and not (fold == LEFT_OUT).any() and (joint[held] == ALWAYS_TRAINING).all():
            joint[held] = count
        else:
            if not separate:
                separate = [np.where(joint == f, 0, ALWAYS_TRAINING) for f in range(count)]
            separate.append(fold)
        count += 1
    if count == 0:
        raise ValueError("cv gave no splits.")
    if separate:
        return [FixedFolds(fold[kept], 1) for fold in separate]
    return [FixedFolds(joint[kept], count)]


def _assignment(split: Any, n_rows: int) -> Integers:
    fold = np.full(n_rows, LEFT_OUT, dtype=np.intp)
    try:
        train, test = split
        fold[np.asarray(train)] = ALWAYS_TRAINING
        both = (fold[np.asarray(test)] == ALWAYS_TRAINING).any()
        fold[np.asarray(test)] = 0
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"cv must give pairs of row numbers (train, test) below {n_rows}: {error}."
        ) from None
    if both:
        raise ValueError("cv gave a split with the same row in its train and its test part.")
    return fold
