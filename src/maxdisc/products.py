"""Sums of products of features within classes: what a joint density needs beyond the moments.

They add, as moments do, so folds, batches and machines each deliver a :class:`ClassProducts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import scipy.sparse as sp

from maxdisc.counting import Membership
from maxdisc.matrices import Floats, Integers, Matrix, blocks, is_sparse
from maxdisc.moments import ratio

# A sparse column with fewer zeros than this has a mean about which it is better summed. One with more has a
# variance of at least half of its mean square, so nothing cancels about 0.
FEW_ZEROS = 0.5


@dataclass(frozen=True, eq=False)
class ClassProducts:
    """Weights, sums and sums of products of P features for C classes: a commutative monoid under ``+``.

    Parameters
    ----------
    weight : ndarray of shape (C,)
        Total weight of each class's rows.
    sums : ndarray of shape (C, P)
        Weighted sums of ``x - origin``.
    products : ndarray of shape (G, P, P)
        Weighted sums of ``(x_i - origin_i) (x_j - origin_j)``: of all classes together (G = 1), or of each
        (G = C).
    origin : ndarray of shape (P,)
        What is subtracted from x; ``+`` recentres.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.rows import ArrayRows
    >>> X = np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0], [7.0, 1.0]])
    >>> products = ArrayRows(X, np.array([0, 0, 1, 1]), 2).products(np.array([0, 1]))[0]
    >>> products.means()
    array([[2., 4.],
           [6., 1.]])
    >>> products.within()[0]
    array([[4., 4.],
           [4., 8.]])
    >>> (products + products).weight
    array([4., 4.])
    """

    weight: Floats
    sums: Floats
    products: Floats
    origin: Floats

    @classmethod
    def zero(cls, n_classes: int, n_features: int, per_class: bool = False) -> ClassProducts:
        """The products of no rows: ``zero + p`` is ``p``."""
        shape = (n_classes if per_class else 1, n_features, n_features)
        sums = np.zeros((n_classes, n_features))
        return cls(np.zeros(n_classes), sums, np.zeros(shape), np.zeros(n_features))

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
        n, m = self.weight.sum(), other.weight.sum()
        if n == 0 or m == 0:
            return other if n == 0 else self
        if np.array_equal(self.origin, other.origin):
            origin = self.origin
        else:
            # Between the two, nearer to the heavier; symmetric to the last bit.
            origin = (n * self.origin + m * other.origin) / (n + m)
        a, b = self.about(origin), other.about(origin)
        return ClassProducts(a.weight + b.weight, a.sums + b.sums, a.products + b.products, origin)

    @staticmethod
    def total(parts: Iterable[ClassProducts]) -> ClassProducts:
        """The sum of at least one ``ClassProducts``."""
        return reduce(add, parts)

    def about(self, origin: Floats) -> ClassProducts:
        """The same rows, their statistics taken about another origin, shape (P,)."""
        shift = self.origin - origin
        if not shift.any():
            return replace(self, origin=origin)
        sums = self.sums if self.per_class else self.sums.sum(axis=0, keepdims=True)
        weight = self.weight if self.per_class else self.weight.sum(keepdims=True)
        cross = sums[:, :, None] * shift + 0.5 * weight[:, None, None] * (shift[:, None] * shift)
        return ClassProducts(
            self.weight,
            self.sums + self.weight[:, None] * shift,
            self.products + (cross + np.swapaxes(cross, 1, 2)),
            origin,
        )

    def select(self, positions: Integers) -> ClassProducts:
        """The products of some of the features, in the order given."""
        return ClassProducts(
            self.weight,
            self.sums[:, positions],
            self.products[:, positions[:, None], positions],
            self.origin[positions],
        )

    def means(self) -> Floats:
        """The mean of each class, shape (C, P); the origin for a class without rows."""
        return self.origin + ratio(self.sums, self.weight[:, None])

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


@np.errstate(over="ignore", invalid="ignore")
def fold_products(
    X: Matrix, columns: Integers, members: Membership, n_classes: int, per_class: bool = False
) -> list[ClassProducts]:
    """Products of some columns for every fold; memory grows with P x P for each fold, not with N x P.

    Parameters
    ----------
    X : matrix of shape (N, D)
        Dense or CSR. A missing cell (NaN) counts as the mean of the observed cells of its class in its fold,
        so no fold knows of another; where there are none, as the column's mean.
    columns : ndarray of shape (P,)
        Which columns, each once.
    members : Membership
        The groups, class c of fold f being number ``f * n_classes + c``.
    n_classes : int
        C.
    per_class : bool
        Whether each class gets products of its own.

    Returns
    -------
    list of ClassProducts
        One for each fold, all about one origin.
    """
    columns = np.asarray(columns, dtype=np.intp)
    X = X[:, columns].tocsr() if is_sparse(X) else np.asarray(X)
    source = _SparseColumns.of(X) if is_sparse(X) else _DenseColumns.of(X, columns, members)
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
            source.origin,
        )
        for f in range(n_folds)
    ]


def _runs(members: Membership, coarser: int, width: int) -> Iterator[slice]:
    """Entries of one product each, so few at a time that their values stay small."""
    owner = members.groups // coarser
    cuts = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
    for start, stop in pairwise(cuts):
        for some in blocks(int(stop - start), width):
            yield slice(int(start) + some.start, int(start) + some.stop)


def _within(members: Membership, entries: slice) -> Iterator[slice]:
    """The runs of one class each among some entries."""
    cuts = np.flatnonzero(np.diff(members.groups[entries], prepend=-1, append=-1)) + entries.start
    for start, stop in pairwise(cuts):
        yield slice(int(start), int(stop))


@dataclass(frozen=True, eq=False)
class _DenseColumns:
    """Some columns of a dense matrix about their means; ``fill`` (groups, P) stands for missing cells."""

    X: Floats
    columns: Integers
    origin: Floats
    fill: Floats | None

    @classmethod
    def of(cls, X: Floats, columns: Integers, members: Membership) -> _DenseColumns:
        shape = (members.n_groups, len(columns))
        sums, cells = np.zeros(shape), np.zeros(shape)
        for run in _runs(members, 1, len(columns)):
            values = X[np.ix_(members.rows[run], columns)].astype(np.float64, copy=False)
            missing = np.isnan(values)
            weights = members.weights[run]
            sums[members.groups[run.start]] += weights @ np.where(missing, 0.0, values)
            cells[members.groups[run.start]] += weights @ ~missing
        origin = ratio(sums.sum(axis=0), cells.sum(axis=0))
        if np.array_equal(cells, np.broadcast_to(members.group_weight[:, None], shape)):
            return cls(X, columns, origin, None)
        return cls(X, columns, origin, np.where(cells > 0, ratio(sums, cells), origin))

    @property
    def width(self) -> int:
        return len(self.columns)

    def _values(self, members: Membership, entries: slice) -> Floats:
        values = self.X[np.ix_(members.rows[entries], self.columns)].astype(np.float64, copy=False)
        if self.fill is not None:
            values = np.where(np.isnan(values), self.fill[members.groups[entries]], values)
        return np.asarray(values - self.origin)

    def products(self, members: Membership, entries: slice) -> Floats:
        # One matrix with itself: half the work, and symmetric to the last bit.
        values = np.sqrt(members.weights[entries])[:, None] * self._values(members, entries)
        return np.asarray(values.T @ values)

    def sums(self, members: Membership, run: slice) -> Floats:
        return np.asarray(members.weights[run] @ self._values(members, run))


@dataclass(frozen=True, eq=False)
class _SparseColumns:
    """Columns of a sparse matrix: about 0, but for those with few zeros, which are made dense in blocks."""

    X: Matrix
    thick: Integers
    origin: Floats

    @classmethod
    def of(cls, X: Matrix) -> _SparseColumns:
        X = X.astype(np.float64, copy=False)
        if np.isnan(X.data).any():
            raise ValueError("a sparse matrix stores NaN: missing cells are for dense input.")
        stored = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
        thick = np.flatnonzero(stored > (1 - FEW_ZEROS) * X.shape[0])
        origin = np.zeros(X.shape[1])
        origin[thick] = np.asarray(X[:, thick].sum(axis=0)).ravel() / max(X.shape[0], 1)
        return cls(X, thick, origin)

    @property
    def width(self) -> int:
        return max(len(self.thick), 64)

    def products(self, members: Membership, entries: slice) -> Floats:
        rows = self.X[members.rows[entries]]
        weighted = sp.diags_array(members.weights[entries]) @ rows
        out = (rows.T @ weighted).toarray()
        if len(self.thick):
            dense = rows[:, self.thick].toarray() - self.origin[self.thick]
            mixed = weighted.T @ dense
            out[:, self.thick] = mixed
            out[self.thick] = mixed.T
            out[np.ix_(self.thick, self.thick)] = dense.T @ (members.weights[entries, None] * dense)
        return np.asarray(out + out.T) / 2

    def sums(self, members: Membership, run: slice) -> Floats:
        plain = members.weights[run] @ self.X[members.rows[run]]
        return np.asarray(plain - members.weights[run].sum() * self.origin)
