"""Damped Newton for all problems at once, in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxdisc.families.dual.problem import Problem
from maxdisc.families.dual.quadrature import Basis, Integrals, integrate
from maxdisc.families.dual.starting_points import CoarseDual, densest
from maxdisc.families.dual.status import AIM
from maxdisc.numerics.matrices import Floats, Integers


class Dual(NamedTuple):
    """The dual of M problems in the statistics they are solved in: a function of theta (L, M), and the
    targets.
    """

    problem: Problem
    targets: Floats
    start: Floats | None
    basis: Callable[[Integers], Basis] | None

    def at(self, theta: Floats, which: Integers) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Values (m,), gradients (L, m), covariances (m, L, L), residuals (m,) and peaks (L, m) of some
        problems.
        """
        found = self.integrals(theta, which)
        error = found.mean - self.targets[:, which]
        value = found.log_partition - (theta * self.targets[:, which]).sum(axis=0)
        with np.errstate(all="ignore"):
            residual = (np.abs(error) / np.maximum(found.magnitude, 1e-300)).max(axis=0)
        residual = np.where(np.isfinite(residual), residual, np.inf)
        return value, error, found.covariance, residual, found.peak

    def some(self, which: Integers) -> Dual:
        """Return that of some of the problems."""
        basis = self.basis
        return self._replace(
            targets=self.targets[:, which],
            start=None if self.start is None else self.start[which],
            basis=None if basis is None else lambda inner: basis(which[inner]),
        )

    def integrals(self, theta: Floats, which: Integers) -> Integrals:
        """Return all that is known of some problems at these parameters, (L, m)."""
        start = densest(self.problem, theta) if self.start is None else self.start[which]
        basis = None if self.basis is None else self.basis(which)
        return integrate(self.problem, theta, start, basis)


def _newton_step(error: Floats, covariance: Floats) -> Floats:
    """``-covariance^-1 error`` in statistics of unit variance, with what rounding made singular left out."""
    scale = np.sqrt(np.maximum(np.einsum("mii->mi", covariance), 1e-300))
    values, vectors = np.linalg.eigh(np.nan_to_num(covariance / scale[:, :, None] / scale[:, None, :]))
    values = np.maximum(values, 1e-14)
    along = np.einsum("mij,mi->mj", vectors, error.T / scale) / values
    with np.errstate(over="ignore"):
        step = (np.einsum("mij,mj->mi", vectors, along) / scale).T
    return -np.clip(step, -1e300, 1e300)


def newton(dual: Dual | CoarseDual, theta: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
    """Damped Newton; gives parameters, residuals and numbers of evaluations."""
    theta = theta.copy()
    n = theta.shape[1]
    n_iter = np.ones(n, dtype=np.intp)
    value, error, covariance, residual, _ = dual.at(theta, np.arange(n))
    length, step, slope = np.ones(n), _newton_step(error, covariance), np.zeros(n)
    slope = (error * step).sum(axis=0)
    turned, stalled = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.intp)
    active = np.flatnonzero((residual > AIM) & np.isfinite(value))
    for _ in range(max_iter):
        if len(active) == 0:
            break
        trial = theta[:, active] + length[active] * step[:, active]
        now, wrong, spread, left, peak = dual.at(trial, active)
        n_iter[active] += 1
        rounding = 1e-13 * (1 + np.abs(value[active]))
        with np.errstate(invalid="ignore"):
            lower = now <= value[active] + 1e-4 * length[active] * slope[active] + rounding
        # Where values differ by rounding alone, the error of the moments decides.
        flat = np.abs(slope[active]) < 1e-10 * (1 + np.abs(value[active]))
        good = np.isfinite(now) & np.isfinite(left) & np.where(flat, left < residual[active], lower)
        stalled[active] = np.where(good & (left < 0.5 * residual[active]), 0, stalled[active] + 1)
        moved, stuck = active[good], active[~good]
        theta[:, moved], value[moved] = trial[:, good], now[good]
        error[:, moved], covariance[moved], residual[moved] = wrong[:, good], spread[good], left[good]
        step[:, moved] = _newton_step(error[:, moved], covariance[moved])
        slope[moved] = (error[:, moved] * step[:, moved]).sum(axis=0)
        turned[moved], length[moved] = False, np.minimum(1.0, 4 * length[moved])
        aside, along = _turned(
            step[:, stuck],
            error[:, stuck],
            covariance[stuck],
            peak[:, ~good] - error[:, stuck] - dual.targets[:, stuck],
        )
        turn = ~turned[stuck] & (along < 0.1 * slope[stuck])
        step[:, stuck[turn]], slope[stuck[turn]] = aside[:, turn], along[turn]
        length[stuck] = np.where(turn, 1.0, length[stuck] / 4)
        turned[stuck] |= turn
        finished = (residual[active] <= AIM) | ((residual[active] <= 1e-10) & (stalled[active] > 2))
        active = active[~finished & (length[active] > 1e-12)]
    return theta, residual, n_iter


def _turned(step: Floats, error: Floats, covariance: Floats, peak: Floats) -> tuple[Floats, Floats]:
    """Steps that leave alone the height of a peak, and their slopes; 0 if a step does not raise it.

    Far away, where there is no mass, the Hessian knows nothing of a peak that a step will raise there.
    """
    with np.errstate(all="ignore"):
        rise = (peak * step).sum(axis=0)
        away = -_newton_step(peak, covariance)
        aside = step - away * (rise / (peak * away).sum(axis=0))
        slope = (aside * error).sum(axis=0)
    sane = (rise > 0) & np.isfinite(aside).all(axis=0) & np.isfinite(slope)
    return np.where(sane, aside, 0.0), np.where(sane, slope, 0.0)
