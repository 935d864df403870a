"""Natural parameters, normalisers and divergences of one-statistic families; divergences of Gaussians.

All classes of a feature stand together: the sweep reads its row of ``natural``, whole, for every cell in
which the feature occurs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiled_elementary import log, log1p
from maxdisc.numerics.compiling import inlined, kernel

#: The families whose parameters are elementary functions of the mean, and their numbers here.
KINDS = {"poisson": 0, "exponential": 1, "geometric": 2, "bernoulli": 3}
#: The divergences that kernels know, by name, and their numbers here.
JS_GM, RAO = 0, 1
DIVERGENCES = {"js_gm": JS_GM, "rao": RAO}
#: As in :mod:`maxdisc.divergences.class_divergences`.
NOISE = 1e-18
EPS = np.finfo(np.float64).eps
#: Two to this power is the number of different pseudo-row numbers whose consequences are kept at a time.
SLOT_BITS = 10


@inlined
def _largest(values: Any) -> Any:
    """The place of the largest value, the first of several: numpy's takes longer to compile than to write."""
    largest = 0
    for i in range(1, values.size):
        largest = i if values[i] > values[largest] else largest
    return largest


@inlined
def _parameters(kind: Any, mean: Any, natural: Any, log_partition: Any) -> None:
    """From means to natural parameters and log normalisers, all of one length."""
    if kind == 0:
        for i in range(mean.size):
            natural[i] = log(mean[i])
            log_partition[i] = mean[i]
    elif kind == 1:
        for i in range(mean.size):
            natural[i] = -1.0 / mean[i]
            log_partition[i] = log(mean[i])
    elif kind == 2:
        for i in range(mean.size):
            natural[i] = -log1p(1.0 / mean[i])
            log_partition[i] = log1p(mean[i])
    else:
        for i in range(mean.size):
            log_partition[i] = -log1p(-min(mean[i], 1.0 - 1e-15))
            natural[i] = log(mean[i]) + log_partition[i]


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
def _rao(kind: Any, mean: Any, prior: Any, heaviest: Any, unit: Any) -> Any:
    """Rao's score: the variance of the means over classes, taken about one of them, in a unit of the data."""
    mean_0, mean_1, square = mean[heaviest], 0.0, 0.0
    for c in range(prior.size):
        apart = (mean[c] - mean_0) / unit
        mean_1 += prior[c] * apart
        square += prior[c] * apart * apart
    slope = _slope(kind, mean_0 + mean_1 * unit, unit)
    return _settled(slope * square, slope * mean_1 * mean_1)


@inlined
def _slope(kind: Any, mean: Any, unit: Any) -> Any:
    """The derivative of natural parameters by means, which is one over the variance, times a unit squared."""
    if kind == 0:
        return unit / mean * unit
    if kind == 1:
        return unit / mean * (unit / mean)
    if kind == 2:
        return unit / mean * (unit / (1.0 + mean))
    return unit / mean * (unit / (1.0 - min(mean, 1.0 - 1e-15)))


@inlined
def _settled(product: Any, cross: Any) -> Any:
    """The difference, unless rounding alone may have made it: what says nothing leaves no trace."""
    return product - cross if product - cross > NOISE + 1e-14 * abs(cross) else 0.0


