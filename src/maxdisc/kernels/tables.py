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
#: The loss where the true class is absent from the training rows: as wrong as numbers can say.
NEVER = -np.log(np.finfo(np.float64).tiny)

#: The exponential of minus this is lost beside 1, even a hundred times.
LOST = 42.0
#: Two to this power is the number of different pseudo-row numbers whose consequences are kept at a time.
SLOT_BITS = 10


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
def _exp(x: Any) -> Any:
    """Exponential of a number that is not positive, to about 1e-10; it vectorises. At -700 it is level."""
    x = x if x > -700.0 else -700.0
    # Adding 1.5 * 2^52 leaves the nearest integer in the last bits.
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    r = x - (shifted - 6755399441055744.0) * 0.6931471805599453
    # Taylor's polynomial; |r| is at most half of log 2.
    p = 2.7557319223985893e-06 * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)


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
def _score(mean: Any, natural: Any, prior: Any, heaviest: Any) -> Any:
    """JS_GM: the covariance of natural parameters and means over classes, taken about those of one class."""
    natural_0, mean_0 = natural[heaviest], mean[heaviest]
    product, natural_1, mean_1 = 0.0, 0.0, 0.0
    for c in range(prior.size):
        weighted = prior[c] * (natural[c] - natural_0)
        product += weighted * (mean[c] - mean_0)
        natural_1 += weighted
        mean_1 += prior[c] * (mean[c] - mean_0)
    return _settled(product, natural_1 * mean_1)


@inlined
def _settled(product: Any, cross: Any) -> Any:
    """The difference, unless rounding alone may have made it: what says nothing leaves no trace."""
    return product - cross if product - cross > NOISE + 1e-14 * abs(cross) else 0.0


@kernel
def scores_from_sums(
    kind: int,
    sums: Any,
    class_weights: Any,
    prior: Any,
    number: Any,
    target: Any,
    informative: Any,
    start: int,
    stop: int,
    scores: Any,
) -> None:
    """Scores of the features from ``start`` to ``stop``, from class sums (C, D).

    ``number`` pseudo-rows of mean ``target`` are added to each class; features that are not ``informative``
    score 0. Some features at a time, so that the innermost loops run over features, not over classes.
    """
    width = 64
    mean, natural, unused = np.empty(width), np.empty(width), np.empty(width)
    mean_0, natural_0 = np.empty(width), np.empty(width)
    mean_1, natural_1 = np.empty(width), np.empty(width)
    heaviest = np.argmax(prior)
    for a in range(start, stop, width):
        n = min(width, stop - a)
        mean_1[:] = 0.0
        natural_1[:] = 0.0
        scores[a : a + n] = 0.0
        for turn in range(prior.size):
            c = (heaviest + turn) % prior.size
            for i in range(n):
                j = a + i
                mean[i] = max((sums[c, j] + number[j] * target[j]) / (class_weights[c] + number[j]), 1e-300)
            _parameters(kind, mean, natural, unused)
            if turn == 0:
                mean_0[:] = mean
                natural_0[:] = natural
            for i in range(n):
                weighted = prior[c] * (natural[i] - natural_0[i])
                scores[a + i] += weighted * (mean[i] - mean_0[i])
                natural_1[i] += weighted
                mean_1[i] += prior[c] * (mean[i] - mean_0[i])
        for i in range(n):
            score = _settled(scores[a + i], natural_1[i] * mean_1[i])
            scores[a + i] = score if informative[a + i] else 0.0


@kernel
def tables_from_sums(
    kind: int,
    sums: Any,
    class_weights: Any,
    number: Any,
    target: Any,
    informative: Any,
    columns: Any,
    start: int,
    stop: int,
    natural: Any,
    log_partition: Any,
) -> None:
    """Parameters (C, K) of the features ``columns[start:stop]``, from class sums (C, D) smoothed as above."""
    mean, rows, pseudo = np.empty(stop - start), np.empty(stop - start), np.empty(stop - start)
    for i in range(mean.size):
        rows[i] = number[columns[start + i]]
        pseudo[i] = rows[i] * target[columns[start + i]]
    for c in range(class_weights.size):
        for i in range(mean.size):
            mean[i] = sums[c, np.uint64(columns[start + i])]
        for i in range(mean.size):
            mean[i] = max((mean[i] + pseudo[i]) / (class_weights[c] + rows[i]), 1e-300)
        _parameters(kind, mean, natural[c, start:stop], log_partition[c, start:stop])
    for i in range(start, stop):
        if not informative[columns[i]]:
            natural[:, i] = 0.0
            log_partition[:, i] = 0.0


