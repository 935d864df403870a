"""Columns of several families: what is said of one family holds of their sum."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.compose import make_column_selector
from sklearn.naive_bayes import CategoricalNB

from maxdisc import MaxDiscClassifier, MaxDiscSearchCV, Smoothing
from maxdisc.decisions.mixed import ranked_model
from maxdisc.densities.class_densities import estimate
from maxdisc.divergences.block_scores import cell_scores, chance
from maxdisc.divergences.class_divergences import DIVERGENCES
from maxdisc.families import Bernoulli, Categorical, Gaussian, Poisson
from maxdisc.families.blocks import Block, Columns
from maxdisc.model_file.persistence import from_bytes, to_bytes
from maxdisc.moments.counting import class_moments
from maxdisc.numerics.block_matrix import Table
from maxdisc.rows.frames import cells_of
from maxdisc.rows.row_sources import ArrayRows
from tests.conftest import examples

RAW = {"evidence": "raw", "n_features": "all", "smoothing": 1.0}


def table(n=240, seed=0, gaps=0.0):
    """Columns of many kinds whose classes differ in all of them but the last."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    colours = np.array(["red", "green", "blue", "grey"], dtype=object)
    share = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.2, 0.2, 0.5, 0.1]])
    frame = pd.DataFrame(
        {
            "weight": rng.normal(y, 1.5),
            "visits": rng.poisson(1 + y),
            "colour": [rng.choice(colours, p=share[c]) for c in y],
            "smokes": rng.random(n) < 0.2 + 0.25 * y,
            "income": rng.gamma(2 + y, 1.0),
            "noise": rng.normal(size=n),
        }
    )
    if gaps:
        frame = frame.mask(rng.random(frame.shape) < gaps)
        frame["smokes"] = frame["smokes"].astype(object)
    return frame, np.array(["a", "b", "c"])[y]


# ------------------------------------------------------------------ blocks


def test_one_block_is_the_family_itself():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(80, 5)), rng.integers(0, 3, 80)
    columns = Columns([Block(Gaussian(), np.arange(5))], 5)
    plain = ArrayRows(X, codes, 3).moments(Gaussian())[0]
    mixed = ArrayRows(Table([X], 5), codes, 3).moments(columns)[0]
    for name, divergence in DIVERGENCES.items():
        a, first = ranked_model(Gaussian(), plain, Smoothing(1.0), divergence)
        b, second = ranked_model(columns, mixed, Smoothing(1.0), divergence)
        np.testing.assert_array_equal(a.order, b.order, err_msg=name)
        np.testing.assert_allclose(first.scores(X), second.scores(Table([X], 5)), rtol=1e-12)


@examples(30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([0.01, 1.0, 30.0]))
def test_levels_are_probabilities_and_divergences_those_of_discrete_distributions(seed, n_levels, amount):
    rng = np.random.default_rng(seed)
    codes, levels = rng.integers(0, 3, 60), rng.integers(0, n_levels, 60)
    levels[:n_levels], codes[:3] = np.arange(n_levels), np.arange(3)
    block = Block(Categorical(), np.zeros(n_levels, dtype=np.intp))
    X = np.eye(n_levels)[levels]
    moments = block.settled(class_moments(Categorical().statistics, X, codes, 3))
    densities = estimate(Categorical(), moments, Smoothing(amount))
    p, prior = densities.mean[0], densities.prior[:, 0]
    np.testing.assert_allclose(p.sum(axis=1), 1)
    # Each class gets as many pseudo-rows of the pooled shares as there are levels, times the amount.
    counts = np.array([np.bincount(levels[codes == c], minlength=n_levels) for c in range(3)])
    k, pooled = amount * n_levels, counts.sum(axis=0) / 60
    np.testing.assert_allclose(p, (counts + k * pooled) / (counts.sum(axis=1, keepdims=True) + k))
    mixture, rest = prior @ p, densities.rest.mean[0]
    expected = {
        "js_gm": sum(
            prior[a] * prior[b] * ((p[a] - p[b]) * np.log(p[a] / p[b])).sum()
            for a in range(3)
            for b in range(a)
        ),
        "jeffreys": prior @ ((p - rest) * np.log(p / rest)).sum(axis=1),
        "kl": prior @ (p * np.log(p / rest)).sum(axis=1),
        "jensen_shannon": prior @ (p * np.log(p / mixture)).sum(axis=1),
        "rao": prior @ ((p - mixture) ** 2 / mixture).sum(axis=1),
    }
    columns = Columns([block], 1)
    whole = ArrayRows(Table([X], 1), codes, 3).moments(columns)[0]
    for name, value in expected.items():
        ranking, _ = ranked_model(columns, whole, Smoothing(amount), DIVERGENCES[name])
        less = chance(block, moments, Smoothing(amount), DIVERGENCES[name]).sum()
        np.testing.assert_allclose(ranking.scores[0], max(value - less, 0.0), atol=1e-12, err_msg=name)


