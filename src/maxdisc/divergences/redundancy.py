"""Features that repeat each other: relevance beyond what the chosen ones already say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.moments.class_moments import ratio
from maxdisc.moments.products import ClassProducts
from maxdisc.numerics.matrices import Booleans, Floats, Integers

# Candidates for the re-ranking: a few times the features wanted, and at most so many.
TIMES, MOST = 5, 2000
# So many are chosen one after another; the candidates that are left follow by their scores.
MOST_CHOSEN = 1000
# The products of all folds together take at most so many bytes.
MOST_BYTES = 2**28
# Scatter below this share of the scatter about the origin is rounding, and so are deviations below this share
# of the origin.
FLAT = 1e-12
# A feature that differs in more than its means varies at most so many times as much as is usual.
MOST_VARIED = 4.0


@dataclass(frozen=True, eq=False)
class Overlap:
    """What features share: their covariances over all rows, and how far their class means lie apart.

    Parameters
    ----------
    covariance : ndarray of shape (P, P)
        Over all the rows.
    apart : ndarray of shape (P, C)
        Class means less the mean, times the square root of the share of the class: the sum of squares of a
        row is the variance between classes.
    """

    covariance: Floats
    apart: Floats

    @classmethod
    def of(cls, products: ClassProducts) -> Overlap:
        """Of the features whose products these are; one that does not vary shares nothing."""
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
        """Of no features."""
        return cls(np.zeros((0, 0)), np.zeros((0, 0)))

    def select(self, places: Integers) -> Overlap:
        """Of some of the features, in the order given."""
        return Overlap(self.covariance[np.ix_(places, places)], self.apart[places])


@dataclass(frozen=True)
class Redundancy:
    """A ranking in which a feature counts for what it adds to those chosen before.

    A divergence says how far the classes lie apart in a feature, in units of a spread: for Gaussian classes
    of one variance it is the variance between classes over that variance. Read backwards, score and class
    means tell the unit of every feature. In these units all features are points ``r`` (one coordinate for
    each class) with the score as the square of their length, and have covariances G over the rows. One after
    another the feature with the largest ``|r|^2 / d`` is chosen, d being its own entry of ``I + s G``; what
    it says is then taken out of all others, by least squares: they keep what it does not say, of r and of
    G. The strength s is in units of the median variance, so it has no unit: with 0 nothing is taken out, and
    at infinity a feature that is a sum of others is worth nothing.

    What a divergence sees beside the means (say, that only the spread of a feature differs) is kept whole.

    Parameters
    ----------
    strength : float
        How much of what is shared counts; 0 leaves the ranking as it is. 1 is a good value.
    pool : int
        How many of the best features by score take part; all others follow in the order of their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.divergences.class_divergences import FeatureRanking
    >>> from maxdisc.divergences.redundancy import Overlap, Redundancy
    >>> from maxdisc.rows import ArrayRows
    >>> rng = np.random.default_rng(0)
    >>> codes = np.arange(200) % 2
    >>> first, other = codes + rng.normal(size=(2, 200))
    >>> X = np.column_stack([first, first + 0.01 * rng.normal(size=200), other])
    >>> ranking = FeatureRanking.of(np.array([0.3, 0.29, 0.2]))
    >>> overlap = Overlap.of(ArrayRows(X, codes, 2).products(np.arange(3))[0])
    >>> Redundancy(1.0).reranked(ranking, np.arange(3), overlap).order
    array([0, 2, 1])
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
        """The columns that take part in any of several rankings, shape (P,), increasing.

        Parameters
        ----------
        orders : sequence of ndarray
            Columns, best first.
        n_parts : int
            For how many folds their products are kept: if many, the pool is smaller. It is empty if not even
            the first columns of all rankings fit.
        """
        most = max(2, int(np.sqrt(MOST_BYTES / (8 * n_parts))))
        firsts = [order[: self.pool] for order in orders]
        # Where a column first appears in any of the rankings: those that appear early are the candidates.
        columns = np.concatenate(firsts)
        place = np.concatenate([np.arange(len(first)) for first in firsts])
        columns, earliest = columns[np.argsort(place, kind="stable")], np.sort(place)
        unique, at = np.unique(columns, return_index=True)
        if len(unique) > most:
            cut = np.sort(earliest[at])[most]
            unique = unique[earliest[at] < cut]
        return unique

    def reranked(self, ranking: FeatureRanking, columns: Integers, overlap: Overlap) -> FeatureRanking:
        """The same scores in the order of what each feature adds.

        Parameters
        ----------
        ranking : FeatureRanking
            Of all D features.
        columns : ndarray of shape (P,)
            Candidates, increasing.
        overlap : Overlap
            What they share.
        """
        # The longest beginning of the ranking, of at most so many, that consists of candidates.
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
    """Points (P, C), what scores say beside them (P,), and the shares of covariances (P, P) that count."""
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
