"""What a density lives on and must respect, and the coordinate in which its support is integrated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from maxdisc.families.functions import FeatureFunction, moments
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Floats

# The coordinate ends where doubles do.
END = 690.0

PROBLEMS_AT_A_TIME = 512


@dataclass(frozen=True)
class Problem:
    """Support, L functions with prescribed means, and an optional log base measure."""

    support: Support
    functions: tuple[FeatureFunction, ...]
    log_base: FeatureFunction | None = None

    def __post_init__(self) -> None:
        support = self.support
        if not self.functions:
            raise ValueError("a maximum-entropy density needs at least one function.")
        if support.lattice and not np.isfinite(support.low):
            raise ValueError("a lattice needs a finite lower end.")
        if support.low >= support.high:
            raise ValueError(f"{support} has no room for a density.")
        if self.translates and len(self.functions) == 1:
            raise ValueError(
                "on the line a mean alone has no maximum-entropy density: use moments(2) or more."
            )

    @cached_property
    def powers(self) -> bool:
        """Whether the functions are x, x^2, ..., and nothing else is given."""
        plain = self.log_base is None and not self.support.atoms and len(self.functions) <= 6
        return plain and self.functions == moments(len(self.functions))

    @property
    def translates(self) -> bool:
        """Whether the functions are powers on the whole line, so that any origin will do."""
        return self.powers and bool(np.isinf(self.support.low) and np.isinf(self.support.high))

    @property
    def tail(self) -> float:
        """The sign that the parameter of the highest power must not have; 0 on bounded supports."""
        if not self.powers or np.isfinite(self.support.high - self.support.low):
            return 0.0
        return -1.0 if self.n_statistics % 2 and np.isinf(self.support.low) else 1.0

    @property
    def n_statistics(self) -> int:
        """L."""
        return len(self.functions)

    @cached_property
    def breaks(self) -> Floats:
        """Points inside the support at which some function is not smooth."""
        functions = (*self.functions, self.log_base)
        points = {b for f in functions for b in getattr(f, "breaks", ())}
        return np.array(sorted(b for b in points if self.support.low < b < self.support.high))

    def evaluate(self, nodes: Nodes) -> Floats:
        """Return the functions, and after them the log base measure, at some nodes; shape (L + 1, ...)."""
        out = np.zeros((self.n_statistics + 1, *nodes.x.shape))
        functions = [*self.functions] + [f for f in (self.log_base,) if f is not None]
        with np.errstate(all="ignore"):
            for row, function in zip(out, functions, strict=False):
                gaps = getattr(function, "of_gaps", None)
                values = None if gaps is None else gaps((nodes.above, nodes.below), self.support)
                row[:] = function(nodes.x) if values is None else values
        return out


class Nodes(NamedTuple):
    """Points of a support: where they are, how far from either end, and the log slope of the coordinate."""

    x: Floats
    above: Floats
    below: Floats
    log_slope: Floats


def nodes_at(support: Support, t: Floats) -> Nodes:
    """Return the points of a coordinate on (-END, END), or the points of a lattice."""
    low, high = support.low, support.high
    if support.lattice:
        return Nodes(t, t - low, high - t, np.zeros(t.shape))
    if np.isfinite(low) and np.isfinite(high):
        width = high - low
        above, below = width / (1 + np.exp(-t)), width / (1 + np.exp(t))
        slope = np.log(width) - np.abs(t) - 2 * np.log1p(np.exp(-np.abs(t)))
        return Nodes(np.where(t < 0, low + above, high - below), above, below, slope)
    if np.isfinite(low):
        return Nodes(low + np.exp(t), np.exp(t), np.full(t.shape, np.inf), t)
    if np.isfinite(high):
        return Nodes(high - np.exp(t), np.full(t.shape, np.inf), np.exp(t), t)
    infinite = np.full(t.shape, np.inf)
    return Nodes(np.sinh(t), infinite, infinite, np.abs(t) + np.log1p(np.exp(-2 * np.abs(t))) - np.log(2))


def coordinate_of(support: Support, x: Floats) -> Floats:
    """Return the inverse of :func:`nodes_at` for continuous supports."""
    low, high = support.low, support.high
    with np.errstate(divide="ignore"):
        if np.isfinite(low) and np.isfinite(high):
            t = np.log(x - low) - np.log(high - x)
        elif np.isfinite(low):
            t = np.log(x - low)
        elif np.isfinite(high):
            t = np.log(high - x)
        else:
            t = np.arcsinh(x)
    return np.clip(np.nan_to_num(t), -END, END)
