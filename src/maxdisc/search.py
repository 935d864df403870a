"""``MaxDiscSearchCV``: candidates compared on the same folds."""

from __future__ import annotations

import copy
import numbers
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from maxdisc.classifier import MaxDiscClassifier
from maxdisc.fitting.documents import find_documents
from maxdisc.fitting.invariances import with_exceptions
from maxdisc.numerics.matrices import Floats, Matrix, canonical, is_sparse
from maxdisc.rows.frames import WORD, cells_of, is_frame
from maxdisc.rows.validation import require_labels
from maxdisc.words.scaling import CountScaler
from maxdisc.words.vectorizer import TermFrequencyVectorizer

#: Candidates for text and other sparse counts, simplest first. Refined evidence falls back to calibrated.
FOR_TEXT: tuple[dict[str, Any], ...] = (
    {"scale": "length", "evidence": "calibrated"},
    {"scale": "log", "evidence": "refined"},
)
#: Candidates for tables of measurements.
FOR_TABLES: tuple[dict[str, Any], ...] = (
    {"structure": "independent", "evidence": "refined"},
    {"structure": "joint", "evidence": "refined"},
)
#: ... and for tables with more features than rows: dependence between features matters most there, and so few
#: rows cannot show reliably whether it can be ignored.
FOR_WIDE_TABLES: tuple[dict[str, Any], ...] = ({"structure": "joint", "evidence": "refined"},)
#: Frames of numbers may have a family for each column as well.
FOR_FRAMES: tuple[dict[str, Any], ...] = (
    {"structure": "independent", "evidence": "calibrated"},
    {"structure": "independent", "family": "gaussian", "evidence": "refined"},
    {"structure": "joint", "evidence": "refined"},
)
#: ... and those with categories must. Missing cells may be informative.
FOR_MIXED_FRAMES: tuple[dict[str, Any], ...] = (
    {"evidence": "calibrated"},
    {"evidence": "calibrated", "missing": "informative"},
)
#: A simpler model is taken if its log-loss is at most this share higher.
TIE = 0.005


