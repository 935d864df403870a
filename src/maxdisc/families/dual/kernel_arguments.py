"""The kernels of the dual and what they are given."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from maxdisc.families.dual.powers import ScaledPowers
from maxdisc.families.dual.problem import PROBLEMS_AT_A_TIME, Problem
from maxdisc.families.dual.quadrature import lattice_blocks, rules
from maxdisc.families.dual.starting_points import densest
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Floats, Integers, blocks
from maxdisc.numerics.switches import is_compiled
from maxdisc.numerics.threads import in_threads

#: From this many problems on, compiled code is worth loading: a single hard one takes a second without it.
MANY_PROBLEMS = 2


def worth_compiling(n_problems: int) -> bool:
    """Return whether there are enough problems to load compiled code."""
    return is_compiled(n_problems, MANY_PROBLEMS)


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
    support: Support, scaled: ScaledPowers
) -> tuple[Floats, Integers, bool, Floats, Floats, Floats, Floats, Floats]:
    """What the kernels take to integrate: panels, their number, kind, what turns a panel's points into z,
    and rules.
    """
    n = len(scaled.center)
    if support.lattice:
        block = np.stack([part.astype(np.float64) for part in lattice_blocks(support)], axis=1)
        places, count = np.broadcast_to(block, (n, *block.shape)), np.full(n, len(block))
        return places, count, True, scaled.center, scaled.scale, *rules(True)
    places, count = _places(*scaled.ends(support))
    return np.ascontiguousarray(places), count, False, np.zeros(n), np.ones(n), *rules(False)


def compiled_newton(problem: Problem, targets: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
    """Return what :func:`_iterated` does for powers by Newton's method, compiled."""
    from maxdisc.families.dual.compiled_powers import powers_newton

    n = targets.shape[1]
    natural, residual, n_iter = np.empty(targets.shape), np.empty(n), np.empty(n, dtype=np.intp)

    def part(some: slice) -> None:
        scaled = ScaledPowers.of(problem.support, targets[:, some])
        size = len(scaled.center)
        theta, left, count = np.empty((size, len(targets))), np.empty(size), np.empty(size, dtype=np.intp)
        members = np.ascontiguousarray(scaled.candidates(problem.support).transpose(0, 2, 1))
        goals = np.ascontiguousarray(scaled.targets.T)
        begin = _warm(problem.support, scaled)
        places = _kernel_places(problem.support, scaled)
        powers_newton(goals, problem.tail, begin, members, *places, 0, size, max_iter, theta, left, count)
        natural[:, some], residual[some], n_iter[some] = scaled.natural(theta.T), left, count

    in_threads(part, list(blocks(n, 1, 8 * PROBLEMS_AT_A_TIME)))
    return natural, residual, n_iter


def _warm(support: Support, scaled: ScaledPowers) -> Floats:
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
    window = ScaledPowers.about((low + high) / 2, half, scaled.targets)
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
    from maxdisc.families.dual.compiled_powers import newton_on_nodes

    n = len(targets)
    theta, residual, n_iter = np.empty(targets.shape), np.empty(n), np.empty(n, dtype=np.intp)

    def part(some: slice) -> None:
        given = (targets, table, weights, combine, some.start, some.stop, max_iter, tolerance)
        newton_on_nodes(*given, theta, residual, n_iter)

    in_threads(part, list(blocks(n, 1, 16 * PROBLEMS_AT_A_TIME)))
    return theta, residual, n_iter


def compiled_expectations(problem: Problem, natural: Floats) -> tuple[Floats, Floats]:
    """Return what :func:`maxdisc.families.dual.expectations` gives for powers, compiled."""
    from maxdisc.families.dual.compiled_powers import powers_integrals

    support, start = problem.support, densest(problem, natural)
    scaled = ScaledPowers.around(support, natural, start)
    theta = np.ascontiguousarray(scaled.parameters(natural).T)
    log_partition, mean = np.empty(len(start)), np.empty(theta.shape)
    places = _kernel_places(support, scaled)
    powers_integrals(theta, *places, 0, len(start), log_partition, mean)
    log_partition += (natural * scaled.center ** np.arange(1.0, len(natural) + 1)[:, None]).sum(axis=0)
    if not support.lattice:
        log_partition += np.log(scaled.scale)
    return log_partition, scaled.raw(mean.T)
