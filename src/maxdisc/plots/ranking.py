"""Plot of the ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxdisc.inspection.ranking import ranking_table
from maxdisc.plots.canvas import PALETTE, drawing_axes, literal


class RankingDisplay:
    """Bar plot of the best features, each with the class that it distinguishes.

    Parameters
    ----------
    features : sequence of str
        Names, best first.
    scores : array-like of shape (n,)
        Their divergences.
    classes : sequence of str, optional
        The class that each distinguishes best.
    directions : sequence of int, optional
        +1 if that class has more of it than the others, -1 if less.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from maxdisc.plots import RankingDisplay
    >>> display = RankingDisplay(["goal", "space"], [2.0, 1.5], ["hockey", "astronomy"], [1, 1])
    >>> display = display.plot(ax=Figure().subplots())
    >>> [text.get_text() for text in display.ax_.texts]
    ['more in hockey', 'more in astronomy']
    """

    def __init__(
        self,
        features: Sequence[str],
        scores: npt.ArrayLike,
        classes: Sequence[str] | None = None,
        directions: Sequence[int] | None = None,
    ) -> None:
        self.features = list(features)
        self.scores = np.asarray(scores, dtype=np.float64)
        self.classes = None if classes is None else list(classes)
        self.directions = None if directions is None else list(directions)

    @classmethod
    def from_estimator(cls, model: Any, *, n_features: int = 15, ax: Any = None, **kwargs: Any) -> Self:
        """Build from a fitted classifier, or a pipeline that ends in one.

        Parameters
        ----------
        model : MaxDiscClassifier or Pipeline
            Fitted.
        n_features : int
            Number of features to show.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs
            For the bars.
        """
        table = ranking_table(model, n=n_features)
        labels = [str(label) for label in table.classes.tolist()]
        display = cls([str(by) for by in table.by], table.scores, labels, table.directions.tolist())
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; ``kwargs`` go to the bars."""
        self.ax_, self.figure_ = drawing_axes(ax)
        places = np.arange(len(self.features))
        self.ax_.barh(places, self.scores, **{"color": PALETTE[0], "height": 0.7, **kwargs})
        self.ax_.set_yticks(places, [literal(name) for name in self.features])
        self.ax_.set(ylim=(len(places) - 0.4, -0.6), xlabel="divergence between the classes, in nats")
        self.ax_.tick_params(axis="y", length=0)
        longest = float(self.scores.max(initial=0.0)) or 1.0
        if self.classes is not None and self.directions is not None:
            for place, score, label, sign in zip(
                places, self.scores, self.classes, self.directions, strict=True
            ):
                if score > 0:
                    words = f"{'more' if sign > 0 else 'less'} in {literal(label, 22)}"
                    self.ax_.annotate(words, (score, place), (4, 0), textcoords="offset points", va="center")
        # Room for the words behind the longest bar.
        self.ax_.set_xlim(0, longest * (1.02 if self.classes is None else 1.7))
        return self
