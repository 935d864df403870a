"""Marker features: divergence, direction and p-value of each class against all others together.

They are computed in one pass over rows from sums, sums of squares and numbers of non-zero cells, per class
and feature. These add, so rows may come in batches. They determine the moments of all families named here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from maxdisc.densities.class_densities import LEAST_SPREAD, density_blocks, rounding_variance
from maxdisc.divergences.class_divergences import one_vs_rest
from maxdisc.families import FAMILIES, Gaussian
from maxdisc.moments.class_moments import ClassMoments, ratio
from maxdisc.moments.counting import class_moments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Matrix, is_sparse, with_data
from maxdisc.numerics.threads import in_threads
from maxdisc.significance.p_values import lump_p_values
from maxdisc.significance.table import q_values

#: Densities of one variance in the class and in the rest: what is left of their divergence is that of means.
SHARED = "gaussian_shared"
#: The families whose moments follow from those of one pass.
DERIVED = ("poisson", "hurdle", "bernoulli", "geometric", "exponential", "gaussian", SHARED)
# No p-value is 0.
_LEAST = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums of x, its square and its non-zero cells per class; sums of two sets of rows add."""

    powers: ClassMoments
    present: Floats  # (C, D)
    least: float
    whole: bool

    @classmethod
    def of(cls, X: Matrix, codes: npt.NDArray[np.integer[Any]], n_classes: int) -> ClassSums:
        """Build from the rows of a matrix, dense (NaN is a missing cell) or sparse, with codes 0..C-1."""
        values = X.data if is_sparse(X) else np.asarray(X)
        least = float(np.nanmin(values, initial=0.0)) if values.size else 0.0
        with np.errstate(invalid="ignore"):
            whole = bool(((values == np.rint(values)) | np.isnan(values)).all())
        if not np.isfinite(least) or np.isposinf(values).any():
            raise ValueError("there is an infinite value among the cells: set it to NaN, or leave it out.")
        powers = class_moments(Gaussian().statistics, X, codes, n_classes, powers=True)
        present = class_moments(_presence, X, codes, n_classes).sums[0]
        return cls(powers, present, least, whole)

    def __add__(self, other: ClassSums) -> ClassSums:
        return ClassSums(
            self.powers + other.powers,
            self.present + other.present,
            min(self.least, other.least),
            self.whole and other.whole,
        )

    def moments(self, family: str) -> ClassMoments:
        """Return the moments that a family of ``DERIVED`` needs."""
        powers = self.powers
        if family in ("gaussian", SHARED):
            return powers
        totals = powers.means() * powers.cells
        sums = {"bernoulli": [self.present], "hurdle": [self.present, totals]}.get(family, [totals])
        return ClassMoments(
            powers.weight,
            np.stack(sums),
            observed=powers.observed,
            nonzero=self.present.sum(axis=0),
            squares=powers.squares,
        )


def _presence(X: Matrix) -> tuple[Matrix]:
    if is_sparse(X):
        return (with_data(X, (X.data != 0).astype(np.float64)),)
    return (np.where(np.isnan(X), np.nan, X != 0),)


