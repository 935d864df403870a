"""The convex dual: natural parameters of maximum-entropy densities under the means of any functions.

Among all densities whose statistics have the means ``mu``, the one of largest entropy is ``exp(theta .
phi(x))`` up to
its normaliser, with the ``theta`` that minimises ``log Z(theta) - theta . mu``. That function is convex, its
gradient is the error of the moments, and its Hessian their covariance. All problems are solved at once.

Integrals are adaptive, for each problem by itself: panels of a Gauss rule are halved until the highest
coefficients of
the integrand vanish, in a coordinate that is graded towards the ends of the support. Sums over lattices use
the Gauss
rule of the counting measure, which is exact for short blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property, lru_cache
from math import comb
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.optimize import minimize

from maxdisc.functions import FeatureFunction, Power, moments
from maxdisc.matrices import Booleans, Floats, Integers, blocks
from maxdisc.support import Support
from maxdisc.threads import in_threads

Solver = Literal["newton", "gis", "gradient"]

#: A problem is solved if each mean is met to this share of the mean magnitude of its statistic.
TOLERANCE = 1e-8
#: What the iterations aim at.
AIM = 1e-12
#: Shares of an inner density's moments that are mixed into moments on the boundary: the first that helps.
SHARES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)
#: From so many problems of powers on, compiled code is worth loading.
MANY_PROBLEMS = 8

N_NODES = 16
# Where the logarithm of a density is so far below its top, nothing is left of it.
LOST = 45.0
# A rule of 16 nodes integrates 32 coefficients exactly: if the last 4 of 16 are this small, the error is
# rounding.
ROUGH = 1e-8
# The coordinate ends where doubles do.
END = 690.0
# Blocks of lattices have at most 2 to this power points.
LEVELS = 50
_PROBLEMS_AT_A_TIME = 512


class Status(IntEnum):
    """What became of a problem.

    Examples
    --------
    >>> from maxdisc.dual import Status
    >>> Status.SOLVED.name
    'SOLVED'
    """

    #: The density has the moments asked for.
    SOLVED = 0
    #: The iterations ended elsewhere; the parameters are where they ended.
    NOT_CONVERGED = 1
    #: No density has these moments: they lie on the boundary (a constant, all mass at an end), or beyond. The
    #: parameters are those of moments moved inside, by the first of :data:`SHARES` that suffices.
    BOUNDARY = 2
    #: Some densities have these moments, but none of them has the largest entropy: the highest moment is too
    #: large
    #: for the tail. The parameters are those of the lower moments alone, which have the limit of the
    #: entropies.
    NO_DENSITY = 3


class Solution(NamedTuple):
    """What :func:`solve` found.

    Parameters
    ----------
    natural : ndarray of shape (L, ...)
        Natural parameters; always finite.
    status : ndarray of shape (...)
        A :class:`Status` each.
    n_iter : ndarray of shape (...)
        Evaluations of the dual.
    residual : ndarray of shape (...)
        Largest error of a mean, as a share of the mean magnitude of its statistic; powers are taken about the
        end
        or the mean that is near.
    """

    natural: Floats
    status: Integers
    n_iter: Integers
    residual: Floats

    @property
    def counts(self) -> dict[Status, int]:
        """How many problems ended in each status."""
        return {status: int((self.status == status).sum()) for status in Status}


@dataclass(frozen=True)
class Problem:
    """What a density lives on, and the functions whose means it is given.

    Parameters
    ----------
    support : Support
        Intervals, half-lines, the line, lattices with a lowest point; with atoms or without.
    functions : tuple of callable
        From values to numbers, L of them.
    log_base : callable, optional
        Log of a base measure: the density of least divergence from it is wanted, not that of largest entropy.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.dual import Problem, solve
    >>> from maxdisc.functions import moments
    >>> from maxdisc.support import Support
    >>> problem = Problem(Support(0.0), moments(1))
    >>> solve(problem, np.array([[0.5, 2.0]])).natural.round(9)
    array([[-2. , -0.5]])
    """

    support: Support
    functions: tuple[FeatureFunction, ...]
    log_base: FeatureFunction | None = None

    def __post_init__(self) -> None:
        support = self.support
        if not self.functions:
            raise ValueError("a maximum-entropy density needs at least one function.")
        if support.lattice and not np.isfinite(support.low):
            raise ValueError("a lattice needs a finite lower end.")
        if support.low >= support.high:
            raise ValueError(f"{support} has no room for a density.")
        if self.translates and len(self.functions) == 1:
            raise ValueError(
                "on the line a mean alone has no maximum-entropy density: use moments(2) or more."
            )

    @cached_property
    def powers(self) -> bool:
        """Whether the functions are x, x^2, ..., and nothing else is given."""
        plain = self.log_base is None and not self.support.atoms and len(self.functions) <= 6
        return plain and self.functions == moments(len(self.functions))

    @property
    def translates(self) -> bool:
        """Whether the functions are powers on the whole line, so that any origin will do."""
        return self.powers and bool(np.isinf(self.support.low) and np.isinf(self.support.high))

    @property
    def n_statistics(self) -> int:
        """L."""
        return len(self.functions)

    @cached_property
    def breaks(self) -> Floats:
        """Points inside the support at which some function is not smooth."""
        functions = (*self.functions, self.log_base)
        points = {b for f in functions for b in getattr(f, "breaks", ())}
        return np.array(sorted(b for b in points if self.support.low < b < self.support.high))

    def evaluate(self, nodes: Nodes) -> Floats:
        """The functions, and after them the log base measure, at some nodes; shape (L + 1, ...)."""
        out = np.zeros((self.n_statistics + 1, *nodes.x.shape))
        functions = [*self.functions] + [f for f in (self.log_base,) if f is not None]
        with np.errstate(all="ignore"):
            for row, function in zip(out, functions, strict=False):
                gaps = getattr(function, "of_gaps", None)
                values = None if gaps is None else gaps((nodes.above, nodes.below), self.support)
                row[:] = function(nodes.x) if values is None else values
        return out


class Nodes(NamedTuple):
    """Points of a support: where they are, how far from either end, and the log slope of the coordinate."""

    x: Floats
    above: Floats
    below: Floats
    log_slope: Floats


def _nodes(support: Support, t: Floats) -> Nodes:
    """The points of a coordinate on (-END, END) in which ends are far away; of a lattice, the points."""
    low, high = support.low, support.high
    if support.lattice:
        return Nodes(t, t - low, high - t, np.zeros(t.shape))
    if np.isfinite(low) and np.isfinite(high):
        width = high - low
        above, below = width / (1 + np.exp(-t)), width / (1 + np.exp(t))
        slope = np.log(width) - np.abs(t) - 2 * np.log1p(np.exp(-np.abs(t)))
        return Nodes(np.where(t < 0, low + above, high - below), above, below, slope)
    if np.isfinite(low):
        return Nodes(low + np.exp(t), np.exp(t), np.full(t.shape, np.inf), t)
    if np.isfinite(high):
        return Nodes(high - np.exp(t), np.full(t.shape, np.inf), np.exp(t), t)
    infinite = np.full(t.shape, np.inf)
    return Nodes(np.sinh(t), infinite, infinite, np.abs(t) + np.log1p(np.exp(-2 * np.abs(t))) - np.log(2))


def _coordinate(support: Support, x: Floats) -> Floats:
    """The inverse of :func:`_nodes` for continuous supports."""
    low, high = support.low, support.high
    with np.errstate(divide="ignore"):
        if np.isfinite(low) and np.isfinite(high):
            t = np.log(x - low) - np.log(high - x)
        elif np.isfinite(low):
            t = np.log(x - low)
        elif np.isfinite(high):
            t = np.log(high - x)
        else:
            t = np.arcsinh(x)
    return np.clip(np.nan_to_num(t), -END, END)


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
    """The rules of continuous supports (one level), or of lattices."""
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
        parts: tuple[Any, ...] = tuple(part[mask] for part in self)
        return Panels(*parts)

    def __add__(self, other: Panels) -> Panels:  # type: ignore[override]
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
    nodes = _nodes(problem.support, center[:, None] + half[:, None] * rule.nodes[row])
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
        center, half, level = _lattice_blocks(problem.support)
        return (
            np.repeat(np.arange(n), len(center)),
            np.tile(center, n),
            np.tile(half, n),
            np.tile(level, n),
        )
    steps = 2.0 ** np.arange(-1, 12)
    edges = np.clip(start[:, None] + np.r_[-steps[::-1], 0.0, steps], -END, END)
    breaks = _coordinate(problem.support, problem.breaks)
    edges = np.sort(np.concatenate([edges, np.broadcast_to(breaks, (n, len(breaks)))], axis=1), axis=1)
    center, half = (edges[:, 1:] + edges[:, :-1]) / 2, (edges[:, 1:] - edges[:, :-1]) / 2
    owner = np.repeat(np.arange(n), center.shape[1])
    real = half.ravel() > 0
    owner = owner[real]
    return owner, center.ravel()[real], half.ravel()[real], np.zeros_like(owner)


def _lattice_blocks(support: Support) -> tuple[Floats, Floats, Integers]:
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


def _integrate(problem: Problem, theta: Floats, start: Floats, basis: Basis | None = None) -> Integrals:
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
    """The single points that carry mass, as panels of one node."""
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


# ---------------------------------------------------------------------------------------------- where to
# begin


@lru_cache(maxsize=64)
def _scan(problem: Problem) -> tuple[Floats, Floats]:
    """Coordinates all over a continuous support, (G,), and the statistics there with log base and slope, (L
    + 1, G).
    """
    t = np.unique(np.r_[np.linspace(-40, 40, 321), np.linspace(-END, END, 231)])
    nodes = _nodes(problem.support, t)
    statistics = problem.evaluate(nodes)
    statistics[-1] += nodes.log_slope
    usable = np.isfinite(statistics).all(axis=0)
    return t[usable], statistics[:, usable]


def _densest(problem: Problem, theta: Floats) -> Floats:
    """About where each density is largest in the coordinate, shape (M,)."""
    if problem.support.lattice:
        return np.zeros(theta.shape[1])
    t, statistics = _scan(problem)
    with np.errstate(all="ignore"):
        exponent = theta.T @ statistics[:-1] + statistics[-1]
    return t[np.nan_to_num(exponent, nan=-np.inf).argmax(axis=1)]


@lru_cache(maxsize=64)
def _coarse(problem: Problem) -> tuple[Nodes, Floats, Floats]:
    """A few hundred nodes that all problems share: points, statistics (L + 1, G), log weights (G,).

    In a coordinate in which both ends are far away, equal weights are nearly a Gauss rule.
    """
    support = problem.support
    if not support.lattice:
        t, statistics = _scan(problem)
        return _nodes(support, t), statistics, np.log(np.gradient(t))
    center, half, level = _lattice_blocks(support)
    rule = rules(True)
    weights = (2 * half[:, None] * rule.weights[level]).ravel()
    x = (center[:, None] + half[:, None] * rule.nodes[level]).ravel()[weights > 0]
    nodes = Nodes(x, x - support.low, support.high - x, np.zeros(x.shape))
    return nodes, problem.evaluate(nodes), np.log(weights[weights > 0])


class _CoarseDual(NamedTuple):
    """What :class:`_Dual` is, on shared nodes: to begin with."""

    table: Floats
    log_weights: Floats
    products: Floats
    targets: Floats

    @classmethod
    def of(cls, problem: Problem, targets: Floats) -> _CoarseDual:
        _, statistics, weights = _coarse(problem)
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
        """As :meth:`_Dual.at`."""
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
def _known_members(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """Members to begin from, for any functions: parameters (L, K), log normalisers (K,) and means (L, K).

    Exponentials and Gaussians of many scales, each as near as the functions come to its logarithm.
    """
    support = problem.support
    nodes, statistics, slope = _coarse(problem)
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
    at = _integrate(problem, theta, _densest(problem, theta))
    good = (
        np.isfinite(at.log_partition)
        & (np.abs(at.log_partition) < 1e6)
        & (np.abs(at.mean) < 1e100).all(axis=0)
    )
    good &= (np.einsum("kii->ik", at.covariance) > 0).all(axis=0)
    return theta[:, good], at.log_partition[good], at.mean[:, good]


# ------------------------------------------------------------------------------------------------- iterations


class _Dual(NamedTuple):
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

    def some(self, which: Integers) -> _Dual:
        """That of some of the problems."""
        basis = self.basis
        return self._replace(
            targets=self.targets[:, which],
            start=None if self.start is None else self.start[which],
            basis=None if basis is None else lambda inner: basis(which[inner]),
        )

    def integrals(self, theta: Floats, which: Integers) -> Integrals:
        start = _densest(self.problem, theta) if self.start is None else self.start[which]
        basis = None if self.basis is None else self.basis(which)
        return _integrate(self.problem, theta, start, basis)


def _newton_step(error: Floats, covariance: Floats) -> Floats:
    """``-covariance^-1 error`` in statistics of unit variance, with what rounding made singular left out."""
    scale = np.sqrt(np.maximum(np.einsum("mii->mi", covariance), 1e-300))
    values, vectors = np.linalg.eigh(np.nan_to_num(covariance / scale[:, :, None] / scale[:, None, :]))
    values = np.maximum(values, 1e-14)
    along = np.einsum("mij,mi->mj", vectors, error.T / scale) / values
    with np.errstate(over="ignore"):
        step = (np.einsum("mij,mj->mi", vectors, along) / scale).T
    return -np.clip(step, -1e300, 1e300)


def _newton(dual: _Dual | _CoarseDual, theta: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
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


#: Log weights (P, n), statistics (P, L, n) and owners (P,) of panels that stay where they are.
Nodal: TypeAlias = tuple[Floats, Floats, Integers]


def _fixed_nodes(dual: _Dual, theta: Floats) -> Nodal:
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
    slope = np.where(panels.half[:, None] == 0, 0.0, _nodes(dual.problem.support, t).log_slope)
    weights = weights + slope + panels.statistics[:, -1]
    weights = np.where((panels.values > 0) | (panels.top[:, None] > -np.inf), weights, -np.inf)
    return weights, panels.statistics[:, :-1], panels.owner


def _on_nodes(nodes: tuple[Floats, Floats, Integers], theta: Floats) -> tuple[Floats, Floats]:
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


def _by_scaling(dual: _Dual, theta: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
    """Generalised iterative scaling (Darroch and Ratcliff): shares of non-negative functions that sum to 1.

    Every function is shifted and scaled to [0, 1 / L]; the slack function is what is missing to 1. Each round
    ends
    when scaling no longer moves; nodes are then placed anew.
    """
    theta, n_iter = theta.copy(), np.zeros(theta.shape[1], dtype=np.intp)
    for _ in range(8):
        weights, statistics, owner = nodes = _fixed_nodes(dual, theta)
        real = np.isfinite(weights)[:, None]
        low, high = np.full(theta.T.shape, np.inf), np.full(theta.T.shape, -np.inf)
        np.minimum.at(low, owner, np.where(real, statistics, np.inf).min(axis=2))
        np.maximum.at(high, owner, np.where(real, statistics, -np.inf).max(axis=2))
        width = len(theta) * (high - low).T
        wanted = (dual.targets - low.T) / width
        for _ in range(max_iter):
            given = (_on_nodes(nodes, theta)[1] - low.T) / width
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


def _by_gradient(dual: _Dual, theta: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
    """L-BFGS on the sum of all duals, in statistics that are uncorrelated where a round begins."""
    theta, n_iter = theta.copy(), np.zeros(theta.shape[1], dtype=np.intp)
    everything = np.arange(theta.shape[1])
    for _ in range(12):
        covariance = dual.at(theta, everything)[2]
        values, vectors = np.linalg.eigh(covariance)
        root = vectors / np.sqrt(np.maximum(values, 1e-14 * values[:, -1:]))[:, None, :]
        nodes, begin = _fixed_nodes(dual, theta), theta.copy()

        def objective(
            flat: Floats, begin: Floats = begin, root: Floats = root, nodes: Nodal = nodes
        ) -> tuple[float, Floats]:
            move = flat.reshape(begin.shape)
            now = begin + np.einsum("mij,jm->im", root, move)
            log_partition, mean = _on_nodes(nodes, now)
            error = mean - dual.targets
            value = log_partition - (now * dual.targets).sum(axis=0)
            return float(value.sum()), np.einsum("mij,im->jm", root, error).ravel()

        found = minimize(
            objective,
            np.zeros(theta.size),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter, "ftol": 0.0, "gtol": 1e-11, "maxcor": 30},
        )
        theta = begin + np.einsum("mij,jm->im", root, found.x.reshape(theta.shape))
        n_iter += found.nfev
        residual = dual.at(theta, everything)[3]
        if (residual <= TOLERANCE / 10).all():
            break
    return theta, residual, n_iter


# ------------------------------------------------------------------------------------------ powers, rescaled


class _Scaled(NamedTuple):
    """Powers of ``z = (x - center) / scale``, each problem about the end or the mean that is near."""

    center: Floats
    scale: Floats
    targets: Floats

    @classmethod
    def of(cls, support: Support, targets: Floats) -> _Scaled:
        first = targets[0]
        if len(targets) > 1:
            spread = np.sqrt(np.maximum(targets[1] - first**2, 0.0))
        else:
            spread = np.full(first.shape, np.inf)
        from_low, from_high = first - support.low, support.high - first
        gap = np.minimum(from_low, from_high)
        near = gap <= 3 * spread
        center = np.where(near, np.where(from_low <= from_high, support.low, support.high), first)
        scale = np.where(near, gap, spread)
        return cls.about(center, np.where(scale > 0, scale, 1.0), targets)

    @classmethod
    def about(cls, center: Floats, scale: Floats, targets: Floats) -> _Scaled:
        """The moments of ``(x - center) / scale`` from those of x (binomial theorem)."""
        raw = np.vstack([np.ones_like(center), targets])
        moved = [
            sum(comb(k, j) * (-center) ** (k - j) * raw[j] for j in range(k + 1)) / scale**k
            for k in range(1, len(raw))
        ]
        return cls(center, scale, np.stack(moved))

    @classmethod
    def around(cls, support: Support, natural: Floats, start: Floats) -> _Scaled:
        """About where the densities of these parameters are largest, in a unit in which no term varies much
        more.
        """
        order = np.arange(1.0, len(natural) + 1)[:, None]
        with np.errstate(divide="ignore", over="ignore"):
            scale = (np.abs(natural) ** (-1 / order)).min(axis=0)
        scale = np.clip(scale, 1e-30, min(support.high - support.low, 1e30))
        if support.lattice:
            return cls(np.full(start.shape, support.low), np.ones(start.shape), natural)
        return cls(_nodes(support, start).x, scale, natural)

    def raw(self, mean: Floats) -> Floats:
        """Means of the powers of x from those of the powers of z."""
        powers = [np.ones(self.center.shape), *mean]
        return np.stack(
            [
                sum(comb(k, j) * self.center ** (k - j) * self.scale**j * powers[j] for j in range(k + 1))
                for k in range(1, len(powers))
            ]
        )

    def basis(self, which: Integers) -> Basis:
        center, scale = self.center[which], self.scale[which]

        def powers(x: Floats, statistics: Floats, owner: Integers) -> Floats:
            with np.errstate(all="ignore"):
                z = (x - center[owner][:, None]) / scale[owner][:, None]
                return np.stack([z ** (k + 1) for k in range(statistics.shape[1] - 1)], axis=1)

        return powers

    def ends(self, support: Support) -> tuple[Floats, Floats]:
        """The ends of the supports in z."""
        return (support.low - self.center) / self.scale, (support.high - self.center) / self.scale

    def natural(self, theta: Floats) -> Floats:
        """Parameters of the powers of x from those of the powers of z."""
        out = np.zeros_like(theta)
        for k in range(1, len(theta) + 1):
            coefficient = theta[k - 1] / self.scale**k
            for j in range(1, k + 1):
                out[j - 1] += comb(k, j) * (-self.center) ** (k - j) * coefficient
        return out

    def parameters(self, natural: Floats) -> Floats:
        """The inverse of :meth:`natural`."""
        out = np.zeros_like(natural)
        for k in range(1, len(natural) + 1):
            for j in range(1, k + 1):
                out[j - 1] += comb(k, j) * self.center ** (k - j) * natural[k - 1] * self.scale**j
        return out

    def candidates(self, support: Support) -> Floats:
        """Members to begin from, shape (K, L, M): exponentials from the ends, a Gaussian, the uniform.

        On unbounded supports only such as no small change of the highest parameter takes out of the family.
        """
        low, high = self.ends(support)
        mean, order = self.targets[0], len(self.targets)
        found: list[list[Floats]] = []
        if order > 1 and np.isinf(support.high - support.low):
            variance = np.maximum(self.targets[1] - mean**2, 1e-300)
            # The density exp(last * z^L) has this highest moment.
            last = -1 / (order * np.maximum(np.abs(self.targets[-1]), 1e-300))
            last = -last if order % 2 and np.isinf(support.low) else last
            none = np.zeros_like(mean)
            gaussian = [mean / variance, -0.5 / variance, *[none] * (order - 2)]
            found = (
                [gaussian]
                if order == 2
                else [[*gaussian[:-1], share * last] for share in (1e-6, 1e-4, 0.01, 0.1, 1.0)]
            )
            found.append([none] * (order - 1) + [last])
            return np.array(found)

        def rate(gap: Floats) -> Floats:
            # Of an exponential with this mean, or of a geometric.
            gap = np.maximum(gap, 1e-300)
            return np.log1p(1 / (gap * self.scale)) * self.scale if support.lattice else 1 / gap

        if np.isfinite(support.low):
            found.append([-rate(mean - low)])
        if np.isfinite(support.high):
            found.append([rate(high - mean)])
        if len(found) == 2:
            found.append([np.zeros_like(mean)])
        if len(self.targets) > 1:
            variance = np.maximum(self.targets[1] - mean**2, 1e-300)
            found.append([mean / variance, -0.5 / variance])
        out = np.zeros((len(found), *self.targets.shape))
        for row, member in zip(out, found, strict=True):
            row[: len(member)] = member
        return out

    def feasible(self, support: Support) -> Booleans:
        """Where a density on the continuous support has these moments (Hausdorff, Stieltjes, Hamburger)."""
        low, high = self.ends(support)
        z = np.vstack([np.ones_like(self.center), self.targets])
        order = len(self.targets)
        above = z[1:] - low * z[:-1] if np.isfinite(support.low) else None
        below = high * z[:-1] - z[1:] if np.isfinite(support.high) else None
        if above is not None and below is not None:
            both = below[1:] - low * below[:-1]
            checks = [z, both] if order % 2 == 0 else [above, below]
        else:
            one = above if above is not None else below
            checks = [z] if one is None else [z, one]
        good = np.ones(self.center.shape, dtype=np.bool_)
        for row in checks:
            size = (len(row) + 1) // 2
            hankel = np.stack([row[i : i + size] for i in range(size)]).transpose(2, 0, 1)
            root = np.sqrt(np.maximum(np.einsum("mii->mi", hankel), 0.0))
            good &= (root > 0).all(axis=1)
            root = np.where(root > 0, root, 1.0)
            unit = np.nan_to_num(hankel / root[:, :, None] / root[:, None, :])
            good &= np.linalg.eigvalsh(unit)[:, 0] > 1e-13
        return good

    def blurred(self, support: Support) -> Booleans:
        """Where rounding of the raw moments says more of the higher ones about the center than they do.

        So it is next to an end that is not 0. What two moments say is still told by them.
        """
        order = len(self.targets)
        noise = np.finfo(np.float64).eps * (1 + 2 * np.abs(self.center / self.scale)) ** order
        two = _Scaled(self.center, self.scale, self.targets[:2]).feasible(support) if order > 2 else False
        return np.asarray(two & (noise > 1e-10 * np.abs(self.targets[-1])))


# ---------------------------------------------------------------------------------------------------- solving


def solve(
    problem: Problem, targets: Floats, solver: Solver = "newton", max_iter: int | None = None
) -> Solution:
    """Natural parameters of the maximum-entropy densities whose statistics have these means.

    Parameters
    ----------
    problem : Problem
        The support and the functions.
    targets : ndarray of shape (L, ...)
        Means of the functions; equal ones are solved once.
    solver : {"newton", "gis", "gradient"}
        Damped Newton; generalised iterative scaling, for bounded supports; or L-BFGS. The last two are slow,
        and are
        here to check the first.
    max_iter : int, optional
        Of each; 120, 20,000 and 2,000 by default.

    Returns
    -------
    Solution
        Of shapes (L, ...) and (...). What could not be solved as it was asked is told by the status.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.dual import Problem, solve
    >>> from maxdisc.functions import moments
    >>> from maxdisc.support import Support
    >>> solution = solve(Problem(Support(0.0), moments(2)), np.array([[1.0, 1.0, 1.0], [1.5, 1.0, 3.0]]))
    >>> [status.name for status, count in solution.counts.items() if count]
    ['SOLVED', 'BOUNDARY', 'NO_DENSITY']
    """
    wanted = np.asarray(targets, dtype=np.float64)
    if wanted.ndim == 0 or len(wanted) != problem.n_statistics:
        raise ValueError(
            f"targets must be {problem.n_statistics} means for each problem, got {wanted.shape}."
        )
    if not np.isfinite(wanted).all():
        raise ValueError("a target is not finite: means must be numbers.")
    if solver not in ("newton", "gis", "gradient"):
        raise ValueError(f"solver must be 'newton', 'gis' or 'gradient', got {solver!r}.")
    support = problem.support
    if solver == "gis" and not np.isfinite(support.high - support.low):
        raise ValueError("iterative scaling needs a bounded support: use solver='newton'.")
    shape = wanted.shape[1:]
    distinct, inverse = _distinct(wanted.reshape(len(wanted), -1))
    compiled = problem.powers and solver == "newton" and distinct.shape[1] >= MANY_PROBLEMS
    found = _solved(problem, distinct, solver, max_iter, compiled)
    parts: tuple[Any, ...] = tuple(part[inverse].reshape(shape) for part in found[1:])
    return Solution(found.natural[:, inverse].reshape(wanted.shape), *parts)


def _distinct(columns: Floats) -> tuple[Floats, Integers]:
    """The columns that differ, and for each column which of them it is."""
    # One number for each column sorts many times faster than columns do; that it tells them apart is checked.
    key = np.sqrt(np.arange(2.0, 2.0 + len(columns))) @ columns
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    distinct = columns[:, first]
    if not np.array_equal(distinct[:, inverse], columns):
        distinct, inverse = np.unique(columns, axis=1, return_inverse=True)
    return np.ascontiguousarray(distinct), inverse.reshape(-1)


def _solved(
    problem: Problem, targets: Floats, solver: Solver, max_iter: int | None, compiled: bool
) -> Solution:
    """All of it for distinct targets, (L, M)."""
    n = targets.shape[1]
    natural, residual, n_iter = np.zeros(targets.shape), np.full(n, np.inf), np.zeros(n, dtype=np.intp)
    status = np.full(n, int(Status.NOT_CONVERGED))
    odd = problem.translates and problem.n_statistics % 2 == 1
    feasible = np.ones(n, dtype=np.bool_)
    if problem.powers:
        scaled = _Scaled.of(problem.support, targets)
        feasible = scaled.feasible(problem.support) | scaled.blurred(problem.support)
    if not odd:
        first = np.flatnonzero(feasible)
        found = _attempt(problem, targets[:, first], solver, max_iter, compiled)
        natural[:, first], residual[first], n_iter[first] = found
    infinite = np.isinf(problem.support.high - problem.support.low)
    if problem.powers and infinite:
        # A tail that grows, however slowly, is none.
        upwards = -1.0 if problem.n_statistics % 2 and np.isinf(problem.support.low) else 1.0
        residual[upwards * natural[-1] >= 0] = np.inf
    status[residual <= TOLERANCE] = Status.SOLVED
    if problem.powers and infinite and problem.n_statistics > 1:
        _take_lower_moments(problem, targets, natural, residual, status, feasible, compiled)
    left = np.flatnonzero(status == Status.NOT_CONVERGED)
    if len(left):
        outside = ~feasible[left]
        if not problem.powers or problem.support.lattice:
            outside |= _separated(problem, natural[:, left], targets[:, left])
        _move_inside(problem, targets, natural, residual, status, left, outside, compiled)
    return Solution(natural, status, n_iter, residual)


def _attempt(
    problem: Problem, targets: Floats, solver: Solver, max_iter: int | None, compiled: bool
) -> tuple[Floats, Floats, Integers]:
    """Parameters, residuals and numbers of evaluations, whatever they are worth."""
    n = targets.shape[1]
    if n == 0:
        return np.zeros(targets.shape), np.zeros(0), np.zeros(0, dtype=np.intp)
    if compiled:
        return _compiled(problem, targets, max_iter or 120)

    def part(some: slice) -> tuple[Floats, Floats, Integers]:
        return _iterated(problem, targets[:, some], solver, max_iter)

    parts = in_threads(part, list(blocks(n, 1, _PROBLEMS_AT_A_TIME)))
    natural, residual, n_iter = zip(*parts, strict=True)
    return np.concatenate(natural, axis=1), np.concatenate(residual), np.concatenate(n_iter)


def _iterated(
    problem: Problem, targets: Floats, solver: Solver, max_iter: int | None
) -> tuple[Floats, Floats, Integers]:
    which = np.arange(targets.shape[1])
    scaled = None
    if problem.powers:
        scaled = _Scaled.of(problem.support, targets)
        mean = np.clip(targets[0], problem.support.low, problem.support.high)
        dual = _Dual(problem, scaled.targets, _coordinate(problem.support, mean), scaled.basis)
        members = scaled.candidates(problem.support)
        values = np.stack([dual.at(member, which)[0] for member in members])
        theta = members[np.nan_to_num(values, nan=np.inf).argmin(axis=0), :, which].T
    else:
        dual = _Dual(problem, targets, None, None)
        members, log_partition, _ = _known_members(problem)
        theta = members[:, (log_partition[:, None] - members.T @ targets).argmin(axis=0)]
        if solver == "newton":
            theta = _better(dual, theta, _newton(_CoarseDual.of(problem, targets), theta, 40)[0])
    method = {"newton": _newton, "gis": _by_scaling, "gradient": _by_gradient}[solver]
    usual = {"newton": 120, "gis": 20_000, "gradient": 2_000}[solver]
    theta, residual, n_iter = method(dual, theta, max_iter or usual)
    for member in members if scaled is not None and solver == "newton" else ():
        # Another beginning leads around what stood in the way of this one.
        left = np.flatnonzero(residual > 1e-9)
        if len(left):
            again = _newton(dual.some(left), member[:, left], max_iter or usual)
            better = again[1] < residual[left]
            theta[:, left[better]], residual[left[better]] = again[0][:, better], again[1][better]
            n_iter[left] += again[2]
    return theta if scaled is None else scaled.natural(theta), residual, n_iter


def _better(dual: _Dual, theta: Floats, other: Floats) -> Floats:
    """Of two parameters for each problem those at which its dual is lower."""
    everything = np.arange(theta.shape[1])
    value, others = dual.at(theta, everything)[0], dual.at(other, everything)[0]
    return np.where(np.nan_to_num(others, nan=np.inf) < value, other, theta)


def _take_lower_moments(
    problem: Problem,
    targets: Floats,
    natural: Floats,
    residual: Floats,
    status: Integers,
    feasible: Booleans,
    compiled: bool,
) -> None:
    """On unbounded supports, see whether the densities of the lower moments already have too light a tail.

    The parameter of the highest power may not be positive. If at 0, where the lower moments alone decide, the
    dual
    still falls towards positive values, then 0 is its minimum: the highest moment is larger than any density
    of this
    form has. On the line an odd highest power must have the parameter 0, and with it every odd power above an
    even.
    """
    on_line, order = problem.translates, problem.n_statistics
    sign = 1.0 if np.isinf(problem.support.high) or order % 2 == 0 else -1.0
    nearest = order - 1 if not on_line or order % 2 == 1 else order - 2
    for fewer in range(nearest, 0, -2 if on_line else -1):
        left = np.flatnonzero((status == Status.NOT_CONVERGED) & feasible)
        if len(left) == 0:
            return
        simpler = Problem(problem.support, problem.functions[:fewer])
        lower = _solved(simpler, targets[:fewer, left], "newton", None, compiled)
        reduced = np.zeros((order, len(left)))
        reduced[:fewer] = lower.natural
        found = integrals(problem, reduced).mean
        # E |x|^k is at least this.
        size = np.maximum(np.abs(found), 1e-300)
        size[1:] = np.maximum(size[1:], found[1] ** (np.arange(2, order + 1) / 2)[:, None])
        error = (found - targets[:, left])[fewer:] / size[fewer:]
        solved = lower.status == Status.SOLVED
        equal = solved & (np.abs(error) <= TOLERANCE).all(axis=0)
        beyond = (solved | (lower.status == Status.NO_DENSITY)) & ~equal & ((sign * error[-1] < 0) | on_line)
        beyond &= fewer == nearest
        natural[:, left[equal | beyond]] = reduced[:, equal | beyond]
        residual[left[equal | beyond]] = np.abs(error).max(axis=0)[equal | beyond]
        status[left[equal]], status[left[beyond]] = Status.SOLVED, Status.NO_DENSITY


def _separated(problem: Problem, natural: Floats, targets: Floats) -> Booleans:
    """Where the parameters show that the targets lie outside: every point of the support is on one side."""
    if natural.shape[1] == 0:
        return np.zeros(0, dtype=np.bool_)
    inner = _known_members(problem)[2][:, :1]
    height = integrals(problem, natural).panels
    top = np.full(natural.shape[1], -np.inf)
    slopeless = np.einsum("pln,pl->pn", height.statistics[:, :-1], natural.T[height.owner])
    np.maximum.at(top, height.owner, slopeless.max(axis=1))
    reach = (natural * targets).sum(axis=0) - (natural * inner).sum(axis=0)
    return np.asarray(top - (natural * targets).sum(axis=0) <= 1e-5 * np.abs(reach))


def _move_inside(
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
    inner = _known_members(problem)[2]
    for share in SHARES:
        some = ~outside if share < 1e-8 else np.ones(len(left), dtype=np.bool_) if share < 1 else outside
        now = left[some]
        if len(now) == 0:
            continue
        mixed = (1 - share) * targets[:, now] + share * inner[:, _nearest(inner, targets[:, now])]
        sane = np.ones(len(now), dtype=np.bool_)
        if problem.powers:
            sane = _Scaled.of(problem.support, mixed).feasible(problem.support)
        found, error = np.zeros(mixed.shape), np.full(len(now), np.inf)
        found[:, sane], error[sane], _ = _attempt(problem, mixed[:, sane], "newton", 60, compiled)
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
    """Which of the members' means (L, K) is nearest to each target, in units of their spread."""
    scale = np.abs(inner).mean(axis=1, keepdims=True) + 1e-300
    return np.asarray(
        (np.abs(inner[:, :, None] - targets[:, None]) / scale[:, :, None]).sum(axis=0).argmin(axis=0)
    )


