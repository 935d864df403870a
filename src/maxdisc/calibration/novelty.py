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
    """Distribution of familiarity among held-out rows of known classes, which turns scores into p-values.

    Two unknown classes compete with the known ones: one has the pooled moments of all classes, the other is
    far broader. Familiarity is the log odds of the best class against all others. The prior of the unknown
    classes is set so that they beat the best class of 5 % and of 0.2 % of the held-out rows. The p-value of
    a row is the share of held-out rows that are no more familiar.
    """

    weights: Floats  # (G,)
    level: Floats  # (C,)
    unknown: Floats  # (2,)
    familiarity: Floats  # (T,)
    p_value: Floats  # (T,)

    @classmethod
    def learnt(
        cls, evidence: Floats, unknown: Floats, row_weights: Floats, weights: Floats, level: Floats
    ) -> Novelty:
        """Fit to held-out evidence of the known classes (n, C, G) and of the unknown ones (n, 2, G)."""
        scores, reference = evidence @ weights + level, unknown @ weights
        best = scores.argmax(axis=1)
        ratio = (scores.max(axis=1) - level[best])[:, None] - reference
        levels = np.array(
            [_quantile(r, row_weights, share) for r, share in zip(ratio.T, SHARES_UNKNOWN, strict=True)]
        )
        found = familiarity(scores, level, reference + levels)
        return cls(weights, level, levels, *_table(found, row_weights))

    def p_values(self, familiarity: Floats) -> Floats:
        """Return p-values of rows, shape (n,), in (0, 1]."""
        reach = self.familiarity - SAME * (1 + np.abs(self.familiarity))
        at = np.searchsorted(reach, familiarity, side="right")
        return self.p_value[np.maximum(at - 1, 0)]

    def of_rows(self, scores: Floats, reference: Floats) -> Floats:
        """Return p-values (n,) from calibrated scores (n, C) and (n, 2); 1 for a row without cells."""
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
    """Return the log odds of the best class against all other classes and the unknown ones, shape (n,)."""
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
    """Return some of the values, and the p-values of rows from each up to the next."""
    values, which = np.unique(np.maximum(found, -FARTHEST), return_inverse=True)
    n, total = len(found), np.cumsum(np.bincount(which, weights))
    places = np.unique(np.round(np.geomspace(1, len(values), MOST_PLACES)).astype(np.intp)) - 1
    # Of the rows before the next place, all may be as strange.
    share = np.r_[0.0, total[places[1:] - 1] / total[-1], 1.0]
    return np.r_[-10 * FARTHEST, values[places]], np.minimum((1 + n * share) / (1 + n), 1.0)
