"""P-values from moments, exact for Gaussian and exponential features.

Gaussian and exponential features: the likelihood ratio of one density for all classes is, by its shape, a
product of powers of shares that have a Dirichlet distribution, whatever the mean and the scale. Its moment
generating function is a few gamma functions, and the upper tail one integral, which is exact for any numbers
of rows. Counts, which are seldom Poisson: the share of a class in a feature's total, with its variance under
permuted labels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import betainc, betaincc, digamma, gammaln, loggamma
from scipy.stats import hypergeom

from maxdisc.densities.class_densities import rounding_variance
from maxdisc.families import Bernoulli, Categorical, Exponential, Family, Gaussian, Geometric, Poisson
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.numerics.matrices import Floats, blocks

# Nodes of the integral: relative errors are below 1e-6, and mostly 1e-9.
NODES = 64
# The slope of the path of integration, away from the imaginary axis.
SLOPE = 0.7
# The integrand is followed until it has fallen by e to this power.
FALL = 40.0
# From this many features with the same numbers of rows on, tails are interpolated between this many values.
ENOUGH_FOR_TABLE, TABLE = 1000, 500
# With more rows than this the ratio is chi-square, to 1e-4 down to a p-value of 1e-60.
MANY_ROWS = 1e6
# No p-value is 0.
LEAST = np.finfo(np.float64).tiny


def p_values(family: Family, moments: ClassMoments) -> Floats:
    """Return p-values of "no difference between classes" from unsmoothed moments, shape (D,); NaN if unknown.

    Gaussian and exponential features (without zeros) use the likelihood ratio, whose distribution is exact.
    Counts, levels and features with zeros use the class with the most unusual share, times the number of
    classes, with the variance of the data. Weighted rows count as their effective number.
    """
    p = np.full(moments.n_features, np.nan)
    null = NULLS.get(type(family))
    if null is not None:
        for block in blocks(moments.n_features, 8 * moments.n_classes):
            p[block] = null(moments.select(block))
    return p


def _gaussian(moments: ClassMoments) -> Floats:
    """Means and variances; only means where a class is constant, as happens to numbers that were rounded."""
    center, sums = moments.centred()
    n, within, cells = _rows(moments), sums[1], np.broadcast_to(moments.cells, center.shape)
    constant = rounding_variance(moments, center)
    # One row has no variance, and says nothing about it.
    told = n >= 2
    flat = (told & (within <= constant * cells)).any(axis=0) | (told.sum(axis=0) < 2)
    weight = np.where(told, cells, 0.0)
    total = (within * told).sum(axis=0) + _between(center, weight)
    n_told = np.where(told & ~flat, n, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(n_told > 0, within / total, 1.0)
    p = _ratio_tail(share, n_told, scale=1.0, fixed=1.0)
    if flat.any():
        p[flat] = _means(within[:, flat], center[:, flat], cells[:, flat], n[:, flat])
    whole = within.sum(axis=0) + _between(center, cells)
    return np.where(whole > constant * cells.sum(axis=0), p, 1.0)


def _means(within: Floats, center: Floats, cells: Floats, n: Floats) -> Floats:
    """Return p-values by analysis of variance."""
    between, seen = _between(center, cells), (n > 0).sum(axis=0)
    total = np.maximum(between + within.sum(axis=0), LEAST)
    a, b = np.maximum(seen - 1, 0.5) / 2, (n.sum(axis=0) - seen) / 2
    p = betaincc(a, np.maximum(b, 0.5), np.clip(between / total, 0.0, 1.0))
    # The number of permutations of the labels bounds the p-value.
    ways = gammaln(n.sum(axis=0) + 1) - gammaln(n + 1).sum(axis=0)
    return np.where((seen < 2) | (b <= 0), 1.0, np.maximum(p, np.exp(-ways)))


def _between(center: Floats, weight: Floats) -> Floats:
    """Squares of what class means are away from the mean of all, shape (D,)."""
    total = np.maximum(weight.sum(axis=0), LEAST)
    heaviest = np.take_along_axis(center, weight.argmax(axis=0)[None], axis=0)
    away = center - heaviest
    away = away - (weight * away).sum(axis=0) / total
    return np.asarray((weight * away**2).sum(axis=0))


def _exponential(moments: ClassMoments) -> Floats:
    """Return the likelihood ratio, unless there are zeros, which an exponential feature has not."""
    n, sums = _rows(moments), moments.sums[0]
    zeros = np.zeros(moments.n_features, dtype=np.bool_)
    if moments.nonzero is not None:
        zeros = moments.nonzero < np.broadcast_to(moments.cells, sums.shape).sum(axis=0) * (1 - 1e-12)
    zeros |= ((sums <= 0) & (n > 0)).any(axis=0)
    told = (n > 0) & ~zeros
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(told, sums / sums.sum(axis=0), 1.0)
    p = _ratio_tail(share, np.where(told, n, 0.0), scale=2.0, fixed=0.0)
    return np.where(zeros, _counts(moments), p) if zeros.any() else p


def _ratio_tail(share: Floats, n: Floats, scale: float, fixed: float) -> Floats:
    """Return the tail probability of ``-scale * sum of n log(share N / n)``, shape (D,).

    These are Dirichlet with shapes ``scale (n - fixed) / 2``, all of them together ``scale (N - fixed) / 2``:
    ``fixed`` parameters are fitted to each class before its share is taken, and as many to all rows. Classes
    without rows have share 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(n > 0, n / n.sum(axis=0), 1.0)
        ratio = -scale * (n * np.log(share / expected)).sum(axis=0)
    compared = (n > 0).sum(axis=0) > 1
    p = np.where(compared & (ratio == np.inf), LEAST, 1.0)
    # A ratio of 1e-9 is rounding.
    some = np.flatnonzero(compared & (ratio > 1e-9) & (ratio < np.inf))
    if not len(some):
        return p
    # Beyond, nothing changes any more but that gamma functions lose digits. Small classes stay as they are.
    x, n = ratio[some], n[:, some]
    n = np.where(n.sum(axis=0) > MANY_ROWS, np.minimum(n, MANY_ROWS / (n > 0).sum(axis=0)), n)
    if len(some) > ENOUGH_FOR_TABLE and (n == n[:, :1]).all():
        at = np.linspace(np.sqrt(x.min()), np.sqrt(x.max()), TABLE)
        log_tail = np.log(_tail(at**2, np.repeat(n[:, :1], TABLE, axis=1), scale, fixed))
        p[some] = np.exp(PchipInterpolator(at, log_tail)(np.sqrt(x)))
    else:
        for block in blocks(len(some), 4 * NODES * (len(n) + 2)):
            p[some[block]] = _tail(x[block], n[:, block], scale, fixed)
    return np.clip(p, LEAST, 1.0)