@kernel
def scores_from_sums(
    kind: int,
    divergence: int,
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
    heaviest = _largest(prior)
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
            if turn == 0:
                for i in range(n):
                    mean_0[i] = mean[i]
            if divergence == RAO:
                for i in range(n):
                    apart = (mean[i] - mean_0[i]) / max(target[a + i], 1e-300)
                    scores[a + i] += prior[c] * apart * apart
                    mean_1[i] += prior[c] * apart
                continue
            _parameters(kind, mean, natural, unused)
            if turn == 0:
                for i in range(n):
                    natural_0[i] = natural[i]
            for i in range(n):
                weighted = prior[c] * (natural[i] - natural_0[i])
                scores[a + i] += weighted * (mean[i] - mean_0[i])
                natural_1[i] += weighted
                mean_1[i] += prior[c] * (mean[i] - mean_0[i])
        for i in range(n):
            product, cross = scores[a + i], natural_1[i] * mean_1[i]
            if divergence == RAO:
                unit = max(target[a + i], 1e-300)
                slope = _slope(kind, mean_0[i] + mean_1[i] * unit, unit)
                product, cross = slope * product, slope * mean_1[i] * mean_1[i]
            scores[a + i] = _settled(product, cross) if informative[a + i] else 0.0


@kernel
def gaussian_scores(
    sums: Any,
    origin: Any,
    cells: Any,
    class_weights: Any,
    prior: Any,
    amount: float,
    least_amount: float,
    least_spread: float,
    start: int,
    stop: int,
    scores: Any,
) -> None:
    """JS_GM of the features from ``start`` to ``stop``, from sums (2, C, D) about an origin (C, D).

    ``cells`` has shape (C, D), or (C, 1) where none is missing. The result is that of
    :func:`maxdisc.densities.class_densities.estimate` and :func:`maxdisc.divergences.js_gm`, computed for
    some features at a time so that the innermost loops run over features.
    """
    width, n_classes, step = 64, prior.size, 0 if cells.shape[1] == 1 else 1
    center, squares = np.empty((n_classes, width)), np.empty((n_classes, width))
    first, second, square = (
        np.empty((n_classes, width)),
        np.empty((n_classes, width)),
        np.empty((n_classes, width)),
    )
    shares, held = np.empty((n_classes, width)), np.empty((n_classes, width))
    total, most, level, pooled, about = np.empty((5, width))
    largest, spread, rounding, number, within = np.empty((5, width))
    coverage, first_1, second_1, center_1, square_1 = np.empty((5, width))
    for a in range(start, stop, width):
        n = min(width, stop - a)
        for each in (total, most, level, pooled, about, largest, spread):
            each[:] = 0.0
        for c in range(n_classes):
            for i in range(n):
                held[c, i] = cells[c, (a + i) * step]
            for i in range(n):
                j = a + i
                here = held[c, i]
                offset = sums[0, c, j] / here if here > 0 else 0.0
                center[c, i] = origin[c, j] + offset
                squares[c, i] = max(sums[1, c, j] - offset * sums[0, c, j], 0.0)
                total[i] += here
                pooled[i] += squares[c, i]
                about[i] += sums[1, c, j]
                largest[i] = max(largest[i], abs(center[c, i]))
                # The mean of all is taken about that of the heaviest class.
                level[i] = center[c, i] if here > most[i] else level[i]
                most[i] = max(here, most[i])
        most[:] = 0.0
        for c in range(n_classes):
            for i in range(n):
                share = held[c, i] / total[i] if total[i] > 0 else 0.0
                most[i] += share * (center[c, i] - level[i])
        level += most
        for c in range(n_classes):
            for i in range(n):
                share = held[c, i] / total[i] if total[i] > 0 else 0.0
                center[c, i] -= level[i]
                spread[i] += share * center[c, i] * center[c, i]
        for i in range(n):
            rows = total[i] if total[i] > 0 else 1.0
            pooled[i] /= rows
            spread[i] += pooled[i]
            rounding[i] = 8 * EPS * about[i] / rows + (8 * EPS * largest[i]) ** 2
            number[i] = max(amount, least_amount * rows)
            within[i] = pooled[i] if pooled[i] > rounding[i] else least_spread * spread[i]
        for each in (coverage, first_1, second_1, center_1, square_1):
            each[:] = 0.0
        for c in range(n_classes):
            weight = class_weights[c] if class_weights[c] > 0 else 1.0
            for i in range(n):
                here = held[c, i]
                least = least_spread * within[i] if pooled[i] > rounding[i] else within[i]
                variance = (squares[c, i] + number[i] * within[i]) / (here + number[i])
                variance = max(variance, least) if squares[c, i] <= rounding[i] * here else variance
                center[c, i] = center[c, i] if here > 0 else 0.0
                shares[c, i] = prior[c] * (here / weight) if step else prior[c]
                first[c, i] = center[c, i] / variance
                second[c, i] = -0.5 / variance
                square[c, i] = variance + center[c, i] * center[c, i]
                coverage[i] += shares[c, i]
                first_1[i] += shares[c, i] * first[c, i]
                second_1[i] += shares[c, i] * second[c, i]
                center_1[i] += shares[c, i] * center[c, i]
                square_1[i] += shares[c, i] * square[c, i]
        for i in range(n):
            scores[a + i] = 0.0
            some = coverage[i] if step and coverage[i] > 0 else 1.0
            coverage[i] = some
            first_1[i] /= some
            second_1[i] /= some
            center_1[i] /= some
            square_1[i] /= some
        for c in range(n_classes):
            for i in range(n):
                product = (first[c, i] - first_1[i]) * (center[c, i] - center_1[i])
                product += (second[c, i] - second_1[i]) * (square[c, i] - square_1[i])
                scores[a + i] += shares[c, i] * product
        for i in range(n):
            telling = total[i] > 0 and spread[i] > rounding[i]
            # NaN stays: whoever asked is to see it.
            if not telling or scores[a + i] <= NOISE * coverage[i]:
                scores[a + i] = 0.0


@kernel
def tables_from_sums(
    kind: int,
    sums: Any,
    class_weights: Any,
    number: Any,
    pseudo: Any,
    informative: Any,
    columns: Any,
    first: int,
    last: int,
    natural: Any,
    log_partition: Any,
) -> None:
    """Parameters (C, K) of the features ``columns``, for the classes from ``first`` to ``last``.

    ``number`` pseudo-rows that sum to ``pseudo``, in the order of ``columns`` like all but the sums (C, D),
    are added to each class. Class by class, as columns in no order are found sooner in one row of the sums
    than in all of them.
    """
    mean = np.empty(columns.size)
    for c in range(first, last):
        for i in range(mean.size):
            mean[i] = sums[c, np.uint64(columns[i])]
        for i in range(mean.size):
            mean[i] = max((mean[i] + pseudo[i]) / (class_weights[c] + number[i]), 1e-300)
        _parameters(kind, mean, natural[c], log_partition[c])
        for i in range(mean.size):
            natural[c, i] = natural[c, i] if informative[i] else 0.0
            log_partition[c, i] = log_partition[c, i] if informative[i] else 0.0


@kernel
def tables_from_cells(
    kind: int,
    divergence: int,
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
    """Log normalisers (D, C) and scores (D,) from class sums; see ``fold_cells`` of the trials.

    ``number`` pseudo-rows of mean ``target`` are added to each class; features that are not ``informative``
    get zeros. Natural parameters are kept for the features that have a place, and there.
    """
    n_classes = prior.size
    sums, mean, parameters = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    heaviest = _largest(prior)
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
        if divergence == RAO:
            scores[j] = _rao(kind, mean, prior, heaviest, max(target[j], 1e-300))
        else:
            scores[j] = _score(mean, parameters, prior, heaviest)
        if place[j] >= 0:
            for c in range(n_classes):
                natural[place[j], c] = parameters[c]


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

    To be called only where it is not there yet: a call with so many arrays costs as much as some cells.

    ``logs`` log(n_c + k) less that of the heaviest class, ``shares`` 1 / (n_c + k), and the prior means of
    shares, logs and their products, and of the shares less that of the heaviest class, and their squares.
    """
    keys[slot] = k
    known[slot] = 1
    heaviest = class_weights[_largest(prior)] + k
    first = np.log(heaviest)
    shares_1, logs_1, products, apart_1, apart_2 = 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(prior.size):
        logs[slot, c] = np.log(class_weights[c] + k) - first
        shares[slot, c] = 1.0 / (class_weights[c] + k)
        shares_1 += prior[c] * shares[slot, c]
        logs_1 += prior[c] * logs[slot, c]
        products += prior[c] * shares[slot, c] * logs[slot, c]
        apart = shares[slot, c] - 1.0 / heaviest
        apart_1 += prior[c] * apart
        apart_2 += prior[c] * apart * apart
    sums[slot, 0] = shares_1
    sums[slot, 1] = logs_1
    sums[slot, 2] = products
    sums[slot, 3] = first
    sums[slot, 4] = apart_1
    sums[slot, 5] = apart_2


@kernel
def poisson_tables(
    divergence: int,
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
    keys, known = np.empty(1 << SLOT_BITS), np.empty(1 << SLOT_BITS, dtype=np.uint8)
    known[:] = 0
    logs, shares = np.empty((1 << SLOT_BITS, n_classes)), np.empty((1 << SLOT_BITS, n_classes))
    sums = np.empty((1 << SLOT_BITS, 6))
    most, width, heaviest = number[_largest(number)], 64, _largest(prior)
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
                more[i] = log1p(more[i])
        at = place[j]
        if not informative[j]:
            if at >= 0:
                natural[at, :] = 0.0
            scores[j] = 0.0
            continue
        slot = _slot_of(most, number[j])
        if keys[slot] != number[j] or known[slot] == 0:
            _fill(slot, keys, known, logs, shares, sums, number[j], class_weights, prior)
        pseudo = max(number[j] * target[j], 1e-300)
        mean_1 = pseudo * sums[slot, 0]
        natural_1 = -sums[slot, 1]
        product = -pseudo * sums[slot, 2]
        # Means, and their squares, about what the heaviest class has of the pseudo-rows, in units of these.
        share_0, apart, square = shares[slot, heaviest], sums[slot, 4], sums[slot, 5]
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
            less = rate / pseudo
            apart += prior[c] * less
            square += prior[c] * less * (less + 2.0 * (shares[slot, c] - share_0))
            if at >= 0:
                natural[at, c] += higher
        if divergence == RAO:
            slope = _slope(0, mean_1, pseudo)
            scores[j] = _settled(slope * square, slope * apart * apart)
        else:
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
    keys, known = np.empty(1 << SLOT_BITS), np.empty(1 << SLOT_BITS, dtype=np.uint8)
    known[:] = 0
    logs, shares = np.empty((1 << SLOT_BITS, n_classes)), np.empty((1 << SLOT_BITS, n_classes))
    sums = np.empty((1 << SLOT_BITS, 6))
    waiting = np.empty((1 << SLOT_BITS, out.shape[0]))
    waiting[:] = 0.0
    most = number[_largest(number)]
    out[:] = 0.0
    for j in range(bucket.size):
        b = bucket[j]
        if b >= out.shape[0] or not informative[j]:
            continue
        slot = _slot_of(most, number[j])
        if known[slot] == 1 and keys[slot] != number[j]:
            _spread(waiting[slot], shares[slot], out)
        if keys[slot] != number[j] or known[slot] == 0:
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
def deal(order: Any, sizes: Any, bucket: Any) -> None:
    """For each feature the position in ``sizes`` of the first that includes it; their number if none does."""
    b = 0
    for i in range(order.size):
        while b < sizes.size and i >= sizes[b]:
            b += 1
        bucket[np.uint64(order[i])] = b


@kernel
def bucket_totals(log_partition: Any, bucket: Any, out: Any) -> None:
    """Sums of the log normalisers over the features of each bucket, shape (G, C)."""
    out[:] = 0.0
    for j in range(bucket.size):
        if bucket[j] < out.shape[0]:
            for c in range(out.shape[1]):
                out[bucket[j], c] += log_partition[j, c]
