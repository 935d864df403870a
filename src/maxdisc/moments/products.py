"""Sums of products of features within classes, for joint densities.

They add, as moments do, so folds, batches and machines each return a :class:`ClassProducts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import scipy.sparse as sp

from maxdisc.moments.class_moments import ClassMoments, ratio
from maxdisc.moments.counting import Membership
from maxdisc.numerics.matrices import Floats, Integers, Matrix, blocks, is_sparse

# A sparse column is summed about 0 unless less than this share of its squares is scatter within classes.
CANCELLING = 1e-4


@dataclass(frozen=True, eq=False)
class ClassProducts:
    """Weights, sums and sums of products of P features for C classes: a commutative monoid under ``+``.

    Each class has its own origin, so that no digits of the scatter within classes are lost; ``+``
    recentres.
    """

    weight: Floats  # (C,)
    sums: Floats  # (C, P)
    products: Floats  # (G, P, P)
    origin: Floats  # (C, P)

    @classmethod
    def zero(cls, n_classes: int, n_features: int, per_class: bool = False) -> ClassProducts:
        """Return the products of no rows: ``zero + p`` is ``p``."""
        shape = (n_classes if per_class else 1, n_features, n_features)
        sums = np.zeros((n_classes, n_features))
        return cls(np.zeros(n_classes), sums, np.zeros(shape), np.full(sums.shape, np.nan))

    @property
    def n_features(self) -> int:
        """P, the number of features."""
        return int(self.sums.shape[1])

    @property
    def per_class(self) -> bool:
        """Whether each class has products of its own."""
        return len(self.products) > 1

    def __add__(self, other: ClassProducts) -> ClassProducts:
        if not isinstance(other, ClassProducts):
            return NotImplemented
        if self.sums.shape != other.sums.shape or self.products.shape != other.products.shape:
            raise ValueError(
                f"products of shape {self.sums.shape} and {other.sums.shape} (classes, features), "
                f"{len(self.products)} and {len(other.products)} of them, do not add."
            )
        # Where one has seen no cell, its missing ones lie where the other's mean is.
        here, there = (
            np.where(np.isnan(one.origin), two.origin, one.origin)
            for one, two in ((self, other), (other, self))
        )
        n, m = self.weight[:, None], other.weight[:, None]
        # Between the two, nearer to the heavier; symmetric to the last bit.
        between = (n * here + m * there) / np.where(n + m > 0, n + m, 1.0)
        origin = np.where(here == there, here, between)
        a, b = self.about(origin), other.about(origin)
        return ClassProducts(a.weight + b.weight, a.sums + b.sums, a.products + b.products, origin)

    @staticmethod
    def total(parts: Iterable[ClassProducts]) -> ClassProducts:
        """Return the sum of at least one ``ClassProducts``."""
        return reduce(add, parts)

    def about(self, origin: Floats) -> ClassProducts:
        """Return the same rows, their statistics taken about another origin, shape (C, P)."""
        shift = np.where(np.isnan(self.origin), 0.0, self.origin - origin)
        if not shift.any():
            return replace(self, origin=origin)
        half = self.sums + 0.5 * self.weight[:, None] * shift
        cross = half[:, :, None] * shift[:, None] if self.per_class else (half.T @ shift)[None]
        return ClassProducts(
            self.weight,
            self.sums + self.weight[:, None] * shift,
            self.products + (cross + np.swapaxes(cross, 1, 2)),
            origin,
        )

    def select(self, positions: Integers) -> ClassProducts:
        """Return the products of some of the features, in the order given."""
        return ClassProducts(
            self.weight,
            self.sums[:, positions],
            self.products[:, positions[:, None], positions],
            self.origin[:, positions],
        )

    def means(self) -> Floats:
        """Return the mean of each class, shape (C, P); 0 where no cell was seen."""
        return np.where(np.isnan(self.origin), 0.0, self.origin + ratio(self.sums, self.weight[:, None]))

    def within(self) -> Floats:
        """Scatter about the class means, shape (G, P, P): of all classes together, or of each.

        Symmetric; what cancels leaves no negative crumb on the diagonal.
        """
        offset = ratio(self.sums, self.weight[:, None])
        if self.per_class:
            between = self.sums[:, :, None] * offset[:, None, :]
        else:
            between = (self.sums.T @ offset)[None]
        scatter = self.products - (between + np.swapaxes(between, 1, 2)) / 2
        diagonal = np.einsum("gpp->gp", scatter)
        np.maximum(diagonal, 0.0, out=diagonal)
        return scatter


def observed_means(parts: Iterable[ClassMoments], columns: Integers) -> Floats:
    """Class means of some columns (parts, C, P), from moments of powers; NaN where no cell was seen."""
    some = [part.select(columns) for part in parts]
    return np.stack([np.where(part.cells > 0, part.means(), np.nan) for part in some])


@np.errstate(over="ignore", invalid="ignore")
def fold_products(
    X: Matrix,
    columns: Integers,
    members: Membership,
    n_classes: int,
    per_class: bool = False,
    means: Floats | None = None,
) -> list[ClassProducts]:
    """Return products of some columns for every fold, in memory P x P per fold rather than N x P.

    A missing cell counts as the mean of its class in its fold, so no fold depends on another.
    """
    columns = np.asarray(columns, dtype=np.intp)
    source: _SparseColumns | _DenseColumns
    if is_sparse(X):
        source = _SparseColumns.of(X[:, columns].tocsr(), members, n_classes)
    else:
        X = np.asarray(X)
        fill = _dense_means(X, columns, members) if means is None else means.reshape(-1, len(columns))
        source = _DenseColumns(X, columns, fill, _middle(fill, n_classes))
    n_folds, weight = members.n_groups // n_classes, members.group_weight
    coarser = 1 if per_class else n_classes
    sums = np.zeros((members.n_groups, len(columns)))
    products = np.zeros((members.n_groups // coarser, len(columns), len(columns)))
    for entries in _runs(members, coarser, source.width):
        part = source.products(members, entries)
        products[members.groups[entries.start] // coarser] += part
        for run in _within(members, entries):
            sums[members.groups[run.start]] += source.sums(members, run)
    return [
        ClassProducts(
            weight[f * n_classes : (f + 1) * n_classes],
            sums[f * n_classes : (f + 1) * n_classes],
            products[f * n_classes // coarser : (f + 1) * n_classes // coarser],
            source.origin[f * n_classes : (f + 1) * n_classes],
        )
        for f in range(n_folds)
    ]


def _runs(members: Membership, coarser: int, width: int) -> Iterator[slice]:
    """Yield the entries of each product, few enough at a time to bound memory."""
    owner = members.groups // coarser
    cuts = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
    for start, stop in pairwise(cuts):
        for some in blocks(int(stop - start), width):
            yield slice(int(start) + some.start, int(start) + some.stop)


def _within(members: Membership, entries: slice) -> Iterator[slice]:
    """Yield the runs of one class each among some entries."""
    cuts = np.flatnonzero(np.diff(members.groups[entries], prepend=-1, append=-1)) + entries.start
    for start, stop in pairwise(cuts):
        yield slice(int(start), int(stop))


def _middle(means: Floats, n_classes: int) -> Floats:
    """Return one origin for a class in all folds; NaN where a group has no mean.

    From ``means`` of the groups (G, P). It is where sums are taken about, no more: no fold knows another's.
    """
    of_folds = means.reshape(-1, n_classes, means.shape[1])
    known = ~np.isnan(of_folds)
    middle = ratio(np.where(known, of_folds, 0.0).sum(axis=0), known.sum(axis=0))
    return np.where(known, middle, np.nan).reshape(means.shape)


def _dense_means(X: Floats, columns: Integers, members: Membership) -> Floats:
    """Means of the observed cells of each group, shape (G, P); NaN where there are none."""
    shape = (members.n_groups, len(columns))
    sums, cells = np.zeros(shape), np.zeros(shape)
    for run in _runs(members, 1, len(columns)):
        values = X[np.ix_(members.rows[run], columns)].astype(np.float64, copy=False)
        missing = np.isnan(values)
        weights = members.weights[run]
        sums[members.groups[run.start]] += weights @ np.where(missing, 0.0, values)
        cells[members.groups[run.start]] += weights @ ~missing
    return np.where(cells > 0, ratio(sums, cells), np.nan)


@dataclass(frozen=True, eq=False)
class _DenseColumns:
    """Some dense columns about ``origin``; ``fill`` stands for missing cells, both of shape (groups, P)."""

    X: Floats
    columns: Integers
    fill: Floats
    origin: Floats

    @property
    def width(self) -> int:
        return len(self.columns)

    def _gaps(self, members: Membership, entries: slice) -> Floats:
        values = self.X[np.ix_(members.rows[entries], self.columns)].astype(np.float64, copy=False)
        groups, missing = members.groups[entries], np.isnan(values)
        gaps = values - self.origin[groups]
        if missing.any():
            # Where the group has no mean either, the cell lies at the origin, wherever that will be.
            gaps = np.where(missing, np.nan_to_num(self.fill - self.origin)[groups], gaps)
        return np.asarray(gaps)

    def products(self, members: Membership, entries: slice) -> Floats:
        # One matrix with itself: half the work, and symmetric to the last bit.
        gaps = np.sqrt(members.weights[entries])[:, None] * self._gaps(members, entries)
        return np.asarray(gaps.T @ gaps)

    def sums(self, members: Membership, run: slice) -> Floats:
        return np.asarray(members.weights[run] @ self._gaps(members, run))


@dataclass(frozen=True, eq=False)
class _SparseColumns:
    """Columns of a sparse matrix about 0, but for the ``far`` ones, which are made dense in blocks."""

    X: Matrix
    far: Integers
    origin: Floats

    @classmethod
    def of(cls, X: Matrix, members: Membership, n_classes: int) -> _SparseColumns:
        X = X.astype(np.float64, copy=False)
        if np.isnan(X.data).any():
            raise ValueError("a sparse matrix stores NaN: missing cells are for dense input.")
        indicator, weight = members.indicator(X.shape[0]), members.group_weight[:, None]
        sums = (indicator @ X).toarray()
        squares = indicator.sum(axis=0) @ X.power(2)
        means = ratio(sums, weight)
        far = squares - (sums * means).sum(axis=0) < CANCELLING * squares
        means = np.where(weight > 0, np.where(far, means, 0.0), np.nan)
        return cls(X, np.flatnonzero(far), _middle(means, n_classes))

    @property
    def width(self) -> int:
        return max(len(self.far), 64)

    def _gaps(self, members: Membership, entries: slice, rows: Matrix) -> Floats:
        origin = self.origin[:, self.far][members.groups[entries]]
        return np.asarray(rows[:, self.far].toarray() - origin)

    def products(self, members: Membership, entries: slice) -> Floats:
        rows = self.X[members.rows[entries]]
        weighted = sp.diags_array(members.weights[entries]) @ rows
        out = (rows.T @ weighted).toarray()
        if len(self.far):
            dense = self._gaps(members, entries, rows)
            mixed = weighted.T @ dense
            out[:, self.far] = mixed
            out[self.far] = mixed.T
            out[np.ix_(self.far, self.far)] = dense.T @ (members.weights[entries, None] * dense)
        return np.asarray(out + out.T) / 2

    def sums(self, members: Membership, run: slice) -> Floats:
        rows = self.X[members.rows[run]]
        out = np.asarray(members.weights[run] @ rows)
        out[self.far] = members.weights[run] @ self._gaps(members, run, rows)
        return out