@kernel
def class_sums(
    indptr: Any,
    rows: Any,
    data: Any,
    codes: Any,
    weights: Any,
    start: int,
    stop: int,
    sums: Any,
    nonzero: Any,
) -> None:
    """Sums (C, D), and weights of the cells that are not zero (D,), of some columns of a CSC matrix."""
    for j in range(start, stop):
        stored = 0.0
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            row = np.uint32(rows[p])
            sums[np.uint32(codes[row]), j] += weights[row] * data[p]
            if data[p] != 0:
                stored += weights[row]
        nonzero[j] = stored


@kernel
def cell_ends(indptr: Any, rows: Any, codes: Any, n_classes: int, ends: Any) -> None:
    """Before each column of a CSC matrix, and in all: how many classes have cells in a column."""
    seen = np.full(n_classes, -1, dtype=np.int64)
    filled = 0
    ends[0] = 0
    for j in range(indptr.size - 1):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            c = np.uint64(codes[np.uint32(rows[p])])
            filled += seen[c] != j
            seen[c] = j
        ends[j + 1] = filled


@kernel
def fold_cells(
    indptr: Any,
    rows: Any,
    data: Any,
    codes: Any,
    folds: Any,
    weights: Any,
    n_classes: int,
    start: int,
    stop: int,
    ends: Any,
    classes: Any,
    sums: Any,
    pooled: Any,
    nonzero: Any,
    occurs: Any,
) -> None:
    """For each of V folds, the class sums over the rows of all *other* folds, of some columns.

    ``folds`` says for each row of a CSC matrix which fold holds it out; V, if none does. The cells of column
    j are those from ``ends[j]`` to ``ends[j + 1]``, see :func:`cell_ends`. Their classes are the same for all
    folds; their sums are ``sums[f]``, some of them 0. Besides, for each fold and column: the sum over all
    classes, the weight of the cells that are not zero, and whether rows of the fold have the column.
    """
    n_folds = pooled.shape[0]
    by_fold, others = np.zeros((n_classes, n_folds + 1)), np.empty(n_folds + 1)
    stored, held = np.empty(n_folds + 1), np.empty(n_folds + 1, dtype=np.uint8)
    seen, found = np.full(n_classes, -1, dtype=np.int64), np.empty(n_classes + 1, dtype=np.int32)
    for j in range(start, stop):
        stored[:] = 0.0
        held[:] = 0
        n_found = np.uint64(0)
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            row = np.uint32(rows[p])
            fold, c, weight = np.uint64(folds[row]), np.uint64(codes[row]), weights[row]
            # Written whether it is new or not: there is no branch to be guessed wrong.
            found[n_found] = c
            n_found += np.uint64(seen[c] != j)
            seen[c] = j
            by_fold[c, fold] += weight * data[p]
            stored[fold] += weight if data[p] != 0 else 0.0
            held[fold] = 1
        _sum_others(stored, others)
        for f in range(n_folds):
            pooled[f, j] = 0.0
            nonzero[f, j] = others[f]
            occurs[f, j] = held[f]
        for i in range(n_found):
            at, c = np.uint64(ends[j]) + i, np.uint64(found[i])
            classes[at] = c
            _sum_others(by_fold[c], others)
            by_fold[c] = 0.0
            for f in range(n_folds):
                sums[f, at] = others[f]
                pooled[f, j] += others[f]


@inlined
def _sum_others(values: Any, out: Any) -> None:
    """For each entry the sum of all the others: never the whole less one, which would leave rounding."""
    behind = 0.0
    for f in range(values.size - 1, -1, -1):
        out[f] = behind
        behind += values[f]
    before = 0.0
    for f in range(values.size):
        out[f] += before
        before += values[f]


