"""Corrections of scores, one number for each class and feature: conditional maximum entropy with a ridge.

The model is that of :mod:`maxdisc.conditional.model` with features that all classes share and offsets. It is
solved for many parameters and few digits: a limited-memory quasi-Newton method on features in units in which
the ridge is the same for all, so that a step costs two sparse products and little else.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from maxdisc.conditional.model import log_posterior
from maxdisc.numerics.matrices import Floats, Integers, Matrix, is_sparse

#: Pairs of steps and changes of slope that are remembered.
MEMORY = 6
#: A step is halved at most so often.
MOST_HALVINGS = 30
#: The share of the promised gain that a step must keep.
ENOUGH_GAIN = 1e-4


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Features in the units of the ridge, shape (N, K + 1); the last column is constant, for the biases."""

    Z: Matrix  # (N, K + 1)

    @classmethod
    def of(cls, plane: Matrix, unit: Floats) -> ScaledRows:
        """From features of shape (N, K) and the unit by which each is multiplied."""
        ones = np.ones((plane.shape[0], 1))
        if is_sparse(plane):
            scaled = sp.csr_array(plane) @ sp.diags_array(unit)
            return cls(sp.csr_array(sp.hstack([scaled, sp.csr_array(ones)], format="csr")))
        return cls(np.hstack([plane * unit, ones]))

    def rows(self, which: Integers) -> ScaledRows:
        """Some of the rows."""
        return ScaledRows(self.Z[which])

    @cached_property
    def transposed(self) -> Matrix:
        """Of shape (K + 1, N), laid out for products from the left."""
        return self.Z.T.tocsr() if is_sparse(self.Z) else np.ascontiguousarray(self.Z.T)

    def scores(self, correction: Floats) -> Floats:
        """What a correction adds to the scores, shape (N, C)."""
        return np.asarray(self.Z @ correction)


def correct(
    rows: ScaledRows,
    codes: Integers,
    row_weight: Floats,
    offset: Floats,
    ridge: float,
    start: Floats | None = None,
    max_iter: int = 60,
    tol: float = 1e-2,
) -> Floats:
    """Return the ridge-penalised correction of weights, shape (K + 1, C), for rows with scores (N, C)."""
    n_rows, n_classes = offset.shape
    truth = np.arange(n_rows), codes
    shape = (rows.Z.shape[1], n_classes)

    def evaluated(point: Floats) -> tuple[float, Floats]:
        log_p = log_posterior(offset + rows.scores(point.reshape(shape)))
        value = 0.5 * ridge * float(point @ point) - float(row_weight @ log_p[truth])
        surplus = np.exp(log_p)
        surplus[truth] -= 1.0
        surplus *= row_weight[:, None]
        return value, np.asarray(rows.transposed @ surplus).ravel() + ridge * point

    point = np.zeros(shape[0] * shape[1])
    value, slope = evaluated(point)
    enough = tol * float(np.sqrt(slope @ slope))
    if start is not None:
        there = start.ravel().copy()
        found = evaluated(there)
        if found[0] < value:
            point, (value, slope) = there, found
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    for _ in range(max_iter):
        if float(np.sqrt(slope @ slope)) <= enough:
            break
        step = _direction(slope, pairs, ridge, row_weight)
        promised = float(slope @ step)
        for halving in range(MOST_HALVINGS):
            share = 0.5**halving
            there = point + share * step
            after, slope_there = evaluated(there)
            if after <= value + ENOUGH_GAIN * share * promised:
                break
        else:
            # No better point exists in double precision.
            break
        change = slope_there - slope
        step *= share
        product = float(step @ change)
        if product > 0:
            pairs.append((step, change, product))
        point, value, slope = there, after, slope_there
    return point.reshape(shape)


def _direction(
    slope: Floats, pairs: deque[tuple[Floats, Floats, float]], ridge: float, row_weight: Floats
) -> Floats:
    """The quasi-Newton direction (Nocedal's two loops)."""
    out = -slope
    shares = []
    for step, change, product in reversed(pairs):
        share = float(step @ out) / product
        out -= share * change
        shares.append(share)
    if pairs:
        _, change, product = pairs[-1]
        out *= product / float(change @ change)
    else:
        # Rows have length 1 or so: no second derivative is larger than half their weight, besides the ridge.
        out /= ridge + 0.5 * float(row_weight.max())
    for (step, change, product), share in zip(pairs, reversed(shares), strict=True):
        out += (share - float(change @ out) / product) * step
    return out
