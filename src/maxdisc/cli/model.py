"""Loaded models: their columns, and predictions of batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from maxdisc.cli.console import Speech
from maxdisc.cli.failures import BadInputError
from maxdisc.cli.labelled import located_in
from maxdisc.cli.options import FileOptions
from maxdisc.files import Batch, Dataset, nearest, sources, with_decimal
from maxdisc.inspection.decisive_features import Reason, loudest
from maxdisc.inspection.matching import MatchedColumns
from maxdisc.inspection.model_input import ModelInput, Predictions, takes_text
from maxdisc.inspection.model_view import ModelView
from maxdisc.model_file.about import remembered
from maxdisc.model_file.persistence import describe, load

# Number of columns whose unseen categories a note lists.
_MOST_COLUMNS = 5


@dataclass(frozen=True, eq=False)
class LoadedModel(ModelInput):
    """Model with the metadata of its file."""

    path: Path
    label: str | None
    _matched: list[tuple[list[str], MatchedColumns]] = field(default_factory=list, repr=False)

    @classmethod
    def read(cls, path: Path, text: str | None = None, label: str | None = None) -> LoadedModel:
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
        fitted = ModelView.of(estimator)
        if text is not None and not takes_text(fitted):
            raise BadInputError(f"{path} is a model of numbers: --text is for models of documents.")
        column = (text or about.get("text") or "text") if takes_text(fitted) else None
        return cls(estimator, fitted, column, about, path, label or about.get("label"))

    def wanted(self, dataset: Dataset) -> list[str]:
        """Return the columns that it needs of these rows; none where all are in a matrix."""
        return self.columns if dataset.matrix_names is None or self.text is not None else []

    def dataset(self, data: list[str], format: str | None, files: FileOptions) -> Dataset:
        """Return the rows to use it on, read as those of the fit; refused if they lack what it needs."""
        names: dict[str, Any] = {"text_column": self.text, "label_column": self.label}
        options = files.reading()
        if files.header is None:
            options["header"] = self.header
        dataset = Dataset(data, format=format, readings=self.readings, **names, **options)
        if files.decimal is not None:
            truths = {name for at, name in enumerate(self.features) if self.fitted.is_truth(at)}
            numbers = [name for name in self.features if name not in {*self.words, *truths}]
            dataset.readings = with_decimal(files.decimal, numbers, self.readings)
        if files.layer is None and dataset.is_h5ad:
            dataset.layer = self.about.get("layer")
        first = dataset.preview()
        if first.matrix_names is not None and self.text is None:
            self.matched(first.matrix_names)
            return dataset
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
        missing = [
            column for column in sources(self.columns, self.readings, names) if column not in set(names)
        ]
        if not missing:
            return
        if self.text is not None and "text" not in self.about:
            raise BadInputError(
                f"{self.path.name} does not say which column held the documents, and {source} has no "
                f"{self.text!r}: name it with --text{nearest(self.text, names)}"
            )
        if self.text is not None:
            raise BadInputError(
                f"{source} has no column {missing[0]!r}, which held the documents; name the one that does "
                f"with --text{nearest(missing[0], names)}"
            )
        shown = ", ".join(map(repr, missing[:3])) + (
            f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        )
        near = nearest(missing[0], [name for name in names if name not in self.columns])
        advice = (
            near if "did you mean" in near else ": add what is missing, with empty cells if nobody knows."
        )
        raise BadInputError(f"{self.path.name} was fitted on other columns: {source} has no {shown}{advice}")

    def require_class(self, label: str) -> None:
        """Raise ``BadInputError`` for a label that the model does not know."""
        if label not in self.classes:
            raise BadInputError(f"{self.path} has no class {label!r}{nearest(label, self.classes)}")

    def require_novelty(self, label: str) -> float:
        """Return the smallest possible p-value; raise ``BadInputError`` if there are none."""
        if label in self.classes:
            raise BadInputError(
                f"{label!r} is a class of {self.path}: say what unknown rows are called with --unknown-label."
            )
        learnt = self.classifier._learnt.novelty
        if learnt is None:
            raise BadInputError(
                f"{self.path} has no p-values for unknown rows: fit it again with "
                "--evidence calibrated and enough rows."
            )
        return float(learnt.p_value[0])

    def matched(self, names: list[str]) -> MatchedColumns:
        """Return where its features are among the columns of a matrix."""
        if not self._matched or self._matched[0][0] is not names:
            try:
                self._matched[:] = [(names, super().matched(names))]
            except ValueError as error:
                raise BadInputError(f"{self.path} does not fit these cells: {error}") from None
        return self._matched[0][1]

    def predicted(self, batch: Batch) -> Predictions:
        """Return the prediction of the model for each row."""
        raw = self.raw(batch)
        with located_in(batch):
            return self.said(raw)

    def reasons(self, said: Predictions, n: int) -> list[list[Reason]]:
        """Return for each row the features with the largest log-odds of its class against the runner-up."""
        decision = self.classifier.decision_
        names = self.fitted.names[decision.columns]
        X = self.classifier._rows(said.X) if self.fitted.mixed else said.X
        return loudest(decision, names, X, said.first, said.second, n)


def note_missing(model: LoadedModel, dataset: Dataset, speech: Speech) -> None:
    """Say which features the model uses that a matrix does not have, and which of several matrices it is."""
    note_values(dataset, speech)
    if dataset.matrix_names is not None and model.text is None:
        told = model.matched(dataset.matrix_names).told
        if told:
            speech.note(told)


def note_values(dataset: Dataset, speech: Speech) -> None:
    """Note which of several matrices or sheets is read, and whether it has names, if not requested."""
    for note in dataset.notes:
        speech.note(note)
    if dataset.layer is None and "raw" in dataset.values.values():
        speech.note(f"{dataset.name}: values of raw; for those of X say --layer X")


class Unseen:
    """Counter of cells of selected columns that hold a category absent from training."""

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
