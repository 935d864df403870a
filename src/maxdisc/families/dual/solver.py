"""The dual of all problems: each is attempted, and what could not be solved is told."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.families.dual.attempts import Solver, attempt, distinct_columns
from maxdisc.families.dual.densities import expectations, integrals
from maxdisc.families.dual.kernel_arguments import worth_compiling
from maxdisc.families.dual.powers import ScaledPowers
from maxdisc.families.dual.problem import Problem
from maxdisc.families.dual.regularisation import move_inside, separated
from maxdisc.families.dual.status import TOLERANCE, Solution, Status
from maxdisc.numerics.matrices import Booleans, Floats, Integers

#: The means of what is given back are those asked for, to this share of the magnitude of the statistic.
VERIFIED = 5e-7


def solve(
    problem: Problem, targets: Floats, solver: Solver = "newton", max_iter: int | None = None
) -> Solution:
    """Return natural parameters of the maximum-entropy densities with means ``targets``, shape (L, ...).

    The solvers "gis" and "gradient" are slow; they exist to cross-check damped Newton.
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
    distinct, inverse = distinct_columns(wanted.reshape(len(wanted), -1))
    compiled = solver == "newton" and worth_compiling(distinct.shape[1])
    found = _verified(problem, distinct, _solved(problem, distinct, solver, max_iter, compiled))
    parts: tuple[Any, ...] = tuple(part[inverse].reshape(shape) for part in found[1:])
    return Solution(found.natural[:, inverse].reshape(wanted.shape), *parts)


def _verified(problem: Problem, targets: Floats, found: Solution) -> Solution:
    """Accept a solution only if its parameters reproduce the requested means.

    Iterations may overlook a second peak far away; and parameters of raw powers may have too few digits to
    say what was found about the mean.
    """
    solved = np.flatnonzero(found.status == Status.SOLVED)
    if not len(solved):
        return found
    wanted = targets[:, solved]
    size = np.abs(wanted)
    if not problem.powers:
        size = size + 1.0
    elif problem.support.low < 0 < problem.support.high:
        # Means of powers may be 0 there, but not those of even ones.
        if len(wanted) > 1:
            size = size + wanted[1] ** (np.arange(1, len(wanted) + 1) / 2)[:, None]
        else:
            size = size + min(-problem.support.low, problem.support.high)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(expectations(problem, found.natural[:, solved])[1] - wanted)
        wrong = solved[~(error <= VERIFIED * size).all(axis=0)]
    found.status[wrong] = Status.NOT_CONVERGED
    found.residual[wrong] = np.inf
    return found


def _solved(
    problem: Problem, targets: Floats, solver: Solver, max_iter: int | None, compiled: bool
) -> Solution:
    """Return all of it for distinct targets, (L, M)."""
    n = targets.shape[1]
    natural, residual, n_iter = np.zeros(targets.shape), np.full(n, np.inf), np.zeros(n, dtype=np.intp)
    status = np.full(n, int(Status.NOT_CONVERGED))
    odd = problem.translates and problem.n_statistics % 2 == 1
    feasible = np.ones(n, dtype=np.bool_)
    if problem.powers:
        scaled = ScaledPowers.of(problem.support, targets)
        feasible = scaled.feasible(problem.support) | scaled.blurred(problem.support)
    if not odd:
        first = np.flatnonzero(feasible)
        found = attempt(problem, targets[:, first], solver, max_iter, compiled)
        natural[:, first], residual[first], n_iter[first] = found
    infinite = np.isinf(problem.support.high - problem.support.low)
    if problem.powers and infinite:
        # A tail that grows, however slowly, is none.
        residual[problem.tail * natural[-1] >= 0] = np.inf
    status[residual <= TOLERANCE] = Status.SOLVED
    if problem.powers and infinite and problem.n_statistics > 1:
        _take_lower_moments(problem, targets, natural, residual, status, feasible, compiled)
    left = np.flatnonzero(status == Status.NOT_CONVERGED)
    if len(left):
        outside = ~feasible[left]
        if not problem.powers or problem.support.lattice:
            outside |= separated(problem, natural[:, left], targets[:, left])
        move_inside(problem, targets, natural, residual, status, left, outside, compiled)
    return Solution(natural, status, n_iter, residual)


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
