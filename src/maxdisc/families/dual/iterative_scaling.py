"""Generalised iterative scaling, to check the other solvers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from maxdisc.families.dual.newton import Dual
from maxdisc.families.dual.problem import nodes_at
from maxdisc.families.dual.quadrature import N_NODES, rules
from maxdisc.families.dual.status import TOLERANCE
from maxdisc.numerics.matrices import Floats, Integers

#: Log weights (P, n), statistics (P, L, n) and owners (P,) of panels that stay where they are.
Nodal: TypeAlias = tuple[Floats, Floats, Integers]


def fixed_nodes(dual: Dual, theta: Floats) -> Nodal:
    """Nodes that cover the supports and suit these parameters: log weights (P, n), statistics (P, L, n),
    owners.
    """
    at = dual.integrals(theta, np.arange(theta.shape[1]))
    panels, rule = at.panels, rules(dual.problem.support.lattice)
    row = panels.level if dual.problem.support.lattice else np.zeros_like(panels.level)
    t = panels.center[:, None] + panels.half[:, None] * rule.nodes[row]
    with np.errstate(divide="ignore"):
        weights = np.log(rule.weights[row] * 2 * panels.half[:, None])
        weights = np.where(
            panels.half[:, None] == 0, np.where(np.arange(N_NODES) == 0, 0.0, -np.inf), weights
        )
    slope = np.where(panels.half[:, None] == 0, 0.0, nodes_at(dual.problem.support, t).log_slope)
    weights = weights + slope + panels.statistics[:, -1]
    weights = np.where((panels.values > 0) | (panels.top[:, None] > -np.inf), weights, -np.inf)
    return weights, panels.statistics[:, :-1], panels.owner


def sums_on_nodes(nodes: tuple[Floats, Floats, Integers], theta: Floats) -> tuple[Floats, Floats]:
    """Log normalisers (M,) and means (L, M) of sums over fixed nodes."""
    weights, statistics, owner = nodes
    n = theta.shape[1]
    exponent = np.einsum("pln,pl->pn", statistics, theta.T[owner]) + weights
    top = np.full(n, -np.inf)
    np.maximum.at(top, owner, exponent.max(axis=1))
    values = np.exp(exponent - top[owner][:, None])
    total = np.bincount(owner, values.sum(axis=1), n)
    means = [np.bincount(owner, row, n) / total for row in np.einsum("pln,pn->lp", statistics, values)]
    return top + np.log(total), np.stack(means)


def by_scaling(dual: Dual, theta: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
    """Generalised iterative scaling (Darroch and Ratcliff): shares of non-negative functions that sum to 1.

    Every function is shifted and scaled to [0, 1 / L]; the slack function is what is missing to 1. Each round
    ends
    when scaling no longer moves; nodes are then placed anew.
    """
    theta, n_iter = theta.copy(), np.zeros(theta.shape[1], dtype=np.intp)
    for _ in range(8):
        weights, statistics, owner = nodes = fixed_nodes(dual, theta)
        real = np.isfinite(weights)[:, None]
        low, high = np.full(theta.T.shape, np.inf), np.full(theta.T.shape, -np.inf)
        np.minimum.at(low, owner, np.where(real, statistics, np.inf).min(axis=2))
        np.maximum.at(high, owner, np.where(real, statistics, -np.inf).max(axis=2))
        width = len(theta) * (high - low).T
        wanted = (dual.targets - low.T) / width
        for _ in range(max_iter):
            given = (sums_on_nodes(nodes, theta)[1] - low.T) / width
            n_iter += 1
            with np.errstate(all="ignore"):
                change = np.log(wanted / given) - np.log((1 - wanted.sum(axis=0)) / (1 - given.sum(axis=0)))
            change = np.nan_to_num(change, nan=0.0, posinf=0.0, neginf=0.0)
            theta += change / width
            if np.abs(change).max() < 1e-13:
                break
        residual = dual.at(theta, np.arange(theta.shape[1]))[3]
        if (residual <= TOLERANCE / 10).all():
            break
    return theta, residual, n_iter
