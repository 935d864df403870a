"""Class sums of the rows of all folds but one, from the columns of a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import inlined, kernel


@kernel
def count_columns(columns: Any, start: int, stop: int, counts: Any) -> None:
    """How often each column occurs among some cells, added to ``counts`` (D,)."""
    for p in range(np.uint64(start), np.uint64(stop)):
        counts[np.uint32(columns[p])] += 1


@kernel
def move_to_columns(
    indptr: Any, columns: Any, data: Any, start: int, stop: int, ends: Any, rows: Any, values: Any
) -> None:
    """Put the cells of the rows from ``start`` to ``stop`` where the next of their columns goes, ``ends``."""
    for row in range(start, stop):
        for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            j = np.uint32(columns[p])
            at = np.uint64(ends[j])
            ends[j] += 1
            rows[at] = row
            values[at] = data[p]


@kernel
def cell_ends(indptr: Any, rows: Any, slots: Any, shift: int, n_classes: int, ends: Any) -> None:
    """Before each column of a CSC matrix, and in all: how many classes have cells in a column."""
    seen = np.full(n_classes, -1, dtype=np.int64)
    filled = 0
    ends[0] = 0
    for j in range(indptr.size - 1):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            c = np.uint32(slots[np.uint32(rows[p])]) >> np.uint32(shift)
            filled += seen[c] != j
            seen[c] = j
        ends[j + 1] = filled


@kernel
def fold_cells(
    indptr: Any,
    rows: Any,
    data: Any,
    slots: Any,
    shift: int,
    weights: Any,
    n_classes: int,
    start: int,
    stop: int,
    ends: Any,
    classes: Any,
    sums: Any,
    pooled: Any,
    nonzero: Any,
) -> None:
    """Class sums over the rows of all *other* folds, of some columns.

    ``slots`` says for each row of a CSC matrix its class, times 2 to the ``shift``, plus the fold that holds
    it out; V, if none does. The cells of column j are those from ``ends[j]`` to ``ends[j + 1]``, see
    :func:`cell_ends`. Their classes are the same for all folds; their sums are ``sums[f]``, some of them 0.
    Besides, for each fold and column: the sum over all classes, and the weight of the cells that are not zero
    in ``nonzero[0]``; in ``nonzero[1]`` that of the rows held out.
    """
    n_folds, width = pooled.shape[0], np.uint32(1) << np.uint32(shift)
    summed, counted = np.zeros(n_classes * width), np.zeros(n_classes * width)
    own, others, stored = np.empty(n_folds + 1), np.empty(n_folds + 1), np.empty(n_folds + 1)
    seen, found = np.full(n_classes, -1, dtype=np.int64), np.empty(n_classes + 1, dtype=np.int32)
    for j in range(start, stop):
        n_found = np.uint64(0)
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            row, value = np.uint32(rows[p]), data[p]
            slot, weight = np.uint32(slots[row]), weights[row]
            c = slot >> np.uint32(shift)
            # Written whether it is new or not: there is no branch to be guessed wrong.
            found[n_found] = c
            n_found += np.uint64(seen[c] != j)
            seen[c] = j
            summed[slot] += weight * value
            counted[slot] += weight if value != 0 else 0.0
        stored[:] = 0.0
        for f in range(n_folds):
            pooled[f, j] = 0.0
        for i in range(n_found):
            at, c = np.uint64(ends[j]) + i, np.uint32(found[i])
            classes[at] = c
            first = c * width
            for f in range(n_folds + 1):
                own[f] = summed[first + np.uint32(f)]
                stored[f] += counted[first + np.uint32(f)]
                summed[first + np.uint32(f)] = 0.0
                counted[first + np.uint32(f)] = 0.0
            _sum_others(own, others)
            for f in range(n_folds):
                sums[f, at] = others[f]
                pooled[f, j] += others[f]
        _sum_others(stored, others)
        for f in range(n_folds):
            nonzero[0, f, j] = others[f]
            nonzero[1, f, j] = stored[f]


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
