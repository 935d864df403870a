"""Read-only view of a fitted model for reports, plots and the CLI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from maxdisc.calibration.evidence import Evidence
from maxdisc.densities.class_densities import ClassDensities
from maxdisc.families.blocks import AnyFamily, Block, Columns
from maxdisc.fitting.documents import as_pipeline
from maxdisc.fitting.fitted_model import HoldsFittedModel
from maxdisc.numerics.matrices import (
    Booleans,
    Floats,
    Integers,
    Matrix,
    blocks,
    is_sparse,
    require_indices,
)
from maxdisc.rows.frames import BOOLEAN, WORD
from maxdisc.rows.schema import Schema
from maxdisc.significance.table import location_of


@dataclass(frozen=True)
class Performance:
    """Accuracy, and mean log-loss in nats."""

    accuracy: float
    log_loss: float


@dataclass(frozen=True, eq=False)
class Part:
    """Densities of some cells: columns, levels of categories, or missing indicators."""

    block: int
    cells: Integers  # (n,)
    at: Integers  # (n,)
    densities: ClassDensities


@dataclass(frozen=True, eq=False)
class ModelView:
    """Read-only view of a classifier, alone or at the end of a pipeline."""

    classifier: Any  # a fitted MaxDiscClassifier
    before: Pipeline | None
    names: npt.NDArray[np.object_]  # (D,)

    @classmethod
    def of(cls, model: Any, names: npt.ArrayLike | None = None) -> ModelView:
        """Take a model apart; ``names`` replace those it knows."""
        if isinstance(model, ModelView):
            return model
        before, classifier = None, as_pipeline(model)
        if isinstance(classifier, Pipeline):
            before, classifier = (classifier[:-1] if len(classifier) > 1 else None), classifier[-1]
        if not isinstance(classifier, HoldsFittedModel):
            raise ValueError(
                f"a MaxDiscClassifier, or a pipeline that ends in one, is needed, got {type(model).__name__}"
                + (f" that ends in {type(classifier).__name__}." if classifier is not model else ".")
            )
        check_is_fitted(classifier)
        found = np.array(_names(classifier, before) if names is None else names, dtype=object)
        if found.shape != (classifier.n_features_in_,):
            raise ValueError(
                f"names must be one for each of the {classifier.n_features_in_} features, got {found.shape}."
            )
        return cls(classifier, before, found)

    @property
    def family(self) -> AnyFamily:
        """The family of every feature's densities, or those of the columns of a table."""
        return self.classifier._family

    @cached_property
    def families(self) -> npt.NDArray[np.object_]:
        """The name of the family of each feature, shape (D,)."""
        out = np.empty(len(self.names), dtype=object)
        for family, columns in self.classifier.families_:
            out[columns] = family.name
        return out

    @property
    def family_counts(self) -> dict[str, int]:
        """The number of features of each family."""
        counted: dict[str, int] = {}
        for family, columns in self.classifier.families_:
            counted[family.name] = counted.get(family.name, 0) + len(self.names[columns])
        return dict(sorted(counted.items(), key=lambda item: -item[1]))

    @property
    def evidence_kind(self) -> str:
        """The kind of evidence: refined, calibrated, averaged (joint models), or raw."""
        evidence = self.classifier.evidence_
        if isinstance(evidence, Evidence):
            return "calibrated" if evidence.columns is None else "refined"
        return "raw" if evidence is None else "averaged"

    @property
    def held_out(self) -> Performance | None:
        """Performance on held-out folds; None if there were no folds."""
        evidence, path = self.classifier.evidence_, self.classifier.path_
        if evidence is not None:
            return Performance(evidence.accuracy, evidence.log_loss)
        if path is None:
            return None
        at = min(int(path.sizes.searchsorted(self.classifier.n_selected_)), len(path.sizes) - 1)
        return Performance(float(path.mean_accuracy[at]), float(path.mean_log_loss[at]))

    @property
    def majority(self) -> tuple[str, Performance] | None:
        """The largest class, and the baseline performance of it and of the class shares on the training rows.

        None where a prior was given, and the file no longer says how many rows each class had.
        """
        learnt = self.classifier._learnt
        shares = learnt.class_prior
        if learnt.prior is not None:
            if learnt.moments is None or not learnt.moments.weight.sum():
                return None
            shares = learnt.moments.weight / learnt.moments.weight.sum()
        most = int(shares.argmax())
        loss = float(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum())
        return self.classes[most], Performance(float(shares[most]), loss)

    @property
    def schema(self) -> Schema | None:
        """The schema of the columns of a table; None if there is one family."""
        return self.classifier._schema

    @cached_property
    def blocks(self) -> list[Block]:
        """The columns by family; one block where all are of one."""
        family = self.family
        if isinstance(family, Columns):
            return list(family.blocks)
        return [Block(family, np.arange(len(self.names)))]

    def densities(self, columns: Integers) -> Iterator[tuple[slice, list[Part]]]:
        """Yield ranges of ``columns`` with the densities of all their cells."""
        learnt = self.classifier._learnt
        if not self.mixed:
            for some, densities in learnt.densities(0, columns):
                yield some, [Part(0, columns[some], np.arange(some.stop - some.start), densities)]
            return
        place = np.full(learnt.n_features, -1, dtype=np.intp)
        for some in blocks(len(columns), 16 * len(learnt.classes)):
            place[columns[some]] = np.arange(some.stop - some.start)
            parts = []
            for b, block in enumerate(self.blocks):
                cells = np.flatnonzero(place[block.columns] >= 0)
                parts += [
                    Part(b, cells[few], place[block.columns[cells[few]]], densities)
                    for few, densities in learnt.densities(b, cells)
                ]
            yield some, parts
            place[columns[some]] = -1

    @property
    def mixed(self) -> bool:
        """Whether columns have families of their own."""
        return isinstance(self.family, Columns)

    def of_missing(self, block: int) -> bool:
        """Return whether the cells of a block are missing indicators."""
        informative = self.schema is not None and len(self.schema.informative) > 0
        return informative and block == len(self.blocks) - 1

    def levels(self, cells: Integers) -> npt.NDArray[np.object_]:
        """Return the names of levels of categories, by their cells in the block of categories."""
        assert self.schema is not None  # only tables have categories
        return self.schema.levels.names[cells]

    def called(self, columns: Integers, cells: Integers) -> npt.NDArray[np.object_]:
        """Return display names of cells: the column, with its level, or marked as missing."""
        out = np.array(self.names[columns], dtype=object)
        if not self.mixed:
            return out
        start = 0
        for b, block in enumerate(self.blocks):
            here = np.nonzero((cells >= start) & (cells < start + len(block.columns)))
            if self.of_missing(b):
                out[here] = [f"{name} missing" for name in out[here]]
            elif block.has_levels:
                levels = self.levels(cells[here] - start)
                out[here] = [f"{name} = {level}" for name, level in zip(out[here], levels, strict=True)]
            start += len(block.columns)
        return out

    def is_truth(self, column: int) -> bool:
        """Return whether a column held truth values when the model was fitted."""
        return self.schema is not None and bool(self.schema.kinds[column] == BOOLEAN)

    @property
    def written(self) -> Booleans:
        """The columns whose cells are text, even where they look like numbers; shape (D,)."""
        schema = self.schema
        if schema is None:
            return np.zeros(len(self.names), dtype=np.bool_)
        return np.asarray(schema.kinds == WORD)

    @cached_property
    def classes(self) -> list[str]:
        """The labels, as text."""
        return [str(label) for label in self.classifier.classes_.tolist()]

    def rows(self, X: Any) -> Matrix:
        """Raw rows or documents, as the classifier takes them."""
        require_indices(X)
        # Of one step the pipeline has nothing to add, but for single documents it takes long.
        before = self.before[0] if self.before is not None and len(self.before) == 1 else self.before
        rows = X if before in (None, "passthrough") else before.transform(X)
        if hasattr(rows, "shape"):
            return rows
        return np.asarray(rows, dtype=object if self.written.any() else np.float64)

    def values(self, rows: Matrix, columns: Integers) -> list[list[float | str]]:
        """Return the values of rows in some columns: numbers, categories as text, NaN where missing."""
        schema = self.schema
        if is_sparse(rows):
            return rows.tocsr()[:, columns].toarray().tolist()
        if schema is None:
            return np.asarray(rows, dtype=np.float64)[:, columns].tolist()
        cells = self.classifier._cells(rows)
        out = cells.numbers[:, columns].astype(object)
        worded = np.isin(columns, schema.categories)
        words = cells.worded(columns[worded]).written()
        out[:, worded] = np.where(words == None, np.nan, words)  # noqa: E711  # elementwise
        return out.tolist()

    def n_empty(self, rows: Matrix) -> int:
        """Return the number of rows without a value (or, if sparse, a stored value) of a selected feature."""
        columns = self.classifier.decision_.columns
        if is_sparse(rows):
            return int((abs(rows.tocsr()[:, columns]).sum(axis=1) == 0).sum())
        if self.schema is None:
            return int(np.isnan(np.asarray(rows, dtype=np.float64)[:, columns]).all(axis=1).sum())
        return int(self.classifier._cells(rows).missing()[:, columns].all(axis=1).sum())


def location(densities: ClassDensities) -> Floats:
    """Return how much of each feature each class has, shape (C, D), for comparing classes.

    The mean of x where x is among the family's statistics (the second, for an atom and a tail), else of its
    first statistic, such as log x.
    """
    return densities.mean[location_of(densities.family)]


def _names(classifier: Any, before: Pipeline | None) -> npt.ArrayLike:
    if before is not None and not hasattr(classifier, "feature_names_in_"):
        try:
            return before.get_feature_names_out()
        except (AttributeError, ValueError):
            pass  # some step has no names to give
    return _check_feature_names_in(classifier)
