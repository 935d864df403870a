"""Joint densities: oracles from scipy and scikit-learn, and the laws of the decision among them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf_shrinkage, oas
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from maxdisc import Joint, MaxDiscClassifier, load, save
from maxdisc.decisions.joint import JointSample, JointTrial, LogTransform, cross_fitted_order, forward_search
from maxdisc.divergences import js_gm
from maxdisc.families import Gaussian
from maxdisc.fitting.cross_validation import fold_plans
from maxdisc.inspection.decisive_features import loudest
from maxdisc.inspection.odds import log_odds
from maxdisc.inspection.ranking import ranking_table
from maxdisc.model_file import describe
from maxdisc.report import evaluate
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows, FixedFolds
from maxdisc.selection import joint_fold_models as joint_folds
from maxdisc.selection.joint_fold_models import JointModels

# One joint density, not an average of many.
RawClassifier = partial(MaxDiscClassifier, evidence="raw")


def correlated(seed=0, n=80, d=6, classes=3):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, size=n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=(classes, d))[codes] + 5
    return X, codes


def sample_of(X, codes, columns=None, per_class=False, weights=None):
    columns = np.arange(X.shape[1]) if columns is None else columns
    n_classes = codes.max() + 1
    rows = ArrayRows(X, codes, n_classes, weights)
    weights = np.ones(len(X)) if weights is None else weights
    return JointSample.of_rows(X, codes, weights, rows.moments(Gaussian())[0], columns, per_class)


def shrunk(X, codes, share, per_class, weights=None):
    """The covariances by the definition, one for each class."""
    weights = np.ones(len(X)) if weights is None else weights
    n_classes = codes.max() + 1
    mass = np.bincount(codes, weights)
    means = np.stack(
        [np.average(X[codes == c], axis=0, weights=weights[codes == c]) for c in range(n_classes)]
    )
    residuals = X - means[codes]
    scatter = [
        (residuals[codes == c].T * weights[codes == c]) @ residuals[codes == c] for c in range(n_classes)
    ]
    pooled = sum(scatter) / mass.sum()
    target = np.diag(np.diag(pooled))
    if not per_class:
        return means, [(1 - share) * pooled + share * target] * n_classes
    pseudo = share / (1 - share) * mass.mean()
    return means, [(s + pseudo * target) / (m + pseudo) for s, m in zip(scatter, mass, strict=True)]


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("d", [4, 30])  # fewer, and more, features than rows in a class
def test_scores_and_base_are_the_log_densities_of_scipy(per_class, d):
    X, codes = correlated(1, n=40, d=d)
    weights = np.random.default_rng(2).uniform(0.5, 2, size=len(X))
    decision = sample_of(X, codes, per_class=per_class, weights=weights).decision(d, 0.3)
    means, covariances = shrunk(X, codes, 0.3, per_class, weights)
    prior = np.bincount(codes, weights) / weights.sum()
    due = np.stack(
        [
            np.log(p) + multivariate_normal(m, S).logpdf(X)
            for p, m, S in zip(prior, means, covariances, strict=True)
        ],
        axis=1,
    )
    got = decision.scores(X) + decision.log_base(X)[:, None]
    np.testing.assert_allclose(got, due, rtol=1e-9, atol=1e-8)


def test_a_missing_cell_is_integrated_out():
    X, codes = correlated(1)
    for per_class in (False, True):
        decision = sample_of(X, codes, per_class=per_class).decision(6, 0.2)
        means, covariances = shrunk(X, codes, 0.2, per_class)
        rows = X[:4].copy()
        rows[0, [1, 4]] = rows[1, 0] = rows[2] = np.nan
        got = decision.scores(rows) + decision.log_base(rows)[:, None]
        for row, scores in zip(rows, got, strict=True):
            seen = ~np.isnan(row)
            due = np.log(np.bincount(codes) / len(codes))
            if seen.any():
                due = due + [
                    multivariate_normal(m[seen], S[np.ix_(seen, seen)]).logpdf(row[seen])
                    for m, S in zip(means, covariances, strict=True)
                ]
            np.testing.assert_allclose(scores, due, rtol=1e-9)
        parts = decision.contributions(rows)
        np.testing.assert_allclose(decision.log_prior + parts.sum(axis=2), decision.scores(rows), rtol=1e-9)
        assert (parts[np.broadcast_to(np.isnan(rows)[:, None], parts.shape)] == 0).all()


@pytest.mark.parametrize("per_class", [False, True])
def test_the_first_features_of_a_decision_are_the_decision_of_the_first_features(per_class):
    X, codes = correlated(3, n=25, d=40)
    sample = sample_of(X, codes, per_class=per_class)
    whole, part = sample.decision(40, 0.2), sample.decision(7, 0.2)
    np.testing.assert_allclose(whole.first(7).scores(X), part.scores(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(whole.first(7).log_base(X), part.log_base(X), rtol=1e-8, atol=1e-8)


@given(st.integers(0, 30), st.booleans(), st.integers(1, 12), st.floats(0.001, 1.0))
def test_contributions_sum_to_the_scores(seed, per_class, size, share):
    X, codes = correlated(seed, n=30, d=12)
    decision = sample_of(X, codes, per_class=per_class).decision(size, share)
    total = decision.log_prior + decision.contributions(X).sum(axis=2)
    np.testing.assert_allclose(total, decision.scores(X), rtol=1e-8, atol=1e-7)


def test_it_agrees_with_scikit_learns_linear_discriminant():
    X, codes = correlated(5, n=300)
    # Shrinkage towards the mean variance there, towards each feature's own here: none, both are the same.
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.0).fit(X, codes)
    decision = sample_of(X, codes).decision(6, 0.0)
    np.testing.assert_array_equal(decision.scores(X).argmax(axis=1), lda.predict(X))


def test_shared_and_wholly_shrunk_is_the_diagonal_discriminant():
    X, codes = correlated(6)
    decision = sample_of(X, codes).decision(6, 1.0)
    independent = RawClassifier("gaussian", n_features="all", smoothing=1e12).fit(X, codes)
    gap = decision.scores(X) - independent.predict_joint_log_proba(X)
    np.testing.assert_allclose(gap, np.broadcast_to(gap[:, :1], gap.shape), atol=1e-6)


@pytest.mark.parametrize("d", [5, 90])
def test_shrinkage_rules_are_those_of_scikit_learn(d):
    X, codes = correlated(7, n=50, d=d)
    sample = sample_of(X, codes)
    Z = sample.factors[0] * np.sqrt(len(X))
    share = 1 / sample.decision(d, "ledoit_wolf").tail[0]
    np.testing.assert_allclose(share, ledoit_wolf_shrinkage(Z, assume_centered=True), rtol=1e-8)
    np.testing.assert_allclose(1 / sample.decision(d, "oas").tail[0], oas(Z, assume_centered=True)[1])


@pytest.mark.parametrize("rule", ["ledoit_wolf", "oas", 0.3])
@pytest.mark.parametrize("per_class", [False, True])
def test_a_row_of_weight_two_is_two_rows(rule, per_class):
    X, codes = correlated(7, n=50, d=20)
    times = np.random.default_rng(3).integers(1, 4, size=50)
    weighted = sample_of(X, codes, per_class=per_class, weights=times.astype(float)).decision(20, rule)
    repeated = sample_of(np.repeat(X, times, axis=0), np.repeat(codes, times), per_class=per_class)
    repeated = repeated.decision(20, rule)
    assert (weighted.tail > 1).all()
    np.testing.assert_allclose(weighted.tail, repeated.tail, rtol=1e-9)
    np.testing.assert_allclose(weighted.scores(X), repeated.scores(X), rtol=1e-8, atol=1e-8)


def test_weights_that_sum_to_one_are_one_row():
    X, codes = correlated(7, n=50, d=20)
    sample = sample_of(X, codes, weights=np.full(50, 1 / 50))
    assert sample.decision(20, "ledoit_wolf").tail[0] == sample.decision(20, "oas").tail[0] == 1


@pytest.mark.parametrize("per_class", [False, True])
def test_rows_and_products_make_the_same_decision(per_class):
    X, codes = correlated(8, n=60)
    columns = np.array([4, 0, 5, 2])
    rows = ArrayRows(X, codes, 3)
    moments = rows.moments(Gaussian())[0]
    one = sample_of(X, codes, columns, per_class)
    other = JointSample.of_products(rows.products(columns, per_class=per_class)[0], moments, columns)
    np.testing.assert_allclose(one.decision(3, 0.4).scores(X), other.decision(3, 0.4).scores(X), rtol=1e-8)
    with pytest.raises(ValueError, match="needs the rows in memory"):
        other.decision(3, "ledoit_wolf")


@pytest.mark.parametrize("per_class", [False, True])
def test_a_trial_counts_what_its_decisions_predict(per_class):
    X, codes = correlated(9, n=50, d=10)
    sample, sizes, shares = (
        sample_of(X[:30], codes[:30], per_class=per_class),
        np.array([1, 4, 10]),
        (0.1, 0.9),
    )
    rows = np.arange(30, 50)
    swept = JointTrial(sample, shares, (0.5, 1.0)).swept(X, codes, np.ones(50), sizes, rows)
    for a, share in enumerate(shares):
        for s, size in enumerate(sizes):
            scores = sample.decision(int(size), share).scores(X[rows])
            assert swept.correct[a, s] == (scores.argmax(axis=1) == codes[rows]).sum()
            for t, trust in enumerate((0.5, 1.0)):
                log_p = trust * scores - logsumexp(trust * scores, axis=1, keepdims=True)
                np.testing.assert_allclose(swept.loss[t, a, s], -log_p[np.arange(20), codes[rows]].sum())


@pytest.mark.parametrize("gap", [2.0**13, 2.0**27, 2.0**31])
def test_classes_far_apart_do_not_blur_those_that_are_near(gap):
    X, codes = correlated(2, n=3000, d=4, classes=3)  # so many rows: from products
    X = np.round(X * 2**16) / 2**16  # exact under the gap
    far = X + gap * (codes == 0)[:, None] * [1, 0, 0, 0]
    others = codes > 0
    joint = Joint(shrinkage=0.1, transform=None)
    near = RawClassifier(structure=joint, n_features="all").fit(X, codes).predict_log_proba(X[others])
    model = RawClassifier(structure=joint, n_features="all").fit(far, codes)
    got = model.predict_log_proba(far[others])
    # The covariance within classes is the same, so the odds of the near classes are.
    np.testing.assert_allclose(got[:, 1] - got[:, 2], near[:, 1] - near[:, 2], atol=1e-5)
    assert (model.predict(far[~others]) == 0).all()
    parts = model.explain(far[:50])
    np.testing.assert_allclose(parts.prior + parts.contributions.sum(axis=2), parts.total, rtol=1e-9)
    decision, rows = model.decision_, np.flatnonzero(others)
    R = 1 / decision.rate
    S = (
        np.linalg.inv(decision.tail[0] * (np.eye(4) - decision.factor[0].T @ decision.factor[0]))
        * R
        * R[:, None]
    )
    mean = decision.origin + decision.center[1] * R
    base = decision.log_base(far[rows]) + decision.scores(far[rows])[:, 1] - decision.log_prior[1]
    if gap > 2**20:  # nearer, terms of the square of the gap are borne
        due = multivariate_normal(mean, S).logpdf(far[rows][:, decision.columns])
        np.testing.assert_allclose(base, due, atol=1e-4)
    sample = sample_of(far, codes)
    swept = JointTrial(sample, (0.1,)).swept(far, codes, np.ones(3000), np.array([4]), rows)
    assert swept.correct[0, 0] == (model.predict(far[rows]) == codes[rows]).sum()


def direct(covariance, left, right, prior):
    """J by its formula: the mean over pairs of trace(S^-1 B)."""
    out = []
    for S, a, b in zip(covariance, left, right, strict=True):
        a, b = a - prior @ a, b - prior @ b
        out.append(
            np.trace(np.linalg.solve(S, (prior[:, None, None] * a[:, :, None] * b[:, None]).sum(axis=0)))
        )
    return np.mean(out)


@given(st.integers(0, 40), st.integers(1, 3))
def test_greedy_search_reaches_the_j_of_the_direct_formula_at_every_step(seed, n_pairs):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n_pairs, 30, 12))
    covariance = np.swapaxes(roots, 1, 2) @ roots / 30
    left, right = rng.normal(size=(2, n_pairs, 3, 12))
    if n_pairs == 1:
        right = left  # the plain J of all rows
    prior = rng.dirichlet(np.ones(3))
    order, reached = forward_search(covariance, left, right, prior, 12)
    assert len(set(order)) == len(order) == len(reached)
    if n_pairs == 1:
        assert len(order) == 12
    chosen: list[int] = []
    for step, feature in enumerate(order):
        # Each step takes the best there is, of all that are left.
        options = [f for f in range(12) if f not in chosen]
        values = []
        for f in options:
            at = [*chosen, f]
            values.append(direct(covariance[:, at][:, :, at], left[:, :, at], right[:, :, at], prior))
        np.testing.assert_allclose(reached[step], max(values), rtol=1e-8)
        assert options[int(np.argmax(values))] == feature
        chosen.append(int(feature))


def test_greedy_search_passes_over_copies_and_stops_at_noise():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 200)
    signal = rng.normal(size=(400, 3)) + codes[:, None] * [1.5, 0.7, 0.6]
    copy = signal[:, :1] + 0.01 * rng.normal(size=(400, 1))
    X = np.hstack([signal[:, :1], copy, signal[:, 1:], rng.normal(size=(400, 10))])
    halves = ArrayRows(X, codes, 2).products(np.arange(14), FixedFolds(np.arange(400) % 2, 2))
    order = cross_fitted_order(halves[0], halves[1], 0.01, 14)
    assert set(order[:3]) in ({0, 2, 3}, {1, 2, 3})
    assert len(order) < 14
    chosen = RawClassifier(structure=Joint(search="greedy", transform=None), n_features=3).fit(X, codes)
    assert set(chosen.decision_.columns) in ({0, 2, 3}, {1, 2, 3})
    plain = RawClassifier(structure=Joint(transform=None), n_features=3).fit(X, codes)
    assert {0, 1} <= set(plain.decision_.columns)


@pytest.mark.parametrize("step", [1.0, 3.0, 1 / 3, 0.1, 0.7, 100.0])
def test_greedy_search_takes_what_is_constant_within_classes_first(step):
    X, y = np.random.default_rng(0).normal(size=(200, 8)), np.arange(200) % 2
    X[:, 0] = y * step  # its scatter within classes is 0, or a crumb of rounding
    joint = Joint(search="greedy", shrinkage=0.1, transform=None)
    model = RawClassifier(structure=joint, n_features=2).fit(X, y)
    assert model.decision_.columns[0] == 0
    assert model.score(X, y) == 1.0


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e6))
def test_the_log_is_odd_and_has_an_inverse(x, unit):
    log = LogTransform(np.array([unit]))
    value = log(np.array([[x]]))
    np.testing.assert_allclose(log.inverse(value), x, rtol=1e-9, atol=1e-12 * unit)
    np.testing.assert_array_equal(log(np.array([[-x]])), -value)


@pytest.mark.parametrize("unit", [1e-160, 1.0, 1e130])
def test_what_lies_beyond_all_values_is_the_largest(unit):
    found = LogTransform(np.array([unit])).inverse(np.array([[1e4], [-1e15], [0.0]]))
    np.testing.assert_allclose(found, [[1e140], [-1e140], [0.0]], rtol=1e-9)


def test_the_log_of_sparse_and_missing_values():
    X = np.array([[0.0, -3.0], [2.0, 0.0]])
    log = LogTransform(np.array([1.0, 2.0]))
    np.testing.assert_allclose(log(sp.csr_array(X)).toarray(), log(X))
    assert np.isnan(log(np.array([[np.nan, 1.0]]))[0, 0])


def test_the_density_of_x_under_the_log_integrates_to_one():
    X, y = np.random.default_rng(0).lognormal(1, 1, size=(200, 1)), np.arange(200) % 2
    model = RawClassifier(structure=Joint(transform="log", shrinkage=0.1), n_features="all").fit(X, y)
    grid = np.linspace(-400, 4000, 400_001)
    mass = np.exp(model.score_samples(grid[:, None])).sum() * (grid[1] - grid[0])
    np.testing.assert_allclose(mass, 1.0, rtol=2e-3)


@pytest.mark.parametrize("joint", [Joint(), Joint("per_class"), Joint("auto", search="greedy")])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_the_estimator_learns_real_tables(joint, load):
    X, y = load(return_X_y=True)
    model = RawClassifier(structure=joint, random_state=0).fit(X, y)
    assert model.joint_.settled
    assert model.path_.mean_accuracy.max() > 0.95
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    explanation = model.explain(X[:5])
    np.testing.assert_allclose(
        explanation.prior + explanation.contributions.sum(axis=2), model.predict_joint_log_proba(X[:5])
    )
    np.testing.assert_array_equal(model.get_support().sum(), model.n_selected_)


def test_samples_have_the_covariance_of_their_class():
    X, y = load_iris(return_X_y=True)
    model = RawClassifier(structure=Joint("per_class", 0.0, transform=None), n_features="all", random_state=1)
    drawn, labels = model.fit(X, y).sample(20_000, y=2)
    assert (labels == 2).all()
    np.testing.assert_allclose(drawn.mean(axis=0), X[y == 2].mean(axis=0), atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X[y == 2].T, ddof=0), atol=0.02)
    other, _ = RawClassifier(structure=Joint(transform="log"), random_state=1).fit(X, y).sample(500)
    assert np.isfinite(other).all()
    assert other.shape == (500, 4)


def test_batches_give_the_model_of_the_rows_in_memory():
    X, y = load_breast_cancer(return_X_y=True)
    joint = Joint(shrinkage=0.2, transform="log")
    settled = RawClassifier(structure=joint, n_features=8)
    whole = settled.fit(X, y).predict_proba(X)
    batches = BatchRows(lambda: [(X[:100], y[:100]), (X[100:], y[100:])], 2)
    np.testing.assert_allclose(settled.fit_rows(batches, [0, 1]).predict_proba(X), whole, atol=1e-7)
    chosen = RawClassifier(structure=Joint("auto", search="greedy")).fit_rows(batches, [0, 1])
    assert chosen.score(X, y) > 0.94
    assert chosen.joint_.settled


@pytest.mark.parametrize("search", ["top", "greedy"])
@pytest.mark.parametrize("transform", ["log", None])
def test_neither_batches_nor_the_order_of_rows_change_what_is_chosen(search, transform):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.exp(rng.normal(size=(300, 12)) + 0.4 * y[:, None] * (np.arange(12) < 4))
    X[rng.random(300) < 0.1, 5] = 0.0

    def fitted(rows):
        classifier = RawClassifier(structure=Joint(search=search, transform=transform), cv="hash")
        return classifier.fit_rows(rows, np.arange(3))

    def batches(n, X=X, y=y):
        return BatchRows(lambda: [(X[i : i + n], y[i : i + n]) for i in range(0, 300, n)], 3)

    whole = fitted(ArrayRows(X, y, 3))
    order = rng.permutation(300)
    sources = [batches(300), batches(100), batches(37), batches(37, X[order], y[order])]
    for rows in [*sources, ArrayRows(X[order], y[order], 3)]:
        other = fitted(rows)
        assert (other.joint_, other.n_selected_) == (whole.joint_, whole.n_selected_)
        np.testing.assert_array_equal(other.decision_.columns, whole.decision_.columns)
        np.testing.assert_array_equal(other.path_.n_rows, whole.path_.n_rows)
        np.testing.assert_allclose(other.path_.log_loss, whole.path_.log_loss, rtol=1e-6)
        np.testing.assert_allclose(other.predict_proba(X), whole.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("n", [300, 100, 7, 1])
def test_missing_cells_do_not_know_the_batches(n):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6)) + y[:, None] + 50
    X[rng.random(X.shape) < 0.2] = np.nan
    rows = BatchRows(lambda: [(X[i : i + n], y[i : i + n]) for i in range(0, 300, n)], 3)
    for joint in (Joint(shrinkage=0.1, transform=None), Joint("per_class", 0.1, "greedy", "log")):
        classifier = RawClassifier(structure=joint, n_features=4, cv="hash")
        whole = classifier.fit(X, y).predict_proba(X)
        np.testing.assert_allclose(classifier.fit_rows(rows, np.arange(3)).predict_proba(X), whole, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e6, 1e12, 1e100])
def test_the_unit_of_weights_does_not_matter(scale):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = (rng.normal(size=(90, 10)) + 0.5 * y[:, None] * (np.arange(10) < 4)) * np.where(y == 0, 3, 1)[:, None]
    for joint in (Joint(shrinkage=0.2, transform=None), Joint("per_class", 0.2, "greedy", None)):
        classifier = RawClassifier(structure=joint, n_features=6)
        due = classifier.fit(X, y)
        ranking, rate, proba = due.ranking_.copy(), due.decision_.rate, due.predict_proba(X)
        got = classifier.fit(X, y, sample_weight=np.full(90, scale))
        np.testing.assert_array_equal(got.ranking_, ranking)
        np.testing.assert_allclose(got.decision_.rate, rate, rtol=1e-9)
        np.testing.assert_allclose(got.predict_proba(X), proba, atol=1e-9)


def test_weights_beyond_all_measure_are_refused_and_never_give_infinite_scores():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 8)) + 0.8 * (y == 1)[:, None]
    classifier = RawClassifier(structure=Joint("per_class", 0.0, transform=None), n_features=4)
    weights = np.ones(60)
    weights[0] = 1e5
    assert np.isfinite(classifier.fit(X, y, sample_weight=weights).predict_joint_log_proba(X)).all()
    weights[0] = 1e13
    with pytest.raises(ValueError, match="weights that differ less"):
        classifier.fit(X, y, sample_weight=weights)
    shared = RawClassifier(structure=Joint("shared", 0.0, transform=None), n_features=4)
    assert np.isfinite(shared.fit(X, y, sample_weight=weights).predict_joint_log_proba(X)).all()


def test_products_and_residuals_choose_alike(monkeypatch):
    X, y = load_wine(return_X_y=True)
    rows = ArrayRows(X, y, 3)
    moments = rows.moments(Gaussian())[0]

    def choice():
        plans = fold_plans(5, X, y)
        models = JointModels(rows, Joint("auto"), js_gm, None, None, plans, moments)
        return models.choose(models.sizes)

    few = choice()
    monkeypatch.setattr(joint_folds, "FEW_ROWS", 10)
    many = choice()
    assert (few.joint, few.size) == (many.joint, many.size)
    np.testing.assert_allclose(few.path.log_loss, many.path.log_loss, rtol=1e-6, atol=1e-9)


def test_fold_models_never_see_their_held_out_rows():
    X, codes = correlated(4, n=60, d=20)
    spoilt = X.copy()
    spoilt[::5] = 1e6  # the held-out rows alone
    folds = [FixedFolds(np.where(np.arange(60) % 5 == 0, 0, -1), 1)]

    def losses(rows_of_training):
        rows = ArrayRows(X, codes, 3)
        models = JointModels(
            rows, Joint(shrinkage=0.3, search="greedy", transform=None), js_gm, None, None, folds,
            ArrayRows(rows_of_training, codes, 3).moments(Gaussian())[0],
        )  # fmt: skip
        from maxdisc.selection.joint_fold_models import FoldSamples

        view = ArrayRows(rows_of_training, codes, 3)
        return FoldSamples(models, view, folds[0], 6, False, None).of(0)[1].decision(6, 0.3)

    one, other = losses(X), losses(spoilt)
    np.testing.assert_array_equal(one.columns, other.columns)
    np.testing.assert_allclose(one.scores(X), other.scores(X))


def test_missing_cells_weights_and_features_without_variation():
    X, y = load_wine(return_X_y=True)
    X = np.column_stack([X, np.full(len(X), 3.0), np.full(len(X), np.nan)])
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    weights = np.where(np.arange(len(X)) % 7 == 0, 0.0, 1.0)
    for covariance in ("shared", "per_class"):
        model = RawClassifier(structure=Joint(covariance), n_features="all").fit(X, y, weights)
        assert model.score(X, y) > 0.93
        assert np.isfinite(model.score_samples(X)).all()


def test_sparse_rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, size=150)
    X = rng.poisson(0.3 + 0.7 * codes[:, None] * (np.arange(40) < 6)).astype(float)
    model = RawClassifier(structure="joint", cv=3)
    dense, sparse = model.fit(X, codes).predict_proba(X), model.fit(sp.csr_array(X), codes).predict_proba(X)
    np.testing.assert_allclose(dense, sparse, atol=1e-8)
    assert model.score(sp.csr_array(X), codes) > 0.8


def test_more_features_than_rows():
    X, codes = correlated(2, n=20, d=500, classes=2)
    model = RawClassifier(structure=Joint(shrinkage=0.2, transform=None), n_features="all").fit(X, codes)
    assert model.decision_.factor.shape[1] <= 20
    assert model.score(X, codes) == 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"covariance": "full"}, "the covariance of a Joint is 'shared'"),
        ({"shrinkage": 1.5}, "a share from 0 to 1"),
        ({"shrinkage": True}, "a share from 0 to 1"),
        ({"shrinkage": float("nan")}, "a share from 0 to 1"),
        ({"search": "best"}, "the search of a Joint"),
        ({"transform": "sqrt"}, "the transform of a Joint"),
    ],
)
def test_a_wrong_joint_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Joint(**wrong)


def test_what_a_joint_model_cannot_do_is_said_in_one_line():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="structure must be 'auto', 'independent', 'joint' or a Joint"):
        RawClassifier(structure="both").fit(X, y)
    with pytest.raises(ValueError, match="joint densities are Gaussian"):
        RawClassifier("poisson", structure="joint").fit(X, y)
    with pytest.raises(ValueError, match="joint densities know what features share"):
        RawClassifier(structure="joint", redundancy=1.0).fit(X, y)
    for structure in ("joint", Joint()):
        assert not hasattr(RawClassifier(structure=structure), "partial_fit")
        with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as refused:
            _ = RawClassifier(structure=structure).partial_fit
        assert str(refused.value.__cause__).startswith("partial_fit keeps sums for each feature alone, and a")
    fitted = RawClassifier(structure="joint").fit(X, y)
    with pytest.raises(ValueError, match="choose_n_features keeps sums"):
        fitted.choose_n_features(X, y)
    with pytest.warns(UserWarning, match="partial_fit goes on with independent features"):
        assert fitted.set_params(structure="independent").partial_fit(X, y).joint_ is None


def test_too_many_features_for_products_are_refused(monkeypatch):
    monkeypatch.setattr(joint_folds, "FEW_ROWS", 10)
    monkeypatch.setattr(joint_folds, "MOST_COLUMNS", 3)
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="4 features is too large for these rows: at most 3"):
        RawClassifier(structure="joint", n_features="all").fit(X, y)
    assert RawClassifier(structure="joint").fit(X, y).n_selected_ <= 3


@pytest.mark.parametrize("joint", [Joint(), Joint("per_class", "ledoit_wolf", transform="log")])
def test_a_saved_model_comes_back_to_the_last_bit(tmp_path, joint):
    X, y = load_wine(return_X_y=True)
    X[::9, 3] = np.nan
    model = RawClassifier(structure=joint, prior=[0.2, 0.3, 0.5], random_state=0).fit(X, y)
    save(model, tmp_path / "m", moments=True)
    again = load(tmp_path / "m")
    assert describe(tmp_path / "m")["format"] == 3
    assert (again.joint_, again.structure, again.n_selected_) == (model.joint_, joint, model.n_selected_)
    np.testing.assert_array_equal(again.predict_log_proba(X), model.predict_log_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.explain(X).contributions, model.explain(X).contributions)
    np.testing.assert_array_equal(again.sample(5)[0], model.sample(5)[0])
    np.testing.assert_array_equal(again.path_.accuracy, model.path_.accuracy)
    save(again, tmp_path / "n", moments=True)
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()
    assert not hasattr(again, "partial_fit")


def test_the_wish_for_another_structure_is_written(tmp_path):
    X, y = load_wine(return_X_y=True)
    model = RawClassifier(n_features="all", smoothing=1.0).fit(X, y)
    save(model.set_params(structure=Joint()), tmp_path / "m")
    assert load(tmp_path / "m").structure == Joint()


def test_reports_tables_and_reasons_take_a_joint_model():
    X, y = load_wine(return_X_y=True)
    model = RawClassifier(structure="joint", random_state=0).fit(X, y)
    report = evaluate(model, X, y)
    assert "<html" in report.html()
    assert report.markdown()
    assert report.json()
    assert len(ranking_table(model, n=5).features) == 5
    odds = log_odds(model, X[:1])
    scores = model.predict_joint_log_proba(X[:1])[0]
    top = np.sort(scores)[::-1]
    np.testing.assert_allclose(odds.total, top[0] - top[1])
    names = np.arange(13).astype(str)[model.decision_.columns]
    for rows in (X[:3], sp.csr_array(X[:3])):
        reasons = loudest(model.decision_, names, rows, np.zeros(3, int), np.ones(3, int), 2)
        parts = model.explain(X[:3]).contributions
        gaps = parts[:, 0] - parts[:, 1]
        np.testing.assert_allclose([abs(r[0].log_odds) for r in reasons], np.abs(gaps).max(axis=1))


def test_a_fitted_joint_model_can_be_looked_through():
    """Completion and converters ask for every attribute; scikit-learn's dir() tries each."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    for evidence in ("raw", "calibrated"):
        assert "decision_" in dir(MaxDiscClassifier(structure="joint", evidence=evidence, cv=3).fit(X, y))


