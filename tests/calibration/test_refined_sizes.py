"""How many features refined evidence keeps, and that each fold selects its own."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import MaxDiscClassifier
from maxdisc.calibration import refinement
from maxdisc.calibration.evidence import calibrate
from maxdisc.fitting import learning
from maxdisc.fitting import refinement as fitted_refinement
from maxdisc.selection.fold_models import SelectionPath, fewest_features, refined_sizes
from tests.conftest import examples


def counts(n=600, d=2000, informative=40, seed=0):
    """Rows of three classes that differ in the first features alone."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    rate = np.full((3, d), 0.05)
    rate[:, :informative] = rng.gamma(0.5, 0.3, (3, informative))
    return sp.csr_array(rng.poisson(rate[y]).astype(float)), y


def losses(seed, n_sizes=8, n=40):
    rng = np.random.default_rng(seed)
    found = rng.gamma(1.0, 0.3, (n_sizes, n)) + rng.normal(0, 0.1, (n_sizes, 1)) + 0.5
    return found, (found < 0.7).astype(float), rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("n_features", [20, "auto"])
def test_random_labels_cannot_be_predicted(n_features):
    # Features that all rows select would tell the labels of rows that are held out.
    X, _ = counts()
    y = np.random.default_rng(1).integers(0, 2, X.shape[0])
    model = MaxDiscClassifier(evidence="refined", n_features=n_features).fit(X, y)
    assert model.evidence_.accuracy < 0.6
    assert model.evidence_.log_loss > 0.65


def test_few_features_are_kept_where_few_tell_the_classes_apart():
    X, y = counts()
    for divergence, most in (("js_gm", 100), ("auto", 200)):
        model = MaxDiscClassifier(divergence=divergence).fit(X, y)
        assert 20 <= model.n_selected_ <= most
        full = MaxDiscClassifier(divergence=divergence, n_features="all").fit(X, y)
        assert model.n_selected_ < full.n_selected_ == 2000
        assert model.evidence_.log_loss <= full.evidence_.log_loss + 0.01


def test_rules_keep_ever_fewer_features():
    X, y = counts(informative=200)
    kept = {r: MaxDiscClassifier(rule=r).fit(X, y) for r in ("best", "one_se", "auto", "small")}
    assert kept["auto"].n_selected_ == kept["one_se"].n_selected_ <= kept["best"].n_selected_
    assert kept["small"].n_selected_ <= kept["best"].n_selected_
    path = kept["small"].path_
    at = int(np.searchsorted(path.sizes, kept["small"].n_selected_))
    assert path.mean_accuracy[at] >= path.mean_accuracy.max() - 0.01 - 1e-12
    assert len(path.sizes) >= 30
    assert path.sizes[0] == 10
    assert path.sizes[-1] == 2000


def test_the_number_of_features_is_bounded_unless_the_best_is_asked_for(monkeypatch):
    X, y = counts(informative=2000)
    monkeypatch.setattr(fitted_refinement, "MOST_FEATURES", 300)
    sizes = {r: MaxDiscClassifier(rule=r).fit(X, y).path_.sizes for r in ("auto", "best")}
    assert sizes["auto"][-1] == 300
    assert sizes["best"][-1] == 2000
    assert MaxDiscClassifier(n_features="all").fit(X, y).n_selected_ == 2000


def test_auto_is_refined_for_many_sparse_cells_alone():
    X, y = counts()
    auto, asked = MaxDiscClassifier().fit(X, y), MaxDiscClassifier(evidence="refined").fit(X, y)
    np.testing.assert_array_equal(auto.predict_proba(X), asked.predict_proba(X))
    for few in (X[:90, :8], X[:, :40].toarray()):
        found = MaxDiscClassifier().fit(few, y[: few.shape[0]])
        assert found.evidence_.columns is None
        plain = MaxDiscClassifier(evidence="calibrated").fit(few, y[: few.shape[0]])
        np.testing.assert_array_equal(found.predict_proba(few), plain.predict_proba(few))


def test_more_numbers_than_memory_should_hold_are_said_aloud(monkeypatch):
    X, y = counts()
    monkeypatch.setattr(learning, "MOST_DUALS", 1000)
    with pytest.warns(UserWarning, match="one number for each row and class, here 1,800"):
        model = MaxDiscClassifier().fit(X, y)
    assert model.evidence_.columns is None


def test_rows_that_would_take_long_are_refined_if_that_is_asked_for(monkeypatch):
    X, y = counts()
    refined = MaxDiscClassifier().fit(X, y).predict_proba(X)
    monkeypatch.setattr(learning, "MANY_DUALS", 1000)
    with pytest.warns(UserWarning, match="600 rows of 3 classes would take many times as long to refine"):
        model = MaxDiscClassifier().fit(X, y)
    assert not np.array_equal(model.predict_proba(X), refined)
    asked = MaxDiscClassifier(evidence="refined").fit(X, y)
    np.testing.assert_array_equal(asked.predict_proba(X), refined)


