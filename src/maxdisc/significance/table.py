"""Reliability of a ranking: corrections for chance, p-values and false discovery rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from maxdisc.families import Family
from maxdisc.families.blocks import AnyFamily, AnyMoments, Columns, MixedMoments
from maxdisc.moments.class_moments import ClassMoments, ratio
from maxdisc.numerics.matrices import Booleans, Floats, Integers
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.significance.p_values import effective_share, p_values
from maxdisc.significance.permutation import permuted_p_values

#: Named columns of equal length.
NamedColumns: TypeAlias = dict[str, npt.NDArray[Any]]


def debiased(
    scores: npt.ArrayLike, n_statistics: npt.ArrayLike, n_classes: npt.ArrayLike, n_rows: npt.ArrayLike
) -> Floats:
    """Return divergences less their expectation by chance: ``max(0, JS_GM - L (C - 1) / n)``.

    If classes do not differ, n times js_gm is asymptotically chi-square with L (C - 1) degrees of freedom,
    so features with more statistics or fewer observed rows score higher by chance.
    """
    score, n = np.asarray(scores, dtype=np.float64), np.asarray(n_rows, dtype=np.float64)
    freedom = np.asarray(n_statistics) * np.maximum(np.asarray(n_classes) - 1, 0)
    bias = np.divide(
        freedom, n, out=np.full(np.broadcast_shapes(freedom.shape, n.shape), np.inf), where=n > 0
    )
    return np.maximum(score - bias, 0.0)


def q_values(p: npt.ArrayLike) -> Floats:
    """Return Benjamini-Hochberg q-values, shape (D,); NaN p-values are not counted."""
    values = np.asarray(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    adjusted = values[order] * len(order) / np.arange(1, len(order) + 1)
    q = np.full(values.shape, np.nan)
    q[order] = np.minimum(np.minimum.accumulate(adjusted[::-1])[::-1], 1.0)
    return q


@dataclass(frozen=True, eq=False)
class Significance:
    """P-values, q-values and stability over folds of each feature, all of shape (D,)."""

    p: Floats  # (D,)
    q: Floats  # (D,)
    stability: Floats  # (D,)

    @classmethod
    def of(cls, p: Floats, stability: Floats | None) -> Significance:
        """With the q-values of these p-values."""
        return cls(p, q_values(p), np.full(len(p), np.nan) if stability is None else stability)

    def select(self, columns: Integers) -> Significance:
        """Of some features, in any shape."""
        return Significance(self.p[columns], self.q[columns], self.stability[columns])


def moment_p_values(family: AnyFamily, moments: AnyMoments) -> Floats:
    """Return p-values of all features from moments, shape (D,); of a category, Bonferroni over its levels."""
    if not isinstance(family, Columns):
        assert isinstance(moments, ClassMoments)
        return p_values(family, moments)
    assert isinstance(moments, MixedMoments)
    pairs = zip(family.blocks, moments.parts, strict=True)
    return _of_columns(family, [p_values(block.family, part) for block, part in pairs])


def row_p_values(
    family: AnyFamily, rows: ArrayRows, n_permutations: int | None = None, seed: int = 0
) -> Floats:
    """Return permutation p-values of all features, shape (D,); levels of categories have exact ones."""
    given = (rows.labels, rows.n_classes, rows.weights, n_permutations, seed)
    if not isinstance(family, Columns):
        return permuted_p_values(family, rows.X, *given)
    (moments,) = rows.moments(cast(Family, family))[:1]
    assert isinstance(moments, MixedMoments)
    return _of_columns(
        family,
        [
            p_values(block.family, part)
            if block.has_levels
            else permuted_p_values(block.family, cells, *given)
            for block, part, cells in zip(family.blocks, moments.parts, rows.X.parts, strict=True)
        ],
    )


def _of_columns(columns: Columns, found: Sequence[Floats]) -> Floats:
    """Return the least p-value of a column's cells, times their number; two levels say the same."""
    least, count = np.full(columns.n_columns, np.inf), np.zeros(columns.n_columns)
    for block, p in zip(columns.blocks, found, strict=True):
        with np.errstate(invalid="ignore"):
            np.minimum.at(least, block.columns, p)
        here = np.bincount(block.columns, minlength=columns.n_columns)
        count += np.where(here == 2, 1, here) if block.has_levels else here
    return np.where(count > 0, np.minimum(least * np.maximum(count, 1), 1.0), 1.0)


