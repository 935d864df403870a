"""Curves of the densities of a feature in each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from maxdisc.densities.class_densities import ClassDensities
from maxdisc.divergences.class_divergences import one_vs_rest
from maxdisc.families import Family
from maxdisc.families.support import Support
from maxdisc.inspection.model_view import ModelView, Part, location
from maxdisc.numerics.matrices import Floats, Integers

# With more classes than this, only the extremes are drawn.
MOST_CLASSES = 5
# Where the densities have their mass is found by drawing from them, which every family can do.
_DRAWS = 4000
_TAIL = 0.002
# Of more levels of a category than this, only the most informative are drawn.
MOST_LEVELS = 12
# More points than this of a lattice are thinned out.
_LATTICE_POINTS = 121


@dataclass(frozen=True, eq=False)
class DensityCurves:
    """Densities or probabilities of one feature, per class, for a plot."""

    feature: str
    kind: Literal["density", "lattice", "bars"]
    classes: list[str]
    x: list[Floats]
    height: list[Floats]
    at_zero: list[float]
    left_out: int = 0
    constant: float | None = None
    levels: list[str] = field(default_factory=list)
    levels_left_out: int = 0
    missing: list[float] = field(default_factory=list)


def density_curves(
    model: Any, columns: Sequence[int] | Integers, most: int = MOST_CLASSES
) -> list[DensityCurves]:
    """Return the curves of some features of a fitted model, in that order."""
    fitted = ModelView.of(model)
    wanted = np.asarray(columns, dtype=np.intp)
    # In the order in which they are asked for, each once: a column has one place.
    once, again = np.unique(wanted, return_inverse=True)
    out: list[DensityCurves] = []
    for some, parts in fitted.densities(once):
        out += [_of_column(fitted, column, parts, k, most) for k, column in enumerate(once[some])]
    return [out[k] for k in again]


def _of_column(fitted: ModelView, column: int, parts: list[Part], k: int, most: int) -> DensityCurves:
    """Return the curves of the ``k``-th column that some densities are of."""
    name, classes = str(fitted.names[column]), fitted.classes
    curves = DensityCurves(name, "bars", [], [], [], [], constant=np.nan)
    shown: Integers = np.empty(0, dtype=np.intp)
    for part in parts:
        here = np.flatnonzero(part.at == k)
        if not len(here):
            continue
        if fitted.of_missing(part.block):
            # The last: missing cells complement the other cells of the column.
            share = part.densities.mean[0][:, here[0]]
            if len(shown):
                curves = replace(curves, missing=share[shown].tolist())
            elif part.densities.usable[here[0]]:
                both = np.c_[1 - share, share]
                curves = _levels(name, both, np.array(["there", "missing"]), _extremes(share, most), classes)
        elif fitted.blocks[part.block].has_levels:
            levels = fitted.levels(part.cells[here])
            curves, shown = _bars(name, part.densities, here, levels, classes, most)
        else:
            curves, shown = _curves(name, part.densities, here[0], classes, most)
            if fitted.is_truth(column) and curves.kind == "bars":
                curves = replace(curves, levels=["False", "True"], at_zero=[])
    return curves


def _bars(
    feature: str,
    densities: ClassDensities,
    cells: Integers,
    levels: npt.NDArray[np.object_],
    classes: list[str],
    most: int,
) -> tuple[DensityCurves, Integers]:
    """Return the bars of the most informative levels of a category."""
    share, apart = densities.mean[0][:, cells], one_vs_rest(densities)[:, cells]
    telling = np.argsort(-apart.max(axis=0), kind="stable")
    shown = _extremes(share[:, telling[0]], most)
    drawn = telling[:MOST_LEVELS]
    drawn = drawn[np.argsort(-share[:, drawn].mean(axis=0), kind="stable")]
    curves = _levels(feature, share[:, drawn], levels[drawn], shown, classes)
    return replace(curves, levels_left_out=len(cells) - len(drawn)), shown


def _levels(
    feature: str, share: Floats, levels: npt.NDArray[Any], shown: Integers, classes: list[str]
) -> DensityCurves:
    """Bars, from the share (C, n) of each level in each class."""
    return DensityCurves(
        feature,
        "bars",
        [classes[c] for c in shown],
        [np.arange(float(len(levels)))] * len(shown),
        list(share[shown]),
        [],
        len(classes) - len(shown),
        levels=[str(level) for level in levels],
    )


def _extremes(height: Floats, most: int) -> Integers:
    """Classes from the highest to the lowest; of many, those at either end."""
    order = np.argsort(-height, kind="stable")
    return order if len(order) <= most else np.r_[order[: most - most // 2], order[-(most // 2) :]]


def _curves(
    feature: str, densities: ClassDensities, k: int, classes: list[str], most: int
) -> tuple[DensityCurves, Integers]:
    family = densities.family
    kind = _kind(family.support)
    if not densities.usable[k]:
        nothing = DensityCurves(feature, kind, [], [], [], [], constant=float(densities.level[k]))
        return nothing, np.empty(0, dtype=np.intp)
    shown = _extremes(location(densities)[:, k], most)
    natural, origin = densities.natural[:, shown, k], densities.origin[k]
    rng = np.random.default_rng(0)
    shape = (*natural.shape, _DRAWS)
    draws = np.sort(family.sample(np.broadcast_to(natural[..., None], shape), rng), axis=-1)
    points = _points(family.support, kind, draws)
    height = [np.exp(family.log_density(x, natural[:, c, None])) for c, x in enumerate(points)]
    curves = DensityCurves(
        feature,
        kind,
        [classes[c] for c in shown],
        [x + origin for x in points],
        height,
        _at_zero(family, natural),
        len(classes) - len(shown),
    )
    return curves, shown


def _kind(support: Support) -> Literal["density", "lattice", "bars"]:
    if not support.lattice:
        return "density"
    return "bars" if support.high - support.low < 6 else "lattice"


def _at_zero(family: Family, natural: Floats) -> list[float]:
    if 0.0 not in family.support.atoms and not (family.support.lattice and family.support.contains(0.0)):
        return []
    return np.exp(family.log_density(np.zeros(natural.shape[1]), natural)).tolist()


def _points(support: Support, kind: str, draws: Floats) -> list[Floats]:
    """Return where each class's curve is computed, from sorted draws of shape (classes, draws)."""
    if kind == "bars":
        return [np.arange(support.low, support.high + 1)] * len(draws)
    tail = int(_TAIL * draws.shape[1])
    low, high = draws[:, tail].min(), draws[:, -1 - tail].max()
    if kind == "lattice":
        # At least 0 to 4, so that a rare word is seen to be rare.
        low, high = (support.low, max(high, 4.0)) if low - support.low < 0.3 * (high - low) else (low, high)
        return [np.unique(np.linspace(low, high, min(_LATTICE_POINTS, int(high - low) + 1)).round())] * len(
            draws
        )
    if support.atoms:
        high = max(high, draws.max()) or 1.0
    if np.isfinite(support.low) and low - support.low < 0.2 * (high - low):
        # The end itself may be an atom, or have an infinite density.
        low = support.low + 1e-3 * (high - support.low)
    even = np.linspace(low, high, 121)
    steps = np.linspace(tail, draws.shape[1] - 1 - tail, 61).astype(np.intp)
    inside = [own[(own >= low) & (own <= high)] for own in draws[:, steps]]
    # A narrow class would fall between even steps: its own quantiles do not.
    return [np.union1d(even, own) for own in inside]