def test_categories_are_those_of_categorical_naive_bayes():
    rng = np.random.default_rng(1)
    codes, X = rng.integers(0, 2, 300), rng.integers(0, 4, (300, 3))
    X[:8] = np.repeat(np.arange(4), 2)[:, None]
    # With all levels equally frequent, pseudo-rows of the pooled shares are scikit-learn's.
    for j in range(3):
        X[:, j] = rng.permutation(np.arange(300) % 4)
    ours = MaxDiscClassifier(family="categorical", **RAW).fit(X, codes)
    theirs = CategoricalNB(alpha=1.0).fit(X, codes)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-9)


def test_a_user_s_divergence_is_not_of_categories():
    frame, y = table()

    def mine(densities):
        return np.zeros(densities.natural.shape[2])

    with pytest.raises(ValueError, match=r"the divergence 'mine' is of densities, not of categories: use"):
        MaxDiscClassifier(divergence=mine).fit(frame, y)


@pytest.mark.parametrize("name", ["js_gm", "jensen_shannon", "rao"])
@pytest.mark.parametrize("n_levels", [2, 8, 60])
def test_chance_is_what_columns_without_a_class_score_on_average(name, n_levels):
    rng = np.random.default_rng(n_levels)
    codes, draws = np.repeat([0, 1, 2], [150, 100, 50]), 200
    block, smoothing = Block(Categorical(), np.repeat(np.arange(draws), n_levels)), Smoothing(1.0)
    levels = rng.integers(0, n_levels, (300, draws))
    X = (levels[:, :, None] == np.arange(n_levels)).reshape(300, -1).astype(float)
    moments = block.settled(class_moments(Categorical().statistics, X, codes, 3))
    divergence = DIVERGENCES[name]
    scores = cell_scores(block, divergence)(estimate(Categorical(), moments, smoothing))
    found = scores.reshape(draws, -1).sum(axis=1)
    said = chance(block, moments, smoothing, divergence).reshape(draws, -1).sum(axis=1)
    # Levels in many rows have the limit of no smoothing, of which smoothing takes some away.
    allowed = 0.05 if n_levels == 60 else 0.25
    assert abs(found.mean() / said.mean() - 1) < allowed + 4 * found.std() / found.mean() / np.sqrt(draws)


def test_noise_of_many_levels_is_not_ranked_above_signal():
    scores = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 300)
        levels = rng.integers(0, 60, 300).astype(str)
        frame = pd.DataFrame({"levels": levels, "weak": rng.normal(0.4 * y), "flag": rng.random(300) < 0.5})
        model = MaxDiscClassifier(smoothing=1.0, evidence="raw").fit(frame, y)
        assert model.ranking_[0] == 1
        scores.append(model.scores_)
    noise, weak, _ = np.mean(scores, axis=0)
    assert noise < 0.25 * weak


# ------------------------------------------------------------------ the estimator