def _places(low: Floats, high: Floats) -> tuple[Floats, Integers]:
    """Panels of continuous supports in z that widen away from 0: center, half and level, (M, P, 3), and how
    many.
    """
    steps = 2.0 ** np.r_[np.arange(-2, 7), np.arange(8, 42, 2)]
    edges = np.clip(np.r_[-steps[::-1], 0.0, steps], low[:, None], high[:, None])
    for end in (low, high):
        edges = np.concatenate([edges, np.where(np.isfinite(end), end, 0.0)[:, None]], axis=1)
    edges = np.sort(np.clip(edges, low[:, None], high[:, None]), axis=1)
    center, half = (edges[:, 1:] + edges[:, :-1]) / 2, (edges[:, 1:] - edges[:, :-1]) / 2
    # The real ones first, in their order.
    order = np.argsort(half <= 0, axis=1, kind="stable")
    places = np.stack([center, half, np.zeros(half.shape)], axis=2)
    count = (half > 0).sum(axis=1)
    return np.take_along_axis(places, order[:, :, None], axis=1)[:, : count.max(initial=1)], count


def _kernel_places(
    support: Support, scaled: _Scaled
) -> tuple[Floats, Integers, bool, Floats, Floats, Floats, Floats, Floats]:
    """What the kernels take to integrate: panels, their number, kind, what turns a panel's points into z,
    and rules.
    """
    n = len(scaled.center)
    if support.lattice:
        block = np.stack([part.astype(np.float64) for part in _lattice_blocks(support)], axis=1)
        places, count = np.broadcast_to(block, (n, *block.shape)), np.full(n, len(block))
        return places, count, True, scaled.center, scaled.scale, *rules(True)
    places, count = _places(*scaled.ends(support))
    return np.ascontiguousarray(places), count, False, np.zeros(n), np.ones(n), *rules(False)


