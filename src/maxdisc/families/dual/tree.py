"""Any functions, compiled: they are evaluated once, on a tree of panels that all problems share and grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from maxdisc.families.dual.problem import END, PROBLEMS_AT_A_TIME, Nodes, Problem, coordinate_of, nodes_at
from maxdisc.families.dual.quadrature import N_NODES, lattice_blocks, rules
from maxdisc.families.dual.starting_points import known_members
from maxdisc.numerics.matrices import Booleans, Floats, Integers, blocks
from maxdisc.numerics.threads import in_threads

#: The tree stops growing at this many panels; problems that need more are integrated separately.
MOST_PANELS = 1 << 15
#: So many members are begun from, the best first.
BEGINNINGS = 3
# A statistic that is larger has no square.
LARGEST = 1e150
# Panels that were not halved yet, and panels that never are.
NOT_YET, NEVER = -1, -2


class Tree(NamedTuple):
    """Panels of a support, the first ``n_roots`` of which cover it, and the functions at their nodes.

    A tree is never changed: one that has grown is another one.
    """

    center: Floats
    half: Floats
    #: Statistics, and after them the logs of base measure and slope, (P, L + 1, n).
    statistics: Floats
    size: Floats
    rule: Integers
    #: The index of the first of two adjacent halves, or a mark for none.
    child: Integers
    #: As in :class:`maxdisc.families.dual.quadrature.Panels`.
    weight: Floats
    n_roots: int

    def grown(self, problem: Problem, parents: Integers) -> Tree:
        """With the halves of these panels."""
        center = self.center[parents][:, None] + self.half[parents][:, None] / 2 * np.array([-1.0, 1.0])
        half, level = np.repeat(self.half[parents] / 2, 2), np.repeat(self.rule[parents], 2)
        new = _panels(problem, center.ravel(), half, level - 1 if problem.support.lattice else level)
        child = self.child.copy()
        child[parents] = len(child) + 2 * np.arange(len(parents))
        old = self._replace(child=child)
        parts: list[Any] = [*map(np.concatenate, zip(old[:-1], new[:-1], strict=True)), self.n_roots]
        return Tree(*parts)


@lru_cache(maxsize=2)
def _rules(lattice: bool) -> tuple[Floats, Floats]:
    """Weights (R, n) and last orthonormal polynomials (R, n, 4) of each rule; the last rule is an atom's."""
    _, weights, tails = rules(lattice)
    atom = np.eye(1, N_NODES)
    return np.concatenate([weights, atom]), np.concatenate([tails, np.zeros((1, *tails.shape[1:]))])


def _panels(problem: Problem, center: Floats, half: Floats, level: Integers) -> Tree:
    """Return some panels; those of size 0 are atoms."""
    support, atom = problem.support, half == 0
    rule = rules(support.lattice)
    t = center[:, None] + half[:, None] * rule.nodes[level]
    nodes = nodes_at(support, t)
    if atom.any():
        points = Nodes(t, t - support.low, support.high - t, np.zeros(t.shape))
        nodes = Nodes(*(np.where(atom[:, None], a, b) for a, b in zip(points, nodes, strict=True)))
    row = np.where(atom, len(rule.weights), level)
    statistics = problem.evaluate(nodes).transpose(1, 0, 2)
    with np.errstate(invalid="ignore"):
        usable = (np.abs(statistics) < LARGEST).all(axis=1) & (_rules(support.lattice)[0][row] > 0)
    statistics[:, -1] += nodes.log_slope
    statistics = np.where(usable[:, None], statistics, 0.0)
    statistics[:, -1] = np.where(usable, statistics[:, -1], -np.inf)
    weight = np.log1p(np.abs(statistics[:, :-1]).max(axis=(1, 2)) ** 2)
    final = level <= 4 if support.lattice else half <= 1e-13 * np.maximum(np.abs(center), 1e-3)
    child = np.where(final | atom, NEVER, NOT_YET)
    return Tree(
        center, half, np.ascontiguousarray(statistics), np.where(atom, 1.0, 2 * half), row, child, weight, 0
    )


