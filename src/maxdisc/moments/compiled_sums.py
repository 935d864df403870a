"""Sums of the rows of groups of a CSR matrix: one pass over its cells, a thread for each range of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiled_prefetching import LINE, prefetch
from maxdisc.numerics.compiling import inlined, kernel

#: The rows of a group lie apart; one is asked for while those before it are added.
AHEAD = np.uint64(2)
#: Of long rows, so many cells: processors see by themselves how memory is gone through.
MOST_FETCHED = np.uint64(128)


@inlined
def _prefetch_row(indptr: Any, columns: Any, data: Any, rows: Any, entry: Any) -> None:
    """Ask for the cells of a row of a CSR matrix, if there is such an entry."""
    if entry < np.uint64(rows.size):
        row = np.uint64(rows[entry])
        start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])
        for p in range(start, min(stop, start + MOST_FETCHED), np.uint64(LINE)):
            prefetch(columns, p)
            prefetch(data, p)


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
            _prefetch_row(indptr, columns, data, rows, e + AHEAD)
            row, weight = np.uint64(rows[e]), weights[e]
            for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
                into[np.uint32(columns[p])] += weight * data[p]


@kernel
def group_spreads(
    indptr: Any,
    columns: Any,
    data: Any,
    rows: Any,
    weights: Any,
    starts: Any,
    first: int,
    last: int,
    nonzero: Any,
    squares: Any,
    both: Any,
) -> None:
    """What :func:`group_sums` does, for whether values are not zero, and for their squares.

    In ``both`` (2 D), which is written over, they stand side by side: one look at memory fetches them. It is
    the caller's, as threads that were just started are given fresh memory, which costs more than to fill it.
    """
    two = np.uint64(2)
    for g in range(first, last):
        both[:] = 0.0
        for e in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            _prefetch_row(indptr, columns, data, rows, e + AHEAD)
            row, weight = np.uint64(rows[e]), weights[e]
            for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
                at, value = np.uint64(np.uint32(columns[p])) * two, np.float64(data[p])
                both[at] += weight * np.float64(value != 0)
                both[at + np.uint64(1)] += weight * value * value
        into, into_squares = nonzero[g], squares[g]
        for j in range(into.size):
            into[j] = both[2 * j]
            into_squares[j] = both[2 * j + 1]


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
    both: Any,
) -> int:
    """What :func:`group_sums` does, for the values and for their squares at once; ``sums`` need not be zeros.

    Says how many of these groups and columns have a variance of less than ``flat`` times their mean square.
    For ``both`` see :func:`group_spreads`.
    """
    n_flat, two = 0, np.uint64(2)
    for g in range(first, last):
        both[:] = 0.0
        total = 0.0
        for e in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            _prefetch_row(indptr, columns, data, rows, e + AHEAD)
            row, weight = np.uint64(rows[e]), weights[e]
            total += weight
            for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
                at, value = np.uint64(np.uint32(columns[p])) * two, np.float64(data[p])
                both[at] += weight * value
                both[at + np.uint64(1)] += weight * value * value
        share, into, into_squares = 1.0 / total if total > 0 else 0.0, sums[g], squares[g]
        for j in range(into.size):
            value, square = both[2 * j], both[2 * j + 1]
            into[j] = value
            into_squares[j] = square
            n_flat += square * (1.0 - flat) < value * (value * share)
    return n_flat


#: So many rows are summed about one middle, ...
ROWS_AT_A_TIME = 64
#: ... the first few of a group about their own, ...
ROWS_AT_FIRST = 8
#: ... in tiles of about so many columns.
COLUMNS_AT_A_TIME = 4096
#: The mean of earlier rows will do for a block that weighs at most so many times as much.
HEAVIER = 16.0


@inlined
def _means(X: Any, rows: Any, weights: Any, first: Any, cells: Any, mean: Any) -> None:
    """Weight of the cells of some columns in some rows, and their means, 0 where all cells are missing."""
    cells[:] = 0.0
    mean[:] = 0.0
    for e in range(rows.size):
        values, weight = X[rows[e], first : first + mean.size], weights[e]
        for j in range(mean.size):
            value = np.float64(values[j])
            here = value == value
            mean[j] += weight * value if here else 0.0
            cells[j] += weight if here else 0.0
    for j in range(mean.size):
        mean[j] = mean[j] / cells[j] if cells[j] > 0 else 0.0


@inlined
def _sums_about(
    X: Any, rows: Any, weights: Any, first: Any, middle: Any, cells: Any, sums: Any, squares: Any
) -> float:
    """Weight of the cells of some columns in some rows, and the sums and squares of what is above a middle.

    Four rows at a time, which takes half the time of one by one; where none is left, the last without weight.
    Returns the weight of a column of which no cell is missing, to the last bit. Without ``cells`` to write
    to, a missing cell makes sums NaN.
    """
    if cells is not None:
        cells[:] = 0.0
    sums[:] = 0.0
    squares[:] = 0.0
    last, total = rows.size - 1, 0.0
    for e in range(0, rows.size, 4):
        f, g, h = min(e + 1, last), min(e + 2, last), min(e + 3, last)
        u, v = weights[e], weights[f] if f > e else 0.0
        w, z = weights[g] if g > f else 0.0, weights[h] if h > g else 0.0
        x0, x1 = X[rows[e], first : first + sums.size], X[rows[f], first : first + sums.size]
        x2, x3 = X[rows[g], first : first + sums.size], X[rows[h], first : first + sums.size]
        total += (u + v) + (w + z)
        for j in range(sums.size):
            a, b = np.float64(x0[j]) - middle[j], np.float64(x1[j]) - middle[j]
            c, d = np.float64(x2[j]) - middle[j], np.float64(x3[j]) - middle[j]
            if cells is not None:
                cells[j] += ((u if a == a else 0.0) + (v if b == b else 0.0)) + (
                    (w if c == c else 0.0) + (z if d == d else 0.0)
                )
                a, b = a if a == a else 0.0, b if b == b else 0.0
                c, d = c if c == c else 0.0, d if d == d else 0.0
            sums[j] += (u * a + v * b) + (w * c + z * d)
            squares[j] += (u * a * a + v * b * b) + (w * c * c + z * d * d)
    return total


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

    Results have shape (G, D). A few rows at a time are summed about the mean of those before them, so that
    the table is read once: if that mean is far away, the squares of all are so large that no digit of theirs
    is lost. Means and squares are merged as Chan, Golub and LeVeque do. NaN is a missing cell; infinite
    values leave squares or means that are not finite. What a column gets depends on that column alone. Says
    whether a cell was missing.
    """
    width = last - first
    middle, block_cells = np.empty(width), np.empty(width)
    block_sums, block_squares = np.empty(width), np.empty(width)
    missing, careful = 0, False
    for g in range(starts.size - 1):
        into_cells, into_mean, into_squares = (
            cells[g, first:last],
            mean[g, first:last],
            squares[g, first:last],
        )
        begin = starts[g]
        while begin < starts[g + 1]:
            end = min(begin + (ROWS_AT_FIRST if begin == starts[g] else ROWS_AT_A_TIME), starts[g + 1])
            some, theirs = rows[begin:end], weights[begin:end]
            begin, enough = end, theirs.sum() / HEAVIER
            short = 0
            for j in range(width):
                middle[j] = into_mean[j]
                short += into_cells[j] < enough
            if short > 0:
                _means(X, some, theirs, first, block_cells, middle)
                for j in range(width):
                    middle[j] = into_mean[j] if into_cells[j] >= enough else middle[j]
            # Until a cell is missing, none is looked for.
            if not careful:
                total = _sums_about(X, some, theirs, first, middle, None, block_sums, block_squares)
                block_cells[:] = total
                lost = 0
                for j in range(width):
                    lost += not abs(block_sums[j]) < np.inf
                careful = lost > 0
            if careful:
                total = _sums_about(X, some, theirs, first, middle, block_cells, block_sums, block_squares)
            for j in range(width):
                missing += block_cells[j] != total
                before, more = into_cells[j], block_cells[j]
                both = before + more
                offset = block_sums[j] / more if more > 0 else 0.0
                share = more / both if both > 0 else 0.0
                gap = (middle[j] - into_mean[j]) + offset
                about = block_squares[j] - offset * block_sums[j]
                into_mean[j] += gap * share
                into_squares[j] += (0.0 if about < 0 else about) + gap * gap * before * share
                into_cells[j] = both
    return missing > 0
