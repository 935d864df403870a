"""Fold models of sparse rows in memory, by compiled code: the same paths as the general way, sooner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from maxdisc.decision import MANY_CELLS, Sweep, worth_compiling
from maxdisc.divergences import Divergence, FeatureRanking, js_gm
from maxdisc.families import Family
from maxdisc.matrices import Floats, Integers, Matrix, blocks, is_sparse
from maxdisc.moments import ClassMoments
from maxdisc.rows import LEFT_OUT, ArrayRows, Folds
from maxdisc.selection import SelectionPath
from maxdisc.smoothing import Smoothing
from maxdisc.threads import in_threads

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

    @property
    def parts(self) -> list[list[ClassMoments]]:
        """What has been counted."""
        return [[self._whole]]

    def total(self) -> ClassMoments:
        """The moments of all the rows."""
        return self._whole

    @cached_property
    def _whole(self) -> ClassMoments:
        from maxdisc.kernels.tables import class_sums

        columns, codes, weights = self._columns, self.rows.labels, self._weights
        sums = np.zeros((1, self.rows.n_classes, self.n_features))
        nonzero = _usage(columns, weights)[1]
        in_threads(
            lambda r: class_sums(
                columns.indptr, columns.indices, columns.data, codes, weights, r.start, r.stop, sums[0]
            ),
            list(blocks(self.n_features, self.rows.n_classes, MANY_CELLS)),
        )
        weight = np.bincount(codes, weights, self.rows.n_classes).astype(np.float64)
        return ClassMoments(weight, sums, nonzero=nonzero, squares=float(weights @ weights))

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
                held = np.flatnonzero(fold == f)
                training = np.where((fold == f) | (fold == LEFT_OUT), 0.0, self._weights)
                if held.size and training.any():
                    trials.append(_Trial(self, held, training))
        if not trials:
            raise ValueError("no fold has both rows to train on and rows held out: choose another cv.")
        return trials

    def first_folds(self, n_rows: float) -> int:
        """How many folds it takes to hold out so many rows (of equal weight); or all."""
        held = [trial.n_rows for trial in self._trials]
        return min(int(np.searchsorted(np.cumsum(held), n_rows)) + 1, len(held))

    def paths(
        self, sizes: Integers, smoothings: Sequence[Smoothing], n_folds: int | None = None
    ) -> list[SelectionPath]:
        """Sweep the held-out rows of every fold, or of the first so many, for each smoothing."""
        trials = self._trials[:n_folds]
        table = 16 * self.rows.n_classes * self.n_features
        jobs = [(trial, smoothing) for smoothing in smoothings for trial in trials]
        sweeps = in_threads(
            lambda job: job[0].sweep(sizes, job[1]), jobs, most=max(1, TABLES_AT_ONCE // table)
        )
        return [
            SelectionPath.of(sizes, sweeps[s * len(trials) : (s + 1) * len(trials)], smoothing)
            for s, smoothing in enumerate(smoothings)
        ]


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
        return float(held.sum() ** 2 / (held @ held))

    @cached_property
    def _pooled(self) -> ClassMoments:
        """The moments of all classes together: all that smoothing looks at."""
        sums, nonzero = _usage(self.models._columns, self.training)
        return ClassMoments(self._class_weights.sum(keepdims=True), sums[None, None], nonzero=nonzero)

    @cached_property
    def _class_weights(self) -> Floats:
        rows = self.models.rows
        return np.bincount(rows.labels, self.training, rows.n_classes).astype(np.float64)

    @property
    def _prior(self) -> Floats:
        given = self.models.prior
        return self._class_weights / self._class_weights.sum() if given is None else given

    def sweep(self, sizes: Integers, smoothing: Smoothing) -> Sweep:
        """What the model of the training rows gets right among the rows held out."""
        from maxdisc.kernels.tables import bucket_totals, sweep_rows

        natural, log_partition, scores = self._tables(smoothing)
        ranking = FeatureRanking.of(scores)
        bucket = np.full(len(scores), len(sizes), dtype=np.int32)
        bucket[ranking.order[: sizes[-1]]] = np.repeat(
            np.arange(len(sizes), dtype=np.int32), np.diff(sizes, prepend=0)
        )
        baseline = np.empty((len(sizes), natural.shape[1]))
        bucket_totals(log_partition, bucket, baseline)
        with np.errstate(divide="ignore"):
            log_prior = np.log(self._prior)
        X, labels, weights = self.models._values, self.models.rows.labels, self.models._weights
        correct, loss = np.zeros(len(sizes)), np.zeros(len(sizes))
        sweep_rows(
            X.indptr,
            X.indices,
            X.data,
            self.held,
            labels,
            weights,
            natural,
            bucket,
            baseline,
            log_prior,
            correct,
            loss,
        )
        held = weights[self.held]
        return Sweep(correct, loss, float(held.sum()), float(held @ held))

    def _tables(self, smoothing: Smoothing) -> tuple[Floats, Floats, Floats]:
        from maxdisc.kernels.tables import KINDS, tables_from_columns

        family, columns, pooled = self.models.family, self.models._columns, self._pooled
        pseudo = smoothing.pseudo_rows(pooled, pooled.sums, smoothing.level(pooled))
        shape = (columns.shape[1], self.models.rows.n_classes)
        natural, log_partition, scores = np.empty(shape), np.empty(shape), np.empty(shape[0])
        tables_from_columns(
            KINDS[family.name],
            columns.indptr,
            columns.indices,
            columns.data,
            self.models.rows.labels,
            self.training,
            self._class_weights,
            self._prior,
            np.ascontiguousarray(pseudo.number),
            np.ascontiguousarray(pseudo.mean[0]),
            family.interior(pseudo.pooled),
            natural,
            log_partition,
            scores,
        )
        return natural, log_partition, scores


def _usage(columns: Matrix, weights: Floats) -> tuple[Floats, Floats]:
    """For each column the weighted sum, and the weight of its cells that are not zero, shape (D,)."""
    from maxdisc.kernels.tables import usage

    sums, nonzero = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    usage(columns.indptr, columns.indices, columns.data, weights, sums, nonzero)
    return sums, nonzero
