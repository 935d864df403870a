"""Reliability diagrams."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_consistent_length

from maxdisc.inspection.measures import reliability_bins
from maxdisc.plots.canvas import FAINT, PALETTE, drawing_axes


class ReliabilityDisplay:
    """Reliability diagram: accuracy against confidence; the area of a point grows with its rows.

    Parameters
    ----------
    confidence, accuracy : array-like of shape (B,)
        Mean probability of the predicted class, and share of correct predictions, in each bin.
    rows : array-like of shape (B,)
        Number of rows in each bin.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from maxdisc.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay([0.55, 0.97], [0.5, 0.91], [20, 180]).plot(ax=Figure().subplots())
    >>> round(display.expected_calibration_error, 3)
    0.059
    """

    def __init__(self, confidence: npt.ArrayLike, accuracy: npt.ArrayLike, rows: npt.ArrayLike) -> None:
        self.confidence = np.asarray(confidence, dtype=np.float64)
        self.accuracy = np.asarray(accuracy, dtype=np.float64)
        self.rows = np.asarray(rows, dtype=np.float64)

    @property
    def expected_calibration_error(self) -> float:
        """The mean distance from the diagonal, over rows."""
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.rows))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: npt.ArrayLike, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Build from a fitted classifier and labelled rows.

        Parameters
        ----------
        estimator : classifier or Pipeline
            Fitted, with ``predict_proba``; any of scikit-learn's.
        X : array-like, frame or sparse matrix of shape (N, D), or N documents
            Rows that the classifier was not fitted on.
        y : array-like of shape (N,)
            Their labels.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs
            For the points.
        """
        probabilities = np.asarray(estimator.predict_proba(X))
        predicted = np.asarray(estimator.classes_)[probabilities.argmax(axis=1)]
        return cls.from_predictions(y, predicted, probabilities.max(axis=1), ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, y_true: npt.ArrayLike, y_pred: npt.ArrayLike, confidence: npt.ArrayLike, **kwargs: Any
    ) -> Self:
        """Build from labels, predictions and their probabilities; see :meth:`plot` for ``kwargs``."""
        check_consistent_length(y_true, y_pred, confidence)
        bins = reliability_bins(np.asarray(y_true) == np.asarray(y_pred), np.asarray(confidence))
        return cls(*bins).plot(**kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; ``kwargs`` go to the points."""
        self.ax_, self.figure_ = drawing_axes(ax)
        self.ax_.plot([0, 1], [0, 1], color=FAINT, linewidth=0.9, linestyle="--", label="as sure as right")
        self.ax_.plot(self.confidence, self.accuracy, color=PALETTE[0], linewidth=1.2)
        area = 12 + 150 * self.rows / self.rows.max()
        self.ax_.scatter(
            self.confidence,
            self.accuracy,
            **{"s": area, "color": PALETTE[0], "alpha": 0.85, "linewidth": 0, "clip_on": False, **kwargs},
        )
        self.ax_.set(
            xlim=(0, 1.02),
            ylim=(0, 1.02),
            xlabel="probability of the predicted class",
            ylabel="share of right predictions",
        )
        self.ax_.legend(frameon=False, loc="upper left")
        return self