@dataclass(frozen=True, eq=False)
class Markers:
    """Comparison of each class with the rest, feature by feature: scores and p-values, shape (C, D).

    The score is a Jeffreys divergence in nats, negative where the class has less of the feature: an effect
    size.
    """

    family: str
    scores: Floats  # (C, D)
    p: Floats  # (C, D)
    sums: ClassSums

    @cached_property
    def q(self) -> Floats:
        """False discovery rates, class by class, shape (C, D)."""
        return np.stack([q_values(p) for p in self.p])

    @cached_property
    def means(self) -> tuple[Floats, Floats]:
        """Means of each class, and of all the others together, shapes (C, D)."""
        return self.sums.powers.means(), self.sums.powers.rest().means()

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Shares of the cells that are not zero, in each class and in all the others; shapes (C, D)."""
        present, cells = self.sums.present, self.sums.powers.cells
        others = self.sums.powers.rest().cells
        return ratio(present, cells), ratio(present.sum(axis=0) - present, others)

    def order(self, label: int) -> npt.NDArray[np.intp]:
        """Return the features of a class, those it has more of first, in order of score; shape (D,)."""
        return np.argsort(-self.scores[label], kind="stable")


def find_markers(sums: ClassSums, family: str = "auto", smoothing: float = 1.0) -> Markers:
    """Compare each class with all others; "auto" is Poisson, or Gaussian if values are negative."""
    if family == "auto":
        family = "poisson" if sums.least >= 0 else SHARED
    if family not in DERIVED:
        raise ValueError(f"family must be 'auto' or one of {', '.join(map(repr, DERIVED))}, got {family!r}.")
    if sums.least < 0 and family not in ("gaussian", SHARED, "bernoulli"):
        raise ValueError(
            f"a {family} density has no negative values, and there are some, down to {sums.least:.3g}: use "
            f"family={SHARED!r}, or values that were not scaled or centred."
        )
    rest = sums.powers.rest()
    if family == SHARED:
        apart = _of_one_variance(sums.powers, rest)
    else:
        moments, densities = sums.moments(family), FAMILIES[family]
        apart = np.empty(moments.sums.shape[1:])
        for some, block in density_blocks(densities, moments, Smoothing(smoothing)):
            apart[:, some] = one_vs_rest(block)
    more, others = sums.powers.means(), rest.means()
    if family == "bernoulli":
        more = ratio(sums.present, sums.powers.cells)
        others = ratio(sums.present.sum(axis=0) - sums.present, rest.cells)
    # Means that differ by rounding are equal.
    equal = np.abs(more - others) <= 1e-12 * np.maximum(np.abs(more), np.abs(others))
    signs = np.where(equal, 0.0, np.sign(more - others))
    return Markers(family, signs * apart, _p_values(sums, rest), sums)


def _of_one_variance(powers: ClassMoments, rest: ClassMoments) -> Floats:
    """Squared differences of means in units of the variance within the class and the rest, shape (C, D)."""
    center, within, between = _squares(powers, rest)
    total = within + between
    n = np.broadcast_to(powers.cells, center.shape) + rest.cells
    constant = total <= rounding_variance(powers, center) * n
    variance = np.maximum(within, LEAST_SPREAD * total) / np.maximum(n, 1.0)
    safe = np.where(variance > 0, variance, 1.0)
    return np.where(constant, 0.0, (center - rest.means()) ** 2 / safe)


def _squares(powers: ClassMoments, rest: ClassMoments) -> tuple[Floats, Floats, Floats]:
    """Means of classes, squares about the means of class and rest, and squares between these; (C, D)."""
    center, sums = powers.centred()
    others, other_sums = rest.centred()
    n, m = powers.cells, rest.cells
    return (
        center,
        sums[1] + other_sums[1],
        ratio(n * m * np.ones(center.shape), n + m) * (center - others) ** 2,
    )


def _p_values(sums: ClassSums, rest: ClassMoments) -> Floats:
    """Return p-values of means: by permuted labels for counts and amounts, by F tests for other numbers."""
    test: Callable[[ClassSums, ClassMoments], Floats] = _dealt if sums.least >= 0 else _by_squares
    return test(sums, rest)


def _dealt(sums: ClassSums, rest: ClassMoments) -> Floats:
    powers = sums.powers
    center, within = powers.centred()
    n = np.broadcast_to(powers.cells, center.shape)
    squared = (within[1] + n * center**2).sum(axis=0)
    nonzero, others = sums.present.sum(axis=0), rest.means() * rest.cells
    m = np.broadcast_to(rest.cells, center.shape)
    out = np.empty(center.shape)

    def test(label: int) -> None:
        parts, rows = np.stack([center[label] * n[label], others[label]]), np.stack([n[label], m[label]])
        out[label] = lump_p_values(parts, rows, squared, nonzero)

    in_threads(test, range(len(center)))
    return out


def _by_squares(sums: ClassSums, rest: ClassMoments) -> Floats:
    center, within, between = _squares(sums.powers, rest)
    total, n = within + between, np.broadcast_to(sums.powers.cells, center.shape) + rest.cells
    known: Booleans = (total > rounding_variance(sums.powers, center) * n) & (n > 2)
    left = np.where(known, within / np.where(known, total, 1.0), 1.0)
    p = betainc(np.maximum(n - 2, 1.0) / 2, 0.5, np.clip(left, 0.0, 1.0))
    return np.where(known, np.maximum(p, _LEAST), 1.0)