class MaxDiscSearchCV(TransformerMixin, ClassifierMixin, BaseEstimator):
    """Search over families, scales, structures and kinds of evidence, by held-out log-loss.

    Each candidate is fitted once, on all rows; the fit chooses its number of features, smoothing and
    calibration on the folds, and gives its held-out log-loss. All candidates have the same folds. The one
    with the lowest held-out log-loss is kept without refitting; of candidates that are equal to half a
    percent, the first.

    Parameters
    ----------
    candidates : "auto" or sequence of dict, default="auto"
        Parameters of :class:`MaxDiscClassifier`, and ``scale`` for counts: see
        :class:`maxdisc.words.CountScaler`. "auto" tries two models of counts for documents and for sparse
        non-negative data; for tables, independent and joint densities, or only joint ones if there are more
        features than rows; for frames also a family per column, and only this if some columns are categories.
        List simple ones first.
    vectorizer : TermFrequencyVectorizer, optional
        How the words of documents are counted; its ``scale`` is ignored.
    cv : int, splitter, iterable of splits, "holdout" or "hash", default=5
        The folds, as for :class:`MaxDiscClassifier`.
    random_state : int, RandomState or None, default=None
        If set, rows are shuffled before they are split.
    verbose : int, default=0
        If positive, prints the result of each candidate.

    Attributes
    ----------
    best_estimator_ : MaxDiscClassifier or Pipeline
        The model: a classifier, or a pipeline that scales counts or counts words before it.
    best_classifier_ : MaxDiscClassifier
        The classifier alone.
    best_params_ : dict
        The candidate.
    best_index_ : int
        Its index in the list.
    best_score_ : float
        Minus its log-loss on held-out rows.
    cv_results_ : dict of str to list
        ``params``, ``log_loss``, ``accuracy``, ``n_selected`` and ``seconds`` of each candidate that was
        fitted. A calibrated candidate is not fitted if the same candidate with refined evidence is listed,
        which falls back to calibrated if corrections do not help.
    classes_ : ndarray of shape (C,)
        The labels.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxdisc import MaxDiscSearchCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = MaxDiscSearchCV().fit(X[:300], y[:300])
    >>> search.score(X[300:], y[300:]) > 0.95
    True
    """

    classes_: npt.NDArray[np.generic]
    best_estimator_: Any
    best_classifier_: MaxDiscClassifier

    def __init__(
        self,
        candidates: str | Sequence[Mapping[str, Any]] = "auto",
        vectorizer: TermFrequencyVectorizer | None = None,
        cv: Any = 5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.candidates = candidates
        self.vectorizer = vectorizer
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit every candidate, and keep the best.

        Parameters
        ----------
        X : sequence of str, array-like, frame or sparse matrix of shape (N, D)
            Documents, or rows of numbers; counts, if a candidate has a ``scale``.
        y : array-like of shape (N,)
            Labels.
        sample_weight : array-like of shape (N,), optional
            Row weights.
        groups : array-like of shape (N,), optional
            Rows of one group stay in one fold.

        Returns
        -------
        MaxDiscSearchCV
            This search, fitted.
        """
        require_labels(y)
        words: TermFrequencyVectorizer | None = None
        if (documents := find_documents(X)) is not None:
            words = TermFrequencyVectorizer() if self.vectorizer is None else clone(self.vectorizer)
            words.set_params(scale=None)
            X = words.fit_transform(documents)
        X = canonical(X)
        listed = self._listed(X, words is not None)
        splits = _same_for_all(self.cv, X, y, groups)
        seed = self.random_state
        if seed is not None and not isinstance(seed, numbers.Integral):
            seed = int(check_random_state(seed).randint(2**31))
        results: dict[str, list[Any]] = {
            name: [] for name in ("params", "log_loss", "accuracy", "n_selected", "seconds")
        }
        fitted: list[tuple[Any, MaxDiscClassifier]] = []
        for candidate in listed:
            start = time.perf_counter()
            parameters = {"random_state": seed, **candidate}
            scale = parameters.pop("scale", None)
            front = None
            if words is not None or "scale" in candidate:
                front = self._front(words, X, scale, sample_weight)
            classifier = MaxDiscClassifier(**{"cv": splits, **parameters})
            rows = X if front is None else front.transform(X) if isinstance(front, CountScaler) else front[1]
            classifier.fit(rows, y, sample_weight, groups)
            loss, accuracy = _held_out(classifier)
            for name, value in zip(
                results,
                (dict(candidate), loss, accuracy, classifier.n_selected_, time.perf_counter() - start),
                strict=True,
            ):
                results[name].append(value)
            fitted.append((front, classifier))
            if self.verbose:
                told = f"held-out log-loss {loss:.4f}, accuracy {accuracy:.4f}"
                print(f"maxdisc: {candidate}: {told}, {classifier.n_selected_} features", flush=True)
        losses = np.nan_to_num(np.array(results["log_loss"]), nan=np.inf)
        best = int(np.argmax(losses <= losses.min() * (1 + TIE) + 1e-12))
        front, classifier = fitted[best]
        self.cv_results_, self.best_index_ = results, best
        self.best_params_, self.best_score_ = results["params"][best], -float(losses[best])
        self.best_classifier_, self.classes_ = classifier, classifier.classes_
        step = front[0] if isinstance(front, tuple) else front
        name = "words" if isinstance(step, TermFrequencyVectorizer) else "scale"
        self.best_estimator_ = (
            classifier if step is None else Pipeline([(name, step), ("classify", classifier)])
        )
        self.__dict__.pop("n_features_in_", None)
        self.__dict__.pop("feature_names_in_", None)
        if words is None:
            first = classifier if step is None else step
            self.n_features_in_ = first.n_features_in_
            if hasattr(first, "feature_names_in_"):
                self.feature_names_in_ = first.feature_names_in_
        return self

    def _listed(self, X: Matrix, text: bool) -> list[dict[str, Any]]:
        """Return the candidates, without calibrated ones that are listed with refined evidence, too."""
        given = self.candidates
        if isinstance(given, str):
            if given != "auto":
                raise ValueError(f"candidates must be 'auto' or a list of parameters, got {given!r}.")
            given = _usual(X, text)
        if not isinstance(given, Sequence) or not all(isinstance(c, Mapping) for c in given):
            raise ValueError(f"candidates must be 'auto' or a list of parameters, got {given!r}.")
        listed = [dict(candidate) for candidate in cast(Sequence[Mapping[str, Any]], given)]
        if not listed:
            raise ValueError("candidates are empty: name at least one model.")
        known = {*MaxDiscClassifier().get_params(deep=False), "scale"}
        for candidate in listed:
            if "vectorizer" in candidate:
                raise ValueError(
                    "candidates share one vectorizer: give it to MaxDiscSearchCV(vectorizer=...), not to a "
                    "candidate."
                )
            unknown = sorted(candidate.keys() - known)
            if unknown:
                raise ValueError(f"a candidate has a parameter that MaxDiscClassifier lacks: {unknown[0]!r}.")
        refined = [_told(c, "calibrated") for c in listed if c.get("evidence") == "refined"]
        return [c for c in listed if _told(c) not in refined]

    def _front(
        self,
        words: TermFrequencyVectorizer | None,
        X: Matrix,
        scale: str | None,
        sample_weight: npt.ArrayLike | None,
    ) -> Any:
        """Return the step before a classifier: a scaler, or a vectorizer and its scaled counts."""
        if words is None:
            return CountScaler(scale).fit(X, sample_weight=sample_weight)
        vectorizer = copy.copy(words).set_params(scale=scale)
        return vectorizer, CountScaler(scale).fit(X).transform(X)

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _rows(self, X: Any) -> Any:
        """Return the rows for the classifier."""
        best = self._best()
        return best[:-1].transform(X) if isinstance(best, Pipeline) else X

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """Return the most probable label of each row, shape (N,)."""
        return np.asarray(self._best().predict(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return posterior probabilities, shape (N, C)."""
        return np.asarray(self._best().predict_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the log of the posterior probabilities, shape (N, C)."""
        return np.asarray(self._best().predict_log_proba(X))

    def explain(self, X: Any) -> Any:
        """Decompose the scores of some rows: see :meth:`MaxDiscClassifier.explain`."""
        rows = self._rows(X)
        explanation = self.best_classifier_.explain(rows)
        if isinstance(self.best_estimator_, Pipeline):
            names = self.best_estimator_[0].get_feature_names_out()
            return replace(explanation, names=names[self.best_classifier_.decision_.columns])
        return explanation

    def transform(self, X: Any) -> Matrix:
        """Return the features that the best model selects, in its scale."""
        rows = self._rows(X)
        return self.best_classifier_.transform(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        if not isinstance(self.candidates, str):
            scales = any("scale" in candidate for candidate in self.candidates)
            tags.input_tags.positive_only, tags.input_tags.allow_nan = scales, not scales
        return with_exceptions(tags, "hashes", "solver")


def _usual(X: Any, text: bool) -> tuple[dict[str, Any], ...]:
    """Return the default candidates for such rows."""
    if text or (is_sparse(X) and (X.nnz == 0 or X.data.min() >= 0)):
        return FOR_TEXT
    if is_frame(X):
        cells = cells_of(X)
        if (cells.kinds == WORD).any():
            return FOR_MIXED_FRAMES if cells.missing().any() else FOR_MIXED_FRAMES[:1]
    # Rows may be lists; the classifier raises an error for anything that is not a table.
    shape = getattr(X, "shape", None) or np.asarray(X).shape
    if len(shape) == 2 and shape[1] > shape[0]:
        return FOR_WIDE_TABLES
    return FOR_FRAMES if is_frame(X) else FOR_TABLES


def _told(candidate: dict[str, Any], evidence: str | None = None) -> dict[str, str]:
    """Return a candidate as text, optionally with another kind of evidence; arrays cannot be compared."""
    told = {"evidence": MaxDiscClassifier().evidence, **candidate}
    return {name: repr(value) for name, value in {**told, "evidence": evidence or told["evidence"]}.items()}


def _same_for_all(cv: Any, X: Any, y: Any, groups: Any) -> Any:
    """Return the folds, with the splits of a splitter or a generator computed once."""
    if hasattr(cv, "split") and not isinstance(cv, str):
        return list(cv.split(X, y, groups))
    return list(cv) if hasattr(cv, "__next__") else cv


def _held_out(classifier: MaxDiscClassifier) -> tuple[float, float]:
    """Return log-loss and accuracy on held-out rows."""
    evidence, path = classifier.evidence_, classifier.path_
    if evidence is not None:
        return float(evidence.log_loss), float(evidence.accuracy)
    if path is None:
        raise ValueError(
            "a candidate has nothing to choose, so it has no held-out log-loss: leave n_features or "
            "smoothing at 'auto'."
        )
    at = int(np.searchsorted(path.sizes, classifier.n_selected_))
    at = min(at, len(path.sizes) - 1)
    return float(path.mean_log_loss[at]), float(path.mean_accuracy[at])
