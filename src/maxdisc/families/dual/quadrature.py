"""Integrals that adapt to each problem: panels of a Gauss rule, halved until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from maxdisc.families.dual.problem import END, Nodes, Problem, coordinate_of, nodes_at
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Integers

N_NODES = 16

# Where the logarithm of a density is so far below its top, nothing is left of it.
LOST = 45.0

# A rule of 16 nodes integrates 32 coefficients exactly: if the last 4 of 16 are this small, the error is
# rounding.
ROUGH = 1e-8

# Blocks of lattices have at most 2 to this power points.
LEVELS = 50


class Rules(NamedTuple):
    """Gauss rules for panels: nodes on (-1, 1), weights that sum to 1, and the last orthonormal polynomials.

    The first axis of each is the level: on lattices a panel of level j has 2^j points, and short ones are
    exact.
    """

    nodes: Floats
    weights: Floats
    tails: Floats


@lru_cache(maxsize=2)
def rules(lattice: bool) -> Rules:
    """Return the rules of continuous supports (one level), or of lattices."""
    made = [_rule(2.0**level) for level in range(LEVELS + 1)] if lattice else [_rule(np.inf)]
    return Rules(*(np.ascontiguousarray(part) for part in map(np.stack, zip(*made, strict=True))))


def _rule(n_points: float) -> tuple[Floats, Floats, Floats]:
    """The Gauss rule of so many equally spaced points of equal mass: by Gram's polynomials; Legendre's at
    last.
    """
    if n_points <= N_NODES:
        n = int(n_points)
        nodes = (2.0 * np.minimum(np.arange(N_NODES), n - 1) - n + 1) / n
        return nodes, np.where(np.arange(N_NODES) < n, 1.0 / n, 0.0), np.zeros((N_NODES, 4))
    k = np.arange(1.0, N_NODES)
    found, vectors = eigh_tridiagonal(
        np.zeros(N_NODES), np.sqrt((1 - (k / n_points) ** 2) / (4 * k * k - 1)) * k
    )
    nodes, root = ((found - found[::-1]) / 2).astype(np.float64), np.abs(vectors[0])
    weights = (root**2 + root[::-1] ** 2) / 2
    # A row of the eigenvectors is an orthonormal polynomial times the root of the weights.
    return nodes, weights, (vectors * np.sign(vectors[0]) * np.sqrt(weights)).T[:, -4:]


class Panels(NamedTuple):
    """Pieces of the supports of some problems: whose, where, and what the integrand is like."""

    owner: Integers
    center: Floats
    half: Floats
    level: Integers
    #: Largest log integrand at the nodes, and a bound of it between them.
    top: Floats
    bound: Floats
    #: Integral and roughness, in units of the largest value.
    mass: Floats
    rough: Floats
    #: Log of the largest sum of squared statistics: they are integrated too, and may be large where mass is
    #: small.
    weight: Floats
    #: What rounding of the exponent makes of the largest value, as a share of it.
    noise: Floats
    #: Values at the nodes in that unit times weights, (P, n); statistics, (P, L + 1, n); points, (P, n).
    values: Floats
    statistics: Floats
    points: Floats

    def where(self, mask: Booleans | Integers) -> Panels:
        """Return some of the panels."""
        parts: tuple[Any, ...] = tuple(part[mask] for part in self)
        return Panels(*parts)

    # Panels side by side, which is not what + of tuples is.
    def __add__(self, other: Panels) -> Panels:  # type: ignore[override]  # as said above
        parts: tuple[Any, ...] = tuple(np.concatenate(pair) for pair in zip(self, other, strict=True))
        return Panels(*parts)


#: The statistics a problem is solved in: from values of the problem's functions (P, L + 1, n) and their
#: owners.
Basis = Callable[[Floats, Floats, Integers], Floats]


def _made(
    problem: Problem, theta: Floats, basis: Basis | None, places: tuple[Integers, Floats, Floats, Integers]
) -> Panels:
    """Panels at some places, with everything known of them."""
    owner, center, half, level = places
    rule = rules(problem.support.lattice)
    row = level if problem.support.lattice else np.zeros_like(level)
    nodes = nodes_at(problem.support, center[:, None] + half[:, None] * rule.nodes[row])
    statistics = problem.evaluate(nodes).transpose(1, 0, 2)
    if basis is not None:
        statistics = np.concatenate([basis(nodes.x, statistics, owner), statistics[:, -1:]], axis=1)
    with np.errstate(all="ignore"):
        exponent = np.einsum("pln,pl->pn", statistics[:, :-1], theta.T[owner]) + statistics[:, -1]
    # Where a statistic is beyond all numbers there is no mass, or no density.
    usable = np.isfinite(statistics).all(axis=1) & np.isfinite(exponent) & (rule.weights[row] > 0)
    exponent = np.where(usable, exponent + nodes.log_slope, -np.inf)
    statistics = np.where(usable[:, None], statistics, 0.0)
    at = exponent.argmax(axis=1)[:, None]
    top = np.take_along_axis(exponent, at, axis=1)[:, 0]
    with np.errstate(all="ignore"):
        steps = np.pad(np.abs(np.diff(exponent, axis=1)), ((0, 0), (1, 1)))
        steps = np.where(np.isfinite(steps), steps, 0.0)
        climb = np.maximum(np.take_along_axis(steps, at, axis=1), np.take_along_axis(steps, at + 1, axis=1))
        values = np.where(usable, np.exp(exponent - top[:, None]), 0.0)
    size = 2 * half
    rough = size * np.abs(np.einsum("pn,pnk->pk", values, rule.tails[row])).max(axis=1)
    values = values * rule.weights[row] * size[:, None]
    bound = np.where(np.isfinite(top), top + climb[:, 0], -np.inf)
    weight = np.log1p(np.minimum(np.abs(statistics[:, :-1]).max(axis=(1, 2)), 1e150) ** 2)
    with np.errstate(all="ignore"):
        terms = np.abs(statistics[:, :-1] * theta.T[owner][:, :, None]).sum(axis=1)
        noise = 4e-16 * np.nan_to_num(np.take_along_axis(terms, at, axis=1)[:, 0])
    return Panels(*places, top, bound, values.sum(axis=1), rough, weight, noise, values, statistics, nodes.x)


def _first_places(problem: Problem, start: Floats) -> tuple[Integers, Floats, Floats, Integers]:
    """Panels that cover the support, ever wider away from where the density is thought to be."""
    n = len(start)
    if problem.support.lattice:
        center, half, level = lattice_blocks(problem.support)
        return (
            np.repeat(np.arange(n), len(center)),
            np.tile(center, n),
            np.tile(half, n),
            np.tile(level, n),
        )
    steps = 2.0 ** np.arange(-1, 12)
    edges = np.clip(start[:, None] + np.r_[-steps[::-1], 0.0, steps], -END, END)
    breaks = coordinate_of(problem.support, problem.breaks)
    edges = np.sort(np.concatenate([edges, np.broadcast_to(breaks, (n, len(breaks)))], axis=1), axis=1)
    center, half = (edges[:, 1:] + edges[:, :-1]) / 2, (edges[:, 1:] - edges[:, :-1]) / 2
    owner = np.repeat(np.arange(n), center.shape[1])
    real = half.ravel() > 0
    owner = owner[real]
    return owner, center.ravel()[real], half.ravel()[real], np.zeros_like(owner)


def lattice_blocks(support: Support) -> tuple[Floats, Floats, Integers]:
    """Blocks of 16, 16, 32, 64, ... points from the lowest; a last one is cut into powers of two."""
    left = support.high - support.low + 1 if np.isfinite(support.high) else np.inf
    first = float(np.ceil(support.low))
    sizes: list[float] = []
    while left > 0 and len(sizes) < 2 * LEVELS and sum(sizes) < 2.0**LEVELS:
        size = 2.0 ** min(4 + max(len(sizes) - 1, 0), LEVELS)
        while size > left:
            size /= 2
        sizes.append(size)
        left -= size
    starts = first + np.r_[0.0, np.cumsum(sizes)[:-1]]
    lengths = np.array(sizes)
    return starts + (lengths - 1) / 2, lengths / 2, np.log2(lengths).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Integrals:
    """Integrals of some densities: log normalisers (M,), means (L, M), magnitudes (L, M), covariances (M, L,
    L).
    """

    log_partition: Floats
    mean: Floats
    magnitude: Floats
    covariance: Floats
    #: Mean of the log base measure, (M,), and the statistics where the integrand is largest, (L, M).
    base: Floats
    peak: Floats
    panels: Panels
    #: Probability of every node, (P, n).
    probability: Floats


def integrate(problem: Problem, theta: Floats, start: Floats, basis: Basis | None = None) -> Integrals:
    """Panels halved until the integrals no longer change, for all problems at once; theta is (L, M)."""
    n = theta.shape[1]
    panels = _made(problem, theta, basis, _first_places(problem, start))
    for _ in range(80):
        top, share, total = _shares(panels, panels.top, n)
        high, heavy_share, heavy = _shares(panels, panels.top + panels.weight, n)
        # What neither has mass nor adds to a square is left alone, also between the nodes.
        depth, heavy_depth = (
            panels.bound - top[panels.owner],
            panels.bound + panels.weight - high[panels.owner],
        )
        split = (depth > -LOST) | (heavy_depth > -LOST)
        unseen = (panels.top < top[panels.owner] - LOST) & (heavy_share < np.exp(-LOST))
        rough = panels.rough / (ROUGH + panels.noise)
        split &= unseen | (rough * share > total[panels.owner]) | (rough * heavy_share > heavy[panels.owner])
        if problem.support.lattice:
            split &= panels.level > 4
        else:
            split &= panels.half > 1e-13 * np.maximum(np.abs(panels.center), 1e-3)
        if not split.any():
            break
        old = panels.where(split)
        parts = 2 if problem.support.lattice else 4
        at = (np.arange(parts) * 2.0 + 1 - parts) / parts
        places = (
            np.repeat(old.owner, parts),
            (old.center[:, None] + old.half[:, None] * at).ravel(),
            np.repeat(old.half / parts, parts),
            np.repeat(old.level - 1, parts),
        )
        panels = panels.where(~split) + _made(problem, theta, basis, places)
    atoms = np.asarray(problem.support.atoms, dtype=np.float64)
    if len(atoms):
        panels = panels + _atoms(problem, theta, basis, atoms)
        top, share, total = _shares(panels, panels.top, n)
    probability = panels.values * (share / total[panels.owner])[:, None]
    highest = np.zeros(n, dtype=np.intp)
    at_top = np.flatnonzero(panels.top == top[panels.owner])
    highest[panels.owner[at_top]] = at_top
    peak = panels.statistics[highest, :-1, panels.values[highest].argmax(axis=1)].T
    # Statistics may be beyond all squares where there is no mass.
    panels = panels._replace(statistics=np.where(probability[:, None] > 0, panels.statistics, 0.0))
    each = np.einsum("pln,pn->lp", panels.statistics, probability)
    size = np.einsum("pln,pn->lp", np.abs(panels.statistics[:, :-1]), probability)
    mean = np.stack([_summed(panels.owner, row, n) for row in each])
    magnitude = np.stack([_summed(panels.owner, row, n) for row in size])
    centred = panels.statistics[:, :-1] - mean[:-1].T[panels.owner][:, :, None]
    with np.errstate(all="ignore"):
        products = np.einsum("pin,pjn->pij", centred * probability[:, None], centred)
        covariance = np.zeros((n, len(theta), len(theta)))
        np.add.at(covariance, panels.owner, products)
        return Integrals(
            top + np.log(total), mean[:-1], magnitude, covariance, mean[-1], peak, panels, probability
        )


def _shares(panels: Panels, height: Floats, n: int) -> tuple[Floats, Floats, Floats]:
    """For each problem the largest height, (n,), each panel's share of it, and the integral in units of it,
    (n,).
    """
    top = np.full(n, -np.inf)
    np.maximum.at(top, panels.owner, height)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(height - top[panels.owner]))
    return top, share, _summed(panels.owner, panels.mass * share, n)


def _summed(owner: Integers, values: Floats, n: int) -> Floats:
    """Sums over the panels of each problem, (n,)."""
    return np.bincount(owner, values, n).astype(np.float64, copy=False)


def _atoms(problem: Problem, theta: Floats, basis: Basis | None, atoms: Floats) -> Panels:
    """Return the single points that carry mass, as panels of one node."""
    n = theta.shape[1]
    owner = np.repeat(np.arange(n), len(atoms))
    points = np.tile(atoms, n)[:, None] + np.zeros(N_NODES)
    support = problem.support
    nodes = Nodes(points, points - support.low, support.high - points, np.zeros(points.shape))
    statistics = problem.evaluate(nodes).transpose(1, 0, 2)
    if basis is not None:
        statistics = np.concatenate([basis(points, statistics, owner), statistics[:, -1:]], axis=1)
    top = np.einsum("pl,pl->p", statistics[:, :-1, 0], theta.T[owner]) + statistics[:, -1, 0]
    values = np.zeros(points.shape)
    values[:, 0] = 1.0
    one, zero = np.ones(len(owner)), np.zeros(len(owner))
    level = np.zeros_like(owner)
    return Panels(
        owner, points[:, 0], zero, level, top, top, one, zero, zero, zero, values, statistics, points
    )
