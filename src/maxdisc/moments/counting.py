"""One pass over rows: which class and fold each counts towards, and the sums of their statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.moments.class_moments import ClassMoments, merged, ratio
from maxdisc.numerics.matrices import Floats, Integers, Matrix, blocks, canonical, is_sparse, with_data
from maxdisc.numerics.switches import batch_size, is_compiled
from maxdisc.numerics.threads import in_threads, n_threads

#: Sums are compiled from this many stored cells, or values of a dense table, on.
MANY_CELLS, MANY_VALUES = 2**20, 2**22

#: Powers cancel where the variance is less than this share of the mean square.
CANCELS = 1e-4

#: From a matrix to the L matrices of its statistics.
Statistics = Callable[[Matrix], Sequence[Matrix]]


@dataclass(frozen=True, eq=False)
class Membership:
    """Weights of rows in groups (a class of a fold), sorted by group."""

    rows: Integers  # (E,)
    groups: Integers  # (E,)
    weights: Floats  # (E,)
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
        """Build from codes (N,) or responsibilities (N, C), row weights, and folds (negative: left out)."""
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
        # Small numbers are sorted in linear time.
        keys = groups.astype(np.uint16) if n_folds * n_classes <= 2**16 else groups
        order = np.argsort(keys, kind="stable")
        return cls(rows[order], groups[order], entries[order], n_folds * n_classes)

    @property
    def group_weight(self) -> Floats:
        """Weight of each group, shape (G,)."""
        return np.bincount(self.groups, self.weights, self.n_groups).astype(np.float64)

    def indicator(self, n_rows: int, coarser: int = 1) -> Matrix:
        """Return the sparse (G // coarser, N) matrix that maps row statistics to group sums."""
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
    """Return moments of the rows of ``X``: :func:`fold_moments` with one fold."""
    return fold_moments(statistics, X, Membership.of(labels, n_classes, weights), n_classes, powers)[0]


# Whoever takes the sums looks whether they are finite, and can then name the column.
@np.errstate(over="ignore", invalid="ignore")
def fold_moments(
    statistics: Statistics, X: Matrix, members: Membership, n_classes: int, powers: bool = False
) -> list[ClassMoments]:
    """Return moments of every fold, in one pass over the rows of ``X``; CSR stays sparse.

    Class c of fold f is group ``f * n_classes + c``. ``powers`` says that the statistics are the powers
    1..L of x, which are then taken about each class's own origin.
    """
    origin: Floats | None = None
    observed: Floats | None = None
    nonzero: Floats | None = None
    squared: Floats | None = None
    if is_sparse(X):
        X = canonical(X)
        if powers:
            sums, origin = _sparse_powers(statistics, X, members)
        else:
            sums, nonzero, squared = _sparse_sums(
                statistics, X.astype(np.float64, copy=False), members, n_classes
            )
    elif powers:
        sums, origin, observed = _centred_sums(statistics, X, members)
    else:
        sums, observed, nonzero, squared = _plain_sums(statistics, X, members, n_classes)
    weight = members.group_weight
    squares = np.bincount(members.groups // n_classes, members.weights**2, members.n_groups // n_classes)
    return [
        ClassMoments(
            weight[f : f + n_classes],
            sums[:, f : f + n_classes],
            None if origin is None else origin[f : f + n_classes],
            None if observed is None else observed[f : f + n_classes],
            None if nonzero is None else nonzero[f // n_classes],
            float(squares[f // n_classes]),
            None if squared is None else squared[f // n_classes],
        )
        for f in range(0, members.n_groups, n_classes)
    ]


def _sparse_sums(
    statistics: Statistics, X: Matrix, members: Membership, n_classes: int
) -> tuple[Floats, Floats, Floats | None]:
    planes = statistics(X)
    if are_worth_compiling(X):
        return _compiled_sums(planes, X, members, n_classes)
    indicator, folds = members.indicator(X.shape[0]), members.indicator(X.shape[0], n_classes)
    stored = with_data(X, (X.data != 0).astype(np.float64))
    sums = np.stack([(indicator @ plane).toarray() for plane in planes])
    squared = (folds @ with_data(X, X.data**2)).toarray() if len(planes) == 1 else None
    return sums, (folds @ stored).toarray(), squared


def _compiled_sums(
    planes: Sequence[Matrix], X: Matrix, members: Membership, n_classes: int
) -> tuple[Floats, Floats, Floats | None]:
    """Sums of all planes, and the weight of the cells of each fold that are not zero, and their squares."""
    from maxdisc.moments.compiled_sums import group_spreads, group_sums

    sums = np.zeros((len(planes), members.n_groups, X.shape[1]))
    nonzero, squared = np.zeros((2, members.n_groups // n_classes, X.shape[1]))
    tasks: list[tuple[Any, ...]] = [
        (group_sums, *_cells_of(plane, members), starts, *some, out)
        for starts, ranges in [_shared_out(X, members)]
        for plane, out in zip(planes, sums, strict=True)
        for some in ranges
    ]
    starts, ranges = _shared_out(X, members, n_classes)
    tasks += [
        (group_spreads, *_cells_of(X, members), starts, *some, nonzero, squared, both)
        for some, both in zip(ranges, np.empty((len(ranges), 2 * X.shape[1])), strict=True)
    ]
    # What takes longest, and cannot be shared out, goes first.
    in_threads(lambda task: task[0](*task[1:]), tasks[::-1])
    return sums, nonzero, squared if len(planes) == 1 else None


def _sparse_powers(statistics: Statistics, X: Matrix, members: Membership) -> tuple[Floats, Floats | None]:
    """Sums of the powers of the values; about their means, with these means, where they cancel."""
    n_powers = _how_many(statistics)
    if n_powers == 2 and X.dtype in (np.float32, np.float64) and are_worth_compiling(X):
        from maxdisc.moments.compiled_sums import group_powers

        sums = np.empty((2, members.n_groups, X.shape[1]))
        starts, ranges = _shared_out(X, members)
        given = (*_cells_of(X, members), starts)
        tasks: list[tuple[Any, ...]] = [
            (*given, *some, sums[0], sums[1], CANCELS, both)
            for some, both in zip(ranges, np.empty((len(ranges), 2 * X.shape[1])), strict=True)
        ]
        cancel = in_threads(lambda task: group_powers(*task), tasks)
        return sums, _centre_where_it_cancels(X, members, sums) if any(cancel) else None
    X = X.astype(np.float64, copy=False)
    indicator = members.indicator(X.shape[0])
    sums = np.stack([(indicator @ plane).toarray() for plane in statistics(X)])
    return sums, _centre_where_it_cancels(X, members, sums)


def _cells_of(X: Matrix, members: Membership) -> tuple[Any, ...]:
    """Return a CSR matrix and what its rows count for, as kernels take them."""
    return X.indptr, X.indices, X.data, members.rows, members.weights


def are_worth_compiling(X: Matrix) -> bool:
    """Return whether a sparse matrix has enough stored cells for compiled code."""
    return is_compiled(X.nnz, MANY_CELLS)


def _shared_out(X: Matrix, members: Membership, coarser: int = 1) -> tuple[Integers, list[tuple[int, int]]]:
    """Return where each group begins, shape (G + 1,), and ranges of groups of similar size."""
    n_groups = members.n_groups // coarser
    starts = np.searchsorted(members.groups // coarser, np.arange(n_groups + 1))
    cells = np.r_[0, np.cumsum(np.diff(X.indptr)[members.rows])][starts]
    cuts = np.searchsorted(cells, np.linspace(0, cells[-1], n_threads() + 1)[1:-1])
    return starts, list(pairwise([0, *np.unique(cuts[(cuts > 0) & (cuts < n_groups)]).tolist(), n_groups]))


def _centre_where_it_cancels(X: Matrix, members: Membership, sums: Floats) -> Floats | None:
    """Sum again, about their own means, the groups and columns whose variance cancels.

    There nearly every row stores a value near the mean; the few zeros are added in closed form. Changes
    ``sums`` in place and returns the origins, shape (G, D); None if nothing cancels.
    """
    keys = _cancelling(members, sums)
    if keys.size == 0:
        return None
    n_features = X.shape[1]
    groups, columns = keys // n_features, keys % n_features
    weight = members.group_weight[groups]
    center = sums[0, groups, columns] / weight
    entries = X[members.rows]
    stored = np.diff(entries.indptr)
    cells = np.repeat(members.groups, stored) * n_features + entries.indices
    at = np.minimum(np.searchsorted(keys, cells), keys.size - 1)
    hit = keys[at] == cells
    at, weights = at[hit], np.repeat(members.weights, stored)[hit]
    residual = entries.data[hit] - center[at]
    zeros = weight - np.bincount(at, weights, keys.size)
    for order in range(1, len(sums) + 1):
        about = np.bincount(at, weights * residual**order, keys.size)
        sums[order - 1, groups, columns] = about + np.maximum(zeros, 0.0) * (-center) ** order
    origin = np.zeros(sums.shape[1:])
    origin[groups, columns] = center
    return origin


def _cancelling(members: Membership, sums: Floats) -> Integers:
    """Return where powers cancel, as sorted keys group * D + column."""
    found = [
        group * sums.shape[2] + np.flatnonzero(squares - first * first / weight < CANCELS * squares)
        for group, (first, squares, weight) in enumerate(
            zip(sums[0], sums[1], members.group_weight, strict=True)
        )
        if weight > 0
    ]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.intp)


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
) -> tuple[Floats, Floats | None, Floats, Floats | None]:
    n_features = X.shape[1]
    sums = np.zeros((len(statistics(np.ones((0, n_features)))), members.n_groups, n_features))
    cells, complete = np.zeros((members.n_groups, 1)), True
    nonzero = np.zeros((members.n_groups // n_classes, n_features))
    squared = np.zeros(nonzero.shape) if len(sums) == 1 else None
    for block in _dense_blocks(X, members):
        values = block.values
        if block.missing is not None:
            # Any value inside the support will do: its weight is 0.
            inside = np.nanmax(np.where(block.missing, -np.inf, values), initial=-np.inf)
            values = np.where(block.missing, inside if np.isfinite(inside) else 0.5, values)
            if complete:
                cells, complete = np.broadcast_to(cells, (members.n_groups, n_features)).copy(), False
        for out, plane in zip(sums, statistics(values), strict=True):
            out[block.groups] += block.sum(plane)
        cells[block.groups] += block.cells
        np.add.at(nonzero, block.groups // n_classes, block.sum((values != 0).astype(np.float64)))
        if squared is not None:
            np.add.at(squared, block.groups // n_classes, block.sum(values * values))
    return sums, None if complete else cells, nonzero, squared


def _centred_sums(
    statistics: Statistics, X: Matrix, members: Membership
) -> tuple[Floats, Floats, Floats | None]:
    """Return two passes over each block while it is in cache, blocks merged about weighted origins."""
    shape = (members.n_groups, X.shape[1])
    if _how_many(statistics) == 2 and _is_worth_tiles(X):
        return _centred_in_tiles(X, members)
    sums = np.zeros((_how_many(statistics), *shape))
    origin = np.zeros(shape)
    cells, complete = np.zeros((members.n_groups, 1)), True
    for block in _dense_blocks(X, members):
        if block.missing is not None and complete:
            cells, complete = np.broadcast_to(cells, shape).copy(), False
        center = ratio(block.sum(block.values), block.cells)
        residual = block.values - block.spread(center)
        fresh = np.stack([block.sum(plane) for plane in statistics(residual)])
        old = (cells[block.groups], sums[:, block.groups], origin[block.groups])
        sums[:, block.groups], origin[block.groups] = merged(old, (block.cells, fresh, center))
        cells[block.groups] += block.cells
    return sums, origin, None if complete else cells


def _how_many(statistics: Statistics) -> int:
    """L, the number of statistics."""
    return len(statistics(np.zeros((0, 1))))


def _is_worth_tiles(X: Matrix) -> bool:
    """Return whether a dense table is large enough for compiled code, and lies in memory as that wants it."""
    plain = isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64) and X.flags.c_contiguous
    return plain and is_compiled(X.size, MANY_VALUES)


def _centred_in_tiles(X: Matrix, members: Membership) -> tuple[Floats, Floats, Floats | None]:
    """Return what :func:`_centred_sums` does for two powers, compiled, in threads over tiles of columns."""
    from maxdisc.moments.compiled_sums import COLUMNS_AT_A_TIME, centred_sums

    shape = (members.n_groups, X.shape[1])
    sums, origin, cells = np.zeros((2, *shape)), np.zeros(shape), np.zeros(shape)
    starts = np.searchsorted(members.groups, np.arange(members.n_groups + 1))
    given = (X, members.rows, members.weights, starts)
    # As many tiles, all of one width, for each thread.
    threads = n_threads()
    tiles = threads * -(-X.shape[1] // (threads * batch_size(COLUMNS_AT_A_TIME)))
    edges = np.unique(np.linspace(0, X.shape[1], tiles + 1).astype(np.intp)).tolist()
    missing = in_threads(
        lambda tile: centred_sums(*given, *tile, cells, origin, sums[1]), list(pairwise(edges))
    )
    return sums, origin, cells if any(missing) else None
