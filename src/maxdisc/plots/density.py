"""Plot of the densities of a feature in every class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import MaxNLocator, PercentFormatter

from maxdisc.inspection.curves import MOST_CLASSES, DensityCurves, density_curves
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.safe_text import counted
from maxdisc.plots.canvas import FAINT, PALETTE, STROKES, drawing_axes, literal

# Stems up to this many points, steps beyond.
_STEMS = 16
# A class that is this much more concentrated than the widest is cut, or the others would lie flat.
_CUT = 6.0
# More letters than this below bars run into each other unless they are turned.
_CROWDED = 48


class DensityDisplay:
    """Plot of the distribution of a feature in each class.

    Continuous densities are curves; counts are stems, or steps if they are many; a few values are bars; a
    mass at zero of a density is a separate stem, on the scale at the right.

    Parameters
    ----------
    classes : sequence of str
        The classes drawn, from the highest to the lowest.
    x, height : sequence of array-like
        Points and densities (or probabilities) of each class.
    kind : {"density", "lattice", "bars"}
        The kind of plot.
    feature : str
        Its name.
    at_zero : sequence of float
        The probability of exactly 0 in each class, if any.
    left_out : int
        How many classes between the highest and the lowest are not drawn.
    constant : float, optional
        The only value of an uninformative feature; it has no curves.
    levels : sequence of str
        Labels of bars, if values are not numbers.
    levels_left_out : int
        How many further levels are not drawn.
    missing : sequence of float
        The probability that the feature is missing in each class, if that is informative.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.plots import DensityDisplay
    >>> iris = load_iris(as_frame=True)
    >>> model = MaxDiscClassifier().fit(iris.data, iris.target_names[iris.target])
    >>> display = DensityDisplay.from_estimator(model, "petal width (cm)", ax=Figure().subplots())
    >>> display.classes
    ['virginica', 'versicolor', 'setosa']
    """

    def __init__(
        self,
        classes: Sequence[str],
        x: Sequence[npt.ArrayLike],
        height: Sequence[npt.ArrayLike],
        *,
        kind: Literal["density", "lattice", "bars"] = "density",
        feature: str = "x",
        at_zero: Sequence[float] = (),
        left_out: int = 0,
        constant: float | None = None,
        levels: Sequence[str] = (),
        levels_left_out: int = 0,
        missing: Sequence[float] = (),
    ) -> None:
        self.classes = list(classes)
        self.x = [np.asarray(points, dtype=np.float64) for points in x]
        self.height = [np.asarray(heights, dtype=np.float64) for heights in height]
        self.kind = kind
        self.feature = feature
        self.at_zero = list(at_zero)
        self.left_out = left_out
        self.constant = constant
        self.levels = list(levels)
        self.levels_left_out = levels_left_out
        self.missing = list(missing)

    @classmethod
    def from_curves(cls, curves: DensityCurves) -> Self:
        """Build from curves that were computed elsewhere; not yet drawn."""
        return cls(
            curves.classes,
            curves.x,
            curves.height,
            kind=curves.kind,
            feature=curves.feature,
            at_zero=curves.at_zero,
            left_out=curves.left_out,
            constant=curves.constant,
            levels=curves.levels,
            levels_left_out=curves.levels_left_out,
            missing=curves.missing,
        )

    @classmethod
    def from_estimator(
        cls, model: Any, feature: Any, *, max_classes: int = MOST_CLASSES, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Build from a fitted classifier, or a pipeline that ends in one.

        Parameters
        ----------
        model : MaxDiscClassifier or Pipeline
            Fitted.
        feature : str or int
            A name, or the number of a column.
        max_classes : int
            With more classes than this, only the highest and the lowest are drawn.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs
            For the lines or bars.
        """
        (curves,) = density_curves(model, [_column(ModelView.of(model), feature)], max_classes)
        return cls.from_curves(curves).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; ``kwargs`` go to the lines or bars."""
        self.ax_, self.figure_ = drawing_axes(ax)
        self.ax_.set_title(literal(self.feature, 40))
        if self.constant is not None:
            self._say_constant()
            return self
        {"density": self._curves, "lattice": self._lattice, "bars": self._bars}[self.kind](kwargs)
        self.ax_.set_ylim(bottom=0)
        title = f"{self.left_out} classes in between not drawn" if self.left_out else None
        self.ax_.legend(title=title, frameon=False)
        return self

    def _say_constant(self) -> None:
        words = "never seen" if np.isnan(self.constant or 0.0) else f"always {self.constant:g}"
        self.ax_.text(
            0.5, 0.5, f"{words}: uninformative", ha="center", va="center", transform=self.ax_.transAxes
        )
        self.ax_.set(xticks=[], yticks=[])
        self.ax_.spines[:].set_visible(False)

    def _label(self, c: int) -> str:
        name = literal(self.classes[c])
        told = [f"0 in {_percent(self.at_zero[c])}"] if self.at_zero else []
        told += [f"missing in {_percent(self.missing[c])}"] if self.missing else []
        return f"{name} ({', '.join(told)})" if told else name

    def _curves(self, kwargs: dict[str, Any]) -> None:
        for c, (x, height) in enumerate(zip(self.x, self.height, strict=True)):
            style = {"color": _colour(c), "linestyle": STROKES[c % len(STROKES)], "linewidth": 1.5, **kwargs}
            self.ax_.plot(x, height, label=self._label(c), **style)
            self.ax_.fill_between(x, height, color=_colour(c), alpha=0.08, linewidth=0)
        self.ax_.set_ylabel("density")
        peaks = [float(height.max()) for height in self.height]
        if max(peaks) > _CUT * min(peaks):
            self.ax_.set_ylim(top=_CUT * min(peaks))
            self.ax_.set_ylabel("density (peaks cut)")
        if self.at_zero:
            self._masses()

    def _masses(self) -> None:
        """Stems at zero, on a scale of their own: probabilities are no densities."""
        top = self.ax_.get_ylim()[1]
        right = max(float(x[-1]) for x in self.x)
        for c, share in enumerate(self.at_zero):
            place = -right * 0.025 * (len(self.at_zero) - c)
            self.ax_.plot([place, place], [0, share * top], color=_colour(c), linewidth=3)
        self.ax_.set_ylim(top=top)
        scale = self.ax_.secondary_yaxis(
            "right", functions=(lambda height: height / top, lambda share: share * top)
        )
        scale.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        scale.set_ylabel("exactly 0 (bars at the left)")

    def _lattice(self, kwargs: dict[str, Any]) -> None:
        few = len(self.x[0]) <= _STEMS
        width = 0.7 / max(len(self.classes), 1)
        for c, (x, height) in enumerate(zip(self.x, self.height, strict=True)):
            style = {"color": _colour(c), **kwargs}
            if few:
                moved = x + (c - (len(self.classes) - 1) / 2) * width
                self.ax_.vlines(moved, 0, height, linewidth=1.6, **style)
                self.ax_.plot(moved, height, "o", markersize=3, label=self._label(c), **style)
            else:
                stroke = STROKES[c % len(STROKES)]
                self.ax_.step(
                    x, height, where="mid", linestyle=stroke, linewidth=1.5, label=self._label(c), **style
                )
        self.ax_.set_ylabel("probability")
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self._cut_zeros()

    def _cut_zeros(self) -> None:
        """A rare word is nearly always absent; what matters are the few times it is not."""
        if self.x[0][0] != 0:
            return
        beyond = max(float(height[1:].max(initial=0.0)) for height in self.height)
        highest = max(float(height[0]) for height in self.height)
        if highest > _CUT * beyond > 0:
            self.ax_.set_ylim(top=2 * beyond)
            self.ax_.set_ylabel("probability (zeros cut)")

    def _bars(self, kwargs: dict[str, Any]) -> None:
        width = 0.8 / max(len(self.classes), 1)
        for c, (x, height) in enumerate(zip(self.x, self.height, strict=True)):
            moved = x + (c - (len(self.classes) - 1) / 2) * width
            style = {"color": _colour(c), "width": 0.9 * width, **kwargs}
            self.ax_.bar(moved, height, label=self._label(c), **style)
        self.ax_.set_ylabel("probability")
        if not self.levels:
            self.ax_.set_xticks(self.x[0])
            return
        names = [literal(level, 18) for level in self.levels]
        crowded = len(names) * max(map(len, names)) > _CROWDED
        turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        self.ax_.set_xticks(self.x[0], names, **turned)
        # Room for the legend: bars leave none.
        self.ax_.margins(y=0.1 + 0.08 * len(self.classes))
        if self.levels_left_out:
            self.ax_.set_xlabel(
                f"and {counted(self.levels_left_out, 'level')} that {_tell(self.levels_left_out)} less"
            )


def _tell(number: int) -> str:
    return "tells" if number == 1 else "tell"


def _colour(c: int) -> str:
    return PALETTE[c] if c < len(PALETTE) else FAINT


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "<1 %"
    if share > 0.99:
        return f"{np.floor(1000 * share) / 10:g} %"
    return f"{100 * share:.0f} %"


def _column(fitted: ModelView, feature: Any) -> int:
    if isinstance(feature, str):
        found = np.flatnonzero(fitted.names == feature)
        if len(found) == 0:
            raise ValueError(f"the model has no feature {feature!r}: give a name that it has, or a column.")
        return int(found[0])
    if not 0 <= int(feature) < len(fitted.names):
        raise ValueError(f"column {feature!r} is not one of the {len(fitted.names)} features.")
    return int(feature)
