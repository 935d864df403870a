"""Methods for the text table. They are given counts of words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.naive_bayes import ComplementNB, GaussianNB, MultinomialNB
from sklearn.svm import SVC, LinearSVC

from experiments.automatic import automatic
from experiments.methods import Codes, Matrix, Outcome, fitted_outcome, method
from maxdisc import DiscriminativeMaxEnt, MaxDiscClassifier

SVM_COSTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LOGISTIC_COSTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
PSEUDO_COUNTS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# Rows sum to 1, so that their squared lengths are about a hundredth.
FREQUENCY_COSTS = (10.0, 100.0, 1000.0, 10000.0)
VARIANCES = (1e-9, 1e-5, 1e-3, 1e-2, 1e-1)


def inner_folds(X: Matrix, y: Codes, seed: int) -> Iterator[tuple[Codes, Codes]]:
    return StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y)


def holdout(X: Matrix, y: Codes, seed: int) -> tuple[Codes, Codes]:
    """The paper's way to choose: a fifth of the training rows, once."""
    return next(StratifiedShuffleSplit(1, test_size=0.2, random_state=seed).split(X, y))


def frequencies(X: Matrix) -> Matrix:
    """The paper's representation: each word's share of its document."""
    length = np.asarray(X.sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(1.0 / np.where(length > 0, length, 1.0)) @ X)


def scaled(X: Matrix, train: Matrix) -> Matrix:
    """Counts of documents that are all as long as a training document is on average."""
    return frequencies(X) * (train.sum() / train.shape[0])


def log_scaled(X: Matrix, train: Matrix) -> Matrix:
    """Logs of one plus the counts, each row of the same Euclidean length: scale="log" of the vectorizer."""
    logs = sp.csr_array(X).log1p()
    length = np.sqrt(np.asarray(logs.multiply(logs).sum(axis=1)).ravel())
    factor = (train.sum() / train.shape[0]) / np.where(length > 0, length, 1.0)
    return sp.csr_array(sp.diags_array(factor) @ logs)


def weighted(X: Matrix, *others: Matrix) -> list[Matrix]:
    """Tf-idf with logs of counts, weights from the first table."""
    weights = TfidfTransformer(sublinear_tf=True).fit(X)
    return [weights.transform(table) for table in (X, *others)]


def best(values: Sequence[Any], scores: Sequence[float]) -> Any:
    """The first of the best."""
    return values[int(np.argmax(np.round(scores, 12)))]


# ------------------------------------------------------------------ this library


