"""Fits on labelled partitions, for all engines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from maxdisc.classifier import MaxDiscClassifier
from maxdisc.fitting.settings import Settings
from maxdisc.numerics.matrices import Matrix, require_indices
from maxdisc.rows.frames import cells_of, column_names, is_frame
from maxdisc.rows.partitions import Engine, Looks, PartitionedRows
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.rows.schema import Schema
from maxdisc.rows.table_totals import TableTotals
from maxdisc.rows.validation import require_labels, require_numbers, sorted_union
from maxdisc.words.vectorizer import TermFrequencyVectorizer

Model = TypeVar("Model")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows of a partition with labels; ``told`` adds their location to an error message."""

    X: Any
    y: Any  # (n,)
    weights: Any = None  # (n,)
    told: Callable[[str], str] = str

    def __len__(self) -> int:
        return int(_length(self.X))

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add the location of these rows to error messages."""
        try:
            yield
        except ValueError as error:
            raise ValueError(self.told(str(error))) from None

    def labels(self) -> npt.NDArray[Any]:
        """Return the labels, as ``fit`` would see them, shape (n,)."""
        for name, part in (("y", self.y), ("sample_weight", self.weights)):
            if part is not None and _length(part) != len(self):
                raise ValueError(f"{len(self)} rows of X, but {_length(part)} in {name}.")
        require_labels(self.y)
        y = check_array(self.y, ensure_2d=False, dtype=None, ensure_min_samples=0, input_name="y")
        return np.asarray(column_or_1d(y))

    def kept(self) -> npt.NDArray[np.bool_]:
        """Return which rows have positive weight, shape (n,)."""
        if self.weights is None:
            return np.ones(len(self), dtype=np.bool_)
        return np.asarray(self.weights, dtype=np.float64) != 0


def _length(part: Any) -> int:
    return part.shape[0] if hasattr(part, "shape") else len(part)


def fit_labelled(
    estimator: Model,
    engine: Engine,
    classes: npt.ArrayLike | None = None,
    names: npt.NDArray[np.object_] | None = None,
) -> Model:
    """Fit a classifier, or a vectorizer and a classifier, to the partitions of an engine.

    If anything fails, the estimator is left unchanged.
    """
    vectorizer, classifier = taken_apart(estimator)
    if vectorizer is not None:
        vectorizer = clone(vectorizer)
    settings = Settings.of(classifier.get_params(deep=False))
    # Frames have named columns; matrices have none of a kind of their own.
    columns = vectorizer is None and names is not None and settings.reads_frames()
    look, schema = None, None
    if classes is None or vectorizer is not None or columns:
        found, seen = engine.added(partial(_looked_up, vectorizer=vectorizer, columns=columns))
        classes = found.settled() if classes is None else classes
        if isinstance(seen, TableTotals):
            settings.require_mixable(True)
            schema = settings.schema_of(seen, np.asarray(classes))
            look = Looks(schema.example(), 1)
        elif vectorizer is None:
            look = seen
        else:
            vectorizer.fit_totals(seen)
            look = Looks(sp.csr_array((1, len(vectorizer.terms_))), 1)
    known = np.asarray(classes)
    rows = PartitionedRows(engine, _Coded(known, names, vectorizer, schema), len(known), look)
    classifier.fit_rows(rows, known, schema)
    if names is not None:
        classifier.feature_names_in_ = names
    if isinstance(estimator, Pipeline):
        estimator.steps[0] = (estimator.steps[0][0], vectorizer)
    return estimator


def taken_apart(estimator: Any) -> tuple[TermFrequencyVectorizer | None, Any]:
    """Return the vectorizer, if any, and the classifier; raise ``ValueError`` for others."""
    if isinstance(estimator, MaxDiscClassifier):
        return None, estimator
    steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
    if [type(step) for step in steps] == [TermFrequencyVectorizer, MaxDiscClassifier]:
        return steps[0], steps[1]
    shown = ", ".join(type(step).__name__ for step in steps)
    raise ValueError(
        "an engine fits a MaxDiscClassifier, or a Pipeline of a TermFrequencyVectorizer and a "
        f"MaxDiscClassifier, got {shown}."
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """The labels of some rows, sorted; those of two partitions add."""

    classes: npt.NDArray[Any]

    @classmethod
    def among(cls, labels: npt.NDArray[Any]) -> _Found:
        try:
            return cls(np.unique(labels))
        except TypeError:
            raise ValueError("labels must be all of one type: some are words, others are not.") from None

    def __add__(self, other: _Found) -> _Found:
        parts = [part.classes for part in (self, other) if len(part.classes)]
        return _Found(sorted_union(*parts) if parts else self.classes)

    def settled(self) -> npt.NDArray[Any]:
        if not len(self.classes):
            raise ValueError("sample weights must contain at least one non-zero number: all are zero.")
        if self.classes.dtype.kind not in "US":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # each of these is there once, which is not what rows are
                check_classification_targets(self.classes)
        return self.classes


def _looked_up(
    part: Labelled, vectorizer: TermFrequencyVectorizer | None, columns: bool = False
) -> list[Any]:
    """Return the labels of a partition, and a look at its rows or columns, or the words of its documents."""
    if not len(part):
        return []
    kept = part.kept()
    labels = part.labels()[kept]
    found = _Found.among(labels)
    if columns and is_frame(part.X):
        if not kept.any():
            return []
        weights = None if part.weights is None else np.asarray(part.weights, dtype=np.float64)[kept]
        names = column_names(part.X)
        return [found, TableTotals.of(cells_of(part.X, names)[kept], labels, names, weights)]
    if vectorizer is not None:
        return [found, vectorizer.totals(part.X)]
    X = _numbers(part.X)
    return [found, Looks.at(X if kept.all() else X[np.flatnonzero(kept)])]


@dataclass(frozen=True, eq=False)
class _Coded:
    """Conversion of a partition to rows and label codes, as in ``fit``."""

    classes: npt.NDArray[Any]
    names: npt.NDArray[np.object_] | None
    vectorizer: TermFrequencyVectorizer | None
    schema: Schema | None = None

    def __call__(self, part: Labelled) -> ArrayRows:
        n_classes, kept = len(self.classes), part.kept()
        if not kept.any():
            return ArrayRows(np.empty((0, 1)), np.empty(0, dtype=np.intp), n_classes)
        codes = self._codes(part.labels()[kept])
        if self.schema is not None:
            X = self.schema.encoded(cells_of(part.X, self.names), self.names)
        else:
            X = _numbers(part.X) if self.vectorizer is None else self.vectorizer.transform(part.X)
        X = X if kept.all() else X[np.flatnonzero(kept)]
        weights = None if part.weights is None else np.asarray(part.weights, dtype=np.float64)[kept]
        return ArrayRows(X, codes, n_classes, weights, self.names)

    def _codes(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """Return the position of each label among the classes."""
        places = {label: place for place, label in enumerate(self.classes.tolist())}
        try:
            return np.array([places[label] for label in labels.tolist()], dtype=np.intp)
        except KeyError as unknown:
            raise ValueError(f"y has a label that is not among the classes given: {unknown}.") from None


def _numbers(X: Any) -> Matrix:
    """Return rows as ``MaxDiscClassifier.fit`` takes them; ranges are checked, by column, by the family."""
    kinds = (np.float64, np.float32)
    require_indices(X)
    try:
        return check_array(X, accept_sparse="csr", dtype=kinds, ensure_all_finite=False, ensure_min_samples=0)
    except ValueError as error:
        if "could not convert string to float" in str(error):
            require_numbers(X)
        raise
