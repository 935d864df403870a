"""Evidence out of fold: what models say, band by band, of rows they were not made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maxdisc.columns import AnyFamily, AnyMoments, Columns, MixedMoments
from maxdisc.decision import LinearDecision, unknown_decision
from maxdisc.matrices import Floats, Integers, Matrix
from maxdisc.mixed import MixedDecision
from maxdisc.moments import ClassMoments
from maxdisc.rows import row_hashes, scrambled
from maxdisc.smoothing import Smoothing
from maxdisc.tables import stacked

Hashes: TypeAlias = npt.NDArray[np.uint64]

#: So many numbers (rows times classes) settle the few dozen parameters that are fitted to evidence.
ENOUGH_SCORES = 2**16
#: ... and no more rows than this, be the classes ever so few.
ENOUGH_ROWS = 20_000
#: More bands have not been better.
MOST_BANDS = 6
#: Evidence against a class beyond this tells no more: a value of 1e100 must not weigh all bands alone.
FARTHEST = 1e5


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


def bounded(evidence: Floats) -> Floats:
    """Evidence (n, C, G) below that of the best class, but not as far as single odd values can take it."""
    with np.errstate(invalid="ignore"):
        below = evidence - evidence.max(axis=1, keepdims=True)
    return np.nan_to_num(np.maximum(below, -FARTHEST), nan=-FARTHEST)


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
    bands : ndarray of shape (D,), optional
        The band of each feature; G for one that is in none, or says nothing.
    """

    evidence: Floats
    codes: Integers
    weights: Floats
    rows: Integers
    hashes: Hashes
    most: int
    seen: int
    bands: npt.NDArray[np.int8] | None = None

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
        return HeldOut(*parts, hashes, self.most, self.seen, self.bands)

    def levelled(self) -> HeldOut:
        """No row of a sample counts for more than a hundredth: what repeats often may be in it by luck."""
        is_sample = self.seen > self.most
        return replace(self, weights=_levelled(self.weights, True)) if is_sample else self

    @classmethod
    def joined(cls, parts: Sequence[HeldOut]) -> HeldOut:
        """The rows of several, one after the other; their hashes only if all have them.

        The bands are those of the first: of batches of one fold they are the same.
        """
        hashed = all(len(p.hashes) == len(p) for p in parts)
        return cls(
            np.concatenate([p.evidence for p in parts]),
            np.concatenate([p.codes for p in parts]),
            np.concatenate([p.weights for p in parts]),
            np.concatenate([p.rows for p in parts]),
            np.concatenate([p.hashes if hashed else p.hashes[:0] for p in parts]),
            parts[0].most,
            sum(p.seen for p in parts),
            parts[0].bands,
        )


