"""Rows in the partitions of any engine.

An engine runs a job on every partition and adds up the results. The operations of :class:`Rows`, and the
passes that find labels and words, are implemented here for all engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from maxdisc.decisions.sweep import Counted, Sweepable
from maxdisc.families import Family, Gaussian
from maxdisc.families.blocks import Columns
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.products import ClassProducts, observed_means
from maxdisc.numerics.matrices import Integers, Matrix, is_sparse
from maxdisc.rows.row_sources import ArrayRows, Folds
from maxdisc.rows.sampling import RowSample, RowTrial

#: Moments of all folds together that take more bytes than this come in blocks of features, a pass for each.
MOST_BYTES = 2**30

Summand = TypeVar("Summand")
#: From a partition to what is to be added up, entry by entry. Engines pickle it.
Job = Callable[[Any], list[Summand]]


class Engine(Protocol):
    """Holder of partitions of rows that can run a job on each of them."""

    def added(self, job: Job[Summand]) -> list[Summand]:
        """Run a job on every partition, and add up the results, entry by entry, as a tree.

        A partition without rows returns an empty list, which adds nothing. Raises ``ValueError`` if all do.
        """


def entrywise(one: list[Any], other: list[Any]) -> list[Any]:
    """Return the sum of two results of a job; an empty one adds nothing."""
    if not one or not other:
        return one or other
    return [a + b for a, b in zip(one, other, strict=True)]


@dataclass(frozen=True, eq=False)
class Looks:
    """Facts about rows before they are counted; facts of two partitions add.

    Of two examples, the one with a negative value is kept, because it rules families out.
    """

    example: Matrix  # (n, D)
    n_rows: int

    @classmethod
    def at(cls, X: Matrix) -> Looks:
        """At one partition."""
        if not X.shape[0]:
            return cls(X, 0)
        if is_sparse(X):
            worst = int(np.searchsorted(X.indptr, int(np.argmin(X.data)), "right")) - 1 if X.nnz else 0
        else:
            worst = int(np.nan_to_num(np.min(X, axis=1), nan=np.inf).argmin())
        return cls(X[[worst]], X.shape[0])

    def __add__(self, other: Looks) -> Looks:
        if self.example.shape[1] != other.example.shape[1]:
            counts = sorted((self.example.shape[1], other.example.shape[1]))
            raise ValueError(f"some partitions have {counts[0]} columns, others {counts[1]}.")
        kept = min((self, other), key=lambda look: (not look.n_rows, _least(look.example)))
        return replace(kept, n_rows=self.n_rows + other.n_rows)


def _least(X: Matrix) -> float:
    values = X.data if is_sparse(X) else X
    return float(np.nanmin(values, initial=0.0)) if values.size else 0.0


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """Labelled rows in the partitions of an engine; ``rows_of`` runs on the workers and must be picklable."""

    engine: Engine
    rows_of: Callable[[Any], ArrayRows]
    n_classes: int
    look: Looks | None = None
    most_bytes: int | None = None

    def _total(self, verb: Callable[[ArrayRows], list[Summand]]) -> list[Summand]:
        return self.engine.added(partial(_done, self.rows_of, verb))

    @cached_property
    def _look(self) -> Looks:
        if self.look is not None:
            return self.look
        (look,) = self._total(_looked)
        return look

    def example(self) -> Matrix:
        return self._look.example

    def moments(self, family: Family, folds: Folds | None = None) -> list[ClassMoments]:
        return self.counted(family, folds)[0]

    def counted(
        self, family: Family | Columns, folds: Folds | None = None, most: int = 0
    ) -> tuple[list[Any], list[RowSample]]:
        """Return the moments and, in the same pass, a sample of rows of each fold.

        Without ``most`` there are no samples.
        """
        n_features = self.example().shape[1]
        count = 1 if folds is None else folds.count + 1
        if isinstance(family, Columns):  # blocks of columns are made already
            found = self._total(partial(_moments, family=family, folds=folds, most=most))
            return found[:count], found[count:]
        width = 8 * family.n_statistics * self.n_classes * count
        # Each part is one more pass over all rows, so this is a limit of memory and no size of batches.
        step = max(1, (self.most_bytes or MOST_BYTES) // width)
        parts = [slice(start, min(start + step, n_features)) for start in range(0, n_features, step)]
        columns = [None] if len(parts) == 1 else parts
        job = partial(_moments, family=family, folds=folds)
        first, *others = (
            self._total(partial(job, columns=some, most=0 if number else most))
            for number, some in enumerate(columns)
        )
        found, drawn = [first[:count], *others], first[count:]
        if not others:
            return found[0], drawn
        return [ClassMoments.side_by_side(of_fold) for of_fold in zip(*found, strict=True)], drawn

    def products(
        self,
        columns: Integers,
        folds: Folds | None = None,
        per_class: bool = False,
        means: Any = None,
    ) -> list[ClassProducts]:
        if means is None and not is_sparse(self.example()):
            # Missing cells count as means of whole folds, not of a partition: sparse rows have none.
            means = observed_means(self.moments(Gaussian(), folds), columns)
        verb = partial(_products, columns=columns, folds=folds, per_class=per_class, means=means)
        return self._total(verb)

    def sweep(
        self, decision_of: Callable[[int], Sweepable[Counted]], sizes: Integers, folds: Folds
    ) -> list[Counted]:
        decisions = [decision_of(f) for f in range(folds.count)]
        return self._total(partial(_sweep, decisions=decisions, sizes=sizes, folds=folds))


def _done(
    rows_of: Callable[[Any], ArrayRows],
    verb: Callable[[ArrayRows], list[Summand]],
    partition: Any,
) -> list[Summand]:
    rows = rows_of(partition)
    return verb(rows) if rows.X.shape[0] else []


def _looked(rows: ArrayRows) -> list[Looks]:
    return [Looks.at(rows.X)]


def _moments(
    rows: ArrayRows,
    family: Family | Columns,
    folds: Folds | None,
    columns: slice | None = None,
    most: int = 0,
) -> list[Any]:
    drawn: list[RowSample] = []
    if most and folds is not None:
        drawn = rows.sweep(lambda _: RowTrial(most), np.array([1]), folds)
    if columns is not None:
        names = None if rows.names is None else np.asarray(rows.names)[columns]
        # Folds depend on whole rows.
        rows = replace(rows, X=rows.X[:, columns], names=names, source=rows.X)
    return [*rows.moments(cast(Family, family), folds), *drawn]


def _products(rows: ArrayRows, **given: Any) -> list[ClassProducts]:
    return rows.products(**given)


def _sweep(
    rows: ArrayRows, decisions: Sequence[Sweepable[Counted]], sizes: Integers, folds: Folds
) -> list[Counted]:
    return rows.sweep(decisions.__getitem__, sizes, folds)
