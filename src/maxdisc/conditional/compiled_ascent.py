"""One sweep of dual coordinate ascent over rows, and the two products that its duality gap needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiling import kernel

#: Newton steps along the line towards the probabilities of a row; the first step is a good guess.
LINE_STEPS = 3
#: Smallest probability inside a logarithm in single precision.
TINY = np.float32(1e-12)


@kernel
def sweep_rows(
    indptr: Any,
    indices: Any,
    data: Any,
    order: Any,
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
    least_change: Any,
) -> None:
    """Move the dual of each row, in the order given, along the line to its current probabilities.

    Rows are centred without being written down: ``weights`` are those of raw rows, ``residual`` (C,) is what
    the classes have beyond the duals, ``center_score`` (C,) the score of the mean row, ``overlap`` (n,) the
    product of each row with the mean row. Rows that ask for no more than ``least_change`` stay as they are.
    """
    n_classes = weights.shape[1]
    # One offset for all rows, or one for each.
    offset_step = 0 if offset.shape[0] == 1 else 1
    score = np.empty(n_classes, dtype=np.float32)
    step = np.empty(n_classes, dtype=np.float32)
    one = np.float32(1.0)
    for place in range(order.size):
        i = order[place]
        shift = (center_square - overlap[i]) / ridge
        for c in range(n_classes):
            score[c] = offset[i * offset_step, c] + bias[c] + residual[c] * shift - center_score[c]
        for at in range(indptr[i], indptr[i + 1]):
            value, column = data[at], indices[at]
            for c in range(n_classes):
                score[c] += value * weights[column, c]
        most = score[0]
        for c in range(1, n_classes):
            most = max(most, score[c])
        total = np.float32(0.0)
        for c in range(n_classes):
            step[c] = np.exp(score[c] - most)
            total += step[c]
        squares, product, change = np.float32(0.0), np.float32(0.0), np.float32(0.0)
        for c in range(n_classes):
            step[c] = step[c] / total - duals[i, c]
            squares += step[c] * step[c]
            product += step[c] * (score[c] - most)
            change += abs(step[c])
        if change <= least_change:
            continue
        curvature = row_weight[i] * square[i] / ridge
        share = one / (one + np.float32(0.25) * curvature)
        for _ in range(LINE_STEPS):
            slope = product - curvature * share * squares
            bend = curvature * squares
            for c in range(n_classes):
                there = max(duals[i, c] + share * step[c], TINY)
                slope -= step[c] * np.log(there)
                bend += step[c] * step[c] / there
            share = min(max(share + slope / bend, np.float32(0.01) * share), one)
        for c in range(n_classes):
            duals[i, c] += share * step[c]
            step[c] *= -share * row_weight[i]
            residual[c] += step[c]
            step[c] /= ridge
            center_score[c] += overlap[i] * step[c]
        for at in range(indptr[i], indptr[i + 1]):
            value, column = data[at], indices[at]
            for c in range(n_classes):
                weights[column, c] += value * step[c]


@kernel
def score_rows(indptr: Any, indices: Any, data: Any, weights: Any, out: Any) -> None:
    """Add the products of sparse rows (n, K) and weights (K, C) to ``out`` (n, C)."""
    for i in range(out.shape[0]):
        for at in range(indptr[i], indptr[i + 1]):
            value, column = data[at], indices[at]
            for c in range(out.shape[1]):
                out[i, c] += value * weights[column, c]


@kernel
def sum_columns(indptr: Any, indices: Any, data: Any, values: Any, out: Any) -> None:
    """Add the products of the columns of sparse rows (n, K) and ``values`` (n, C) to ``out`` (K, C)."""
    for i in range(values.shape[0]):
        for at in range(indptr[i], indptr[i + 1]):
            value, column = data[at], indices[at]
            for c in range(values.shape[1]):
                out[column, c] += value * values[i, c]
