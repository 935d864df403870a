"""Methods for the gene table: few rows, thousands of features, values of unknown scale."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from experiments.automatic import automatic
from experiments.methods import Codes, Matrix, Outcome, fitted_outcome, method
from maxdisc import Joint, MaxDiscClassifier

Floats = npt.NDArray[np.float64]
Sizes = tuple[int | None, ...]

SIZES = (None, 1000, 300, 100, 30)  # None: all genes
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # of a kernel whose diagonal is about 1
VARIANCES = (1e-9, 1e-3, 1e-2, 1e-1, 1.0)
TRANSFORMS = (None, "log")


def inner_folds(seed: int) -> RepeatedStratifiedKFold:
    # Sixty rows make a noisy judge: the folds are dealt out twice.
    return RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=seed)


def inner_splits(X: Matrix, y: Codes, seed: int) -> Iterator[tuple[Codes, Codes]]:

    with warnings.catch_warnings():
        # A class of fewer rows than folds is missing in some of them.
        warnings.filterwarnings("ignore", "The least populated class")
        yield from inner_folds(seed).split(X, y)


def standardised(X: Floats, held: Floats, transform: str | None) -> tuple[Floats, Floats]:
    """Both tables in units of the first, perhaps as logarithms that keep signs."""
    if transform == "log":
        unit = X.std(axis=0)
        unit[unit == 0] = 1.0
        X, held = (np.copysign(np.log1p(np.abs(Z) / unit), Z) for Z in (X, held))
    center, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0
    return (X - center) / spread, (held - center) / spread


def by_variance_ratio(X: Floats, y: Codes) -> Codes:
    """Columns by variance between classes over that within them, best first."""
    sizes = np.bincount(y)
    means = np.stack([X[y == c].mean(axis=0) for c in np.flatnonzero(sizes)])
    within = ((X - means[np.unique(y, return_inverse=True)[1]]) ** 2).mean(axis=0)
    between = (sizes[sizes > 0] / len(y)) @ (means - X.mean(axis=0)) ** 2
    return np.argsort(-between / np.maximum(within, 1e-12), kind="stable")


# ------------------------------------------------------------------ this library


@method("genes", "default", "default", ours=True)
def default(X: Floats, y: Codes, held: Floats, seed: int) -> Outcome:
    """Return the outcome of the default."""
    model = MaxDiscClassifier(random_state=seed).fit(X, y)
    return fitted_outcome(model, held, {"K": model.n_selected_})


method("genes", "automatic", "search", ours=True)(automatic)


def independent(divergence: str) -> Callable[[Floats, Codes, Floats, int], Outcome]:
    """The paper's classifier: two moments, K by cross-validation within the training rows."""

    def run(X: Floats, y: Codes, held: Floats, seed: int) -> Outcome:
        model = MaxDiscClassifier("gaussian", divergence=divergence, evidence="raw", random_state=seed)
        model.fit(X, y)
        return fitted_outcome(model, held, {"K": model.n_selected_})

    return run


method("genes", "memd_j", "MeMd-J", ours=True, quick=False)(independent("jeffreys"))
method("genes", "memd_js", "MeMd-JS", ours=True)(independent("js_gm"))
method("genes", "true_js", "MeMd, true JS", ours=True, quick=False)(independent("jensen_shannon"))


def joint(search: str) -> Callable[[Floats, Codes, Floats, int], Outcome]:
    """Joint densities with a shrunk covariance; transform, shrinkage and K by inner folds."""

    def run(X: Floats, y: Codes, held: Floats, seed: int) -> Outcome:
        model = MaxDiscClassifier(structure=Joint(search=search), evidence="raw", cv=5, random_state=seed)
        model.fit(X, y)
        used = model.joint_
        chosen = {"K": model.n_selected_, "transform": used.transform, "shrinkage": used.shrinkage}
        return fitted_outcome(model, held, chosen)

    return run


method("genes", "joint", "joint", ours=True, quick=False)(joint("top"))
method("genes", "joint_greedy", "greedy joint", ours=True, quick=False)(joint("greedy"))


# ------------------------------------------------------------------ competitors


@method("genes", "svm", "linear SVM; raw or log, size and C chosen", quick=False)
def svm(X: Floats, y: Codes, held: Floats, seed: int) -> Outcome:
    return _svm(X, y, held, seed, SIZES, ("one-vs-one",))


@method("genes", "svm_all", "linear SVM, all genes; raw or log, C, pairs or rest chosen")
def svm_all(X: Floats, y: Codes, held: Floats, seed: int) -> Outcome:
    return _svm(X, y, held, seed, (None,), ("one-vs-one", "one-vs-rest") if y.max() > 1 else ("one-vs-one",))


