"""One row between two classes: the log-odds, taken apart into prior, loudest features and all the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxdisc.fitted import FittedModel


@dataclass(frozen=True)
class LogOdds:
    """Why one class rather than another: ``total = prior + sum(odds) + others``, exactly.

    Parameters
    ----------
    first, second : str
        The two classes; what is positive speaks for the first.
    prior : float
        Log-odds before anything was seen.
    features : list of str
        The loudest features, in order of magnitude.
    values : list of float or str
        What the row has there, a category as text; NaN for a missing cell.
    odds : list of float
        Their log-odds.
    others : float
        The sum of all the other kept features.
    n_others : int
        How many they are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.odds import log_odds
    >>> iris = load_iris()
    >>> model = MaxDiscClassifier().fit(iris.data, iris.target_names[iris.target])
    >>> evidence = log_odds(model, iris.data[:1], n=2)
    >>> evidence.first, evidence.second, evidence.features
    ('setosa', 'versicolor', ['x2', 'x3'])
    """

    first: str
    second: str
    prior: float
    features: list[str]
    values: list[float | str]
    odds: list[float]
    others: float
    n_others: int

    @property
    def total(self) -> float:
        """The log-odds of the first class against the second."""
        return self.prior + float(np.sum(self.odds)) + self.others


def log_odds(model: Any, X: Any, n: int = 10, first: Any = None, second: Any = None) -> LogOdds:
    """Take the log-odds of one row apart.

    Parameters
    ----------
    model : MaxDiscClassifier or Pipeline
        Fitted.
    X : matrix or frame of shape (1, D), or a list of one document
        The row.
    n : int
        How many features to name.
    first, second : label, optional
        Which classes; by default the predicted one and the next best.

    Returns
    -------
    LogOdds
        The loudest features first.
    """
    fitted = FittedModel.of(model)
    row = fitted.rows(X)
    explanation = fitted.classifier.explain(row)
    if len(explanation.total) != 1:
        raise ValueError(f"evidence is shown for one row at a time, got {len(explanation.total)}.")
    a, b = _the_two(fitted, explanation.total[0], first, second)
    each = explanation.contributions[0, a] - explanation.contributions[0, b]
    order = np.argsort(-np.abs(each), kind="stable")
    shown, hidden = order[:n], order[n:]
    columns = fitted.classifier.decision_.columns[shown]
    return LogOdds(
        fitted.classes[a],
        fitted.classes[b],
        float(explanation.prior[a] - explanation.prior[b]),
        [str(name) for name in fitted.names[columns]],
        fitted.values(row, columns)[0],
        each[shown].tolist(),
        float(each[hidden].sum()),
        len(hidden),
    )


def _the_two(fitted: FittedModel, total: Any, first: Any, second: Any) -> tuple[int, int]:
    """Positions of the two classes, which must both be possible."""
    best = np.argsort(-total, kind="stable")
    a = int(best[0]) if first is None else _position(fitted, first)
    b = int(best[best != a][0]) if second is None else _position(fitted, second)
    if a == b:
        raise ValueError(f"evidence is weighed between two classes, got {fitted.classes[a]!r} twice.")
    for c in (a, b):
        if not np.isfinite(total[c]):
            raise ValueError(f"class {fitted.classes[c]!r} has a prior of 0: nothing speaks for it.")
    return a, b


def _position(fitted: FittedModel, label: Any) -> int:
    found = np.flatnonzero(fitted.classifier.classes_ == label)
    if len(found) == 0:
        raise ValueError(f"{label!r} is not a class of this model.")
    return int(found[0])