@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_unknown_classes_have_the_moments_of_all_rows(covariance):
    X, y = load_iris(return_X_y=True)
    joint = Joint(covariance, shrinkage=0.3, transform=None)
    model = MaxDiscClassifier(structure=joint, evidence="raw", n_features=4).fit(X[:120], y[:120])
    decision, prior = model.decision_, model.class_prior_
    precisions = [
        tail * (np.eye(4) - factor.T @ factor)
        for tail, factor in zip(decision.tail, decision.factor, strict=True)
    ]
    spreads = [np.linalg.inv(precision) for precision in precisions] * (3 if decision.shared else 1)
    z = decision.standardised(X[:, decision.columns])
    known = [multivariate_normal(m, s).logpdf(z) for m, s in zip(decision.center, spreads, strict=True)]
    np.testing.assert_allclose(decision.log_densities(X), np.transpose(known), atol=1e-8)
    middle = prior @ decision.center
    gaps = decision.center - middle
    total = np.einsum("c,cij->ij", prior, np.stack(spreads)) + (prior[:, None] * gaps).T @ gaps
    beside = [multivariate_normal(middle, scale * total).logpdf(z) for scale in (1, 1000)]
    np.testing.assert_allclose(decision.unknown().log_densities(X), np.transpose(beside), atol=1e-8)
