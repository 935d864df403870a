"""The estimator: scikit-learn's contract, peers as oracles, and its own promises."""

from __future__ import annotations

import contextlib
import io
import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxdisc import MaxDiscClassifier, Smoothing
from maxdisc.families import FAMILIES
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.testing import random_data
from tests.conftest import examples

families = pytest.mark.parametrize("name", FAMILIES)
# The generative model itself, as peers and laws of densities know it.
RawClassifier = partial(MaxDiscClassifier, evidence="raw")
both = pytest.mark.parametrize("evidence", ["raw", "calibrated"])


# ---------------------------------------------------------------- peers as oracles


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_gaussian_naive_bayes(shift):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    peer = GaussianNB(var_smoothing=0.0).fit(X, y)
    ours = RawClassifier("gaussian", n_features="all", smoothing=0.0).fit(X + shift, y)
    np.testing.assert_allclose(
        ours.predict_log_proba(X + shift), peer.predict_log_proba(X), atol=1e-8 if not shift else 2e-5
    )
    assert (ours.predict(X + shift) == peer.predict(X)).all()


def test_gaussian_naive_bayes_weighted_with_priors_and_batches():
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).random(150)
    prior = [0.5, 0.2, 0.3]
    peer = GaussianNB(priors=prior, var_smoothing=0.0).fit(X, y, weights)
    ours = MaxDiscClassifier("gaussian", n_features="all", smoothing=0.0, prior=prior)
    for i in range(0, 150, 40):
        ours.partial_fit(X[i : i + 40], y[i : i + 40], classes=[0, 1, 2], sample_weight=weights[i : i + 40])
    np.testing.assert_allclose(ours.predict_joint_log_proba(X), peer.predict_joint_log_proba(X), atol=1e-8)


def equal_length_counts(seed=0, n_rows=80, n_features=12, length=30):
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 3
    rates = rng.dirichlet(np.ones(n_features), size=3)
    return np.stack([rng.multinomial(length, rates[c]) for c in y]).astype(float), y


@pytest.mark.parametrize("alpha", [0.01, 1.0, 5.0])
def test_multinomial_naive_bayes_where_rows_have_one_length(alpha):
    # With equal row totals and one pseudo-count for all words, Poisson rates are multinomial shares.
    X, y = equal_length_counts()
    peer = MultinomialNB(alpha=alpha).fit(X, y)
    # alpha pseudo-counts for each word: in non-zero cells, divided by what such a cell holds on average.
    amount = alpha * (X != 0).mean() / X.mean()
    for data in (X, sp.csr_array(X)):
        ours = RawClassifier("poisson", n_features="all", smoothing=Smoothing(amount, "flat")).fit(data, y)
        np.testing.assert_allclose(ours.predict_log_proba(data), peer.predict_log_proba(X), atol=1e-8)


def test_bernoulli_naive_bayes_without_smoothing():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = (rng.random((300, 6)) < np.where(y == 1, 0.3, 0.6)[:, None]).astype(float)
    peer = BernoulliNB(alpha=1e-12, force_alpha=True).fit(X, y)
    ours = RawClassifier("bernoulli", n_features="all", smoothing=0.0).fit(X, y)
    np.testing.assert_allclose(ours.predict_log_proba(X), peer.predict_log_proba(X), atol=1e-8)


@pytest.mark.parametrize(
    ("name", "frozen"),
    [
        ("exponential", lambda x: stats.expon(scale=x.mean())),
        ("poisson", lambda x: stats.poisson(x.mean())),
        ("geometric", lambda x: stats.geom(1 / (1 + x.mean()), loc=-1)),
        ("gaussian", lambda x: stats.norm(x.mean(), x.std())),
        ("bernoulli", lambda x: stats.bernoulli(x.mean())),
        ("gamma", lambda x: stats.gamma(*stats.gamma.fit(x, floc=0))),
        ("beta", lambda x: stats.beta(*stats.beta.fit(x, floc=0, fscale=1))),
    ],
)
def test_score_samples_is_the_log_density_of_the_mixture(name, frozen):
    X, y = random_data(name, 90, 3, 3, seed=1)
    model = MaxDiscClassifier(name, n_features="all", smoothing=0.0).fit(X, y)
    log_p = np.zeros((90, 3))
    for c in range(3):
        for j in range(3):
            dist = frozen(X[y == c, j])
            log_p[:, c] += dist.logpmf(X[:, j]) if hasattr(dist.dist, "pmf") else dist.logpdf(X[:, j])
    expected = logsumexp(log_p + np.log(1 / 3), axis=1)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------- one model however it is fed


@examples(25)
@given(st.data())
def test_any_batching_is_fit(data):
    name = data.draw(st.sampled_from(list(FAMILIES)))
    X, y = random_data(name, 60, 4, 5, seed=data.draw(st.integers(0, 50)))
    labels = np.array(["d", "b", "c", "a"])[y]
    cuts = sorted(data.draw(st.sets(st.integers(1, 59), max_size=5)))
    model = RawClassifier(name, n_features=3, smoothing=0.5)
    whole = clone(model).fit(X, labels)
    order = np.array(data.draw(st.permutations(range(60))))
    for a, b in zip([0, *cuts], [*cuts, 60], strict=True):
        model.partial_fit(X[order[a:b]], labels[order[a:b]])
    np.testing.assert_array_equal(model.classes_, whole.classes_)
    np.testing.assert_allclose(model.scores_, whole.scores_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-8)


