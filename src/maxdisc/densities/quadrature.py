"""Nodes for integrals over the densities of all classes, placed where those have their mass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from maxdisc.families import Family
from maxdisc.numerics.matrices import Floats, Integers, blocks

# Nodes of a panel: polynomials of degree 31 are integrated, or summed, exactly.
ORDER = 16
# The maximum length of a panel: this many widths of any class's peak, plus this share of the distance to it.
WIDTH, GROWTH = 4.0, 1.0
# A density ends where it is this many nats below its peak: the rest of its mass is below rounding.
FALL = 36.0
# A Gaussian has fallen so far at this many deviations.
FIRST_REACH = 8.5
# Panels are halved, and reaches doubled, at most so often: more than any two doubles differ by.
MOST_STEPS = 1100
# (class, node) cells at a time, few enough to stay in a core's cache.
CELLS_AT_A_TIME = 2**16


def class_nodes(
    family: Family, natural: Floats, width: float = WIDTH, log_partition: Floats | None = None
) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Yield panels of quadrature nodes (features, places, weights) that resolve the densities of all classes.

    Panels of the axis of :meth:`maxdisc.families.Support.at` are halved until each is short compared with
    the peaks near it. On a lattice, short panels hold all points and long ones the Gauss nodes of a sum
    (discrete Chebyshev polynomials). The family's atoms are not among the nodes.
    """
    known = family.log_partition(natural) if log_partition is None else log_partition
    center, scale = family.peak(natural)
    low, high = _reach(family, natural, known, center, scale)
    end, longest = family.support.high, width * scale
    if family.support.lattice:
        panels = _lattice_panels(low, high, center, longest, end)
    else:
        panels = _panels(low, high, center, longest, family.support.place(family.breaks))
    for features, start, length, (unit, weight) in panels:
        for some in blocks(len(features), len(unit) * natural.shape[1], CELLS_AT_A_TIME):
            place = start[some] + length[some] * unit[:, None]
            weights = length[some] * weight[:, None]
            if family.support.lattice and np.isfinite(end):
                # The last panel may have points beyond the end.
                weights = np.where(place <= end, weights, 0.0)
                place = np.minimum(place, end)
            yield features[some], place, weights


_Panels = Iterator[tuple[Integers, Floats, Floats, tuple[Floats, Floats]]]


@np.errstate(all="ignore")
def _reach(
    family: Family, natural: Floats, known: Floats, center: Floats, scale: Floats
) -> tuple[Floats, Floats]:
    """Between which places each feature's densities have all their mass, (D,) and (D,)."""
    ends = []
    top = family.log_density_at(center, natural, known)
    for sign in (-1.0, 1.0):
        distance = FIRST_REACH * scale
        place = center + sign * distance
        for _ in range(MOST_STEPS):
            if family.support.lattice:
                place = np.clip(place, family.support.low, family.support.high)
            short = family.log_density_at(place, natural, known) > top - FALL
            if family.support.lattice:
                short &= (place > family.support.low) & (place < family.support.high)
            if not short.any():
                break
            distance = np.where(short, 2 * distance, distance)
            place = center + sign * distance
        ends.append(place)
    return ends[0].min(axis=0), ends[1].max(axis=0)


def _panels(low: Floats, high: Floats, center: Floats, longest: Floats, breaks: Floats) -> _Panels:
    # From break to break, so that densities are smooth within a panel.
    edges = np.vstack([low, np.clip(breaks[:, None], low, high), high])
    features = np.tile(np.arange(len(low)), len(edges) - 1)
    start, length = edges[:-1].ravel(), np.diff(edges, axis=0).ravel()
    features, start, length = features[length > 0], start[length > 0], length[length > 0]
    unit, weight = np.polynomial.legendre.leggauss(ORDER)
    rule = (unit + 1) / 2, weight / 2
    for _ in range(MOST_STEPS):
        whole = length <= _allowed(features, start, start + length, center, longest)
        whole |= start + length / 2 <= start
        yield features[whole], start[whole], length[whole], rule
        if whole.all():
            return
        half = length[~whole] / 2
        start = np.r_[start[~whole], start[~whole] + half]
        features, length = np.tile(features[~whole], 2), np.tile(half, 2)


def _lattice_panels(low: Floats, high: Floats, center: Floats, longest: Floats, end: float) -> _Panels:
    features, start = np.arange(len(low)), np.floor(low)
    points = np.ceil(high) - start + 1
    points = np.where(points <= ORDER, points, np.exp2(np.ceil(np.log2(points))))
    while len(features):
        # The longest first, so that all that are halved are of one length.
        n = points.max()
        now = points == n
        f, a = features[now], start[now]
        whole = n <= _allowed(f, a, a + n - 1, center, longest)
        whole &= a + n - 1 <= end
        whole |= n <= ORDER
        yield f[whole], a[whole], np.ones(np.count_nonzero(whole)), _sum_rule(float(n))
        features = np.r_[features[~now], f[~whole], f[~whole]]
        start = np.r_[start[~now], a[~whole], a[~whole] + n / 2]
        points = np.r_[points[~now], np.full(2 * np.count_nonzero(~whole), n / 2)]


def _allowed(features: Integers, start: Floats, stop: Floats, center: Floats, longest: Floats) -> Floats:
    """Return how long each panel may be, shape (n,): the class that is strictest decides."""
    center = center[:, features]
    gap = np.maximum(np.maximum(start - center, center - stop), 0.0)
    return np.asarray((longest[:, features] + GROWTH * gap).min(axis=0))


@cache
def _sum_rule(n: float) -> tuple[Floats, Floats]:
    """Nodes and weights for sums over 0, 1, ..., n - 1: these points, or the Gauss nodes of such a sum."""
    if n <= ORDER:
        return np.arange(n), np.ones(int(n))
    k = np.arange(1.0, ORDER)
    # The recurrence of the discrete Chebyshev polynomials, in units of n.
    beside = np.sqrt(k**2 * (1 - (k / n) ** 2) / (4 * (4 * k**2 - 1)))
    place, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return (n - 1) / 2 + n * place, n * vectors[0] ** 2
