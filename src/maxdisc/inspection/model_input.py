"""Input and predictions of a loaded model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.files import Batch, Reading
from maxdisc.inspection.matching import MatchedColumns
from maxdisc.inspection.model_view import ModelView
from maxdisc.numerics.matrices import Floats, Matrix, is_sparse
from maxdisc.words.scaling import CountScaler


@dataclass(frozen=True, eq=False)
class ModelInput:
    """Model with its columns and the data description of its file."""

    estimator: Any
    fitted: ModelView
    text: str | None
    about: dict[str, Any]

    @classmethod
    def of(cls, estimator: Any, about: dict[str, Any] | None = None) -> Self:
        """Take a fitted model apart."""
        fitted, about = ModelView.of(estimator), about or {}
        return cls(estimator, fitted, about.get("text", "text") if takes_text(fitted) else None, about)

    @cached_property
    def readings(self) -> Mapping[str, Reading]:
        """How columns are read that are not simply numbers or words; as they were when it was fitted."""
        kept = self.about.get("readings", {})
        return {feature: Reading.of(stored, feature) for feature, stored in kept.items()}

    @property
    def header(self) -> bool:
        """Whether tables have a row of names, as that of the fit had."""
        return bool(self.about.get("header", True))

    @property
    def classifier(self) -> Any:
        """The classifier alone."""
        return self.fitted.classifier

    @property
    def classes(self) -> list[str]:
        """The labels, as text."""
        return self.fitted.classes

    @property
    def features(self) -> list[str]:
        """The columns of a table that it wants; none for documents and for svmlight."""
        first = self.classifier if self.fitted.before is None else self.fitted.before[0]
        names = getattr(first, "feature_names_in_", None)
        return [] if self.text is not None or names is None else [str(name) for name in names]

    @property
    def words(self) -> list[str]:
        """The columns that are always read as text: the categories."""
        return self.fitted.names[self.fitted.written].tolist()

    @property
    def columns(self) -> list[str]:
        """The columns that it needs to predict."""
        return [self.text] if self.text is not None else self.features

    def raw(self, batch: Batch) -> Any:
        """Return a batch as input of the model: documents, a table, or a sparse matrix."""
        if self.text is not None:
            return batch.texts(self.text)
        if batch.matrix is not None:
            return self.fitting(batch.matrix, batch.matrix_names)
        return batch.typed(self.features, self.words)

    def matched(self, names: list[str]) -> MatchedColumns:
        """Return where its features are among the columns of a matrix."""
        return MatchedColumns.of(self.fitted, names)

    def fitting(self, X: Any, names: list[str] | None = None) -> Any:
        """Return rows of several batches as the model takes them; names are those of a matrix's columns."""
        if names is not None and self.text is None:
            return self.matched(names).aligned(X)
        return as_wide(X, self.classifier.n_features_in_) if is_sparse(X) else X

    def said(self, raw: Any) -> Predictions:
        """Return the predictions for rows in the form that the model takes."""
        X = self.fitted.rows(raw)
        rows = self.classifier._rows(X)
        return Predictions.of(X, rows, self.classifier._log_shares(rows), self.classes)

    def novelty(self, said: Predictions) -> Floats:
        """Return the p-values of "belongs to a known class" of predicted rows, shape (n,)."""
        return self.classifier._familiarity(said.rows)


def takes_text(fitted: ModelView) -> bool:
    """Return whether a model takes documents rather than numbers."""
    return fitted.before is not None and not isinstance(fitted.before[0], CountScaler)


def as_wide(matrix: Matrix, width: int) -> Matrix:
    """Return a sparse matrix with exactly this many columns; unknown ones are dropped."""
    if matrix.shape[1] > width:
        return matrix[:, :width]
    return sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class probabilities of rows, with the two most probable classes of each."""

    X: Matrix  # (n, D)
    rows: Matrix
    log_probability: Floats  # (n, C)
    first: npt.NDArray[np.intp]  # (n,)
    second: npt.NDArray[np.intp]  # (n,)
    classes: list[str]

    @classmethod
    def of(cls, X: Matrix, rows: Matrix, log_probability: Floats, classes: list[str]) -> Predictions:
        """Find the two most probable classes of each row; ties go to the first."""
        best = np.argsort(-log_probability, axis=1, kind="stable")
        return cls(X, rows, log_probability, best[:, 0], best[:, min(1, best.shape[1] - 1)], classes)

    def __len__(self) -> int:
        return len(self.first)

    def label(self, which: npt.NDArray[np.intp]) -> list[str]:
        """Return the labels at positions."""
        return [self.classes[c] for c in which]

    def probability(self, which: npt.NDArray[np.intp]) -> list[float]:
        """Return the probabilities at positions."""
        return np.exp(self.log_probability[np.arange(len(which)), which]).tolist()