def test_integer_counts_are_learnt_bit_for_bit_in_any_batches():
    X, y = random_data("poisson", 60, 3, 5, seed=2)
    a = RawClassifier("poisson", n_features="all", smoothing=1.0).fit(X, y)
    b = RawClassifier("poisson", smoothing=1.0)
    for i in range(60):
        b.partial_fit(sp.csr_array(X[i : i + 1]), y[i : i + 1])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


def test_new_classes_may_appear_and_promised_ones_may_not():
    X, y = random_data("gaussian", 60, 3, 4, seed=3)
    model = MaxDiscClassifier("gaussian", smoothing=1.0)
    model.partial_fit(X[y == 1], y[y == 1])
    model.partial_fit(X[y == 0], y[y == 0], classes=[0, 7])
    assert model.classes_.tolist() == [0, 1, 7]
    assert (model.predict(X[y == 0]) != 7).all()
    assert (model.predict_proba(X)[:, 2] == 0).all()
    assert np.isfinite(model.predict_proba(X)).all()
    model.partial_fit(X[y == 2], y[y == 2])
    assert model.classes_.tolist() == [0, 1, 2, 7]


def test_partial_fit_after_fit_keeps_what_fit_chose():
    X, y = random_data("poisson", 90, 3, 12, seed=4)
    model = MaxDiscClassifier("poisson").fit(X[:60], y[:60])
    kept, smoothing, evidence = model.n_selected_, model.smoothing_, model.evidence_
    model.partial_fit(X[60:], y[60:])
    assert (model.n_selected_, model.smoothing_) == (kept, smoothing)
    again = RawClassifier("poisson", n_features=kept, smoothing=smoothing).fit(X, y)
    weighed = evidence.applied(again.decision_)
    np.testing.assert_array_equal(model.predict_joint_log_proba(X), weighed.scores(X))
    raw = RawClassifier("poisson", n_features=kept, smoothing=smoothing).fit(X[:60], y[:60])
    raw.partial_fit(X[60:], y[60:])
    np.testing.assert_array_equal(raw.predict_proba(X), again.predict_proba(X))


def test_a_stream_chooses_when_told():
    X, y = random_data("poisson", 90, 3, 12, seed=5)
    stream = MaxDiscClassifier("poisson")
    for i in range(0, 90, 30):
        stream.partial_fit(X[i : i + 30], y[i : i + 30])
    assert stream.n_selected_ == 12
    assert stream.path_ is None
    stream.choose_n_features(X, y)
    whole = MaxDiscClassifier("poisson").fit(X, y)
    assert stream.n_selected_ == whole.n_selected_
    assert stream.smoothing_ == whole.smoothing_
    np.testing.assert_array_equal(stream.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ValueError, match="has not seen, 9"):
        stream.choose_n_features(X, np.where(y == 0, 9, y))


@families
def test_rows_in_batches_are_fit_with_hash_folds(name):
    X, y = random_data(name, 90, 3, 8, seed=6)
    labels = np.array(["x", "y", "z"])
    whole = MaxDiscClassifier(name, cv="hash").fit(X, labels[y])
    rows = BatchRows(lambda: [(X[i : i + 13], y[i : i + 13]) for i in range(0, 90, 13)], 3)
    model = MaxDiscClassifier(name).fit_rows(rows, labels)
    assert model.n_selected_ == whole.n_selected_
    assert model.smoothing_ == whole.smoothing_
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-8, atol=1e-12)


def test_the_seam_checks_its_arguments():
    X, y = random_data("gaussian", 20, 2, 3)
    rows = ArrayRows(X, y, 2)
    with pytest.raises(ValueError, match="rows have 2 classes, but classes names 3"):
        MaxDiscClassifier().fit_rows(rows, ["a", "b", "c"])
    with pytest.raises(ValueError, match="cv='hash' or a number"):
        MaxDiscClassifier(cv="holdout").fit_rows(rows, ["a", "b"])


# ---------------------------------------------------------------- symmetries


@families
@both
def test_permuting_rows_features_or_classes_permutes_the_answer(name, evidence):
    X, y = random_data(name, 80, 3, 7, seed=7)
    rng = np.random.default_rng(0)
    # Folds by the content of a row do not hang on its place, and folds by its place not on its content.
    model = MaxDiscClassifier(name, n_features=4, evidence=evidence, smoothing=1.0, cv="hash")
    rows, columns, renamed = rng.permutation(80), rng.permutation(7), np.array([2, 0, 1])
    proba = clone(model).fit(X, y).predict_proba(X)
    by_rows = clone(model).fit(X[rows], y[rows])
    np.testing.assert_allclose(by_rows.predict_proba(X), proba, rtol=1e-7, atol=1e-12)
    model.set_params(cv=KFold(4))
    base = clone(model).fit(X, y)
    proba = base.predict_proba(X)
    by_columns = clone(model).fit(X[:, columns], y)
    np.testing.assert_allclose(by_columns.predict_proba(X[:, columns]), proba, rtol=1e-7, atol=1e-12)
    np.testing.assert_array_equal(columns[by_columns.ranking_], base.ranking_)
    by_classes = clone(model).fit(X, renamed[y])
    np.testing.assert_allclose(by_classes.predict_proba(X)[:, renamed], proba, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", [n for n, f in FAMILIES.items() if f.preserves_zero])
def test_sparse_is_dense(name):
    X, y = random_data(name, 90, 3, 8, seed=8)
    X[::3, ::2] = 0
    dense = MaxDiscClassifier(name).fit(X, y)
    for container in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix, sp.coo_array):
        for dtype in (np.float64, np.float32):
            data = container(X.astype(dtype))
            sparse = MaxDiscClassifier(name).fit(data, y)
            same = MaxDiscClassifier(name).fit(X.astype(dtype), y)
            assert sparse.n_selected_ == same.n_selected_
            np.testing.assert_allclose(
                sparse.predict_proba(data), same.predict_proba(X.astype(dtype)), atol=1e-8
            )
        np.testing.assert_allclose(dense.predict_proba(container(X)), dense.predict_proba(X), atol=1e-8)