@kernel
def tables_from_cells(
    kind: int,
    cell_ends: Any,
    cell_classes: Any,
    cell_sums: Any,
    place: Any,
    class_weights: Any,
    prior: Any,
    number: Any,
    target: Any,
    informative: Any,
    natural: Any,
    log_partition: Any,
    scores: Any,
) -> None:
    """Log normalisers (D, C) and scores (D,) from the class sums that are not zero; see :func:`fold_cells`.

    ``number`` pseudo-rows of mean ``target`` are added to each class; features that are not ``informative``
    get zeros. Natural parameters are kept for the features that have a place, and there.
    """
    n_classes = prior.size
    sums, mean, parameters = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    heaviest = np.argmax(prior)
    for j in range(scores.size):
        if not informative[j]:
            if place[j] >= 0:
                natural[place[j], :] = 0.0
            log_partition[j, :] = 0.0
            scores[j] = 0.0
            continue
        sums[:] = number[j] * target[j]
        for p in range(np.uint64(cell_ends[j]), np.uint64(cell_ends[j + 1])):
            sums[np.uint32(cell_classes[p])] += cell_sums[p]
        for c in range(n_classes):
            mean[c] = max(sums[c] / (class_weights[c] + number[j]), 1e-300)
        _parameters(kind, mean, parameters, log_partition[j])
        scores[j] = _score(mean, parameters, prior, heaviest)
        if place[j] >= 0:
            natural[place[j], :] = parameters


@inlined
def _slot_of(most: Any, k: Any) -> Any:
    """A number of pseudo-rows is the largest of them over a whole number, where rows have equal weights."""
    return np.uint32(np.uint64(min(most / k + 0.5, 2.0**52)) & np.uint64((1 << SLOT_BITS) - 1))


@inlined
def _fill(
    slot: Any,
    keys: Any,
    known: Any,
    logs: Any,
    shares: Any,
    sums: Any,
    k: Any,
    class_weights: Any,
    prior: Any,
) -> None:
    """Keep in a slot what depends on the number of pseudo-rows alone: many features have the same.

    ``logs`` log(n_c + k) less that of the heaviest class, ``shares`` 1 / (n_c + k), and the prior means of
    shares, logs and their products.
    """
    if keys[slot] != k or known[slot] == 0:
        keys[slot] = k
        known[slot] = 1
        first = np.log(class_weights[np.argmax(prior)] + k)
        shares_1, logs_1, products = 0.0, 0.0, 0.0
        for c in range(prior.size):
            logs[slot, c] = np.log(class_weights[c] + k) - first
            shares[slot, c] = 1.0 / (class_weights[c] + k)
            shares_1 += prior[c] * shares[slot, c]
            logs_1 += prior[c] * logs[slot, c]
            products += prior[c] * shares[slot, c] * logs[slot, c]
        sums[slot, 0] = shares_1
        sums[slot, 1] = logs_1
        sums[slot, 2] = products
        sums[slot, 3] = first


