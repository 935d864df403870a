"""Evidence out of fold: what models say, band by band, of rows they were not made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.decision import LinearDecision
from maxdisc.matrices import Floats, Integers, Matrix, is_sparse
from maxdisc.rows import row_hashes, scrambled

#: So many numbers (rows times classes) settle the few dozen parameters that are fitted to evidence.
ENOUGH_SCORES = 2**16
#: ... and no more rows than this, be the classes ever so few.
ENOUGH_ROWS = 20_000
#: More bands have not been better.
MOST_BANDS = 6


def band_edges(n_features: int) -> Integers:
    """Where bands of features end: at powers of their number, from its cube root to all of them.

    Parameters
    ----------
    n_features : int
        D, how many features are ranked.

    Returns
    -------
    ndarray of shape (G,)
        At most six numbers, increasing; the last is D.

    Examples
    --------
    >>> from maxdisc.held_out import band_edges
    >>> band_edges(10_000)
    array([   22,    74,   251,   858,  2929, 10000])
    >>> band_edges(2)
    array([1, 2])
    """
    powers = np.linspace(1 / 3, 1.0, MOST_BANDS)
    return np.unique(np.round(float(n_features) ** powers).astype(np.intp))


def enough_rows(n_classes: int, n_folds: int = 1) -> int:
    """How many held-out rows of a fold are looked at, if there are more."""
    return -(-min(max(ENOUGH_SCORES // n_classes, 2500), ENOUGH_ROWS) // max(n_folds, 1))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The evidence of some held-out rows of one fold; that of two batches adds, which puts them together.

    Parameters
    ----------
    evidence : ndarray of shape (n, C, G)
        Of each band of features for each class.
    codes : ndarray of shape (n,)
        The classes of the rows.
    weights : ndarray of shape (n,)
        Their weights.
    rows : ndarray of shape (n,)
        Their numbers in the batch that they came with.
    hashes : ndarray of shape (n,)
        Of their content, by which they were sampled; empty where all were taken.
    most : int
        More rows than this are sampled: those with the smallest hashes, so that neither the order of rows nor
        the batches matter (but for rows that repeat in several batches).
    """

    evidence: Floats
    codes: Integers
    weights: Floats
    rows: Integers
    hashes: npt.NDArray[np.uint64]
    most: int

    def __len__(self) -> int:
        return len(self.codes)

    def __add__(self, other: HeldOut) -> HeldOut:
        return HeldOut.joined([self, other]).sampled()

    def sampled(self) -> HeldOut:
        """Without the rows that are too many."""
        if not len(self.hashes):
            return self
        kept = smallest(self.hashes, self.most)
        return self if len(kept) == len(self) else self.select(kept)

    def select(self, kept: Integers | npt.NDArray[np.bool_]) -> HeldOut:
        """Some of the rows."""
        hashes = self.hashes[kept] if len(self.hashes) else self.hashes
        parts = (self.evidence[kept], self.codes[kept], self.weights[kept], self.rows[kept])
        return HeldOut(*parts, hashes, self.most)

    @classmethod
    def joined(cls, parts: Sequence[HeldOut]) -> HeldOut:
        """The rows of several, one after the other; their hashes only if all have them."""
        hashed = all(len(p.hashes) == len(p) for p in parts)
        return cls(
            np.concatenate([p.evidence for p in parts]),
            np.concatenate([p.codes for p in parts]),
            np.concatenate([p.weights for p in parts]),
            np.concatenate([p.rows for p in parts]),
            np.concatenate([p.hashes if hashed else p.hashes[:0] for p in parts]),
            parts[0].most,
        )


def sampling_hashes(X: Matrix, codes: Integers) -> npt.NDArray[np.uint64]:
    """By what rows are sampled, shape (n,): a hash of content, class, and how often both came before.

    Rows that repeat are thus sampled like others, not all of them or none, and it does not matter which of
    them came first.
    """
    hashes = row_hashes(X) ^ (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    order = np.argsort(hashes, kind="stable")
    first = np.r_[True, hashes[order][1:] != hashes[order][:-1]][: len(order)]
    starts = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0)) if len(order) else order
    times = np.empty(len(order), dtype=np.uint64)
    times[order] = (np.arange(len(order)) - starts).astype(np.uint64)
    return scrambled(hashes + (times + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03))