def test_wide_and_odd_sparse_indices():
    X, y = random_data("poisson", 40, 2, 6, seed=9)
    expected = MaxDiscClassifier("poisson", smoothing=1.0).fit(X, y).predict_proba(X)
    wide = sp.csr_array(X)
    wide = sp.csr_array(
        (wide.data, wide.indices.astype(np.int64), wide.indptr.astype(np.int64)), shape=X.shape
    )
    doubled = sp.coo_array(
        (np.r_[X.ravel(), X.ravel()] / 2, np.tile(np.indices(X.shape).reshape(2, -1), 2)), shape=X.shape
    )
    backwards = sp.csr_array(X[:, ::-1])[:, ::-1].tocsr()
    for data in (wide, doubled, backwards):
        got = MaxDiscClassifier("poisson", smoothing=1.0).fit(data, y).predict_proba(data)
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_auto_takes_poisson_for_counts_and_gaussian_otherwise():
    X, y = random_data("poisson", 40, 2, 6)
    assert MaxDiscClassifier().fit(sp.csr_array(X), y).families_[0][0].name == "poisson"
    assert MaxDiscClassifier().fit(X, y).families_[0][0].name == "gaussian"
    assert MaxDiscClassifier().fit(sp.csr_array(X - 3), y).families_[0][0].name == "gaussian"


# ---------------------------------------------------------------- data of all kinds


@pytest.mark.parametrize(
    "labels",
    [np.array(["no", "yes"]), np.array([3, -7]), np.array([True, False]), np.array(["é", "b"], dtype=object)],
    ids=["str", "int", "bool", "object"],
)
def test_labels(labels):
    X, y = random_data("gaussian", 60, 2, 4, seed=10)
    model = MaxDiscClassifier().fit(X, labels[y])
    predicted = model.predict(X)
    assert predicted.dtype == np.unique(labels).dtype
    assert set(predicted.tolist()) <= set(labels.tolist())
    assert (model.classes_ == np.unique(labels)).all()
    assert (model.predict(X) == labels[y]).mean() > 0.6


def test_frames():
    data = load_iris(as_frame=True)
    base = MaxDiscClassifier().fit(data.data.to_numpy(), data.target)
    pandas = MaxDiscClassifier().fit(data.data, data.target)
    polars_frame = pl.from_dict({name: data.data[name].to_numpy() for name in data.data.columns})
    polars = MaxDiscClassifier().fit(polars_frame, data.target.to_numpy())
    for model, frame in ((pandas, data.data), (polars, polars_frame)):
        assert model.feature_names_in_.tolist() == list(data.data.columns)
        np.testing.assert_array_equal(model.predict_proba(frame), base.predict_proba(data.data.to_numpy()))
        names = model.get_feature_names_out().tolist()
        assert names == [data.data.columns[j] for j in np.sort(model.ranking_[: model.n_selected_])]
    with pytest.raises(ValueError, match="feature names"):
        pandas.predict(data.data.rename(columns={"petal length (cm)": "length"}))
    out = pandas.set_output(transform="pandas").transform(data.data)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == names


def test_read_only_memory_maps_are_left_alone(tmp_path):
    X, y = random_data("gaussian", 60, 3, 5, seed=11)
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = MaxDiscClassifier().fit(mapped, y)
    np.testing.assert_allclose(
        model.predict_proba(mapped),
        MaxDiscClassifier().fit(X.astype(np.float32), y).predict_proba(X.astype(np.float32)),
    )


def test_missing_cells_are_no_evidence():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    model = MaxDiscClassifier().fit(holes, y)
    assert np.isfinite(model.predict_proba(holes)).all()
    assert model.score(X, y) > 0.9
    nothing = np.full((1, 4), np.nan)
    assert (model.explain(nothing).contributions == 0).all()
    missing = np.isnan(holes)[:, model.decision_.columns]
    assert (model.explain(holes).contributions.transpose(0, 2, 1)[missing] == 0).all()
    raw = RawClassifier().fit(holes, y)
    np.testing.assert_allclose(raw.predict_proba(nothing)[0], raw.class_prior_, rtol=1e-12)
    all_missing = holes.copy()
    all_missing[:, 2] = np.nan
    again = MaxDiscClassifier(n_features="all").fit(all_missing, y)
    assert again.scores_[2] == 0
    assert np.isfinite(again.predict_proba(X)).all()


def test_weights_are_repetitions_and_zero_weight_is_absence():
    X, y = random_data("gaussian", 60, 3, 6, seed=12)
    times = np.random.default_rng(0).integers(0, 4, 60)
    a = MaxDiscClassifier(cv="hash").fit(X, y, sample_weight=times)
    b = MaxDiscClassifier(cv="hash").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert a.n_selected_ == b.n_selected_
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-8, atol=1e-12)
    labels = np.where(times == 0, "never", y.astype(str))
    assert "never" not in MaxDiscClassifier().fit(X, labels, sample_weight=times).classes_


