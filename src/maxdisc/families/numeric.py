"""Maximum-entropy densities for any functions and any support, solved numerically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.families.dual import (
    Problem,
    Status,
    draw,
    expectations,
    integrals,
    known_mean,
    nearest_point,
    solve,
)
from maxdisc.families.family import Family
from maxdisc.families.functions import FeatureFunction, Power, Table, spelled
from maxdisc.families.gaussian import Gaussian
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Matrix, blocks, with_data


class NumericFamily(Family):
    """Maximum-entropy densities for given functions, support and base measure.

    Its parameters solve the convex dual. Use a closed-form family if there is one: the densities are the
    same, and it is faster.

    Parameters
    ----------
    support : Support
        Intervals, half-lines, the line, lattices with a lowest point; with atoms or without.
    functions : sequence of callable
        :func:`maxdisc.families.moments`, other functions of :mod:`maxdisc.families.functions`, or any
        elementwise function of an array. A custom function that is not smooth should have an attribute
        ``breaks``, the points where it is not smooth.
    base : callable or array_like, optional
        Log of a base measure, an elementwise function; for bounded lattices also an array of its values.
    name : str
        Name of the family in messages.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import NumericFamily, moments
    >>> from maxdisc.families import Support
    >>> family = NumericFamily(Support(0.0, 1.0), moments(2))
    >>> family.natural(np.array([[0.5], [1 / 3]])).round(6) + 0.0  # the uniform density
    array([[0.],
           [0.]])
    """

    problem: Problem
    iterative = True

    def __init__(
        self,
        support: Support,
        functions: Sequence[FeatureFunction],
        base: FeatureFunction | npt.ArrayLike | None = None,
        name: str = "numeric",
    ) -> None:
        if not isinstance(support, Support):
            raise ValueError(f"support must be a Support, such as Support(0.0, 1.0), got {support!r}.")
        if callable(functions) or not all(map(callable, functions)):
            raise ValueError(f"functions must be functions, such as moments(2), got {functions!r}.")
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a family must be a string, got {name!r}.")
        problem = Problem(support, tuple(functions), _log_base(base, support))
        _require_functions(problem)
        zero = np.zeros((1, 1))
        with np.errstate(all="ignore"):
            at_zero = [np.asarray(f(zero), dtype=np.float64) for f in problem.functions]
            if problem.log_base is not None:
                at_zero.append(np.asarray(problem.log_base(zero), dtype=np.float64))
        order = max((f.order for f in problem.functions if isinstance(f, Power)), default=1)
        # Instances differ in what classes declare.
        if problem.translates:
            vars(self)["smoothings"] = Gaussian.smoothings
        vars(self).update(
            problem=problem,
            name=name,
            support=support,
            n_statistics=problem.n_statistics,
            preserves_zero=bool(support.contains(0.0)) and all((value == 0).all() for value in at_zero),
            translates=problem.translates,
            integral=support.lattice and bool(np.isfinite(support.high)),
            largest=10.0 ** (280 / order),
            neutral=known_mean(problem),
            breaks=tuple(problem.breaks.tolist()),
        )

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        if isinstance(X, np.ndarray):
            return tuple(np.asarray(f(X), dtype=np.float64) for f in self.problem.functions)
        return tuple(with_data(X, np.asarray(f(X.data), dtype=np.float64)) for f in self.problem.functions)

    def natural(self, mean: Floats) -> Floats:
        return solve(self.problem, mean).natural

    def fitted(self, mean: Floats) -> tuple[Floats, Booleans, Booleans]:
        """Parameters, and by a ``Status`` each what is solved, as it was asked or otherwise."""
        solution = solve(self.problem, mean)
        solved = solution.status != Status.NOT_CONVERGED
        return solution.natural, solved, solved & (solution.status != Status.SOLVED)

    def mean(self, natural: Floats) -> Floats:
        return expectations(self.problem, natural.reshape(len(natural), -1))[1].reshape(natural.shape)

    def log_partition(self, natural: Floats) -> Floats:
        found = expectations(self.problem, natural.reshape(len(natural), -1))[0]
        return found.reshape(natural.shape[1:])

    def log_base(self, x: npt.ArrayLike) -> Floats:
        if self.problem.log_base is None:
            return super().log_base(x)
        return np.asarray(self.problem.log_base(np.asarray(x, dtype=np.float64)), dtype=np.float64)

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        """Mean and a share of the deviation: several peaks may lie within it."""
        center, spread = super().peak(natural)
        return center, spread / 8

    def entropy(self, natural: Floats) -> Floats:
        entropy = super().entropy(natural)
        if self.problem.log_base is None:
            return entropy
        flat = natural.reshape(len(natural), -1)
        base = [integrals(self.problem, flat[:, some]).base for some in blocks(flat.shape[1], 1, 512)]
        return entropy - np.concatenate(base).reshape(entropy.shape)

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        return draw(self.problem, natural.reshape(len(natural), -1), rng).reshape(natural.shape[1:])

    def interior(self, mean: Floats) -> Booleans:
        return np.asarray(solve(self.problem, mean).status != Status.BOUNDARY)

    def point(self, mean: Floats) -> Floats:
        return nearest_point(self.problem, mean)

    def __repr__(self) -> str:
        functions = ", ".join(
            f.__name__ if spelled(f) is None and hasattr(f, "__name__") else repr(f)
            for f in self.problem.functions
        )
        return f"NumericFamily({self.support}, ({functions}), name={self.name!r})"


def _log_base(base: Any, support: Support) -> FeatureFunction | None:
    if base is None or callable(base):
        return base
    values = np.asarray(base, dtype=np.float64)
    if not (
        support.lattice and values.shape == (support.high - support.low + 1,) and np.isfinite(values).all()
    ):
        raise ValueError(
            f"base must be a function, or one finite number for each point of a lattice; {support} does not "
            f"have {values.size} points."
        )
    return Table(support.low, tuple(values.tolist()))


def _require_functions(problem: Problem) -> None:
    """Raise ``ValueError`` unless the functions are elementwise and different."""
    low, high = problem.support.low, problem.support.high
    start = low if np.isfinite(low) else min(high, 6.0) - 6.0
    stop = high if np.isfinite(high) else start + 6.0
    x = np.linspace(start, stop, 4 * problem.n_statistics + 7)[1:-1]
    x = (
        np.unique(np.rint(np.r_[start, x, stop]))
        if problem.support.lattice
        else np.r_[problem.support.atoms, x]
    )
    rows = [np.ones(len(x))]
    for function in (*problem.functions, *([problem.log_base] if problem.log_base is not None else [])):
        name = getattr(function, "__name__", repr(function))
        try:
            values = np.asarray(function(x), dtype=np.float64)
        except Exception as error:
            raise ValueError(
                f"the function {name} fails on an array of numbers in {problem.support}: {error}"
            ) from None
        if values.shape != x.shape:
            raise ValueError(
                f"the function {name} must give one number for each value: shape {x.shape}, "
                f"got {values.shape}."
            )
        if not np.isfinite(values).all():
            where = x[np.argmin(np.isfinite(values))]
            raise ValueError(f"the function {name} is not finite at {where:g}, inside {problem.support}.")
        rows.append(values)
    table = np.stack(rows[: problem.n_statistics + 1])
    table = table / np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-300)
    if np.linalg.matrix_rank(table, tol=1e-10) < min(len(table), len(x)) or len(table) > len(x):
        raise ValueError(
            f"the functions say the same twice: on {problem.support} one is a combination of the others "
            "and a constant."
        )
