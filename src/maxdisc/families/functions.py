"""Named feature functions for maximum-entropy densities.

They compare equal by value, and model files can store them. Any other elementwise function of an array works
as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Floats

__all__ = [
    "Cosine",
    "Deviation",
    "Indicator",
    "LogAbove",
    "LogBelow",
    "Power",
    "Sine",
    "Spline",
    "Table",
]

#: From values of any shape to numbers of that shape.
FeatureFunction: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class Power:
    """``x ** order``.

    Examples
    --------
    >>> from maxdisc.families.functions import Power
    >>> Power(2)(3.0)
    9.0
    """

    order: int

    def __post_init__(self) -> None:
        if not isinstance(self.order, int) or not 1 <= self.order <= MOST_MOMENTS:
            raise ValueError(f"the order of a power is 1 to {MOST_MOMENTS}, got {self.order!r}.")

    def __call__(self, x: Any) -> Any:
        result = x
        for _ in range(self.order - 1):
            result = result * x
        return result


@dataclass(frozen=True)
class LogAbove:
    """``log(x - point)``: log x for the point 0.

    Examples
    --------
    >>> from maxdisc.families.functions import LogAbove
    >>> float(LogAbove()(1.0))
    0.0
    """

    point: float = 0.0

    def __call__(self, x: Any) -> Any:
        return np.log(np.asarray(x) - self.point)

    def of_gaps(self, gaps: tuple[Floats, Floats], support: Support) -> Floats | None:
        """Return values from the distances to the ends of the support, which are more precise than x."""
        return np.asarray(np.log(gaps[0])) if support.low == self.point else None


@dataclass(frozen=True)
class LogBelow:
    """``log(point - x)``: log(1 - x) for the point 1.

    Examples
    --------
    >>> from maxdisc.families.functions import LogBelow
    >>> float(LogBelow(3.0)(2.0))
    0.0
    """

    point: float = 1.0

    def __call__(self, x: Any) -> Any:
        return np.log(self.point - np.asarray(x)) if self.point != 1.0 else np.log1p(-np.asarray(x))

    def of_gaps(self, gaps: tuple[Floats, Floats], support: Support) -> Floats | None:
        """Return values from the distances to the ends of the support, which are more precise than x."""
        return np.asarray(np.log(gaps[1])) if support.high == self.point else None


@dataclass(frozen=True)
class Deviation:
    """``|x - point|``.

    Examples
    --------
    >>> from maxdisc.families.functions import Deviation
    >>> float(Deviation(2.0)(-1.0))
    3.0
    """

    point: float = 0.0

    def __call__(self, x: Any) -> Any:
        return np.abs(np.asarray(x) - self.point)

    @property
    def breaks(self) -> tuple[float, ...]:
        """The points where it is not smooth."""
        return (self.point,)


@dataclass(frozen=True)
class Indicator:
    """1 where ``low <= x < high``, else 0.

    Examples
    --------
    >>> from maxdisc.families.functions import Indicator
    >>> Indicator(0.0, 1.0)([0.0, 1.0])
    array([1., 0.])
    """

    low: float = -np.inf
    high: float = np.inf

    def __call__(self, x: Any) -> Any:
        values = np.asarray(x)
        return ((values >= self.low) & (values < self.high)).astype(np.float64)

    @property
    def breaks(self) -> tuple[float, ...]:
        """The points where it is not smooth."""
        return tuple(end for end in (self.low, self.high) if np.isfinite(end))


@dataclass(frozen=True)
class Cosine:
    """``cos(2 pi order x / period)``: with :class:`Sine`, for angles and times of day.

    Examples
    --------
    >>> from maxdisc.families.functions import Cosine
    >>> float(Cosine(period=24.0)(12.0))
    -1.0
    """

    order: int = 1
    period: float = 2 * np.pi

    def __call__(self, x: Any) -> Any:
        return np.cos(2 * np.pi * self.order / self.period * np.asarray(x))


@dataclass(frozen=True)
class Sine:
    """``sin(2 pi order x / period)``.

    Examples
    --------
    >>> from maxdisc.families.functions import Sine
    >>> float(Sine(period=24.0)(6.0))
    1.0
    """

    order: int = 1
    period: float = 2 * np.pi

    def __call__(self, x: Any) -> Any:
        return np.sin(2 * np.pi * self.order / self.period * np.asarray(x))


@dataclass(frozen=True)
class Spline:
    """``max(x - knot, 0) ** degree``: powers and some of these make the logarithm of the density a spline.

    Examples
    --------
    >>> from maxdisc.families.functions import Spline
    >>> Spline(1.0, degree=2)([0.0, 3.0])
    array([0., 4.])
    """

    knot: float
    degree: int = 3

    def __call__(self, x: Any) -> Any:
        return np.maximum(np.asarray(x) - self.knot, 0.0) ** self.degree

    @property
    def breaks(self) -> tuple[float, ...]:
        """The points where it is not smooth."""
        return (self.knot,)


@dataclass(frozen=True)
class Table:
    """A value for each point of a lattice, starting at ``low``, such as a base measure on few points.

    Examples
    --------
    >>> from maxdisc.families.functions import Table
    >>> Table(1.0, (0.5, 0.25))([2.0, 1.0])
    array([0.25, 0.5 ])
    """

    low: float
    values: tuple[float, ...]

    def __call__(self, x: Any) -> Any:
        at = np.rint(np.asarray(x) - self.low).astype(np.intp)
        return np.asarray(self.values)[np.clip(at, 0, len(self.values) - 1)]


#: The highest order that :func:`moments` accepts.
MOST_MOMENTS = 6
#: Every function that a model file can hold.
FUNCTIONS: dict[str, type] = {
    kind.__name__: kind
    for kind in (Power, LogAbove, LogBelow, Deviation, Indicator, Cosine, Sine, Spline, Table)
}


def moments(count: int) -> tuple[Power, ...]:
    """Return the functions x, x^2, ..., up to that power, at most 6.

    Examples
    --------
    >>> from maxdisc.families import moments
    >>> moments(2)
    (Power(order=1), Power(order=2))
    """
    if not isinstance(count, int) or not 1 <= count <= MOST_MOMENTS:
        raise ValueError(f"moments(l) takes l from 1 to {MOST_MOMENTS}, got {count!r}.")
    return tuple(Power(order) for order in range(1, count + 1))


def spelled(function: Any) -> tuple[str, list[Any]] | None:
    """Return the name and the parameters of a function of this module; None for any other."""
    kind: Any = type(function)
    if kind not in FUNCTIONS.values():
        return None
    return kind.__name__, [getattr(function, f.name) for f in fields(kind)]