def _seedling(problem: Problem) -> Tree:
    """Panels that cover the support, narrow in the middle of the coordinate; then the atoms."""
    if problem.support.lattice:
        center, half, level = lattice_blocks(problem.support)
    else:
        steps = np.r_[np.arange(0.0, 40.0, 2.0), 40.0 + 2.0 ** np.arange(1, 10), END]
        edges = np.unique(np.r_[-steps, steps, coordinate_of(problem.support, problem.breaks)])
        center, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        level = np.zeros(len(center), dtype=np.intp)
    atoms = np.asarray(problem.support.atoms, dtype=np.float64)
    none = np.zeros(len(atoms))
    roots = _panels(problem, np.r_[center, atoms], np.r_[half, none], np.r_[level, none.astype(np.intp)])
    return roots._replace(n_roots=len(roots.half))


@lru_cache(maxsize=16)
def _planted(problem: Problem) -> list[Tree]:
    """Return the tree of a problem, as far as it has grown: what was evaluated is kept."""
    return [_seedling(problem)]


def _until_nobody_asks(
    problem: Problem, n: int, work: Callable[[tuple[Any, ...], Integers], None], asked: Booleans
) -> Booleans:
    """Do the work on problems that ask for panels and let the tree grow; where they ask for too many."""
    place = _planted(problem)
    left = np.arange(n)
    while len(left):
        tree = place[0]
        wanted = np.zeros(len(tree.child), dtype=np.uint8)
        given = (*tree[2:], *_rules(problem.support.lattice), wanted)
        parts = [left[some] for some in blocks(len(left), 1, PROBLEMS_AT_A_TIME)]
        # mypy cannot tell the type of a function without a name that has a default.
        in_threads(lambda some, given=given: work(given, some), parts)  # type: ignore[misc]  # mypy infers no lambda with defaults
        left = left[asked[left]]
        if len(tree.child) >= MOST_PANELS:
            break
        # Two generations at once: who asks for one often asks for the other.
        parents = np.flatnonzero(wanted)
        if len(parents):
            grown = tree.grown(problem, parents)
            young = len(tree.child) + np.flatnonzero(grown.child[len(tree.child) :] == NOT_YET)
            place[0] = grown.grown(problem, young)
    return asked


def tree_solved(problem: Problem, targets: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
    """Parameters (L, M), residuals and numbers of evaluations; infinite residuals where the tree ended."""
    from maxdisc.families.dual.compiled_tree import tree_newton

    n = targets.shape[1]
    theta, residual, n_iter = np.zeros((n, len(targets))), np.full(n, np.inf), np.zeros(n, dtype=np.intp)
    goals, asked = np.ascontiguousarray(targets.T), np.zeros(n, dtype=np.bool_)
    members, log_partition, _ = known_members(problem)
    value = log_partition[:, None] - members.T @ targets
    begin = np.ascontiguousarray(members.T[np.argsort(value, axis=0, kind="stable")[:BEGINNINGS]])

    def work(tree: tuple[Any, ...], some: Integers) -> None:
        given = (goals, begin, *tree, some, max_iter, theta, residual, n_iter, asked)
        tree_newton(*given)

    residual[_until_nobody_asks(problem, n, work, asked)] = np.inf
    return np.ascontiguousarray(theta.T), residual, n_iter


def tree_expectations(problem: Problem, natural: Floats) -> tuple[Floats, Floats]:
    """Log normalisers (M,) and means (L, M); not a number where the tree ended."""
    from maxdisc.families.dual.compiled_tree import tree_integrals

    n = natural.shape[1]
    theta, asked = np.ascontiguousarray(natural.T), np.zeros(n, dtype=np.bool_)
    log_partition, mean = np.empty(n), np.empty(theta.shape)

    def work(tree: tuple[Any, ...], some: Integers) -> None:
        given = (theta, *tree, some, log_partition, mean, asked)
        tree_integrals(*given)

    log_partition[_until_nobody_asks(problem, n, work, asked)] = np.nan
    return log_partition, np.ascontiguousarray(mean.T)