@method("text", "default", "default", ours=True)
def default(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
    """Return the outcome of the default, on counts as its vectorizer scales them."""
    model = MaxDiscClassifier(random_state=seed).fit(log_scaled(X, X), y)
    return fitted_outcome(model, log_scaled(held, X), {"K": model.n_selected_})


method("text", "automatic", "search", ours=True)(automatic)


def memd(divergence: str) -> Callable[[Matrix, Codes, Matrix, int], Outcome]:
    """The paper's classifier: one moment, K from one fifth held out, evidence as it is."""

    def run(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
        model = MaxDiscClassifier(
            "exponential", divergence=divergence, evidence="raw", cv="holdout", random_state=seed
        ).fit(frequencies(X), y)
        return fitted_outcome(model, frequencies(held), {"K": model.n_selected_})

    return run


method("text", "memd_j", "MeMd-J", ours=True)(memd("jeffreys"))
method("text", "memd_js", "MeMd-JS", ours=True)(memd("js_gm"))
method("text", "true_js", "MeMd, true JS", ours=True, quick=False)(memd("jensen_shannon"))


def poisson(evidence: str) -> Callable[[Matrix, Codes, Matrix, int], Outcome]:
    """One model with each kind of evidence, to see what the evidence does."""

    def run(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
        model = MaxDiscClassifier("poisson", evidence=evidence, random_state=seed).fit(log_scaled(X, X), y)
        return fitted_outcome(model, log_scaled(held, X), {"K": model.n_selected_})

    return run


method("text", "raw", "Poisson, raw", ours=True)(poisson("raw"))
method("text", "calibrated", "Poisson, calibrated", ours=True)(poisson("calibrated"))
method("text", "refined", "Poisson, refined", ours=True, quick=False)(poisson("refined"))


# ------------------------------------------------------------------ linear models


@method("text", "linear_svc", "LinearSVC, tf-idf, C chosen")
def linear_svc(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
    right = np.zeros(len(SVM_COSTS))
    for train, test in inner_folds(X, y, seed):
        A, B = weighted(X[train], X[test])
        for i, cost in enumerate(SVM_COSTS):
            right[i] += (_svc(cost).fit(A, y[train]).predict(B) == y[test]).sum()
    cost = best(SVM_COSTS, right)
    A, B = weighted(X, held)
    return Outcome(_svc(cost).fit(A, y).predict(B), None, {"C": cost})


def _svc(cost: float) -> LinearSVC:
    # Few rows and many words: the dual problem is the small one.
    return LinearSVC(C=cost, dual=True, random_state=0, max_iter=20000)


@method("text", "logistic", "LogisticRegression, tf-idf, C chosen")
def logistic(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
    right = np.zeros(len(LOGISTIC_COSTS))
    for train, test in inner_folds(X, y, seed):
        A, B = weighted(X[train], X[test])
        for i, model in enumerate(_logistic_path(A, y[train], LOGISTIC_COSTS)):
            right[i] += (model.predict(B) == y[test]).sum()
    cost = best(LOGISTIC_COSTS, right)
    A, B = weighted(X, held)
    *_, model = _logistic_path(A, y, [c for c in LOGISTIC_COSTS if c <= cost])
    return fitted_outcome(model, B, {"C": cost})


def _logistic_path(X: Matrix, y: Codes, costs: Sequence[float]) -> Iterator[LogisticRegression]:
    """One model for each cost, each starting where the last one ended."""
    model = LogisticRegression(max_iter=2000, warm_start=True)
    for cost in costs:
        yield model.set_params(C=cost).fit(X, y)


@method("text", "libsvm", "LIBSVM, linear", quick=False)
def libsvm(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
    """The paper's competitor: one against one, on the paper's representation."""
    A, B = frequencies(X), frequencies(held)
    kernel, other = (A @ A.T).toarray(), (B @ A.T).toarray()
    right = np.zeros(len(FREQUENCY_COSTS))
    for train, test in inner_folds(X, y, seed):
        inside, outside = kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]
        for i, cost in enumerate(FREQUENCY_COSTS):
            model = SVC(kernel="precomputed", C=cost).fit(inside, y[train])
            right[i] += (model.predict(outside) == y[test]).sum()
    cost = best(FREQUENCY_COSTS, right)
    return Outcome(SVC(kernel="precomputed", C=cost).fit(kernel, y).predict(other), None, {"C": cost})


@method("text", "dme", "DME", quick=False)
def dme(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
    """The conditional model with its defaults, on scaled counts."""
    return fitted_outcome(DiscriminativeMaxEnt(random_state=seed).fit(scaled(X, X), y), scaled(held, X))


# ------------------------------------------------------------------ naive Bayes


def naive_bayes(
    kind: type, finish: Callable[[Any, int], Any] = lambda model, _: model
) -> Callable[[Matrix, Codes, Matrix, int], Outcome]:
    """Pseudo-counts, and counts or tf-idf, by inner folds; ``finish`` says what is fitted at the end."""

    def run(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
        right = np.zeros((2, len(PSEUDO_COUNTS)))
        for train, test in inner_folds(X, y, seed):
            for r, (A, B) in enumerate([(X[train], X[test]), weighted(X[train], X[test])]):
                for i, alpha in enumerate(PSEUDO_COUNTS):
                    right[r, i] += (kind(alpha=alpha).fit(A, y[train]).predict(B) == y[test]).sum()
        r, i = np.unravel_index(right.argmax(), right.shape)
        A, B = weighted(X, held) if r else (X, held)
        chosen = {"alpha": PSEUDO_COUNTS[i], "representation": ["counts", "tf-idf"][r]}
        return fitted_outcome(finish(kind(alpha=PSEUDO_COUNTS[i]), seed).fit(A, y), B, chosen)

    return run


def sigmoids(model: Any, seed: int) -> CalibratedClassifierCV:
    """scikit-learn's calibration, by five folds."""
    return CalibratedClassifierCV(model, cv=StratifiedKFold(5, shuffle=True, random_state=seed))


method("text", "multinomial_nb", "MultinomialNB, chosen")(naive_bayes(MultinomialNB))
method("text", "complement_nb", "ComplementNB, chosen")(naive_bayes(ComplementNB))
method("text", "calibrated_nb", "CalibratedClassifierCV(MultinomialNB), chosen")(
    naive_bayes(MultinomialNB, sigmoids)
)


@method("text", "gaussian_nb", "GaussianNB", quick=False)
def gaussian_nb(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
    """On tf-idf; what is added to variances is chosen on a fifth of the rows, since all of it is dense."""
    A, B = weighted(X, held)
    train, test = holdout(X, y, seed)
    inside, outside = A[train].toarray(), A[test].toarray()
    models = [GaussianNB(var_smoothing=v).fit(inside, y[train]) for v in VARIANCES]
    spread = best(VARIANCES, [model.score(outside, y[test]) for model in models])
    model = GaussianNB(var_smoothing=spread).fit(A.toarray(), y)
    return fitted_outcome(model, B.toarray(), {"var_smoothing": spread})
