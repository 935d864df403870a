"""Scores of the rows of a CSR matrix: one pass over its cells, of which only those of kept columns count."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiling import kernel

FOUR = np.uint64(4)


@kernel
def score_rows(
    indptr: Any,
    columns: Any,
    data: Any,
    place: Any,
    natural: Any,
    baseline: Any,
    log_prior: Any,
    first: int,
    last: int,
    out: Any,
) -> None:
    """Write the scores of the rows from ``first`` to ``last`` to ``out`` (N, C).

    ``place`` says where a column is among the kept ones, or -1. ``natural`` (K, L x C) holds what multiplies
    the value of a cell, for all classes, and then what multiplies its square, if anything does.
    """
    width, stride = np.uint64(out.shape[1]), np.uint64(natural.shape[1])
    parameters, score = natural.reshape(natural.size), np.empty(out.shape[1])
    longest = 0
    for row in range(first, last):
        longest = max(longest, indptr[row + 1] - indptr[row])
    # Terms are gathered first: no one can guess which cells are kept, and a wrong guess takes long.
    source, value = np.empty(2 * longest + 4, dtype=np.uint64), np.empty(2 * longest + 4)
    for row in range(first, last):
        n = np.uint64(0)
        for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            at, x = place[np.uint32(columns[p])], np.float64(data[p])
            source[n] = np.uint64(at) * stride
            value[n] = x
            n += np.uint64(at >= 0)
            if stride > width:
                source[n] = np.uint64(at) * stride + width
                value[n] = x * x
                n += np.uint64(at >= 0)
        # Four at a time, so that none waits alone for its parameters; the last may be of no weight.
        source[n : n + FOUR] = 0
        value[n : n + FOUR] = 0.0
        score[:] = 0.0
        for i in range(np.uint64(0), n, FOUR):
            j, k, m = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
            x, y, z, w = value[i], value[j], value[k], value[m]
            a, b, d, e = source[i], source[j], source[k], source[m]
            for c in range(width):
                score[c] += (x * parameters[a + c] + y * parameters[b + c]) + (
                    z * parameters[d + c] + w * parameters[e + c]
                )
        for c in range(width):
            out[row, c] = log_prior[c] + (score[c] - baseline[c])
