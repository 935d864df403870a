"""The Bayes decision: linear in the statistics of the kept features."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from maxdisc.densities import class_prior, density_blocks, translated
from maxdisc.families import Family
from maxdisc.matrices import BLOCK_CELLS, Booleans, Floats, Integers, Matrix, blocks, is_sparse, with_data
from maxdisc.moments import ClassMoments
from maxdisc.smoothing import Smoothing


@dataclass(frozen=True, eq=False)
class LinearDecision:
    """Log prior plus, for each kept feature, ``weights . statistics(x - origin) - baseline``.

    Parameters
    ----------
    family : Family
        Whose statistics are taken.
    columns : ndarray of shape (K,)
        The kept features, best first.
    origin : ndarray of shape (K,)
        What is subtracted from x before the statistics.
    weights : ndarray of shape (L, C, K)
        Natural parameters.
    baseline : ndarray of shape (C, K)
        Log normalisers: what a feature takes from each class whenever it is observed.
    log_prior : ndarray of shape (C,)
        Log class probabilities; ``-inf`` for a class that cannot be.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.decision import LinearDecision
    >>> from maxdisc.families import Poisson
    >>> from maxdisc.counting import class_moments
    >>> from maxdisc.smoothing import Smoothing
    >>> X = np.array([[4.0, 1.0], [1.0, 1.0]])
    >>> moments = class_moments(Poisson().statistics, X, np.array([0, 1]), 2)
    >>> decision = LinearDecision.of(Poisson(), moments, Smoothing(0.0), np.array([0]))
    >>> decision.scores(X).argmax(axis=1)
    array([0, 1])
    """

    family: Family
    columns: Integers
    origin: Floats
    weights: Floats
    baseline: Floats
    log_prior: Floats

    @classmethod
    def of(
        cls,
        family: Family,
        moments: ClassMoments,
        smoothing: Smoothing,
        columns: Integers,
        prior: Floats | None = None,
    ) -> LinearDecision:
        """The decision among densities estimated from moments, for the columns given."""
        shape = (moments.n_classes, len(columns))
        weights, baseline = np.empty((family.n_statistics, *shape)), np.empty(shape)
        origin = np.empty(len(columns))
        for block, densities in density_blocks(family, moments, smoothing, prior, columns):
            # What says nothing contributes nothing, to any class.
            weights[:, :, block] = np.where(densities.informative, densities.natural, 0.0)
            baseline[:, block] = np.where(densities.informative, densities.log_partition, 0.0)
            origin[block] = densities.origin
        with np.errstate(divide="ignore"):
            log_prior = np.log(class_prior(moments, prior))
        return cls(family, np.asarray(columns), origin, weights, baseline, log_prior)

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return int(self.weights.shape[1])

    def first(self, size: int) -> LinearDecision:
        """The decision that keeps only the ``size`` best of these features."""
        return replace(
            self,
            columns=self.columns[:size],
            origin=self.origin[:size],
            weights=self.weights[:, :, :size],
            baseline=self.baseline[:, :size],
        )

    def about_zero(self) -> LinearDecision:
        """The same decision with every origin at 0, which is where sparse rows can be scored."""
        if not self.origin.any():
            return self
        constant = sum(
            self.weights[order - 1] * (-self.origin) ** order for order in range(1, len(self.weights) + 1)
        )
        return replace(
            self,
            origin=np.zeros_like(self.origin),
            weights=translated(self.weights, -self.origin),
            baseline=self.baseline - constant,
        )

    def scores(self, X: Matrix) -> Floats:
        """Log prior plus evidence.

        Parameters
        ----------
        X : matrix of shape (N, D)
            Dense, where NaN is a missing cell and no evidence, or sparse.

        Returns
        -------
        ndarray of shape (N, C)
            Scores whose softmax is the posterior.
        """
        out = np.empty((X.shape[0], self.n_classes))
        decision = self.about_zero() if is_sparse(X) else self
        for rows in row_blocks(X, len(self.columns)):
            out[rows] = decision.log_prior + decision._evidence(decision._kept(X[rows]))
        return out

    def log_base(self, X: Matrix) -> Floats:
        """Log base measure of the kept features of each row, shape (N,)."""
        out = np.empty(X.shape[0])
        for rows in row_blocks(X, len(self.columns)):
            kept = X[rows][:, self.columns]
            if is_sparse(kept):
                kept = sp.csr_array(kept)
                kept = with_data(kept, self.family.log_base(kept.data))
                out[rows] = kept.sum(axis=1)
            else:
                values = np.asarray(kept, dtype=np.float64)
                missing = np.isnan(values)
                base = self.family.log_base(np.where(missing, 0.5, values))
                out[rows] = np.where(missing, 0.0, base).sum(axis=1)
        return out

    def contributions(self, X: Matrix) -> Floats:
        """What each kept feature adds to each class's score, shape (N, C, K)."""
        values = X[:, self.columns]
        values = np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
        missing = np.isnan(values)
        planes = _planes(self.family, values - self.origin, missing)
        linear = sum(w[None] * p[:, None] for w, p in zip(self.weights, planes, strict=True))
        return np.where(missing[:, None], 0.0, linear - self.baseline)

    def _kept(self, X: Matrix) -> Matrix:
        if is_sparse(X):
            return sp.csc_array(X)[:, self.columns]
        return np.asarray(X)[:, self.columns].astype(np.float64, copy=False)

    def _evidence(self, kept: Matrix, part: slice = slice(None)) -> Floats:
        """Evidence of some of the kept features (``kept`` holds just those), shape (n, C)."""
        weights, baseline = self.weights[:, :, part], self.baseline[:, part]
        if is_sparse(kept):
            missing, planes = None, self.family.statistics(kept)
        else:
            missing = np.isnan(kept)
            planes = _planes(self.family, kept - self.origin[part], missing)
        out = sum(np.asarray(plane @ w.T) for w, plane in zip(weights, planes, strict=True))
        if missing is not None and missing.any():
            return np.asarray(out - (~missing).astype(np.float64) @ baseline.T)
        return np.asarray(out - baseline.sum(axis=1))


