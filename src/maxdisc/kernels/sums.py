"""Sums of the rows of groups of a CSR matrix: one pass over its cells, a thread for each range of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import kernel


@kernel
def group_sums(
    indptr: Any,
    columns: Any,
    data: Any,
    rows: Any,
    weights: Any,
    starts: Any,
    first: int,
    last: int,
    sums: Any,
) -> None:
    """Add up the rows of some groups: those of group g are ``rows[starts[g] : starts[g + 1]]``.

    All rows of a group go into one row of ``sums`` (G, D), which stays in the cache, in the order given: the
    result does not depend on who adds which groups.
    """
    for g in range(first, last):
        into = sums[g]
        for e in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            row, weight = np.uint64(rows[e]), weights[e]
            for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
                into[np.uint32(columns[p])] += weight * data[p]


@kernel
def group_counts(
    indptr: Any,
    columns: Any,
    data: Any,
    rows: Any,
    weights: Any,
    starts: Any,
    first: int,
    last: int,
    counts: Any,
) -> None:
    """What :func:`group_sums` does, for the weights of the cells that are not zero."""
    for g in range(first, last):
        into = counts[g]
        for e in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            row, weight = np.uint64(rows[e]), weights[e]
            for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
                into[np.uint32(columns[p])] += weight if data[p] != 0 else 0.0


@kernel
def group_powers(
    indptr: Any,
    columns: Any,
    data: Any,
    rows: Any,
    weights: Any,
    starts: Any,
    first: int,
    last: int,
    sums: Any,
    squares: Any,
    flat: float,
) -> int:
    """What :func:`group_sums` does, for the values and for their squares at once.

    Says how many of these groups and columns have a variance of less than ``flat`` times their mean square.
    """
    n_flat = 0
    for g in range(first, last):
        into, into_squares, total = sums[g], squares[g], 0.0
        for e in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            row, weight = np.uint64(rows[e]), weights[e]
            total += weight
            for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
                j, value = np.uint32(columns[p]), np.float64(data[p])
                into[j] += weight * value
                into_squares[j] += weight * value * value
        share = 1.0 / total if total > 0 else 0.0
        for k in range(into.size):
            n_flat += into_squares[k] * (1.0 - flat) < into[k] * (into[k] * share)
    return n_flat


#: Rows that are looked at twice while they are in the cache, ...
ROWS_AT_A_TIME = 32
#: ... in tiles of so many columns.
COLUMNS_AT_A_TIME = 1024


@kernel
def centred_sums(
    X: Any,
    rows: Any,
    weights: Any,
    starts: Any,
    first: int,
    last: int,
    cells: Any,
    mean: Any,
    squares: Any,
) -> bool:
    """For some columns of a dense table, and each group: weight of its cells, their mean, squares about it.

    Results have shape (G, D). A few rows at a time are summed, and then their squares about their own mean,
    while they are in the cache; means and squares are merged as Chan, Golub and LeVeque do. NaN is a missing
    cell. Says whether there was one.
    """
    width = last - first
    block_cells, block_mean, block_squares = np.empty(width), np.empty(width), np.empty(width)
    missing = False
    for g in range(starts.size - 1):
        into_cells, into_mean, into_squares = (
            cells[g, first:last],
            mean[g, first:last],
            squares[g, first:last],
        )
        for begin in range(starts[g], starts[g + 1], ROWS_AT_A_TIME):
            end = min(begin + ROWS_AT_A_TIME, starts[g + 1])
            block_cells[:] = 0.0
            block_mean[:] = 0.0
            block_squares[:] = 0.0
            total = 0.0
            for e in range(begin, end):
                values, weight = X[rows[e], first:last], weights[e]
                total += weight
                for j in range(width):
                    value = np.float64(values[j])
                    here = value == value
                    block_mean[j] += weight * value if here else 0.0
                    block_cells[j] += weight if here else 0.0
            for j in range(width):
                missing |= block_cells[j] != total
                block_mean[j] = block_mean[j] / block_cells[j] if block_cells[j] > 0 else 0.0
            for e in range(begin, end):
                values, weight = X[rows[e], first:last], weights[e]
                for j in range(width):
                    gap = np.float64(values[j]) - block_mean[j]
                    block_squares[j] += weight * gap * gap if gap == gap else 0.0
            for j in range(width):
                before, more = into_cells[j], block_cells[j]
                both = before + more
                gap = block_mean[j] - into_mean[j]
                share = more / both if both > 0 else 0.0
                into_mean[j] += gap * share
                into_squares[j] += block_squares[j] + gap * gap * before * share
                into_cells[j] = both
    return missing
