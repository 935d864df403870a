"""Normalisers, means and samples of densities with given parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxdisc.families.dual.attempts import distinct_columns
from maxdisc.families.dual.kernel_arguments import compiled_expectations, worth_compiling
from maxdisc.families.dual.powers import ScaledPowers
from maxdisc.families.dual.problem import PROBLEMS_AT_A_TIME, Nodes, Problem, nodes_at
from maxdisc.families.dual.quadrature import Integrals, integrate, lattice_blocks, rules
from maxdisc.families.dual.starting_points import densest, known_members, scan
from maxdisc.families.dual.tree import tree_expectations
from maxdisc.families.functions import Power
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Floats, Integers, blocks
from maxdisc.numerics.threads import in_threads


def expectations(problem: Problem, natural: Floats) -> tuple[Floats, Floats]:
    """Return log normalisers (M,) and means (L, M) of densities with natural parameters (L, M)."""
    distinct, inverse = distinct_columns(natural)
    n = distinct.shape[1]
    log_partition, mean = np.full(n, np.nan), np.empty(distinct.shape)
    compiled = worth_compiling(n)
    if compiled and not problem.powers:
        log_partition, mean = tree_expectations(problem, distinct)
    left = np.flatnonzero(np.isnan(log_partition))

    def part(some: slice) -> None:
        at = left[some]
        if compiled and problem.powers:
            log_partition[at], mean[:, at] = compiled_expectations(problem, distinct[:, at])
        else:
            found = integrals(problem, distinct[:, at])
            log_partition[at], mean[:, at] = found.log_partition, found.mean

    in_threads(part, list(blocks(len(left), 1, PROBLEMS_AT_A_TIME)))
    return log_partition[inverse], mean[:, inverse]


def integrals(problem: Problem, natural: Floats) -> Integrals:
    """Return log normalisers, means and covariances of densities with natural parameters (L, M)."""
    start = densest(problem, natural)
    if not problem.powers:
        return integrate(problem, natural, start)
    scaled = ScaledPowers.around(problem.support, natural, start)
    found = integrate(problem, scaled.parameters(natural), start, scaled.basis(np.arange(len(start))))
    constant = (natural * scaled.center ** np.arange(1.0, len(natural) + 1)[:, None]).sum(axis=0)
    return replace(found, log_partition=found.log_partition + constant, mean=scaled.raw(found.mean))


def known_mean(problem: Problem) -> tuple[float, ...]:
    """Return means of one density, in the middle of the starting points."""
    means = known_members(problem)[2]
    if means.shape[1] == 0:
        raise ValueError(f"no density on {problem.support} was found that has means of these functions.")
    bounded = np.isfinite(problem.support.high - problem.support.low)
    return tuple(means[:, 0 if bounded else means.shape[1] // 2].tolist())


def nearest_point(problem: Problem, mean: Floats) -> Floats:
    """Return the value whose statistics are nearest to these means, for constants; shape (...)."""
    for function, row in zip(problem.functions, mean, strict=True):
        if function == Power(1):
            return row
    if problem.support.lattice:
        center, half, level = lattice_blocks(problem.support)
        points = np.unique(np.rint(center[:, None] + half[:, None] * rules(True).nodes[level]))
        nodes = Nodes(
            points, points - problem.support.low, problem.support.high - points, np.zeros(points.shape)
        )
    else:
        nodes = nodes_at(problem.support, scan(problem)[0])
    statistics = problem.evaluate(nodes)[:-1]
    scale = np.std(np.clip(statistics, -1e100, 1e100), axis=1)[:, None] + 1e-300
    flat = mean.reshape(len(mean), -1)
    at = [
        (np.abs(statistics[:, :, None] - flat[:, None, some]) / scale[:, :, None]).sum(axis=0).argmin(axis=0)
        for some in blocks(flat.shape[1], statistics.size)
    ]
    return nodes.x[np.concatenate(at)].reshape(mean.shape[1:])


def draw(problem: Problem, natural: Floats, rng: np.random.Generator) -> Floats:
    """Return one value from each density, (M,): a panel by its mass, then a point of it by rejection."""
    distinct, inverse = distinct_columns(natural)
    out = np.empty(natural.shape[1])
    for some in blocks(distinct.shape[1], 1, PROBLEMS_AT_A_TIME):
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
        out[left[good]] = nodes_at(problem.support, t[good]).x
        left = left[~good]
    return _within(problem.support, out)


def _height(problem: Problem, natural: Floats, t: Floats) -> Floats:
    """Log integrand at some coordinates, without the normaliser."""
    nodes = nodes_at(problem.support, t)
    statistics = problem.evaluate(nodes)
    return np.asarray((natural * statistics[:-1]).sum(axis=0) + statistics[-1] + nodes.log_slope)


def _within(support: Support, x: Floats) -> Floats:
    """Values that rounding put on an end that is left out are put next to it."""
    if support.open_low:
        x = np.maximum(x, np.nextafter(support.low, np.inf))
    return np.minimum(x, np.nextafter(support.high, -np.inf)) if support.open_high else x
