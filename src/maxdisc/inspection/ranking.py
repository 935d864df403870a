"""Ranking of features, with the class that each distinguishes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxdisc.divergences.class_divergences import one_vs_rest
from maxdisc.fitting.fitted_model import WITHOUT_MOMENTS
from maxdisc.inspection.model_view import ModelView, Part, location
from maxdisc.numerics.matrices import Booleans, Floats, Integers
from maxdisc.significance.table import Significance

# How many features of each class a table remembers unless told.
PER_CLASS = 20


class RankedFeature(NamedTuple):
    """Row of a ranking: a feature, its divergence, the class that it distinguishes best, and its reliability.

    P-value, q-value and stability are NaN where they are not known. ``by`` is the feature itself, or
    its most informative part: a level of a category, as in ``colour = red``, or that it is missing.
    """

    feature: str
    score: float
    label: Any
    direction: int
    p: float = math.nan
    q: float = math.nan
    stability: float = math.nan
    by: str = ""


@dataclass(frozen=True, eq=False)
class RankingTable:
    """Features best first; iterating yields :class:`RankedFeature` rows."""

    features: npt.NDArray[np.object_]  # (n,)
    columns: Integers  # (n,)
    scores: Floats  # (n,)
    classes: npt.NDArray[np.generic]  # (n,)
    directions: npt.NDArray[np.int8]  # (n,)
    trust: Significance
    by: npt.NDArray[np.object_]  # (n,)
    _per_class: _PerClass = field(repr=False)

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[RankedFeature]:
        trust = self.trust
        columns = (self.scores, self.classes, self.directions, trust.p, trust.q, trust.stability, self.by)
        for feature, *values in zip(self.features, *(column.tolist() for column in columns), strict=True):
            yield RankedFeature(str(feature), *values)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists, for a frame or for JSON."""
        return {
            "feature": [str(feature) for feature in self.features],
            "score": self.scores.tolist(),
            "class": self.classes.tolist(),
            "direction": self.directions.tolist(),
            "p": self.trust.p.tolist(),
            "q": self.trust.q.tolist(),
            "stability": self.trust.stability.tolist(),
            "by": [str(by) for by in self.by],
        }

    def of_class(self, label: Any, n: int = 10) -> list[tuple[str, int, float]]:
        """Return (name, direction, divergence) of the features that distinguish one class from the rest.

        Features that the class has more of come first, because they are easier to read.
        """
        return [(row.by, row.direction, row.score) for row in self.rows_of_class(label, n)]

    def rows_of_class(self, label: Any, n: int = 10) -> list[RankedFeature]:
        """Return the features of :meth:`of_class` as ranking rows, scored for the class alone."""
        return self._per_class.of(label, n)


@dataclass(frozen=True, eq=False)
class _PerClass:
    """For each class its first ``M`` features, what they are told by, divergence, direction: shape (C, M)."""

    labels: npt.NDArray[np.generic]
    names: npt.NDArray[np.object_]
    by: npt.NDArray[np.object_]
    divergence: Floats
    higher: Booleans
    trust: Significance
    complete: bool

    def of(self, label: Any, n: int) -> list[RankedFeature]:
        found = np.flatnonzero(self.labels == label)
        if len(found) == 0:
            raise ValueError(f"{label!r} is not a class of this model.")
        if n > self.names.shape[1] and not self.complete:
            raise ValueError(
                f"this table has {self.names.shape[1]} features of each class: "
                f"for more, make it with per_class={n}."
            )
        c, trust = found[0], self.trust
        columns = (np.where(self.higher[c], 1, -1), trust.p[c], trust.q[c], trust.stability[c], self.by[c])
        rows = zip(self.names[c], self.divergence[c].tolist(), *(a.tolist() for a in columns), strict=True)
        return [
            RankedFeature(str(name), apart, label, *values) for name, apart, *values in rows if apart > 0
        ][:n]