def lucky_rows(moments: ClassMoments, prior: Floats) -> tuple[int, float]:
    """Return the classes with rows and the number of rows that :func:`debiased` needs for a model's scores.

    Under a prior p other than the shares of the n rows per class, chance adds L times the sum of ``p (1 -
    p) / n``, which is L (C - 1) over this number.
    """
    rows = moments.weight * effective_share(moments)
    some = (rows > 0) & (prior > 0)
    luck = float((prior[some] * (1 - prior[some]) / rows[some]).sum())
    n_classes = int(some.sum())
    return n_classes, (n_classes - 1) / luck if luck > 0 else float(rows.sum())


def ranking_columns(
    names: npt.NDArray[np.generic],
    columns: Integers,
    kept: Booleans,
    scores: Floats,
    without_luck: Floats,
    found: Significance,
    of_classes: Mapping[str, npt.NDArray[Any]],
) -> NamedColumns:
    """Return the columns of :meth:`maxdisc.MaxDiscClassifier.ranking_table`, a row per column."""
    all_features: NamedColumns = {
        "feature": np.asarray(names, dtype=object),
        "kept": kept,
        "score": scores,
        "debiased": without_luck,
        "p": found.p,
        "q": found.q,
        "stability": found.stability,
    }
    return {**{name: values[columns] for name, values in all_features.items()}, **of_classes}


def class_columns(
    family: AnyFamily, moments: AnyMoments, classes: npt.NDArray[np.generic], columns: Integers
) -> NamedColumns:
    """Return ``direction[label]``, ``mean[label]`` and ``deviation[label]`` of some features."""
    if isinstance(moments, ClassMoments):
        assert not isinstance(family, Columns)
        planes = _class_planes(family, moments.select(columns))
    else:
        assert isinstance(family, Columns)
        shape = (3, len(classes), moments.n_features)
        planes, left = np.full(shape, np.nan), np.ones(moments.n_features, dtype=np.bool_)
        planes[0] = 0.0
        for block, part in zip(family.blocks, moments.parts, strict=True):
            # Missing indicators come after the values of a column.
            own = np.flatnonzero(left[block.columns])
            if not block.has_levels:
                planes[:, :, block.columns[own]] = _class_planes(block.family, part.select(own))
            left[block.columns] = False
        planes = planes[:, :, columns]
    found: NamedColumns = {}
    labels = classes.tolist()
    found |= {f"direction[{label}]": planes[0, c].astype(np.int8) for c, label in enumerate(labels)}
    found |= {f"mean[{label}]": planes[1, c] for c, label in enumerate(labels)}
    if not np.isnan(planes[2]).all():
        found |= {f"deviation[{label}]": planes[2, c] for c, label in enumerate(labels)}
    return found


def _class_planes(family: Family, moments: ClassMoments) -> Floats:
    """Direction, mean and deviation of each class, shape (3, C, D)."""
    n, rest = np.broadcast_to(moments.cells, moments.sums.shape[1:]), moments.rest()
    if family.translates:
        mean, others = moments.means(), rest.means()
    else:
        mean, others = (ratio(m.sums[location_of(family)], m.cells) for m in (moments, rest))
    compared = (n > 0) & (np.broadcast_to(rest.cells, n.shape) > 0)
    # Means that differ by rounding are equal.
    compared &= np.abs(mean - others) > 1e-12 * np.maximum(np.abs(mean), np.abs(others))
    spread = np.full(n.shape, np.nan)
    if family.translates and family.n_statistics > 1:
        spread = np.sqrt(ratio(moments.centred()[1][1], n))
    return np.stack(
        [
            np.where(compared, np.sign(mean - others), 0.0),
            np.where(n > 0, mean, np.nan),
            np.where(n > 0, spread, np.nan),
        ]
    )


def location_of(family: Family) -> int:
    """Return the statistic that measures how much of a feature there is: x itself, else the first."""
    probe = np.array([0.25, 0.75])
    with np.errstate(all="ignore"):
        of_x = [np.array_equal(statistic, probe) for statistic in family.statistics(probe)]
    return of_x.index(True) if True in of_x else 0
