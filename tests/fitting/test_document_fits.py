"""A classifier that is given documents is the pipeline of its vectorizer and a classifier of counts."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, MaxDiscSearchCV, TermFrequencyVectorizer
from maxdisc.fitting.documents import as_pipeline, default_vectorizer
from maxdisc.inspection.odds import log_odds
from maxdisc.inspection.ranking import ranking_table
from maxdisc.report import evaluate
from tests.conftest import examples

LABELS = np.array(["cars", "hockey", "space"])
METHODS = (
    *("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "score_samples"),
    *("transform", "unseen_categories"),
)
VECTORIZERS = {
    "length": TermFrequencyVectorizer(),
    "pairs of words": TermFrequencyVectorizer(ngram_range=(1, 2), min_df=2, scale="log"),
    "counts": CountVectorizer(),
    "tf-idf": TfidfVectorizer(min_df=2),
    "hashes": HashingVectorizer(n_features=64, alternate_sign=False),
    "pipeline with labels": make_pipeline(CountVectorizer(), SelectKBest(chi2, k=20)),
}


def corpus(n=90, seed=0, n_terms=40):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % 3)
    terms = np.array([f"w{i:02d}" for i in range(n_terms)])
    shares = np.arange(1, n_terms + 1) / (n_terms * (n_terms + 1) / 2)
    texts = [" ".join(rng.choice(terms, 12, p=np.roll(shares, 13 * code))) for code in codes]
    return texts, LABELS[codes]


TEXTS, Y = corpus()
NEW = [*corpus(30, seed=1)[0], "", "never seen"]
ROWS = np.random.default_rng(2).normal(size=(90, 3))


def both(vectorizer, **parameters):
    """A classifier with this vectorizer, and the pipeline of the two."""
    model = MaxDiscClassifier(vectorizer=vectorizer, **parameters)
    first = default_vectorizer() if vectorizer is None else clone(vectorizer)
    return model, make_pipeline(first, MaxDiscClassifier(**parameters))


def dense(values):
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


def check_same(model, pipeline, X):
    """All that a model says of documents is what the pipeline says."""
    counts, classifier = pipeline[:-1].transform(X), pipeline[-1]
    has_novelty = classifier._learnt.novelty is not None
    for method in (*METHODS, "novelty") if has_novelty else METHODS:
        expected = getattr(classifier, method)(counts)
        np.testing.assert_array_equal(dense(getattr(model, method)(X)), dense(expected))
    mine, theirs = model.explain(X), classifier.explain(counts)
    np.testing.assert_array_equal(mine.contributions, theirs.contributions)
    np.testing.assert_array_equal(mine.prior, theirs.prior)
    for name in ("scores_", "ranking_", "feature_importances_", "class_prior_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(classifier, name))


# ---------------------------------------------------------------------- the law


@pytest.mark.parametrize("name", VECTORIZERS)
@pytest.mark.parametrize("evidence", ["raw", "calibrated"])
def test_it_is_the_pipeline_of_the_same_vectorizer(name, evidence):
    model, pipeline = both(VECTORIZERS[name], evidence=evidence)
    weights = np.linspace(0.5, 2.0, len(Y))
    model.fit(TEXTS, Y, sample_weight=weights)
    pipeline.fit(TEXTS, Y, maxdiscclassifier__sample_weight=weights)
    check_same(model, pipeline, NEW)
    assert model.score(TEXTS, Y) == pipeline.score(TEXTS, Y)


@examples(20)
@given(seed=st.integers(0, 2**16), n=st.integers(12, 60), n_terms=st.integers(3, 60))
def test_it_is_the_pipeline_of_the_default_vectorizer(seed, n, n_terms):
    texts, y = corpus(n, seed, n_terms)
    model, pipeline = both(None, evidence="raw", cv=2)
    check_same(model.fit(texts, y), pipeline.fit(texts, y), texts)


def test_documents_without_labels_help():
    some = [label if row % 5 == 0 else None for row, label in enumerate(Y.tolist())]
    model, pipeline = both(None)
    check_same(model.fit(TEXTS, some), pipeline.fit(TEXTS, some), NEW)


def test_later_batches_are_counted_by_the_vocabulary_of_the_first():
    model, classifier = MaxDiscClassifier(), MaxDiscClassifier()
    vectorizer = default_vectorizer().fit(TEXTS[:30])
    for start in (0, 30, 60):
        some = slice(start, start + 30)
        model.partial_fit(TEXTS[some], Y[some], classes=LABELS)
        classifier.partial_fit(vectorizer.transform(TEXTS[some]), Y[some], classes=LABELS)
    check_same(model, make_pipeline(vectorizer, classifier), NEW)
    model.choose_n_features(TEXTS, Y)
    classifier.choose_n_features(vectorizer.transform(TEXTS), Y)
    check_same(model, make_pipeline(vectorizer, classifier), NEW)


def test_a_further_batch_after_fit():
    model, pipeline = both(TermFrequencyVectorizer(min_df=2))
    model.fit(TEXTS[:60], Y[:60]).partial_fit([*TEXTS[60:], "unheard of"], [*Y[60:], "space"])
    pipeline.fit(TEXTS[:60], Y[:60])
    pipeline[-1].partial_fit(pipeline[0].transform([*TEXTS[60:], "unheard of"]), [*Y[60:], "space"])
    check_same(model, pipeline, NEW)


COLUMNS = {
    "tuple": tuple,
    "array of str": np.array,
    "array of objects": lambda texts: np.array(texts, dtype=object),
    "pandas": lambda texts: pd.Series(texts, index=range(7, 7 + len(texts))),
    "pandas string": lambda texts: pd.Series(texts, dtype="string"),
    "pandas category": lambda texts: pd.Series(texts, dtype="category"),
    "pandas column": lambda texts: pd.DataFrame({"body": texts})["body"],
    "polars": pl.Series,
    "polars column": lambda texts: pl.DataFrame({"body": texts})["body"],
    "Arrow": pa.array,
    "Arrow column": lambda texts: pa.table({"body": texts})["body"],
}


@pytest.mark.parametrize("made", COLUMNS.values(), ids=COLUMNS)
def test_any_column_of_text_holds_documents(made):
    listed = MaxDiscClassifier(evidence="raw").fit(TEXTS, Y)
    model = MaxDiscClassifier(evidence="raw").fit(made(TEXTS), Y)
    np.testing.assert_array_equal(model.predict_proba(made(NEW)), listed.predict_proba(NEW))
    np.testing.assert_array_equal(model.predict_proba(NEW), listed.predict_proba(NEW))


# ---------------------------------------------------------------------- names and views


def test_terms_are_the_names_of_features():
    model = MaxDiscClassifier(n_features=5).fit(TEXTS, Y)
    terms = model.vectorizer_.get_feature_names_out()
    best = terms[model.ranking_].tolist()
    assert model.get_feature_names_out().tolist() == terms[model.get_support()].tolist()
    assert model.explain(NEW).names.tolist() == best[:5]
    assert list(model.ranking_table()["feature"]) == best
    assert list(model.ranking_table(TEXTS, Y, n_permutations=9)["feature"]) == best
    assert not hasattr(model, "feature_names_in_")
    hashed = MaxDiscClassifier(vectorizer=VECTORIZERS["hashes"]).fit(TEXTS, Y)
    assert hashed.get_feature_names_out()[0] == "x0"


def test_selected_counts_come_as_a_frame_if_asked_for():
    dense_counts = make_pipeline(CountVectorizer(), DenseCounts())
    model = MaxDiscClassifier(n_features=5, vectorizer=dense_counts, family="poisson").fit(TEXTS, Y)
    frame = model.set_output(transform="pandas").transform(NEW)
    assert frame.columns.tolist() == model.get_feature_names_out().tolist()
    counts = model.vectorizer_.transform(NEW)
    np.testing.assert_array_equal(frame, counts[:, model.get_support()])


class DenseCounts(SelectKBest):
    """Passes all columns on, as a dense array."""

    def __init__(self):
        super().__init__(chi2, k="all")

    def transform(self, X):
        return X.toarray()


def test_views_see_the_pipeline():
    model, pipeline = both(TermFrequencyVectorizer())
    model.fit(TEXTS, Y)
    pipeline.fit(TEXTS, Y)
    assert list(ranking_table(model)) == list(ranking_table(pipeline))
    mine, theirs = log_odds(model, NEW[:1], 5), log_odds(pipeline, NEW[:1], 5)
    assert (mine.features, mine.total) == (theirs.features, theirs.total)
    reports = [evaluate(one, TEXTS[:40], Y[:40]) for one in (model, pipeline)]
    assert reports[0].scores == reports[1].scores
    assert reports[0].mistakes == reports[1].mistakes
    assert reports[0].features == reports[1].features
    assert reports[0].settings["vectorizer: scale"] == "'log'"


def test_taking_a_model_apart_leaves_it_as_it_was():
    model = MaxDiscClassifier(vectorizer=TermFrequencyVectorizer()).fit(TEXTS, Y)
    before = dict(vars(model))
    check_same(model, as_pipeline(model), NEW)
    check_same(model, as_pipeline(make_pipeline(model)), NEW)
    assert vars(model) == before
    rows = MaxDiscClassifier().fit(ROWS, Y)
    alone = make_pipeline(rows)
    assert as_pipeline(rows) is rows
    assert as_pipeline(alone) is alone


# ---------------------------------------------------------------------- parameters and state


def test_the_vectorizer_that_was_given_is_cloned():
    mine = TermFrequencyVectorizer(min_df=2)
    before = dict(vars(mine))
    model = MaxDiscClassifier(vectorizer=mine).fit(TEXTS, Y)
    assert model.vectorizer is mine
    assert vars(mine) == before
    assert model.vectorizer_ is not mine
    assert model.vectorizer_.min_df == 2


def test_parameters_of_the_vectorizer_are_nested():
    model = MaxDiscClassifier(vectorizer=TermFrequencyVectorizer(min_df=2))
    assert model.get_params()["vectorizer__min_df"] == 2
    again = clone(model).set_params(vectorizer__min_df=5)
    assert again.vectorizer.min_df == 5
    assert model.vectorizer.min_df == 2
    assert "vectorizer" in MaxDiscClassifier().get_params()
    assert MaxDiscClassifier().vectorizer is None


def test_a_grid_over_the_vectorizer():
    model, pipeline = both(TermFrequencyVectorizer(), evidence="raw")
    grids = [
        GridSearchCV(model, {"vectorizer__min_df": [1, 20], "vectorizer__scale": ["log", None]}, cv=3),
        GridSearchCV(
            pipeline,
            {"termfrequencyvectorizer__min_df": [1, 20], "termfrequencyvectorizer__scale": ["log", None]},
            cv=3,
        ),
    ]
    mine, theirs = (grid.fit(TEXTS, Y).cv_results_["mean_test_score"] for grid in grids)
    np.testing.assert_array_equal(mine, theirs)
    assert len(set(mine.tolist())) > 1
    out_of_fold = [cross_val_predict(one, pd.Series(TEXTS), Y, cv=3) for one in (model, pipeline)]
    np.testing.assert_array_equal(*out_of_fold)


def test_copies_and_pickles_are_of_the_same_documents():
    model = MaxDiscClassifier().fit(TEXTS, Y)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def test_fit_begins_anew():
    model = MaxDiscClassifier().fit(TEXTS, Y).fit(ROWS, Y)
    assert not hasattr(model, "vectorizer_")
    assert model.predict(ROWS).shape == (90,)
    model.fit(pd.DataFrame(ROWS, columns=list("abc")), Y).fit(TEXTS, Y)
    assert not hasattr(model, "feature_names_in_")
    check_same(model, both(None)[1].fit(TEXTS, Y), NEW)


@pytest.mark.parametrize("bad", [(TEXTS, Y[:-1]), ([*TEXTS[:-1], None], Y), (ROWS, Y[:-1])])
def test_a_fit_that_fails_leaves_the_model_as_it_was(bad):
    model = MaxDiscClassifier().fit(TEXTS, Y)
    expected = model.predict_proba(NEW)
    with pytest.raises(ValueError, match=r"inconsistent|row 89"):
        model.fit(*bad)
    np.testing.assert_array_equal(model.predict_proba(NEW), expected)


def test_a_search_takes_columns_of_documents():
    search = MaxDiscSearchCV([{"scale": "log"}], cv=3).fit(pl.Series(TEXTS), Y)
    model = MaxDiscClassifier(cv=3).fit(TEXTS, Y)
    np.testing.assert_allclose(search.predict_proba(NEW), model.predict_proba(NEW), rtol=1e-12)


# ---------------------------------------------------------------------- messages


def of_documents():
    return MaxDiscClassifier(evidence="raw", n_features="all").fit(TEXTS, Y)


def of_rows():
    return MaxDiscClassifier(evidence="raw", n_features="all").fit(ROWS, Y)


def fitted_with(vectorizer):
    return lambda: MaxDiscClassifier(vectorizer=vectorizer).fit(TEXTS, Y)


IN_A_ROW = r"row 1 of X is {}, not text: replace it by '', or drop the row\."
TAKES_ROWS = r"X holds documents, but this model was fitted on rows: fit it on documents\."
TAKES_DOCUMENTS = "X holds rows, but this model was fitted on documents: give a list, an array or a column"
BAD = {
    "none": (lambda: MaxDiscClassifier().fit(["a b", None, "c"], [0, 1, 1]), IN_A_ROW.format("None")),
    "nan": (lambda: MaxDiscClassifier().fit(["a b", np.nan], [0, 1]), IN_A_ROW.format("nan")),
    "number": (lambda: MaxDiscClassifier().fit(["a b", 3], [0, 1]), IN_A_ROW.format("3")),
    "none of polars": (
        lambda: MaxDiscClassifier().fit(pl.Series(["a b", None]), [0, 1]),
        IN_A_ROW.format("None"),
    ),
    "NA of pandas": (
        lambda: MaxDiscClassifier().fit(pd.Series(["a b", None], dtype="string"), [0, 1]),
        IN_A_ROW.format("<NA>"),
    ),
    "null of Arrow": (lambda: of_documents().predict(pa.array(["a b", None])), IN_A_ROW.format("None")),
    "other vectorizer": (
        lambda: MaxDiscClassifier(vectorizer=CountVectorizer()).fit(["a b", np.nan], [0, 1]),
        IN_A_ROW.format("nan"),
    ),
    "nothing but None": (lambda: of_documents().predict([None, None]), "row 0 of X is None, not text"),
    "one string": (lambda: MaxDiscClassifier().fit("a b", ["x"]), "X is a single string: give a list"),
    "one string to predict": (lambda: of_documents().predict("a b"), "X is a single string: give a list"),
    "one string to rows": (lambda: of_rows().predict("a b"), "X is a single string: give a list"),
    "one string to a search": (lambda: MaxDiscSearchCV().fit("a b", ["x"]), "X is a single string"),
    "documents to rows": (lambda: of_rows().predict(TEXTS), TAKES_ROWS),
    "documents to rows, transform": (lambda: of_rows().transform(TEXTS), TAKES_ROWS),
    "documents to rows, further": (lambda: of_rows().partial_fit(TEXTS, Y), TAKES_ROWS),
    "rows to documents": (lambda: of_documents().predict(ROWS), TAKES_DOCUMENTS),
    "rows to documents, lists": (lambda: of_documents().explain([[1.0, 2.0]]), TAKES_DOCUMENTS),
    "rows to documents, frame": (lambda: of_documents().novelty(pd.DataFrame(ROWS)), TAKES_DOCUMENTS),
    "rows to documents, further": (lambda: of_documents().partial_fit(ROWS, Y), TAKES_DOCUMENTS),
    "counts to documents": (
        lambda: of_documents().predict(default_vectorizer().fit_transform(TEXTS)),
        TAKES_DOCUMENTS,
    ),
    "no documents": (lambda: of_documents().predict([]), "Found array with 0 sample"),
    "numbers": (lambda: MaxDiscClassifier().fit(np.arange(9.0), np.arange(9) % 2), "Expected 2D array"),
    "list of numbers": (lambda: of_rows().predict([1.0, 2.0, 3.0]), "Expected 2D array"),
    "words for a vectorizer": (fitted_with("tfidf"), "vectorizer must be None or have fit_transform"),
    "class of vectorizers": (fitted_with(CountVectorizer), "vectorizer must be None or have fit_transform"),
    "candidate with a vectorizer": (
        lambda: MaxDiscSearchCV([{"vectorizer": CountVectorizer()}]).fit(TEXTS, Y),
        "candidates share one vectorizer",
    ),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    # The message about one dimension is scikit-learn's.
    assert "\n" not in str(caught.value) or "Expected 2D array" in str(caught.value)


@pytest.mark.parametrize("method", ["predict", "explain", "transform", "novelty", "unseen_categories"])
def test_nothing_is_said_of_documents_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(MaxDiscClassifier(), method)(TEXTS)
    with pytest.raises(NotFittedError):
        MaxDiscClassifier().get_feature_names_out()
