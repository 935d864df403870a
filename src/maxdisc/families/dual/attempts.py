"""One attempt at every problem: the best way there is for its functions and solver."""

from __future__ import annotations

from typing import Literal

import numpy as np

from maxdisc.families.dual.iterative_scaling import by_scaling
from maxdisc.families.dual.kernel_arguments import compiled_newton
from maxdisc.families.dual.lbfgs import by_gradient
from maxdisc.families.dual.newton import Dual, newton
from maxdisc.families.dual.powers import ScaledPowers
from maxdisc.families.dual.problem import PROBLEMS_AT_A_TIME, Problem, coordinate_of
from maxdisc.families.dual.starting_points import CoarseDual, known_members
from maxdisc.families.dual.status import TOLERANCE
from maxdisc.families.dual.tree import tree_solved
from maxdisc.numerics.matrices import Floats, Integers, blocks
from maxdisc.numerics.threads import in_threads

Solver = Literal["newton", "gis", "gradient"]


def attempt(
    problem: Problem, targets: Floats, solver: Solver, max_iter: int | None, compiled: bool
) -> tuple[Floats, Floats, Integers]:
    """Return parameters, residuals and numbers of evaluations, converged or not."""
    n = targets.shape[1]
    if n == 0:
        return np.zeros(targets.shape), np.zeros(0), np.zeros(0, dtype=np.intp)
    if compiled and problem.powers:
        return compiled_newton(problem, targets, max_iter or 120)
    if compiled:
        natural, residual, n_iter = tree_solved(problem, targets, max_iter or 120)
        # What did not end well has another try on panels of its own.
        left = np.flatnonzero(~(residual <= TOLERANCE / 10))
        theta, error, more = attempt(problem, targets[:, left], solver, max_iter, False)
        better = error < residual[left]
        natural[:, left[better]], residual[left[better]] = theta[:, better], error[better]
        n_iter[left] += more
        return natural, residual, n_iter

    def part(some: slice) -> tuple[Floats, Floats, Integers]:
        return _iterated(problem, targets[:, some], solver, max_iter)

    parts = in_threads(part, list(blocks(n, 1, PROBLEMS_AT_A_TIME)))
    thetas, residuals, counts = zip(*parts, strict=True)
    return np.concatenate(thetas, axis=1), np.concatenate(residuals), np.concatenate(counts)


def _iterated(
    problem: Problem, targets: Floats, solver: Solver, max_iter: int | None
) -> tuple[Floats, Floats, Integers]:
    which = np.arange(targets.shape[1])
    scaled = None
    if problem.powers:
        scaled = ScaledPowers.of(problem.support, targets)
        mean = np.clip(targets[0], problem.support.low, problem.support.high)
        dual = Dual(problem, scaled.targets, coordinate_of(problem.support, mean), scaled.basis)
        members = scaled.candidates(problem.support)
        values = np.stack([dual.at(member, which)[0] for member in members])
        theta = members[np.nan_to_num(values, nan=np.inf).argmin(axis=0), :, which].T
    else:
        dual = Dual(problem, targets, None, None)
        members, log_partition, _ = known_members(problem)
        theta = members[:, (log_partition[:, None] - members.T @ targets).argmin(axis=0)]
        if solver == "newton":
            theta = _better(dual, theta, newton(CoarseDual.of(problem, targets), theta, 40)[0])
    method = {"newton": newton, "gis": by_scaling, "gradient": by_gradient}[solver]
    usual = {"newton": 120, "gis": 20_000, "gradient": 2_000}[solver]
    theta, residual, n_iter = method(dual, theta, max_iter or usual)
    for member in members if scaled is not None and solver == "newton" else ():
        # Another beginning leads around what stood in the way of this one.
        left = np.flatnonzero(residual > 1e-9)
        if len(left):
            again = newton(dual.some(left), member[:, left], max_iter or usual)
            better = again[1] < residual[left]
            theta[:, left[better]], residual[left[better]] = again[0][:, better], again[1][better]
            n_iter[left] += again[2]
    return theta if scaled is None else scaled.natural(theta), residual, n_iter


def _better(dual: Dual, theta: Floats, other: Floats) -> Floats:
    """Of two parameters for each problem those at which its dual is lower."""
    everything = np.arange(theta.shape[1])
    value, others = dual.at(theta, everything)[0], dual.at(other, everything)[0]
    return np.where(np.nan_to_num(others, nan=np.inf) < value, other, theta)


def distinct_columns(columns: Floats) -> tuple[Floats, Integers]:
    """Return the columns that differ, and for each column which of them it is."""
    # One number for each column sorts many times faster than columns do; that it distinguishes them is
    # checked.
    key = np.sqrt(np.arange(2.0, 2.0 + len(columns))) @ columns
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    distinct = columns[:, first]
    if not np.array_equal(distinct[:, inverse], columns):
        distinct, inverse = np.unique(columns, axis=1, return_inverse=True)
    return np.ascontiguousarray(distinct), inverse.reshape(-1)
