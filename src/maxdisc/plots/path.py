"""Plot of accuracy against the number of selected features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import FuncFormatter, NullFormatter

from maxdisc.inspection.model_view import ModelView
from maxdisc.plots.canvas import FAINT, PALETTE, drawing_axes

# More folds than this are a haze.
MOST_FOLDS = 20


class PathDisplay:
    """Plot of held-out accuracy for each number of features: folds, mean and standard error.

    Parameters
    ----------
    sizes : array-like of shape (S,)
        Numbers of features, increasing.
    accuracy : array-like of shape (V, S)
        For each fold; empty if there are too many to draw.
    mean, standard_error : array-like of shape (S,)
        Over the folds.
    chosen : int, optional
        K, the number of selected features.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.plots import PathDisplay
    >>> model = MaxDiscClassifier().fit(*load_iris(return_X_y=True))
    >>> display = PathDisplay.from_estimator(model, ax=Figure().subplots())
    >>> display.ax_.get_xlabel()
    'selected features, best first'
    """

    def __init__(
        self,
        sizes: npt.ArrayLike,
        accuracy: npt.ArrayLike,
        mean: npt.ArrayLike,
        standard_error: npt.ArrayLike,
        chosen: int | None = None,
    ) -> None:
        self.sizes = np.asarray(sizes)
        self.accuracy = np.asarray(accuracy, dtype=np.float64).reshape(-1, len(self.sizes))
        self.mean = np.asarray(mean, dtype=np.float64)
        self.standard_error = np.asarray(standard_error, dtype=np.float64)
        self.chosen = chosen

    @property
    def threshold(self) -> float:
        """The highest mean accuracy minus its standard error, the threshold of ``rule="one_se"``."""
        top = int(self.mean.argmax())
        return float(self.mean[top] - self.standard_error[top])

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Build from a fitted classifier, or a pipeline that ends in one.

        Parameters
        ----------
        model : MaxDiscClassifier or Pipeline
            Fitted, with a path.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs
            For the line of the mean.
        """
        classifier = ModelView.of(model).classifier
        path = classifier.path_
        if path is None:
            raise ValueError(
                "nothing was selected on folds, so the model has no path: fit it with n_features='auto'."
            )
        display = cls(
            path.sizes,
            path.accuracy[: 0 if len(path.accuracy) > MOST_FOLDS else None],
            path.mean_accuracy,
            path.standard_error,
            classifier.n_selected_,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; ``kwargs`` go to the line of the mean."""
        self.ax_, self.figure_ = drawing_axes(ax)
        single = len(self.sizes) == 1
        if single:
            self.ax_.plot(
                np.repeat(self.sizes, len(self.accuracy)), self.accuracy[:, 0], ".", color=FAINT, alpha=0.7
            )
            self.ax_.errorbar(self.sizes, self.mean, self.standard_error, color=PALETTE[0], capsize=4)
        else:
            self.ax_.plot(self.sizes, self.accuracy.T, color=FAINT, alpha=0.4, linewidth=0.7)
            band = (self.mean - self.standard_error, self.mean + self.standard_error)
            self.ax_.fill_between(self.sizes, *band, color=PALETTE[0], alpha=0.2, linewidth=0)
        style = {"color": PALETTE[0], "linewidth": 1.8, "label": "mean ± one standard error", **kwargs}
        self.ax_.plot(self.sizes, self.mean, **style)
        self.ax_.axhline(
            self.threshold, color=FAINT, linewidth=0.9, linestyle="--", label="one standard error below best"
        )
        self._mark_choice()
        self._scale()
        self.ax_.set(xlabel="selected features, best first", ylabel="held-out accuracy")
        self.ax_.legend(frameon=False, loc="lower right" if not single else "best")
        return self

    def _mark_choice(self) -> None:
        if self.chosen is None:
            return
        at = int(np.abs(self.sizes - self.chosen).argmin())
        self.ax_.plot(
            [self.chosen], [self.mean[at]], "o", color=PALETTE[1], label=f"chosen: {self.chosen:,} features"
        )

    def _scale(self) -> None:
        low, high = float(self.sizes[0]), float(self.sizes[-1])
        # One feature, or nearly as many at the left as at the right, would leave a log axis without ticks.
        room = max((high / low) ** 0.03, 1.05)
        self.ax_.set_xscale("log")
        self.ax_.set_xlim(low / room, high * room)
        if len(self.sizes) < 9:
            self.ax_.set_xticks(self.sizes)
        elif high / low < 1000:
            round_ones = np.outer(10.0 ** np.arange(13), [1, 2, 5]).ravel()
            self.ax_.set_xticks(round_ones[(round_ones >= low) & (round_ones <= high)])
        self.ax_.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        self.ax_.xaxis.set_minor_formatter(NullFormatter())
