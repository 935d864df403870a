"""Evidence out of fold: what models say, band by band, of rows they were not made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.linear import LinearDecision, unknown_decision
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.families.blocks import AnyFamily, AnyMoments, Columns, MixedMoments
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Floats, Integers, Matrix
from maxdisc.rows.sampling import Hashes, draw_rows, limit_weights, sampled

#: So many numbers (rows times classes) settle the few dozen parameters that are fitted to evidence.
ENOUGH_SCORES = 2**16
#: ... and no more rows than this, be the classes ever so few.
ENOUGH_ROWS = 20_000
#: More bands have not been better.
MOST_BANDS = 6
#: Evidence against a class beyond this tells no more: a value of 1e100 must not weigh all bands alone.
FARTHEST = 1e5


def band_edges(n_features: int) -> Integers:
    """Return the ends of at most six bands of features, at powers of D from its cube root to D."""
    powers = np.linspace(1 / 3, 1.0, MOST_BANDS)
    return np.unique(np.round(float(n_features) ** powers).astype(np.intp))


def bounded(evidence: Floats) -> Floats:
    """Evidence (n, C, G) below that of the best class, but not as far as single odd values can take it."""
    with np.errstate(invalid="ignore"):
        below = evidence - evidence.max(axis=1, keepdims=True)
    return np.nan_to_num(np.maximum(below, -FARTHEST), nan=-FARTHEST)


def enough_rows(n_classes: int, n_folds: int = 1) -> int:
    """Return how many held-out rows of a fold are looked at, if there are more."""
    return -(-min(max(ENOUGH_SCORES // n_classes, 2500), ENOUGH_ROWS) // max(n_folds, 1))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Evidence of held-out rows of one fold, shape (n, C, G); that of two batches adds.

    Of too many rows, those with the smallest hashes of content and class are kept, and equal rows are
    merged. So neither the order of rows nor their batches matter.
    """

    evidence: Floats  # (n, C, G)
    codes: Integers  # (n,)
    weights: Floats  # (n,)
    rows: Integers  # (n,)
    hashes: Hashes  # (n,)
    most: int
    seen: int
    bands: npt.NDArray[np.int8] | None = None  # (D,)

    def __len__(self) -> int:
        return len(self.codes)

    def __add__(self, other: HeldOut) -> HeldOut:
        both = HeldOut.joined([self, other])
        if both.seen <= self.most or not len(both.hashes):
            return both
        kept, weights = sampled(both.hashes, both.weights, self.most)
        return replace(both.select(kept), weights=weights)

    def select(self, kept: Integers | npt.NDArray[np.bool_]) -> HeldOut:
        """Return some of the rows."""
        hashes = self.hashes[kept] if len(self.hashes) else self.hashes
        parts = (self.evidence[kept], self.codes[kept], self.weights[kept], self.rows[kept])
        return HeldOut(*parts, hashes, self.most, self.seen, self.bands)

    def levelled(self) -> HeldOut:
        """No row of a sample counts for more than a hundredth: what repeats often may be in it by luck."""
        is_sample = self.seen > self.most
        return replace(self, weights=limit_weights(self.weights, True)) if is_sample else self

    @classmethod
    def joined(cls, parts: Sequence[HeldOut]) -> HeldOut:
        """Return the rows of several, one after the other; their hashes only if all have them.

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


@dataclass(frozen=True, eq=False)
class BandTrial:
    """Request for the held-out evidence of a decision instead of its accuracy."""

    decision: LinearDecision | MixedDecision
    most: int
    whole: bool = False

    def swept(
        self, X: Matrix, labels: npt.NDArray[Any], weights: Floats, sizes: Integers, rows: Integers
    ) -> HeldOut:
        """Return the evidence of bands that end at ``sizes``."""
        rows, codes, weights, hashes, seen = draw_rows(X, labels, weights, rows, self.most, self.whole)
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


@dataclass(frozen=True, eq=False)
class DensityTrial:
    """Request for the log densities of held-out rows in all classes and in two unknown ones."""

    density: JointDecision
    most: int

    def swept(
        self,
        X: Matrix,
        labels: npt.NDArray[Any],
        weights: Floats,
        sizes: Integers,  # noqa: ARG002  # a density has a size of its own
        rows: Integers,
    ) -> HeldOut:
        """Return them as evidence of shape (n, C + 2, 1)."""
        rows, codes, weights, hashes, seen = draw_rows(X, labels, weights, rows, self.most)
        parts = [density.log_densities(X[rows]) for density in (self.density, self.density.unknown())]
        return HeldOut(np.hstack(parts)[:, :, None], codes, weights, rows, hashes, self.most, seen)


def unknown_by_bands(
    family: AnyFamily,
    moments: AnyMoments,
    smoothing: Smoothing,
    bands: npt.NDArray[np.int8],
    n_bands: int,
    X: Matrix,
) -> Floats:
    """Return the evidence of each band of features for the two unknown classes, shape (n, 2, G)."""
    if isinstance(family, Columns):
        assert isinstance(moments, MixedMoments)  # both are of one table
        parts = zip(family.blocks, moments.parts, X.parts, strict=True)
        given = [(block.family, part, smoothing, bands[block.columns], cells) for block, part, cells in parts]
        return np.sum([unknown_by_bands(*g[:4], n_bands, g[4]) for g in given], axis=0)
    assert isinstance(moments, ClassMoments)
    order = np.argsort(bands, kind="stable")
    ends = np.searchsorted(bands[order], np.arange(n_bands), side="right")
    return unknown_decision(family, moments, smoothing, order[: ends[-1]]).by_bands(X, ends)
