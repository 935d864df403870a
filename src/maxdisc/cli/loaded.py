"""A model file in use: which columns it wants, and what it makes of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.artifact import describe, load
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.cli.evidence import Reason, loudest
from maxdisc.cli.failures import BadInputError
from maxdisc.cli.labelled import as_wide, located_in
from maxdisc.cli.remembered import remembered
from maxdisc.cli.speech import Speech
from maxdisc.fitted import FittedModel
from maxdisc.matrices import Floats, Matrix, is_sparse
from maxdisc.scaling import CountScaler
from maxdisc.sources import Batch, Dataset, nearest

# Of how many columns a note tells what is new in them.
_MOST_COLUMNS = 5


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model and what its file remembers.

    Parameters
    ----------
    path : Path
        The file.
    estimator : Pipeline or MaxDiscClassifier
        As it was saved.
    fitted : FittedModel
        The same, taken apart.
    about : dict
        What the file says of the data.
    text : str or None
        The column of documents; None for a model of numbers.
    label : str or None
        The column of labels, where the file names it.
    """

    path: Path
    estimator: Any
    fitted: FittedModel
    about: dict[str, Any]
    text: str | None
    label: str | None

    @classmethod
    def of(cls, path: Path, text: str | None = None, label: str | None = None) -> LoadedModel:
        """Load a model; ``text`` and ``label`` name columns other than those it was fitted on."""
        if path.is_dir():
            raise BadInputError(f"{path} is a folder, not a model file.")
        if not path.exists():
            raise BadInputError(f"{path} does not exist: fit writes a model file with -o.")
        estimator = load(path)
        described = describe(path)
        about = remembered(described["about"])
        if described["steps"][-1]["kind"] == "discriminative":
            raise BadInputError(
                f"{path} holds a discriminative model, which this command does not take: use "
                "maxdisc.load(path).predict in Python."
            )
        fitted = FittedModel.of(estimator)
        of_numbers = fitted.before is None or isinstance(fitted.before[0], CountScaler)
        if of_numbers and text is not None:
            raise BadInputError(f"{path} is a model of numbers: --text is for models of documents.")
        column = None if of_numbers else text or about.get("text") or "text"
        return cls(path, estimator, fitted, about, column, label or about.get("label"))

    @property
    def classifier(self) -> MaxDiscClassifier:
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
        """Those of them that are read as text, whatever it looks like: the categories."""
        return self.fitted.names[self.fitted.written].tolist()

    @property
    def columns(self) -> list[str]:
        """The columns that it needs to predict."""
        return [self.text] if self.text is not None else self.features

    def dataset(self, data: list[str], format: str | None, encoding: str) -> Dataset:
        """The rows to use it on, refused at once if they lack what it needs."""
        dataset = Dataset(
            data, format=format, encoding=encoding, text_column=self.text, label_column=self.label
        )
        first = dataset.preview()
        sparse = self.text is None and not self.features
        if sparse != (first.matrix is not None):
            columns = f"columns such as {self.columns[0]!r}" if self.columns else ""
            wants = "rows without names of columns, such as svmlight's" if sparse else columns
            has = "svmlight rows" if first.matrix is not None else "columns"
            raise BadInputError(f"{self.path} was fitted on {wants}, but {dataset.name} has {has}.")
        self._require_columns(dataset)
        return dataset

    def _require_columns(self, dataset: Dataset) -> None:
        source, names = dataset.places[0].name, dataset.names
        missing = [column for column in self.columns if column not in set(names)]
        if not missing:
            return
        if self.text is not None and "text" not in self.about:
            raise BadInputError(
                f"{self.path.name} does not say which column held the documents, and {source} has no "
                f"{self.text!r}: name it with --text{nearest(self.text, names)}"
            )
        if self.text is not None:
            raise BadInputError(
                f"{source} has no column {self.text!r}, which held the documents; name the one that does "
                f"with --text{nearest(self.text, names)}"
            )
        shown = ", ".join(map(repr, missing[:3])) + (
            f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        )
        raise BadInputError(
            f"{self.path.name} was fitted on other columns: {source} has no {shown}"
            f"{nearest(missing[0], [name for name in names if name not in self.columns])}"
        )

    def require_class(self, label: str) -> None:
        """Raise ``BadInputError`` for a label that the model does not know."""
        if label not in self.classes:
            raise BadInputError(f"{self.path} has no class {label!r}{nearest(label, self.classes)}")

    def require_novelty(self, label: str) -> float:
        """The least p-value a row can have; raise ``BadInputError`` without any, or for a class so called."""
        if label in self.classes:
            raise BadInputError(
                f"{label!r} is a class of {self.path}: say what unknown rows are called with --unknown-label."
            )
        learnt = self.classifier._novelty
        if learnt is None:
            raise BadInputError(
                f"{self.path} does not know how strange rows of its classes can be: fit it again with "
                "--evidence calibrated, independent features and enough rows."
            )
        return float(learnt.p_value[0])

    def raw(self, batch: Batch) -> Any:
        """A batch as the model takes it: documents, a table, or a sparse matrix."""
        if self.text is not None:
            return batch.texts(self.text)
        if batch.matrix is not None:
            return self.fitting(batch.matrix)
        return batch.typed(self.features, self.words)

    def fitting(self, X: Any) -> Any:
        """Rows of several batches as the model takes them."""
        return as_wide(X, self.classifier.n_features_in_) if is_sparse(X) else X

    def predicted(self, batch: Batch) -> Predictions:
        """What the model says of each row."""
        raw = self.raw(batch)
        with located_in(batch):
            X = self.fitted.rows(raw)
            return Predictions.of(X, self.classifier.predict_log_proba(X), self.classes)


