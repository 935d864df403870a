"""P-values by permutation of the labels of rows, for any distribution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from maxdisc.families import Family
from maxdisc.moments.class_moments import ratio
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, blocks, is_sparse

# Minimum and maximum number of permutations; between them, enough for this many statistics ...
FEWEST, MOST, ENOUGH = 200, 2000, 2_000_000
# ... as tails are shared by all features. A feature's own count will do if it is at least this.
OWN_COUNT = 10
# Standardised statistics are counted in bins of this width, from the lowest to the highest.
BIN, LOWEST, HIGHEST = 1e-3, -20.0, 80.0
# Directions in which statistics vary less than this, relative to their correlations, are dropped.
SAME = 1e-9


def permuted_p_values(
    family: Family,
    X: Matrix,
    codes: Integers,
    n_classes: int,
    weights: Floats | None = None,
    n_permutations: int | None = None,
    seed: int = 0,
) -> Floats:
    """Return permutation p-values, shape (D,), of the distance between class means of the statistics.

    The distance is in units of the statistics' covariance in the data (Rao's score test). All features
    share the permutations. Beyond the resolution of a feature's own permutations, its p-value is read off
    those of all features, standardised, which is right on average over features, as false discovery rates
    need.
    """
    n_features = X.shape[1]
    count = n_permutations or int(np.clip(ENOUGH // max(n_features, 1), FEWEST, MOST))
    rng = np.random.default_rng(seed)
    deals = np.vstack([codes, *(rng.permutation(codes) for _ in range(count))])
    own, height = np.ones(n_features), np.full(n_features, -np.inf)
    histogram = np.zeros(round((HIGHEST - LOWEST) / BIN) + 1, dtype=np.int64)
    weights = np.ones(len(codes)) if weights is None else weights
    columns = sp.csc_array(X) if is_sparse(X) else X
    for block in blocks(n_features, max(len(codes), count) * family.n_statistics * 4):
        values = columns[:, block]
        apart, varies = _distances(family, values, deals, n_classes, weights)
        # Cube roots of sums of squares are nearly normal.
        z = _standardised(np.cbrt(apart[:, varies]), family.n_statistics * (n_classes - 1))
        at = np.clip((z - LOWEST) / BIN, 0, len(histogram) - 1).astype(np.intp)
        histogram += np.bincount(at[1:].ravel(), minlength=len(histogram))
        here = np.arange(n_features)[block][varies]
        height[here] = at[0]
        # Equal ones may differ by rounding.
        own[here] = (z[1:] >= z[0] - 1e-9).sum(axis=0)
    varying = height >= 0
    reached = np.cumsum(histogram[::-1])[::-1]
    shared = (1 + reached[height[varying].astype(np.intp)]) / (1 + histogram.sum())
    p = np.ones(n_features)
    p[varying] = np.where(own[varying] >= OWN_COUNT, (1 + own[varying]) / (1 + count), shared)
    return p


def _standardised(values: Floats, freedom: int) -> Floats:
    """Return each less the mean of all *others* in its column, over their deviation, shape (R, D).

    With the others, of which the true labels are one, no deal is different from another if classes do not
    differ; by their own mean and deviation, large ones would be drawn in. The deviation is half that of the
    cube root of a chi-square at least: features with few cells that are not zero hardly ever vary, and would
    be many deviations away when they do.
    """
    n, mean = len(values), values.mean(axis=0)
    away = values - mean
    squares = (away**2).sum(axis=0) - away**2 * n / (n - 1)
    least = 0.5 * mean * np.sqrt(2 / (9 * max(freedom, 1)))
    spread = np.maximum(np.sqrt(np.maximum(squares, 0.0) / (n - 1)), least)
    return np.asarray(away * n / (n - 1) / np.where(spread > 0, spread, 1.0))


def _distances(
    family: Family, values: Matrix, deals: Integers, n_classes: int, weights: Floats
) -> tuple[Floats, Booleans]:
    """Return distances of classes by permutation and feature, shape (R, D), and which features vary."""
    planes, observed = _planes(family, values)
    n = (weights @ observed) if observed is not None else np.full(values.shape[1], weights.sum())
    mean = np.stack([ratio(weights @ plane, n) for plane in planes])
    if not is_sparse(values):
        seen = 1.0 if observed is None else observed
        planes = [(plane - m) * seen for plane, m in zip(planes, mean, strict=True)]
        mean = np.zeros(mean.shape)
    second = np.stack([[_product(a, b, weights) for b in planes] for a in planes])
    covariance = second - np.where(n > 0, n, 1.0) * mean[:, None] * mean[None]
    white, varies = _whitening(covariance, second)
    out = np.zeros((len(deals), values.shape[1]))
    for some, dealt in _in_batches(deals, n_classes, weights, values.shape[1]):
        shape = (some.stop - some.start, n_classes, values.shape[1])
        cells = dealt.sum(axis=1).reshape(shape[:2])[:, :, None]
        if observed is not None:
            cells = (dealt @ observed).reshape(shape)
        sums = [
            _dense(dealt @ plane).reshape(shape) - cells * m for plane, m in zip(planes, mean, strict=True)
        ]
        for row in white:
            along = sum(w * s for w, s in zip(row, sums, strict=True))
            out[some] += ratio(along**2, cells).sum(axis=1)
    return out, varies


def _planes(family: Family, values: Matrix) -> tuple[list[Matrix], Floats | None]:
    """Return the statistics of every cell, 0 where missing, and the mask of observed cells."""
    if is_sparse(values):
        if family.preserves_zero:
            return [sp.csc_array(plane) for plane in family.statistics(values)], None
        values = values.toarray()
    values = np.asarray(values, dtype=np.float64)
    missing = np.isnan(values)
    if not missing.any():
        return list(family.statistics(values)), None
    # Any value that the feature has will do: it is taken out again.
    with np.errstate(invalid="ignore"):
        filled = np.where(missing, np.where(missing, -np.inf, values).max(axis=0), values)
    filled[:, missing.all(axis=0)] = 0.5
    planes = [np.where(missing, 0.0, plane) for plane in family.statistics(filled)]
    return planes, (~missing).astype(np.float64)


def _product(a: Matrix, b: Matrix, weights: Floats) -> Floats:
    return np.asarray(weights @ (a.multiply(b) if is_sparse(a) else a * b))


def _whitening(covariance: Floats, second: Floats) -> tuple[Floats, Booleans]:
    """Matrices (L, L, D) that make statistics uncorrelated, and which features vary."""
    own = np.einsum("iid->id", covariance)
    varying = own > 1e-12 * np.einsum("iid->id", second)
    unit = np.where(varying, 1 / np.sqrt(np.where(varying, own, 1.0)), 0.0)
    correlation = np.moveaxis(covariance * unit[:, None] * unit[None], 2, 0)
    size, direction = np.linalg.eigh(correlation)
    scale = np.where(size > SAME, 1 / np.sqrt(np.maximum(size, SAME)), 0.0)
    return np.moveaxis(scale[:, :, None] * direction.transpose(0, 2, 1), 0, 2) * unit, varying.any(axis=0)


def _in_batches(
    deals: Integers, n_classes: int, weights: Floats, width: int
) -> Iterator[tuple[slice, Matrix]]:
    """Yield ranges of permutations, with the weight of every row in every class of each: sparse (n C, N)."""
    n_rows = deals.shape[1]
    for some in blocks(len(deals), n_classes * width):
        groups = deals[some] + n_classes * np.arange(some.stop - some.start)[:, None]
        rows = np.broadcast_to(np.arange(n_rows), groups.shape).ravel()
        shape = ((some.stop - some.start) * n_classes, n_rows)
        yield some, sp.csr_array((np.tile(weights, len(groups)), (groups.ravel(), rows)), shape=shape)


def _dense(product: Matrix) -> Floats:
    return np.asarray(product.toarray() if is_sparse(product) else product)
