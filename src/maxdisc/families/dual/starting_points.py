"""Where the iterations begin: coarse nodes that all problems share, and members that are known."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from maxdisc.families.dual.problem import END, Nodes, Problem, nodes_at
from maxdisc.families.dual.quadrature import integrate, lattice_blocks, rules
from maxdisc.numerics.matrices import Floats, Integers


@lru_cache(maxsize=64)
def scan(problem: Problem) -> tuple[Floats, Floats]:
    """Coordinates all over a continuous support, (G,), and the statistics there with log base and slope, (L
    + 1, G).
    """
    t = np.unique(np.r_[np.linspace(-40, 40, 321), np.linspace(-END, END, 231)])
    nodes = nodes_at(problem.support, t)
    statistics = problem.evaluate(nodes)
    statistics[-1] += nodes.log_slope
    usable = np.isfinite(statistics).all(axis=0)
    return t[usable], statistics[:, usable]


def densest(problem: Problem, theta: Floats) -> Floats:
    """About where each density is largest in the coordinate, shape (M,)."""
    if problem.support.lattice:
        return np.zeros(theta.shape[1])
    t, statistics = scan(problem)
    with np.errstate(all="ignore"):
        exponent = theta.T @ statistics[:-1] + statistics[-1]
    return t[np.nan_to_num(exponent, nan=-np.inf).argmax(axis=1)]


@lru_cache(maxsize=64)
def coarse_nodes(problem: Problem) -> tuple[Nodes, Floats, Floats]:
    """Return a few hundred nodes that all problems share: points, statistics (L + 1, G), log weights (G,).

    In a coordinate in which both ends are far away, equal weights are nearly a Gauss rule.
    """
    support = problem.support
    if not support.lattice:
        t, statistics = scan(problem)
        return nodes_at(support, t), statistics, np.log(np.gradient(t))
    center, half, level = lattice_blocks(support)
    rule = rules(True)
    weights = (2 * half[:, None] * rule.weights[level]).ravel()
    x = (center[:, None] + half[:, None] * rule.nodes[level]).ravel()[weights > 0]
    nodes = Nodes(x, x - support.low, support.high - x, np.zeros(x.shape))
    return nodes, problem.evaluate(nodes), np.log(weights[weights > 0])


class CoarseDual(NamedTuple):
    """What :class:`Dual` is, on shared nodes: to begin with."""

    table: Floats
    log_weights: Floats
    products: Floats
    targets: Floats

    @classmethod
    def of(cls, problem: Problem, targets: Floats) -> CoarseDual:
        """Return the dual of these targets, (L, M)."""
        _, statistics, weights = coarse_nodes(problem)
        atoms = np.asarray(problem.support.atoms, dtype=np.float64)
        if len(atoms):
            points = Nodes(
                atoms, atoms - problem.support.low, problem.support.high - atoms, np.zeros(atoms.shape)
            )
            statistics = np.concatenate([problem.evaluate(points), statistics], axis=1)
            weights = np.r_[np.zeros(len(atoms)), weights]
        usable = np.isfinite(statistics).all(axis=0) & (np.abs(statistics) < 1e140).all(axis=0)
        table = statistics[:-1, usable]
        products = (table[:, None] * table).reshape(-1, table.shape[1])
        return cls(table, (statistics[-1] + weights)[usable], products, targets)

    def at(self, theta: Floats, which: Integers) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """As :meth:`Dual.at`."""
        n, targets = len(theta), self.targets[:, which]
        with np.errstate(all="ignore"):
            exponent = theta.T @ self.table + self.log_weights
            top = exponent.max(axis=1)
            mass = np.exp(exponent - top[:, None])
            total = mass.sum(axis=1)
            mass /= total[:, None]
            mean = self.table @ mass.T
            second = (self.products @ mass.T).T.reshape(-1, n, n)
            covariance = second - mean.T[:, :, None] * mean.T[:, None, :]
            magnitude = np.abs(self.table) @ mass.T
            residual = (np.abs(mean - targets) / np.maximum(magnitude, 1e-300)).max(axis=0)
            value = top + np.log(total) - (theta * targets).sum(axis=0)
        residual = np.where(np.isfinite(residual), residual, np.inf)
        return (
            value,
            mean - targets,
            np.nan_to_num(covariance),
            residual,
            self.table[:, exponent.argmax(axis=1)],
        )


@lru_cache(maxsize=64)
def known_members(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """Members to begin from, for any functions: parameters (L, K), log normalisers (K,) and means (L, K).

    Exponentials and Gaussians of many scales, each as near as the functions come to its logarithm.
    """
    support = problem.support
    nodes, statistics, slope = coarse_nodes(problem)
    width = support.high - support.low
    scales = (width if np.isfinite(width) else 1.0) * 10.0 ** np.arange(
        -6, 0.5 if np.isfinite(width) else 6.5, 0.5
    )
    logs = [np.zeros(nodes.x.shape)] * bool(np.isfinite(width))
    with np.errstate(over="ignore"):
        logs += [-nodes.above / s for s in scales if np.isfinite(support.low)]
        logs += [-nodes.below / s for s in scales if np.isfinite(support.high)]
        if not logs:
            logs = [-((nodes.x / s) ** 2) / 2 for s in scales]
        if problem.log_base is not None:
            logs = [np.zeros(nodes.x.shape), *logs]
    usable = np.isfinite(statistics).all(axis=0)
    found = []
    for log in logs:
        mass = log + (statistics[-1] + slope if problem.log_base is None or log is not logs[0] else slope)
        mass = np.where(usable & np.isfinite(mass), mass, -np.inf)
        root = np.exp((mass - mass.max()) / 2)
        kept = root > 1e-9
        design = np.vstack([np.ones(kept.sum()), statistics[:-1, kept]]) * root[kept]
        found.append(np.linalg.lstsq(design.T, log[kept] * root[kept], rcond=1e-12)[0][1:])
    theta = np.array(found).T
    at = integrate(problem, theta, densest(problem, theta))
    good = (
        np.isfinite(at.log_partition)
        & (np.abs(at.log_partition) < 1e6)
        & (np.abs(at.mean) < 1e100).all(axis=0)
    )
    good &= (np.einsum("kii->ik", at.covariance) > 0).all(axis=0)
    return theta[:, good], at.log_partition[good], at.mean[:, good]
