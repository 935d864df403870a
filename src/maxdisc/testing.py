"""Checks for families, divergences, moments, sources of rows and classifiers.

A new family is tested by one line::

    from maxdisc.testing import check_family
    check_family(MyFamily())

The tests of the package also draw random data here, and run checks with both implementations: ``taking``
selects compiled or plain code for any size of data, ``batches_of`` makes batches small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing, get_tags

from maxdisc.decisions.linear import LinearDecision, ranked_decision
from maxdisc.densities.class_densities import ClassDensities, estimate
from maxdisc.densities.quadrature import class_nodes
from maxdisc.divergences.class_divergences import Divergence, js_gm
from maxdisc.families import Family, find_family
from maxdisc.families.support import Support
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.counting import class_moments
from maxdisc.moments.products import ClassProducts
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Floats, Integers, Matrix, is_sparse
from maxdisc.numerics.result_frame import frame_class
from maxdisc.numerics.switches import batches_of as batches_of
from maxdisc.numerics.switches import taking as taking
from maxdisc.rows.row_sources import ArrayRows, FixedFolds, HashFolds, Rows
from maxdisc.search import FOR_TABLES

__all__ = [
    "check_divergence",
    "check_family",
    "check_invariances",
    "check_moments",
    "check_rows",
]


def random_data(
    family: str | Family, n_rows: int = 60, n_classes: int = 3, n_features: int = 5, seed: int = 0
) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Draw rows (N, D) from random members of a family, and classes (N,); every class has a row."""
    family = find_family(family)
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % n_classes
    natural = family.natural(random_means(family, (n_classes, n_features), seed))
    return family.sample(natural[:, codes], rng), codes