def test_families_follow_types_and_values():
    frame, y = table(600)
    model = MaxDiscClassifier().fit(frame, y)
    found = {frame.columns[j]: family.name for family, columns in model.families_ for j in columns}
    assert found["colour"] == "categorical"
    assert found["smokes"] == "bernoulli"
    assert found["visits"] == "poisson"
    assert found["income"] == "gamma"
    assert found["weight"] == "gaussian"


def test_families_may_be_given():
    frame, y = table()
    numbers = make_column_selector(dtype_include="number")
    model = MaxDiscClassifier(family={"visits": "geometric", numbers: Gaussian(), ("smokes",): "categorical"})
    found = {frame.columns[j]: f.name for f, columns in model.fit(frame, y).families_ for j in columns}
    assert found == {
        "weight": "gaussian",
        "visits": "geometric",
        "colour": "categorical",
        "smokes": "categorical",
        "income": "gaussian",
        "noise": "gaussian",
    }
    with pytest.raises(
        ValueError, match="column 'colour' holds text: its family is 'categorical', not 'gaussian'"
    ):
        MaxDiscClassifier(family={"colour": "gaussian"}).fit(frame, y)
    with pytest.raises(ValueError, match="family names a column 'weigth' that X does not have"):
        MaxDiscClassifier(family={"weigth": "gaussian"}).fit(frame, y)
    with pytest.raises(ValueError, match=r"gamma family takes .* but column 'weight' has -"):
        MaxDiscClassifier(family={"weight": "gamma"}).fit(frame, y)


@pytest.mark.parametrize("evidence", ["raw", "calibrated"])
@pytest.mark.parametrize("missing", ["ignore", "informative"])
def test_explanations_are_exact(evidence, missing):
    frame, y = table(gaps=0.1)
    model = MaxDiscClassifier(evidence=evidence, missing=missing).fit(frame, y)
    explanation = model.explain(frame)
    total = explanation.prior + explanation.contributions.sum(axis=2)
    np.testing.assert_allclose(total, model.predict_joint_log_proba(frame), atol=1e-10)
    gone = frame[explanation.names].isna().to_numpy()
    if missing == "ignore":
        assert not explanation.contributions.transpose(0, 2, 1)[gone].any()
    else:
        assert explanation.contributions.transpose(0, 2, 1)[gone].any()


def test_the_path_is_that_of_separate_models():
    frame, y = table()
    model = MaxDiscClassifier(evidence="raw", smoothing=1.0, cv=[(np.arange(120), np.arange(120, 240))])
    path = model.fit(frame, y).path_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size, accuracy, loss in zip(path.sizes, path.accuracy[0], path.log_loss[0], strict=True):
            families = {frame.columns[j]: f for f, columns in model.families_ for j in columns}
            alone = MaxDiscClassifier(family=families, evidence="raw", smoothing=1.0, n_features=int(size))
            alone.fit(frame[:120], y[:120])
            log_p = alone.predict_log_proba(frame[120:])
            assert accuracy == alone.score(frame[120:], y[120:])
            own = log_p[np.arange(120), np.searchsorted(alone.classes_, y[120:])]
            np.testing.assert_allclose(loss, -own.mean(), rtol=1e-9)


