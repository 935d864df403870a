"""Class sums from the columns of a CSC matrix: of all rows, and of the rows of all folds but one."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import inlined, kernel


@kernel
def class_sums(
    indptr: Any,
    rows: Any,
    data: Any,
    codes: Any,
    weights: Any,
    start: int,
    stop: int,
    sums: Any,
    nonzero: Any,
) -> None:
    """Sums (C, D), and weights of the cells that are not zero (D,), of some columns of a CSC matrix."""
    for j in range(start, stop):
        stored = 0.0
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            row = np.uint32(rows[p])
            sums[np.uint32(codes[row]), j] += weights[row] * data[p]
            if data[p] != 0:
                stored += weights[row]
        nonzero[j] = stored


@kernel
def cell_ends(indptr: Any, rows: Any, codes: Any, n_classes: int, ends: Any) -> None:
    """Before each column of a CSC matrix, and in all: how many classes have cells in a column."""
    seen = np.full(n_classes, -1, dtype=np.int64)
    filled = 0
    ends[0] = 0
    for j in range(indptr.size - 1):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            c = np.uint64(codes[np.uint32(rows[p])])
            filled += seen[c] != j
            seen[c] = j
        ends[j + 1] = filled


@kernel
def fold_cells(
    indptr: Any,
    rows: Any,
    data: Any,
    codes: Any,
    folds: Any,
    weights: Any,
    n_classes: int,
    start: int,
    stop: int,
    ends: Any,
    classes: Any,
    sums: Any,
    pooled: Any,
    nonzero: Any,
    occurs: Any,
) -> None:
    """For each of V folds, the class sums over the rows of all *other* folds, of some columns.

    ``folds`` says for each row of a CSC matrix which fold holds it out; V, if none does. The cells of column
    j are those from ``ends[j]`` to ``ends[j + 1]``, see :func:`cell_ends`. Their classes are the same for all
    folds; their sums are ``sums[f]``, some of them 0. Besides, for each fold and column: the sum over all
    classes, the weight of the cells that are not zero, and whether rows of the fold have the column.
    """
    n_folds = pooled.shape[0]
    by_fold, others = np.zeros((n_classes, n_folds + 1)), np.empty(n_folds + 1)
    stored, held = np.empty(n_folds + 1), np.empty(n_folds + 1, dtype=np.uint8)
    seen, found = np.full(n_classes, -1, dtype=np.int64), np.empty(n_classes + 1, dtype=np.int32)
    for j in range(start, stop):
        stored[:] = 0.0
        held[:] = 0
        n_found = np.uint64(0)
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            row = np.uint32(rows[p])
            fold, c, weight = np.uint64(folds[row]), np.uint64(codes[row]), weights[row]
            # Written whether it is new or not: there is no branch to be guessed wrong.
            found[n_found] = c
            n_found += np.uint64(seen[c] != j)
            seen[c] = j
            by_fold[c, fold] += weight * data[p]
            stored[fold] += weight if data[p] != 0 else 0.0
            held[fold] = 1
        _sum_others(stored, others)
        for f in range(n_folds):
            pooled[f, j] = 0.0
            nonzero[f, j] = others[f]
            occurs[f, j] = held[f]
        for i in range(n_found):
            at, c = np.uint64(ends[j]) + i, np.uint64(found[i])
            classes[at] = c
            _sum_others(by_fold[c], others)
            by_fold[c] = 0.0
            for f in range(n_folds):
                sums[f, at] = others[f]
                pooled[f, j] += others[f]


@inlined
def _sum_others(values: Any, out: Any) -> None:
    """For each entry the sum of all the others: never the whole less one, which would leave rounding."""
    behind = 0.0
    for f in range(values.size - 1, -1, -1):
        out[f] = behind
        behind += values[f]
    before = 0.0
    for f in range(values.size):
        out[f] += before
        before += values[f]
