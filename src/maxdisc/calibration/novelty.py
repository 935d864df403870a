"""Unknown things: how well rows fit the known classes, next to held-out rows that belong to one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxdisc.numerics.matrices import Floats, Integers, log_sum_exp

#: Of these shares of the held-out rows, something like all rows, or like none, beats the best known class.
SHARES_UNKNOWN = (0.05, 0.002)
#: So many places of the table, closer together where rows are strange.
MOST_PLACES = 512
#: Rows that are the same may differ by this, relative to 1 and their size, when they come in other batches.
SAME = 1e-9
#: Farther away nothing is told apart.
FARTHEST = 1e300


@dataclass(frozen=True, eq=False)
class Novelty:
    """What is usual of rows of known classes.

    Beside the known classes stand two unknown ones. In the first, each feature has the moments that it has in
    all classes together, as if there were none: what fits a class is more likely there than among all, what
    lies between the classes is not. The second is spread so widely that what is far from everything is most
    likely there. A row is as familiar as its best class is likely, against the other classes and the unknown
    ones: it must be told apart from all of them. How likely the unknown ones are beforehand is set such that
    they beat the best class of 5 % and of 0.2 % of the held-out rows. The p-value of a row is the share of
    held-out rows that are no more familiar, itself counted.

    Parameters
    ----------
    weights : ndarray of shape (G,)
        By what the evidence of each band is multiplied.
    level : ndarray of shape (C,)
        The biases of the classes plus the logs of their shares of the training rows.
    unknown : ndarray of shape (2,)
        The same for the unknown classes, beside the evidence of the best class alone.
    familiarity : ndarray of shape (T,)
        Log odds of the best class, increasing; the first is less than any row has.
    p_value : ndarray of shape (T,)
        Of rows from each of these up to the next, increasing to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.calibration.novelty import Novelty
    >>> table = np.array([-1e301, -1.0, 3.0]), np.array([0.25, 0.5, 1.0])
    >>> Novelty(np.ones(1), np.zeros(2), np.zeros(2), *table).p_values(np.array([-5.0, -1.0, 0.0, 8.0]))
    array([0.25, 0.5 , 0.5 , 1.  ])
    """

    weights: Floats
    level: Floats
    unknown: Floats
    familiarity: Floats
    p_value: Floats

    @classmethod
    def learnt(
        cls, evidence: Floats, unknown: Floats, row_weights: Floats, weights: Floats, level: Floats
    ) -> Novelty:
        """From held-out rows.

        Parameters
        ----------
        evidence : ndarray of shape (n, C, G)
            Of each band of features for each class.
        unknown : ndarray of shape (n, 2, G)
            The same for the unknown classes.
        row_weights : ndarray of shape (n,)
            Of the rows, more than 0.
        weights, level
            As of this class.
        """
        scores, reference = evidence @ weights + level, unknown @ weights
        best = scores.argmax(axis=1)
        ratio = (scores.max(axis=1) - level[best])[:, None] - reference
        levels = np.array(
            [_quantile(r, row_weights, share) for r, share in zip(ratio.T, SHARES_UNKNOWN, strict=True)]
        )
        found = familiarity(scores, level, reference + levels)
        return cls(weights, level, levels, *_table(found, row_weights))

    def p_values(self, familiarity: Floats) -> Floats:
        """The p-values of rows, shape (n,): in (0, 1], never below the share of rows that are as strange."""
        reach = self.familiarity - SAME * (1 + np.abs(self.familiarity))
        at = np.searchsorted(reach, familiarity, side="right")
        return self.p_value[np.maximum(at - 1, 0)]

    def of_rows(self, scores: Floats, reference: Floats) -> Floats:
        """The p-values of rows, shape (n,), by their weighed evidence; 1 for a row that has no cells.

        Parameters
        ----------
        scores : ndarray of shape (n, C)
            For the known classes, plus ``level``.
        reference : ndarray of shape (n, 2)
            For the unknown ones, plus ``unknown``.
        """
        found = self.p_values(familiarity(scores, self.level, reference))
        # What has no cells is as good as anything.
        nothing = (scores == self.level).all(axis=1) & (reference == self.unknown).all(axis=1)
        return np.where(nothing, 1.0, found)

    def reindexed(self, positions: Integers, n_classes: int) -> Novelty:
        """For more classes, of which those here have the positions given; new ones are like the rarest."""
        level = np.full(n_classes, self.level.min())
        level[positions] = self.level
        return replace(self, level=level)


def familiarity(scores: Floats, level: Floats, reference: Floats) -> Floats:
    """Log odds of the best class against all other classes and the unknown ones, shape (n,).

    Parameters
    ----------
    scores : ndarray of shape (n, C)
        Weighed evidence plus level.
    level : ndarray of shape (C,)
        Which says nothing of the row: unknown classes are compared without it.
    reference : ndarray of shape (n, 2)
        Weighed evidence for the unknown classes plus their levels.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.calibration.novelty import familiarity
    >>> familiarity(np.array([[2.0, 0.0], [2.0, 2.0]]), np.zeros(2), np.zeros((2, 2))).round(2)
    array([ 0.9 , -0.24])
    """
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    top, others = scores[rows, best], scores.copy()
    others[rows, best] = -np.inf
    with np.errstate(all="ignore"):
        against = np.hstack([others - top[:, None], reference - (top - level[best])[:, None]])
        out = -log_sum_exp(against)
    # What is too far away for numbers is as strange as can be.
    return np.where(np.isnan(out), -np.inf, out)


def _quantile(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(cumulative, share * cumulative[-1])]])


def _table(found: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Some of the values, and the p-values of rows from each up to the next."""
    values, which = np.unique(np.maximum(found, -FARTHEST), return_inverse=True)
    n, total = len(found), np.cumsum(np.bincount(which, weights))
    places = np.unique(np.round(np.geomspace(1, len(values), MOST_PLACES)).astype(np.intp)) - 1
    # Of the rows before the next place, all may be as strange.
    share = np.r_[0.0, total[places[1:] - 1] / total[-1], 1.0]
    return np.r_[-10 * FARTHEST, values[places]], np.minimum((1 + n * share) / (1 + n), 1.0)