def test_batches_of_a_stream_add_up_with_new_levels_and_classes():
    frame, y = table()
    order = np.argsort(y, kind="stable")  # so that classes and their levels come late
    frame, y = frame.iloc[order], y[order]
    whole, parts = MaxDiscClassifier().partial_fit(frame, y), MaxDiscClassifier()
    for start in range(0, 240, 37):
        parts.partial_fit(frame[start : start + 37], y[start : start + 37])
    assert [(f.name, c.tolist()) for f, c in whole.families_] == [
        (f.name, c.tolist()) for f, c in parts.families_
    ]
    np.testing.assert_allclose(whole.predict_log_proba(frame), parts.predict_log_proba(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="column 'weight' held numbers when the model was fitted"):
        parts.partial_fit(frame.assign(weight="heavy"), y)
    flags = frame.assign(smokes=np.where(frame["smokes"], 2, 0))
    with pytest.raises(ValueError, match=r"bernoulli family takes .* but column 'smokes' has"):
        parts.partial_fit(flags, y)


def test_unseen_levels_and_missing_cells_are_no_evidence():
    frame, y = table()
    model = MaxDiscClassifier(**RAW).fit(frame, y)
    new, gone = frame.assign(colour="violet"), frame.assign(colour=None)
    np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(gone))
    assert model.unseen_categories(new).tolist() == [0, 0, 240, 0, 0, 0]
    assert not model.unseen_categories(gone).any()
    rest = frame.drop(columns="colour")
    families = {frame.columns[j]: f for f, columns in model.families_ for j in columns}
    families.pop("colour")
    without = MaxDiscClassifier(family=families, **RAW).fit(rest, y)
    np.testing.assert_allclose(model.predict_log_proba(gone), without.predict_log_proba(rest), rtol=1e-9)


def test_missing_cells_tell_where_that_is_asked_for():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"lab": rng.normal(size=400), "ward": rng.choice(["e", "w"], 400)})
    frame = frame.mask(rng.random(frame.shape) < np.where(y, 0.7, 0.2)[:, None])
    deaf = MaxDiscClassifier(cv=3).fit(frame, y).score(frame, y)
    keen = MaxDiscClassifier(cv=3, missing="informative").fit(frame, y).score(frame, y)
    assert keen > 0.75 > deaf


def test_draws_have_the_moments_of_the_model():
    frame, y = table(600, gaps=0.2)
    model = MaxDiscClassifier(missing="informative", random_state=0, **RAW).fit(frame, y)
    X, labels = model.sample(3000, "b")
    drawn = pd.DataFrame(X, columns=frame.columns)
    assert set(labels) == {"b"}
    own = frame[y == "b"]
    assert abs(drawn["weight"].dropna().astype(float).mean() - own["weight"].mean()) < 0.15
    shares = drawn["colour"].value_counts(normalize=True)
    expected = own["colour"].value_counts(normalize=True)
    assert (shares - expected).abs().max() < 0.08
    assert abs(drawn["income"].isna().mean() - own["income"].isna().mean()) < 0.06
    model.predict(drawn)


def test_densities_are_those_of_the_families():
    frame, y = table(gaps=0.1)
    model = MaxDiscClassifier(family={"weight": "gaussian", "visits": "poisson"}, **RAW).fit(
        frame[["weight", "visits", "colour"]], y
    )
    rows = frame[["weight", "visits", "colour"]]
    X = cells_of(rows)
    log_p = np.log(model.class_prior_) * np.ones((240, 1))
    codes = np.searchsorted(model.classes_, y)
    for family, values in ((Gaussian(), X.numbers[:, [0]]), (Poisson(), X.numbers[:, [1]])):
        moments = class_moments(family.statistics, values, codes, 3, powers=family.translates)
        found = estimate(family, moments, Smoothing(1.0))
        each = family.log_density(values - found.origin, found.natural[:, :, 0][:, None])
        log_p += np.where(np.isnan(values), 0.0, each)
    levels = np.unique(X.words[X.words != None].astype(str))  # noqa: E711
    counts = np.array([[(X.words[codes == c, 0] == w).sum() for w in levels] for c in range(3)])
    k, pooled = len(levels), counts.sum(axis=0) / counts.sum()
    p = (counts + k * pooled) / (counts.sum(axis=1, keepdims=True) + k)
    for w, word in enumerate(levels):
        log_p += np.where(X.words == word, np.log(p[:, w]), 0.0)
    np.testing.assert_allclose(
        model.predict_log_proba(rows), log_softmax(log_p, axis=1), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(model.score_samples(rows), np.logaddexp.reduce(log_p, axis=1), rtol=1e-8)


def test_numbers_of_one_family_are_one_matrix():
    rng = np.random.default_rng(0)
    frame, y = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")), rng.integers(0, 2, 60)
    ours = MaxDiscClassifier().fit(frame, y)
    plain = MaxDiscClassifier(family="gaussian").fit(frame, y)
    assert len(ours.families_) == 1
    np.testing.assert_array_equal(ours.predict_proba(frame), plain.predict_proba(frame))


def test_the_order_of_rows_does_not_matter_with_hashed_folds():
    frame, y = table(gaps=0.1)
    order = np.random.default_rng(5).permutation(len(y))
    families = {"weight": "gaussian", "visits": "poisson", "income": "gamma", "noise": "gaussian"}
    one = MaxDiscClassifier(family=families, cv="hash").fit(frame, y)
    two = MaxDiscClassifier(family=families, cv="hash").fit(frame.iloc[order], y[order])
    assert one.n_selected_ == two.n_selected_
    np.testing.assert_allclose(one.predict_log_proba(frame), two.predict_log_proba(frame), rtol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.assign(colour=1.0),
            "column 'colour' held categories when the model was fitted, and now",
        ),
        (lambda f: f.assign(weight="x"), "column 'weight' held numbers .* now text such as 'x'"),
        (lambda f: f.assign(smokes=3), r"bernoulli family takes .* but column 'smokes' has"),
    ],
)
def test_rows_of_other_kinds_are_refused_by_name(change, message):
    frame, y = table()
    model = MaxDiscClassifier(n_features="all", evidence="raw").fit(frame, y)
    with pytest.raises(ValueError, match=message) as error:
        model.predict(change(frame))
    assert "\n" not in str(error.value)