def test_float32_rows_far_from_zero_are_predicted_as_their_float64_copies():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = (1e4 + rng.normal(size=(400, 3)) + 0.5 * y[:, None]).astype(np.float32)
    a = MaxDiscClassifier("gaussian", n_features="all", smoothing=0.0).fit(X, y)
    b = MaxDiscClassifier("gaussian", n_features="all", smoothing=0.0).fit(X.astype(np.float64), y)
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X.astype(np.float64)))


# ---------------------------------------------------------------- what it can do beside predicting


@families
def test_explanations_are_exact(name):
    X, y = random_data(name, 60, 3, 6, seed=13)
    model = MaxDiscClassifier(name, n_features=4).fit(X, y)
    explanation = model.explain(X[:9])
    np.testing.assert_array_equal(explanation.total, model.predict_joint_log_proba(X[:9]))
    np.testing.assert_allclose(
        explanation.prior + explanation.contributions.sum(axis=2), explanation.total, rtol=1e-9, atol=1e-9
    )
    assert explanation.names.tolist() == [f"x{j}" for j in model.ranking_[:4]]
    first, second = np.sort(explanation.total[0])[::-1][:2]
    prior = explanation.prior[np.argsort(-explanation.total[0])[:2]]
    odds = sum(value for _, value in explanation.top(0, n=4))
    np.testing.assert_allclose(odds + prior[0] - prior[1], first - second, rtol=1e-8, atol=1e-9)


def test_explaining_sparse_rows():
    X, y = random_data("poisson", 60, 3, 6, seed=14)
    model = MaxDiscClassifier().fit(sp.csr_array(X), y)
    np.testing.assert_allclose(
        model.explain(sp.csr_array(X)).contributions, model.explain(X).contributions, rtol=1e-12
    )


@families
def test_samples_come_from_the_model(name):
    X, y = random_data(name, 300, 3, 4, seed=15)
    model = MaxDiscClassifier(name, n_features="all", smoothing=1.0, random_state=0).fit(X, y)
    drawn, labels = model.sample(3000)
    assert drawn.shape == (3000, 4)
    assert FAMILIES[name].support.contains(drawn).all()
    np.testing.assert_allclose(np.bincount(labels) / 3000, 1 / 3, atol=0.05)
    again = MaxDiscClassifier(name, n_features="all", smoothing=1.0).fit(drawn, labels)
    for mine, theirs in zip(again.moments_.sums, model.moments_.sums, strict=True):
        if name != "gaussian":
            spread = np.abs(theirs / 100).max()
            np.testing.assert_allclose(
                mine / again.moments_.weight[:, None], theirs / 100, atol=0.25 * (1 + spread)
            )
    assert (model.sample(5, y=2)[1] == 2).all()
    with pytest.raises(ValueError, match="9 is not a class"):
        model.sample(5, y=9)
    np.testing.assert_array_equal(model.sample(4)[0], model.sample(4)[0])


def test_it_is_a_selector():
    data = load_breast_cancer()
    model = MaxDiscClassifier(n_features=7).fit(data.data, data.target)
    assert model.transform(data.data).shape == (569, 7)
    assert model.get_support().sum() == 7
    np.testing.assert_array_equal(np.sort(model.ranking_[:7]), model.get_support(indices=True))
    assert model.transform(sp.csr_array(data.data)).shape == (569, 7)
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
    assert (model.feature_importances_ > 0).sum() == 7
    picked = SelectFromModel(model, prefit=True, threshold=-np.inf, max_features=3).transform(data.data)
    np.testing.assert_array_equal(picked, data.data[:, np.sort(model.ranking_[:3])])
    assert model.inverse_transform(model.transform(data.data)).shape == data.data.shape


def test_it_works_where_estimators_work():
    data = load_breast_cancer()
    pipeline = make_pipeline(StandardScaler(), MaxDiscClassifier())
    assert cross_val_score(pipeline, data.data, data.target, cv=3).mean() > 0.92
    search = GridSearchCV(
        MaxDiscClassifier(), {"divergence": ["js_gm", "jeffreys", "kl"], "rule": ["best", "one_se"]}, cv=3
    ).fit(data.data, data.target)
    assert search.best_score_ > 0.92
    model = MaxDiscClassifier().fit(data.data, data.target)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(data.data), model.predict_proba(data.data))
    assert "MaxDiscClassifier" in model._repr_html_()


@both
def test_one_se_keeps_fewer(evidence):
    data = load_breast_cancer()
    best = MaxDiscClassifier(rule="best", evidence=evidence).fit(data.data, data.target)
    fewer = MaxDiscClassifier(rule="one_se", evidence=evidence).fit(data.data, data.target)
    assert fewer.n_selected_ <= best.n_selected_
    by = "accuracy" if evidence == "raw" else "log_loss"
    assert fewer.n_selected_ == fewer.path_.sizes[fewer.path_.best_position("one_se", by)]


@pytest.mark.parametrize(
    ("asked", "kept"), [("all", 30), (1, 1), (30, 30), (0.5, 15), (1.0, 30), (0.01, 1), (np.int64(4), 4)]
)
def test_how_many_features(asked, kept):
    data = load_breast_cancer()
    model = MaxDiscClassifier(n_features=asked, smoothing=1.0).fit(data.data, data.target)
    assert model.path_.sizes.tolist() == [kept]
    raw = RawClassifier(n_features=asked, smoothing=1.0).fit(data.data, data.target)
    assert raw.path_ is None
    for each in (model, raw):
        assert each.n_selected_ == kept
        assert len(each.decision_.columns) == kept


