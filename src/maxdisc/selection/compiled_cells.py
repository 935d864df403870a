"""Class sums of the rows of all folds but one, from the columns of a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiling import kernel


@kernel
def count_columns(columns: Any, start: int, stop: int, counts: Any) -> None:
    """How often each column occurs among some cells, added to ``counts`` (D,)."""
    for p in range(np.uint64(start), np.uint64(stop)):
        counts[np.uint32(columns[p])] += 1


@kernel
def column_ends(counts: Any, indptr: Any, ends: Any) -> None:
    """Where columns begin, from how often each occurs in some ranges of rows, ``counts`` (R, D).

    In ``indptr`` (D + 1,) for all ranges together, in ``ends`` (R, D) for the cells of each of them, which go
    behind those of the ranges before it.
    """
    n_ranges, n_columns = counts.shape
    at = 0
    indptr[0] = 0
    for j in range(n_columns):
        for r in range(n_ranges):
            ends[r, j] = at
            at += counts[r, j]
        indptr[j + 1] = at


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
def count_classes(
    indptr: Any, rows: Any, slots: Any, shift: int, n_classes: int, start: int, stop: int, counts: Any
) -> None:
    """How many classes have cells in each column of a CSC matrix from ``start`` to ``stop``."""
    seen = np.empty(n_classes, dtype=np.int64)
    seen[:] = -1
    for j in range(start, stop):
        found = 0
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            c = np.uint32(slots[np.uint32(rows[p])]) >> np.uint32(shift)
            found += seen[c] != j
            seen[c] = j
        counts[j] = found


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
    whole: Any,
    spread: Any,
) -> None:
    """Class sums over the rows of all *other* folds, of some columns.

    ``slots`` says for each row of a CSC matrix its class, times 2 to the ``shift``, plus the fold that holds
    it out; V, if none does. The cells of column j are those from ``ends[j]`` to ``ends[j + 1]``, as many as
    :func:`count_classes` says. Their classes are the same for all folds; their sums are ``sums[f]``, some of
    them 0. Besides, for each fold and column: the sum over all classes, and the weight of the cells that are
    not zero in ``nonzero[0]``; in ``nonzero[1]`` that of the rows held out. And of all rows together: class
    sums ``whole`` (C, D), and in ``spread`` (2, D) the weight of the cells that are not zero and their
    weighted squares.
    """
    n_folds, width = np.uint64(pooled.shape[0]), np.uint64(1) << np.uint64(shift)
    class_of, fold_of = np.uint32(shift), np.uint32(width - np.uint64(1))
    n_slots = np.int64(width)
    summed, stored = np.empty(n_classes * n_slots), np.empty(n_slots)
    others, rest = np.empty(n_slots), np.empty(n_slots)
    summed[:] = 0.0
    whole[:, start:stop] = 0.0
    seen, found = np.empty(n_classes, dtype=np.int64), np.empty(n_classes + 1, dtype=np.int32)
    seen[:] = -1
    for j in range(np.uint64(start), np.uint64(stop)):
        n_found, squares = np.uint64(0), 0.0
        stored[:] = 0.0
        others[:] = 0.0
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + np.uint64(1)])):
            row, value = np.uint32(rows[p]), data[p]
            slot, weight = np.uint32(slots[row]), weights[row]
            c = slot >> class_of
            # Written whether it is new or not: there is no branch to be guessed wrong.
            found[n_found] = c
            n_found += np.uint64(seen[c] != np.int64(j))
            seen[c] = j
            summed[slot] += weight * value
            squares += weight * value * value
            stored[slot & fold_of] += weight if value != 0 else 0.0
        first_cell = np.uint64(ends[j])
        for i in range(n_found):
            c = np.uint32(found[i])
            at, first = first_cell + i, np.uint64(c) * width
            classes[at] = c
            # The sum over all other folds: never the whole less one, which would leave rounding.
            behind = summed[first + n_folds]
            for g in range(n_folds):
                last = n_folds - np.uint64(1) - g
                rest[last] = behind
                behind += summed[first + last]
            before = 0.0
            whole[c, j] = behind
            for f in range(n_folds):
                other = rest[f] + before
                sums[f, at] = other
                others[f] += other
                before += summed[first + f]
            for f in range(width):
                summed[first + f] = 0.0
        behind = stored[n_folds]
        for g in range(n_folds):
            last = n_folds - np.uint64(1) - g
            nonzero[0, last, j] = behind
            behind += stored[last]
        spread[0, j] = behind
        spread[1, j] = squares
        before = 0.0
        for f in range(n_folds):
            pooled[f, j] = others[f]
            nonzero[0, f, j] += before
            nonzero[1, f, j] = stored[f]
            before += stored[f]