def test_what_an_automatic_family_cannot_have_is_no_evidence():
    frame, y = table()
    model = MaxDiscClassifier(n_features="all", evidence="raw").fit(frame, y)
    for column, value in (("income", -1.0), ("visits", -3)):
        odd, gone = frame.assign(**{column: value}), frame.assign(**{column: np.nan})
        np.testing.assert_array_equal(model.predict_proba(odd), model.predict_proba(gone))
    # A stream goes on with what the family can have.
    with pytest.raises(ValueError, match=r"gamma family takes .* but column 'income' has -1"):
        model.partial_fit(frame.assign(income=-1.0), y)
    positive = frame[["income"]].assign(other=frame["income"] ** 2)
    model = MaxDiscClassifier(evidence="raw").fit(positive, y)
    assert np.isfinite(from_bytes(to_bytes(model)).predict_proba(-positive)).all()


def test_a_column_of_nothing_is_named():
    frame, y = table()
    for empty in (np.nan, None):
        with pytest.raises(ValueError, match="all cells of column 'income' are missing: drop the column"):
            MaxDiscClassifier().fit(frame.assign(income=empty), y)


def test_a_column_of_which_a_class_has_no_cell_is_named():
    frame, y = table()
    frame.loc[y == "b", "income"] = np.nan
    with pytest.warns(UserWarning, match="all cells of column 'income' are missing in class 'b': what"):
        model = MaxDiscClassifier(**RAW).fit(frame, y)
    assert np.isfinite(model.predict_log_proba(frame)).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_numbers_are_named(value):
    frame, y = table()
    frame.loc[3, "income"] = value
    with pytest.raises(ValueError, match=r"column 'income' has -?inf in row 3: use finite numbers"):
        MaxDiscClassifier().fit(frame, y)


def test_numbers_too_large_for_a_square_are_named():
    frame, y = table()
    with pytest.raises(ValueError, match="column 'noise'"):
        MaxDiscClassifier().fit(frame.assign(noise=frame["noise"] * 1e200), y)


