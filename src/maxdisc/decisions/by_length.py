"""A decision for rows of any length: how much the evidence counts depends on how much of it there is.

Rows are scaled to one Euclidean length over the selected features, so what other features a row has does not
matter. Evidence of a short row is scaled up by that, but is no more certain. Generative evidence, correction
and class biases therefore each have a weight that depends on the number of selected features in the row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from maxdisc.decisions.linear import LinearDecision
from maxdisc.families import Family
from maxdisc.numerics.matrices import Floats, Integers, Matrix, blocks, canonical, is_sparse, row_totals

#: Rows are of one length if their lengths differ by no more than this share.
EQUAL = 1e-6


def common_length(X: Matrix) -> float | None:
    """Return the Euclidean length that all sparse rows but empty ones have; None if they differ."""
    if not is_sparse(X) or not X.nnz:
        return None
    squares = row_totals(X, X.data.astype(np.float64) ** 2)
    lengths = np.sqrt(squares[squares > 0])
    if not len(lengths) or not lengths.max() <= (1 + EQUAL) * lengths.min():
        return None
    return float(lengths.mean())


def select_features(X: Matrix, columns: Integers, length: float | None = None) -> Matrix:
    """Return the non-zero cells of some columns as CSR, in the order given, each row scaled to ``length``.

    Missing cells count as absent.
    """
    rows = canonical(X) if is_sparse(X) else sp.csr_array(np.nan_to_num(X, nan=0.0))
    place = np.full(X.shape[1], -1, dtype=np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    return _placed(rows, place, len(columns), length)


def _placed(rows: Matrix, place: Integers, n_columns: int, length: float | None) -> Matrix:
    """Return the cells that have a place, each row scaled to ``length``."""
    to = place[rows.indices]
    kept = (to >= 0) & (rows.data != 0)
    ends = np.concatenate([[0], np.cumsum(kept, dtype=rows.indptr.dtype)])[rows.indptr]
    out = sp.csr_array((rows.data[kept].astype(np.float64), to[kept], ends), shape=(rows.shape[0], n_columns))
    return out if length is None else scale_rows(out, length)


def scale_selected(X: Matrix, columns: Integers, length: float) -> Matrix:
    """Return the rows without other features than these, scaled to ``length``, shape (N, D)."""
    rows = select_features(X, np.sort(columns), length)
    return sp.csr_array((rows.data, np.sort(columns)[rows.indices], rows.indptr), shape=X.shape)


def scale_rows(X: Matrix, length: float) -> Matrix:
    """Scale sparse rows to one Euclidean length, in place; empty rows stay empty."""
    found = np.sqrt(row_totals(X, X.data**2))
    factor = np.divide(length, found, out=np.zeros(len(found)), where=found > 0)
    X.data *= np.repeat(factor, np.diff(X.indptr))
    return X


@dataclass(frozen=True, eq=False)
class LengthWeights:
    """Weights of evidence and correction, and biases of classes, for rows of some numbers of features.

    Between these numbers, logs of one plus the number are interpolated. A row without a known feature has
    the prior: the first number is 0, where all weights and biases are 0.
    """

    counts: Floats  # (T,) rising from 0
    weights: Floats  # (T, 2)
    bias: Floats  # (T, C)
    #: The Euclidean length that rows are scaled to.
    length: float

    def hats(self, n_features: Integers) -> Floats:
        """Return how much each of the numbers counts for rows of ``n_features``, shape (N, T)."""
        return hats(n_features, self.counts)

    def reindexed(self, positions: Integers, n_classes: int) -> LengthWeights:
        """For more classes, of which those here have the positions given; new ones have no bias."""
        bias = np.zeros((len(self.counts), n_classes))
        bias[:, positions] = self.bias
        return replace(self, bias=bias)


def hats(n_features: Integers, counts: Floats) -> Floats:
    """Return the weights of linear interpolation in ``log(1 + n)`` between some counts, shape (N, T)."""
    knots = np.log1p(counts)
    at = np.clip(np.log1p(n_features), knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)
    share = (at - knots[left]) / (knots[left + 1] - knots[left])
    out, rows = np.zeros((len(at), len(knots))), np.arange(len(at))
    out[rows, left] = 1.0 - share
    out[rows, left + 1] = share
    return out


@dataclass(frozen=True, eq=False)
class LengthDecision:
    """Log prior and bias plus evidence and correction, each with the weight of the row's length.

    For rows of one length and number of features, it is linear: see :meth:`for_row`.
    """

    family: Family
    columns: Integers  # (K,)
    weights: Floats  # (2, C, K): of the generative evidence, and of the correction
    log_prior: Floats  # (C,)
    lengths: LengthWeights

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return int(self.weights.shape[1])

    @property
    def baseline(self) -> Floats:
        """What absent features say: nothing, shape (C, K)."""
        return np.zeros(self.weights.shape[1:])

    @cached_property
    def _table(self) -> Floats:
        """Both weights of all classes of a feature side by side, shape (K, 2C)."""
        return np.ascontiguousarray(self.weights.reshape(2 * self.n_classes, -1).T)

    def between(self, pair: Integers) -> LengthDecision:
        """Return the decision among some of the classes."""
        lengths = replace(self.lengths, bias=self.lengths.bias[:, pair])
        return replace(self, weights=self.weights[:, pair], log_prior=self.log_prior[pair], lengths=lengths)

    def planes(self, X: Matrix) -> tuple[Matrix, Matrix]:
        """Return the rows (N, K) that the two weights multiply."""
        rows = select_features(X, self.columns, self.lengths.length)
        share = self.lengths.hats(np.diff(rows.indptr)) @ self.lengths.weights
        stored = np.diff(rows.indptr)
        return tuple(
            sp.csr_array((rows.data * np.repeat(s, stored), rows.indices, rows.indptr), shape=rows.shape)
            for s in share.T
        )  # type: ignore[return-value]  # two weights, two planes

    def length_bias(self, X: Matrix) -> Floats:
        """Return the biases of the classes for each row, shape (N, C)."""
        return self._bias(select_features(X, self.columns))

    def _bias(self, rows: Matrix) -> Floats:
        return np.asarray(self.lengths.hats(np.diff(rows.indptr)) @ self.lengths.bias)

    def scores(self, X: Matrix) -> Floats:
        """Return log prior, bias and weighed evidence, shape (N, C)."""
        rows = select_features(X, self.columns, self.lengths.length)
        n_features = np.diff(rows.indptr)
        hat = self.lengths.hats(n_features)
        share = hat @ self.lengths.weights
        out = self.log_prior + hat @ self.lengths.bias
        for some in blocks(rows.shape[0], 2 * self.n_classes):
            both = np.asarray(rows[some] @ self._table).reshape(-1, 2, self.n_classes)
            out[some] += (both * share[some, :, None]).sum(axis=1)
        return np.asarray(out)

    def contributions(self, X: Matrix) -> Floats:
        """Return what each selected feature adds to each class's score, shape (N, C, K)."""
        return np.asarray(
            sum(
                plane.toarray()[:, None] * weights[None]
                for plane, weights in zip(self.planes(X), self.weights, strict=True)
            )
        )

    def for_row(self, row: Matrix) -> LinearDecision:
        """Return the linear decision for rows like this one, which must be given as it came."""
        rows = select_features(row, self.columns)
        size = float(np.sqrt((rows.data**2).sum()))
        share = (self.lengths.hats(np.diff(rows.indptr)) @ self.lengths.weights)[0]
        share = share * (self.lengths.length / size if size > 0 else 0.0)
        weights = (share[:, None, None] * self.weights).sum(axis=0, keepdims=True)
        return LinearDecision(
            self.family,
            self.columns,
            np.zeros(len(self.columns)),
            weights,
            self.baseline,
            self.log_prior + self._bias(rows)[0],
        )