def random_means(family: Family, shape: tuple[int, ...], seed: int = 0) -> Floats:
    """Draw means of statistics that some density of the family has, shape (L, *shape).

    They are averages of the statistics of a few points of the support, so they are feasible by construction.
    """
    rng = np.random.default_rng(seed)
    support = family.support
    if support.lattice:
        likely = support.quadrature(n_nodes=12)[0]
    elif np.isfinite(support.low) and np.isfinite(support.high):
        likely = support.low + (support.high - support.low) * np.linspace(0.1, 0.9, 33)
    else:
        start = support.low if np.isfinite(support.low) else -6.0
        likely = np.linspace(start, 6.0 + max(start, 0.0), 41)[1:-1]
    points = rng.choice(likely, size=(6, *shape))
    # Two that differ, and the atoms, so that no moment lies on its boundary.
    points[0], points[1] = likely[len(likely) // 4], likely[-1 - len(likely) // 4]
    for i, atom in enumerate(support.atoms):
        points[2 + i] = atom
    shares = rng.dirichlet(np.ones(6), size=shape)
    shares = np.moveaxis(0.7 * shares + 0.3 / 6, -1, 0)
    return np.stack([(shares * s).sum(axis=0) for s in family.statistics(points)])


def random_densities(
    family: str | Family, n_classes: int = 3, n_features: int = 5, seed: int = 0
) -> ClassDensities:
    """Estimate densities of shape (L, C, D) from random rows of a family."""
    family = find_family(family)
    X, codes = random_data(family, 40 * n_classes, n_classes, n_features, seed)
    moments = class_moments(family.statistics, X, codes, n_classes, powers=family.translates)
    return estimate(family, moments, Smoothing(1.0))


def check_family(family: Family, seed: int = 0) -> None:
    """Check that a family is an exponential family; raise ``AssertionError`` otherwise.

    Natural and mean parameters are inverse to each other; the mean is the gradient of the log-partition,
    which is convex; densities integrate to 1, have that mean, and peak where ``peak`` says; entropy and KL
    divergence equal their integrals; samples lie in the support and have the mean; zeros and sparse rows are
    handled as declared; errors for values out of the support name the column.

    Parameters
    ----------
    family : Family
        The family.
    seed : int
        Seed of the random densities.

    Examples
    --------
    >>> from maxdisc.families import Geometric
    >>> from maxdisc.testing import check_family
    >>> check_family(Geometric())
    """
    mean = random_means(family, (2, 7), seed)
    natural, _, adjusted = family.fitted(mean)
    if adjusted.any():  # no member has these means: others take their places
        assert not adjusted.all(), "fitted() adjusts all means that are tried"
        kept = np.resize(np.flatnonzero(~adjusted.ravel()), adjusted.size)
        mean, natural = (v.reshape(len(v), -1)[:, kept].reshape(v.shape) for v in (mean, natural))
    _check_duality(family, natural, mean)
    _check_integrals(family, natural)
    _check_nodes(family, natural)
    _check_sampling(family, natural, seed)
    _check_zero(family, seed)
    _check_refusal(family)
    assert family.interior(mean).all(), "interior() refuses means that densities have"
    neutral = np.asarray(family.neutral, dtype=np.float64)
    assert neutral.shape == (family.n_statistics,), "neutral needs one mean for each statistic"
    assert family.interior(neutral), "the neutral mean is not inside the domain"
    assert family.solved(natural, mean).all(), "solved() denies a solution"


def _check_duality(family: Family, natural: Floats, mean: Floats) -> None:
    L = family.n_statistics
    assert natural.shape == mean.shape == (L, 2, 7), "natural(mean) has another shape than mean"
    np.testing.assert_allclose(family.mean(natural), mean, rtol=1e-7, err_msg="mean(natural(mean)) != mean")
    log_partition = family.log_partition(natural)
    assert log_partition.shape == (2, 7), "log_partition(natural) must drop the first axis only"
    for axis in range(L):
        step = 1e-6 * np.maximum(np.abs(natural[axis]), 1e-3)
        up, down = natural.copy(), natural.copy()
        up[axis] += step
        down[axis] -= step
        slope = (family.log_partition(up) - family.log_partition(down)) / (2 * step)
        np.testing.assert_allclose(
            slope, mean[axis], rtol=2e-4, atol=1e-6, err_msg="mean is not the gradient of log_partition"
        )
    p, q = natural[:, 0], natural[:, 1]
    middle = family.log_partition((p + q) / 2)
    ends = (family.log_partition(p) + family.log_partition(q)) / 2
    assert (middle <= ends + 1e-9 * (1 + np.abs(ends))).all(), "log_partition is not convex"
    assert (family.kl(p, q) >= -1e-9).all(), "KL is negative"
    np.testing.assert_allclose(family.kl(p, p), 0.0, atol=1e-9, err_msg="KL(p, p) is not 0")


def _check_integrals(family: Family, natural: Floats) -> None:
    mean = family.mean(natural)
    for j in range(natural.shape[2]):
        p, q = natural[:, 0, j], natural[:, 1, j]
        x, w = nodes_for(family, mean[:, 0, j])
        log_p = family.log_density(x, p[:, None])
        log_q = family.log_density(x, q[:, None])
        mass = w * np.exp(log_p)
        np.testing.assert_allclose(mass.sum(), 1.0, rtol=1e-6, err_msg="the density does not integrate to 1")
        got = [float((mass * s).sum()) for s in family.statistics(x)]
        np.testing.assert_allclose(
            got, mean[:, 0, j], rtol=1e-5, atol=1e-7, err_msg="the density's statistics have another mean"
        )
        np.testing.assert_allclose(
            family.entropy(p), -(mass * log_p).sum(), rtol=1e-5, atol=1e-6, err_msg="entropy is not -E log p"
        )
        np.testing.assert_allclose(
            family.kl(p, q),
            (mass * (log_p - log_q)).sum(),
            rtol=1e-5,
            atol=1e-6,
            err_msg="KL is not its integral",
        )


def _check_nodes(family: Family, natural: Floats) -> None:
    """The nodes for several densities at once find all the mass of each: peaks are where ``peak`` says."""
    atoms = [np.exp(family.log_density(np.full(natural.shape[1:], a), natural)) for a in family.support.atoms]
    mass = np.sum(atoms, axis=0) if atoms else np.zeros(natural.shape[1:])
    for features, place, weights in class_nodes(family, natural):
        density = np.exp(family.log_density_at(place[:, None], natural[:, :, features]))
        for c, part in enumerate((weights[:, None] * density).sum(axis=0)):
            mass[c] += np.bincount(features, part, natural.shape[2])
    np.testing.assert_allclose(mass, 1.0, rtol=1e-6, err_msg="peak() is not where the density is")


def nodes_for(family: Family, mean: Floats) -> tuple[Floats, Floats]:
    """Return nodes and weights for integrals over a family's support, near a density of mean (L,)."""
    center = float(mean[0]) if family.translates else 0.0
    if family.translates:
        scale = float(np.sqrt(mean[1] - mean[0] ** 2))
    else:
        scale = max(abs(float(mean[-1])), 1e-3) if np.isinf(family.support.high) else 1.0
    ends = [family.support.low, *family.breaks, family.support.high]
    if len(ends) == 2 or family.support.lattice:
        x, w = family.support.quadrature(center, scale, 2001)
    else:
        pieces = [Support(a, b).quadrature(center, scale, 2001) for a, b in pairwise(ends)]
        x, w = (np.concatenate(part) for part in zip(*pieces, strict=True))
    finite = np.all([np.isfinite(s) for s in family.statistics(x)], axis=0)
    return x[finite], w[finite]


def _check_sampling(family: Family, natural: Floats, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 4000
    draws = family.sample(np.broadcast_to(natural[:, None], (natural.shape[0], n, *natural.shape[1:])), rng)
    assert draws.shape == (n, *natural.shape[1:]), "sample(natural) must have the shape of one parameter"
    assert family.support.contains(draws, family.integral).all(), "a sample lies outside the support"
    for statistic, mean in zip(family.statistics(draws), family.mean(natural), strict=True):
        error = np.abs(statistic.mean(axis=0) - mean) / (statistic.std(axis=0) / np.sqrt(n) + 1e-12)
        assert (error < 6).all(), "samples do not have the mean of their density"


def _check_zero(family: Family, seed: int) -> None:
    if not family.preserves_zero:
        return
    assert family.support.contains(0.0), "preserves_zero, but zero is not in the support"
    for statistic in family.statistics(np.zeros((1, 1))):
        assert statistic[0, 0] == 0, "preserves_zero, but a statistic is not 0 at 0"
    assert family.log_base(0.0) == 0, "preserves_zero, but log_base is not 0 at 0"
    X, _ = random_data(family, seed=seed)
    X[::2] = 0
    for dense, sparse in zip(family.statistics(X), family.statistics(sp.csr_array(X)), strict=True):
        assert is_sparse(sparse), "statistics of a sparse matrix must be sparse"
        np.testing.assert_allclose(sparse.toarray(), dense, err_msg="sparse and dense statistics differ")


def _check_refusal(family: Family) -> None:
    low = family.support.low
    if not np.isfinite(low):
        return
    X = np.full((3, 2), 1.0 if np.isinf(family.support.high) else (low + family.support.high) / 2)
    if family.integral:
        X = np.rint(X)
    X[2, 1] = low - 1
    try:
        family.require(X, ["first", "second"])
    except ValueError as error:
        assert "second" in str(error), "the refusal does not name the column"
        assert f"{low - 1:g}" in str(error), "the refusal does not name the value"
    else:
        raise AssertionError("a value below the support was accepted")


def check_divergence(divergence: Divergence, family: str | Family = "gaussian", seed: int = 0) -> None:
    """Check the properties of a divergence that ranking relies on; raise ``AssertionError`` otherwise.

    There is one finite, non-negative score for each feature; it is 0 if all classes have the same density;
    and it depends neither on the order of the classes nor on other features.

    Parameters
    ----------
    divergence : callable
        Maps the densities of all classes and features to scores of shape (D,).
    family : str or Family
        The family of the test densities.
    seed : int
        Seed of the random data.

    Examples
    --------
    >>> from maxdisc.divergences import js_gm
    >>> from maxdisc.testing import check_divergence
    >>> check_divergence(js_gm, "poisson")
    """
    family = find_family(family)
    X, codes = random_data(family, 90, 3, 6, seed)

    def scores(X: Floats, codes: npt.NDArray[np.intp]) -> Floats:
        moments = class_moments(family.statistics, X, codes, 3, powers=family.translates)
        return np.asarray(divergence(estimate(family, moments, Smoothing(0.5))))

    base = scores(X, codes)
    assert base.shape == (6,), "a divergence gives one score for each feature"
    assert np.isfinite(base).all(), "a score is not finite"
    assert (base >= 0).all(), "a score is negative"
    assert (base > 0).any(), "features that differ between classes all score 0"
    np.testing.assert_allclose(
        scores(X, (codes + 1) % 3), base, rtol=1e-8, err_msg="the order of classes matters"
    )
    order = np.random.default_rng(seed).permutation(6)
    np.testing.assert_allclose(
        scores(X[:, order], codes), base[order], rtol=1e-8, err_msg="features interact"
    )
    same = np.repeat(X[codes == 0], 3, axis=0)
    np.testing.assert_allclose(
        scores(same, np.arange(len(same)) % 3), 0.0, atol=1e-9, err_msg="equal classes do not score 0"
    )


def check_moments(family: str | Family, seed: int = 0) -> None:
    """Check that a family's moments add, over batches, weights, folds and classes; else raise
    ``AssertionError``.

    Parameters
    ----------
    family : str or Family
        The family.
    seed : int
        Seed of the random data.

    Examples
    --------
    >>> from maxdisc.testing import check_moments
    >>> check_moments("hurdle")
    """
    family = find_family(family)
    X, codes = random_data(family, 50, 3, 4, seed)
    rng = np.random.default_rng(seed)

    def moments(X: Matrix, labels: Any, weights: Any = None) -> ClassMoments:
        return class_moments(family.statistics, X, labels, 3, weights, powers=family.translates)

    whole = moments(X, codes)
    zero = ClassMoments.zero(family.n_statistics, 3, 4)
    _assert_same(family, zero + whole, whole)
    _assert_same(family, whole + zero, whole)
    for _ in range(3):
        cuts = np.sort(rng.choice(50, size=4))
        parts = [moments(X[a:b], codes[a:b]) for a, b in zip(np.r_[0, cuts], np.r_[cuts, 50], strict=True)]
        order = rng.permutation(len(parts))
        _assert_same(family, ClassMoments.total(parts[i] for i in order), whole)
    a, b = moments(X[:20], codes[:20]), moments(X[20:], codes[20:])
    np.testing.assert_array_equal((a + b).sums, (b + a).sums, err_msg="addition is not commutative")
    times = rng.integers(0, 4, size=50)
    repeated = np.repeat(np.arange(50), times)
    _assert_same(family, moments(X, codes, times.astype(float)), moments(X[repeated], codes[repeated]))
    _assert_same(family, moments(X, np.eye(3)[codes]), whole)
    others = whole.rest()
    for c in range(3):
        keep = codes != c
        together = moments(X[keep], np.zeros(keep.sum(), dtype=np.intp))
        _assert_same(family, others, together, (c, 0))
    if family.preserves_zero:
        X[::2] = 0
        _assert_same(family, moments(sp.csr_array(X), codes), moments(X, codes))


def _assert_same(
    family: Family, a: ClassMoments, b: ClassMoments, classes: tuple[int, int] | None = None
) -> None:
    """The same weights, and the same means of the statistics about a common origin."""
    i, j = (slice(None), slice(None)) if classes is None else classes
    np.testing.assert_allclose(a.weight[i], b.weight[j], rtol=1e-12, err_msg="weights differ")
    if family.translates:
        (center_a, sums_a), (center_b, sums_b) = a.centred(), b.centred()
        np.testing.assert_allclose(center_a[i], center_b[j], rtol=1e-11, atol=1e-13, err_msg="means differ")
    else:
        sums_a, sums_b = a.sums, b.sums
    np.testing.assert_allclose(sums_a[:, i], sums_b[:, j], rtol=1e-10, atol=1e-12, err_msg="sums differ")


def _assert_same_products(a: ClassProducts, b: ClassProducts) -> None:
    """The same weights, class means and scatter within classes."""
    np.testing.assert_allclose(a.weight, b.weight, rtol=1e-12, err_msg="weights differ")
    counted = b.weight > 0
    np.testing.assert_allclose(
        a.means()[counted], b.means()[counted], rtol=1e-11, atol=1e-13, err_msg="means differ"
    )
    np.testing.assert_allclose(a.within(), b.within(), rtol=1e-9, atol=1e-10, err_msg="products differ")


def check_rows(
    make: Callable[[Matrix, npt.NDArray[np.intp], int], Rows], family: str | Family = "poisson", seed: int = 0
) -> None:
    """Check that a source of rows counts like rows in memory; raise ``AssertionError`` otherwise.

    Parameters
    ----------
    make : callable
        Function of ``X`` (N, D), codes (N,) and the number of classes that returns the source.
    family : str or Family
        The family of the moments.
    seed : int
        Seed of the random data.

    Examples
    --------
    >>> from maxdisc.rows.row_sources import ArrayRows
    >>> from maxdisc.testing import check_rows
    >>> check_rows(ArrayRows)
    """
    family = find_family(family)
    X, codes = random_data(family, 80, 3, 6, seed)
    rows, oracle = make(X, codes, 3), ArrayRows(X, codes, 3)
    assert rows.n_classes == 3, "n_classes is wrong"
    assert rows.example().shape[1] == 6, "example() does not look like the rows"
    _assert_same(family, rows.moments(family)[0], oracle.moments(family)[0])
    moments = oracle.moments(family)[0]
    some = np.array([4, 0, 3])
    for per_class in (False, True):
        _assert_same_products(
            rows.products(some, None, per_class)[0], oracle.products(some, None, per_class)[0]
        )
    order = ranked_decision(family, moments, Smoothing(1.0), js_gm)[0].order
    sizes = np.array([1, 2, 4, 6])
    for folds in (HashFolds(3), FixedFolds(np.arange(80) % 4 - 1, 3)):
        parts, expected = rows.moments(family, folds), oracle.moments(family, folds)
        assert len(parts) == 4, "moments(folds) gives one for each fold and one for the rest"
        for part, want in zip(parts, expected, strict=True):
            _assert_same(family, part, want)
        counts, wanted = rows.products(some, folds), oracle.products(some, folds)
        assert len(counts) == 4, "products(folds) gives one for each fold and one for the rest"
        for products, due in zip(counts, wanted, strict=True):
            _assert_same_products(products, due)
        fold_of = folds.of(X, 0)

        def decision_of(fold: int, expected: list[ClassMoments] = expected) -> LinearDecision:
            training = ClassMoments.total(m for f, m in enumerate(expected) if f != fold)
            return LinearDecision.of(family, training, Smoothing(1.0), order)

        for fold, counted in enumerate(rows.sweep(decision_of, sizes, folds)):
            held = fold_of == fold
            assert counted.weight == held.sum(), "the sweep saw other rows than those held out"
            for s, size in enumerate(sizes):
                scores = decision_of(fold).first(int(size)).scores(X[held])
                assert counted.correct[s] == (scores.argmax(axis=1) == codes[held]).sum(), "wrong count"


#: Largest differences of probabilities that :func:`check_invariances` takes for rounding: without conditional
#: models, whose sums are made in another order, and with them, which are solved to few digits.
ROUNDING = 1e-8
SOLVED = 1e-2
#: By what units may change, and how, for densities whose smoothing is each column's own.
_UNITS = {"gaussian": "each", "gamma": "each", "hurdle": "each", "exponential": "all"}


def check_invariances(
    estimator: BaseEstimator, X: Any, y: npt.ArrayLike, tolerance: float | None = None, seed: int = 0
) -> None:
    """Check that probabilities do not depend on how rows are represented; raise ``AssertionError`` otherwise.

    The probabilities of all rows are compared with those of fits to an equivalent representation:

    - renamed labels, also with names that sort in reverse order;
    - columns in another order;
    - rows in another order, for ``cv="hash"``;
    - rows of weight 0, 1 or 2 versus rows repeated 0, 1 or 2 times, for ``cv="hash"``;
    - an array versus a frame of the same numbers, with one family (Gaussian for ``family="auto"``);
    - other units, if X is an array: a factor for each column of Gaussian, gamma and hurdle densities, also an
      offset if Gaussian ones are independent (joint ones may be of logarithms), and one factor for all
      columns of exponential densities, which share their smoothing.

    Ties are broken by the order of columns and classes: of columns whose scores agree in 36 bits the first
    are selected, of equally probable classes the first is predicted. So columns that are tied stay in their
    order, and labels are compared where the two most probable differ by more than the tolerance.

    Exceptions of an estimator are in its tags: ``get_tags(estimator).invariance_exceptions``, each in one
    sentence. For estimators with ``cv="hash"``, columns and units are changed with ``cv=5``; for
    ``Joint(search="greedy")`` they are not changed.

    Parameters
    ----------
    estimator : MaxDiscClassifier, MaxDiscSearchCV, DiscriminativeMaxEnt or a subclass
        Columns in its parameters must be given by name.
    X : ndarray, sparse matrix or frame of shape (N, D)
        Rows, fewer than are sampled: 2,000 are enough for any check.
    y : array_like of shape (N,)
        The label of each row.
    tolerance : float, optional
        The largest difference of a probability; by default 1e-8, or 0.01 where conditional models are solved.
    seed : int
        Seed of the random orders, weights and units.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.testing import check_invariances
    >>> check_invariances(MaxDiscClassifier(structure="independent"), *load_wine(return_X_y=True))
    """
    exceptions = get_tags(estimator).invariance_exceptions
    if tolerance is None:
        tolerance = SOLVED if "solver" in exceptions else ROUNDING
    y, rng = np.asarray(y), np.random.default_rng(seed)
    given = estimator.get_params(deep=False)
    by_order = by_hash = clone(estimator)
    if "cv" in given:
        by_hash = clone(estimator).set_params(cv="hash")
        is_hashed = isinstance(given["cv"], str) and given["cv"] == "hash"
        by_order = clone(estimator).set_params(cv=5) if is_hashed else by_order
    has_halves = getattr(given.get("structure"), "search", None) == "greedy"
    base = _Answers.of(by_order, X, y)

    def compare(expected: _Answers, found: _Answers, law: str) -> None:
        expected.require_same(found, tolerance, law)

    for law, step in (("labels have other names", 1), ("labels sort the other way", -1)):
        compare(base, _renamed(by_order, X, y, step), law)
    if not has_halves:
        columns = _safe_indexing(X, _column_order(base.scores, X.shape[1], rng), axis=1)
        compare(base, _Answers.of(by_order, columns, y), "columns have another order")
    rows, times = rng.permutation(len(y)), _times(y, rng)
    hashed, turned = _Answers.of(by_hash, X, y), _Answers.of(by_hash, *_rows(X, y, rows), test=X)
    compare(hashed, turned, "rows have another order")
    weighed = _Answers.of(by_hash, X, y, times.astype(np.float64))
    repeated = _Answers.of(by_hash, *_rows(X, y, np.repeat(np.arange(len(y)), times)), test=X)
    compare(weighed, repeated, "rows of weight 2 are there twice")
    if isinstance(X, np.ndarray) and find_spec("pandas") is not None:
        one = _with_one_family(by_order)
        frame = frame_class()({f"x{j}": X[:, j] for j in range(X.shape[1])})
        compare(_Answers.of(one, X, y), _Answers.of(one, frame, y), "an array is a frame")
    if "penalty" not in exceptions and not has_halves:
        for law, changed in _in_other_units(estimator, X, rng):
            compare(base, _Answers.of(by_order, changed, y), law)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Predictions of a fitted classifier, with classes in the order of their old names."""

    probabilities: Floats  # (N, C)
    predicted: Integers  # (N,)
    scores: Floats | None  # (D,)

    @classmethod
    def of(
        cls,
        estimator: BaseEstimator,
        X: Any,
        y: npt.NDArray[Any],
        weights: Floats | None = None,
        test: Any = None,
        names: npt.NDArray[Any] | None = None,
    ) -> _Answers:
        """Fit, and ask of the rows or of others; ``names`` are the labels in the order of their old names."""
        model = clone(estimator).fit(X, y, **({} if weights is None else {"sample_weight": weights}))
        test = X if test is None else test
        places = np.searchsorted(model.classes_, np.unique(y) if names is None else names)
        at = np.argsort(places)[np.searchsorted(model.classes_, model.predict(test))]
        scores = getattr(getattr(model, "best_classifier_", model), "scores_", None)
        return cls(model.predict_proba(test)[:, places], at, scores)

    def require_same(self, found: _Answers, tolerance: float, law: str) -> None:
        """Raise ``AssertionError`` for a probability that differs, or a label that is not tied."""
        gap = float(np.abs(self.probabilities - found.probabilities).max())
        assert gap <= tolerance, f"{law}, and a probability differs by {gap:.2g}"
        first, second = np.sort(self.probabilities, axis=1)[:, :-3:-1].T
        clear = first - second > 2 * tolerance
        assert (self.predicted == found.predicted)[clear].all(), f"{law}, and another class is predicted"


def _renamed(estimator: BaseEstimator, X: Any, y: npt.NDArray[Any], step: int) -> _Answers:
    """Fit with renamed labels, which sort as before or (step -1) in reverse order."""
    old, codes = np.unique(y, return_inverse=True)
    names = np.array([f"class {place:06d}" for place in range(len(old))])[::step]
    given, changed = estimator.get_params(deep=False), clone(estimator)
    if given.get("prior") is not None:
        changed.set_params(prior=np.asarray(given["prior"])[::step])
    if isinstance(given.get("class_weight"), Mapping):
        new = dict(zip(old.tolist(), names.tolist(), strict=True))
        changed.set_params(class_weight={new[one]: weight for one, weight in given["class_weight"].items()})
    return _Answers.of(changed, X, names[codes], names=names)


def _rows(X: Any, y: npt.NDArray[Any], rows: Integers) -> tuple[Any, npt.NDArray[Any]]:
    return _safe_indexing(X, rows), y[rows]


def _times(y: npt.NDArray[Any], rng: np.random.Generator) -> Integers:
    """Draw how often rows occur: 0, 1 or 2 times, but each class at least four times."""
    times = rng.integers(0, 3, size=len(y))
    for label in np.unique(y):
        times[np.flatnonzero(y == label)[:2]] = 2
    return times


def _column_order(scores: Floats | None, n_columns: int, rng: np.random.Generator) -> Integers:
    """Return a random order of columns in which those of equal score stay in theirs."""
    order = rng.permutation(n_columns)
    if scores is None:
        return order
    mantissa, exponent = np.frexp(scores)
    _, tied = np.unique(np.ldexp(np.rint(mantissa * 2.0**36), exponent - 36), return_inverse=True)
    for group in np.unique(tied):
        places = np.flatnonzero(tied[order] == group)
        order[places] = np.sort(order[places])
    return order


def _with_one_family(estimator: BaseEstimator) -> BaseEstimator:
    """Return a copy that takes the columns of a frame as it takes an array."""
    given = estimator.get_params(deep=False)
    if isinstance(given.get("family"), str) and given["family"] == "auto":
        return clone(estimator).set_params(family="gaussian")
    if "candidates" in given:
        listed = FOR_TABLES if isinstance(given["candidates"], str) else given["candidates"]
        return clone(estimator).set_params(candidates=[{"family": "gaussian", **one} for one in listed])
    return clone(estimator)


def _in_other_units(
    estimator: BaseEstimator, X: Any, rng: np.random.Generator
) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield rows in the units that their family may have, and what was changed."""
    given = estimator.get_params(deep=False)
    family = given.get("family", "auto")
    is_told_apart = given.get("categorical_features") is not None or given.get("missing") == "informative"
    if not isinstance(X, np.ndarray) or is_told_apart or isinstance(family, Mapping):
        return
    name = family if isinstance(family, str) else family.name
    of = _UNITS.get("gaussian" if name == "auto" else name)
    if of is None or any("scale" in one for one in given.get("candidates", ()) if isinstance(one, Mapping)):
        return
    factors = 10.0 ** rng.uniform(-2, 2, size=X.shape[1] if of == "each" else 1)
    yield "units are others", X * factors
    if given.get("structure") == "independent" and name in ("auto", "gaussian"):
        yield "units begin elsewhere", (X + 3 * np.nanstd(X, axis=0)) * factors
