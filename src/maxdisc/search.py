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

#: What is tried for text and other sparse counts, simplest first. Refined evidence falls back to calibrated.
FOR_TEXT: tuple[dict[str, Any], ...] = (
    {"scale": "length", "evidence": "calibrated"},
    {"scale": "log", "evidence": "refined"},
)
#: What is tried for tables of measurements.
FOR_TABLES: tuple[dict[str, Any], ...] = (
    {"structure": "independent", "evidence": "refined"},
    {"structure": "joint", "evidence": "refined"},
)
#: ... and where they have more features than rows: what features share then counts most, and so few rows
#: cannot tell reliably where it may be left out of account.
FOR_WIDE_TABLES: tuple[dict[str, Any], ...] = ({"structure": "joint", "evidence": "refined"},)
#: Frames of numbers may have a family for each column as well.
FOR_FRAMES: tuple[dict[str, Any], ...] = (
    {"structure": "independent", "evidence": "calibrated"},
    {"structure": "independent", "family": "gaussian", "evidence": "refined"},
    {"structure": "joint", "evidence": "refined"},
)
#: ... and those with categories must. That cells are missing may tell something.
FOR_MIXED_FRAMES: tuple[dict[str, Any], ...] = (
    {"evidence": "calibrated"},
    {"evidence": "calibrated", "missing": "informative"},
)
#: A simpler model is taken if its log-loss is at most this share higher.
TIE = 0.005


class MaxDiscSearchCV(TransformerMixin, ClassifierMixin, BaseEstimator):
    """Choose among families, scales, structures and kinds of evidence without looking at test data.

    Each candidate is fitted once, on all the rows; in doing so it chooses its own number of features,
    smoothing and weights of evidence on the folds, and tells the log-loss of rows that were held out. All are
    given the same folds. The one with the least held-out log-loss is kept as it is, so nothing is fitted
    again; of candidates that are as good to half a per cent, the one named first.

    Parameters
    ----------
    candidates : "auto" or sequence of dict, default="auto"
        Parameters of :class:`MaxDiscClassifier`, and ``scale`` for counts: see
        :class:`maxdisc.words.CountScaler`. "auto" tries two models of counts for documents and for sparse
        data that are not negative; for tables, independent and joint densities, or joint ones alone where
        there are more features than rows; for frames also a family for each column, alone if some are
        categories. List simple ones first.
    vectorizer : TermFrequencyVectorizer, optional
        How the words of documents are counted; its ``scale`` does not matter.
    cv : int, splitter, iterable of splits, "holdout" or "hash", default=5
        The folds, as for :class:`MaxDiscClassifier`.
    random_state : int, RandomState or None, default=None
        If given, rows are shuffled before they are dealt out.
    verbose : int, default=0
        If positive, says how each candidate did.

    Attributes
    ----------
    best_estimator_ : MaxDiscClassifier or Pipeline
        The model: a classifier, behind the scaling of counts or the counting of words where there is one.
    best_classifier_ : MaxDiscClassifier
        The classifier alone.
    best_params_ : dict
        The candidate.
    best_index_ : int
        Its place in the list.
    best_score_ : float
        Minus its log-loss on held-out rows.
    cv_results_ : dict of str to list
        ``params``, ``log_loss``, ``accuracy``, ``n_selected`` and ``seconds`` of each candidate that was
        fitted. A calibrated candidate whose refined sibling is listed too is not: refined evidence starts
        from calibrated evidence and stays with it where corrections do not pay.
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
            Documents, or rows of numbers; where a candidate has a ``scale``, they are counts.
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
        """The candidates; those that a refined sibling stands for are left out."""
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
        """What stands before a classifier: a scaler, or a vectorizer and its scaled counts."""
        if words is None:
            return CountScaler(scale).fit(X, sample_weight=sample_weight)
        vectorizer = copy.copy(words).set_params(scale=scale)
        return vectorizer, CountScaler(scale).fit(X).transform(X)

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _rows(self, X: Any) -> Any:
        """What the classifier alone is given."""
        best = self._best()
        return best[:-1].transform(X) if isinstance(best, Pipeline) else X

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """The most probable label of each row, shape (N,)."""
        return np.asarray(self._best().predict(X))

    def predict_proba(self, X: Any) -> Floats:
        """Posterior probabilities, shape (N, C)."""
        return np.asarray(self._best().predict_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Log of the posterior probabilities, shape (N, C)."""
        return np.asarray(self._best().predict_log_proba(X))

    def explain(self, X: Any) -> Any:
        """Take the scores of some rows apart: see :meth:`MaxDiscClassifier.explain`."""
        rows = self._rows(X)
        explanation = self.best_classifier_.explain(rows)
        if isinstance(self.best_estimator_, Pipeline):
            names = self.best_estimator_[0].get_feature_names_out()
            return replace(explanation, names=names[self.best_classifier_.decision_.columns])
        return explanation

    def transform(self, X: Any) -> Matrix:
        """The features that the best model keeps, in its scale."""
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
    """What is tried of such rows."""
    if text or (is_sparse(X) and (X.nnz == 0 or X.data.min() >= 0)):
        return FOR_TEXT
    if is_frame(X):
        cells = cells_of(X)
        if (cells.kinds == WORD).any():
            return FOR_MIXED_FRAMES if cells.missing().any() else FOR_MIXED_FRAMES[:1]
    # Rows may be lists; what is no table at all is told by the classifier.
    shape = getattr(X, "shape", None) or np.asarray(X).shape
    if len(shape) == 2 and shape[1] > shape[0]:
        return FOR_WIDE_TABLES
    return FOR_FRAMES if is_frame(X) else FOR_TABLES


def _told(candidate: dict[str, Any], evidence: str | None = None) -> dict[str, str]:
    """A candidate as text, with another kind of evidence if one is given: arrays cannot be compared."""
    told = {"evidence": MaxDiscClassifier().evidence, **candidate}
    return {name: repr(value) for name, value in {**told, "evidence": evidence or told["evidence"]}.items()}


def _same_for_all(cv: Any, X: Any, y: Any, groups: Any) -> Any:
    """Folds, with the splits of a splitter or a generator made once."""
    if hasattr(cv, "split") and not isinstance(cv, str):
        return list(cv.split(X, y, groups))
    return list(cv) if hasattr(cv, "__next__") else cv


def _held_out(classifier: MaxDiscClassifier) -> tuple[float, float]:
    """Log-loss and accuracy on held-out rows."""
    evidence, path = classifier.evidence_, classifier.path_
    if evidence is not None:
        return float(evidence.log_loss), float(evidence.accuracy)
    if path is None:
        raise ValueError("a candidate has nothing to choose, so that it was not tried on the folds.")
    at = int(np.searchsorted(path.sizes, classifier.n_selected_))
    at = min(at, len(path.sizes) - 1)
    return float(path.mean_log_loss[at]), float(path.mean_accuracy[at])
