"""Moments: weighted sums of the statistics, per class and feature.

Sums add, so folds, batches, threads and machines each return a :class:`ClassMoments`, and ``+`` combines
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import comb
from operator import add
from typing import Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from maxdisc.numerics.matrices import Floats, Integers


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Weights and sums of L statistics for C classes and D features: a commutative monoid under ``+``.

    Parameters
    ----------
    weight : ndarray of shape (C,)
        Total weight of each class's rows.
    sums : ndarray of shape (L, C, D)
        Weighted sums of the statistics.
    origin : ndarray of shape (C, D), optional
        If given, the statistics are the powers 1..L of ``x - origin``, which keeps every digit of a small
        variance around a large mean; ``+`` recentres. Without it they are functions of ``x`` itself.
    observed : ndarray of shape (C, D), optional
        Weight of the observed cells, where some are missing; without it every cell is observed.
    nonzero : ndarray of shape (D,), optional
        Weight of the cells that are not zero, over all classes.
    squares : float, optional
        Sum of the squared weights of the rows, from which their effective number follows.
    squared : ndarray of shape (D,), optional
        Weighted sum of the squared values, over all classes, where x is the only statistic: how far counts
        vary is not said by their sums.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.moments.counting import class_moments
    >>> X = np.array([[1.0, 0.0], [3.0, 4.0], [5.0, 6.0]])
    >>> m = class_moments(lambda x: (x,), X, np.array([0, 1, 1]), 2)
    >>> m.sums[0]
    array([[ 1.,  0.],
           [ 8., 10.]])
    >>> (m + m).weight
    array([2., 4.])
    """

    weight: Floats
    sums: Floats
    origin: Floats | None = None
    observed: Floats | None = None
    nonzero: Floats | None = None
    squares: float | None = None
    squared: Floats | None = None

    @classmethod
    def zero(cls, n_statistics: int, n_classes: int, n_features: int) -> ClassMoments:
        """Return the moments of no rows: ``zero + m`` is ``m``."""
        return cls(
            np.zeros(n_classes),
            np.zeros((n_statistics, n_classes, n_features)),
            nonzero=np.zeros(n_features),
            squares=0.0,
            squared=np.zeros(n_features) if n_statistics == 1 else None,
        )

    def nothing(self) -> ClassMoments:
        """Return the moments of no rows, of as many statistics, classes and features."""
        return ClassMoments.zero(*self.sums.shape)

    @property
    def n_features(self) -> int:
        """D, the number of features."""
        return int(self.sums.shape[2])

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return int(self.sums.shape[1])

    @property
    def cells(self) -> Floats:
        """Weight of the observed cells, shape (C, D), or (C, 1) where nothing is missing."""
        return self.weight[:, None] if self.observed is None else self.observed

    @property
    def n_rows(self) -> float:
        """The effective number of rows of equal weight; 0 if unknown."""
        return float(self.weight.sum()) ** 2 / self.squares if self.squares else 0.0

    def __add__(self, other: ClassMoments) -> ClassMoments:
        if not isinstance(other, ClassMoments):
            return NotImplemented
        if self.sums.shape != other.sums.shape:
            raise ValueError(
                f"moments of shape {self.sums.shape} and {other.sums.shape} (statistics, classes, features) "
                "do not add."
            )
        if self._empty or other._empty:
            return other if self._empty else self
        sums, origin = merged(self._parts, other._parts)
        return ClassMoments(
            self.weight + other.weight,
            sums,
            origin,
            self._observed_sum(other),
            _sum_if_known(self.nonzero, other.nonzero),
            None if self.squares is None or other.squares is None else self.squares + other.squares,
            _sum_if_known(self.squared, other.squared),
        )

    @property
    def _empty(self) -> bool:
        return not self.weight.any()

    @property
    def _parts(self) -> tuple[Floats, Floats, Floats | None]:
        return self.cells, self.sums, self.origin

    def _observed_sum(self, other: ClassMoments) -> Floats | None:
        if self.observed is None and other.observed is None:
            return None
        shape = self.sums.shape[1:]
        return np.broadcast_to(self.cells, shape) + np.broadcast_to(other.cells, shape)

    @staticmethod
    def total(parts: Iterable[ClassMoments]) -> ClassMoments:
        """Return the sum of at least one ``ClassMoments``."""
        return reduce(add, parts)

    def rest(self) -> ClassMoments:
        """For each class, the moments of all the other classes together.

        Classes go in pairs: what is outside a class is its partner, and what is outside the pair. That takes
        about three sums for each class, all those of one level at once, and subtracts nothing.
        """
        n, half = self.n_classes, self.n_classes // 2
        if n < 2:
            cells = np.zeros(self.sums.shape[1:])
            return ClassMoments(
                np.zeros(n),
                np.zeros(self.sums.shape),
                None if self.origin is None else cells,
                None if self.observed is None else cells,
            )
        left, right = self._of_classes(slice(half)), self._of_classes(slice(half, 2 * half))
        outside = _side_by_side(left + right, self._of_classes(slice(2 * half, n))).rest()
        of_pairs, of_odd = outside._of_classes(slice(half)), outside._of_classes(slice(half, None))
        return _side_by_side(of_pairs + right, of_pairs + left, of_odd)

    def together(self) -> ClassMoments:
        """Return the moments of all classes, as one."""
        out = self
        while out.n_classes > 1:
            half = out.n_classes // 2
            pairs = out._of_classes(slice(half)) + out._of_classes(slice(half, 2 * half))
            odd = out._of_classes(slice(2 * half, None))
            out = _side_by_side(pairs, odd) if odd.n_classes else pairs
        return replace(out, nonzero=self.nonzero, squares=self.squares)

    def _of_classes(self, some: slice) -> ClassMoments:
        return ClassMoments(
            self.weight[some],
            self.sums[:, some],
            None if self.origin is None else self.origin[some],
            None if self.observed is None else self.observed[some],
        )

    def select(self, columns: slice | Integers) -> ClassMoments:
        """Return the moments of some of the features, in the order given."""
        return replace(
            self,
            sums=self.sums[:, :, columns],
            origin=None if self.origin is None else self.origin[:, columns],
            observed=None if self.observed is None else self.observed[:, columns],
            nonzero=None if self.nonzero is None else self.nonzero[columns],
            squared=None if self.squared is None else self.squared[columns],
        )

    @staticmethod
    def side_by_side(parts: Sequence[ClassMoments]) -> ClassMoments:
        """Concatenate moments of the same rows by feature; the inverse of ``select``."""

        def joined(planes: list[Floats | None]) -> Floats | None:
            known = [plane for plane in planes if plane is not None]
            return np.concatenate(known, axis=-1) if len(known) == len(planes) else None

        observed: Floats | None = None
        if any(part.observed is not None for part in parts):
            cells = [np.broadcast_to(part.cells, part.sums.shape[1:]) for part in parts]
            observed = np.concatenate(cells, axis=1)
        return replace(
            parts[0],
            sums=np.concatenate([part.sums for part in parts], axis=2),
            origin=joined([part.origin for part in parts]),
            observed=observed,
            nonzero=joined([part.nonzero for part in parts]),
            squared=joined([part.squared for part in parts]),
        )

    def scaled(self, factors: npt.ArrayLike) -> ClassMoments:
        """Return the moments if every row of class c weighed ``factors[c]`` times as much."""
        factor = np.asarray(factors, dtype=np.float64)
        return replace(
            self,
            weight=self.weight * factor,
            sums=self.sums * factor[:, None],
            observed=None if self.observed is None else self.observed * factor[:, None],
            squares=None,
            squared=None,
        )

    def reindexed(self, positions: Integers, n_classes: int) -> ClassMoments:
        """Return the same moments among ``n_classes`` classes, class c moved to ``positions[c]``."""

        def moved(values: Floats, axis: int) -> Floats:
            shape = list(values.shape)
            shape[axis] = n_classes
            out = np.zeros(shape)
            out[(slice(None),) * axis + (positions,)] = values
            return out

        return replace(
            self,
            weight=moved(self.weight, 0),
            sums=moved(self.sums, 1),
            origin=None if self.origin is None else moved(self.origin, 0),
            observed=None if self.observed is None else moved(self.observed, 0),
        )

    def centred(self) -> tuple[Floats, Floats]:
        """Return where the statistics are powers of x: class means, and sums of powers about them.

        Returns
        -------
        center : ndarray of shape (C, D)
            The mean of each class; 0 where no cell was observed.
        sums : ndarray of shape (L, C, D)
            Sums of the powers of ``x - center``; the first is 0.
        """
        sums = recentred(self.cells, self.sums, -ratio(self.sums[0], self.cells))
        sums[0] = 0.0
        # Cancellation may leave an even moment slightly negative.
        sums[1::2] = np.maximum(sums[1::2], 0.0)
        return self.means(), sums

    def means(self) -> Floats:
        """Return the mean of each class if statistics are powers of x; 0 without observed cells."""
        offset = ratio(self.sums[0], self.cells)
        return offset if self.origin is None else self.origin + offset