def _planes(family: Family, values: Floats, missing: Booleans) -> tuple[Floats, ...]:
    """Statistics of dense values, 0 where a cell is missing."""
    if not missing.any():
        return family.statistics(values)
    # Any value inside the support will do: its statistics are then set to 0.
    planes = family.statistics(np.where(missing, 0.5, values))
    return tuple(np.where(missing, 0.0, plane) for plane in planes)


@dataclass(frozen=True, eq=False)
class Sweep:
    """What a pass over held-out rows counts for each number of kept features; sweeps add.

    Parameters
    ----------
    correct : ndarray of shape (S,)
        Weight of the rows classified correctly.
    loss : ndarray of shape (S,)
        Weighted sum of minus the log probability of the true class.
    weight : float
        Weight of all the rows.
    """

    correct: Floats
    loss: Floats
    weight: float

    def __add__(self, other: Sweep) -> Sweep:
        return Sweep(self.correct + other.correct, self.loss + other.loss, self.weight + other.weight)

    @classmethod
    def zero(cls, n_sizes: int) -> Sweep:
        """The counts of no rows."""
        return cls(np.zeros(n_sizes), np.zeros(n_sizes), 0.0)


def sweep(decision: LinearDecision, X: Matrix, labels: np.ndarray, weights: Floats, sizes: Integers) -> Sweep:
    """Accuracy and log-loss of the best 1, 2, ... features in one pass: each feature only adds its term.

    Parameters
    ----------
    decision : LinearDecision
        With at least ``sizes[-1]`` columns, best first.
    X : matrix of shape (N, D)
        Held-out rows.
    labels : ndarray of shape (N,) or (N, C)
        Their codes, or responsibilities.
    weights : ndarray of shape (N,)
        Their weights.
    sizes : ndarray of shape (S,)
        Numbers of features, increasing.

    Returns
    -------
    Sweep
        For each size.
    """
    decision = decision.first(int(sizes[-1]))
    decision = decision.about_zero() if is_sparse(X) else decision
    result = Sweep.zero(len(sizes))
    for rows in row_blocks(X, len(decision.columns)):
        kept = decision._kept(X[rows])
        scores = np.tile(decision.log_prior, (kept.shape[0], 1))
        correct, loss = np.empty(len(sizes)), np.empty(len(sizes))
        start = 0
        for s, size in enumerate(sizes):
            part = slice(start, int(size))
            scores = scores + decision._evidence(kept[:, part], part)
            correct[s], loss[s] = _counted(scores, labels[rows], weights[rows])
            start = int(size)
        result = result + Sweep(correct, loss, float(weights[rows].sum()))
    return result


def _counted(scores: Floats, labels: np.ndarray, weights: Floats) -> tuple[float, float]:
    predicted = scores.argmax(axis=1)
    highest = scores.max(axis=1)
    with np.errstate(divide="ignore"):
        log_p = scores - (highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1)))[:, None]
    # A class absent from the training rows has probability 0: as wrong as numbers can say.
    log_p = np.where(np.isneginf(log_p), np.log(np.finfo(np.float64).tiny), log_p)
    if labels.ndim == 1:
        at = np.arange(len(labels)), labels
        return float(weights @ (predicted == labels)), float(-(weights @ log_p[at]))
    chosen = labels[np.arange(len(labels)), predicted]
    return float(weights @ chosen), float(-(weights @ (labels * log_p).sum(axis=1)))


def row_blocks(X: Matrix, n_columns: int) -> list[slice]:
    """Ranges of rows whose dense temporaries stay small; sparse rows take only their stored cells."""
    n_rows = X.shape[0]
    if is_sparse(X):
        return list(blocks(n_rows, 64, 4 * BLOCK_CELLS))
    return list(blocks(n_rows, n_columns))
