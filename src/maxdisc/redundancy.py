"""Features that repeat each other: relevance discounted by what the chosen ones already say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maxdisc.divergences import FeatureRanking
from maxdisc.matrices import Floats, Integers
from maxdisc.products import ClassProducts

# Candidates for the re-ranking: a few times the features wanted, and at most so many.
TIMES, MOST = 5, 2000
# The products of all folds together take at most so many bytes.
MOST_BYTES = 2**28
# Correlations are cut off here: the information of a perfect one would be infinite.
MOST_CORRELATED = 1 - 1e-12
# Scatter within classes below this share of the scatter about the origin is rounding, and so are deviations
# below this share of the origin.
FLAT = 1e-12


@dataclass(frozen=True)
class Redundancy:
    """A ranking in which a feature counts less, the more of the chosen ones it repeats.

    One feature after another is chosen, the one with the highest ``score / (1 + strength * sum of I)``. I is
    the information that it shares with each of those chosen before, *within* classes: -1/2 log(1 - rho^2)
    of the correlation of their deviations from the class means, which is the mutual information of two
    numbers of which only means and covariances are known. What two features share because both
    tell the classes apart is no redundancy.

    Parameters
    ----------
    strength : float
        How much shared information counts; 0 leaves the ranking as it is.
    pool : int
        How many of the best features by score take part; all others follow in the order of their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.divergences import FeatureRanking
    >>> from maxdisc.redundancy import Redundancy, within_information
    >>> from maxdisc.rows import ArrayRows
    >>> rng = np.random.default_rng(0)
    >>> codes = np.arange(200) % 2
    >>> first, other = codes + rng.normal(size=(2, 200))
    >>> X = np.column_stack([first, first + 0.01 * rng.normal(size=200), other])
    >>> ranking = FeatureRanking.of(np.array([0.3, 0.29, 0.2]))
    >>> products = ArrayRows(X, codes, 2).products(np.arange(3))[0]
    >>> Redundancy(1.0).reranked(ranking, np.arange(3), within_information(products)).order
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

    def reranked(self, ranking: FeatureRanking, columns: Integers, information: Floats) -> FeatureRanking:
        """The same scores in the order of discounted relevance.

        Parameters
        ----------
        ranking : FeatureRanking
            Of all D features.
        columns : ndarray of shape (P,)
            Candidates, increasing.
        information : ndarray of shape (P, P)
            What each two of them share within classes.
        """
        # The longest beginning of the ranking, of at most so many, that consists of candidates.
        first = ranking.order[: self.pool]
        first = first[np.logical_and.accumulate(np.isin(first, columns))]
        at = np.searchsorted(columns, first)
        chosen = _discounted(ranking.scores[first], information[np.ix_(at, at)], self.strength)
        return replace(ranking, order=np.r_[first[chosen], ranking.order[len(first) :]])


def within_information(products: ClassProducts) -> Floats:
    """The information that each two features share within classes, shape (P, P); 0 on the diagonal.

    A feature without variation within classes shares nothing.
    """
    scatter = products.within()[0]
    own = np.diag(scatter)
    rounding = FLAT * np.diag(products.products[0])
    rounding += products.weight @ (FLAT * np.nan_to_num(products.origin)) ** 2
    scale = np.where(own > rounding, np.sqrt(own), np.inf)
    correlation = scatter / (scale * scale[:, None])
    square = np.minimum(correlation**2, MOST_CORRELATED)
    np.fill_diagonal(square, 0.0)
    return np.asarray(-0.5 * np.log1p(-square))


def _discounted(scores: Floats, information: Floats, strength: float) -> Integers:
    """Positions in the order in which they are chosen; ties go to the earlier one."""
    order = np.empty(len(scores), dtype=np.intp)
    penalty, left = np.ones(len(scores)), scores.copy()
    for step in range(len(scores)):
        best = int(np.argmax(left / penalty))
        order[step] = best
        left[best] = -np.inf
        penalty += strength * information[best]
    return order
