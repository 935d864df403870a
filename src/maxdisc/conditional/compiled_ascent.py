"""One sweep of dual coordinate ascent over rows, and the two products that its duality gap needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiled_prefetching import prefetch
from maxdisc.numerics.compiling import inlined, kernel

#: Newton steps along the line towards the probabilities of a row; the first step is a good guess.
LINE_STEPS = 3
#: Up to this curvature the first step is taken as it is: it is a little too long, which speeds up sweeps.
FLAT = 1.0
#: Smallest probability inside a logarithm.
TINY = 1e-12
#: Cells of a row that are multiplied together: the sums are read and written once for all of them.
TOGETHER = 4
#: Cells of four bytes that processors fetch at once; rows are asked for two rows early.
LINE = 16
AHEAD = 2


@inlined
def _add_product(indices: Any, data: Any, first: Any, last: Any, weights: Any, out: Any) -> None:
    """Add the product of one sparse row and ``weights`` (K, C) to ``out`` (C,)."""
    n_classes, many = np.uint64(weights.shape[1]), np.uint64(TOGETHER)
    at, end = np.uint64(first), np.uint64(last)
    while at + many <= end:
        v0, v1, v2, v3 = data[at], data[at + np.uint64(1)], data[at + np.uint64(2)], data[at + np.uint64(3)]
        i0, i1 = np.uint64(indices[at]), np.uint64(indices[at + np.uint64(1)])
        i2, i3 = np.uint64(indices[at + np.uint64(2)]), np.uint64(indices[at + np.uint64(3)])
        for c in range(n_classes):
            out[c] += (v0 * weights[i0, c] + v1 * weights[i1, c]) + (
                v2 * weights[i2, c] + v3 * weights[i3, c]
            )
        at += many
    while at < end:
        value, column = data[at], np.uint64(indices[at])
        for c in range(n_classes):
            out[c] += value * weights[column, c]
        at += np.uint64(1)


@inlined
def _add_outer(indices: Any, data: Any, first: Any, last: Any, values: Any, out: Any) -> None:
    """Add the outer product of one sparse row and ``values`` (C,) to ``out`` (K, C)."""
    for at in range(np.uint64(first), np.uint64(last)):
        value, column = data[at], np.uint64(indices[at])
        for c in range(np.uint64(out.shape[1])):
            out[column, c] += value * values[c]


@kernel
def sweep_rows(
    indptr: Any,
    indices: Any,
    data: Any,
    order: Any,
    codes: Any,
    row_weight: Any,
    offset: Any,
    bias: Any,
    square: Any,
    overlap: Any,
    center_square: Any,
    ridge: Any,
    weights: Any,
    residual: Any,
    center_score: Any,
    duals: Any,
    least_apart: Any,
) -> Any:
    """Move the dual of each row, in the order given, along the line to its current probabilities.

    Rows are centred without being written down: ``weights`` are those of raw rows, ``residual`` (C,) is what
    the classes have beyond the duals, ``center_score`` (C,) the score of the mean row, ``overlap`` (n,) the
    product of each row with the mean row. Rows that are apart by no more than ``least_apart`` stay as they
    are. Returns how far duals and probabilities were apart, an estimate of the gap, and the loss, both summed
    over the rows as they were found. All arrays are of one precision.
    """
    n_classes = weights.shape[1]
    # One offset for all rows, or one for each.
    offset_step = 0 if offset.shape[0] == 1 else 1
    score = np.empty(n_classes, dtype=weights.dtype)
    step = np.empty(n_classes, dtype=weights.dtype)
    kind = weights.dtype.type
    zero, one, quarter, tiny = kind(0.0), kind(1.0), kind(0.25), kind(TINY)
    all_apart, all_loss = 0.0, 0.0
    for place in range(order.size):
        i = order[place]
        if place + AHEAD < order.size:
            later = order[place + AHEAD]
            for at in range(np.uint64(indptr[later]), np.uint64(indptr[later + 1]), np.uint64(LINE)):
                prefetch(indices, at)
                prefetch(data, at)
        shift = (center_square - overlap[i]) / ridge
        for c in range(n_classes):
            score[c] = offset[i * offset_step, c] + bias[c] + residual[c] * shift - center_score[c]
        _add_product(indices, data, indptr[i], indptr[i + 1], weights, score)
        most = score[0]
        for c in range(1, n_classes):
            most = max(most, score[c])
        total = zero
        for c in range(n_classes):
            score[c] -= most
            step[c] = np.exp(score[c])
            total += step[c]
        squares, product, apart = zero, zero, zero
        for c in range(n_classes):
            there = step[c] / total
            step[c] = there - duals[i, c]
            squares += step[c] * step[c]
            product += step[c] * score[c]
            apart += step[c] * step[c] / (there + duals[i, c] + tiny)
        all_apart += row_weight[i] * apart
        all_loss += row_weight[i] * (np.log(total) - score[codes[i]])
        if apart <= least_apart:
            continue
        curvature = row_weight[i] * square[i] / ridge
        share = one / (one + quarter * curvature)
        if curvature > FLAT:
            for _ in range(LINE_STEPS):
                slope = product - curvature * share * squares
                bend = curvature * squares
                for c in range(n_classes):
                    there = max(duals[i, c] + share * step[c], tiny)
                    slope -= step[c] * np.log(there)
                    bend += step[c] * step[c] / there
                share = min(max(share + slope / bend, kind(0.01) * share), one)
        for c in range(n_classes):
            duals[i, c] += share * step[c]
            step[c] *= -share * row_weight[i]
            residual[c] += step[c]
            step[c] /= ridge
            center_score[c] += overlap[i] * step[c]
        _add_outer(indices, data, indptr[i], indptr[i + 1], step, weights)
    return all_apart, all_loss


@kernel
def has_repeats(indptr: Any, indices: Any, last_row: Any) -> bool:
    """Return whether a row has a column twice; ``last_row`` (K,) is filled with -1."""
    for i in range(indptr.size - 1):
        for at in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            column = np.uint64(indices[at])
            if last_row[column] == i:
                return True
            last_row[column] = i
    return False


@kernel
def measure_rows(indptr: Any, indices: Any, data: Any, center: Any, square: Any, overlap: Any) -> None:
    """Add the squares of sparse rows to ``square`` (n,), their products with ``center`` to ``overlap``."""
    for i in range(square.size):
        for at in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = np.float64(data[at])
            square[i] += value * value
            overlap[i] += value * center[np.uint64(indices[at])]


@kernel
def score_rows(indptr: Any, indices: Any, data: Any, weights: Any, out: Any) -> None:
    """Add the products of sparse rows (n, K) and weights (K, C) to ``out`` (n, C)."""
    for i in range(out.shape[0]):
        _add_product(indices, data, indptr[i], indptr[i + 1], weights, out[i])


@kernel
def sum_columns(indptr: Any, indices: Any, data: Any, values: Any, out: Any) -> None:
    """Add the products of the columns of sparse rows (n, K) and ``values`` (n, C) to ``out`` (K, C)."""
    for i in range(values.shape[0]):
        _add_outer(indices, data, indptr[i], indptr[i + 1], values[i], out)
