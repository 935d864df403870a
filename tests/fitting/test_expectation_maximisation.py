"""Rows without labels: the law of EM, what it gains, and what users may give."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, StratifiedKFold

import maxdisc.fitting.expectation_maximisation as unlabelled_module
from maxdisc import MaxDiscClassifier, Smoothing, load, save
from maxdisc.densities.class_densities import estimate
from maxdisc.families import FAMILIES, Gaussian, Poisson
from maxdisc.fitting.cross_validation import plans_beside
from maxdisc.fitting.expectation_maximisation import (
    Held,
    Penalties,
    Penalty,
    UnlabelledRows,
    expectation_maximisation,
)
from maxdisc.rows.row_sources import ALWAYS_TRAINING, LEFT_OUT, ArrayRows
from maxdisc.rows.validation import sorted_out
from tests.conftest import examples


def drawn(family, rng, n_classes, shape):
    """Rows of a family whose classes overlap, and their classes."""
    n_rows, n_features = shape
    codes = np.r_[np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes)]
    level = 0.5 + rng.gamma(2.0, size=(n_classes, n_features))[codes]
    name = family.name
    if name == "gaussian":
        return rng.normal(level, 0.5 + level / 3), codes
    if name in ("bernoulli", "beta"):
        share = level / (1 + level)
        X = rng.beta(5 * share, 5 * (1 - share)) if name == "beta" else rng.binomial(1, share).astype(float)
        return X, codes
    if name in ("poisson", "geometric"):
        return rng.poisson(level).astype(float), codes
    X = rng.gamma(2.0, level / 2)
    return np.where(rng.random(X.shape) < 0.4, 0.0, X) if name == "hurdle" else X, codes


def penalised(family, X, decision, known_X, codes, weight, penalty):
    """The function that EM climbs, from log densities cell by cell."""

    def evidence(rows):
        natural, values = decision.weights[:, None], rows[:, None, penalty.columns] - decision.origin
        missing = np.isnan(values)
        density = family.log_density(np.where(missing, 0.5, values), natural)
        density = density - family.log_base(np.where(missing, 0.5, values))
        return decision.log_prior + np.where(missing, 0.0, density).sum(axis=2)

    labelled = evidence(known_X)[np.arange(len(codes)), codes].sum()
    total = labelled + weight @ logsumexp(evidence(X), axis=1)
    if family.name == "gaussian":
        variance = -0.5 / decision.weights[1]
        about = -0.5 * (np.log(2 * np.pi * variance) + penalty.mean[1] / variance)
        return total + (penalty.number * about).sum()
    linear = (decision.weights * penalty.mean[:, None]).sum(axis=0) - family.log_partition(decision.weights)
    return total + (penalty.number * linear).sum()


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - {"categorical"}))
@examples(25)
@given(
    seed=st.integers(0, 10**6),
    amount=st.sampled_from([0.01, 1.0, 30.0]),
    weight=st.sampled_from([0.01, 0.3, 1.0]),
    missing=st.booleans(),
)
def test_each_step_raises_the_penalised_likelihood(name, seed, amount, weight, missing):
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    X, codes = drawn(family, rng, n_classes, (60, 4))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    n_known = int(rng.integers(n_classes, 20))
    weights = rng.uniform(0.5, 2.0, size=60 - n_known)
    known = ArrayRows(X[:n_known], codes[:n_known], n_classes).moments(family)[0]
    others = UnlabelledRows(X[n_known:], weights, np.arange(n_known, 60))
    smoothing = Smoothing(amount)
    found = expectation_maximisation(known, others, weight, family, smoothing, None, 0.0, 8)
    # The loop itself stops rather than descend, so the steps are taken here once more.
    start = Penalties.of(family, smoothing, known).model(known, None)
    moments = known + others.shared_out(start, weight)[0].moments(family)[0]
    penalties, values = Penalties.of(family, smoothing, moments), []
    for _ in range(8):
        model = penalties.model(moments, None)
        given_ = (X[:n_known], codes[:n_known], weight * weights, penalties.parts[0])
        values.append(penalised(family, X[n_known:], model.parts[0], *given_))
        moments = known + others.shared_out(model, weight)[0].moments(family)[0]
    scale = 1e-9 * np.abs(values).max()
    assert (np.diff(values) >= -scale).all()
    np.testing.assert_allclose(found.objective, values[: found.n_iter], atol=scale, rtol=0)


@examples(15)
@given(seed=st.integers(0, 10**6), amount=st.sampled_from([0.01, 1.0, 30.0]))
def test_each_step_raises_it_for_mixed_columns(seed, amount):
    rng = np.random.default_rng(seed)
    codes = np.r_[0, 1, 2, rng.integers(3, size=57)]
    frame = pd.DataFrame(
        {
            "size": rng.normal(codes, 1.0),
            "count": rng.poisson(1 + codes),
            "kind": pd.Categorical(np.array(list("xyzw"))[(codes + rng.integers(3, size=60)) % 4]),
        }
    )
    frame.loc[rng.random(60) < 0.1, "kind"] = None
    model = MaxDiscClassifier(evidence="raw", cv=2).fit(frame, codes)
    cells = model._rows(frame)
    known = ArrayRows(cells[np.arange(12)], codes[:12], 3).moments(model._family)[0]
    others = UnlabelledRows(cells[np.arange(12, 60)], np.ones(48), np.arange(12, 60))
    smoothing = Smoothing(amount)
    moments = (
        known
        + others.shared_out(Penalties.of(model._family, smoothing, known).model(known, None), 1.0)[0].moments(
            model._family
        )[0]
    )
    penalties, values = Penalties.of(model._family, smoothing, moments), []
    for _ in range(8):
        mixture = penalties.model(moments, None)
        after, likelihood = others.shared_out(mixture, 1.0)
        values.append(
            likelihood + mixture.log_likelihood(penalties.select(known)) + penalties.worth(mixture, moments)
        )
        moments = known + after.moments(model._family)[0]
    assert (np.diff(values) >= -1e-9 * np.abs(values).max()).all()


def test_frames_may_lack_labels(tmp_path):
    rng = np.random.default_rng(2)
    codes = rng.integers(3, size=600)
    columns = {
        f"kind{j}": np.array(list("uvwxyz"))[(2 * codes + rng.integers(4, size=600)) % 6] for j in range(8)
    }
    frame = pd.DataFrame(columns | {"size": rng.normal(codes, 2.0)})
    partly, kept = hidden(np.array(list("abc"))[codes], 30)
    model = MaxDiscClassifier().fit(frame, partly)
    alone = MaxDiscClassifier().fit(frame.iloc[kept], partly[kept].astype(str))
    truth = np.array(list("abc"))[codes]
    assert model.unlabelled_weight_ > 0
    assert model.score(frame, truth) > alone.score(frame, truth)
    save(model, tmp_path / "frame.maxdisc")
    again = load(tmp_path / "frame.maxdisc")
    assert again.n_iter_ == model.n_iter_
    assert (again.predict_proba(frame) == model.predict_proba(frame)).all()


def test_without_smoothing_em_of_gaussians_is_the_mixture_of_scikit_learn():
    from sklearn.mixture import GaussianMixture

    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 60)
    X = rng.normal(codes[:, None] * 2.5 * np.array([1.0, -1.0]), [1.0, 0.7], size=(180, 2))
    start = np.r_[0:4, 60:64, 120:124]
    known = ArrayRows(X[start], codes[start], 3).moments(Gaussian())[0]
    # Labelled rows that weigh next to nothing only say which cluster is which.
    light = known.scaled(np.full(3, 1e-9))
    others = UnlabelledRows(X, np.ones(180), np.arange(180))
    found = expectation_maximisation(light, others, 1.0, Gaussian(), Smoothing(0.0), None, 0.0, 500)
    means = np.stack([X[start][codes[start] == c].mean(axis=0) for c in range(3)])
    oracle = GaussianMixture(
        3, covariance_type="diag", means_init=means, reg_covar=0.0, tol=1e-12, max_iter=2000
    )
    oracle.fit(X)
    np.testing.assert_allclose(found.moments.means(), oracle.means_, atol=1e-4)
    np.testing.assert_allclose(found.moments.weight / 180, oracle.weights_, atol=1e-4)
    assert found.objective[-1] / 180 == pytest.approx(oracle.score(X), abs=1e-4)


def topics(n_rows=600, n_words=300, n_classes=4, seed=0):
    """Short documents about some topics, sparse."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.3, size=(n_classes, n_words))
    rate *= 12 / rate.sum(axis=1, keepdims=True)
    codes = rng.integers(n_classes, size=n_rows)
    return sp.csr_array(rng.poisson(rate[codes]).astype(float)), np.array(list("abcd"))[codes]