class Unseen:
    """Counts the cells of kept columns that hold a category which no training row had.

    Parameters
    ----------
    model : LoadedModel
        Whose categories.
    """

    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self.counts = np.zeros(model.classifier.n_features_in_, dtype=np.intp)

    def count(self, X: Any) -> None:
        """Add those of some rows, as the classifier takes them."""
        if self.model.fitted.mixed:
            self.counts += self.model.classifier.unseen_categories(X)

    def settle(self, speech: Speech) -> None:
        """Say how many there were, column by column."""
        kept = np.sort(self.model.classifier.decision_.columns)
        found = kept[self.counts[kept] > 0]
        for column in found[:_MOST_COLUMNS]:
            n_cells = int(self.counts[column])
            holds = "cell holds a category" if n_cells == 1 else "cells hold categories"
            told, _, what = holds.partition(" ")
            name = str(self.model.fitted.names[column])
            speech.note(f"{n_cells:,} {told} of column {name!r} {what} that the model has not seen")
        if len(found) > _MOST_COLUMNS:
            speech.note(f"so do cells of {len(found) - _MOST_COLUMNS:,} more columns")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities of some rows, and the two most probable classes of each.

    Parameters
    ----------
    X : matrix of shape (n, D)
        The rows, as the classifier takes them.
    log_probability : ndarray of shape (n, C)
        Of each class.
    first, second : ndarray of shape (n,)
        Positions of the most probable class and of the runner-up.
    classes : list of str
        The labels.
    """

    X: Matrix
    log_probability: Floats
    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    classes: list[str]

    @classmethod
    def of(cls, X: Matrix, log_probability: Floats, classes: list[str]) -> Predictions:
        """Find the two most probable classes of each row; ties go to the first."""
        best = np.argsort(-log_probability, axis=1, kind="stable")
        return cls(X, log_probability, best[:, 0], best[:, min(1, best.shape[1] - 1)], classes)

    def __len__(self) -> int:
        return len(self.first)

    def label(self, which: npt.NDArray[np.intp]) -> list[str]:
        """The labels at positions."""
        return [self.classes[c] for c in which]

    def probability(self, which: npt.NDArray[np.intp]) -> list[float]:
        """The probabilities at positions."""
        return np.exp(self.log_probability[np.arange(len(which)), which]).tolist()

    def reasons(self, model: LoadedModel, n: int) -> list[list[Reason]]:
        """For each row the features that spoke loudest for its class against the runner-up."""
        decision = model.classifier.decision_
        names = model.fitted.names[decision.columns]
        X = model.classifier._rows(self.X) if model.fitted.mixed else self.X
        return loudest(decision, names, X, self.first, self.second, n)
