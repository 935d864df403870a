"""Weights by length are learnt from held-out rows and shorter copies, by models of each fold alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from maxdisc import MaxDiscClassifier, Smoothing, TermFrequencyVectorizer, load, save
from maxdisc.calibration.by_length import SelectedFolds, ThinnedRows, spread
from maxdisc.decisions.by_length import common_length, select_features
from maxdisc.decisions.linear import LinearDecision, ranked_decision
from maxdisc.divergences import js_gm
from maxdisc.families import Poisson
from maxdisc.fitting.documents import Pieces, as_pipeline, count_training
from maxdisc.rows.row_sources import ArrayRows, FixedFolds
from maxdisc.selection.fold_models import FoldModels
from maxdisc.selection.held_out import band_edges
from tests.conftest import examples

TOPICS = ("hockey", "space", "cars")


def corpus(n=400, seed=0, shortest=3, longest=60):
    """Documents of many lengths; a topic has words of its own among common ones."""
    rng = np.random.default_rng(seed)
    own = [np.array([f"{topic[0]}{i:03d}" for i in range(80)]) for topic in TOPICS]
    common = np.array([f"w{i:03d}" for i in range(200)])
    codes = np.arange(n) % 3
    texts = []
    for code in codes:
        size = int(np.exp(rng.uniform(np.log(shortest), np.log(longest))))
        is_own = rng.random(size) < 0.25
        topic = np.where(rng.random(size) < 0.85, code, rng.integers(0, 3, size))
        words = np.where(is_own, np.array(own)[topic, rng.integers(0, 80, size)], rng.choice(common, size))
        texts.append(" ".join(words))
    return texts, np.array(TOPICS)[codes]


@pytest.fixture(scope="module")
def fitted():
    texts, y = corpus(900)
    return MaxDiscClassifier(cv=3).fit(texts, y)


def test_probabilities_are_honest_at_every_length(fitted):
    for seed, longest in ((1, 4), (2, 12), (3, 60)):
        texts, y = corpus(900, seed, max(longest // 2, 1), longest)
        probabilities = fitted.predict_proba(texts)
        order = [fitted.classes_.tolist().index(topic) for topic in sorted(TOPICS)]
        assert log_loss(y, probabilities[:, order]) < np.log(3)
        confidence, right = probabilities.max(axis=1), fitted.predict(texts) == y
        assert abs(confidence.mean() - right.mean()) < 0.08


def test_a_document_without_a_known_word_has_the_prior(fitted):
    for document in ("", "unheard of"):
        np.testing.assert_allclose(fitted.predict_proba([document])[0], fitted.class_prior_, rtol=1e-9)


def test_one_word_more_changes_probabilities_little(fitted):
    best = fitted.get_feature_names_out()[0]
    nothing, one = fitted.predict_proba(["unheard", f"unheard {best}"])
    assert abs(one - nothing).max() < 0.9


def test_words_that_were_not_selected_do_not_matter(fitted):
    texts, _ = corpus(30, seed=5)
    selected = set(fitted.get_feature_names_out())
    left = [" ".join(word for word in text.split() if word in selected) for text in texts]
    for method in ("predict_proba", "novelty", "score_samples"):
        np.testing.assert_allclose(getattr(fitted, method)(left), getattr(fitted, method)(texts), rtol=1e-9)


def test_a_file_of_the_selected_words_alone_predicts_the_same(fitted, tmp_path):
    texts, _ = corpus(60, seed=6)
    save(fitted, tmp_path / "m")
    again = load(tmp_path / "m")
    assert len(again.vectorizer_.terms_) == fitted.n_selected_ < fitted.n_features_in_
    for method in ("predict_joint_log_proba", "novelty", "score_samples"):
        expected = getattr(fitted, method)(texts)
        np.testing.assert_allclose(getattr(again, method)(texts), expected, rtol=1e-12)
    assert np.array_equal(again.evidence_.lengths.counts, fitted.evidence_.lengths.counts)


def test_a_pipeline_and_its_documents_have_one_decision(fitted):
    texts, _ = corpus(40, seed=7)
    np.testing.assert_array_equal(as_pipeline(fitted).predict_proba(texts), fitted.predict_proba(texts))


@pytest.mark.parametrize("seed", [0, 1])
def test_models_of_folds_are_those_of_the_training_documents_alone(seed):
    texts, y = corpus(180, seed, longest=40)
    codes, size, smoothing = np.unique(y, return_inverse=True)[1], 60, Smoothing(0.1)
    fold = np.arange(len(texts)) // 3 % 3
    X, documents = count_training(MaxDiscClassifier(), texts, y, with_pairs=True)
    rows, plan = ArrayRows(X, codes, 3), FixedFolds(fold, 3)
    models = FoldModels.of(rows, Poisson(), js_gm, None, [plan])
    folds = SelectedFolds(models, rows, smoothing, size, common_length(X), np.arange(X.shape[1]), None)
    (held,) = folds.held_out(band_edges(size), (smoothing,), 1000)
    terms = documents.vectorizer.terms_
    for number in range(3):
        training, others = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        alone = MaxDiscClassifier()
        X_alone, _ = count_training(alone, [texts[i] for i in training], y[training], with_pairs=True)
        moments = ArrayRows(X_alone, codes[training], 3).moments(Poisson())[0]
        ranking, _ = ranked_decision(Poisson(), moments, smoothing, js_gm)
        known = alone.vectorizer_.terms_
        model = folds.model(number)
        assert set(terms[model.columns]) == set(known[ranking.order[:size]])
        # The same densities, of rows that are scaled over the selected words; evidence has the unit of rows.
        columns = np.searchsorted(known, terms[model.columns])
        length = common_length(X_alone)
        scaled = select_features(X_alone, columns, length)
        again = ArrayRows(scaled, codes[training], 3).moments(Poisson())[0]
        decision = LinearDecision.of(Poisson(), again, smoothing, np.arange(size))
        Z = select_features(alone.vectorizer_.transform([texts[i] for i in others]), columns, length)
        expected = decision.by_bands(Z, model.edges) / length
        part = held[number]
        order = np.argsort(part.rows)
        found = part.evidence[order] / folds.length
        # What is the same for all classes decides nothing.
        found, expected = (e - e.mean(axis=1, keepdims=True) for e in (found, expected))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def folds_of(seed):
    """Models of the features of a fold, and the codes of the rows."""
    texts, y = corpus(120, seed, longest=30)
    codes = np.unique(y, return_inverse=True)[1]
    X, _ = count_training(MaxDiscClassifier(), texts, y, with_pairs=False)
    rows, plan = ArrayRows(X, codes, 3), FixedFolds(np.arange(len(texts)) // 3 % 3, 3)
    models = FoldModels.of(rows, Poisson(), js_gm, None, [plan])
    return SelectedFolds(
        models, rows, Smoothing(0.3), 50, common_length(X), np.arange(X.shape[1]), None
    ), codes


@pytest.mark.parametrize("fold", [0, None])
def test_the_rest_of_a_class_is_the_density_of_all_others_together(fold):
    folds, codes = folds_of(0)
    model = folds.model(fold)
    for label in range(3):
        rows = ArrayRows(folds.length * model.Z, (codes == label).astype(np.intp), 2, model.trained)
        # With as many pseudo-rows for a rare feature as for any other.
        moments, every = replace(rows.moments(Poisson())[0], nonzero=None), np.arange(len(model.columns))
        others = LinearDecision.of(Poisson(), moments, folds.smoothing, every).weights[0, 0]
        np.testing.assert_allclose(model.rest[label], others, rtol=1e-6)


@examples(20)
@given(seed=st.integers(0, 3), weights=st.tuples(*[st.floats(0, 3)] * 3))
def test_the_correction_of_a_row_is_the_sum_of_its_weighed_scores(seed, weights):
    folds, _ = folds_of(seed)
    model, (_, of_rest, of_fit) = folds.model(None), weights
    (fit,) = folds.fits(model, (0.3,))
    strength = np.random.default_rng(seed).random(len(model.columns))
    (tensor,) = model.scores(model.Z, strength, [fit])
    correction = model.correction(np.array(weights), strength, fit)
    found = model.Z @ correction.T + of_fit * fit.bias
    expected = of_rest * tensor[:, :, 1] + of_fit * tensor[:, :, 2]
    # What is the same for all classes decides nothing.
    found, expected = (e - e.mean(axis=1, keepdims=True) for e in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@examples(20)
@given(
    natural=st.lists(st.tuples(*[st.floats(-5, 5)] * 3), min_size=1, max_size=4),
    weight=st.tuples(*[st.floats(0.1, 9)] * 3),
)
def test_the_spread_is_the_deviation_over_classes(natural, weight):
    table = np.array(natural).T
    mean = np.average(table, axis=0, weights=weight)
    expected = np.sqrt(np.average((table - mean) ** 2, axis=0, weights=weight))
    share = np.array(weight) / np.sum(weight)
    np.testing.assert_allclose(spread(table, share), expected, atol=1e-12)


def test_a_flat_target_and_equal_densities_leave_a_model():
    texts, y = corpus(300)
    for smoothing in (Smoothing(1.0, "flat"), Smoothing(1e13)):
        model = MaxDiscClassifier(evidence="refined", smoothing=smoothing, cv=3).fit(texts, y)
        assert model.score(texts, y) > 0.7


def test_a_class_that_comes_later_is_predicted():
    texts, y = corpus(600, longest=40)
    X = TermFrequencyVectorizer(scale="log").fit_transform(texts)
    early = y != "space"
    model = MaxDiscClassifier(n_features="all", evidence="refined", cv=3).fit(X[early], y[early])
    model.partial_fit(X, y, classes=np.unique(y))
    assert (model.predict(X[~early]) == "space").mean() > 0.5


# ---------------------------------------------------------------------- shorter copies


@examples(30)
@given(seed=st.integers(0, 2**16), share=st.floats(0.05, 0.95))
def test_thinned_rows_keep_about_that_share_of_their_cells(seed, share):
    X = sp.csr_array(np.random.default_rng(seed).integers(1, 5, (40, 50)).astype(float))
    rows, shares = np.arange(40), np.full(40, share)
    thinned = ThinnedRows(X)(rows, shares, np.zeros(40, int))
    assert thinned.nnz == pytest.approx(share * X.nnz, abs=6 * np.sqrt(X.nnz * share * (1 - share)))
    np.testing.assert_array_equal(
        thinned.toarray()[thinned.toarray() > 0], X.toarray()[thinned.toarray() > 0]
    )
    # By content: neither the order of rows nor the other rows matter; copies differ.
    order = np.random.default_rng(seed + 1).permutation(40)
    np.testing.assert_array_equal(
        ThinnedRows(X[order])(np.arange(40), shares, np.zeros(40, int)).toarray(), thinned.toarray()[order]
    )
    assert (ThinnedRows(X)(rows, shares, np.ones(40, int)).toarray() != thinned.toarray()).any()


@examples(30)
@given(
    words=st.lists(st.text("abcde", min_size=2, max_size=6), min_size=1, max_size=30),
    share=st.floats(0.01, 1.0),
    copy=st.integers(0, 5),
)
def test_pieces_are_consecutive_words(words, share, copy):
    text = " ".join(words)
    vectorizer = TermFrequencyVectorizer(ngram_range=(1, 2), scale=None).fit([text])
    counts = Pieces([text], vectorizer)(np.array([0]), np.array([share]), np.array([copy]))
    whole = vectorizer.transform([text])
    # A piece that is shorter than a word is none of the words.
    assert (counts.toarray() <= whole.toarray()).all() or counts.sum() <= 1


def test_pieces_of_a_text_without_spaces_are_consecutive_characters():
    text = "".join(chr(0x4E00 + i) for i in range(40))
    vectorizer = TermFrequencyVectorizer(token_pattern=r"\w", scale=None).fit([text])
    counts = Pieces([text], vectorizer)(np.array([0]), np.array([0.25]), np.array([0]))
    assert counts.sum() == 10


@pytest.mark.parametrize("texts", [["sale buy now cheap", "meeting at noon more"], ["sale", "meeting"]])
def test_documents_of_the_same_few_words_are_refined(texts):
    # Between the numbers of features that weights are learnt at, no row may have any.
    model = MaxDiscClassifier(evidence="refined", cv=3).fit(texts * 20, ["a", "b"] * 20)
    assert model.predict(texts).tolist() == ["a", "b"]
    np.testing.assert_allclose(model.predict_proba(["zzz"]), [[0.5, 0.5]])
