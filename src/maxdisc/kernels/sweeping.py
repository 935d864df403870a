"""The sweep: what every number of features says of held-out rows, in one pass over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import kernel
from maxdisc.kernels.elementary import exp, log

#: The loss where the true class is absent from the training rows: as wrong as numbers can say.
NEVER = -np.log(np.finfo(np.float64).tiny)
#: The exponential of minus this is lost beside 1, even a hundred times.
LOST = 42.0


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
    highest, total = np.empty(n_buckets), np.empty(n_buckets)
    undecided = np.empty(n_buckets, dtype=np.int64)
    for row in held:
        cells[:] = 0.0
        for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            j = np.uint32(columns[p])
            at, source = np.uint32(bucket[j]), place[j]
            # Without a place is what only rows without weight have.
            if at < n_buckets and source >= 0:
                value, into, source = data[p], np.uint64(at) * width, np.uint64(source) * width
                for c in range(width):
                    cells[into + c] += value * parameters[source + c]
        score[:] = log_prior
        for b in range(n_buckets):
            for c in range(n_classes):
                score[c] += gathered[b, c] - baseline[b, c]
                gathered[b, c] = score[c]
        # One class after the other: what buckets do side by side need not wait for one another.
        highest[:] = gathered[:, 0]
        for c in range(1, n_classes):
            for b in range(n_buckets):
                highest[b] = gathered[b, c] if gathered[b, c] > highest[b] else highest[b]
        truth, weight = codes[row], weights[row]
        impossible = log_prior[truth] == -np.inf
        n_undecided = 0
        for b in range(n_buckets):
            if gathered[b, truth] == highest[b]:
                first = 0
                while gathered[b, first] < highest[b]:
                    first += 1
                if first == truth:
                    correct[b] += weight
            loss[b] += weight * (NEVER if impossible else highest[b] - gathered[b, truth])
            # Where no class comes near the highest, the exponentials of all sum to 1: others move up.
            near = 0
            for c in range(n_classes):
                below = gathered[b, c] - highest[b]
                near += below > -LOST
                cells[n_undecided * n_classes + c] = below
            undecided[n_undecided] = b
            n_undecided += near > 1
        if impossible:
            continue
        for i in range(n_undecided * n_classes):
            cells[i] = exp(cells[i])
        total[:n_undecided] = 0.0
        for c in range(n_classes):
            for i in range(n_undecided):
                total[i] += gathered[i, c]
        for i in range(n_undecided):
            total[i] = log(total[i])
        for i in range(n_undecided):
            loss[undecided[i]] += weight * total[i]


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
        cells[:] = 0.0
        for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            j = np.uint32(columns[p])
            at, source = np.uint32(bucket[j]), place[j]
            # Without a place is what only rows without weight have.
            if at < n_buckets and source >= 0:
                value, into, source = data[p], np.uint64(at) * width, np.uint64(source) * width
                for c in range(width):
                    cells[into + c] += value * parameters[source + c]
        for b in range(n_buckets):
            for c in range(n_classes):
                out[i, c, b] = gathered[b, c] - baseline[b, c]
