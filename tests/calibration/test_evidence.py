"""Weighed evidence: probabilities that can be trusted, explanations that stay exact."""

from __future__ import annotations

import warnings
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedKFold

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.calibration.evidence import Evidence
from maxdisc.datasets import load_docstrings
from maxdisc.families import FAMILIES
from maxdisc.numerics.phases import phases_told_to
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.selection import held_out
from maxdisc.testing import random_data, taking

# Weights of bands and corrections are those of independent features.
IndependentClassifier = partial(MaxDiscClassifier, structure="independent")

KINDS = ("calibrated", "refined")


@cache
def docstrings():
    documents = load_docstrings("package")
    some = np.random.default_rng(0).permutation(len(documents.data))[:1600]
    texts = [documents.data[i] for i in some]
    return TermFrequencyVectorizer(min_count=2).fit_transform(texts), np.array(documents.target)[some]


def counts(n_rows=900, n_features=40, n_classes=3, spread=0.35, seed=0):
    """Independent Poisson features; dense rows of them are taken for Gaussian."""
    rng = np.random.default_rng(seed)
    rate = np.exp(spread * rng.normal(size=(n_classes, n_features)))
    codes = np.arange(n_rows) % n_classes
    return rng.poisson(rate[codes]).astype(float), codes


def interacting(n_rows=1200, seed=0):
    """Pairs of features that say something by their difference alone: their own densities are the same."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % 2
    shared = rng.normal(size=(n_rows, 4)) * 2
    first = shared + 0.3 * codes[:, None] + 0.2 * rng.normal(size=(n_rows, 4))
    return np.hstack([first, shared + 0.2 * rng.normal(size=(n_rows, 4))]), codes


def held_out_loss(evidence, X, y, n_train, **options):
    model = IndependentClassifier(evidence=evidence, **options).fit(X[:n_train], y[:n_train])
    return log_loss(y[n_train:], model.predict_proba(X[n_train:]), labels=model.classes_), model


# ------------------------------------------------------------------ how good it is


@pytest.mark.whole
def test_probabilities_of_documents_can_be_trusted():
    X, y = docstrings()
    (raw, _), (calibrated, model), (refined, other) = (
        held_out_loss(kind, X, y, 600) for kind in ("raw", *KINDS)
    )
    assert calibrated < 0.5 * raw
    assert refined <= calibrated * 1.02
    # What is told of held-out rows is what new rows get, up to what chance does to so few of them.
    for kind, told in (("calibrated", model), ("refined", other)):
        log_p = told.predict_log_proba(X[600:])
        losses = -log_p[np.arange(len(log_p)), np.searchsorted(told.classes_, y[600:])]
        chance = losses.std() * np.sqrt(1 / len(losses) + 1 / 600)
        assert abs(told.evidence_.log_loss - losses.mean()) < 4 * chance, kind
    assert (model.evidence_.weights < 1).any()


@pytest.mark.parametrize("copies", [2, 5])
def test_features_that_are_repeated_count_once(copies):
    X, y = counts()
    repeated = np.tile(X, copies)
    model = IndependentClassifier("poisson", n_features="all", smoothing=1.0).fit(repeated, y)
    widths = np.diff(model.evidence_.edges, prepend=0)
    mean = widths @ model.evidence_.weights / widths.sum()
    assert mean == pytest.approx(1 / copies, rel=0.3)
    (raw, _), (calibrated, _) = (
        held_out_loss(kind, repeated, y, 600, family="poisson") for kind in ("raw", "calibrated")
    )
    assert calibrated < raw
    once, _ = held_out_loss("raw", X, y, 600, family="poisson")
    assert calibrated < once + 0.05


def test_independent_features_of_the_right_family_count_as_they_are():
    X, y = counts(3000)
    model = IndependentClassifier("poisson", n_features="all", smoothing=1.0).fit(X, y)
    np.testing.assert_allclose(model.evidence_.weights, 1.0, atol=0.3)
    widths = np.diff(model.evidence_.edges, prepend=0)
    assert widths @ model.evidence_.weights / widths.sum() == pytest.approx(1.0, abs=0.15)
    assert np.abs(model.evidence_.bias - model.evidence_.bias.mean()).max() < 0.2
    (raw, _), (calibrated, _) = (
        held_out_loss(kind, X, y, 1500, family="poisson") for kind in ("raw", "calibrated")
    )
    assert calibrated < raw + 0.02


def test_refining_stays_with_calibrated_evidence_where_nothing_is_to_be_gained():
    stayed = 0
    for seed in range(4):
        X, y = counts(1500, seed=seed)
        settings = {"smoothing": 1.0, "divergence": "js_gm"}
        refined = IndependentClassifier("poisson", evidence="refined", **settings).fit(X, y)
        calibrated = IndependentClassifier("poisson", evidence="calibrated", **settings).fit(X, y)
        if refined.evidence_.columns is None:
            stayed += 1
            np.testing.assert_array_equal(refined.predict_proba(X), calibrated.predict_proba(X))
            assert refined.evidence_.ridge == 0
    assert stayed >= 3


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_refining_helps_where_features_go_together(form):
    X, y = interacting()
    if form is sp.csr_array:
        X = np.maximum(np.round(3 * X), 0)
    # Only features that are kept are corrected, and how many are kept is settled before.
    (calibrated, plain), (refined, model) = (
        held_out_loss(kind, form(X), y, 800, n_features="all") for kind in KINDS
    )
    assert plain.evidence_.columns is None
    assert model.evidence_.columns is not None
    assert refined < calibrated - 0.05
    assert model.evidence_.log_loss < plain.evidence_.log_loss
    assert model.evidence_.accuracy > plain.evidence_.accuracy


# ------------------------------------------------------------------ it stays exact


@cache
def tables():
    X, y = random_data("gaussian", 240, 3, 12, seed=2)
    X[:, 5] += 3 * X[:, 4]
    holes, far = X.copy(), X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    far[:, 0] += 1e7 * y
    far[:, 1] += 1e9
    Z, z = random_data("poisson", 240, 3, 30, seed=3)
    return {
        "table": (X, y), "holes": (holes, y), "far": (far, y),
        "sparse": (sp.csr_array(Z), z), "counts": (Z, z),
    }  # fmt: skip


@pytest.mark.parametrize("evidence", KINDS)
@pytest.mark.parametrize("name", ["table", "holes", "far", "sparse", "counts"])
def test_explanations_are_exact(evidence, name):
    X, y = tables()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = IndependentClassifier(evidence=evidence).fit(X, y)
    scores = model.predict_joint_log_proba(X)
    explained = model.explain(X)
    np.testing.assert_allclose(
        explained.prior + explained.contributions.sum(axis=2), scores, rtol=1e-9, atol=1e-7
    )
    np.testing.assert_allclose(model.predict_proba(X), softmax(scores, axis=1), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    # The evidence is that of the densities, multiplied.
    generative, weighed = model._model[1], model.evidence_
    if weighed.columns is None:
        dense = X.toarray() if sp.issparse(X) else X
        parts = generative.contributions(dense) * weighed.strength(model.n_selected_)
        expected = generative.log_prior + weighed.bias + parts.sum(axis=2)
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("evidence", KINDS)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family(evidence, family):
    X, y = random_data(family, 150, 3, 9, seed=1)
    model = IndependentClassifier(family, evidence=evidence, cv=3).fit(X, y)
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    assert isinstance(model.evidence_, Evidence)
    assert model.evidence_.edges[-1] == model.n_selected_ == len(model.decision_.columns)
    assert model.score(X, y) > 0.4


def test_sparse_and_dense_rows_give_the_same_model():
    X, y = random_data("poisson", 200, 3, 25, seed=5)
    for evidence in KINDS:
        dense, sparse = (
            IndependentClassifier("poisson", evidence=evidence).fit(form(X), y)
            for form in (np.asarray, sp.csr_array)
        )
        np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(X), atol=1e-4)


def test_compiled_models_are_the_same():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 4
    X = sp.csr_array(rng.poisson(rng.gamma(0.1, 1.0, (4, 800))[y]).astype(float))
    for evidence in KINDS:
        with taking("compiled"):
            compiled = IndependentClassifier(evidence=evidence, smoothing=1.0).fit(X, y)
        with taking("plain"):
            general = IndependentClassifier(evidence=evidence, smoothing=1.0).fit(X, y)
        assert compiled.n_selected_ == general.n_selected_
        np.testing.assert_allclose(compiled.predict_proba(X), general.predict_proba(X), atol=1e-4)


# ------------------------------------------------------------------ what is asked for


@pytest.mark.parametrize("evidence", KINDS)
def test_a_prior_that_is_given_moves_log_odds_by_its_ratio(evidence):
    X, y = counts(600)

    def apart(densities):
        """Unlike other divergences, this one does not look at the prior."""
        return densities.mean[0].var(axis=0)

    even, skewed = (
        IndependentClassifier(evidence=evidence, divergence=apart, prior=prior).fit(X, y)
        for prior in (np.full(3, 1 / 3), np.array([0.7, 0.2, 0.1]))
    )
    shift = skewed.predict_joint_log_proba(X) - even.predict_joint_log_proba(X)
    expected = np.log([2.1, 0.6, 0.3])
    np.testing.assert_allclose(shift, np.tile(expected, (600, 1)), atol=1e-9)


@pytest.mark.parametrize(("n_features", "size"), [(7, 7), (0.25, 10), ("all", 40)])
def test_a_number_of_features_that_is_given_is_kept(n_features, size):
    X, y = counts(300)
    for evidence in KINDS:
        model = IndependentClassifier(evidence=evidence, n_features=n_features).fit(X, y)
        assert model.n_selected_ == size == model.evidence_.edges[-1]
        assert model.path_.sizes.tolist() == [size]


@pytest.mark.parametrize("seed", range(4))
def test_one_standard_error_keeps_no_more(seed):
    X, y = counts(300, spread=0.2, seed=seed)
    best, fewer = (IndependentClassifier(rule=rule).fit(X, y) for rule in ("best", "one_se"))
    assert fewer.n_selected_ <= best.n_selected_
    loss = best.path_.mean_log_loss
    assert best.path_.sizes[np.argmin(loss)] == best.n_selected_
    at = int(np.searchsorted(fewer.path_.sizes, fewer.n_selected_))
    # The path is that of weights that have seen all rows; what is told is cross-fitted.
    assert 1.0 <= fewer.evidence_.log_loss / fewer.path_.mean_log_loss[at] < 1.1
    assert fewer.evidence_.accuracy == pytest.approx(fewer.path_.mean_accuracy[at], abs=0.05)


def test_redundancy_ranks_and_evidence_is_weighed():
    X, y = counts(400, 15)
    for evidence in KINDS:
        model = IndependentClassifier(redundancy=1.0, evidence=evidence).fit(np.tile(X, 2), y)
        assert model.evidence_ is not None
        explained = model.explain(np.tile(X, 2))
        np.testing.assert_allclose(
            explained.prior + explained.contributions.sum(axis=2),
            model.predict_joint_log_proba(np.tile(X, 2)),
            atol=1e-8,
        )


def test_no_smoothing_at_all():
    X, y = random_data("poisson", 120, 3, 10, seed=8)
    X[y == 0, 3] = 0.0
    for evidence in KINDS:
        model = IndependentClassifier("poisson", smoothing=0.0, evidence=evidence).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()
        assert np.isfinite(model.evidence_.log_loss)


@pytest.mark.parametrize("evidence", KINDS)
def test_weights_of_rows_are_numbers_of_rows(evidence):
    X, y = counts(200, 12)
    weights = np.where(np.arange(200) % 2, 2.0, 1.0)
    twice = np.repeat(np.arange(200), weights.astype(int))
    folds = [
        (np.flatnonzero(np.arange(200) % 4 != f), np.flatnonzero(np.arange(200) % 4 == f)) for f in range(4)
    ]
    repeated = [(np.flatnonzero(twice % 4 != f), np.flatnonzero(twice % 4 == f)) for f in range(4)]
    a = IndependentClassifier(evidence=evidence, cv=folds).fit(X, y, weights)
    b = IndependentClassifier(evidence=evidence, cv=repeated).fit(X[twice], y[twice])
    assert a.n_selected_ == b.n_selected_
    # The units of corrections are those of the rows as they come.
    np.testing.assert_allclose(
        a.predict_proba(X), b.predict_proba(X), atol=1e-3 if a.evidence_.ridge == 0 else 5e-3
    )
    # The unit does not matter to what is learnt from many rows.
    c = IndependentClassifier(evidence=evidence, cv=folds).fit(X, y, 1e-3 * weights)
    assert np.isfinite(c.predict_proba(X)).all()


# ------------------------------------------------------------------ too little to learn from


@pytest.mark.parametrize("evidence", KINDS)
def test_too_few_rows_are_said_to_be_too_few(evidence):
    X = np.random.default_rng(0).normal(size=(4, 3))
    with pytest.warns(UserWarning, match="too few: it is raw"):
        model = IndependentClassifier(evidence=evidence, cv=2).fit(X, [0, 0, 1, 1])
    assert model.evidence_ is None
    raw = IndependentClassifier(evidence="raw", cv=2).fit(X, [0, 0, 1, 1])
    np.testing.assert_array_equal(model.predict_proba(X), raw.predict_proba(X))


def test_a_class_of_one_row_against_many_is_too_few():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.r_[np.zeros(59, dtype=int), 1]
    with pytest.warns(UserWarning, match="too few: it is raw"):
        assert IndependentClassifier().fit(X, y).evidence_ is None


@pytest.mark.parametrize("evidence", KINDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_class_of_one_row_among_others_does_not_stop_them(evidence, form):
    X, y = counts(301)
    y = y.copy()
    y[-1] = 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IndependentClassifier(evidence=evidence).fit(form(X), y)
    assert model.evidence_ is not None
    p = model.predict_proba(form(X[:-1]))
    assert p[:, 3].mean() < 0.02
    assert np.isfinite(p).all()
    others = IndependentClassifier(evidence=evidence).fit(form(X[:-1]), y[:-1])
    np.testing.assert_allclose(model.evidence_.weights.mean(), others.evidence_.weights.mean(), atol=0.4)


@pytest.mark.parametrize("cv", ["holdout", 2, RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)])
def test_refining_needs_folds_that_share_out_the_rows(cv):
    X, y = counts(200, 10)
    with pytest.warns(UserWarning, match="evidence is calibrated: refined evidence needs"):
        model = IndependentClassifier(evidence="refined", cv=cv).fit(X, y)
    same = IndependentClassifier(cv=cv).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))


def test_many_folds_and_folds_without_rows():
    X, y = counts(24, 6)
    model = IndependentClassifier(cv=24).fit(X, y)
    assert np.isfinite(model.evidence_.log_loss)
    model = IndependentClassifier(cv="hash", evidence="refined").fit(X[:12], y[:12])
    assert np.isfinite(model.predict_proba(X)).all()


def test_constant_and_empty_features_say_nothing():
    X, y = counts(200, 8)
    X[:, 2], X[:, 5] = 1.0, 0.0
    for evidence in KINDS:
        for form in (np.asarray, sp.csr_array):
            model = IndependentClassifier(evidence=evidence, n_features="all").fit(form(X), y)
            assert np.isfinite(model.predict_proba(form(X))).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IndependentClassifier(evidence="refined").fit(np.ones((60, 4)), np.arange(60) % 2)
    np.testing.assert_allclose(model.predict_proba(np.ones((2, 4))), 0.5, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_unit_of_measurements_does_not_matter(scale):
    X, y = random_data("gaussian", 150, 3, 6, seed=3)
    for evidence in KINDS:
        a, b = (IndependentClassifier(evidence=evidence).fit(s * X, y) for s in (1.0, scale))
        np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(scale * X), atol=1e-4)


# ------------------------------------------------------------------ batches


def test_going_on_keeps_the_weights_and_new_classes_are_left_alone():
    X, y = counts(600, n_classes=4)
    first = y < 3
    for evidence in KINDS:
        model = IndependentClassifier(evidence=evidence).fit(X[first], y[first])
        weights, bias = model.evidence_.weights, model.evidence_.bias
        model.partial_fit(X[~first], y[~first])
        np.testing.assert_array_equal(model.evidence_.weights, weights)
        np.testing.assert_array_equal(model.evidence_.bias, [*bias, 0.0])
        assert model.classes_.tolist() == [0, 1, 2, 3]
        assert model.score(X, y) > 0.6
        explained = model.explain(X[:20])
        np.testing.assert_allclose(
            explained.prior + explained.contributions.sum(axis=2),
            model.predict_joint_log_proba(X[:20]),
            atol=1e-8,
        )
        if model.evidence_.correction is not None:
            assert not model.evidence_.correction[3].any()


def test_classes_of_a_model_that_goes_on_keep_their_places():
    X, y = counts(400, n_classes=4)
    known = y != 1
    model = IndependentClassifier(evidence="refined").fit(X[known], y[known])
    bias = model.evidence_.bias
    model.partial_fit(X[~known], y[~known])
    np.testing.assert_array_equal(model.evidence_.bias, [bias[0], 0.0, bias[1], bias[2]])


def test_choosing_again_weighs_again():
    X, y = counts(600)
    model = IndependentClassifier().partial_fit(X[:300], y[:300])
    assert model.evidence_ is None
    model.choose_n_features(X[:300], y[:300])
    whole = IndependentClassifier().fit(X[:300], y[:300])
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_any_batches_give_the_same_model(form, monkeypatch):
    X, y = counts(500, 30)
    monkeypatch.setattr(held_out, "ENOUGH_SCORES", 3 * 200)
    whole = IndependentClassifier("poisson", "js_gm", cv="hash").fit_rows(ArrayRows(form(X), y, 3), [0, 1, 2])
    rng = np.random.default_rng(0)
    for step in (23, 170, 500):
        order = rng.permutation(500)
        batches = [(form(X[b]), y[b]) for b in np.split(order, range(step, 500, step))]
        model = IndependentClassifier("poisson", "js_gm", cv="hash").fit_rows(
            BatchRows(lambda b=batches: b, 3), [0, 1, 2]
        )
        assert model.n_selected_ == whole.n_selected_
        assert model.smoothing_ == whole.smoothing_
        np.testing.assert_allclose(model.evidence_.weights, whole.evidence_.weights, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-4)


def test_refining_batches_is_calibrating_them():
    X, y = counts(200, 10)
    batches = [(X[:90], y[:90]), (X[90:], y[90:])]
    with pytest.warns(UserWarning, match="rows in memory"):
        model = IndependentClassifier(evidence="refined").fit_rows(BatchRows(lambda: batches, 3), [0, 1, 2])
    assert model.evidence_.columns is None


# ------------------------------------------------------------------ the value


def test_evidence_finds_its_columns_again():
    X, y = interacting(600)
    model = IndependentClassifier(evidence="refined").fit(X, y)
    evidence, generative = model.evidence_, model._model[1]
    order = np.random.default_rng(0).permutation(len(generative.columns))
    shuffled = evidence.applied(
        type(generative)(
            generative.family, generative.columns[order], generative.origin[order],
            generative.weights[:, :, order], generative.baseline[:, order], generative.log_prior,
        )
    )  # fmt: skip
    correction = model.decision_.weights[0] - generative.weights[0] * evidence.strength(len(order))
    found = shuffled.weights[0] - generative.weights[0][:, order] * evidence.strength(len(order))
    np.testing.assert_allclose(found, correction[:, order], atol=1e-12)


def test_bad_words_are_refused():
    with pytest.raises(ValueError, match="evidence"):
        IndependentClassifier(evidence="weighed").fit(np.eye(4), [0, 1, 0, 1])


def test_it_says_what_it_is():
    X, y = interacting(400)
    said = repr(IndependentClassifier(evidence="refined").fit(X, y).evidence_)
    assert "features corrected" in said
    assert "held-out log-loss" in said


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_the_uncalibrated_loss_is_that_of_raw_evidence_on_the_same_folds(family):
    X, y = random_data(family, 120)
    weighed = IndependentClassifier(family, evidence="calibrated", n_features="all", smoothing=1.0, cv=5).fit(
        X, y
    )
    raw = IndependentClassifier(family, evidence="raw", smoothing=1.0, cv=5).fit(X, y)
    assert raw.path_.sizes[-1] == weighed.n_selected_
    assert weighed.evidence_.raw_log_loss == pytest.approx(raw.path_.mean_log_loss[-1], rel=1e-6)


def test_phases_of_a_fit_are_told():
    told = []
    with phases_told_to(told.append):
        MaxDiscClassifier().fit(["a goal on ice", "a rocket in orbit"] * 10, ["sport", "space"] * 10)
    assert told[0] == "counting words"
    assert "counting on folds" in told
    MaxDiscClassifier().fit(["a goal on ice", "a rocket in orbit"] * 10, ["sport", "space"] * 10)
    assert told.count("counting words") == 1
