"""Ranking of features with correction for redundancy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.moments.class_moments import ratio
from maxdisc.moments.products import ClassProducts
from maxdisc.numerics.matrices import Booleans, Floats, Integers

# Candidates for the re-ranking: this many times the number to select, and at most this many.
TIMES, MOST = 5, 2000
# This many are selected one after another; the other candidates follow by their scores.
MOST_CHOSEN = 1000
# Limit on the bytes of the products of all folds together.
MOST_BYTES = 2**28
# Scatter below this share of the scatter about the origin is rounding, and so are deviations below this share
# of the origin.
FLAT = 1e-12
# Limit on the variance of a feature whose classes differ in more than means, relative to the median.
MOST_VARIED = 4.0


@dataclass(frozen=True, eq=False)
class Overlap:
    """Covariances of P features over all rows, and their scaled class means (P, C)."""

    covariance: Floats  # (P, P)
    apart: Floats  # (P, C)

    @classmethod
    def of(cls, products: ClassProducts) -> Overlap:
        """Build from the features whose products these are; one that does not vary shares nothing."""
        total = float(products.weight.sum())
        # A class in which no cell of a feature was seen has the mean of the others.
        seen = np.where(np.isnan(products.origin), 0.0, products.weight[:, None])
        means = products.means()
        means = np.where(seen > 0, means - ratio((seen * means).sum(axis=0), seen.sum(axis=0)), 0.0)
        apart = (np.sqrt(products.weight / (total or 1.0))[:, None] * means).T
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = products.within()[0] / (total or 1.0) + apart @ apart.T
            rounding = FLAT * np.diag(products.products[0])
            rounding = rounding + products.weight @ (FLAT * np.nan_to_num(products.origin)) ** 2
        own = np.diag(covariance)
        varies = (own * total > rounding) & np.isfinite(own)
        return cls(np.where(varies & varies[:, None], covariance, 0.0), np.where(varies[:, None], apart, 0.0))

    @classmethod
    def none(cls) -> Overlap:
        """Build from no features."""
        return cls(np.zeros((0, 0)), np.zeros((0, 0)))

    def select(self, places: Integers) -> Overlap:
        """Of some of the features, in the order given."""
        return Overlap(self.covariance[np.ix_(places, places)], self.apart[places])


@dataclass(frozen=True)
class Redundancy:
    """Ranking in which a feature counts for what it adds to those selected before.

    Score and class means fix a unit for every feature, as if the classes were Gaussian with one variance.
    In these units a feature is a point ``r`` (a coordinate per class) whose squared length is the score,
    with covariance G over the rows. The feature with the largest ``abs(r)^2 / d`` is selected, d being its
    entry of ``I + s G``, and regressed out of all others. ``strength`` s is relative to the median
    variance. The part of a divergence that the means do not explain (a difference in spread only) is kept
    whole.
    """

    strength: float
    pool: int = MOST

    @classmethod
    def of(cls, strength: float, size: int | None) -> Redundancy | None:
        """With a pool for that many features, or for any number; None for no strength at all."""
        if strength == 0:
            return None
        return cls(float(strength), MOST if size is None else min(TIMES * size, MOST))

    def candidates(self, orders: Sequence[Integers], n_parts: int = 1) -> Integers:
        """Return the pooled columns (P,) of several rankings, increasing; many folds shrink the pool."""
        most = max(2, int(np.sqrt(MOST_BYTES / (8 * n_parts))))
        firsts = [order[: self.pool] for order in orders]
        # The first position of a column in any of the rankings: the candidates are the first ones.
        columns = np.concatenate(firsts)
        place = np.concatenate([np.arange(len(first)) for first in firsts])
        columns, earliest = columns[np.argsort(place, kind="stable")], np.sort(place)
        unique, at = np.unique(columns, return_index=True)
        if len(unique) > most:
            cut = np.sort(earliest[at])[most]
            unique = unique[earliest[at] < cut]
        return unique

    def reranked(self, ranking: FeatureRanking, columns: Integers, overlap: Overlap) -> FeatureRanking:
        """Return the same scores, ordered by what each feature adds."""
        # The longest initial part of the ranking, up to a limit, that consists of candidates.
        first = ranking.order[: self.pool]
        first = first[np.logical_and.accumulate(np.isin(first, columns))]
        known = overlap.select(np.searchsorted(columns, first))
        chosen = _in_turn(ranking.scores[first], known, self.strength)
        left = np.ones(len(first), dtype=np.bool_)
        left[chosen] = False
        return replace(ranking, order=np.r_[first[chosen], first[left], ranking.order[len(first) :]])


def _in_turn(scores: Floats, overlap: Overlap, strength: float) -> Integers:
    """Positions in the order in which they are chosen; ties go to the earlier one."""
    points, beside, shared = _in_their_units(scores, overlap, strength)
    left: Booleans = scores > 0
    n_chosen = min(int(left.sum()), MOST_CHOSEN)
    order = np.empty(n_chosen, dtype=np.intp)
    # Row k of `taken`: by how much the k-th chosen feature, in units of its own, explains every other.
    taken, own = np.zeros((n_chosen, len(scores))), 1.0 + np.diag(shared)
    for step in range(n_chosen):
        worth = (np.einsum("pc,pc->p", points, points) + beside) / own
        best = int(np.argmax(np.where(left, worth, -1.0)))
        order[step], left[best] = best, False
        row = shared[best] - taken[:step, best] @ taken[:step]
        row[best] = own[best]
        row /= np.sqrt(own[best])
        taken[step] = row
        points = points - np.outer(row, points[best] / np.sqrt(own[best]))
        # At least 1, but for rounding: the ridge is explained by nothing.
        own = np.maximum(own - row**2, 1.0)
    return order


def _in_their_units(scores: Floats, overlap: Overlap, strength: float) -> tuple[Floats, Floats, Floats]:
    """Return points (P, C), the remaining parts of scores (P,), and scaled covariances (P, P)."""
    between = np.einsum("pc,pc->p", overlap.apart, overlap.apart)
    own = np.diag(overlap.covariance)
    # The variance that a score implies, and how much larger the actual one is.
    implied = between / np.where(scores > 0, scores, 1.0)
    varied = own > 0
    usual = np.median(ratio(own, implied)[varied & (implied > 0)]) if (varied & (implied > 0)).any() else 1.0
    unit = np.sqrt(np.maximum(implied, own / (MOST_VARIED * usual)))
    scale = ratio(np.ones(len(unit)), unit)
    points = overlap.apart * scale[:, None]
    beside = np.maximum(scores - np.einsum("pc,pc->p", points, points), 0.0)
    return points, beside, overlap.covariance * (strength / usual) * scale * scale[:, None]
