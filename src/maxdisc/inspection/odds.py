"""Log-odds of a row between two classes, by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxdisc.decisions.by_length import LengthDecision
from maxdisc.inspection.model_view import ModelView
from maxdisc.numerics.matrices import Floats, Integers, Matrix


@dataclass(frozen=True)
class LogOdds:
    """Log odds of two classes for one row: ``total = prior + sum(odds) + others``, exactly."""

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
    """Decompose the log odds of one row; by default of the two most probable classes."""
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
    """Log odds of every selected feature: ``prior + odds.sum()`` is the total."""

    first: int
    second: int
    prior: float
    columns: Integers  # (K,)
    odds: Floats  # (K,)


def feature_odds(model: Any, row: Matrix, first: Any = None, second: Any = None) -> FeatureOdds:
    """Return the log odds of one row, feature by feature, in the order of the ranking."""
    fitted = ModelView.of(model)
    total = fitted.classifier.predict_joint_log_proba(row)
    if len(total) != 1:
        raise ValueError(f"evidence is shown for one row at a time, got {len(total)}.")
    pair = np.array(_the_two(fitted, total[0], first, second))
    # Of the other classes nothing is computed.
    two, rows = fitted.classifier.decision_.between(pair), fitted.classifier._rows(row)
    if isinstance(two, LengthDecision):
        two = two.for_row(rows)
    parts = two.contributions(rows)[0]
    prior = float(two.log_prior[0] - two.log_prior[1])
    return FeatureOdds(int(pair[0]), int(pair[1]), prior, two.columns, parts[0] - parts[1])


def _the_two(fitted: ModelView, total: Any, first: Any, second: Any) -> tuple[int, int]:
    """Positions of the two classes, which must both be possible."""
    if len(total) < 2:
        raise ValueError("the model has a single class: there is no other class to compare it with.")
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