@examples(50)
@given(st.integers(0, 10_000), st.sampled_from(["best", "one_se", "small"]))
def test_weights_are_repetitions_of_rows(seed, rule):
    found, correct, weights = losses(seed)
    repeated = weights.astype(int)
    once = np.ones(repeated.sum())
    again = fewest_features(np.repeat(found, repeated, 1), np.repeat(correct, repeated, 1), once, rule)
    assert fewest_features(found, correct, weights, rule) == again


@examples(50)
@given(st.integers(0, 10_000))
def test_the_fewest_are_no_more_than_the_best(seed):
    found, correct, weights = losses(seed)
    best, fewest, small = (fewest_features(found, correct, weights, r) for r in ("best", "one_se", "small"))
    assert fewest <= best
    accuracy = correct @ weights / weights.sum()
    assert accuracy[small] >= accuracy.max() - 0.01
    assert (accuracy[:small] < accuracy.max() - 0.01).all()


def test_a_rough_path_does_not_select_its_luckiest_size():
    places = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        # All rows alike, so that paired differences of sizes have no noise: the path alone has.
        found = rng.gamma(1.0, 0.3, 50) + rng.normal(0, 0.01, (32, 1))
        places.append(fewest_features(found, np.ones((32, 50)), np.ones(50), "one_se"))
    assert np.median(places) <= 4


def test_a_path_by_rows_has_the_means_of_each_fold():
    found, correct, weights = losses(3)
    folds = np.arange(40) % 4
    sizes = np.arange(1, 9)
    path = SelectionPath.by_rows(sizes, correct, found, weights, folds, 1.0)
    for fold in range(4):
        here = folds == fold
        expected = np.average(found[:, here], axis=1, weights=weights[here])
        np.testing.assert_allclose(path.log_loss[fold], expected)
        np.testing.assert_allclose(
            path.accuracy[fold], np.average(correct[:, here], axis=1, weights=weights[here])
        )
    np.testing.assert_allclose(path.mean_log_loss, found @ weights / weights.sum())
    assert path.n_rows[0] == pytest.approx(weights[folds == 0].sum() ** 2 / (weights[folds == 0] ** 2).sum())


@pytest.mark.parametrize("n_features", [200, 1000, 130_107])
def test_sizes_go_from_ten_to_all(n_features):
    sizes = refined_sizes(n_features)
    assert sizes[0] == 10
    assert sizes[-1] == n_features
    assert (np.diff(sizes) > 0).all()
    assert len(sizes) >= 30


def test_folds_that_hold_out_many_rows_are_enough_one_by_one(monkeypatch):
    # Weights are learnt on two folds, however many rows a fold holds out. Copies of words, of some more than
    # of others, are what generative evidence counts too often.
    rng = np.random.default_rng(0)
    y = np.arange(900) % 2
    said = rng.random((900, 40)) < np.where(y[:, None] == 1, 0.5, 0.5 + rng.uniform(-0.15, 0.15, 40))
    X = sp.csr_array(np.repeat(said, rng.integers(1, 12, 40), axis=1).astype(float))
    settings = {"evidence": "refined", "n_features": "all", "smoothing": 1.0}
    full = MaxDiscClassifier(**settings).fit(X, y)
    monkeypatch.setattr(refinement, "ENOUGH_TO_MIX", 10)
    model = MaxDiscClassifier(**settings).fit(X, y)
    assert full.evidence_.correction is not None
    assert model.evidence_.correction is not None
    assert model.evidence_.n_rows < full.evidence_.n_rows


def test_many_classes_compare_fewer_sizes(monkeypatch):
    X, y = counts()
    monkeypatch.setattr(refinement, "MOST_NUMBERS", 1)
    path = MaxDiscClassifier(evidence="refined").fit(X, y).path_
    assert 15 <= len(path.sizes) <= 16
    assert path.sizes[-1] == 2000


def test_sizes_are_compared_by_a_sample_of_many_rows_in_any_order(monkeypatch):
    X, y = counts(informative=200)
    monkeypatch.setattr(refinement, "MOST_LEARNT", 3 * 100)
    order = np.random.default_rng(0).permutation(len(y))
    settings = {"evidence": "refined", "cv": "hash", "smoothing": 1.0}
    one, other = (MaxDiscClassifier(**settings).fit(X[o], y[o]) for o in (np.arange(len(y)), order))
    assert one.n_selected_ == other.n_selected_
    np.testing.assert_allclose(one.path_.mean_log_loss, other.path_.mean_log_loss, rtol=0.05, atol=0.01)


def test_evidence_of_all_features_is_learnt_once(monkeypatch):
    X, y = counts(informative=2000)
    calls = []
    monkeypatch.setattr(learning, "calibrate", lambda *a, **k: calls.append(a) or calibrate(*a, **k))
    model = MaxDiscClassifier(evidence="refined", rule="best").fit(X, y)
    assert len(calls) == (1 if model.n_selected_ == 2000 else 2)
