"""Evidence out of fold: what models say, band by band, of rows they were not made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maxdisc.decision import LinearDecision
from maxdisc.matrices import Floats, Integers, Matrix
from maxdisc.rows import row_hashes, scrambled

Hashes: TypeAlias = npt.NDArray[np.uint64]

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

    Where there are too many rows, those with the smallest hashes of content and class are kept. Rows that
    are the same then count as one, with the sum of their weights: none of them can have been dropped
    elsewhere, so neither the order of rows nor the batches they came in matter.

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
        Of content and class, by which they were sampled; empty where all were taken.
    most : int
        More rows than this are sampled.
    seen : int
        How many rows there were.
    """

    evidence: Floats
    codes: Integers
    weights: Floats
    rows: Integers
    hashes: Hashes
    most: int
    seen: int

    def __len__(self) -> int:
        return len(self.codes)

    def __add__(self, other: HeldOut) -> HeldOut:
        both = HeldOut.joined([self, other])
        if both.seen <= self.most or not len(both.hashes):
            return both
        kept, weights = sampled(both.hashes, both.weights, self.most)
        return replace(both.select(kept), weights=weights)

    def select(self, kept: Integers | npt.NDArray[np.bool_]) -> HeldOut:
        """Some of the rows."""
        hashes = self.hashes[kept] if len(self.hashes) else self.hashes
        parts = (self.evidence[kept], self.codes[kept], self.weights[kept], self.rows[kept])
        return HeldOut(*parts, hashes, self.most, self.seen)

    def levelled(self) -> HeldOut:
        """No row of a sample counts for more than a hundredth: what repeats often may be in it by luck."""
        if self.seen <= self.most or not len(self):
            return self
        return replace(self, weights=np.minimum(self.weights, self.weights.sum() / 100))

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
            sum(p.seen for p in parts),
        )


def content_hashes(X: Matrix, codes: Integers) -> Hashes:
    """By what rows are sampled, shape (n,): a hash of content and class."""
    return scrambled(row_hashes(X) ^ (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def sampled(hashes: Hashes, weights: Floats, most: int) -> tuple[Integers, Floats]:
    """Where the smallest hashes are, each once, ``most`` of them, and the sums of the weights that have them.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.held_out import sampled
    >>> sampled(np.array([7, 3, 9, 3], dtype=np.uint64), np.ones(4), 2)
    (array([1, 0]), array([2., 1.]))
    """
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    return first[:most], np.bincount(which, weights).astype(np.float64)[:most]


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
        codes, weights = labels[rows], weights[rows]
        if codes.ndim == 2:
            # A row that belongs to several classes counts for the one it belongs to most.
            weights, codes = weights * codes.max(axis=1), codes.argmax(axis=1)
        hashes, seen = content_hashes(X[rows], codes), len(rows)
        if seen > self.most:
            kept, weights = sampled(hashes, weights, self.most)
            rows, codes, hashes = rows[kept], codes[kept], hashes[kept]
        evidence = self.decision.by_bands(X[rows], sizes)
        return HeldOut(evidence, codes.astype(np.intp), weights, rows, hashes, self.most, seen)
