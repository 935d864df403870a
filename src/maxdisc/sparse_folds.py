"""Fold models of sparse rows in memory, by compiled code: the same paths as the general way, sooner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.decision import CELLS_AT_A_TIME, Sweep, worth_compiling
from maxdisc.divergences import Divergence, FeatureRanking, js_gm, require_finite
from maxdisc.families import Family
from maxdisc.matrices import Floats, Integers, Matrix, blocks, is_sparse
from maxdisc.moments import ClassMoments
from maxdisc.rows import LEFT_OUT, ArrayRows, Folds
from maxdisc.selection import SelectionPath
from maxdisc.smoothing import Smoothing
from maxdisc.threads import in_threads, n_threads

#: The tables of the models that are tried at once take at most so many bytes, if there is more than one.
TABLES_AT_ONCE = 2**29


def suits(rows: ArrayRows, family: Family, divergence: Divergence) -> bool:
    """Whether these rows and models are such as :class:`SparseFoldModels` takes, and large enough to gain."""
    return (
        is_sparse(rows.X)
        and rows.labels.ndim == 1
        and worth_compiling(family, rows.n_classes, rows.X.shape[1])
        and divergence is js_gm
    )


@dataclass(frozen=True, eq=False)
class SparseFoldModels:
    """What :class:`maxdisc.selection.FoldModels` is, for one-statistic families ranked by js_gm.

    A model is made from the columns of its training rows, and swept over its held-out rows, without the
    moments of every fold ever being written down.

    Parameters
    ----------
    rows : ArrayRows
        Sparse rows with one label each.
    family : Family
        One of the families of :data:`maxdisc.kernels.tables.KINDS`.
    prior : ndarray of shape (C,) or None
        Class probabilities; by default their shares of the training weight.
    plans : sequence of Folds
        As for ``FoldModels``.
    """

    rows: ArrayRows
    family: Family
    prior: Floats | None
    plans: Sequence[Folds]

    def __post_init__(self) -> None:
        self.family.require(self.rows.X, self.rows.names, self.rows.start)

    @property
    def n_features(self) -> int:
        """D, the number of features."""
        return int(self.rows.X.shape[1])

    def total(self) -> ClassMoments:
        """The moments of all the rows."""
        return self._whole

    @cached_property
    def _whole(self) -> ClassMoments:
        from maxdisc.kernels.tables import class_sums

        columns, codes, weights = self._columns, self.rows.labels, self._weights
        sums = np.zeros((1, self.rows.n_classes, self.n_features))
        nonzero = np.empty(self.n_features)
        given = (columns.indptr, columns.indices, columns.data, codes, weights)
        in_threads(
            lambda r: class_sums(*given, r.start, r.stop, sums[0], nonzero),
            list(blocks(self.n_features, self.rows.n_classes, CELLS_AT_A_TIME)),
        )
        weight = np.bincount(codes, weights, self.rows.n_classes).astype(np.float64)
        return ClassMoments(weight, sums, nonzero=nonzero, squares=float(weights @ weights))

    @cached_property
    def _spare(self) -> list[Floats]:
        """Tables that no model uses at the moment: fresh memory can cost more than filling it."""
        return []

    @cached_property
    def _most_placed(self) -> int:
        """In no fold do the rows that are not trained on have more features than this."""
        stored = np.diff(self._values.indptr)
        return min(max(int(stored[trial.training == 0].sum()) for trial in self._trials), self.n_features)

    @cached_property
    def _columns(self) -> Matrix:
        return sp.csc_array(self._values)

    @cached_property
    def _values(self) -> Matrix:
        return self.rows.X.astype(np.float64, copy=False)

    @cached_property
    def _weights(self) -> Floats:
        return np.ones(self._values.shape[0]) if self.rows.weights is None else self.rows.weights

    @cached_property
    def _trials(self) -> list[_Trial]:
        trials = []
        for folds in self.plans:
            fold = folds.of(self.rows.X, self.rows.start)
            for f in range(folds.count):
                training = np.where((fold == f) | (fold == LEFT_OUT), 0.0, self._weights)
                trials.append(_Trial(self, np.flatnonzero(fold == f), training))
        return trials

    def _tried(self, trial: _Trial, sizes: Integers, smoothing: Smoothing) -> Sweep:
        try:
            table = self._spare.pop()
        except IndexError:
            table = np.empty((self._most_placed, self.rows.n_classes))
        try:
            return trial.sweep(sizes, smoothing, table)
        finally:
            self._spare.append(table)

    def _make_cells(self, n_folds: int) -> None:
        """What all models of a fold share, for the first so many folds."""
        _ = self._columns
        in_threads(lambda trial: trial._cells, self._trials[:n_folds])

    def first_folds(self, n_rows: float) -> int:
        """How many folds it takes to hold out so many rows (of equal weight); or all."""
        held = [trial.n_rows for trial in self._trials]
        return min(int(np.searchsorted(np.cumsum(held), n_rows)) + 1, len(held))

    def paths(
        self, sizes: Integers, smoothings: Sequence[Smoothing], n_folds: int | None = None
    ) -> list[SelectionPath]:
        """Sweep the held-out rows of every fold, or of the first so many, for each smoothing."""
        trials = self._trials[:n_folds]
        most = max(1, TABLES_AT_ONCE // (8 * self.rows.n_classes * self.n_features))
        jobs: list[Callable[[], Any]] = [
            partial(self._tried, trial, sizes, smoothing) for smoothing in smoothings for trial in trials
        ]
        if n_folds is None:
            # An odd number of folds leaves a thread without work: time for what will be needed next.
            jobs.insert(0, self.total)
        else:
            self._make_cells(max(n_folds, min(n_threads(), most)))
        # The first folds have their cells already: the others, which take longer, begin.
        done = in_threads(lambda job: job(), jobs[::-1], most)[::-1]
        sweeps = done[-len(smoothings) * len(trials) :]
        return [
            SelectionPath.of(sizes, sweeps[s * len(trials) : (s + 1) * len(trials)], smoothing)
            for s, smoothing in enumerate(smoothings)
        ]


@dataclass(frozen=True, eq=False)
class _Cells:
    """The class sums of the training rows that are not zero, feature by feature, and what goes with them."""

    ends: Integers
    classes: npt.NDArray[np.int32]
    sums: Floats
    place: npt.NDArray[np.int32]
    n_placed: int
    pooled: ClassMoments

    @classmethod
    def of(cls, columns: Matrix, codes: Integers, weights: Floats, n_classes: int) -> _Cells:
        from maxdisc.kernels.tables import class_cells

        n_features = columns.shape[1]
        most = min(columns.nnz, n_classes * n_features)
        ends = np.empty(n_features + 1, dtype=np.intp)
        classes, sums = np.empty(most + 1, dtype=np.int32), np.empty(most)
        pooled, nonzero = np.empty(n_features), np.empty(n_features)
        place = np.empty(n_features, dtype=np.int32)
        given = (columns.indptr, columns.indices, columns.data, codes, weights, n_classes)
        n_placed = class_cells(*given, ends, classes, sums, pooled, nonzero, place)
        # All classes together are all that smoothing looks at.
        together = ClassMoments(weights.sum(keepdims=True), pooled[None, None], nonzero=nonzero)
        return cls(ends, classes, sums, place, n_placed, together)


@dataclass(frozen=True, eq=False)
class _Trial:
    """One fold: the rows held out, and the weight of every row among those trained on."""

    models: SparseFoldModels
    held: Integers
    training: Floats

    @property
    def n_rows(self) -> float:
        """How many rows of equal weight the held-out ones are worth."""
        held = self.models._weights[self.held]
        return float(held.sum() ** 2 / (held @ held)) if held.size else 0.0

    @cached_property
    def _cells(self) -> _Cells:
        rows = self.models.rows
        return _Cells.of(self.models._columns, rows.labels, self.training, rows.n_classes)

    @cached_property
    def _class_weights(self) -> Floats:
        rows = self.models.rows
        return np.bincount(rows.labels, self.training, rows.n_classes).astype(np.float64)

    @property
    def _prior(self) -> Floats:
        given = self.models.prior
        return self._class_weights / self._class_weights.sum() if given is None else given

    def sweep(self, sizes: Integers, smoothing: Smoothing, table: Floats) -> Sweep:
        """What the model of the training rows gets right among the rows held out; writes in ``table``."""
        from maxdisc.kernels.tables import sweep_rows

        if not (self.held.size and self.training.any()):
            return Sweep.zero(len(sizes))
        natural = table[: self._cells.n_placed]
        bucket, baseline = self._ranked(sizes, smoothing, natural)
        with np.errstate(divide="ignore"):
            log_prior = np.log(self._prior)
        X, labels, weights = self.models._values, self.models.rows.labels, self.models._weights
        correct, loss = np.zeros(len(sizes)), np.zeros(len(sizes))
        rows = (X.indptr, X.indices, X.data, self.held, labels, weights)
        sweep_rows(*rows, natural, self._cells.place, bucket, baseline, log_prior, correct, loss)
        held = weights[self.held]
        return Sweep(correct, loss, float(held.sum()), float(held @ held))

    def _ranked(
        self, sizes: Integers, smoothing: Smoothing, natural: Floats
    ) -> tuple[npt.NDArray[np.int32], Floats]:
        """The model, as the sweep needs it.

        Fills ``natural`` (T, C), the natural parameters of the features that held-out rows have; returns the
        position in ``sizes`` of the first size that includes a feature, (D,), and the sum of the normalisers
        that each size adds, (S, C).
        """
        from maxdisc.kernels import tables

        family, cells, n_classes = self.models.family, self._cells, self.models.rows.n_classes
        pooled = cells.pooled
        pseudo = smoothing.pseudo_rows(pooled, pooled.sums, smoothing.level(pooled))
        scores = np.empty(self.models.n_features)
        baseline = np.empty((len(sizes), n_classes))
        sums = (cells.ends, cells.classes, cells.sums)
        smoothed = (
            self._class_weights,
            self._prior,
            np.ascontiguousarray(pseudo.number),
            np.ascontiguousarray(pseudo.mean[0]),
            family.interior(pseudo.pooled),
        )
        if family.name == "poisson":
            tables.poisson_tables(*sums, cells.place, *smoothed, natural, scores)
            bucket = _buckets(scores, sizes)
            tables.poisson_totals(*sums, *smoothed, bucket, baseline)
        else:
            kind, log_partition = tables.KINDS[family.name], np.empty((len(scores), n_classes))
            tables.tables_from_cells(kind, *sums, cells.place, *smoothed, natural, log_partition, scores)
            bucket = _buckets(scores, sizes)
            tables.bucket_totals(log_partition, bucket, baseline)
        return bucket, baseline


def _buckets(scores: Floats, sizes: Integers) -> npt.NDArray[np.int32]:
    """For each feature the position in ``sizes`` of the first size that includes it."""
    require_finite(scores)
    order = FeatureRanking.of(scores).order
    bucket = np.full(len(scores), len(sizes), dtype=np.int32)
    bucket[order[: sizes[-1]]] = np.repeat(np.arange(len(sizes), dtype=np.int32), np.diff(sizes, prepend=0))
    return bucket