def _svm(X: Floats, y: Codes, held: Floats, seed: int, sizes: Sizes, ways: tuple[str, ...]) -> Outcome:
    grid = (TRANSFORMS, ways, sizes, COSTS)
    right = np.zeros([len(values) for values in grid])
    for train, test in inner_splits(X, y, seed):
        right += (_svm_classes(X[train], y[train], X[test], grid) == y[test]).sum(axis=-1)
    best = _best(right)
    chosen = [values[i] for values, i in zip(grid, best, strict=True)]
    predicted = _svm_classes(X, y, held, [(value,) for value in chosen]).ravel()
    return Outcome(predicted, None, dict(zip(("transform", "way", "size", "C"), chosen, strict=True)))


def _best(right: Floats) -> tuple[int, ...]:
    """Where the most rows are right; of equals, where neighbours in the last two directions are better."""
    around = np.pad(right, [(0, 0)] * (right.ndim - 2) + [(1, 1)] * 2, mode="edge")
    n, m = right.shape[-2:]
    smooth = np.mean([around[..., i : i + n, j : j + m] for i in range(3) for j in range(3)], axis=0)
    return np.unravel_index((right + smooth / (2 * right.max() + 1)).argmax(), right.shape)


def _svm_classes(X: Floats, y: Codes, held: Floats, grid: Sequence[tuple[Any, ...]]) -> Codes:
    """Classes of held-out rows for everything in a grid of transforms, ways, sizes and costs."""
    transforms, ways, sizes, costs = grid
    out = np.empty([*(len(values) for values in grid), len(held)], dtype=np.intp)
    for t, transform in enumerate(transforms):
        A, B = standardised(X, held, transform)
        order = by_variance_ratio(A, y)
        for s, size in enumerate(sizes):
            kept = order[:size]
            kernel = A[:, kept] @ A[:, kept].T / len(kept)
            other = B[:, kept] @ A[:, kept].T / len(kept)
            for w, way in enumerate(ways):
                for c, cost in enumerate(costs):
                    out[t, w, s, c] = _kernel_svm(kernel, y, other, cost, way)
    return out


def _kernel_svm(kernel: Floats, y: Codes, other: Floats, cost: float, way: str) -> Codes:
    model = SVC(kernel="precomputed", C=cost)
    if way == "one-vs-one":
        return model.fit(kernel, y).predict(other)
    classes = np.unique(y)
    margins = [model.fit(kernel, y == c).decision_function(other) for c in classes]
    return classes[np.argmax(margins, axis=0)]


@method("genes", "logistic", "LogisticRegression; raw or log, C chosen")
def logistic(X: Floats, y: Codes, held: Floats, seed: int) -> Outcome:
    right = np.zeros((len(TRANSFORMS), len(COSTS)))
    for train, test in inner_splits(X, y, seed):
        for t, transform in enumerate(TRANSFORMS):
            A, B = rotated(*standardised(X[train], X[test], transform))
            for c, model in enumerate(_logistic_path(A, y[train], COSTS)):
                right[t, c] += (model.predict(B) == y[test]).sum()
    t, c = _best(right[:, None])[0::2]
    A, B = rotated(*standardised(X, held, TRANSFORMS[t]))
    *_, model = _logistic_path(A, y, COSTS[: c + 1])
    return fitted_outcome(model, B, {"transform": TRANSFORMS[t], "C": COSTS[c]})


def _logistic_path(X: Floats, y: Codes, costs: tuple[float, ...]) -> Iterator[LogisticRegression]:
    model = LogisticRegression(max_iter=5000, warm_start=True)
    for cost in costs:
        yield model.set_params(C=cost).fit(X, y)


def rotated(X: Floats, held: Floats) -> tuple[Floats, Floats]:
    """Both tables in a basis of the first one's rows: a ridge's optimum lies there, and it is small."""
    basis = qr(X.T, mode="economic")[0]
    unit = np.sqrt(X.shape[1])
    return X @ basis / unit, held @ basis / unit


@method("genes", "gaussian_nb", "GaussianNB; raw or log, smoothing chosen", quick=False)
def gaussian_nb(X: Floats, y: Codes, held: Floats, seed: int) -> Outcome:
    right = np.zeros((len(TRANSFORMS), len(VARIANCES)))
    for train, test in inner_splits(X, y, seed):
        for t, transform in enumerate(TRANSFORMS):
            A, B = standardised(X[train], X[test], transform)
            for v, spread in enumerate(VARIANCES):
                model = GaussianNB(var_smoothing=spread).fit(A, y[train])
                right[t, v] += (model.predict(B) == y[test]).sum()
    t, v = _best(right[:, None])[0::2]
    A, B = standardised(X, held, TRANSFORMS[t])
    chosen = {"transform": TRANSFORMS[t], "var_smoothing": VARIANCES[v]}
    return fitted_outcome(GaussianNB(var_smoothing=VARIANCES[v]).fit(A, y), B, chosen)