def hidden(y, n_known, seed=0):
    """Labels, all but some of them None."""
    kept = np.random.default_rng(seed).permutation(len(y))[:n_known]
    out = np.full(len(y), None, dtype=object)
    out[kept] = y[kept]
    return out, np.sort(kept)


def test_unlabelled_documents_help():
    X, y = topics(2000)
    partly, kept = hidden(y[:1000], 24)
    alone = MaxDiscClassifier().fit(X[kept], y[kept])
    both = MaxDiscClassifier().fit(X[:1000], partly)
    assert both.unlabelled_weight_ > 0
    assert both.n_iter_ > 0
    assert both.score(X[1000:], y[1000:]) > alone.score(X[1000:], y[1000:]) + 0.05
    assert both.classes_.tolist() == list("abcd")
    weight = 24 + both.unlabelled_weight_ * 976
    assert both.moments_.weight.sum() == pytest.approx(weight)
    np.testing.assert_allclose(both.class_prior_, both.moments_.weight / weight)


@pytest.mark.parametrize("evidence", ["calibrated", "raw"])
def test_rows_that_do_not_help_are_ignored_to_the_last_bit(evidence):
    X, y = load_digits(return_X_y=True)
    partly, kept = hidden(y[:400].astype(object), 100)
    # Soft labels of noise help nobody.
    noise = np.random.default_rng(1).permuted(X[:400], axis=0)
    noise[kept] = X[kept]
    both = MaxDiscClassifier("gaussian", evidence=evidence).fit(noise, partly)
    alone = MaxDiscClassifier("gaussian", evidence=evidence).fit(X[kept], y[kept])
    assert both.unlabelled_weight_ == 0 == both.n_iter_
    assert (both.predict_joint_log_proba(X) == alone.predict_joint_log_proba(X)).all()


