"""Natural parameters, normalisers and divergences of one-statistic families; and the sweep.

All classes of a feature stand together: the sweep reads its row of ``natural``, whole, for every cell in
which the feature occurs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import inlined, kernel

#: The families whose parameters are elementary functions of the mean, and their numbers here.
KINDS = {"poisson": 0, "exponential": 1, "geometric": 2, "bernoulli": 3}
#: As in :mod:`maxdisc.divergences`.
NOISE = 1e-18

ONE = np.uint64(1)


@inlined
def _log(x: Any) -> Any:
    """Natural logarithm of a normal positive number, to one unit in the last place; it vectorises.

    With x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2): a polynomial in (f / (2 + f))^2, as in fdlibm.
    """
    bits = np.float64(x).view(np.int64)
    exponent = (bits - np.int64(0x3FE6A09E667F3BCD)) >> 52
    f = np.int64(bits - (exponent << 52)).view(np.float64) - 1.0
    k = np.float64(exponent)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = 1.818357216161805012e-01 + w * 1.479819860511658591e-01
    odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * odd))
    half = 0.5 * f * f
    small = s * (half + even + odd) + k * 1.90821492927058770002e-10
    return k * 6.93147180369123816490e-01 - ((half - small) - f)


@inlined
def _log1p(x: Any) -> Any:
    """log(1 + x) for x > -1, with what rounding took from 1 + x given back."""
    w = 1.0 + x
    return _log(w) - ((w - 1.0) - x) / w


@inlined
def _parameters(kind: Any, mean: Any, natural: Any, log_partition: Any) -> None:
    """From means to natural parameters and log normalisers, all of one length."""
    if kind == 0:
        for i in range(mean.size):
            natural[i] = _log(mean[i])
            log_partition[i] = mean[i]
    elif kind == 1:
        for i in range(mean.size):
            natural[i] = -1.0 / mean[i]
            log_partition[i] = _log(mean[i])
    elif kind == 2:
        for i in range(mean.size):
            natural[i] = -_log1p(1.0 / mean[i])
            log_partition[i] = _log1p(mean[i])
    else:
        for i in range(mean.size):
            log_partition[i] = -_log1p(-min(mean[i], 1.0 - 1e-15))
            natural[i] = _log(mean[i]) + log_partition[i]


@inlined
def _score(mean: Any, natural: Any, prior: Any) -> Any:
    """JS_GM: the covariance of natural parameters and means over classes, taken about those of one class."""
    natural_0, mean_0 = natural[0], mean[0]
    product, natural_1, mean_1 = 0.0, 0.0, 0.0
    for c in range(prior.size):
        weighted = prior[c] * (natural[c] - natural_0)
        product += weighted * (mean[c] - mean_0)
        natural_1 += weighted
        mean_1 += prior[c] * (mean[c] - mean_0)
    return _settled(product - natural_1 * mean_1)


@inlined
def _settled(score: Any) -> Any:
    """Rounding may not leave a trace of what says nothing."""
    return score if score > NOISE else 0.0


@kernel
def tables_from_sums(
    kind: int,
    sums: Any,
    class_weights: Any,
    prior: Any,
    number: Any,
    target: Any,
    informative: Any,
    start: int,
    stop: int,
    natural: Any,
    log_partition: Any,
    scores: Any,
) -> None:
    """Parameters (C, D) and scores (D,) of the features from ``start`` to ``stop``, from class sums (C, D).

    ``number`` pseudo-rows of mean ``target`` are added to each class; features that are not ``informative``
    get zeros.
    """
    width = 64
    mean_0, mean, natural_0 = np.empty(width), np.empty(width), np.empty(width)
    mean_1, natural_1 = np.empty(width), np.empty(width)
    for a in range(start, stop, width):
        b = min(a + width, stop)
        n = b - a
        mean_1[:] = 0.0
        natural_1[:] = 0.0
        scores[a:b] = 0.0
        for c in range(prior.size):
            for i in range(n):
                j = a + i
                mean[i] = max((sums[c, j] + number[j] * target[j]) / (class_weights[c] + number[j]), 1e-300)
            _parameters(kind, mean[:n], natural[c, a:b], log_partition[c, a:b])
            if c == 0:
                mean_0[:n] = mean[:n]
                natural_0[:n] = natural[c, a:b]
            for i in range(n):
                weighted = prior[c] * (natural[c, a + i] - natural_0[i])
                scores[a + i] += weighted * (mean[i] - mean_0[i])
                natural_1[i] += weighted
                mean_1[i] += prior[c] * (mean[i] - mean_0[i])
        for i in range(n):
            scores[a + i] = _settled(scores[a + i] - natural_1[i] * mean_1[i])
        for j in range(a, b):
            if not informative[j]:
                scores[j] = 0.0
                for c in range(prior.size):
                    natural[c, j] = 0.0
                    log_partition[c, j] = 0.0


@kernel
def class_sums(
    indptr: Any, rows: Any, data: Any, codes: Any, weights: Any, start: int, stop: int, sums: Any
) -> None:
    """Weighted sums (C, D) of the columns from ``start`` to ``stop`` of a CSC matrix, by class."""
    for j in range(start, stop):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            row = np.uint32(rows[p])
            sums[np.uint32(codes[row]), j] += weights[row] * data[p]


@kernel
def usage(indptr: Any, rows: Any, data: Any, weights: Any, sums: Any, nonzero: Any) -> None:
    """For each column of a CSC matrix: the weighted sum, and the weight of the cells that are not zero."""
    for j in range(sums.size):
        total, stored = 0.0, 0.0
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            weight = weights[np.uint32(rows[p])]
            total += weight * data[p]
            if data[p] != 0:
                stored += weight
        sums[j] = total
        nonzero[j] = stored


@kernel
def tables_from_columns(
    kind: int,
    indptr: Any,
    rows: Any,
    data: Any,
    codes: Any,
    weights: Any,
    class_weights: Any,
    prior: Any,
    number: Any,
    target: Any,
    informative: Any,
    natural: Any,
    log_partition: Any,
    scores: Any,
) -> None:
    """Parameters (D, C) and scores (D,) from the columns of a CSC matrix, class codes and row weights.

    ``number`` pseudo-rows of mean ``target`` are added to each class; features that are not ``informative``
    get zeros.
    """
    n_classes = prior.size
    sums = np.empty(n_classes)
    mean = np.empty(n_classes)
    for j in range(scores.size):
        if not informative[j]:
            natural[j, :] = 0.0
            log_partition[j, :] = 0.0
            scores[j] = 0.0
            continue
        sums[:] = 0.0
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            row = np.uint32(rows[p])
            sums[np.uint32(codes[row])] += weights[row] * data[p]
        pseudo = number[j] * target[j]
        for c in range(n_classes):
            mean[c] = max((sums[c] + pseudo) / (class_weights[c] + number[j]), 1e-300)
        _parameters(kind, mean, natural[j], log_partition[j])
        scores[j] = _score(mean, natural[j], prior)


@kernel
def bucket_totals(log_partition: Any, bucket: Any, out: Any) -> None:
    """Sums of the log normalisers over the features of each bucket, shape (G, C)."""
    out[:] = 0.0
    for j in range(bucket.size):
        if bucket[j] < out.shape[0]:
            for c in range(out.shape[1]):
                out[bucket[j], c] += log_partition[j, c]


@kernel
def sweep_rows(
    indptr: Any,
    columns: Any,
    data: Any,
    held: Any,
    codes: Any,
    weights: Any,
    natural: Any,
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
    gathered = np.empty((n_buckets, n_classes))
    score = np.empty(n_classes)
    for row in held:
        gathered[:] = 0.0
        for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            j = np.uint32(columns[p])
            at = np.uint32(bucket[j])
            if at < n_buckets:
                value = data[p]
                for c in range(n_classes):
                    gathered[at, c] += value * natural[j, c]
        truth = codes[row]
        score[:] = log_prior
        for b in range(n_buckets):
            for c in range(n_classes):
                score[c] += gathered[b, c] - baseline[b, c]
            best, highest = 0, score[0]
            for c in range(1, n_classes):
                if score[c] > highest:
                    best, highest = c, score[c]
            total = 0.0
            for c in range(n_classes):
                # What is less is lost in the sum, and there is much of it.
                if score[c] > highest - 40.0:
                    total += np.exp(score[c] - highest)
            if best == truth:
                correct[b] += weights[row]
            # A class absent from the training rows has probability 0: as wrong as numbers can say.
            loss[b] += weights[row] * min(highest + np.log(total) - score[truth], 708.3964185322641)