def _tail(x: Floats, n: Floats, scale: float, fixed: float) -> Floats:
    """P(X > x) of such a ratio X, for x > 0, shape (D,).

    Its cumulant generating function K is analytic but for poles on the positive real axis. The integral of
    ``exp(K(t) - t x) / t`` is taken along a hyperbola that crosses the axis where this is least, between 0
    and the first pole, and turns towards where it falls.
    """
    powers, shapes = scale * n, np.where(n > 0, scale * (n - fixed) / 2, 1.0)
    whole, total = powers.sum(axis=0), scale * (n.sum(axis=0) - fixed) / 2
    known = np.where(n > 0, powers, 1.0)
    least = (powers * np.log(whole / known)).sum(axis=0)
    first_pole = np.where(n > 0, shapes / known, np.inf).min(axis=0)
    low, high = np.zeros(len(x)), np.ones(len(x))
    for _ in range(30):
        middle = (low + high) / 2
        t = middle * first_pole
        rises = whole * digamma(total - t * whole) - (powers * digamma(shapes - t * powers)).sum(axis=0)
        above = rises - least - x - 1 / t > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    crossing = (low + high) / 2 * first_pole
    width = np.minimum(crossing, first_pole - crossing)
    longest = np.arccosh(1 + FALL / (x * width * SLOPE))
    u = (np.arange(NODES)[:, None] + 0.5) / NODES * longest
    t = crossing + width * (1j * np.sinh(u) + SLOPE * (np.cosh(u) - 1))
    step = width * (1j * np.cosh(u) + SLOPE * np.sinh(u))
    log_mgf = gammaln(total) - gammaln(shapes).sum(axis=0) - t * least - loggamma(total - t * whole)
    for shape, power in zip(shapes, powers, strict=True):
        log_mgf += loggamma(shape - t * power)
    values = np.exp(log_mgf - t * x - np.log(t)) * step
    return np.maximum(values.imag.sum(axis=0) * longest / (NODES * np.pi), LEAST)


def _counts(moments: ClassMoments) -> Floats:
    """Test whether a class has more, or less, of a feature's total than by chance.

    Dealt so, the share of a class has a mean and a variance that follow from the sum and the sum of squares
    of the feature alone. Two distributions have both: that of lumps as large as variance / mean, each in a
    class at random (binomial: exact for Poisson counts), and that of nothing but small parts (beta: exact for
    exponential amounts). The share of non-zero cells determines the size of lumps, and so which of the two is
    nearer. Where all cells that are not zero are equal, it is hypergeometric.
    """
    if moments.squared is None or moments.nonzero is None:
        return np.full(moments.n_features, np.nan)
    n, factor = _rows(moments), effective_share(moments)
    return lump_p_values(
        moments.sums[0] * factor, n, moments.squared * factor, moments.nonzero * factor, factor == 1.0
    )