def held(losses, weights=None):
    weights = np.ones(len(losses)) if weights is None else np.asarray(weights, dtype=float)
    losses = np.asarray(losses, dtype=float)
    return Held(float(weights @ losses / weights.sum()), losses, weights)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), size=st.floats(0.01, 1e6))
def test_no_single_row_decides(seed, n, size):
    losses = np.random.default_rng(seed).gamma(1.0, size=n)
    worse = losses.copy()
    worse[seed % n] += size
    assert held(losses).ahead_of(held(worse)) == pytest.approx(1.0, rel=1e-6)
    assert not held(losses).beats(held(worse))


def test_rows_that_agree_do():
    losses, noise = np.full(40, 0.3), np.tile([0.02, -0.02], 20)
    assert held(losses).beats(held(losses + 0.1 + noise))
    assert not held(losses + 0.1 + noise).beats(held(losses))
    assert not held(losses + 0.1 * np.tile([1, -1], 20)).beats(held(losses))
    # A row of weight 2 counts twice, one of weight 0 not at all.
    one, other = held([0.1, 0.2, 9.0], [2, 1, 0]), held([0.2, 0.4, 0.0], [2, 1, 0])
    assert one.beats(other)
    # What was judged on other rows is not compared.
    assert not held(losses[:30]).beats(held(losses + 1))


def test_losses_of_rows_have_not_seen_their_labels():
    X, y = load_wine(return_X_y=True)
    model = MaxDiscClassifier(structure="independent").fit(X, y)
    by_row = model.evidence_.by_row
    assert len(by_row.losses) == len(y)
    assert by_row.losses.mean() == pytest.approx(model.evidence_.log_loss)


def test_models_of_all_kinds_of_rows_agree_in_the_order_of_held_out_rows():
    X, y = topics(200, 40)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, size=200)
    one, other = (MaxDiscClassifier("poisson", smoothing=1.0).fit(Z, y, weights) for Z in (X, X.toarray()))
    np.testing.assert_array_equal(one.evidence_.by_row.weights, other.evidence_.by_row.weights)
    np.testing.assert_allclose(one.evidence_.by_row.losses, other.evidence_.by_row.losses, atol=1e-4)