def _compiled(problem: Problem, targets: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
    """What :func:`_iterated` does for powers by Newton's method, compiled."""
    from maxdisc.kernels.dual import powers_newton

    n = targets.shape[1]
    natural, residual, n_iter = np.empty(targets.shape), np.empty(n), np.empty(n, dtype=np.intp)

    def part(some: slice) -> None:
        scaled = _Scaled.of(problem.support, targets[:, some])
        size = len(scaled.center)
        theta, left, count = np.empty((size, len(targets))), np.empty(size), np.empty(size, dtype=np.intp)
        members = np.ascontiguousarray(scaled.candidates(problem.support).transpose(0, 2, 1))
        goals = np.ascontiguousarray(scaled.targets.T)
        begin = _warm(problem.support, scaled)
        places = _kernel_places(problem.support, scaled)
        powers_newton(goals, begin, members, *places, 0, size, max_iter, theta, left, count)
        natural[:, some], residual[some], n_iter[some] = scaled.natural(theta.T), left, count

    in_threads(part, list(blocks(n, 1, 8 * _PROBLEMS_AT_A_TIME)))
    return natural, residual, n_iter


def _warm(support: Support, scaled: _Scaled) -> Floats:
    """Parameters to begin with: those of 64 shared nodes, over the part of each support where the mass
    should be.
    """
    low, high = scaled.ends(support)
    order = len(scaled.targets)
    if order == 1 or support.lattice:
        return np.ascontiguousarray(scaled.candidates(support)[0].T)
    mean = scaled.targets[0]
    deviation = np.sqrt(np.maximum(scaled.targets[1] - mean**2, 0.0))
    # A Gaussian is over after 8 deviations; an exponential, which begins within 3 of its mean, after 30.
    reach = np.where(np.minimum(mean - low, high - mean) < 3 * deviation, 30.0, 8.0) * deviation
    low, high = np.maximum(low, mean - reach), np.minimum(high, mean + reach)
    half = np.maximum((high - low) / 2, 1e-300)
    window = _Scaled.about((low + high) / 2, half, scaled.targets)
    table, weights, combine = legendre_table(order, 64)
    basis = _legendre_powers(order)
    # E P_k(u) from E u^j; the constants of the polynomials are not statistics.
    targets = np.ascontiguousarray((basis[1:, 1:].T @ window.targets + basis[:1, 1:].T).T)
    theta = solve_on_nodes(targets, table, weights, combine, 1e-7, 40)[0]
    return np.ascontiguousarray(window.natural(basis[1:, 1:] @ theta.T).T)


def _legendre_powers(order: int) -> Floats:
    """Column k has the coefficients of Legendre's polynomial k, from the constant up."""
    out = np.zeros((order + 1, order + 1))
    for k in range(order + 1):
        out[: k + 1, k] = np.polynomial.legendre.leg2poly(np.eye(order + 1)[k])
    return out


@lru_cache(maxsize=32)
def legendre_table(order: int, n_nodes: int) -> tuple[Floats, Floats, Floats]:
    """Legendre's polynomials 1 .. 2 L at Gauss's nodes, (2 L, G), weights (G,), and products by them, (L, L,
    2 L + 1).
    """
    x, weights = np.polynomial.legendre.leggauss(n_nodes)
    table = np.polynomial.legendre.legvander(x, 2 * order).T
    norms = np.arange(2 * order + 1) + 0.5
    combine = np.einsum(
        "ig,jg,kg,g,k->ijk", table[1 : order + 1], table[1 : order + 1], table, weights, norms
    )
    return np.ascontiguousarray(table[1:]), weights, np.where(np.abs(combine) > 1e-12, combine, 0.0)


def solve_on_nodes(
    targets: Floats,
    table: Floats,
    weights: Floats,
    combine: Floats,
    tolerance: float = 1e-9,
    max_iter: int = 60,
) -> tuple[Floats, Floats, Integers]:
    """Parameters (M, L), residuals and numbers of evaluations of many problems (M, L) on the same few nodes.

    Sums over the nodes stand for integrals, be they right or not: :func:`solve` begins here, and checks.
    """
    from maxdisc.kernels.dual import newton_on_nodes

    n = len(targets)
    theta, residual, n_iter = np.empty(targets.shape), np.empty(n), np.empty(n, dtype=np.intp)

    def part(some: slice) -> None:
        given = (targets, table, weights, combine, some.start, some.stop, max_iter, tolerance)
        newton_on_nodes(*given, theta, residual, n_iter)

    in_threads(part, list(blocks(n, 1, 16 * _PROBLEMS_AT_A_TIME)))
    return theta, residual, n_iter


def expectations(problem: Problem, natural: Floats) -> tuple[Floats, Floats]:
    """Log normalisers (M,) and means (L, M) of densities with these parameters, (L, M).

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.dual import Problem, expectations
    >>> from maxdisc.functions import moments
    >>> from maxdisc.support import Support
    >>> expectations(Problem(Support(0.0), moments(1)), np.array([[-2.0]]))[1].round(12)
    array([[0.5]])
    """
    distinct, inverse = _distinct(natural)
    n = distinct.shape[1]
    log_partition, mean = np.empty(n), np.empty(distinct.shape)

    def part(some: slice) -> None:
        if problem.powers and n >= MANY_PROBLEMS:
            log_partition[some], mean[:, some] = _compiled_expectations(problem, distinct[:, some])
        else:
            found = integrals(problem, distinct[:, some])
            log_partition[some], mean[:, some] = found.log_partition, found.mean

    in_threads(part, list(blocks(n, 1, _PROBLEMS_AT_A_TIME)))
    return log_partition[inverse], mean[:, inverse]


def _compiled_expectations(problem: Problem, natural: Floats) -> tuple[Floats, Floats]:
    from maxdisc.kernels.dual import powers_integrals

    support, start = problem.support, _densest(problem, natural)
    scaled = _Scaled.around(support, natural, start)
    theta = np.ascontiguousarray(scaled.parameters(natural).T)
    log_partition, mean = np.empty(len(start)), np.empty(theta.shape)
    places = _kernel_places(support, scaled)
    powers_integrals(theta, *places, 0, len(start), log_partition, mean)
    log_partition += (natural * scaled.center ** np.arange(1.0, len(natural) + 1)[:, None]).sum(axis=0)
    if not support.lattice:
        log_partition += np.log(scaled.scale)
    return log_partition, scaled.raw(mean.T)


def integrals(problem: Problem, natural: Floats) -> Integrals:
    """Log normalisers, means and covariances of densities with these parameters, (L, M).

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.dual import Problem, integrals
    >>> from maxdisc.functions import moments
    >>> from maxdisc.support import Support
    >>> integrals(Problem(Support(0.0), moments(1)), np.array([[-2.0]])).mean.round(12)
    array([[0.5]])
    """
    start = _densest(problem, natural)
    if not problem.powers:
        return _integrate(problem, natural, start)
    scaled = _Scaled.around(problem.support, natural, start)
    found = _integrate(problem, scaled.parameters(natural), start, scaled.basis(np.arange(len(start))))
    constant = (natural * scaled.center ** np.arange(1.0, len(natural) + 1)[:, None]).sum(axis=0)
    return replace(found, log_partition=found.log_partition + constant, mean=scaled.raw(found.mean))


def known_mean(problem: Problem) -> tuple[float, ...]:
    """Means of one member, in the middle of those that iterations begin from."""
    means = _known_members(problem)[2]
    if means.shape[1] == 0:
        raise ValueError(f"no density on {problem.support} was found that has means of these functions.")
    bounded = np.isfinite(problem.support.high - problem.support.low)
    return tuple(means[:, 0 if bounded else means.shape[1] // 2].tolist())


def nearest_point(problem: Problem, mean: Floats) -> Floats:
    """The value whose statistics are nearest to these means, for constants; shape (...)."""
    for function, row in zip(problem.functions, mean, strict=True):
        if function == Power(1):
            return row
    if problem.support.lattice:
        center, half, level = _lattice_blocks(problem.support)
        points = np.unique(np.rint(center[:, None] + half[:, None] * rules(True).nodes[level]))
        nodes = Nodes(
            points, points - problem.support.low, problem.support.high - points, np.zeros(points.shape)
        )
    else:
        nodes = _nodes(problem.support, _scan(problem)[0])
    statistics = problem.evaluate(nodes)[:-1]
    scale = np.std(np.clip(statistics, -1e100, 1e100), axis=1)[:, None] + 1e-300
    flat = mean.reshape(len(mean), -1)
    at = [
        (np.abs(statistics[:, :, None] - flat[:, None, some]) / scale[:, :, None]).sum(axis=0).argmin(axis=0)
        for some in blocks(flat.shape[1], statistics.size)
    ]
    return nodes.x[np.concatenate(at)].reshape(mean.shape[1:])


def draw(problem: Problem, natural: Floats, rng: np.random.Generator) -> Floats:
    """One value from each density, (M,): a panel by its mass, then a point of it by rejection."""
    distinct, inverse = _distinct(natural)
    out = np.empty(natural.shape[1])
    for some in blocks(distinct.shape[1], 1, _PROBLEMS_AT_A_TIME):
        mine = np.flatnonzero((inverse >= some.start) & (inverse < some.stop))
        out[mine] = _drawn(problem, distinct[:, some], inverse[mine] - some.start, rng)
    return out


def _drawn(problem: Problem, natural: Floats, owner: Integers, rng: np.random.Generator) -> Floats:
    found = integrals(problem, natural)
    order = np.argsort(found.panels.owner, kind="stable")
    panels, mass = found.panels.where(order), found.probability.sum(axis=1)[order]
    heap = np.cumsum(mass / np.bincount(panels.owner, mass, natural.shape[1])[panels.owner])
    # Rounding may put a draw into the first or last panel of a neighbour.
    first = np.searchsorted(panels.owner, owner)
    last = np.searchsorted(panels.owner, owner, side="right") - 1
    chosen = np.clip(np.searchsorted(heap, owner + rng.random(len(owner))), first, last)
    rule = rules(problem.support.lattice)
    level = panels.level[chosen] if problem.support.lattice else np.zeros_like(chosen)
    best = panels.values[chosen].argmax(axis=1)
    top = _height(
        problem, natural[:, owner], panels.center[chosen] + panels.half[chosen] * rule.nodes[level, best]
    )
    out = panels.points[chosen, 0].copy()
    left = np.flatnonzero(panels.half[chosen] > 0)
    while len(left):
        at, u = chosen[left], rng.random(len(left))
        if problem.support.lattice:
            n = 2 * panels.half[at]
            u = (np.minimum(np.floor(u * n), n - 1) + 0.5) / n
        t = panels.center[at] + panels.half[at] * (2 * u - 1)
        # Between its nodes a smooth function is hardly ever higher than at the highest of them.
        height = _height(problem, natural[:, owner[left]], t) - top[left] - 0.3
        good = np.log(rng.random(len(left))) < height
        out[left[good]] = _nodes(problem.support, t[good]).x
        left = left[~good]
    return _within(problem.support, out)


def _height(problem: Problem, natural: Floats, t: Floats) -> Floats:
    """Log integrand at some coordinates, without the normaliser."""
    nodes = _nodes(problem.support, t)
    statistics = problem.evaluate(nodes)
    return np.asarray((natural * statistics[:-1]).sum(axis=0) + statistics[-1] + nodes.log_slope)


def _within(support: Support, x: Floats) -> Floats:
    """Values that rounding put on an end that is left out are put next to it."""
    if support.open_low:
        x = np.maximum(x, np.nextafter(support.low, np.inf))
    return np.minimum(x, np.nextafter(support.high, -np.inf)) if support.open_high else x
