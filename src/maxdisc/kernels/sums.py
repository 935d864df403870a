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
def group_cells(
    indptr: Any,
    columns: Any,
    data: Any,
    rows: Any,
    weights: Any,
    starts: Any,
    first: int,
    last: int,
    cells: Any,
) -> None:
    """Add up the weights of the cells that are not zero, as :func:`group_sums` does with the cells."""
    for g in range(first, last):
        into = cells[g]
        for e in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            row, weight = np.uint64(rows[e]), weights[e]
            for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
                if data[p] != 0:
                    into[np.uint32(columns[p])] += weight