def test_never_worse_than_ignoring_them_by_more_than_noise():
    gains = []
    for data, n_known in ((load_wine, 20), (load_digits, 80)):
        X, y = data(return_X_y=True)
        for seed in range(4):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[: len(y) // 2], order[len(y) // 2 :]
            partly, kept = hidden(y[train].astype(object), n_known, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                both = MaxDiscClassifier().fit(X[train], partly)
                alone = MaxDiscClassifier().fit(X[train][kept], y[train][kept])
            gains.append(both.score(X[test], y[test]) - alone.score(X[test], y[test]))
    assert np.mean(gains) > -0.02


@pytest.mark.parametrize(
    ("y", "value"),
    [
        (lambda y, u: np.where(u, None, y), None),
        (lambda y, u: np.where(u, np.nan, y), None),
        (lambda y, u: pd.array(np.where(u, None, y), dtype="Int64"), None),
        (lambda y, u: pd.Series(np.where(u, None, y)), None),
        (lambda y, u: np.where(u, -1, y), -1),
        (lambda y, u: np.where(u, -1.0, y), -1),
        (lambda y, u: np.where(u, "", y.astype(str)), ""),
        (lambda y, u: np.where(u, "unknown", y.astype(str)), "unknown"),
        (lambda y, u: [float("nan") if m else str(v) for v, m in zip(y, u, strict=True)], None),
        (lambda y, u: np.where(u, "unknown", y.astype(str)).astype(object), "unknown"),
        (lambda y, u: np.where(u, -1, y)[:, None], -1),
    ],
)
def test_ways_to_say_that_there_is_no_label(y, value):
    codes, gaps = np.arange(6) % 3, np.arange(6) == 4
    labels, missing = sorted_out(y(codes, gaps), value)
    assert missing.tolist() == gaps.tolist()
    assert [int(float(v)) for v in np.asarray(labels)[~gaps]] == codes[~gaps].tolist()


@pytest.mark.parametrize(
    "hide",
    [
        lambda y, gaps: np.where(gaps, np.nan, y),
        lambda y, gaps: pd.array(np.where(gaps, None, y), dtype="Int64"),
        lambda y, gaps: [float("nan") if gap else str(label) for label, gap in zip(y, gaps, strict=True)],
    ],
)
def test_labels_that_are_nan_are_counted(hide):
    X, _ = topics(60)
    y, gaps = np.arange(60) % 2, np.arange(60) % 3 == 0
    with pytest.warns(UserWarning, match=r"y is NaN in 20 of 60 rows, which count as rows without a label"):
        model = MaxDiscClassifier(smoothing=1.0, evidence="raw").fit(X, hide(y, gaps))
    meant = MaxDiscClassifier(smoothing=1.0, evidence="raw", unlabelled=float("nan"))
    np.testing.assert_array_equal(meant.fit(X, hide(y, gaps)).predict_proba(X), model.predict_proba(X))
    MaxDiscClassifier(smoothing=1.0, evidence="raw").fit(X, np.where(gaps, None, y))


def test_labels_that_are_all_there_stay_as_they_are():
    for y in (np.array([0, 1]), np.array(["a", ""]), ["a", "b"], np.array([True, False])):
        assert sorted_out(y) == (y, None)
    assert sorted_out(np.array(["-1", "0"]), -1)[1] is None
    assert sorted_out(np.array([0, 1]), "0")[1] is None


def test_dense_and_sparse_weights_and_copies_agree():
    X, y = topics(1000)
    partly, _ = hidden(y, 24)
    chosen = {"smoothing": 1.0, "n_features": "all"}
    sparse = MaxDiscClassifier("poisson", **chosen).fit(X, partly)
    dense = MaxDiscClassifier("poisson", **chosen).fit(X.toarray(), partly)
    np.testing.assert_allclose(sparse.moments_.sums, dense.moments_.sums, rtol=1e-9, atol=1e-9)
    unlabelled = np.flatnonzero(np.equal(partly, None))
    known = np.flatnonzero(~np.equal(partly, None))
    # A row twice is a row of weight 2, as long as the labelled ones are the same; one of weight 0 is none.
    twice = np.r_[known, unlabelled, unlabelled[:50]]
    weights = np.r_[np.ones(len(known) + len(unlabelled))]
    weights[len(known) : len(known) + 50] = 2.0
    order = np.r_[known, unlabelled, unlabelled[:9]]
    a = MaxDiscClassifier("poisson", **chosen).fit(X[twice], partly[twice])
    b = MaxDiscClassifier("poisson", **chosen).fit(X[order], partly[order], np.r_[weights, np.zeros(9)])
    assert a.unlabelled_weight_ > 0
    np.testing.assert_allclose(a.moments_.sums, b.moments_.sums, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "gamma", "hurdle"])
def test_missing_cells_redundancy_and_every_cv(family):
    rng = np.random.default_rng(3)
    X, codes = drawn(FAMILIES[family], rng, 3, (240, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    partly, _ = hidden(codes.astype(object), 60)
    splits = list(StratifiedKFold(3).split(X, codes))
    for cv in (3, "holdout", "hash", StratifiedKFold(4), splits):
        model = MaxDiscClassifier(family, cv=cv, redundancy=0.5 if cv == 3 else 0.0).fit(X, partly)
        assert np.isfinite(model.predict_log_proba(X)).all()
    groups = np.arange(240) // 4
    MaxDiscClassifier(family, cv=GroupKFold(3)).fit(X, partly, groups=groups)
    MaxDiscClassifier(family, prior=[0.2, 0.3, 0.5]).fit(X, partly, groups=groups)


def test_unlabelled_rows_of_a_held_out_group_are_held_out_with_it():
    X, labels, groups = np.zeros((8, 1)), np.array(list("aabbaabb")), np.array([0, 1, 2, 3, 0, 1, 9, 3])
    kept, others = np.arange(4), np.arange(4, 8)
    ((folds, beside),) = plans_beside(GroupKFold(2), X, labels, kept, others, groups)
    own = folds.of(X[kept], 0)
    assert beside.tolist() == [own[0], own[1], ALWAYS_TRAINING, own[3]]
    splits = [([0, 1, 4], [2, 5]), ([2, 5], [0, 4])]
    plans = plans_beside(splits, X, labels, kept, others)
    assert [beside.tolist() for _, beside in plans] == [
        [ALWAYS_TRAINING, 0, LEFT_OUT, LEFT_OUT],
        [0, ALWAYS_TRAINING, LEFT_OUT, LEFT_OUT],
    ]


def test_held_out_labels_do_not_reach_the_models_of_their_folds(monkeypatch):
    X, y = topics(200, 40)
    partly, _ = hidden(y, 40)
    seen = []
    original = unlabelled_module.expectation_maximisation

    def spied(known, *given, **named):
        seen.append(known.weight.sum())
        return original(known, *given, **named)

    monkeypatch.setattr(unlabelled_module, "expectation_maximisation", spied)
    MaxDiscClassifier(cv=4).fit(X, partly)
    assert seen[:5] == [30, 30, 30, 30, 40]


REFUSED = {
    "no label at all": ({}, [None] * 12, "no row has a label"),
    "one class": ({}, ["a", "a", *[None] * 10], "only one class, 'a'"),
    "joint densities": (
        {"structure": "joint"},
        ["a", "b"] * 5 + [None, None],
        "joint densities need a label for each row, and 2 have none",
    ),
    "no value": ({"unlabelled": [1]}, ["a", "b"] * 6, "unlabelled must be None or a label"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused_with_one_line(name):
    parameters, y, message = REFUSED[name]
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(ValueError, match=message) as raised:
        MaxDiscClassifier(**parameters).fit(X, np.array(y, dtype=object))
    assert "\n" not in str(raised.value)


def test_batches_and_sources_of_rows_are_labelled():
    X, y = topics(60, 20)
    partly, _ = hidden(y, 40)
    with pytest.raises(ValueError, match=r"no label .* in 20 rows.*: drop those rows, or use fit"):
        MaxDiscClassifier().partial_fit(X, partly)
    with pytest.raises(ValueError, match=r"fit_rows learns from labelled rows only"):
        MaxDiscClassifier(unlabelled=-1).fit_rows(ArrayRows(X, np.arange(60) % 2, 2), [0, 1])
    weightless = np.where(np.equal(partly, None), 1.0, 0.0)
    with pytest.raises(ValueError, match="no row with a label weighs more than 0"):
        MaxDiscClassifier().fit(X, partly, weightless)
    far = X.toarray()
    first = np.flatnonzero(np.equal(partly, None))[0]
    far[:, 0] *= 1e-30
    far[first, 0] = 1e139
    with pytest.raises(ValueError, match=f"row {first} has no label, and values too far"):
        MaxDiscClassifier("gaussian").fit(far, partly)


def test_a_model_is_saved_with_what_it_knows_of_unlabelled_rows(tmp_path):
    X, y = topics(400, 100)
    words = np.where(np.equal(hidden(y, 40)[0], None), "?", y)
    model = MaxDiscClassifier(unlabelled="?").fit(X, words)
    assert model.n_iter_ > 0
    assert "?" not in model.classes_
    save(model, tmp_path / "partly.maxdisc", moments=True)
    again = load(tmp_path / "partly.maxdisc")
    assert (again.n_iter_, again.unlabelled_weight_) == (model.n_iter_, model.unlabelled_weight_)
    assert again.unlabelled == "?"
    assert "unlabelled='?'" in repr(again)
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert clone(again).unlabelled == "?"
    # Labelled batches go on from there.
    again.partial_fit(X[:10], y[:10])
    assert again.n_iter_ == model.n_iter_
    # Models without unlabelled rows are written as they always were.
    save(MaxDiscClassifier(evidence="raw").fit(X, y), tmp_path / "all.maxdisc")
    assert load(tmp_path / "all.maxdisc").n_iter_ == 0


def test_labels_that_still_change_are_said(monkeypatch):
    X, y = topics(400, 100)
    monkeypatch.setattr(unlabelled_module, "MOST_STEPS", 1)
    monkeypatch.setattr(unlabelled_module.expectation_maximisation, "__defaults__", (None, 0.0, 1))
    monkeypatch.setattr(unlabelled_module, "LEAST_CHANGE", 0.0)
    with pytest.warns(ConvergenceWarning, match="still changed after 1 steps"):
        MaxDiscClassifier().fit(X, hidden(y, 40)[0])


def test_refined_evidence_is_calibrated_with_unlabelled_rows():
    X, y = topics(400, 100)
    with pytest.warns(UserWarning, match="it is calibrated"):
        model = MaxDiscClassifier(evidence="refined").fit(X, hidden(y, 40)[0])
    assert model.evidence_.columns is None


def test_soft_labels_prove_nothing():
    X, y = topics(400, 100)
    partly, kept = hidden(y, 40)
    model = MaxDiscClassifier().fit(X, partly)
    assert model.n_iter_ > 0
    with pytest.warns(UserWarning, match="give ranking_table the rows"):
        assert np.isnan(model.ranking_table()["p"]).all()
    assert not np.isnan(model.ranking_table(X[kept], y[kept], n_permutations=20)["p"]).any()


def test_penalty_of_poisson_is_that_of_the_smoothing():
    X, y = topics(100, 30)
    codes = np.unique(y, return_inverse=True)[1]
    moments = ArrayRows(X, codes, 4).moments(Poisson())[0]
    penalty = Penalty.of(Poisson(), Smoothing(1.0), moments)
    natural = estimate(Poisson(), moments, Smoothing(1.0)).natural[:, :, penalty.columns]
    np.testing.assert_array_equal(penalty.decision(moments, None).weights, natural)


@pytest.mark.slow
def test_277_labels_of_20_newsgroups_gain_twelve_points(paper_data):
    import pyarrow.parquet as pq

    from maxdisc import TermFrequencyVectorizer

    table = pq.read_table(paper_data / "text" / "20newsgroups_bydate.parquet")
    text, label, split = (np.array(table[c].to_pylist(), dtype=object) for c in ("text", "label", "split"))
    train = split == "train"
    words = TermFrequencyVectorizer(r"(?u)\b[a-zA-Z]{2,}\b", stop_words="english", min_df=3)
    X, test = words.fit_transform(text[train]), words.transform(text[~train])
    gains = []
    for seed in range(3):
        partly, kept = hidden(label[train], 277, seed)
        alone = MaxDiscClassifier("poisson").fit(X[kept], label[train][kept])
        both = MaxDiscClassifier("poisson").fit(X, partly)
        gains.append(both.score(test, label[~train]) - alone.score(test, label[~train]))
    assert np.mean(gains) > 0.12
