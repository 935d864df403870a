"""All that is learnt from data: weighted sums of the feature functions, per class and feature.

Sums add. Folds, batches, threads and machines therefore each deliver a :class:`ClassMoments`, and ``+``
makes the model of their union.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import comb
from operator import add

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.matrices import Floats, Integers, Matrix, blocks, is_sparse, with_data

Statistics = Callable[[Matrix], Sequence[Matrix]]


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

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.moments import class_moments
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

    @classmethod
    def zero(cls, n_statistics: int, n_classes: int, n_features: int) -> ClassMoments:
        """The moments of no rows: ``zero + m`` is ``m``."""
        return cls(
            np.zeros(n_classes),
            np.zeros((n_statistics, n_classes, n_features)),
            nonzero=np.zeros(n_features),
        )

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
        sums, origin = _merged(self._parts, other._parts)
        return ClassMoments(
            self.weight + other.weight, sums, origin, self._observed_sum(other), self._nonzero_sum(other)
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

    def _nonzero_sum(self, other: ClassMoments) -> Floats | None:
        if self.nonzero is None or other.nonzero is None:
            return None
        return self.nonzero + other.nonzero

    @staticmethod
    def total(parts: Iterable[ClassMoments]) -> ClassMoments:
        """The sum of at least one ``ClassMoments``."""
        return reduce(add, parts)

    def rest(self) -> ClassMoments:
        """For each class, the moments of all the other classes together.

        Exclusive sums: what comes before a class plus what comes after it. Subtracting the class from the
        total would cancel wherever one class holds nearly all of the mass.
        """
        single = [self._of_class(c) for c in range(self.n_classes)]
        nothing = ClassMoments.zero(self.sums.shape[0], 1, self.n_features)
        before, after = [nothing], [nothing]
        for c in range(self.n_classes - 1):
            before.append(before[-1] + single[c])
            after.append(after[-1] + single[-1 - c])
        others = [b + a for b, a in zip(before, reversed(after), strict=True)]
        return ClassMoments(
            np.concatenate([m.weight for m in others]),
            np.concatenate([m.sums for m in others], axis=1),
            None if self.origin is None else np.concatenate([_full(m.origin, m) for m in others]),
            None if self.observed is None else np.concatenate([_full(m.cells, m) for m in others]),
        )

    def _of_class(self, c: int) -> ClassMoments:
        one = slice(c, c + 1)
        return replace(
            self,
            weight=self.weight[one],
            sums=self.sums[:, one],
            origin=None if self.origin is None else self.origin[one],
            observed=None if self.observed is None else self.observed[one],
        )

    def select(self, columns: slice | Integers) -> ClassMoments:
        """The moments of some of the features, in the order given."""
        return replace(
            self,
            sums=self.sums[:, :, columns],
            origin=None if self.origin is None else self.origin[:, columns],
            observed=None if self.observed is None else self.observed[:, columns],
            nonzero=None if self.nonzero is None else self.nonzero[columns],
        )

    def scaled(self, factors: npt.ArrayLike) -> ClassMoments:
        """The moments if every row of class c weighed ``factors[c]`` times as much."""
        factor = np.asarray(factors, dtype=np.float64)
        return replace(
            self,
            weight=self.weight * factor,
            sums=self.sums * factor[:, None],
            observed=None if self.observed is None else self.observed * factor[:, None],
        )

    def reindexed(self, positions: Integers, n_classes: int) -> ClassMoments:
        """The same moments among ``n_classes`` classes, class c moved to ``positions[c]``."""

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
        """Where the statistics are powers of x: class means, and sums of powers about them.

        Returns
        -------
        center : ndarray of shape (C, D)
            The mean of each class; 0 where no cell was observed.
        sums : ndarray of shape (L, C, D)
            Sums of the powers of ``x - center``; the first is 0.
        """
        offset = _ratio(self.sums[0], self.cells)
        sums = recentred(self.cells, self.sums, -offset)
        sums[0] = 0.0
        # What cancels in an even moment may leave a negative crumb.
        sums[1::2] = np.maximum(sums[1::2], 0.0)
        return offset if self.origin is None else self.origin + offset, sums


def recentred(cells: Floats, sums: Floats, shift: Floats) -> Floats:
    """Sums of the powers of ``x + shift``, from those of the powers of ``x`` (binomial theorem)."""
    powers = [np.broadcast_to(cells, sums.shape[1:]), *sums]
    out = np.empty(sums.shape)
    for order in range(1, len(powers)):
        out[order - 1] = sum(comb(order, k) * shift ** (order - k) * powers[k] for k in range(order + 1))
    return out


Parts = tuple[Floats, Floats, Floats | None]


def _merged(a: Parts, b: Parts) -> tuple[Floats, Floats | None]:
    """Sums and origin of two sets of rows together; symmetric to the last bit."""
    (n, sums_a, origin_a), (m, sums_b, origin_b) = a, b
    if origin_a is None and origin_b is None:
        return sums_a + sums_b, None
    old_a = np.zeros(sums_a.shape[1:]) if origin_a is None else origin_a
    old_b = np.zeros(sums_b.shape[1:]) if origin_b is None else origin_b
    # Between the two, nearer to the heavier; the sole non-empty side keeps its own exactly.
    origin = _ratio(n * old_a + m * old_b, n + m)
    origin = np.where(m == 0, old_a, np.where(n == 0, old_b, origin))
    return recentred(n, sums_a, old_a - origin) + recentred(m, sums_b, old_b - origin), origin


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """``numerator / denominator``, and 0 where nothing was counted."""
    safe = np.where(denominator > 0, denominator, 1.0)
    return np.where(denominator > 0, numerator / safe, 0.0)


def _full(values: Floats | None, moments: ClassMoments) -> Floats:
    return np.broadcast_to(0.0 if values is None else values, moments.sums.shape[1:])


@dataclass(frozen=True, eq=False)
class Membership:
    """Which rows count towards which group (a class of a fold), sorted by group.

    Parameters
    ----------
    rows, groups : ndarray of shape (E,)
        One entry for each (row, group) with weight.
    weights : ndarray of shape (E,)
        The weight of that row in that group.
    n_groups : int
        Number of groups.
    """

    rows: Integers
    groups: Integers
    weights: Floats
    n_groups: int

    @classmethod
    def of(
        cls,
        labels: npt.NDArray[np.generic],
        n_classes: int,
        weights: Floats | None = None,
        folds: Integers | None = None,
        n_folds: int = 1,
    ) -> Membership:
        """From codes (N,) or responsibilities (N, C), row weights, and a fold per row (negative: left out)."""
        if labels.ndim == 1:
            rows = np.arange(labels.shape[0])
            classes = labels.astype(np.intp)
            entries = np.ones(labels.shape[0])
        else:
            rows, classes = np.nonzero(labels)
            entries = labels[rows, classes].astype(np.float64)
        if weights is not None:
            entries = entries * weights[rows]
        fold = np.zeros(rows.shape[0], dtype=np.intp) if folds is None else folds[rows]
        keep = (fold >= 0) & (entries != 0)
        rows, groups, entries = rows[keep], (fold * n_classes + classes)[keep], entries[keep]
        order = np.argsort(groups, kind="stable")
        return cls(rows[order], groups[order], entries[order], n_folds * n_classes)

    @property
    def group_weight(self) -> Floats:
        """Weight of each group, shape (G,)."""
        return np.bincount(self.groups, self.weights, self.n_groups)

    def indicator(self, n_rows: int, coarser: int = 1) -> Matrix:
        """The sparse (G // coarser, N) matrix whose product with row statistics gives the group sums."""
        shape = (self.n_groups // coarser, n_rows)
        return sp.csr_array((self.weights, (self.groups // coarser, self.rows)), shape=shape)


def class_moments(
    statistics: Statistics,
    X: Matrix,
    labels: npt.NDArray[np.generic],
    n_classes: int,
    weights: Floats | None = None,
    powers: bool = False,
) -> ClassMoments:
    """Moments of the rows of ``X``: see :func:`fold_moments`, with one fold.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.moments import class_moments
    >>> soft = np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> class_moments(lambda x: (x,), np.array([[2.0], [4.0]]), soft, 2).sums[0]
    array([[1.],
           [5.]])
    """
    return fold_moments(statistics, X, Membership.of(labels, n_classes, weights), n_classes, powers)[0]


def fold_moments(
    statistics: Statistics, X: Matrix, members: Membership, n_classes: int, powers: bool = False
) -> list[ClassMoments]:
    """Moments of every fold in one pass over the rows of ``X``.

    Parameters
    ----------
    statistics : callable
        From a matrix to L matrices of its shape; sparse from sparse.
    X : matrix of shape (N, D)
        Dense, where NaN is a missing cell, or CSR, which is never made dense.
    members : Membership
        The groups, class c of fold f being number ``f * n_classes + c``.
    n_classes : int
        C.
    powers : bool
        Whether the statistics are the powers 1..L of x, to be taken about a class's own origin.

    Returns
    -------
    list of ClassMoments
        One for each fold.
    """
    if is_sparse(X):
        sums, nonzero = _sparse_sums(statistics, X, members, n_classes)
        origin = observed = None
        nonzero = None if powers else nonzero
    elif powers:
        sums, origin, observed = _centred_sums(statistics, X, members)
        nonzero = None
    else:
        sums, observed, nonzero = _plain_sums(statistics, X, members, n_classes)
        origin = None
    weight = members.group_weight
    return [
        ClassMoments(
            weight[f : f + n_classes],
            sums[:, f : f + n_classes],
            None if origin is None else origin[f : f + n_classes],
            None if observed is None else observed[f : f + n_classes],
            None if nonzero is None else nonzero[f // n_classes],
        )
        for f in range(0, members.n_groups, n_classes)
    ]


def _sparse_sums(
    statistics: Statistics, X: Matrix, members: Membership, n_classes: int
) -> tuple[Floats, Floats]:
    X = sp.csr_array(X)
    indicator = members.indicator(X.shape[0])
    planes = [statistic.astype(np.float64, copy=False) for statistic in statistics(X)]
    sums = np.empty((len(planes), members.n_groups, X.shape[1]))
    for out, plane in zip(sums, planes, strict=True):
        (indicator @ plane).toarray(out=out)
    stored = with_data(X, (X.data != 0).astype(np.float64))
    return sums, (members.indicator(X.shape[0], n_classes) @ stored).toarray()


@dataclass(frozen=True, eq=False)
class _DenseBlock:
    """Some entries of a membership with their rows' values, and sums over the groups among them."""

    values: Floats
    weights: Floats
    starts: Integers
    lengths: Integers
    groups: Integers
    missing: npt.NDArray[np.bool_] | None

    def sum(self, statistic: Floats) -> Floats:
        return np.add.reduceat(self.weights * statistic, self.starts, axis=0)

    @property
    def cells(self) -> Floats:
        return np.add.reduceat(self.weights, self.starts, axis=0)

    def spread(self, per_group: Floats) -> Floats:
        return np.repeat(per_group, self.lengths, axis=0)


def _dense_blocks(X: Matrix, members: Membership) -> Iterable[_DenseBlock]:
    X = np.asarray(X)
    for entries in blocks(members.rows.shape[0], X.shape[1]):
        values = X[members.rows[entries]].astype(np.float64, copy=False)
        weights = members.weights[entries, None]
        missing = np.isnan(values)
        some = bool(missing.any())
        if some:
            values = np.where(missing, 0.0, values)
            weights = np.where(missing, 0.0, weights)
        groups, starts, lengths = np.unique(members.groups[entries], return_index=True, return_counts=True)
        yield _DenseBlock(values, weights, starts, lengths, groups, missing if some else None)


def _plain_sums(
    statistics: Statistics, X: Matrix, members: Membership, n_classes: int
) -> tuple[Floats, Floats | None, Floats]:
    n_features = X.shape[1]
    sums = np.zeros((len(statistics(np.ones((0, n_features)))), members.n_groups, n_features))
    cells, complete = np.zeros((members.n_groups, 1)), True
    nonzero = np.zeros((members.n_groups // n_classes, n_features))
    for block in _dense_blocks(X, members):
        values = block.values
        if block.missing is not None:
            # Any value inside the support will do: its weight is 0.
            inside = np.nanmax(np.where(block.missing, -np.inf, values), initial=-np.inf)
            values = np.where(block.missing, inside if np.isfinite(inside) else 0.5, values)
            cells, complete = np.broadcast_to(cells, (members.n_groups, n_features)).copy(), False
        for out, plane in zip(sums, statistics(values), strict=True):
            out[block.groups] += block.sum(plane)
        cells[block.groups] += block.cells
        np.add.at(nonzero, block.groups // n_classes, block.sum((values != 0).astype(np.float64)))
    return sums, None if complete else cells, nonzero


def _centred_sums(
    statistics: Statistics, X: Matrix, members: Membership
) -> tuple[Floats, Floats, Floats | None]:
    """Two passes over each block while it is in cache, blocks merged about weighted origins."""
    shape = (members.n_groups, X.shape[1])
    sums = np.zeros((len(statistics(np.zeros((0, 1)))), *shape))
    origin = np.zeros(shape)
    cells, complete = np.zeros((members.n_groups, 1)), True
    for block in _dense_blocks(X, members):
        if block.missing is not None:
            cells, complete = np.broadcast_to(cells, shape).copy(), False
        center = _ratio(block.sum(block.values), block.cells)
        residual = block.values - block.spread(center)
        fresh = np.stack([block.sum(plane) for plane in statistics(residual)])
        old = (cells[block.groups], sums[:, block.groups], origin[block.groups])
        sums[:, block.groups], merged = _merged(old, (block.cells, fresh, center))
        origin[block.groups] = merged
        cells[block.groups] += block.cells
    return sums, origin, None if complete else cells