def smallest(hashes: npt.NDArray[np.uint64], most: int) -> Integers:
    """Where the smallest hashes are, ``most`` of them, and all that equal the last."""
    if len(hashes) <= most:
        return np.arange(len(hashes))
    return np.flatnonzero(hashes <= np.partition(hashes, most - 1)[most - 1])


@dataclass(frozen=True, eq=False)
class BandTrial:
    """A decision whose evidence is wanted, rather than what it gets right.

    Parameters
    ----------
    decision : LinearDecision
        Of the training rows of a fold.
    most : int
        How many rows to sample, if there are more.
    """

    decision: LinearDecision
    most: int

    def swept(
        self, X: Matrix, labels: npt.NDArray[Any], weights: Floats, sizes: Integers, rows: Integers
    ) -> HeldOut:
        """The evidence of bands that end at ``sizes``."""
        rows, codes, weights, hashes = _sampled(X, labels, weights, rows, self.most)
        evidence = self.decision.by_bands(X[rows], sizes)
        return HeldOut(evidence, codes, weights, rows, hashes, self.most)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some held-out rows of one fold, as they are; samples of two batches add.

    A few thousand rows, drawn in one pass, take the place of a pass over all rows for every model that is
    tried on them.

    Parameters
    ----------
    X : matrix of shape (n, D)
        The rows.
    codes, weights, hashes, most
        As of :class:`HeldOut`.
    """

    X: Matrix
    codes: Integers
    weights: Floats
    hashes: npt.NDArray[np.uint64]
    most: int

    def __add__(self, other: RowSample) -> RowSample:
        kept = smallest(np.concatenate([self.hashes, other.hashes]), self.most)
        ours, theirs = kept[kept < len(self.codes)], kept[kept >= len(self.codes)] - len(self.codes)
        parts = [(self, ours), (other, theirs)]
        put_together = sp.vstack if is_sparse(self.X) else np.concatenate
        X = put_together([part.X[some] for part, some in parts])
        return RowSample(
            sp.csr_array(X) if is_sparse(X) else X,
            np.concatenate([part.codes[some] for part, some in parts]),
            np.concatenate([part.weights[some] for part, some in parts]),
            np.concatenate([part.hashes[some] for part, some in parts]),
            self.most,
        )


@dataclass(frozen=True)
class RowTrial:
    """Asks for a sample of the held-out rows themselves: those that :class:`BandTrial` would look at.

    Parameters
    ----------
    most : int
        How many rows to sample, if there are more.
    """

    most: int

    def swept(
        self,
        X: Matrix,
        labels: npt.NDArray[Any],
        weights: Floats,
        sizes: Integers,  # noqa: ARG002  # rows are drawn whatever is tried on them
        rows: Integers,
    ) -> RowSample:
        """The sample."""
        rows, codes, weights, hashes = _sampled(X, labels, weights, rows, self.most)
        return RowSample(X[rows], codes, weights, hashes, self.most)


def _sampled(
    X: Matrix, labels: npt.NDArray[Any], weights: Floats, rows: Integers, most: int
) -> tuple[Integers, Integers, Floats, npt.NDArray[np.uint64]]:
    """Which of some rows are in the sample, their codes, weights and hashes."""
    codes, weights = labels[rows], weights[rows]
    if codes.ndim == 2:
        # A row that belongs to several classes counts for the one it belongs to most.
        weights, codes = weights * codes.max(axis=1), codes.argmax(axis=1)
    hashes = sampling_hashes(X[rows], codes)
    kept = smallest(hashes, most)
    return rows[kept], codes[kept].astype(np.intp), weights[kept], hashes[kept]