class Summable(Protocol):
    """Moments of any kind: they add, and there are those of no rows."""

    def __add__(self, other: Self, /) -> Self:
        """Of the rows of both."""

    def nothing(self) -> Self:
        """Of no rows."""


_Sum = TypeVar("_Sum", bound=Summable)


def added(parts: Iterable[_Sum]) -> _Sum:
    """Return the sum of at least one part."""
    return reduce(add, parts)


def exclusive_totals(parts: Sequence[_Sum]) -> list[_Sum]:
    """For each part, the sum of all the others: what comes before it plus what comes after it.

    Subtracting a part from the total would cancel wherever one part holds nearly all of the mass.
    """
    nothing = parts[0].nothing()
    before, after = [nothing], [nothing]
    for first, last in zip(parts[:-1], parts[:0:-1], strict=True):
        before.append(before[-1] + first)
        after.append(after[-1] + last)
    return [b + a for b, a in zip(before, reversed(after), strict=True)]


def recentred(cells: Floats, sums: Floats, shift: Floats) -> Floats:
    """Sums of the powers of ``x + shift``, from those of the powers of ``x`` (binomial theorem)."""
    powers = [np.broadcast_to(cells, sums.shape[1:]), *sums]
    out = np.empty(sums.shape)
    for order in range(1, len(powers)):
        out[order - 1] = sum(comb(order, k) * shift ** (order - k) * powers[k] for k in range(order + 1))
    return out