def ranking_table(
    model: Any,
    names: npt.ArrayLike | None = None,
    n: int | None = None,
    per_class: int | None = None,
    q: float | None = None,
    trust: Significance | None = None,
) -> RankingTable:
    """Return the features of a fitted model, best first, with the class that each distinguishes."""
    fitted = ModelView.of(model, names)
    classifier = fitted.classifier
    if n is not None and n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}.")
    trust = classifier._learnt.significance if trust is None else trust
    trusted = np.ones(len(trust.q), dtype=np.bool_)
    if q is not None:
        if not 0 < q <= 1:
            raise ValueError(f"q must be a share between 0 and 1, got {q!r}.")
        if np.isnan(trust.q).all() and classifier._learnt.moments is None:
            raise ValueError(WITHOUT_MOMENTS)
        if np.isnan(trust.q).all():
            raise ValueError(
                f"there are no q-values: moments do not tell p-values of {fitted.family.name} features; "
                "MaxDiscClassifier.ranking_table(X, y), or maxdisc rank with --data, finds them from rows."
            )
        trusted = trust.q <= q
    columns = classifier.ranking_[: classifier.n_selected_ if n is None and q is None else None]
    columns = columns[trusted[columns]][:n]
    best, direction = np.empty(len(columns), dtype=np.intp), np.empty(len(columns), dtype=np.int8)
    by = np.empty(len(columns), dtype=object)
    for block, told in _apart(fitted, columns):
        # Two classes are set apart by the same amount: the one that has more of the feature is named.
        near = told.apart >= (1 - 1e-9) * told.apart.max(axis=0)
        first = np.where(near, 1 + told.higher, 0).argmax(axis=0)
        best[block] = first
        direction[block] = np.where(np.take_along_axis(told.higher, first[None], axis=0)[0], 1, -1)
        by[block] = fitted.called(columns[block], np.take_along_axis(told.cell, first[None], axis=0)[0])
    return RankingTable(
        fitted.names[columns],
        columns,
        classifier.scores_[columns],
        classifier.classes_[best],
        direction,
        trust.select(columns),
        by,
        _first_of_each_class(fitted, per_class or max(n or 0, PER_CLASS), trust, trusted),
    )


@dataclass(frozen=True, eq=False)
class _Told:
    """Divergence, direction and most informative cell of columns per class, all of shape (C, B)."""

    apart: Floats
    higher: Booleans
    cell: Integers

    @classmethod
    def of(cls, fitted: ModelView, parts: list[Part], n_columns: int) -> _Told:
        ends = np.cumsum([0, *(len(block.columns) for block in fitted.blocks)])
        cells = np.concatenate([ends[part.block] + part.cells for part in parts])
        apart = np.hstack([one_vs_rest(part.densities) for part in parts])
        higher = np.hstack([location(d) > location(d.rest) for d in (part.densities for part in parts)])
        if not fitted.mixed:
            return cls(apart, higher, np.broadcast_to(cells, apart.shape))
        at = np.concatenate([part.at for part in parts])
        order = np.argsort(at, kind="stable")
        cells, apart, higher, at = cells[order], apart[:, order], higher[:, order], at[order]
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        group = np.cumsum(np.diff(at, prepend=-1) != 0) - 1
        highest = np.maximum.reduceat(apart, starts, axis=1)[:, group]
        which = np.where(apart == highest, np.arange(len(at)), len(at))
        loudest = np.minimum.reduceat(which, starts, axis=1)
        shape, there = (len(apart), n_columns), at[starts]
        out = cls(np.zeros(shape), np.zeros(shape, dtype=np.bool_), np.full(shape, -1))
        out.apart[:, there] = np.add.reduceat(apart, starts, axis=1)
        out.higher[:, there] = np.take_along_axis(higher, loudest, axis=1)
        out.cell[:, there] = cells[loudest]
        return out


def _apart(fitted: ModelView, columns: Integers) -> Iterator[tuple[slice, _Told]]:
    """Yield some columns at a time: what they say of each class."""
    for some, parts in fitted.densities(columns):
        yield some, _Told.of(fitted, parts, some.stop - some.start)


def _first_of_each_class(fitted: ModelView, size: int, trust: Significance, trusted: Booleans) -> _PerClass:
    """Return the first features of every class among the kept ones."""
    columns = fitted.classifier.decision_.columns
    columns = columns[trusted[columns]]
    n_classes = len(fitted.classifier.classes_)
    position, cell = np.empty((2, n_classes, 0), dtype=np.intp)
    divergence, higher = np.empty((n_classes, 0)), np.empty((n_classes, 0), dtype=np.bool_)
    for block, told in _apart(fitted, columns):
        here = np.broadcast_to(np.arange(block.start, block.stop), told.apart.shape)
        position, cell = np.hstack([position, here]), np.hstack([cell, told.cell])
        divergence, higher = np.hstack([divergence, told.apart]), np.hstack([higher, told.higher])
        order = np.lexsort([position, -divergence, ~higher | (divergence == 0)])[:, :size]
        position = np.take_along_axis(position, order, axis=1)
        cell = np.take_along_axis(cell, order, axis=1)
        divergence = np.take_along_axis(divergence, order, axis=1)
        higher = np.take_along_axis(higher, order, axis=1)
    return _PerClass(
        fitted.classifier.classes_,
        fitted.names[columns[position]],
        fitted.called(columns[position], cell),
        divergence,
        higher,
        trust.select(columns[position]),
        complete=position.shape[1] == len(columns),
    )