def test_a_users_divergence_ranks():
    data = load_breast_cancer()

    def spread_of_means(densities):
        return densities.mean[0].var(axis=0)

    model = MaxDiscClassifier(divergence=spread_of_means, n_features=3, smoothing=1.0).fit(
        data.data, data.target
    )
    means = np.stack([data.data[data.target == c].mean(axis=0) for c in (0, 1)])
    np.testing.assert_array_equal(model.ranking_, np.argsort(-means.var(axis=0), kind="stable"))


def test_priors_move_the_answer_by_their_log_odds():
    X, y = load_iris(return_X_y=True)
    base = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, y)
    tilted = MaxDiscClassifier(n_features="all", smoothing=1.0, prior=[0.98, 0.01, 0.01]).fit(X, y)
    np.testing.assert_allclose(
        tilted.predict_joint_log_proba(X) - base.predict_joint_log_proba(X),
        np.tile(np.log(np.array([0.98, 0.01, 0.01]) * 3), (150, 1)),
        rtol=1e-6,
    )
    np.testing.assert_array_equal(tilted.class_prior_, [0.98, 0.01, 0.01])


def test_verbose_says_each_phase_and_what_was_chosen(capsys):
    X, y = random_data("gaussian", 40, 2, 5)
    model = MaxDiscClassifier(structure="independent", verbose=1).fit(X, y)
    evidence = model.evidence_
    held_out = f"held-out rows accuracy {evidence.accuracy:.4f}, log-loss {evidence.log_loss:.4f}"
    assert capsys.readouterr().out.splitlines() == [
        "maxdisc: counting on folds",
        "maxdisc: selecting features and calibrating on held-out rows",
        f"maxdisc: {model.n_selected_} of 5 features selected, gaussian densities; on {held_out}",
    ]
    words = ["red sky at night", "blue sea at noon", "green leaf in wind"]
    documents = [words[row % 3] + f" x{row}" * (row % 7) for row in range(60)]
    MaxDiscClassifier(evidence="refined", verbose=1).fit(documents, np.arange(60) % 3)
    told = capsys.readouterr().out
    assert told.startswith("maxdisc: counting words\n")
    assert "maxdisc: correcting single features on held-out rows\n" in told
    model = MaxDiscClassifier(structure="joint", evidence="raw", verbose=1).fit(X, y)
    assert "maxdisc: fitting joint densities\n" in capsys.readouterr().out
    model.set_params(verbose=0).fit(X, y).predict(X)
    assert capsys.readouterr().out == ""


def test_phases_are_shown_while_they_happen():
    """A notebook shows what a stream has been given and flushed."""
    X, y = random_data("gaussian", 40, 2, 5)
    seen = []

    class Notebook(io.StringIO):
        def flush(self):
            seen.append(self.getvalue().count("\n"))

    with contextlib.redirect_stdout(Notebook()):
        MaxDiscClassifier(structure="independent", verbose=1).fit(X, y)
    assert seen == [1, 2, 3]


def test_extreme_values_are_predicted_without_nan():
    X, y = random_data("gaussian", 60, 3, 4, seed=16)
    model = MaxDiscClassifier().fit(X, y)
    far = np.array([[1e139, -1e139, 1e100, 0.0], [1e-300, 0.0, -0.0, -1e139]])
    for values in (model.predict_proba(far), model.predict_log_proba(X * 1e60), model.score_samples(far)):
        assert not np.isnan(values).any()


def test_values_beyond_double_precision_are_refused_by_name():
    X, y = random_data("gaussian", 60, 2, 3, seed=17)
    model = MaxDiscClassifier().fit(X, y)
    huge = X.copy()
    huge[4, 1] = 1e200
    for act in (lambda: MaxDiscClassifier().fit(huge, y), lambda: model.predict(huge)):
        with pytest.raises(ValueError, match=r"at most 1e\+140, but column 1 has 1e\+200 in row 4"):
            act()
    with pytest.raises(ValueError, match="column 0 are too small to be squared"):
        MaxDiscClassifier().fit(X * 1e-165, y)
    counts = MaxDiscClassifier("poisson", smoothing=1.0, n_features=1)
    with pytest.raises(ValueError, match="too large to be summed"):
        counts.fit(np.abs(X) * 1e260, y, np.full(60, 1e100))
    with pytest.raises(ValueError, match="sample weights are too large to be squared"):
        counts.fit(np.abs(X), y, np.full(60, 1e160))


def test_a_feature_that_tells_some_classes_apart_exactly_leaves_the_others_alone():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [30, 170, 100])
    X = np.column_stack([(y == 2) * 1.0, rng.normal(size=300) + 3 * (y == 0)])
    only_second = MaxDiscClassifier("gaussian", smoothing=0.0, n_features="all").fit(
        X[y < 2][:, 1:], y[y < 2]
    )
    for smoothing in (0.0, 0.1, 1.0, 100.0):
        model = MaxDiscClassifier("gaussian", smoothing=smoothing, n_features="all").fit(X, y)
        assert (model.predict(X)[y == 2] == 2).all()
        explanation = model.explain(X)
        np.testing.assert_allclose(
            explanation.prior + explanation.contributions.sum(axis=2), explanation.total, rtol=1e-9
        )
        if smoothing == 0.0:
            assert (model.predict(X)[y < 2] == only_second.predict(X[y < 2][:, 1:])).mean() > 0.99