def content_hashes(X: Matrix, codes: Integers, rows: Integers | None = None) -> Hashes:
    """By what rows, or some rows, of these classes are sampled, shape (n,): a hash of content and class."""
    of_class = (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return scrambled(row_hashes(X, rows) ^ of_class)


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
    decision : LinearDecision or MixedDecision
        Of the training rows of a fold.
    most : int
        How many rows to sample, if there are more.
    whole : bool
        Whether all rows of a fold come at once; their hashes are then only needed to draw a sample.
    """

    decision: LinearDecision | MixedDecision
    most: int
    whole: bool = False

    def swept(
        self, X: Matrix, labels: npt.NDArray[Any], weights: Floats, sizes: Integers, rows: Integers
    ) -> HeldOut:
        """The evidence of bands that end at ``sizes``."""
        rows, codes, weights, hashes, seen = _drawn(X, labels, weights, rows, self.most, self.whole)
        evidence = self.decision.by_bands(X[rows], sizes)
        return HeldOut(
            evidence, codes, weights, rows, hashes, self.most, seen, self._bands(X.shape[1], sizes)
        )

    def _bands(self, n_features: int, edges: Integers) -> npt.NDArray[np.int8]:
        kept = self.decision.first(int(edges[-1]))
        out = np.full(n_features, len(edges), dtype=np.int8)
        places = np.repeat(np.arange(len(edges), dtype=np.int8), np.diff(edges, prepend=0))
        # Of mixed columns some cells may say nothing; those of unknown classes then do neither.
        telling = kept.telling if isinstance(kept, LinearDecision) else True
        out[kept.columns] = np.where(telling, places, len(edges))
        return out


def unknown_by_bands(
    family: AnyFamily,
    moments: AnyMoments,
    smoothing: Smoothing,
    bands: npt.NDArray[np.int8],
    n_bands: int,
    X: Matrix,
) -> Floats:
    """The evidence of each band of features for the two unknown classes, shape (n, 2, G).

    Parameters
    ----------
    family, moments, smoothing
        Of the densities: see :func:`maxdisc.decision.unknown_decision`.
    bands : ndarray of shape (D,)
        The band of each feature, ``n_bands`` for none.
    n_bands : int
        G.
    X : matrix of shape (n, D)
        Rows.
    """
    if isinstance(family, Columns):
        assert isinstance(moments, MixedMoments)  # both are of one table
        parts = zip(family.blocks, moments.parts, X.parts, strict=True)
        given = [(block.family, part, smoothing, bands[block.columns], cells) for block, part, cells in parts]
        return np.sum([unknown_by_bands(*g[:4], n_bands, g[4]) for g in given], axis=0)
    assert isinstance(moments, ClassMoments)
    order = np.argsort(bands, kind="stable")
    ends = np.searchsorted(bands[order], np.arange(n_bands), side="right")
    return unknown_decision(family, moments, smoothing, order[: ends[-1]]).by_bands(X, ends)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some held-out rows of one fold, as they are; samples of two batches add, as those of evidence do.

    A few thousand rows, drawn in one pass, take the place of a pass over all rows for every model that is
    tried on them.

    Parameters
    ----------
    X : matrix or Table of shape (n, D)
        The rows.
    codes, weights, hashes, most, seen
        As of :class:`HeldOut`.
    """

    X: Matrix
    codes: Integers
    weights: Floats
    hashes: Hashes
    most: int
    seen: int

    def __add__(self, other: RowSample) -> RowSample:
        hashes, weights, codes = (
            np.concatenate([getattr(part, name) for part in (self, other)])
            for name in ("hashes", "weights", "codes")
        )
        kept, seen = np.arange(len(hashes)), self.seen + other.seen
        if seen > self.most:
            kept, weights = sampled(hashes, weights, self.most)
        # Of both, only what is kept is copied.
        first = len(self.codes)
        place = np.empty(len(kept), dtype=np.intp)
        place[np.argsort(kept >= first, kind="stable")] = np.arange(len(kept))
        ours, theirs = self.X[kept[kept < first]], other.X[kept[kept >= first] - first]
        return RowSample(stacked([ours, theirs])[place], codes[kept], weights, hashes[kept], self.most, seen)

    def level_weights(self) -> Floats:
        """The weights, as :meth:`HeldOut.levelled` has them."""
        return _levelled(self.weights, self.seen > self.most)


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
        rows, codes, weights, hashes, seen = _drawn(X, labels, weights, rows, self.most)
        return RowSample(X[rows], codes, weights, hashes, self.most, seen)


def _drawn(
    X: Matrix, labels: npt.NDArray[Any], weights: Floats, rows: Integers, most: int, whole: bool = False
) -> tuple[Integers, Integers, Floats, Hashes, int]:
    """Which of some rows are in the sample, their codes, weights and hashes, and how many there were."""
    codes, weights = labels[rows], weights[rows]
    if codes.ndim == 2:
        # A row that belongs to several classes counts for the one it belongs to most.
        weights, codes = weights * codes.max(axis=1), codes.argmax(axis=1)
    seen = len(rows)
    if whole and seen <= most:
        return rows, codes.astype(np.intp), weights, np.zeros(0, dtype=np.uint64), seen
    hashes = content_hashes(X, codes, rows)
    if seen > most:
        kept, weights = sampled(hashes, weights, most)
        rows, codes, hashes = rows[kept], codes[kept], hashes[kept]
    return rows, codes.astype(np.intp), weights, hashes, seen


def _levelled(weights: Floats, is_sample: bool) -> Floats:
    return np.minimum(weights, weights.sum() / 100) if is_sample else weights