@kernel
def poisson_tables(
    cell_ends: Any,
    cell_classes: Any,
    cell_sums: Any,
    place: Any,
    class_weights: Any,
    prior: Any,
    number: Any,
    target: Any,
    informative: Any,
    natural: Any,
    scores: Any,
) -> None:
    """What :func:`tables_from_cells` does, for Poisson, in time that hardly grows with the number of classes.

    With k pseudo-rows of mean m, log rates are ``log(k m + sum) - log(n_c + k)``. The second part is shared
    by all features of one k, and most sums are 0: what is left is one logarithm for each sum that is not.
    """
    n_classes = prior.size
    keys, known = np.zeros(1 << SLOT_BITS), np.zeros(1 << SLOT_BITS, dtype=np.uint8)
    logs, shares = np.empty((1 << SLOT_BITS, n_classes)), np.empty((1 << SLOT_BITS, n_classes))
    sums = np.empty((1 << SLOT_BITS, 4))
    most, width = number.max(), 64
    more = np.empty(width * n_classes)
    for j in range(scores.size):
        if j % width == 0:
            # The logarithms of some features at a time: side by side they take a fraction of the time.
            before = np.uint64(cell_ends[j])
            for i in range(j, min(j + width, scores.size)):
                pseudo = max(number[i] * target[i], 1e-300)
                for p in range(np.uint64(cell_ends[i]), np.uint64(cell_ends[i + 1])):
                    more[p - before] = min(cell_sums[p] / pseudo, 1e300)
            for i in range(np.uint64(cell_ends[min(j + width, scores.size)]) - before):
                more[i] = _log1p(more[i])
        at = place[j]
        if not informative[j]:
            if at >= 0:
                natural[at, :] = 0.0
            scores[j] = 0.0
            continue
        slot = _slot_of(most, number[j])
        _fill(slot, keys, known, logs, shares, sums, number[j], class_weights, prior)
        pseudo = max(number[j] * target[j], 1e-300)
        mean_1 = pseudo * sums[slot, 0]
        natural_1 = -sums[slot, 1]
        product = -pseudo * sums[slot, 2]
        if at >= 0:
            level = np.log(pseudo) - sums[slot, 3]
            for i in range(n_classes):
                natural[at, i] = level - logs[slot, i]
        for p in range(np.uint64(cell_ends[j]), np.uint64(cell_ends[j + 1])):
            c = np.uint32(cell_classes[p])
            rate, higher = cell_sums[p] * shares[slot, c], more[p - before]
            mean_1 += prior[c] * rate
            natural_1 += prior[c] * higher
            product += prior[c] * (higher * (pseudo * shares[slot, c] + rate) - logs[slot, c] * rate)
            if at >= 0:
                natural[at, c] += higher
        scores[j] = _settled(product, natural_1 * mean_1)


@kernel
def poisson_totals(
    cell_ends: Any,
    cell_classes: Any,
    cell_sums: Any,
    class_weights: Any,
    prior: Any,
    number: Any,
    target: Any,
    informative: Any,
    bucket: Any,
    out: Any,
) -> None:
    """Sums of the rates over the features of each bucket, shape (G, C); see :func:`poisson_tables`.

    Pseudo-rows are added up by their number first, and spread over the classes when another takes its slot.
    """
    n_classes = prior.size
    keys, known = np.zeros(1 << SLOT_BITS), np.zeros(1 << SLOT_BITS, dtype=np.uint8)
    logs, shares = np.empty((1 << SLOT_BITS, n_classes)), np.empty((1 << SLOT_BITS, n_classes))
    sums = np.empty((1 << SLOT_BITS, 4))
    waiting = np.zeros((1 << SLOT_BITS, out.shape[0]))
    most = number.max()
    out[:] = 0.0
    for j in range(bucket.size):
        b = bucket[j]
        if b >= out.shape[0] or not informative[j]:
            continue
        slot = _slot_of(most, number[j])
        if known[slot] == 1 and keys[slot] != number[j]:
            _spread(waiting[slot], shares[slot], out)
        _fill(slot, keys, known, logs, shares, sums, number[j], class_weights, prior)
        waiting[slot, b] += number[j] * target[j]
        for p in range(np.uint64(cell_ends[j]), np.uint64(cell_ends[j + 1])):
            c = np.uint32(cell_classes[p])
            out[b, c] += cell_sums[p] * shares[slot, c]
    for slot in range(1 << SLOT_BITS):
        if known[slot] == 1:
            _spread(waiting[slot], shares[slot], out)


@inlined
def _spread(waiting: Any, shares: Any, out: Any) -> None:
    for b in range(waiting.size):
        if waiting[b] != 0.0:
            for c in range(shares.size):
                out[b, c] += waiting[b] * shares[c]
            waiting[b] = 0.0


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
            at = np.uint32(bucket[j])
            if at < n_buckets:
                value, into, source = data[p], np.uint64(at) * width, np.uint64(place[j]) * width
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
            cells[i] = _exp(cells[i])
        total[:n_undecided] = 0.0
        for c in range(n_classes):
            for i in range(n_undecided):
                total[i] += gathered[i, c]
        for i in range(n_undecided):
            total[i] = _log(total[i])
        for i in range(n_undecided):
            loss[undecided[i]] += weight * total[i]
