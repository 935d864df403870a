"""A fitted model as those see it who show it: the classifier, what comes before it, and names of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from maxdisc.classifier import MaxDiscClassifier
from maxdisc.densities import ClassDensities
from maxdisc.families import Family
from maxdisc.matrices import Floats, Matrix
from maxdisc.significance import location_of


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A classifier, alone or at the end of a pipeline.

    Parameters
    ----------
    classifier : MaxDiscClassifier
        Fitted.
    before : Pipeline or None
        The steps that make its rows, such as a vectorizer.
    names : ndarray of shape (D,)
        What its features are called.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.fitted import FittedModel
    >>> classifier = MaxDiscClassifier(n_features="all", evidence="raw", smoothing=1.0)
    >>> model = make_pipeline(CountVectorizer(), classifier)
    >>> fitted = FittedModel.of(model.fit(["red sky", "green grass"], ["up", "down"]))
    >>> print(fitted.names)
    ['grass' 'green' 'red' 'sky']
    """

    classifier: MaxDiscClassifier
    before: Pipeline | None
    names: npt.NDArray[np.object_]

    @classmethod
    def of(cls, model: Any, names: npt.ArrayLike | None = None) -> FittedModel:
        """Take a model apart; ``names`` replace those it knows."""
        if isinstance(model, FittedModel):
            return model
        before, classifier = None, model
        if isinstance(model, Pipeline):
            before, classifier = (model[:-1] if len(model) > 1 else None), model[-1]
        if not isinstance(classifier, MaxDiscClassifier):
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
    def family(self) -> Family:
        """The family of every feature's densities."""
        return self.classifier.families_[0][0]

    @property
    def classes(self) -> list[str]:
        """The labels, as text."""
        return [str(label) for label in self.classifier.classes_.tolist()]

    def rows(self, X: Any) -> Matrix:
        """Raw rows or documents, as the classifier takes them."""
        rows = X if self.before is None else self.before.transform(X)
        return rows if hasattr(rows, "shape") else np.asarray(rows, dtype=np.float64)


def location(densities: ClassDensities) -> Floats:
    """How much of each feature each class has, shape (C, D), for comparing classes.

    The mean of x where x is among the family's statistics (the second, for an atom and a tail), else of its
    first statistic, such as log x.
    """
    return densities.mean[location_of(densities.family)]


def _names(classifier: MaxDiscClassifier, before: Pipeline | None) -> npt.ArrayLike:
    if before is not None and not hasattr(classifier, "feature_names_in_"):
        try:
            return before.get_feature_names_out()
        except (AttributeError, ValueError):
            pass  # some step has no names to give
    return _check_feature_names_in(classifier)
