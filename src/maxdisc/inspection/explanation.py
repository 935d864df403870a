"""Explanations of predictions as exact sums over features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.by_length import LengthDecision
from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.joint_average import AveragedDecision
from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.numerics.matrices import Floats, Matrix

#: Where the terms of a document stand: the term, its first character and the one after its last.
Spans = Callable[[str], list[tuple[str, int, int]]]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Scores of rows and classes as sums: ``total = prior + length + contributions.sum(axis=2)``.

    Notebooks show it as bars and, for documents, marked words; ``print`` as lines of text.

    Attributes
    ----------
    total : ndarray of shape (N, C)
        Scores, as ``predict_joint_log_proba`` gives them.
    prior : ndarray of shape (C,)
        Log prior of each class.
    contributions : ndarray of shape (N, C, K)
        Log density of each selected feature in each class, up to a term common to all classes; 0 for a
        missing cell. For a joint density: the feature's share, see :meth:`JointDecision.contributions`.
    names : ndarray of shape (K,)
        The selected features.
    classes : ndarray of shape (C,)
        The labels.
    length : ndarray of shape (N, C) or float
        Contribution of the number of selected features of each row; 0 if weights do not depend on it.
    documents : list of str or None
        The documents, if rows are counts of their words whose positions are known.
    """

    total: Floats
    prior: Floats
    contributions: Floats
    names: npt.NDArray[np.generic]
    classes: npt.NDArray[np.generic]
    length: Floats | float = 0.0
    documents: Sequence[str] | None = None
    spans: Spans | None = None

    @classmethod
    def of(
        cls,
        decision: LinearDecision | MixedDecision | JointDecision | AveragedDecision | LengthDecision,
        X: Matrix,
        names: npt.NDArray[np.generic],
        classes: npt.NDArray[np.generic],
    ) -> Explanation:
        """Decompose the scores of the rows of ``X``; ``names`` are those of the decision's columns."""
        length = decision.length_bias(X) if isinstance(decision, LengthDecision) else 0.0
        parts = decision.contributions(X)
        return cls(decision.scores(X), decision.log_prior, parts, names, classes, length)

    def top(self, row: int, n: int = 5) -> list[tuple[str, float]]:
        """Return the features with the largest log-odds of the predicted class against the runner-up.

        Parameters
        ----------
        row : int
            Which row.
        n : int
            How many features.

        Returns
        -------
        list of (str, float)
            Names and log-odds, largest magnitude first; positive speaks for the predicted class.
        """
        if len(self.classes) < 2:
            return []
        first, second = self.best_two(row)
        odds = self.contributions[row, first] - self.contributions[row, second]
        return [(str(self.names[k]), float(odds[k])) for k in np.argsort(-np.abs(odds), kind="stable")[:n]]

    def best_two(self, row: int) -> tuple[int, int]:
        """Return the positions of the predicted class and the runner-up among two or more classes."""
        first, second = np.argsort(-self.total[row], kind="stable")[:2].tolist()
        return first, second

    def __repr__(self) -> str:
        from maxdisc.inspection.explanation_views import explanation_text

        return explanation_text(self)

    def _repr_html_(self) -> str:
        from maxdisc.inspection.explanation_views import explanation_html

        return explanation_html(self)
