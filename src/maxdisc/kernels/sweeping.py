"""The sweep: what every number of features says of held-out rows, in one pass over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import inlined, kernel
from maxdisc.kernels.elementary import exp, log
from maxdisc.kernels.prefetching import prefetch_range

#: The loss where the true class is absent from the training rows: as wrong as numbers can say.
NEVER = -np.log(np.finfo(np.float64).tiny)
#: The exponential of minus this is lost beside 1, even a hundred times.
LOST = 42.0
#: Loops over a multiple of this have no remainder, which would be done one by one.
LANES = 8


@inlined
def _gather(
    indptr: Any,
    columns: Any,
    data: Any,
    row: Any,
    parameters: Any,
    place: Any,
    bucket: Any,
    width: Any,
    cells: Any,
) -> None:
    """The evidence of a row of a CSR matrix for all classes, bucket by bucket, in ``cells`` (G x C)."""
    for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
        prefetch_range(parameters, np.uint64(max(place[np.uint32(columns[p])], 0)) * width, width)
    cells[:] = 0.0
    for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
        j = np.uint32(columns[p])
        into, source = np.uint64(np.uint32(bucket[j])) * width, place[j]
        # Without a place is what only rows without weight have.
        if into < cells.size and source >= 0:
            value, start = data[p], np.uint64(source) * width
            for c in range(width):
                cells[into + c] += value * parameters[start + c]


@kernel
def sweep_rows(
    indptr: Any,
    columns: Any,
    data: Any,
    held: Any,
    codes: Any,
    weights: Any,
    natural: Any,
    place: Any,
    bucket: Any,
    baseline: Any,
    log_prior: Any,
    correct: Any,
    loss: Any,
) -> None:
    """Count what the first 1, 2, ... buckets of features get right among rows of a CSR matrix, and the loss.

    Each row's evidence is gathered bucket by bucket and then added up, so one pass serves all sizes. Ties go
    to the first class, as argmax has it.
    """
    n_buckets, n_classes = baseline.shape
    gathered, score = np.empty((n_buckets, n_classes)), np.empty(n_classes)
    cells, parameters = gathered.reshape(n_buckets * n_classes), natural.reshape(natural.size)
    width = np.uint64(n_classes)
    # The scores again, all sizes of a class together: what sizes do side by side need not wait for another.
    padded = (n_buckets + LANES - 1) // LANES * LANES
    by_class = np.zeros((n_classes, padded))
    highest, total = np.empty(padded), np.empty(padded)
    second, earlier = np.empty(padded), np.empty(padded)
    for row in held:
        _gather(indptr, columns, data, row, parameters, place, bucket, width, cells)
        score[:] = log_prior
        for b in range(n_buckets):
            more, less = gathered[b], baseline[b]
            for c in range(n_classes):
                score[c] += more[c] - less[c]
            for c in range(n_classes):
                by_class[c, b] = score[c]
        truth, weight = codes[row], weights[row]
        highest[:] = -np.inf
        second[:] = -np.inf
        for c in range(n_classes):
            if c == truth:
                # Ties go to the first class: none before the truth may be as high.
                earlier[:] = highest
            scores = by_class[c]
            for b in range(padded):
                here, top, next_to = scores[b], highest[b], second[b]
                highest[b] = max(here, top)
                second[b] = max(min(here, top), next_to)
        own = by_class[truth]
        for b in range(n_buckets):
            correct[b] += weight if (own[b] == highest[b]) & (earlier[b] < own[b]) else 0.0
        if log_prior[truth] == -np.inf:
            for b in range(n_buckets):
                loss[b] += weight * NEVER
            continue
        for b in range(n_buckets):
            loss[b] += weight * (highest[b] - own[b])
        # Where no class comes near the highest, as with many features, the exponentials of all sum to 1.
        n_open = n_buckets
        while n_open > 0 and second[n_open - 1] < highest[n_open - 1] - LOST:
            n_open -= 1
        n_lanes = (n_open + LANES - 1) // LANES * LANES
        total[:n_lanes] = 0.0
        for c in range(n_classes):
            scores = by_class[c]
            for b in range(n_lanes):
                total[b] += exp(scores[b] - highest[b])
        for b in range(n_lanes):
            total[b] = log(total[b])
        for b in range(n_open):
            loss[b] += weight * total[b]


@kernel
def band_rows(
    indptr: Any,
    columns: Any,
    data: Any,
    held: Any,
    natural: Any,
    place: Any,
    bucket: Any,
    baseline: Any,
    out: Any,
) -> None:
    """Write the evidence of each bucket of features for some rows of a CSR matrix to ``out`` (n, C, G)."""
    n_buckets, n_classes = baseline.shape
    gathered = np.empty((n_buckets, n_classes))
    cells, parameters = gathered.reshape(n_buckets * n_classes), natural.reshape(natural.size)
    width = np.uint64(n_classes)
    for i in range(len(held)):
        row = held[i]
        _gather(indptr, columns, data, row, parameters, place, bucket, width, cells)
        for b in range(n_buckets):
            for c in range(n_classes):
                out[i, c, b] = gathered[b, c] - baseline[b, c]
