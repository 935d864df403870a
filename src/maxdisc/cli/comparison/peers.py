"""Classifiers of scikit-learn for the same rows, each tuned on inner folds of its training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

SVM, LOGISTIC, BAYES, BOOSTING = "linear SVM", "logistic regression", "naive Bayes", "gradient boosting"

#: Terms in a single document are left out from this many documents on.
_MANY_DOCUMENTS = 1000
#: Gradient boosting takes no sparse rows; with more cells than this, they are not made dense.
_DENSE_CELLS = 10**7
#: The most categories of a column that gradient boosting takes one by one.
_MOST_LEVELS = 200


def peers_of(X: Any, smallest: int) -> dict[str, Any]:
    """Return untuned pipelines by name for documents, a table or a sparse matrix.

    ``smallest`` is the number of training rows of the smallest class, which bounds the inner folds.
    """
    if isinstance(X, list):
        return text_peers(X, smallest)
    return sparse_peers(X, smallest) if hasattr(X, "tocsr") else table_peers(X, smallest)


def text_peers(documents: Sequence[str], smallest: int) -> dict[str, Any]:
    """Return classifiers of documents, of tf-idf of words and pairs of words.

    Where words have no spaces between them, they are characters and pairs of these, as for maxdisc: a whole
    clause would be a word.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    from maxdisc.words.scripts import CHARACTERS, is_unspaced

    least = 2 if len(documents) >= _MANY_DOCUMENTS else 1
    terms = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=least)
    if is_unspaced(documents):
        terms.set_params(token_pattern=CHARACTERS)
    return {name: make_pipeline(terms, model) for name, model in _linear(smallest, MultinomialNB()).items()}


def sparse_peers(X: Any, smallest: int) -> dict[str, Any]:
    """Return classifiers of sparse rows; naive Bayes is of counts, gradient boosting of a few cells."""
    from sklearn.preprocessing import FunctionTransformer

    models = _linear(smallest, MultinomialNB())
    if X.data.size and X.data.min() < 0:
        del models[BAYES]
    peers = {name: make_pipeline(MaxAbsScaler(), model) for name, model in models.items()}
    if X.shape[0] * X.shape[1] <= _DENSE_CELLS:
        dense = FunctionTransformer(_dense, accept_sparse=True)
        peers[BOOSTING] = make_pipeline(dense, _boosting(None, smallest))
    return peers


def table_peers(table: Any, smallest: int) -> dict[str, Any]:
    """Return classifiers of a frame: one-hot categories, medians for missing numbers."""
    words = [name for name, kind in table.dtypes.items() if kind.kind == "O"]
    rest = [name for name in table.columns if name not in words]
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    steps = [("numbers", numbers, rest), ("words", OneHotEncoder(handle_unknown="ignore"), words)]
    wide = ColumnTransformer([step for step in steps if step[2]], sparse_threshold=0)
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=_MOST_LEVELS
    )
    narrow = ColumnTransformer([("words", codes, words), ("numbers", "passthrough", rest)])
    peers = {name: make_pipeline(wide, model) for name, model in _linear(smallest, GaussianNB()).items()}
    peers[BOOSTING] = make_pipeline(narrow, _boosting(list(range(len(words))) or None, smallest))
    return peers


def _linear(smallest: int, bayes: Any) -> dict[str, Any]:
    """Return classifiers that add up features, with the grid that each is tuned on."""
    amounts: dict[str, Sequence[Any]] = (
        {"alpha": [0.01, 0.1, 1.0]}
        if isinstance(bayes, MultinomialNB)
        else {"var_smoothing": [1e-9, 1e-3, 1e-1]}
    )
    # Of text and counts, saga reaches the log-loss of lbfgs in a fraction of the time.
    is_dense = isinstance(bayes, GaussianNB)
    logistic = LogisticRegression(
        solver="lbfgs" if is_dense else "saga", max_iter=300, tol=1e-3, random_state=0
    )
    return {
        SVM: _tuned(LinearSVC(), {"C": [0.1, 1.0, 10.0]}, smallest),
        LOGISTIC: _tuned(logistic, {"C": [0.1, 1.0, 10.0, 100.0]}, smallest, "neg_log_loss"),
        BAYES: _tuned(bayes, amounts, smallest),
    }


def _boosting(categories: list[int] | None, smallest: int) -> Any:
    model = HistGradientBoostingClassifier(categorical_features=categories, random_state=0)
    return _tuned(model, {"learning_rate": [0.03, 0.1]}, smallest, "neg_log_loss")


def _tuned(model: Any, grid: Mapping[str, Sequence[Any]], smallest: int, scoring: str | None = None) -> Any:
    """Return a search over a grid, or the model as it is where a class has too few rows for inner folds."""
    if smallest < 2:
        return model
    folds = StratifiedKFold(min(3, smallest), shuffle=True, random_state=0)
    return GridSearchCV(model, dict(grid), cv=folds, scoring=scoring)


def chosen(model: Any) -> tuple[Any, dict[str, Any]]:
    """Return a fitted pipeline without its search, and the parameters that the search chose."""
    last = model[-1]
    if not isinstance(last, GridSearchCV):
        return model, {}
    return Pipeline([*model.steps[:-1], ("chosen", last.best_estimator_)]), dict(last.best_params_)


def _dense(X: Any) -> Any:
    return X.toarray()
