"""Samples of rows by hashes of their content, which do not depend on batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maxdisc.numerics.block_matrix import stacked
from maxdisc.numerics.matrices import Floats, Integers, Matrix
from maxdisc.rows.row_sources import row_hashes, scrambled

Hashes: TypeAlias = npt.NDArray[np.uint64]


def content_hashes(X: Matrix, codes: Integers, rows: Integers | None = None) -> Hashes:
    """By what rows, or some rows, of these classes are sampled, shape (n,): a hash of content and class."""
    of_class = (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return scrambled(row_hashes(X, rows) ^ of_class)


def sampled(hashes: Hashes, weights: Floats, most: int) -> tuple[Integers, Floats]:
    """Return the positions of the ``most`` smallest distinct hashes, and the summed weights of each."""
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    return first[:most], np.bincount(which, weights).astype(np.float64)[:most]


@dataclass(frozen=True, eq=False)
class RowSample:
    """Sample of held-out rows of one fold; samples of two batches add.

    A few thousand rows, drawn in one pass, replace a pass over all rows for every candidate model.
    """

    X: Matrix  # (n, D)
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
        """Return the weights, as :meth:`maxdisc.selection.held_out.HeldOut.levelled` has them."""
        return limit_weights(self.weights, self.seen > self.most)


@dataclass(frozen=True)
class RowTrial:
    """Request for a sample of at most ``most`` held-out rows, the same rows a ``BandTrial`` would return."""

    most: int

    def swept(
        self,
        X: Matrix,
        labels: npt.NDArray[Any],
        weights: Floats,
        sizes: Integers,  # noqa: ARG002  # rows are drawn whatever is tried on them
        rows: Integers,
    ) -> RowSample:
        """Return the sample."""
        rows, codes, weights, hashes, seen = draw_rows(X, labels, weights, rows, self.most)
        return RowSample(X[rows], codes, weights, hashes, self.most, seen)


def draw_rows(
    X: Matrix, labels: npt.NDArray[Any], weights: Floats, rows: Integers, most: int, whole: bool = False
) -> tuple[Integers, Integers, Floats, Hashes, int]:
    """Return the sampled rows with codes, weights and hashes, and the number of all rows."""
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


def count_rows(weights: Floats) -> float:
    """Return how many rows there are: a row of weight 2 is two, weights below 1 are as many as if equal."""
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return 0.0
    scaled = weights / largest
    return max(float(weights.sum()), float(scaled.sum()) ** 2 / float(scaled @ scaled))


def limit_weights(weights: Floats, is_sample: bool) -> Floats:
    """Limit the weight of a sampled row to a hundredth of all."""
    return np.minimum(weights, weights.sum() / 100) if is_sample else weights