#: Cells, sums and origin of some rows.
Parts = tuple[Floats, Floats, Floats | None]


def merged(a: Parts, b: Parts) -> tuple[Floats, Floats | None]:
    """Sums and origin of two sets of rows together; symmetric to the last bit."""
    (n, sums_a, origin_a), (m, sums_b, origin_b) = a, b
    if origin_a is None and origin_b is None:
        return sums_a + sums_b, None
    old_a = np.zeros(sums_a.shape[1:]) if origin_a is None else origin_a
    old_b = np.zeros(sums_b.shape[1:]) if origin_b is None else origin_b
    # Between the two, nearer to the heavier; the sole non-empty side keeps its own exactly.
    origin = ratio(n * old_a + m * old_b, n + m)
    origin = np.where(m == 0, old_a, np.where(n == 0, old_b, origin))
    # Nothing has no way to go, not even one whose square is infinite.
    to_a, to_b = np.where(n > 0, old_a - origin, 0.0), np.where(m > 0, old_b - origin, 0.0)
    return recentred(n, sums_a, to_a) + recentred(m, sums_b, to_b), origin


def _sum_if_known(a: Floats | None, b: Floats | None) -> Floats | None:
    return None if a is None or b is None else a + b


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """``numerator / denominator``, and 0 where nothing was counted."""
    safe = np.where(denominator > 0, denominator, 1.0)
    return np.where(denominator > 0, numerator / safe, 0.0)


def _side_by_side(*parts: ClassMoments) -> ClassMoments:
    """Return the classes of all parts, one part after the other."""
    origins = [m.origin for m in parts if m.origin is not None]
    observed = [m.observed for m in parts if m.observed is not None]
    return ClassMoments(
        np.concatenate([m.weight for m in parts]),
        np.concatenate([m.sums for m in parts], axis=1),
        np.concatenate(origins) if origins else None,
        np.concatenate(observed) if observed else None,
    )
