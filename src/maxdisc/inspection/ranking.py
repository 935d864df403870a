"""The features from best to worst, and what each says: which class it sets apart, by more or less of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxdisc.divergences.class_divergences import one_vs_rest
from maxdisc.fitting.ranking_table import significance
from maxdisc.inspection.model_view import ModelView, Part, location
from maxdisc.numerics.matrices import Booleans, Floats, Integers
from maxdisc.significance.table import Significance

# How many features of each class a table remembers unless told.
PER_CLASS = 20


class RankedFeature(NamedTuple):
    """One row of a ranking: a feature, its divergence, the class it sets apart most, and how far to trust it.

    P-value, q-value and stability are NaN where they are not known. ``by`` is the feature itself, or what of
    it tells most: the level of a category, as in ``colour = red``, or that it is missing.
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
    """Features best first; iterating gives one :class:`RankedFeature` after another.

    Parameters
    ----------
    features : ndarray of shape (n,)
        Names.
    columns : ndarray of shape (n,)
        Where they stand in X.
    scores : ndarray of shape (n,)
        Their divergences, by the model's own measure.
    classes : ndarray of shape (n,)
        The class that each sets apart most from all the others together.
    directions : ndarray of shape (n,)
        +1 if that class has more of it than the others, -1 if less.
    trust : Significance
        P-values, q-values and stability, each of shape (n,).
    by : ndarray of shape (n,)
        What it has more or less of: the feature, a level of a category (``colour = red``), or missing cells.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.inspection.ranking import ranking_table
    >>> iris = load_iris(as_frame=True)
    >>> model = MaxDiscClassifier().fit(iris.data, iris.target_names[iris.target])
    >>> table = ranking_table(model, n=2)
    >>> for row in table:
    ...     print(row.feature, row.label, row.direction)
    petal length (cm) setosa -1
    petal width (cm) setosa -1
    >>> [(name, sign) for name, sign, _ in table.of_class("virginica", 2)]
    [('petal length (cm)', 1), ('petal width (cm)', 1)]
    """

    features: npt.NDArray[np.object_]
    columns: Integers
    scores: Floats
    classes: npt.NDArray[np.generic]
    directions: npt.NDArray[np.int8]
    trust: Significance
    by: npt.NDArray[np.object_]
    _per_class: _PerClass = field(repr=False)

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[RankedFeature]:
        trust = self.trust
        columns = (self.scores, self.classes, self.directions, trust.p, trust.q, trust.stability, self.by)
        for feature, *values in zip(self.features, *(column.tolist() for column in columns), strict=True):
            yield RankedFeature(str(feature), *values)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists, for a frame or for JSON."""
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
        """The kept features that set one class apart most from all the others together.

        What a class has more of is easier to read than what it lacks, and comes first.

        Parameters
        ----------
        label : label
            One of the model's classes.
        n : int
            How many features, at most.

        Returns
        -------
        list of (str, int, float)
            Name (of a category, with the level that tells most), direction and divergence in nats; those
            that say nothing of the class are left out.
        """
        return [(row.by, row.direction, row.score) for row in self.rows_of_class(label, n)]

    def rows_of_class(self, label: Any, n: int = 10) -> list[RankedFeature]:
        """What :meth:`of_class` lists, as rows of a ranking; scores are divergences of the class alone.

        Parameters
        ----------
        label : label
            One of the model's classes.
        n : int
            How many features, at most.
        """
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
    """The features of a fitted model, best first, with the class that each sets apart.

    Parameters
    ----------
    model : MaxDiscClassifier or Pipeline
        Fitted; a pipeline must end in a MaxDiscClassifier.
    names : array-like of shape (D,), optional
        Names of the features; by default those the model knows.
    n : int, optional
        How many features; by default those that the model keeps.
    per_class : int, optional
        How many features of each class :meth:`RankingTable.of_class` can give; by default ``n``, and 20 at
        least.
    q : float, optional
        Leave out features with a larger q-value: of what is left, this share at most is there by luck.
    trust : Significance, optional
        P-values and stability of all features; by default as far as the model's moments tell.

    Returns
    -------
    RankingTable
        Of ``n`` rows, or fewer. Features that the model does not keep follow those it keeps.
    """
    fitted = ModelView.of(model, names)
    classifier = fitted.classifier
    if n is not None and n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}.")
    trust = significance(classifier._learnt, classifier.moments_) if trust is None else trust
    trusted = np.ones(len(trust.q), dtype=np.bool_)
    if q is not None:
        if not 0 < q <= 1:
            raise ValueError(f"q must be a share between 0 and 1, got {q!r}.")
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
    """What some columns say of each class; all of shape (C, B).

    Parameters
    ----------
    apart : ndarray
        How far each class is from all the others together, over all cells of a column.
    higher : ndarray
        Whether it has more of the cell that tells most.
    cell : ndarray
        Which cell that is, counted over all blocks; -1 for a column without any.
    """

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
    """Some columns at a time: what they say of each class."""
    for some, parts in fitted.densities(columns):
        yield some, _Told.of(fitted, parts, some.stop - some.start)


def _first_of_each_class(fitted: ModelView, size: int, trust: Significance, trusted: Booleans) -> _PerClass:
    """The first features of every class among all kept ones; memory grows with C times ``size`` only."""
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
