"""Feature rankings: from training rows and classes to columns, best first.

Text rankings are given counts of words, gene rankings expression values. Only the first ``n`` columns are
asked for; rankings that choose one column after another stop there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import sklearn
from scipy.special import xlogy
from sklearn.feature_selection import chi2, f_classif
from sklearn.linear_model import LogisticRegression

from experiments.gene_methods import standardised
from experiments.methods import Codes, Matrix, method
from experiments.text_methods import log_scaled, weighted
from maxdisc import Joint, MaxDiscClassifier

Floats = npt.NDArray[np.float64]
Ranking = Callable[[Matrix, Codes, int], Codes]

#: Pseudo-rows that change nothing to speak of.
LITTLE = 1e-6
#: Inverse strengths of the L1 penalty; features are ranked by when they enter.
L1_COSTS = tuple(np.geomspace(0.3, 300.0, 10))
GENE_L1_COSTS = tuple(np.geomspace(0.01, 10.0, 10))
# How scikit-learn is told: it was another parameter before version 1.8.
L1 = {"penalty": "l1"} if sklearn.__version__.startswith("1.7.") else {"l1_ratio": 1.0}


def by_scores(scores: Floats) -> Codes:
    """Columns by their scores, best first; a score that is no number is the worst."""
    return np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")


# ------------------------------------------------------------------ mutual information


def class_indicators(y: Codes) -> Floats:
    return (np.unique(y)[:, None] == y).astype(np.float64)


def presence_information(X: Matrix, y: Codes) -> Floats:
    """Mutual information of class and presence, of every column, by one product; in nats."""
    present = class_indicators(y) @ (sp.csr_array(X) != 0).astype(np.float64)
    return table_information(np.stack([present, np.bincount(y)[np.unique(y)][:, None] - present]))


def table_information(counts: Floats) -> Floats:
    """Mutual information of the two first axes of tables of counts, shape (a, b, D)."""
    n = counts.sum(axis=(0, 1))
    joint, rows, columns = (
        xlogy(part, part).sum(axis=axes)
        for part, axes in ((counts, (0, 1)), (counts.sum(axis=1), 0), (counts.sum(axis=0), 0))
    )
    return np.maximum((joint - rows - columns + xlogy(n, n)) / n, 0.0)


def binned_information(X: Floats, y: Codes, n_bins: int = 3) -> Floats:
    """Mutual information of class and value, the values in bins of equally many rows."""
    edges = np.quantile(X, np.arange(1, n_bins) / n_bins, axis=0)
    bins = (X[None] > edges[:, None]).sum(axis=0)
    classes = class_indicators(y)
    return table_information(np.stack([classes @ (bins == b).astype(np.float64) for b in range(n_bins)]))


# ------------------------------------------------------------------ text


def divergence(name: str, redundancy: float = 0.0, smoothing: str | float = "auto") -> Ranking:
    """The library's ranking; smoothing by its folds, unless it is given."""

    def rank(X: Matrix, y: Codes, n: int) -> Codes:
        size = min(n, X.shape[1]) if redundancy else "all"
        settings = {"redundancy": redundancy, "smoothing": smoothing, "evidence": "raw"}
        model = MaxDiscClassifier("poisson", divergence=name, n_features=size, **settings)
        return model.fit(log_scaled(X, X), y).ranking_

    return rank


method("rankings", "js_gm", "js_gm", ours=True)(divergence("js_gm"))
method("rankings", "jeffreys", "jeffreys", ours=True, quick=False)(divergence("jeffreys"))
method("rankings", "jensen_shannon", "jensen_shannon", ours=True)(divergence("jensen_shannon"))
method("rankings", "redundancy", "js_gm, redundancy 1", ours=True, quick=False)(divergence("js_gm", 1.0))
method("rankings", "redundancy_js", "jensen_shannon, redundancy 1", ours=True, quick=False)(
    divergence("jensen_shannon", 1.0)
)
# The score test looks at the pooled density, where no class is empty: it needs next to no smoothing.
method("rankings", "rao", "rao", ours=True, quick=False)(divergence("rao", smoothing=LITTLE))
method("rankings", "redundancy_rao", "rao, redundancy 1", ours=True)(divergence("rao", 1.0, LITTLE))


# On scaled logs of counts, as this library's rankings: better for both than tf-idf, and than counts by far.
@method("rankings", "chi2", "chi2")
def chi2_ranking(X: Matrix, y: Codes, n: int) -> Codes:
    return by_scores(chi2(log_scaled(X, X), y)[0])


@method("rankings", "f_classif", "f_classif")
def f_ranking(X: Matrix, y: Codes, n: int) -> Codes:
    return by_scores(f_scores(log_scaled(X, X), y))


def f_scores(X: Matrix, y: Codes) -> Floats:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # words that the training rows lack are constant
        return f_classif(X, y)[0]


@method("rankings", "mutual_info", "mutual information")
def information_ranking(X: Matrix, y: Codes, n: int) -> Codes:
    return by_scores(presence_information(X, y))