@pytest.mark.parametrize("distance", [1e6, 1e8, 1e9])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_far_class_does_not_blur_two_near_ones(distance, container):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 1)) + np.array([0.0, 2.0, distance])[y][:, None]
    model = RawClassifier("gaussian", smoothing=0.0, n_features="all").fit(container(X), y)
    near = y < 2
    peer = GaussianNB(var_smoothing=0.0).fit(X[near], y[near])
    odds = np.diff(model.predict_joint_log_proba(container(X))[near][:, :2], axis=1)
    np.testing.assert_allclose(odds, np.diff(peer.predict_joint_log_proba(X[near]), axis=1), atol=1e-6)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_full_sparse_columns_far_from_zero_keep_their_digits(offset):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 3)) + 0.5 * y[:, None] + offset
    X[:, 2] = np.where(rng.random(300) < 0.9, 0.0, X[:, 2])
    dense = MaxDiscClassifier("gaussian", smoothing=0.1, n_features="all").fit(X, y)
    sparse = MaxDiscClassifier("gaussian", smoothing=0.1, n_features="all").fit(sp.csr_array(X), y)
    for model in (dense, sparse):
        for data in (X, sp.csr_array(X)):
            np.testing.assert_allclose(
                model.predict_joint_log_proba(data), dense.predict_joint_log_proba(X), atol=1e-6
            )


def test_a_constant_sparse_column_scores_zero_however_many_rows_and_weights():
    rng = np.random.default_rng(0)
    X = sp.csr_array(np.column_stack([np.full(20_000, 1 / 3), rng.normal(size=20_000)]))
    y = rng.integers(0, 2, 20_000)
    model = MaxDiscClassifier("gaussian", smoothing=0.1, n_features="all").fit(X, y, rng.random(20_000))
    assert model.scores_[0] == 0.0


def test_duplicate_entries_are_one_cell_and_float32_is_squared_in_float64():
    X, y = random_data("hurdle", 60, 3, 5, seed=18)
    whole = sp.csr_array(X)
    halves = sp.csr_array(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=X.shape
    )
    assert not halves.has_canonical_format
    stored = halves.nnz
    for name in ("hurdle", "poisson", "gaussian"):
        model = MaxDiscClassifier(name, cv="hash").fit(halves, y)
        base = MaxDiscClassifier(name, cv="hash").fit(X, y)
        np.testing.assert_allclose(model.predict_proba(halves), base.predict_proba(X), rtol=1e-8)
        np.testing.assert_allclose(model.score_samples(halves), base.score_samples(X), rtol=1e-8)
    assert halves.nnz == stored, "the caller's matrix was changed"
    single = sp.csr_array((X * 1e10).astype(np.float32))
    a = MaxDiscClassifier("gaussian", smoothing=1.0, n_features="all").fit(single, y)
    b = MaxDiscClassifier("gaussian", smoothing=1.0, n_features="all").fit(single.toarray(), y)
    np.testing.assert_allclose(
        a.predict_joint_log_proba(single), b.predict_joint_log_proba(single.toarray()), atol=1e-8
    )


@pytest.mark.parametrize("name", ["gamma", "beta"])
def test_a_sparse_matrix_without_zeros_is_as_good_as_a_dense_one(name):
    X, y = random_data(name, 60, 3, 4, seed=19)
    dense = MaxDiscClassifier(name).fit(X, y)
    sparse = MaxDiscClassifier(name).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(X)), dense.predict_proba(X), rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "value"),
    [("poisson", 0.0), ("bernoulli", 1.0), ("beta", 0.25), ("gaussian", 5.0), ("gamma", 2.0)],
)
def test_a_feature_without_variation_is_drawn_as_it_is_and_does_not_count(name, value):
    X, y = random_data(name, 60, 2, 3, seed=20)
    base = MaxDiscClassifier(name, smoothing=1.0, n_features="all").fit(X, y)
    X[:, 1] = value
    model = MaxDiscClassifier(name, smoothing=1.0, n_features="all").fit(X, y)
    np.testing.assert_allclose(model.sample(50)[0][:, 1], value)
    other = X.copy()
    other[:, 1] = 0.5 if name == "beta" else (1.0 - value if name == "bernoulli" else value + 4)
    np.testing.assert_array_equal(model.score_samples(other), model.score_samples(X))
    assert model.scores_[1] == 0.0
    assert base.scores_[1] > 0.0


def test_a_refused_batch_leaves_the_model_as_it_was():
    X, y = random_data("gaussian", 60, 2, 3, seed=21)
    model = MaxDiscClassifier("gaussian", smoothing=1.0, n_features="all", prior=[0.5, 0.5]).partial_fit(X, y)
    before = model.predict_proba(X)
    for bad_X, bad_y, message in (
        (X[:1], [9], "prior must hold 3"),
        (X * np.inf, y, "has"),
        (X, np.array(["a", "b"])[y], "all of one type"),
        (X, np.where(y == 0, np.nan, 1.0), "no label"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad_X, bad_y)
        np.testing.assert_array_equal(model.predict_proba(X), before)
        assert model.classes_.tolist() == [0, 1]


def test_unsolved_densities_are_reported_and_do_not_count():
    from sklearn.exceptions import ConvergenceWarning

    from maxdisc.families import Gamma

    class Stubborn(Gamma):
        def solved(self, natural, mean):
            return super().solved(natural, mean) & (mean[0] < 100)

    X, y = random_data("gamma", 60, 2, 3, seed=22)
    frame = pd.DataFrame(X * [1.0, 1e6, 1.0], columns=["a", "b", "c"])
    with pytest.warns(ConvergenceWarning, match="1 features, first column 'b'"):
        model = RawClassifier(Stubborn(), smoothing=1.0, n_features="all").fit(frame, y)
    assert model.scores_[1] == 0.0
    without = RawClassifier("gamma", smoothing=1.0, n_features="all").fit(X[:, [0, 2]], y)
    np.testing.assert_allclose(model.predict_proba(frame), without.predict_proba(X[:, [0, 2]]), rtol=1e-9)


def test_ties_in_the_ranking_do_not_hang_on_rounding():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (100, 40)).astype(float), rng.integers(0, 3, 100)
    model = MaxDiscClassifier("gaussian", smoothing=1.0, n_features="all").fit(X, y)
    for _ in range(10):
        order = rng.permutation(100)
        again = clone(model).fit(X[order], y[order])
        np.testing.assert_array_equal(again.ranking_, model.ranking_)


