"""Methods of ``make bench-default``: the defaults of maxdisc, and competitors tuned on inner folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import ComplementNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.default_data import Codes
from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer

OURS = "maxdisc"
SVM_COSTS = [0.1, 0.5, 2.0, 10.0]
LOGISTIC_COSTS = [2.0, 10.0, 50.0, 250.0]
PSEUDO_COUNTS = [0.01, 0.1, 0.3, 1.0]
TABLE_COSTS = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
N_BEST = 500


class Method(NamedTuple):
    """The name on the page, what fits it, and the sections that it takes part in."""

    title: str
    fit: Callable[[Any, Codes], Any]
    sections: tuple[str, ...]


def fit_ours(rows: Any, y: Codes) -> Any:
    """Fit the default of maxdisc, as a newcomer gets it, to documents or a table."""
    if isinstance(rows, list) and "vectorizer" not in MaxDiscClassifier().get_params():
        return make_pipeline(TermFrequencyVectorizer(), MaxDiscClassifier()).fit(rows, y)
    return MaxDiscClassifier().fit(rows, y)


# ------------------------------------------------------------------ text


def words(**settings: Any) -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True, **settings)


def words_and_pairs() -> TfidfVectorizer:
    return words(ngram_range=(1, 2), min_df=2)


def svm_words() -> GridSearchCV:
    # The whole pipeline is in the grid, as most users write it; the section of time is about this one.
    return GridSearchCV(make_pipeline(words(), LinearSVC()), {"linearsvc__C": SVM_COSTS}, cv=3)


def svm_pairs() -> Pipeline:
    return make_pipeline(words_and_pairs(), GridSearchCV(LinearSVC(), {"C": SVM_COSTS}, cv=3))


def logistic_text() -> Pipeline:
    # Here saga reaches the accuracy and the log-loss of lbfgs in a quarter of the time.
    model = LogisticRegression(solver="saga", tol=1e-3, random_state=0)
    return make_pipeline(words(), GridSearchCV(model, {"C": LOGISTIC_COSTS}, cv=3))


def complement_nb() -> Pipeline:
    return make_pipeline(words(), GridSearchCV(ComplementNB(), {"alpha": PSEUDO_COUNTS}, cv=3))


class LogCountRatio(TransformerMixin, BaseEstimator):
    """Columns times their log-count ratio between two classes, the features of NBSVM."""

    def fit(self, X: sp.csr_matrix, y: Codes) -> LogCountRatio:
        # Rows that have the word, whatever its weight, as in Wang and Manning (2012).
        positive, negative = (1.0 + X[y == c].count_nonzero(axis=0) for c in np.unique(y)[::-1])
        self.ratio_ = np.log(positive / positive.sum()) - np.log(negative / negative.sum())
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        scaled = X.copy()
        scaled.data *= self.ratio_[X.indices]
        return scaled


def nbsvm() -> Pipeline:
    one = OneVsRestClassifier(make_pipeline(LogCountRatio(), LinearSVC()))
    return make_pipeline(words_and_pairs(), GridSearchCV(one, {"estimator__linearsvc__C": SVM_COSTS}, cv=3))


# ------------------------------------------------------------------ tables


def inner_folds() -> StratifiedKFold:
    # Rows of these tables are in the order of their classes, or in that of their collection.
    return StratifiedKFold(3, shuffle=True, random_state=0)


def rotated(model: Any, grid: Any) -> Pipeline:
    """Tune a ridge model in the basis of the training rows, where its optimum lies: nothing is left out."""
    return make_pipeline(StandardScaler(), PCA(), GridSearchCV(model, grid, cv=inner_folds()))


def svm_table() -> Pipeline:
    # Not LinearSVC, which penalises the intercept: with few rows of unequal classes it predicts the largest.
    pairs = SVC(kernel="linear")
    ways = [
        {"svm": [pairs], "svm__C": TABLE_COSTS},
        {"svm": [OneVsRestClassifier(pairs)], "svm__estimator__C": TABLE_COSTS},
    ]
    return rotated(Pipeline([("svm", pairs)]), ways)


def logistic_table() -> Pipeline:
    return rotated(LogisticRegression(max_iter=1000), {"C": TABLE_COSTS})


def shrunken_centroids() -> Pipeline:
    grid = {"shrink_threshold": [0.1, 0.5, 1.0, 2.0, 3.0]}
    return make_pipeline(StandardScaler(), GridSearchCV(NearestCentroid(), grid, cv=inner_folds()))


def on_best(model: Any, grid: dict[str, list[Any]]) -> GridSearchCV:
    """Tune a model of the 500 best columns by F, which each inner fold chooses anew."""
    pipeline = Pipeline([("best", SelectKBest(k=N_BEST)), ("scale", StandardScaler()), ("model", model)])
    named = {f"model__{name}": values for name, values in grid.items()}
    return GridSearchCV(pipeline, named, cv=inner_folds())


def shrunk_lda() -> GridSearchCV:
    return on_best(LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": ["auto", 0.1, 0.5, 0.9]})


def boosting() -> GridSearchCV:
    model = HistGradientBoostingClassifier(max_iter=50, min_samples_leaf=5, random_state=0)
    return on_best(model, {"learning_rate": [0.1, 0.3]})


def forest() -> GridSearchCV:
    model = RandomForestClassifier(200, random_state=0)
    return GridSearchCV(model, {"min_samples_leaf": [1, 3]}, cv=inner_folds())


def fit_new(make: Callable[[], Any]) -> Callable[[Any, Codes], Any]:
    return lambda rows, y: make().fit(rows, y)


METHODS = {
    "svm_words": Method("LinearSVC, words", fit_new(svm_words), ("text", "few")),
    "svm_pairs": Method("LinearSVC, words and pairs", fit_new(svm_pairs), ("text",)),
    "logistic": Method("logistic regression", fit_new(logistic_text), ("text", "short")),
    "complement_nb": Method("ComplementNB", fit_new(complement_nb), ("text",)),
    "nbsvm": Method("NBSVM", fit_new(nbsvm), ("text",)),
    "svm": Method("linear SVM", fit_new(svm_table), ("tables",)),
    "logistic_table": Method("logistic regression", fit_new(logistic_table), ("tables",)),
    "centroids": Method("shrunken centroids", fit_new(shrunken_centroids), ("tables",)),
    "lda": Method("shrunk LDA", fit_new(shrunk_lda), ("tables",)),
    "forest": Method("random forest", fit_new(forest), ("tables",)),
    "boosting": Method("gradient boosting", fit_new(boosting), ("tables",)),
    OURS: Method("maxdisc", fit_ours, ("text", "short", "few", "tables")),
}


# ------------------------------------------------------------------ what a fitted model says of itself


def list_steps(model: Any) -> list[Any]:
    """Return the fitted steps of nested pipelines and grids, grids included."""
    if isinstance(model, GridSearchCV):
        return [model, *list_steps(model.best_estimator_)]
    if isinstance(model, Pipeline):
        return [inner for _, step in model.steps for inner in list_steps(step)]
    return [model]


def describe_competitor(model: Any) -> dict[str, Any]:
    """Return the number of features that a competitor uses, and what its grid chose."""
    steps = list_steps(model)
    (grid,) = (step for step in steps if isinstance(step, GridSearchCV))
    last = steps[-1]
    if isinstance(last, NearestCentroid):
        used = int((last.deviations_ != 0).any(axis=0).sum())
    else:
        used = int(next((step for step in steps if isinstance(step, PCA)), last).n_features_in_)
    chosen = {
        name.split("__")[-1]: type(value).__name__ if isinstance(value, BaseEstimator) else value
        for name, value in grid.best_params_.items()
    }
    return {"selected": used, "chosen": chosen}


def describe_ours(model: Any, rows: Any) -> dict[str, Any]:
    """Return the number of selected features, that of candidates, and the size of the model file."""
    from maxdisc.model_file.persistence import to_bytes

    classifier, vectorizer = list_steps(model)[-1], None
    if isinstance(rows, list):
        vectorizer = model[0] if isinstance(model, Pipeline) else classifier.vectorizer_
    X = rows if vectorizer is None else vectorizer.transform(rows)
    return {
        "selected": int(classifier.n_selected_),
        "candidates": count_candidates(X),
        "file_bytes": len(to_bytes(model)),
    }


def count_candidates(X: Any) -> int:
    """Return the number of features that at least two rows have, that is, that are not zero there."""
    if sp.issparse(X):
        return int((sp.csc_array(X).count_nonzero(axis=0) >= 2).sum())
    return int((np.count_nonzero(X, axis=0) >= 2).sum())
