"""Moments that no density has are moved inside."""

from __future__ import annotations

import numpy as np

from maxdisc.families.dual.attempts import attempt
from maxdisc.families.dual.densities import integrals
from maxdisc.families.dual.powers import ScaledPowers
from maxdisc.families.dual.problem import Problem
from maxdisc.families.dual.starting_points import known_members
from maxdisc.families.dual.status import TOLERANCE, Status
from maxdisc.numerics.matrices import Booleans, Floats, Integers

#: Shares of an inner density's moments that are mixed into moments on the boundary: the first that helps.
SHARES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)


def separated(problem: Problem, natural: Floats, targets: Floats) -> Booleans:
    """Return where the parameters show that the targets are infeasible."""
    if natural.shape[1] == 0:
        return np.zeros(0, dtype=np.bool_)
    inner = known_members(problem)[2][:, :1]
    height = integrals(problem, natural).panels
    top = np.full(natural.shape[1], -np.inf)
    slopeless = np.einsum("pln,pl->pn", height.statistics[:, :-1], natural.T[height.owner])
    np.maximum.at(top, height.owner, slopeless.max(axis=1))
    reach = (natural * targets).sum(axis=0) - (natural * inner).sum(axis=0)
    return np.asarray(top - (natural * targets).sum(axis=0) <= 1e-5 * np.abs(reach))


def move_inside(
    problem: Problem,
    targets: Floats,
    natural: Floats,
    residual: Floats,
    status: Integers,
    left: Integers,
    outside: Booleans,
    compiled: bool,
) -> None:
    """Mix ever more of a density's moments into moments that no density has, until one has them.

    Moments inside that were only too hard to hit are solved if moving them by less than the tolerance did it.
    """
    inner = known_members(problem)[2]
    for share in SHARES:
        some = ~outside if share < 1e-8 else np.ones(len(left), dtype=np.bool_) if share < 1 else outside
        now = left[some]
        if len(now) == 0:
            continue
        mixed = (1 - share) * targets[:, now] + share * inner[:, _nearest(inner, targets[:, now])]
        sane = np.ones(len(now), dtype=np.bool_)
        if problem.powers:
            sane = ScaledPowers.of(problem.support, mixed).feasible(problem.support)
        found, error = np.zeros(mixed.shape), np.full(len(now), np.inf)
        found[:, sane], error[sane], _ = attempt(problem, mixed[:, sane], "newton", 60, compiled)
        done = error <= TOLERANCE
        natural[:, now[done]] = found[:, done]
        away = np.abs(mixed - targets[:, now]) / np.maximum(np.abs(mixed), 1e-300)
        residual[now[done]] = error[done] + away.max(axis=0)[done]
        status[now[done]] = Status.BOUNDARY
        status[now[done & ~outside[some] & (residual[now] <= TOLERANCE)]] = Status.SOLVED
        keep = np.ones(len(left), dtype=np.bool_)
        keep[np.flatnonzero(some)[done]] = False
        left, outside = left[keep], outside[keep]


def _nearest(inner: Floats, targets: Floats) -> Integers:
    """Return which of the members' means (L, K) is nearest to each target, in units of their spread."""
    scale = np.abs(inner).mean(axis=1, keepdims=True) + 1e-300
    return np.asarray(
        (np.abs(inner[:, :, None] - targets[:, None]) / scale[:, :, None]).sum(axis=0).argmin(axis=0)
    )