def test_a_search_among_models_of_frames():
    frame, y = table()
    search = MaxDiscSearchCV(cv=3).fit(frame, y)
    assert search.cv_results_["params"] == [{"evidence": "calibrated"}]
    frame, y = table(gaps=0.1)
    search = MaxDiscSearchCV(cv=3).fit(frame, y)
    assert len(search.cv_results_["params"]) == 2
    assert search.predict(frame).shape == y.shape
    numbers = frame[["weight", "visits", "income"]]
    search = MaxDiscSearchCV(cv=3).fit(numbers, y)
    assert len(search.cv_results_["params"]) == 3
    assert search.predict_proba(numbers).shape == (240, 3)


def test_what_mixed_columns_cannot_have_is_said():
    frame, y = table()
    with pytest.raises(ValueError, match="redundancy is of numbers of one family"):
        MaxDiscClassifier(redundancy=1.0).fit(frame, y)
    with pytest.warns(UserWarning, match="of one family"):
        MaxDiscClassifier(evidence="refined").fit(frame, y)
    with pytest.raises(ValueError, match="joint densities are Gaussian"):
        MaxDiscClassifier(structure="joint", categorical_features=[0]).fit(frame, y)
    with pytest.raises(ValueError, match="missing='x' is not available"):
        MaxDiscClassifier(missing="x").fit(frame, y)


def test_arrays_have_categories_where_they_are_named():
    rng = np.random.default_rng(0)
    X, y = np.c_[rng.normal(size=90), rng.integers(0, 3, 90)], rng.integers(0, 2, 90)
    by_number = MaxDiscClassifier(categorical_features=[1]).fit(X, y)
    by_mask = MaxDiscClassifier(categorical_features=[False, True]).fit(X, y)
    assert [(f.name, c.tolist()) for f, c in by_number.families_] == [("gaussian", [0]), ("categorical", [1])]
    np.testing.assert_array_equal(by_number.predict_proba(X), by_mask.predict_proba(X))
    words = np.array([["a", 1.5], ["b", 2.5], ["a", 0.5], ["b", 3.0]] * 5, dtype=object)
    MaxDiscClassifier(categorical_features=[0]).fit(words, [0, 1] * 10).predict(words)


def test_weights_are_repetitions():
    frame, y = table(90)
    times = np.random.default_rng(0).integers(0, 3, 90)
    families = {"weight": "gaussian", "visits": "poisson", "income": "gamma", "noise": "gaussian"}
    weighted = MaxDiscClassifier(family=families, **RAW).fit(frame, y, sample_weight=times)
    again = np.repeat(np.arange(90), times)
    repeated = MaxDiscClassifier(family=families, **RAW).fit(frame.iloc[again], y[again])
    np.testing.assert_allclose(
        weighted.predict_log_proba(frame), repeated.predict_log_proba(frame), rtol=1e-8, atol=1e-10
    )


def test_blocks_say_which_families_there_are():
    columns = Columns([Block(Bernoulli(), np.array([1])), Block(Categorical(), np.array([0, 0, 0, 2, 2]))], 3)
    assert repr(columns) == "Columns(1 bernoulli, 2 categorical)"


# ------------------------------------------------------------------ trust


def test_the_ranking_table_has_every_family():
    frame, y = table(400, gaps=0.05)
    model = MaxDiscClassifier(missing="informative", family={"weight": "gaussian", "income": "gamma"}).fit(
        frame, y
    )
    with pytest.warns(UserWarning, match=r"moments do not tell p-values of 1 features"):
        told = model.ranking_table().set_index("feature")
    whole = model.ranking_table(frame, y).set_index("feature")
    assert np.isnan(told.loc["income", "p"])
    assert (told.drop(index=["noise", "income"])["q"] < 1e-3).all()
    # Two thousand deals of the labels tell no less.
    assert (whole.drop(index="noise")["q"] < 1e-2).all()
    assert whole.loc["noise", "p"] > 1e-3
    assert np.isnan(told.loc["colour", "mean[a]"])
    assert abs(told.loc["weight", "mean[b]"] - frame["weight"][y == "b"].mean()) < 1e-12
    assert told["stability"].between(0, 1).all()
    assert (np.diff(told["debiased"]) <= 1e-12).all()