@method("rankings", "mrmr", "mRMR", quick=False)
def mrmr_ranking(X: Matrix, y: Codes, n: int) -> Codes:
    """Information about the class over that shared with the chosen, of presence and absence."""
    present = sp.csc_array((sp.csr_array(X) != 0).astype(np.float64))
    n_rows, n_present = present.shape[0], np.asarray(present.sum(axis=0)).ravel()

    def shared(column: int) -> Floats:
        both = present.T @ present[:, [column]].toarray().ravel()
        only, other = n_present[column] - both, n_present - both
        return table_information(np.stack([[both, only], [other, n_rows - both - only - other]]))

    return in_turn(presence_information(X, y), shared, n)


def in_turn(relevance: Floats, shared: Callable[[int], Floats], n: int) -> Codes:
    """Columns one after another, each with the largest relevance over mean redundancy (mRMR); then the rest.

    What is added to the mean keeps quotients finite. On other folds ten times as much was as good, and a
    tenth of it worse.
    """
    total = np.zeros(len(relevance))
    left = np.ones(len(relevance), dtype=bool)
    order: list[int] = []
    for step in range(min(n, len(relevance))):
        gain = relevance if step == 0 else relevance / (total / step + 1e-3)
        best = int(np.argmax(np.where(left, gain, -np.inf)))
        order.append(best)
        left[best] = False
        total += shared(best)
    rest = by_scores(relevance)
    return np.concatenate([np.array(order, dtype=np.intp), rest[left[rest]]])


def entering(X: Matrix, y: Codes, costs: tuple[float, ...], otherwise: Codes) -> Codes:
    """Columns by how weak an L1 penalty lets them in, then by their weights; those never let in follow."""
    entered = np.full(X.shape[1], len(costs))
    size = np.zeros(X.shape[1])
    for i, cost in enumerate(costs):
        weights = np.abs(_l1(X, y, cost)).max(axis=0)
        new = (weights > 0) & (entered == len(costs))
        entered[new], size[new] = i, weights[new]
    place = np.empty(X.shape[1])
    place[otherwise] = np.arange(X.shape[1])
    return np.lexsort([place, -size, entered])


def _l1(X: Matrix, y: Codes, cost: float) -> Floats:
    """Weights (classes, D), each class against the rest."""
    classes = np.unique(y)
    model = LogisticRegression(C=cost, solver="liblinear", random_state=0, max_iter=200, **L1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no more steps are taken
        return np.concatenate(
            [model.fit(X, y == c).coef_ for c in (classes[1:] if len(classes) == 2 else classes)]
        )


@method("rankings", "l1", "L1 logistic", quick=False)
def l1_ranking(X: Matrix, y: Codes, n: int) -> Codes:
    return entering(weighted(X)[0], y, L1_COSTS, chi2_ranking(X, y, n))


# ------------------------------------------------------------------ genes


def gene_divergence(name: str, redundancy: float = 0.0) -> Ranking:
    def rank(X: Floats, y: Codes, n: int) -> Codes:
        size = min(n, X.shape[1]) if redundancy else "all"
        model = MaxDiscClassifier(
            "gaussian", divergence=name, n_features=size, redundancy=redundancy, evidence="raw"
        )
        return model.fit(X, y).ranking_

    return rank


method("gene_rankings", "js_gm", "js_gm", ours=True)(gene_divergence("js_gm"))
method("gene_rankings", "jeffreys", "jeffreys", ours=True)(gene_divergence("jeffreys"))
method("gene_rankings", "jensen_shannon", "jensen_shannon", ours=True)(gene_divergence("jensen_shannon"))
method("gene_rankings", "redundancy", "js_gm, redundancy 1", ours=True)(gene_divergence("js_gm", 1.0))
method("gene_rankings", "redundancy_rao", "rao, redundancy 1", ours=True)(gene_divergence("rao", 1.0))


@method("gene_rankings", "joint_greedy", "greedy joint", ours=True)
def greedy_ranking(X: Floats, y: Codes, n: int) -> Codes:
    """What each gene adds to the J of joint densities; the search is among the 512 best genes."""
    structure = Joint(search="greedy", shrinkage=0.5, transform=None)
    return MaxDiscClassifier(structure=structure, n_features=min(n, X.shape[1])).fit(X, y).ranking_


@method("gene_rankings", "f_classif", "f_classif")
def gene_f_ranking(X: Floats, y: Codes, n: int) -> Codes:
    return by_scores(f_scores(X, y))


@method("gene_rankings", "mutual_info", "mutual information, three bins")
def gene_information_ranking(X: Floats, y: Codes, n: int) -> Codes:
    return by_scores(binned_information(X, y))


@method("gene_rankings", "mrmr", "mRMR")
def gene_mrmr_ranking(X: Floats, y: Codes, n: int) -> Codes:
    """F over the mean absolute correlation with the chosen."""
    A = standardised(X, X, None)[0]
    return in_turn(f_scores(X, y), lambda column: np.abs(A[:, column] @ A) / len(A), n)


@method("gene_rankings", "l1", "L1 logistic")
def gene_l1_ranking(X: Floats, y: Codes, n: int) -> Codes:
    return entering(standardised(X, X, None)[0], y, GENE_L1_COSTS, gene_f_ranking(X, y, n))