def test_weights_have_no_unit_where_nothing_is_smoothed():
    X, y = random_data("poisson", 60, 2, 4, seed=23)
    base = RawClassifier("poisson", smoothing=0.0, n_features="all").fit(X, y)
    for unit in (1e-12, 1e-3, 1e9):
        scaled = clone(base).fit(X, y, np.full(60, unit))
        np.testing.assert_allclose(
            scaled.predict_joint_log_proba(X), base.predict_joint_log_proba(X), rtol=1e-9
        )
    path = RawClassifier("poisson", smoothing=0.0, cv="holdout", rule="one_se")
    sizes = {clone(path).fit(X, y, np.full(60, unit)).n_selected_ for unit in (1e-4, 1.0, 1e4)}
    assert len(sizes) == 1


def test_many_folds_and_folds_without_training_rows():
    from sklearn.model_selection import LeaveOneOut

    X, y = random_data("gaussian", 40, 2, 5, seed=24)
    few = MaxDiscClassifier("gaussian", smoothing=1.0, cv=LeaveOneOut()).fit(X, y)
    assert few.path_.accuracy.shape[0] == 40
    assert MaxDiscClassifier(cv=1000).fit(X, y).path_.accuracy.shape[0] == 40
    with pytest.raises(ValueError, match="no fold has both rows to train on"):
        MaxDiscClassifier("gaussian", cv="hash").fit(np.ones((20, 2)), np.arange(20) % 2)


def test_groups_stay_together_or_are_refused():
    X, y = random_data("gaussian", 60, 2, 4, seed=25)
    groups = np.arange(60) // 6
    model = MaxDiscClassifier("gaussian", cv="holdout", random_state=0).fit(X, y, groups=groups)
    assert model.path_.weight[0] % 6 == 0
    with pytest.raises(ValueError, match="cannot keep groups together"):
        MaxDiscClassifier("gaussian", cv="hash").fit(X, y, groups=groups)


