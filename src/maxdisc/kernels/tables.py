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
def _parameters(kind: Any, mean: Any, natural: Any, log_partition: Any) -> None:
    """From the means of all classes to natural parameters and log normalisers."""
    if kind == 0:
        for c in range(mean.size):
            natural[c] = _log(mean[c])
            log_partition[c] = mean[c]
    elif kind == 1:
        for c in range(mean.size):
            natural[c] = -1.0 / mean[c]
            log_partition[c] = _log(mean[c])
    elif kind == 2:
        for c in range(mean.size):
            log_partition[c] = _log(1.0 + mean[c])
            natural[c] = _log(mean[c]) - log_partition[c]
    else:
        for c in range(mean.size):
            log_partition[c] = -_log(1.0 - mean[c])
            natural[c] = _log(mean[c]) + log_partition[c]


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
    return product - natural_1 * mean_1


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
