"""Averages of joint models: members made one by one as oracle, and the laws of the average."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from maxdisc import Joint, MaxDiscClassifier, load, save
from maxdisc.calibration.evidence import Evidence
from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.joint_average import AveragedDecision, AveragedEvidence, LinearForm
from maxdisc.inspection.decisive_features import loudest
from maxdisc.inspection.odds import log_odds
from maxdisc.inspection.ranking import ranking_table
from maxdisc.model_file import describe
from maxdisc.report import evaluate
from maxdisc.rows import BatchRows
from maxdisc.selection import averaged_fold_models as averaged_folds
from maxdisc.selection import joint_fold_models as joint_folds
from maxdisc.selection.averaged_fold_models import (
    CONDITIONAL_RIDGES,
    EXPONENTS,
    LEAST_WEIGHT,
    RIDGES,
    SHARPNESS,
    TRUSTS,
    averaged_sizes,
    weights_of,
)


def noisy(seed=0, n=60, d=40, classes=3, noise=1.5):
    """A table in which no model is sure: several features tell a little, and are correlated."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, size=n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d) * noise
    X[:, : d // 4] += rng.normal(size=(classes, d // 4))[y]
    return np.exp(X / 2), y


def averaged(X, y, evidence="calibrated", joint="joint", **parameters):
    return MaxDiscClassifier(structure=joint, evidence=evidence, **parameters).fit(X, y)


def shrinkage(ridge, size, n):
    ridge = ridge * size / n
    return 1.0 if np.isinf(ridge) else ridge / (1 + ridge)


def alone(X, y, transform, size, share, **parameters):
    joint = Joint("shared", share, transform=transform)
    return MaxDiscClassifier(structure=joint, n_features=size, evidence="raw", **parameters).fit(X, y)


def members_one_by_one(model, X, y, rows):
    """The sum of weight, trust and score over the members that a model names, each made anew."""
    total = np.zeros((len(rows), len(model.classes_)))
    evidence = model.evidence_
    for name, weight, trust in zip(evidence.members, evidence.weights, evidence.trusts, strict=True):
        transform, features, *what = name.split(", ")
        transform, size = (None if transform == "raw" else transform), int(features.split()[0])
        if what[0] != "conditional":
            told = what[0].removeprefix("shrinkage ")
            (share,) = {s for r in RIDGES if f"{(s := shrinkage(r, size, len(X))):.3g}" == told}
            total += weight * trust * alone(X, y, transform, size, share).predict_joint_log_proba(rows)
            continue
        ridge = float(what[1].removeprefix("ridge "))
        decision = alone(X, y, transform, size, 1.0).decision_
        Z, z = (decision.standardised(M[:, decision.columns]) / np.sqrt(size) for M in (X, rows))
        logistic = LogisticRegression(C=1 / ridge, tol=1e-8, max_iter=10_000).fit(Z, y)
        scores = logistic.decision_function(z)
        if scores.ndim == 1:  # one weight there is the difference of two here
            logistic = LogisticRegression(C=2 / ridge, tol=1e-8, max_iter=10_000).fit(Z, y)
            scores = np.outer(logistic.decision_function(z), [-0.5, 0.5])
        total += weight * trust * scores
    return total + evidence.prior_exponent * centred(np.log(model.class_prior_)[None])


def centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("evidence", ["calibrated", "refined"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_the_sum_of_those_of_the_members(evidence, classes):
    X, y = noisy(1, classes=classes)
    model = averaged(X, y, evidence)
    assert isinstance(model.decision_, AveragedDecision)
    assert 1 <= len(model.decision_.forms) <= 2  # one for each transform that weighs anything
    kinds = {name.split(", ")[2].split()[0] for name in model.evidence_.members}
    assert kinds == {"shrinkage"} | ({"conditional"} if evidence == "refined" else set())
    due = members_one_by_one(model, X, y, X[:20])
    rtol = 1e-9 if evidence == "calibrated" else 1e-3
    scores = model.predict_joint_log_proba(X[:20])
    np.testing.assert_allclose(centred(scores), centred(due), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("evidence", ["calibrated", "refined"])
def test_contributions_sum_to_the_scores(evidence):
    X, y = noisy(2)
    X[::7, 3] = X[4, :] = X[5, ::2] = np.nan
    model = averaged(X, y, evidence, prior=[0.2, 0.3, 0.5])
    explained = model.explain(X)
    np.testing.assert_allclose(explained.prior, np.log([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(
        explained.prior + explained.contributions.sum(axis=2), explained.total, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(explained.total, model.predict_joint_log_proba(X))
    missing = np.isnan(X[:, model.decision_.columns])
    assert (np.swapaxes(explained.contributions, 1, 2)[missing] == 0).all()


def test_a_row_without_cells_has_the_prior_and_a_missing_cell_says_nothing():
    X, y = noisy(3)
    model = averaged(X, y, prior=[0.2, 0.3, 0.5])
    np.testing.assert_allclose(model.predict_proba(np.full((1, 40), np.nan)), [[0.2, 0.3, 0.5]])
    # A cell that the best density does not look at is missing: it alone decides, as with all its cells.
    decision = model.decision_
    decision = replace(decision, density=decision.density.first(10))
    unseen = np.setdiff1d(decision.columns, decision.density.columns)
    assert len(unseen) > 0
    rows = X[:5].copy()
    rows[:, unseen[0]] = np.nan
    # Its trust was learnt under the shares of the classes; the prior that is given comes in their place.
    log_prior, log_shares = decision.log_prior, decision.log_shares
    under_shares = decision.density.scores(X[:5]) - log_prior + log_shares
    due = decision.trust * under_shares - log_shares + log_prior
    np.testing.assert_allclose(decision.scores(rows), due)
    rows[:, decision.density.columns[0]] = np.nan
    less = (decision.trust - 1) * (1 - 1 / len(decision.density.columns))
    kept = decision.density.marginal(np.arange(1, len(decision.density.columns)))
    due = log_prior + less * log_shares + decision.trust * (kept.scores(X[:5]) - kept.log_prior)
    np.testing.assert_allclose(decision.scores(rows), due)


def test_training_with_missing_cells_and_weights():
    X, y = noisy(4)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    weights = np.random.default_rng(1).uniform(0.1, 3, size=len(X))
    for evidence in ("calibrated", "refined"):
        model = MaxDiscClassifier(structure="joint", evidence=evidence).fit(X, y, sample_weight=weights)
        proba = model.predict_proba(X)
        assert np.isfinite(proba).all()
        assert np.isfinite(model.score_samples(X)).all()
        # Weights far below 1 count as rows of equal weight, whatever their unit.
        tiny, less = (
            MaxDiscClassifier(structure="joint", evidence=evidence).fit(X, y, sample_weight=share * weights)
            for share in (1e-3, 1e-6)
        )
        np.testing.assert_allclose(tiny.predict_proba(X), less.predict_proba(X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_one_member_is_its_scores_times_its_trust(covariance):
    X, y = noisy(5)
    joint = Joint(covariance, 0.4, transform="log")
    model, raw = averaged(X, y, joint=joint, n_features=8), averaged(X, y, "raw", joint, n_features=8)
    assert len(model.evidence_.members) == 1
    assert model.evidence_.trusts[0] == model.decision_.trust in TRUSTS
    assert (model.evidence_.prior_exponent == 0) == (covariance == "per_class")
    due = model.decision_.trust * raw.predict_joint_log_proba(X)
    due += model.evidence_.prior_exponent * centred(np.log(model.class_prior_)[None])
    np.testing.assert_allclose(model.predict_joint_log_proba(X), due, rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(X), raw.score_samples(X))
    np.testing.assert_array_equal(model.sample(5)[0].shape, raw.sample(5)[0].shape)
    assert model.joint_ == joint
    assert model.n_selected_ == 8
    np.testing.assert_array_equal(model.ranking_, raw.ranking_)


def test_trusts_weights_and_evidence_follow_from_held_out_scores():
    X, y = noisy(6)
    size, folds = 10, np.empty(len(X), dtype=int)
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    model = averaged(X, y, joint=Joint(transform=None), n_features=size, cv=cv)
    scores, labels = [], []
    for train, test in cv.split(X, y):
        shares = [shrinkage(r, size, len(train)) for r in RIDGES]
        fits = [alone(X[train], y[train], None, size, share) for share in shares]
        scores.append([fit.predict_joint_log_proba(X[test]) for fit in fits])
        labels.append(y[test])
    scores, labels = np.concatenate(scores, axis=1), np.concatenate(labels)

    def loss(s, doubted=0.0):
        log_p = log_softmax(s, axis=-1)
        own = np.eye(s.shape[-1], dtype=bool)[labels]
        seen = log_p[..., np.arange(len(labels)), labels]
        wrong = np.logaddexp.reduce(np.where(own, -np.inf, log_p), axis=-1)
        return -((1 - doubted) * seen + (doubted * wrong if doubted else 0.0)).mean(axis=-1)

    by_trust = np.stack([loss(trust * scores, 1 / (len(X) + 2)) for trust in TRUSTS])
    trusts, least = np.array(TRUSTS)[by_trust.argmin(axis=0)], by_trust.min(axis=0)
    weights = np.exp(-SHARPNESS * len(X) * (least - least.min()))
    weights[weights < LEAST_WEIGHT] = 0
    weights /= weights.sum()
    order = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
    evidence = model.evidence_
    assert len(folds) == evidence.n_rows
    np.testing.assert_allclose(evidence.weights, weights[order], rtol=1e-6)
    np.testing.assert_allclose(evidence.trusts, trusts[order])
    average = np.tensordot(weights * trusts, scores, 1)
    # The exponent of the prior is averaged by the likelihood of the held-out rows, and a normal law about 0.
    tilted = EXPONENTS[:, None, None] * centred(np.log(np.bincount(y) / len(y))[None]) + average
    log_posterior = -len(X) * loss(tilted) - EXPONENTS**2 / 2
    exponent = np.exp(log_softmax(log_posterior)) @ EXPONENTS
    assert evidence.prior_exponent == pytest.approx(exponent)
    assert evidence.log_loss == pytest.approx(np.interp(exponent, EXPONENTS, loss(tilted)))
    right = (tilted.argmax(axis=2) == labels).mean(axis=1)
    assert evidence.accuracy == pytest.approx(np.interp(exponent, EXPONENTS, right))
    best = model.joint_.shrinkage
    assert best == pytest.approx(shrinkage(RIDGES[int(order[0])], size, len(X)))
    assert model.path_.mean_log_loss[0] == pytest.approx(least.min())


@given(st.lists(st.floats(0, 5), min_size=1, max_size=20), st.integers(1, 500))
def test_the_law_of_weights(losses, n):
    losses = np.array(losses)
    weights = weights_of(losses, n)
    assert weights.sum() == pytest.approx(1)
    assert weights[losses.argmin()] == weights.max()
    kept = np.flatnonzero(weights)
    np.testing.assert_allclose(
        np.log(weights[kept] / weights.max()), -SHARPNESS * n * (losses[kept] - losses.min()), atol=1e-9
    )
    dropped = np.setdiff1d(np.arange(len(losses)), kept)
    assert (np.exp(-SHARPNESS * n * (losses[dropped] - losses.min())) < LEAST_WEIGHT).all()


@given(st.integers(1, 200_000))
def test_sizes_grow_to_all(largest):
    sizes = averaged_sizes(largest)
    assert sizes[-1] == largest
    assert sizes[0] >= 1
    assert (sizes[1:] >= 1.5 * sizes[:-1]).all()


def test_neither_the_order_of_rows_nor_batches_matter():
    X, y = noisy(7)
    model = averaged(X, y, cv="hash")
    shuffled = np.random.default_rng(0).permutation(len(X))
    other = averaged(X[shuffled], y[shuffled], cv="hash")
    np.testing.assert_allclose(other.predict_joint_log_proba(X), model.predict_joint_log_proba(X), rtol=1e-6)
    refined = [averaged(X[o], y[o], "refined", cv="hash") for o in (np.arange(len(X)), shuffled)]
    probabilities = [m.predict_proba(X) for m in refined]
    np.testing.assert_allclose(*probabilities, atol=1e-3)
    batches = BatchRows(lambda: ((X[i : i + 7], y[i : i + 7]) for i in range(0, len(X), 7)), 3)
    streamed = MaxDiscClassifier(structure="joint", evidence="calibrated").fit_rows(batches, [0, 1, 2])
    np.testing.assert_allclose(
        streamed.predict_joint_log_proba(X), model.predict_joint_log_proba(X), rtol=1e-6
    )
    assert streamed.evidence_.log_loss == pytest.approx(model.evidence_.log_loss)
    assert streamed.evidence_.n_rows == pytest.approx(model.evidence_.n_rows)
    with pytest.raises(ValueError, match="use evidence='calibrated'"):
        MaxDiscClassifier(structure="joint", evidence="refined").fit_rows(batches, [0, 1, 2])


@pytest.mark.parametrize("evidence", ["calibrated", "refined"])
def test_products_and_residuals_give_the_same_average(monkeypatch, evidence):
    X, y = noisy(8)
    model = averaged(X, y, evidence)
    monkeypatch.setattr(joint_folds, "FEW_ROWS", 10)
    for most in (2**25, 0):  # scores of held-out rows remembered, or computed again
        monkeypatch.setattr(averaged_folds, "MOST_SCORES", most)
        other = averaged(X, y, evidence)
        np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=2e-3)
        assert other.evidence_.log_loss == pytest.approx(model.evidence_.log_loss, rel=1e-3)
        assert other.evidence_.accuracy == pytest.approx(model.evidence_.accuracy)


def test_sparse_rows_are_dense_rows():
    X, y = noisy(9)
    X = np.where(X > 1, X, 0.0)
    model = averaged(X, y, "refined")
    other = averaged(sp.csr_array(X), y, "refined")
    np.testing.assert_allclose(other.predict_proba(sp.csr_array(X)), model.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(sp.csr_array(X)), model.predict_proba(X), rtol=1e-9)


def test_greedy_search_is_another_ranking():
    X, y = noisy(10)
    model = averaged(X, y, joint=Joint(search="greedy", transform=None))
    due = np.zeros((len(X), 3))
    for name, weight, trust in zip(
        model.evidence_.members, model.evidence_.weights, model.evidence_.trusts, strict=True
    ):
        size = int(name.split(", ")[1].split()[0])
        told = name.split("shrinkage ")[1]
        (share,) = {s for r in RIDGES if f"{(s := shrinkage(r, size, len(X))):.3g}" == told}
        # The greedy order itself is found with a shrinkage of its own, as where it is "auto".
        columns = model.ranking_[:size]
        one = alone(X[:, columns], y, None, size, share)
        due += weight * trust * one.predict_joint_log_proba(X[:, columns])
    due += model.evidence_.prior_exponent * np.log(model.class_prior_)
    np.testing.assert_allclose(centred(model.predict_joint_log_proba(X)), centred(due), rtol=1e-6, atol=1e-8)


def test_auto_covariances_take_the_best_alone():
    X, y = noisy(11, n=90, d=6)
    model = averaged(X, y, joint=Joint("auto"))
    assert len(model.evidence_.members) == 1
    assert model.joint_.covariance in ("shared", "per_class")
    raw = averaged(X, y, "raw", model.joint_, n_features=model.n_selected_)
    due = model.decision_.trust * raw.predict_joint_log_proba(X)
    due += model.evidence_.prior_exponent * centred(np.log(model.class_prior_)[None])
    np.testing.assert_allclose(model.predict_joint_log_proba(X), due, rtol=1e-9)


def test_classes_far_apart_keep_their_digits():
    X, y = noisy(12, classes=3)
    X[y == 2] += 1e7
    model = averaged(X, y, joint=Joint(transform=None))
    assert model.decision_.forms == ()
    near = y < 2
    assert (model.predict(X)[~near] == 2).all()
    assert model.score(X[near], y[near]) > 0.7


def test_the_rule_of_one_standard_error_keeps_fewer():
    X, y = noisy(13, d=60)
    best, few = (averaged(X, y, rule=rule) for rule in ("best", "one_se"))
    assert few.n_selected_ < best.n_selected_
    assert few.decision_.density.columns.size <= few.n_selected_


@pytest.mark.filterwarnings("ignore:class .* has a single row")
def test_a_class_of_one_row_and_one_without_weight():
    X, y = noisy(14)
    y[y == 2] = 0
    y[0] = 2
    for evidence in ("calibrated", "refined"):
        model = averaged(X, y, evidence, cv=3)
        assert np.isfinite(model.predict_proba(X)).all()
        assert np.isfinite(model.evidence_.log_loss)
        never = averaged(X, y, evidence, cv=3, prior=[0.5, 0.5, 0.0])
        proba = never.predict_proba(X)
        assert (proba[:, 2] == 0).all()
        assert np.isfinite(proba).all()


@pytest.mark.parametrize("evidence", ["calibrated", "refined"])
def test_where_nothing_can_be_compared_evidence_is_raw_and_it_is_said(evidence):
    X, y = np.random.default_rng(0).normal(size=(3, 4)), np.arange(3)
    with pytest.warns(UserWarning, match="needs held-out rows that tell models apart") as caught:
        model = averaged(X, y, evidence, Joint(shrinkage=0.5, transform=None), n_features=2, cv=3)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert isinstance(model.decision_, JointDecision)
    assert model.evidence_ is None
    raw = averaged(X, y, "raw", Joint(shrinkage=0.5, transform=None), n_features=2)
    np.testing.assert_array_equal(model.predict_joint_log_proba(X), raw.predict_joint_log_proba(X))


def test_features_that_say_nothing():
    X, y = np.ones((20, 3)), np.arange(20) % 2
    with pytest.warns(UserWarning, match="as with evidence='raw'"):
        assert np.isfinite(averaged(X, y, "refined").predict_proba(X)).all()
    X[:, 0] = np.random.default_rng(0).normal(size=20) + y
    assert np.isfinite(averaged(X, y, "refined").predict_proba(X)).all()


def test_independent_features_are_weighed_not_averaged():
    X, y = noisy(0)
    model = MaxDiscClassifier(structure="independent", evidence="calibrated").fit(X, y)
    assert isinstance(model.evidence_, Evidence)


@pytest.mark.parametrize("evidence", ["calibrated", "refined"])
@pytest.mark.parametrize("joint", [Joint(), Joint("per_class"), Joint(transform=None, shrinkage=0.2)])
def test_a_saved_average_comes_back_to_the_last_bit(tmp_path, evidence, joint):
    X, y = noisy(15)
    model = averaged(X, y, evidence, joint, random_state=3)
    save(model, tmp_path / "m", moments=True)
    again = load(tmp_path / "m")
    assert describe(tmp_path / "m")["format"] == 3
    assert describe(tmp_path / "m")["kind"] == "averaged"
    rows = X.copy()
    rows[::3, 5] = np.nan
    for method in ("predict_joint_log_proba", "predict", "score_samples", "transform"):
        np.testing.assert_array_equal(getattr(again, method)(rows), getattr(model, method)(rows))
    np.testing.assert_array_equal(again.sample(4)[0], model.sample(4)[0])
    np.testing.assert_array_equal(again.explain(rows).contributions, model.explain(rows).contributions)
    mine, theirs = again.evidence_, model.evidence_
    assert mine.prior_exponent == theirs.prior_exponent
    assert (mine.members, mine.log_loss, mine.accuracy, mine.n_rows) == (
        theirs.members, theirs.log_loss, theirs.accuracy, theirs.n_rows
    )  # fmt: skip
    np.testing.assert_array_equal(mine.weights, theirs.weights)
    assert (again.joint_, again.n_selected_) == (model.joint_, model.n_selected_)
    save(again, tmp_path / "again", moments=True)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_reports_tables_and_reasons_take_an_average():
    X, y = load_iris(return_X_y=True)
    model = averaged(X, y, "refined")
    assert f"an average of {len(model.evidence_.members)} joint models" in evaluate(model, X, y).markdown()
    odds = log_odds(model, X[:1], n=2)
    scores = np.sort(model.predict_joint_log_proba(X[:1])[0])
    assert odds.total == pytest.approx(scores[-1] - scores[-2])
    assert len(ranking_table(model).columns) == model.n_selected_
    decision, explained = model.decision_, model.explain(X[:4])
    order = np.argsort(-explained.total, axis=1)
    names = explained.names
    for row, reasons in enumerate(loudest(decision, names, X[:4], order[:, 0], order[:, 1], 2)):
        assert [(r.feature, pytest.approx(r.log_odds)) for r in reasons] == explained.top(row, 2)


@pytest.mark.parametrize("load_data", [load_wine, load_breast_cancer])
def test_probabilities_are_better_than_raw_ones(load_data):
    X, y = load_data(return_X_y=True)
    loss = dict.fromkeys(("raw", "calibrated", "refined"), 0.0)
    right = dict.fromkeys(loss, 0)
    for train, test in StratifiedKFold(3, shuffle=True, random_state=200).split(X, y):
        for evidence in loss:
            model = averaged(X[train], y[train], evidence, cv=3)
            log_p = model.predict_log_proba(X[test])
            assert logsumexp(log_p, axis=1) == pytest.approx(0)
            loss[evidence] -= log_p[np.arange(len(test)), y[test]].sum() / len(X)
            right[evidence] += (model.predict(X[test]) == y[test]).sum()
    for evidence in ("calibrated", "refined"):
        assert loss[evidence] < max(1.2 * loss["raw"], 0.1)
        assert right[evidence] >= right["raw"] - 0.02 * len(X)
        assert right[evidence] > 0.94 * len(X)


@pytest.mark.parametrize("evidence", ["calibrated", "refined"])
def test_genes_out_of_fold(paper_data, evidence):
    genes = np.load(paper_data / "genes" / "srbct.npz")
    X, y = genes["X"].astype(float), genes["y"]
    right = 0
    for train, test in StratifiedKFold(3, shuffle=True, random_state=200).split(X, y):
        right += (averaged(X[train], y[train], evidence).predict(X[test]) == y[test]).sum()
    assert right >= 0.97 * len(y)


def test_ridges_of_conditional_models_go_from_strong_to_weak():
    """Each solution is where the next one starts."""
    assert list(CONDITIONAL_RIDGES) == sorted(CONDITIONAL_RIDGES, reverse=True)


def test_a_linear_form_scores_standardised_features():
    form = LinearForm(np.array([1]), np.ones(1), np.ones(1), np.array([[-1.0], [1.0]]), np.zeros((2, 1)))
    assert (form.standardised(np.array([[5.0, 3.0]])) @ form.weights.T).tolist() == [[-2.0, 2.0]]
    evidence = AveragedEvidence(("raw, 30 features",), np.ones(1), np.array([0.5]), 0.25, 0.9, 60.0)
    told = "AveragedEvidence(1 models, log-loss 0.250 and accuracy 0.900 on 60 held-out rows)"
    assert repr(evidence) == told
