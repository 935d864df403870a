"""Sources of rows: the additive operations on data from which models are selected.

Arrays and iterators of batches implement them here, engines in ``maxdisc.adapters``. So model selection is
written once, for :class:`Rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.sweep import Counted, Sweepable
from maxdisc.families import Family, Gaussian
from maxdisc.families.blocks import Columns, MixedMoments
from maxdisc.families.support import Support
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.counting import Membership, are_worth_compiling, fold_moments
from maxdisc.moments.products import ClassProducts, fold_products, observed_means
from maxdisc.numerics.block_matrix import Table
from maxdisc.numerics.matrices import Floats, Integers, Matrix, blocks, canonical, is_sparse

#: A row with this fold is always a training row.
ALWAYS_TRAINING = -1
#: A row with this fold is ignored.
LEFT_OUT = -2


class Folds(Protocol):
    """An assignment of rows to ``count`` held-out folds."""

    @property
    def count(self) -> int:
        """V, the number of folds."""

    @property
    def leaves_out(self) -> bool:
        """Whether some rows are neither held out nor trained on."""

    def of(self, X: Matrix, start: int) -> Integers:
        """Return the fold of each row of a batch whose first row is number ``start``; shape (n,)."""


@dataclass(frozen=True, eq=False)
class FixedFolds:
    """Explicit fold of each row, or ``ALWAYS_TRAINING`` or ``LEFT_OUT``."""

    assignment: Integers  # (N,)
    count: int

    @property
    def leaves_out(self) -> bool:
        return bool((self.assignment == LEFT_OUT).any())

    def of(self, X: Matrix, start: int) -> Integers:
        return self.assignment[start : start + X.shape[0]]


@dataclass(frozen=True)
class HashFolds:
    """Folds by a hash of the row's content: the same for any order, batches and engine, sparse or dense."""

    count: int

    @property
    def leaves_out(self) -> bool:
        return False

    def of(self, X: Matrix, start: int = 0) -> Integers:  # noqa: ARG002  # content alone decides
        return (row_hashes(X) % np.uint64(self.count)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class RenumberedFolds:
    """Folds under other numbers: a subset, all but one, or several merged."""

    folds: Folds
    numbers: Integers  # (V,)

    @classmethod
    def some(cls, folds: Folds, chosen: range) -> RenumberedFolds:
        """Return a subset of the folds; the rows of the others are always training rows."""
        at = np.arange(folds.count)
        held = (at >= chosen.start) & (at < chosen.stop)
        return cls(folds, np.where(held, at - chosen.start, ALWAYS_TRAINING))

    @property
    def count(self) -> int:
        return int(self.numbers.max(initial=-1)) + 1

    @property
    def leaves_out(self) -> bool:
        return self.folds.leaves_out or bool((self.numbers == LEFT_OUT).any())

    def of(self, X: Matrix, start: int) -> Integers:
        fold = self.folds.of(X, start)
        return np.where(fold < 0, fold, self.numbers[np.maximum(fold, 0)])


def class_starts(labels: npt.NDArray[np.generic]) -> Integers:
    """Return the first row of each row's class, shape (N,).

    These codes depend neither on the names of labels nor on their order, and so must everything that is split
    class by class.
    """
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return first[codes]


def row_hashes(X: Matrix, rows: Integers | None = None) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of the non-zero cells of each row, or of some rows, shape (N,).

    It is a sum of one mixed word for each non-zero cell, so it does not depend on their order; all NaNs are
    equal.
    """
    if isinstance(X, Table):
        hashes = [scrambled(row_hashes(part, rows) + np.uint64(place)) for place, part in enumerate(X.parts)]
        return np.sum(hashes, axis=0, dtype=np.uint64)
    if is_sparse(X):
        X = canonical(X)
        if are_worth_compiling(X):
            return _compiled_hashes(X, np.arange(X.shape[0]) if rows is None else rows)
    X = X if rows is None else X[rows]
    if is_sparse(X):
        words = _mixed(X.indices, X.data)
        total = np.r_[np.uint64(0), np.cumsum(words, dtype=np.uint64)]
        return scrambled(total[X.indptr[1:]] - total[X.indptr[:-1]])
    X = np.asarray(X)
    out = np.empty(X.shape[0], dtype=np.uint64)
    for some in blocks(*X.shape):
        out[some] = _mixed(np.arange(X.shape[1]), X[some]).sum(axis=1, dtype=np.uint64)
    return scrambled(out)


def _compiled_hashes(X: Matrix, rows: Integers) -> npt.NDArray[np.uint64]:
    from maxdisc.rows.compiled_hashing import hash_rows

    out = np.empty(len(rows), dtype=np.uint64)
    hash_rows(X.indptr, X.indices, X.data.astype(np.float64, copy=False), rows, out)
    return out


def _mixed(columns: npt.NDArray[np.integer], values: npt.NDArray[np.generic]) -> npt.NDArray[np.uint64]:
    cells = np.array(values, dtype=np.float64)
    cells[np.isnan(cells)] = np.nan
    words = scrambled(cells.view(np.uint64) ^ scrambled(columns.astype(np.uint64) + np.uint64(1)))
    return np.where(cells != 0, words, np.uint64(0))


def scrambled(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the finaliser of splitmix64: every input bit affects every output bit."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class Rows(Protocol):
    """Source of labelled rows that are counted fold by fold; ``BatchRows`` describes each method."""

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""

    def example(self) -> Matrix:
        """Return some rows, from which a family can be selected."""

    def moments(self, family: Family, folds: Folds | None = None) -> list[ClassMoments]:
        """Return the moments of the rows of each fold, then of those never held out."""

    def sweep(
        self, decision_of: Callable[[int], Sweepable[Counted]], sizes: Integers, folds: Folds
    ) -> list[Counted]:
        """Return, for each fold, the counts of its decision on its held-out rows.

        ``decision_of(fold)`` may need much memory: request one at a time if possible.
        """

    def products(
        self,
        columns: Integers,
        folds: Folds | None = None,
        per_class: bool = False,
        means: Floats | None = None,
    ) -> list[ClassProducts]:
        """Return the products of some columns over the rows of each fold, then over those never held out."""


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Labelled rows in memory, or in a memory map."""

    #: Dense, where NaN is a missing cell, sparse, or columns of several families; shape (N, D).
    X: Matrix
    #: Codes 0..C-1, shape (N,), or responsibilities, shape (N, C): the weight of a row in each class.
    labels: npt.NDArray[Any]
    n_classes: int
    #: Row weights, shape (N,); 1 by default.
    weights: Floats | None = None
    #: Names of the columns, for messages.
    names: npt.ArrayLike | None = None
    #: Number of the first row, where these are a batch of a longer stream.
    start: int = 0
    #: The rows before a transform to ``X``. Folds depend on these: the last bits of a transform may depend on
    #: how many rows it is given at once.
    source: Matrix | None = None

    def __post_init__(self) -> None:
        X = self.X
        labels = np.asarray(self.labels)
        if not isinstance(X, Table):
            X = canonical(X) if is_sparse(X) else np.asarray(X)
            if X.ndim != 2 or X.dtype.kind not in "fiub":
                raise ValueError(f"X must be a table of numbers, got shape {X.shape} of {X.dtype}.")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "labels", labels)
        n_rows = X.shape[0]
        if labels.ndim == 1:
            known = labels.dtype.kind in "iu" and (labels >= 0).all() and (labels < self.n_classes).all()
        else:
            fits = labels.shape[1:] == (self.n_classes,)
            known = fits and np.isfinite(labels).all() and (labels >= 0).all()
        if len(labels) != n_rows or not known:
            raise ValueError(
                f"labels must be {n_rows} codes from 0 to {self.n_classes - 1} (positions in the sorted list "
                f"of classes), or {n_rows} rows of {self.n_classes} responsibilities of at least 0."
            )
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            object.__setattr__(self, "weights", weights)
            if weights.shape != (n_rows,) or not ((weights >= 0) & np.isfinite(weights)).all():
                raise ValueError(f"weights must be {n_rows} finite numbers of at least 0.")

    def example(self) -> Matrix:
        return self.X

    @overload
    def moments(self, family: Family, folds: Folds | None = None) -> list[ClassMoments]: ...

    @overload
    def moments(self, family: Columns, folds: Folds | None = None) -> list[MixedMoments]: ...

    def moments(
        self, family: Family | Columns, folds: Folds | None = None
    ) -> list[ClassMoments] | list[MixedMoments]:
        if isinstance(family, Columns):
            return self._mixed_moments(family, folds)
        members, always = self._members(folds)
        told = self._sums_tell(family, members)
        if not told:
            family.require(self.X, self.names, self.start)
        parts = fold_moments(family.statistics, self.X, members, self.n_classes, family.translates)
        if told and not all(_in_range(part, family, members.weights.min(initial=1.0)) for part in parts):
            family.require(self.X, self.names, self.start)
        if not always:
            # Untouched zeros take no memory.
            parts.append(ClassMoments.zero(family.n_statistics, self.n_classes, self.X.shape[1]))
        return parts

    def _mixed_moments(self, columns: Columns, folds: Folds | None) -> list[MixedMoments]:
        """Return the moments of every block, each counted as rows of one family are."""
        whole = self.X if self.source is None else self.source
        by_block = []
        for block, cells in zip(columns.blocks, self.X.parts, strict=True):
            rows = replace(self, X=cells, source=whole, names=columns.called(block, self.names))
            by_block.append([block.settled(part) for part in rows.moments(block.family, folds)])
        return [MixedMoments(list(parts), columns.n_columns) for parts in zip(*by_block, strict=True)]

    def _sums_tell(self, family: Family, members: Membership) -> bool:
        """Return whether sums of squares reveal values out of range.

        Then it need not be read once more just to look.
        """
        line = family.support == Support() and family.translates and not family.integral
        usual = type(family).require is Family.require and family.n_statistics > 1
        dense = not is_sparse(self.X)
        return line and usual and dense and bool(np.bincount(members.rows, minlength=len(self.X)).all())

    def products(
        self,
        columns: Integers,
        folds: Folds | None = None,
        per_class: bool = False,
        means: Floats | None = None,
    ) -> list[ClassProducts]:
        members, always = self._members(folds)
        if means is not None:
            means = means[: members.n_groups // self.n_classes]
        parts = fold_products(self.X, columns, members, self.n_classes, per_class, means)
        if not always:
            parts.append(ClassProducts.zero(self.n_classes, len(columns), per_class))
        return parts

    def dealt(self, folds: Folds) -> Integers:
        """Return the fold of each row, shape (N,)."""
        return folds.of(self.X if self.source is None else self.source, self.start)

    def _members(self, folds: Folds | None) -> tuple[Membership, bool]:
        """Who counts towards which class of which fold, and whether some rows are never held out."""
        count, fold = 0, np.full(self.X.shape[0], ALWAYS_TRAINING)
        if folds is not None:
            count, fold = folds.count, self.dealt(folds)
        always = bool((fold == ALWAYS_TRAINING).any())
        fold = np.where(fold == ALWAYS_TRAINING, count, fold)
        return Membership.of(self.labels, self.n_classes, self.weights, fold, count + always), always

    def sweep(
        self, decision_of: Callable[[int], Sweepable[Counted]], sizes: Integers, folds: Folds
    ) -> list[Counted]:
        fold = self.dealt(folds)
        weights = np.ones(self.X.shape[0]) if self.weights is None else self.weights
        out = []
        for f in range(folds.count):
            held = np.flatnonzero(fold == f)
            out.append(decision_of(f).swept(self.X, self.labels, weights, sizes, held))
        return out


def _in_range(moments: ClassMoments, family: Family, least: float) -> bool:
    """Return whether sums of squares are too small for any value, of this weight or more, to be out of range.

    Such a value would be far from the origin of its class, and its square alone more than this; or else the
    origin is large.
    """
    origin = np.abs(moments.means() if moments.origin is None else moments.origin).max(initial=0.0)
    squares = np.abs(moments.sums[1]).max(initial=0.0)
    # Not if any of them is NaN.
    return bool(origin < family.largest / 4 and squares < least * (family.largest / 2) ** 2)


@dataclass(frozen=True, eq=False)
class BatchRows:
    """Source of rows in batches, for data larger than memory.

    :meth:`maxdisc.MaxDiscClassifier.fit_rows` takes it, or any object with ``n_classes`` and its methods.

    Parameters
    ----------
    batches : callable
        Starts a pass: returns an iterable of ``(X, labels)`` or ``(X, labels, weights)``. There are several
        passes, so each call must return a new iterator.
    n_classes : int
        C.
    names : array_like of str, shape (D,), optional
        Names of the columns, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Poisson
    >>> from maxdisc.rows import BatchRows
    >>> halves = [(np.array([[1.0]]), np.array([0])), (np.array([[5.0]]), np.array([1]))]
    >>> BatchRows(lambda: halves, 2).moments(Poisson())[0].sums
    array([[[1.],
            [5.]]])
    """

    batches: Callable[[], Iterable[tuple[Matrix, ...]]]
    n_classes: int
    names: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        if not callable(self.batches):
            raise TypeError(
                "batches must be a function that starts a new pass over the batches, such as "
                "lambda: read_batches(path); an iterator runs only once."
            )

    def __iter__(self) -> Iterator[ArrayRows]:
        start, width = 0, None
        for batch in self.batches():
            if len(batch) not in (2, 3):
                raise ValueError(f"a batch is (X, codes) or (X, codes, weights), got {len(batch)} parts.")
            X, labels, *weights = batch
            if width not in (None, X.shape[1]):
                raise ValueError(
                    f"the batch that starts at row {start} has {X.shape[1]} columns, the first had {width}."
                )
            width = X.shape[1]
            yield ArrayRows(X, labels, self.n_classes, weights[0] if weights else None, self.names, start)
            start += X.shape[0]
        if width is None:
            raise ValueError("there are no batches: the source of rows is empty.")

    def example(self) -> Matrix:
        """Return some rows, from which a family can be selected.

        Returns
        -------
        matrix of shape (n, D)
            The first batch.
        """
        return next(iter(self)).X

    def moments(self, family: Family, folds: Folds | None = None) -> list[ClassMoments]:
        """Return sums of the family's statistics over the rows of each fold.

        Parameters
        ----------
        family : Family
            The family, which defines the statistics.
        folds : object, optional
            ``count`` is V, the number of folds, and ``of(X, start)`` the fold of each row of a batch whose
            first row has that number, shape (n,); -1 for a row that is always a training row, -2 for one that
            is ignored. None for no folds, V = 0.

        Returns
        -------
        list of V + 1 sums
            Those of the held-out rows of each fold, then those of the rows that are never held out. Each has
            ``weight`` of shape (C,) and ``sums`` of shape (L, C, D); ``+`` adds them.
        """
        return _added(batch.moments(family, folds) for batch in self)

    def products(
        self,
        columns: Integers,
        folds: Folds | None = None,
        per_class: bool = False,
        means: Floats | None = None,
    ) -> list[ClassProducts]:
        """Return sums of products of columns over the rows of each fold, for joint densities.

        Memory grows with P x P for each fold, times C if there are products per class.

        Parameters
        ----------
        columns : ndarray of shape (P,)
            The columns.
        folds : object, optional
            As in ``moments``.
        per_class : bool
            Whether there are products per class.
        means : ndarray of shape (V + 1, C, P), optional
            Means of the observed cells, which replace missing ones; NaN without observed cells. They save a
            pass if they are known.

        Returns
        -------
        list of V + 1 sums
            In the order of ``moments``; ``+`` adds them.
        """
        if means is None and not is_sparse(self.example()):
            # Missing cells count as means of whole folds, not of a batch: sparse rows have none.
            means = observed_means(self.moments(Gaussian(), folds), columns)
        return _added(batch.products(columns, folds, per_class, means) for batch in self)

    def sweep(
        self, decision_of: Callable[[int], Sweepable[Counted]], sizes: Integers, folds: Folds
    ) -> list[Counted]:
        """Return the counts of the decision of each fold on its held-out rows.

        Parameters
        ----------
        decision_of : callable
            Function of the number of a fold; returns its decision, whose ``swept(X, codes, weights, sizes,
            held)`` returns the counts of the rows at the positions ``held``. A decision may need much memory:
            request one at a time if possible.
        sizes : ndarray of shape (S,)
            Numbers of features, increasing.
        folds : object
            As in ``moments``.

        Returns
        -------
        list of V counts
            One for each fold; ``+`` adds those of several batches.
        """
        decisions = [decision_of(f) for f in range(folds.count)]
        total: list[Counted] = []
        for batch in self:
            part = batch.sweep(decisions.__getitem__, sizes, folds)
            total = [t + p for t, p in zip(total, part, strict=True)] if total else part
        return total


_Sums = TypeVar("_Sums", ClassMoments, ClassProducts)


def _added(parts: Iterable[list[_Sums]]) -> list[_Sums]:
    """Return what the batches counted, fold by fold, so that no more than one sum is held twice."""
    total: list[_Sums] | None = None
    for part in parts:
        if total is None:
            total = part
            continue
        while part:
            last = len(part) - 1
            total[last] = total[last] + part.pop()
    assert total is not None  # an empty source raises while it is read
    return total
