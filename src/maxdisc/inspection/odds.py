"""One row between two classes: the log-odds, taken apart into prior, loudest features and all the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxdisc.inspection.model_view import ModelView
from maxdisc.numerics.matrices import Floats, Integers, Matrix


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
    >>> from maxdisc.inspection.odds import log_odds
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
    fitted = ModelView.of(model)
    row = fitted.rows(X)
    said = feature_odds(fitted, row, first, second)
    order = np.argsort(-np.abs(said.odds), kind="stable")
    shown, hidden = order[:n], order[n:]
    columns = said.columns[shown]
    return LogOdds(
        fitted.classes[said.first],
        fitted.classes[said.second],
        said.prior,
        [str(name) for name in fitted.names[columns]],
        fitted.values(row, columns)[0],
        said.odds[shown].tolist(),
        float(said.odds[hidden].sum()),
        len(hidden),
    )


@dataclass(frozen=True, eq=False)
class FeatureOdds:
    """What every kept feature of a row says: ``prior + odds.sum()`` is the log-odds of the two classes.

    Parameters
    ----------
    first, second : int
        Positions of the two classes; what is positive speaks for the first.
    prior : float
        Log-odds before anything was seen.
    columns : ndarray of shape (K,)
        The kept features, by their place in X.
    odds : ndarray of shape (K,)
        Their log-odds.
    """

    first: int
    second: int
    prior: float
    columns: Integers
    odds: Floats


def feature_odds(model: Any, row: Matrix, first: Any = None, second: Any = None) -> FeatureOdds:
    """The log-odds of one row, feature by feature.

    Parameters
    ----------
    model : MaxDiscClassifier or Pipeline
        Fitted.
    row : matrix or frame of shape (1, D)
        As the classifier takes it.
    first, second : label, optional
        Which classes; by default the predicted one and the next best.

    Returns
    -------
    FeatureOdds
        In the order of the model's own ranking.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.inspection.odds import feature_odds
    >>> iris = load_iris()
    >>> model = MaxDiscClassifier().fit(iris.data, iris.target)
    >>> said = feature_odds(model, iris.data[:1])
    >>> scores = model.predict_joint_log_proba(iris.data[:1])[0]
    >>> bool(abs(said.prior + said.odds.sum() - (scores[0] - scores[1])) < 1e-9)
    True
    """
    fitted = ModelView.of(model)
    total = fitted.classifier.predict_joint_log_proba(row)
    if len(total) != 1:
        raise ValueError(f"evidence is shown for one row at a time, got {len(total)}.")
    pair = np.array(_the_two(fitted, total[0], first, second))
    # Of the other classes nothing is computed.
    two = fitted.classifier.decision_.between(pair)
    parts = two.contributions(fitted.classifier._rows(row))[0]
    prior = float(two.log_prior[0] - two.log_prior[1])
    return FeatureOdds(int(pair[0]), int(pair[1]), prior, two.columns, parts[0] - parts[1])


def _the_two(fitted: ModelView, total: Any, first: Any, second: Any) -> tuple[int, int]:
    """Positions of the two classes, which must both be possible."""
    if len(total) < 2:
        raise ValueError("the model knows one class only: there is none to weigh it against.")
    best = np.argsort(-total, kind="stable")
    a = int(best[0]) if first is None else _position(fitted, first)
    b = int(best[best != a][0]) if second is None else _position(fitted, second)
    if a == b:
        raise ValueError(f"evidence is weighed between two classes, got {fitted.classes[a]!r} twice.")
    for c in (a, b):
        if not np.isfinite(total[c]):
            raise ValueError(f"class {fitted.classes[c]!r} has a prior of 0: nothing speaks for it.")
    return a, b


def _position(fitted: ModelView, label: Any) -> int:
    found = np.flatnonzero(fitted.classifier.classes_ == label)
    if len(found) == 0:
        raise ValueError(f"{label!r} is not a class of this model.")
    return int(found[0])
