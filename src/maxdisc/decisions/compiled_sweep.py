"""The sweep: what every number of features says of held-out rows, in one pass over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiled_elementary import exp2, log1p
from maxdisc.numerics.compiled_prefetching import prefetch_range
from maxdisc.numerics.compiling import inlined, kernel

#: The loss where the true class is absent from the training rows: as wrong as numbers can say.
NEVER = -np.log(np.finfo(np.float64).tiny)
#: Log odds are taken to be no higher: single precision has not much more.
FARTHEST = 1e38
#: Loops over a multiple of this have no remainder, which would be done one by one.
LANES = 8
#: What a nat has of them.
BITS = 1.0 / np.log(2.0)


@inlined
def _fetch(columns: Any, begin: Any, end: Any, parameters: Any, spots: Any, shift: Any, width: Any) -> None:
    """Ask for the parameters of some cells of a CSR matrix."""
    for p in range(begin, end):
        place = np.uint64(spots[np.uint32(columns[p])]) & ((np.uint64(1) << shift) - np.uint64(1))
        prefetch_range(parameters, place * width, width)


@inlined
def _gather(
    indptr: Any,
    columns: Any,
    data: Any,
    row: Any,
    parameters: Any,
    spots: Any,
    shift: Any,
    width: Any,
    cells: Any,
) -> None:
    """The evidence of a row of a CSR matrix for all classes, bucket by bucket, in ``cells`` (G x C).

    ``spots`` says of each feature where its parameters are, and from bit ``shift`` on in which bucket it is.
    """
    cells[:] = 0.0
    for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
        spot = np.uint64(spots[np.uint32(columns[p])])
        into = (spot >> shift) * width
        if into < cells.size:
            value, start = data[p], (spot & ((np.uint64(1) << shift) - np.uint64(1))) * width
            for c in range(width):
                cells[into + c] += value * parameters[start + c]


@inlined
def _raise(odds: Any, first: Any, last: Any, highest: Any) -> None:
    """Raise ``highest`` to the odds of the classes from ``first`` to ``last``, if these are higher.

    Four classes at a time: of one alone the compiler makes a loop with branches, which takes ten times as
    long.
    """
    fours = first + (last - first) // 4 * 4
    for c in range(first, fours, 4):
        one, two, three, four = odds[c], odds[c + 1], odds[c + 2], odds[c + 3]
        for b in range(highest.size):
            most = max(highest[b], one[b])
            most = max(most, two[b])
            most = max(most, three[b])
            highest[b] = max(most, four[b])
    for c in range(fours, last):
        for b in range(highest.size):
            highest[b] = max(odds[c, b], highest[b])


@kernel
def sweep_rows(
    indptr: Any,
    columns: Any,
    data: Any,
    held: Any,
    codes: Any,
    weights: Any,
    natural: Any,
    spots: Any,
    shift: Any,
    baseline: Any,
    log_prior: Any,
    correct: Any,
    loss: Any,
) -> None:
    """Count what the first 1, 2, ... buckets of features get right among rows of a CSR matrix, and the loss.

    Each row's evidence is gathered bucket by bucket and then added up, so one pass serves all sizes. What is
    compared is the log odds of every class against the row's own, in bits. Ties go to the first class, as
    argmax has it. Counts are exact, the loss of a row is right to about 1e-7 of itself for each bit of odds.
    """
    n_buckets, n_classes = baseline.shape
    padded = (n_buckets + LANES - 1) // LANES * LANES
    gathered, score = np.zeros((padded, n_classes)), np.empty(n_classes)
    cells, parameters = gathered.reshape(padded * n_classes), natural.reshape(natural.size)
    cells, width, shift = cells[: n_buckets * n_classes], np.uint64(n_classes), np.uint64(shift)
    # Of each class, all sizes together: what sizes do side by side need not wait for another. Rounding keeps
    # signs, so single precision counts the same rows.
    odds = np.empty((n_classes, padded), dtype=np.float32)
    earlier, highest, others = np.empty((3, padded), dtype=np.float32)
    own, rest = np.zeros(padded), np.empty(padded)
    for e in range(held.size):
        row = held[e]
        if e == 0:
            begin, end = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
            _fetch(columns, begin, end, parameters, spots, shift, width)
        truth, weight = codes[row], weights[row]
        if log_prior[truth] == -np.inf:
            for b in range(n_buckets):
                loss[b] += weight * NEVER
            continue
        _gather(indptr, columns, data, row, parameters, spots, shift, width, cells)
        for c in range(n_classes):
            score[c] = log_prior[c]
        for b in range(n_buckets):
            here, less = gathered[b], baseline[b]
            for c in range(n_classes):
                score[c] += here[c] - less[c]
                here[c] = score[c]
            own[b] = score[truth]
        for c in range(n_classes):
            for b in range(padded):
                odds[c, b] = np.float32(min((gathered[b, c] - own[b]) * BITS, FARTHEST))
        # Ties go to the first class: none before the truth may be as high.
        earlier[:] = -np.inf
        _raise(odds, 0, truth, earlier)
        highest[:] = 0.0
        _raise(odds, truth + 1, n_classes, highest)
        for b in range(n_buckets):
            correct[b] += weight if (highest[b] == 0) & (earlier[b] < 0) else 0.0
        for b in range(padded):
            highest[b] = max(earlier[b], highest[b])
        # Memory has nothing to do meanwhile: it fetches the parameters of the next row.
        after = held[min(e + 1, held.size - 1)]
        begin, end = np.uint64(indptr[after]), np.uint64(indptr[after + 1])
        stride = (end - begin) // width + np.uint64(1)
        others[:] = 0.0
        for c in range(n_classes):
            until = min(begin + stride, end)
            _fetch(columns, begin, until, parameters, spots, shift, width)
            begin = until
            if c != truth:
                for b in range(padded):
                    others[b] += exp2(odds[c, b] - highest[b])
        # Where the truth is highest, the loss is what the others add to 1, however little.
        for b in range(padded):
            rest[b] = highest[b] / BITS + log1p(np.float64(others[b]) + (np.float64(exp2(-highest[b])) - 1.0))
        for b in range(n_buckets):
            loss[b] += weight * rest[b]


@kernel
def band_rows(
    indptr: Any,
    columns: Any,
    data: Any,
    held: Any,
    natural: Any,
    spots: Any,
    shift: Any,
    baseline: Any,
    out: Any,
) -> None:
    """Write the evidence of each bucket of features for some rows of a CSR matrix to ``out`` (n, C, G)."""
    n_buckets, n_classes = baseline.shape
    gathered = np.empty((n_buckets, n_classes))
    cells, parameters = gathered.reshape(n_buckets * n_classes), natural.reshape(natural.size)
    width, shift = np.uint64(n_classes), np.uint64(shift)
    for i in range(len(held)):
        row = held[i]
        begin, end = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
        _fetch(columns, begin, end, parameters, spots, shift, width)
        _gather(indptr, columns, data, row, parameters, spots, shift, width, cells)
        for b in range(n_buckets):
            for c in range(n_classes):
                out[i, c, b] = gathered[b, c] - baseline[b, c]