def test_metadata_routing():
    import sklearn
    from sklearn.model_selection import cross_validate

    X, y = random_data("gaussian", 60, 2, 4, seed=26)
    weights = np.random.default_rng(0).random(60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = MaxDiscClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        cross_validate(model, X, y, params={"sample_weight": weights}, cv=3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_at_a_million_deviations_are_those_of_extended_precision(dtype):
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    scale = 1.0 if dtype == np.float64 else 64.0  # float32 holds no finer steps at a million
    X = (1e6 * scale + scale * (rng.normal(size=(240, 3)) + 0.4 * y[:, None])).astype(dtype)
    stream = MaxDiscClassifier("gaussian", smoothing=0.0)
    for i in rng.permutation(24):
        stream.partial_fit(X[10 * i : 10 * i + 10], y[10 * i : 10 * i + 10])
    exact = X.astype(np.longdouble)
    log_p = np.zeros((240, 2), dtype=np.longdouble)
    for c in range(2):
        mean, variance = exact[y == c].mean(axis=0), exact[y == c].var(axis=0)
        log_p[:, c] = (-((exact - mean) ** 2) / (2 * variance) - np.log(variance) / 2).sum(axis=1)
    odds = (log_p[:, 1] - log_p[:, 0]).astype(float)
    got = np.diff(stream.predict_joint_log_proba(X), axis=1)[:, 0]
    np.testing.assert_allclose(got, odds, rtol=1e-9, atol=1e-9)


def test_sparse_variances_keep_their_digits_in_each_class_by_itself():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 1200)
    noise = rng.normal(size=1200)
    # Full in two classes, empty in the others; and one narrow class far away beside a wide one.
    some = np.where(y == 0, 1e8 + noise, np.where(y == 1, 1e8 + 4 + noise, 0.0))
    wide = np.where(y < 3, 1e7 * noise, 1e8 + rng.normal(size=1200))
    X = np.column_stack([some, wide, rng.normal(size=1200)])
    for soft in (False, True):
        labels = np.eye(6)[y] if soft else y
        sparse = ArrayRows(sp.csr_array(X), labels, 6).moments(FAMILIES["gaussian"])[0]
        for c in range(6):
            np.testing.assert_allclose(
                (sparse.centred()[1][1] / sparse.cells)[c],
                X[y == c].astype(np.longdouble).var(axis=0).astype(float),
                rtol=1e-9,
                atol=1e-12,
            )
    near = y < 2
    dense = MaxDiscClassifier("gaussian", smoothing=0.1, n_features="all").fit(X, y)
    model = MaxDiscClassifier("gaussian", smoothing=0.1, n_features="all").fit(sp.csr_array(X), y)
    assert model.score(sp.csr_array(X[near]), y[near]) == dense.score(X[near], y[near]) > 0.95


def test_a_failed_fit_leaves_the_old_model_or_none():
    from sklearn.exceptions import NotFittedError

    X, y = random_data("gaussian", 40, 2, 4, seed=30)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = MaxDiscClassifier().fit(frame, y)
    before = model.predict_proba(frame)
    for bad in (
        lambda: model.fit(frame.iloc[:, :2], y[:10]),
        lambda: model.fit(frame.rename(columns={"a": "z"}), np.zeros(40)),
        lambda: model.fit_rows(ArrayRows(X, y, 2, np.zeros(40)), [0, 1]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011  # which one does not matter
            bad()
        np.testing.assert_array_equal(model.predict_proba(frame), before)
        assert model.feature_names_in_.tolist() == list("abcd")
    fresh = MaxDiscClassifier(prior=[0.5, 0.5])
    with pytest.raises(ValueError, match="prior"):
        fresh.partial_fit(X[y == 0], y[y == 0])
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    rows = MaxDiscClassifier(cv="hash").fit(frame, y).fit_rows(ArrayRows(X, y, 2), [0, 1])
    assert not hasattr(rows, "feature_names_in_")


def test_labels_of_one_kind_in_any_container():
    X, y = random_data("gaussian", 40, 2, 3, seed=31)
    words = np.array(["a", "b"])[y]
    model = RawClassifier("gaussian", smoothing=1.0)
    model.partial_fit(X[:10], pd.Series(words[:10]), classes=["a", "b"])
    model.partial_fit(X[10:20], words[10:20])
    model.partial_fit(X[20:30], words[20:30].tolist())
    model.partial_fit(X[30:], words[30:].astype(object))
    whole = RawClassifier("gaussian", smoothing=1.0, n_features="all").fit(X, words)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    assert model.predict(X).tolist() == whole.predict(X).tolist()


def test_what_partial_fit_learnt_does_not_hang_on_later_parameters():
    X, y = random_data("gaussian", 60, 3, 3, seed=32)
    eager = MaxDiscClassifier("gaussian", smoothing=1.0).partial_fit(X, y)
    expected = eager.predict_proba(X)
    lazy = MaxDiscClassifier("gaussian", smoothing=1.0).partial_fit(X, y)
    lazy.set_params(prior=[0.9, 0.05, 0.05], divergence="nonsense")
    np.testing.assert_array_equal(lazy.predict_proba(X), expected)


def test_probabilities_sum_to_one_however_far_a_row_is():
    model = MaxDiscClassifier("gaussian", smoothing=1.0, n_features="all")
    model.fit([[-1, 0], [1, 0.5], [-1, 1], [1, 1.5]], [0, 0, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[1e9, 0], [0, 0]]).sum(axis=1), 1.0)


def test_a_row_beyond_reckoning_is_refused():
    X, y = random_data("gaussian", 40, 2, 3, seed=33)
    model = MaxDiscClassifier("gaussian", smoothing=1.0, n_features="all").fit(X * 1e-100, y)
    with pytest.raises(ValueError, match="row 1 has values too far"):
        model.predict(np.array([[0.0, 0.0, 0.0], [1e130, -1e130, 1e130]]))


@pytest.mark.parametrize("cv", [3, "hash"])
def test_rows_take_a_number_of_folds_or_hash(cv):
    X, y = random_data("gaussian", 60, 2, 3, seed=34)
    model = MaxDiscClassifier("gaussian", cv=cv).fit_rows(ArrayRows(X, y, 2), [0, 1])
    assert len(model.path_.weight) == (3 if cv == 3 else 5)
    soft = MaxDiscClassifier("gaussian", cv=cv).fit_rows(ArrayRows(X, np.eye(2)[y], 2), [0, 1])
    np.testing.assert_allclose(soft.predict_proba(X), model.predict_proba(X), rtol=1e-9)
    assert "3 folds" in repr(model.path_) or cv == "hash"


def test_a_narrow_beta_is_reported_not_guessed():
    from sklearn.exceptions import ConvergenceWarning

    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    narrow = 1e-6 * (1 + 1e-5 * (rng.normal(size=2000) + 2 * y))
    good = np.clip(0.3 + 0.1 * rng.normal(size=2000) + 0.2 * y, 0.01, 0.99)
    with pytest.warns(ConvergenceWarning, match="first column 1"):
        model = MaxDiscClassifier("beta", smoothing=1.0, n_features="all").fit(
            np.column_stack([good, narrow]), y
        )
    assert model.scores_[1] == 0.0
    assert model.score(np.column_stack([good, narrow]), y) > 0.8


def test_weights_whose_squares_vanish():
    X, y = random_data("gaussian", 60, 2, 4, seed=35)
    model = RawClassifier("gaussian", smoothing=0.0, cv="holdout", rule="one_se")
    tiny = clone(model).fit(X, y, np.full(60, 1e-200))
    np.testing.assert_allclose(tiny.path_.accuracy, clone(model).fit(X, y).path_.accuracy)
    assert np.isfinite(tiny.path_.standard_error).all()
    # Next to no rows say nothing about how much evidence should count.
    weighed = clone(model).set_params(evidence="calibrated").fit(X, y, np.full(60, 1e-200))
    np.testing.assert_allclose(weighed.evidence_.weights, 1.0)
    np.testing.assert_allclose(weighed.path_.n_rows, 12.0)
    assert np.isfinite(weighed.path_.standard_error).all()