def _presence(moments: ClassMoments) -> Floats:
    """Return the same for features that are there or not, which are their own squares."""
    n, factor = _rows(moments), effective_share(moments)
    sums = moments.sums[0] * factor
    total = sums.sum(axis=0)
    return lump_p_values(sums, n, total, total, factor == 1.0)


def lump_p_values(sums: Floats, n: Floats, squared: Floats, nonzero: Floats, exact: bool = True) -> Floats:
    """Return p-values (D,) of non-negative features with zeros; conservative, because counts are discrete."""
    rows, total = np.maximum(n.sum(axis=0), LEAST), sums.sum(axis=0)
    # In a unit near the sum of the values, the square of the sum does not overflow. Powers of two are exact.
    size = np.ldexp(1.0, np.frexp(total)[1])
    sums, total = sums / size, total / size
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        squared = squared / size / size
        share = n / rows
        variance = (squared - total**2 / rows) / (rows - 1)
        varies = (total > 0) & (rows > 1) & (variance > 1e-12 * squared / rows)
        known = np.isfinite(squared)
        variance = np.where(varies & known, variance, 1.0)
        unusual = np.abs(sums - total * share) / np.sqrt(rows * share * (1 - share) * variance)
    # Which class it is, is paid for by the factor at the end.
    at = np.where((n > 0) & (n < rows), unusual, -1.0).argmax(axis=0)[None]
    share, some, rows_there = (np.take_along_axis(a, at, axis=0)[0] for a in (share, sums, n))
    rest = np.maximum(total - some, 0.0)
    safe = np.where(varies & known, total, 1.0)
    with np.errstate(over="ignore"):  # overflowing lumps carry no information
        lump = np.where(varies & known, variance * rows / safe, 1.0)
    # The number of lumps per row that leaves this many cells empty.
    per_row = -np.log1p(-nonzero / (rows + 0.5))
    unit = np.minimum(lump, safe / np.maximum(rows * per_row, 1e-9))
    above = _larger_share(some, rest, share, lump, unit)
    below = _larger_share(rest, some, 1 - share, lump, unit)
    if_equal = safe**2 / np.maximum(nonzero, LEAST)
    equal = np.flatnonzero(varies & known & (np.abs(squared - if_equal) < 1e-9 * if_equal))
    if exact and len(equal):
        cells, found = np.rint(nonzero[equal]), np.rint(some[equal] * nonzero[equal] / safe[equal])
        law = hypergeom(np.rint(rows[equal]), cells, np.rint(rows_there[equal]))
        above[equal], below[equal] = law.sf(found - 1), law.cdf(found)
    n_classes = (n > 0).sum(axis=0)
    p = 2 * np.minimum(above, below)
    # The number of choices of the rows of the class bounds the p-value.
    ways = gammaln(rows + 1) - gammaln(rows_there + 1) - gammaln(rows - rows_there + 1)
    p = np.maximum(p, np.exp(-ways)) * np.where(n_classes > 2, n_classes, 1)
    p = np.where(known, np.clip(p, LEAST, 1.0), np.nan)
    return np.where(varies & (n_classes > 1), p, np.where(known, 1.0, np.nan))


def _larger_share(part: Floats, rest: Floats, chance: Floats, lump: Floats, unit: Floats) -> Floats:
    """Return the probability that a class gets at least this part of a total; see :func:`_counts`."""
    total = np.where(part + rest > 0, part + rest, 1.0)
    binomial = betainc(np.maximum(part / lump, LEAST), rest / lump + 1, chance)
    # As many small parts as leave the share with its variance.
    parts = np.maximum(total / lump - 1, 1e-3)
    left = np.clip(rest + unit / 2, 0, total) / total
    # The complement of betainc, which scipy computes ten times as fast from the other side.
    beta = betainc(parts * (1 - chance), parts * chance, left)
    logs = np.log(np.maximum([np.where(part > 0, binomial, 1.0), beta], LEAST))
    return np.exp(unit / lump * logs[0] + (1 - unit / lump) * logs[1])


def effective_share(moments: ClassMoments) -> float:
    """Return the factor that turns weights into effective numbers of rows; 1 for unweighted rows."""
    total = float(moments.weight.sum())
    if not total or not moments.n_rows or abs(moments.n_rows - total) < 1e-9 * total:
        return 1.0
    return moments.n_rows / total


def _rows(moments: ClassMoments) -> Floats:
    """Observed rows of each class, of equal weight, shape (C, D)."""
    cells = np.broadcast_to(moments.cells, moments.sums.shape[1:])
    return np.asarray(cells * effective_share(moments))


#: Families with p-values from moments.
NULLS: dict[type, Callable[[ClassMoments], Floats]] = {
    Gaussian: _gaussian,
    Exponential: _exponential,
    Poisson: _counts,
    Geometric: _counts,
    Bernoulli: _presence,
    Categorical: _presence,
}
