"""Rows as users give them: checked, with labels and weights, and the columns of a table told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from maxdisc.fitting.cross_validation import fold_plans, plans_beside
from maxdisc.fitting.documents import TrainingDocuments
from maxdisc.fitting.expectation_maximisation import PartlyLabelled, UnlabelledRows
from maxdisc.fitting.fitted_model import FittedModel
from maxdisc.fitting.learning import Data
from maxdisc.fitting.settings import Settings
from maxdisc.moments.class_moments import ratio
from maxdisc.numerics.matrices import (
    Booleans,
    Floats,
    Integers,
    Matrix,
    canonical,
    column_name,
    require_indices,
)
from maxdisc.numerics.phases import begin_phase
from maxdisc.numerics.user_warnings import notice
from maxdisc.rows.frames import Cells, cells_of, is_frame, require_distinct_names, require_table
from maxdisc.rows.row_sources import ArrayRows, Folds
from maxdisc.rows.sampling import count_rows
from maxdisc.rows.schema import Schema, first_unobserved
from maxdisc.rows.table_totals import TableTotals
from maxdisc.rows.validation import require_classes, require_labels, require_numbers, sorted_union

# What scikit-learn's validation is to let through; ranges are checked, by column, by the family.
_NUMBERS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
}


@dataclass(frozen=True, eq=False)
class Labelled:
    """Validated rows with labels, weights and column names."""

    X: Any  # (N, D)
    labels: npt.NDArray[np.generic]  # (N,)
    weights: Floats  # (N,)
    names: npt.NDArray[np.generic] | None = None  # (D,)
    documents: TrainingDocuments | None = None

    def __getitem__(self, rows: Integers) -> Labelled:
        documents = None if self.documents is None else self.documents[rows]
        return Labelled(self.X[rows], self.labels[rows], self.weights[rows], self.names, documents)

    @property
    def n_rows(self) -> float:
        """How many rows there are, as their weights tell."""
        return count_rows(self.weights)

    def with_class_weight(
        self, class_weight: Mapping[Any, float] | str | None, missing: Booleans | None = None
    ) -> Labelled:
        """Return the rows, each weight times that of its class; rows without a label keep theirs."""
        if class_weight is None:
            return self
        known = np.arange(len(self.labels)) if missing is None else np.flatnonzero(~missing)
        classes, codes = np.unique(self.labels[known], return_inverse=True)
        if isinstance(class_weight, str):
            mass = np.bincount(codes, self.weights[known], len(classes)).astype(np.float64)
            factor = ratio(mass.sum() / np.count_nonzero(mass), mass)
        else:
            factor = _given_weights(class_weight, classes.tolist())
        weights = self.weights.copy()
        weights[known] *= factor[codes]
        if not weights[known].any():
            raise ValueError("class_weight leaves no row any weight: give some class more than 0.")
        return replace(self, weights=weights)

    def with_weight(self) -> Labelled:
        """Without the rows that weigh nothing; no copy if there are none."""
        return self if self.weights.all() else self[np.flatnonzero(self.weights)]

    def encoded(self, schema: Schema | None) -> Matrix:
        """The rows as the family of a model takes them."""
        return self.X if schema is None else schema.encoded(self.X, self.names)

    def rows(self, classes: npt.NDArray[np.generic], schema: Schema | None) -> ArrayRows:
        """With codes into classes that have all the labels."""
        codes = np.searchsorted(classes, self.labels)
        return ArrayRows(self.encoded(schema), codes, len(classes), self.weights, self.names)


def _given_weights(class_weight: Mapping[Any, float], labels: list[Any]) -> Floats:
    """Return the weight of each label, 1 where none is given; raise ``ValueError`` for a misspelt label."""
    unknown = [label for label in class_weight if label not in labels]
    if unknown and not all(label in class_weight for label in labels):
        raise ValueError(
            f"class_weight has {unknown[0]!r}, which is no label of y: use "
            f"{', '.join(map(repr, labels[:5]))}{', ...' if len(labels) > 5 else ''}."
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])


def labelled(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, columns: bool, reset: bool
) -> Labelled:
    """Validate rows, labels and weights; set the number and names of features if ``reset``."""
    require_labels(y, "drop those rows, or use fit, which learns from them, too")
    require_indices(X)
    if columns:
        X = cells(estimator, X, reset)
        labels = _check_y(y)
        check_consistent_length(X, labels)
        return Labelled(X, labels, _checked_weights(labels, sample_weight), names_of(estimator))
    require_distinct_names(X)
    try:
        X, y = validate_data(estimator, X, y, reset=reset, multi_output=True, **_NUMBERS)
    except ValueError as error:
        if "could not convert string to float" in str(error):
            require_numbers(X)
        raise
    labels = column_or_1d(y, warn=True)
    weights = _checked_weights(labels, sample_weight)
    return Labelled(canonical(X), labels, weights, names_of(estimator))


def names_of(estimator: BaseEstimator) -> npt.NDArray[np.generic] | None:
    """The names of its features, where rows had some."""
    return getattr(estimator, "feature_names_in_", None)


def _checked_weights(labels: npt.NDArray[np.generic], sample_weight: Any) -> Floats:
    """Return the weights of rows; raise ``ValueError`` for invalid labels or weights."""
    if labels.dtype.kind not in "USiub":  # words and whole numbers are labels, and take long to look at
        _require_whole(labels)
    weights: Floats = _check_sample_weight(sample_weight, labels, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample weights must contain at least one non-zero number: all are zero.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum() ** 2):
            raise ValueError("sample weights are too large to be squared: rescale them.")
    return weights


def _require_whole(labels: npt.NDArray[np.generic]) -> None:
    """Raise ``ValueError`` for labels that are a quantity: numbers that are not whole."""
    try:
        check_classification_targets(labels)
    except ValueError:
        try:
            n_different = len(np.unique(labels.astype(np.float64)))
        except (TypeError, ValueError):
            n_different = 0
        if not n_different:
            raise
        # The first words are those that scikit-learn's checks look for.
        raise ValueError(
            f"Unknown label type: continuous. y holds {n_different:,} different numbers in {len(labels):,} "
            "rows, not all of them whole: is it a quantity? Bin it into classes, or pass numbers that are "
            "names as strings."
        ) from None


def cells(estimator: BaseEstimator, X: Any, reset: bool, wanted: Integers | None = None) -> Cells:
    """A frame or an array, taken apart as far as columns are wanted, its width and names checked."""
    require_distinct_names(X)
    X = X if is_frame(X) else require_table(X)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    found = cells_of(X, names_of(estimator), wanted)
    if 0 in found.shape:
        what = "sample(s)" if found.shape[0] == 0 else "feature(s)"
        raise ValueError(f"Found array with 0 {what} (shape={found.shape}) while a minimum of 1 is required.")
    return found


def unlabelled_rows(
    estimator: BaseEstimator, X: Any, schema: Schema | None, wanted: Integers | None = None
) -> Matrix:
    """Rows to be predicted; of columns that are told apart, levels of the wanted ones alone."""
    require_indices(X)
    if schema is None:
        if _is_ready(estimator, X):
            return X
        require_distinct_names(X)
        return canonical(validate_data(estimator, X, reset=False, **_NUMBERS))
    return schema.encoded(cells(estimator, X, False, wanted), names_of(estimator), wanted)


def _is_ready(estimator: BaseEstimator, X: Any) -> bool:
    """Whether rows are as validation would leave them, which takes longer than to score a short text."""
    as_is = type(X) is sp.csr_array and X.dtype == np.float64 and X.has_canonical_format
    return as_is and names_of(estimator) is None and X.shape[0] > 0 and X.shape[1] == estimator.n_features_in_


def data_of(settings: Settings, given: Labelled, frame: Any, groups: Any) -> Data:
    """Return the training data of rows that all have a label."""
    kept = np.flatnonzero(given.weights)
    plans: Sequence[Folds] = ()
    if settings.must_choose:
        plans = fold_plans(settings.cv, given.X, given.labels, groups, settings.random_state, kept)
    given = given.with_weight()
    classes = np.unique(given.labels)
    require_classes(given.labels, classes)
    schema = _settled(settings, given, frame, classes)
    return Data(given.rows(classes, schema), plans, classes, schema, given.names, documents=given.documents)


def batch_of(
    settings: Settings, given: Labelled, frame: Any, classes: npt.ArrayLike | None, before: FittedModel | None
) -> Data:
    """Return the training data of one further batch for ``partial_fit``."""
    given = given.with_weight()
    come = [] if classes is None else [classes]
    if before is None:
        union, family = sorted_union(given.labels, *come), None
        # Types alone decide, as rows that are still to come may have anything.
        of_types = isinstance(given.X, Cells)
        schema = settings.schema(frame, given.X, given.names, None) if of_types else None
    else:
        union, family = sorted_union(given.labels, *come, before.classes), before.family
        schema = None if before.schema is None else before.schema.extended(given.X)
    return Data(given.rows(union, schema), (), union, schema, given.names, family)


def _settled(
    settings: Settings, given: Labelled, frame: Any, classes: npt.NDArray[np.generic]
) -> Schema | None:
    """Return the families of columns and their levels; None for rows of one family."""
    if not isinstance(given.X, Cells):
        return None
    begin_phase("choosing families of densities")
    codes = np.searchsorted(classes, given.labels)
    if settings.settles_by_totals:
        totals = TableTotals.of(given.X, given.labels, given.names, given.weights)
        schema = settings.schema_of(totals, classes)
    else:
        schema = settings.schema(frame, given.X, given.names, (codes, len(classes), given.weights))
    found = first_unobserved(given.X, codes, len(classes))
    if found is not None:
        label, column, count = found
        others = f" (and {count - 1} more such columns)" if count > 1 else ""
        notice(
            f"all cells of {column_name(column, given.names)} are missing in class "
            f"{classes.tolist()[label]!r}{others}: what the other classes have is taken for it."
        )
    return schema


def require_some_labels(settings: Settings, missing: Booleans) -> None:
    """Raise ``ValueError`` where nothing can be learnt from rows of which these have no label."""
    if missing.all():
        raise ValueError("no row has a label: give some of each class.")
    if settings.joint is not None:
        raise ValueError(
            f"joint densities need a label for each row, and {missing.sum()} have none: drop those rows, "
            "or use structure='independent'."
        )


def warn_of_nan(settings: Settings, y: Any, missing: Booleans) -> None:
    """Warn of labels that are NaN, which may be a mistake, unless rows without a label were announced."""
    if settings.unlabelled is not None:
        return
    n_nan = sum(label is not None for label in np.asarray(y, dtype=object).ravel()[missing])
    if n_nan:
        notice(
            f"y is NaN in {n_nan:,} of {len(missing):,} rows, which count as rows without a label: drop "
            "them, or say with None or unlabelled=float('nan') that this is meant."
        )


def partly_labelled(
    settings: Settings, given: Labelled, missing: Booleans, frame: Any, groups: Any
) -> tuple[Data, PartlyLabelled | None]:
    """What is learnt from rows of which some have no label: as :func:`data_of`, and both kinds together."""
    weighty = given.weights > 0
    kept, others = np.flatnonzero(weighty & ~missing), np.flatnonzero(weighty & missing)
    if not len(kept):
        raise ValueError("no row with a label weighs more than 0: give some of each class.")
    known = given[kept]
    classes = np.unique(known.labels)
    require_classes(known.labels, classes)
    given_folds = (kept, others, groups, settings.random_state)
    plans = plans_beside(settings.cv, given.X, given.labels, *given_folds)
    schema = _settled(settings, known, frame, classes)
    if schema is not None:
        schema = schema.extended(given.X)
    X = given.encoded(schema)
    family = settings.family_of(X) if schema is None else schema.family
    family.require(X, given.names)
    rows = ArrayRows(
        X[kept], np.searchsorted(classes, known.labels), len(classes), known.weights, given.names
    )
    data = Data(rows, [folds for folds, _ in plans], classes, schema, given.names, family)
    if not len(others):
        return data, None
    unlabelled = UnlabelledRows(X[others], given.weights[others], others, given.names)
    smoothing = settings.smoothing or family.usual_smoothing
    return data, PartlyLabelled(rows, unlabelled, plans, smoothing)
