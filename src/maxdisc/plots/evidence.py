"""Plot of the evidence of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxdisc.inspection.odds import LogOdds, log_odds
from maxdisc.inspection.safe_text import counted
from maxdisc.plots.canvas import FAINT, PALETTE, drawing_axes, literal


class EvidenceDisplay:
    """Bar plot of the log-odds of one row between two classes.

    Parameters
    ----------
    features : sequence of str
        Names of the features with the largest log-odds.
    odds : array-like of shape (n,)
        Their log-odds; positive speaks for the first class.
    prior, others : float
        Contributions of the prior and of all other features.
    classes : tuple of (str, str)
        The predicted class, and the one it is compared with.
    n_others : int
        The number of other features; if 0, their bar is left out.
    values : sequence of float or str, optional
        Values of the row.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.plots import EvidenceDisplay
    >>> iris = load_iris()
    >>> model = MaxDiscClassifier().fit(iris.data, iris.target_names[iris.target])
    >>> display = EvidenceDisplay.from_estimator(model, iris.data[:1], ax=Figure().subplots())
    >>> display.classes
    ('setosa', 'versicolor')
    """

    def __init__(
        self,
        features: Sequence[str],
        odds: npt.ArrayLike,
        prior: float = 0.0,
        others: float = 0.0,
        *,
        classes: tuple[str, str] = ("predicted", "runner-up"),
        n_others: int = 0,
        values: Sequence[float | str] | None = None,
    ) -> None:
        self.features = list(features)
        self.odds = np.asarray(odds, dtype=np.float64)
        self.prior = prior
        self.others = others
        self.classes = classes
        self.n_others = n_others
        self.values = None if values is None else list(values)

    @property
    def total(self) -> float:
        """The log-odds: the sum of all bars."""
        return self.prior + float(self.odds.sum()) + self.others

    @classmethod
    def from_odds(cls, evidence: LogOdds) -> Self:
        """Build from decomposed log-odds, without drawing."""
        return cls(
            evidence.features,
            evidence.odds,
            evidence.prior,
            evidence.others,
            classes=(evidence.first, evidence.second),
            n_others=evidence.n_others,
            values=evidence.values,
        )

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, n_features: int = 10, against: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Build from a fitted classifier and one row, or a pipeline and one document.

        Parameters
        ----------
        model : MaxDiscClassifier or Pipeline
            Fitted.
        X : str, or matrix or frame of shape (1, D)
            A document, or a row.
        n_features : int
            Number of features with their own bar.
        against : label, optional
            The class to compare the predicted one with; by default the runner-up.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs
            For the bars.
        """
        row = [X] if isinstance(X, str) else X
        return cls.from_odds(log_odds(model, row, n_features, second=against)).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; ``kwargs`` go to the bars."""
        self.ax_, self.figure_ = drawing_axes(ax)
        names = [*map(self._name, range(len(self.features)))]
        bars = [*self.odds.tolist()]
        if self.n_others:
            names.append(counted(self.n_others, "other feature"))
            bars.append(self.others)
        names.append("prior")
        bars.append(self.prior)
        places = np.arange(len(bars))
        colours = [PALETTE[0] if bar >= 0 else PALETTE[1] for bar in bars]
        self.ax_.barh(places, bars, **{"color": colours, "height": 0.7, **kwargs})
        self.ax_.axvline(0, color=FAINT, linewidth=0.8)
        self.ax_.set_yticks(places, names)
        self.ax_.tick_params(axis="y", length=0)
        first, second = (literal(label, 24) for label in self.classes)
        self.ax_.set(
            ylim=(len(places) - 0.4, -0.6),
            xlabel=f"← for {second}    log-odds    for {first} →",
            title=f"{first} rather than {second}: {self.total:+.2f}",
        )
        self.ax_.margins(x=0.08)
        return self

    def _name(self, k: int) -> str:
        name = literal(self.features[k])
        if self.values is None:
            return name
        value = self.values[k]
        return f"{name} = {literal(value, 18) if isinstance(value, str) else format(value, '.4g')}"
