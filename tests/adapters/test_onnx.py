"""ONNX: a graph answers what the library answers, and refuses what the library refuses."""

from __future__ import annotations

import os
import re
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxdisc import (
    DiscriminativeMaxEnt,
    Joint,
    MaxDiscClassifier,
    MaxDiscSearchCV,
    TermFrequencyVectorizer,
    save,
)
from maxdisc.cli import main
from maxdisc.datasets import load_docstrings
from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.joint_average import AveragedDecision
from maxdisc.decisions.linear import LinearDecision
from maxdisc.families import FAMILIES, NumericFamily, Support, moments
from maxdisc.families.functions import (
    Cosine,
    Deviation,
    Indicator,
    LogAbove,
    LogBelow,
    Power,
    Sine,
    Spline,
    Table,
)
from maxdisc.words import CountScaler
from tests.conftest import examples

if not os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
    for _name in ("onnx", "skl2onnx", "onnxruntime"):
        pytest.importorskip(_name, reason="needs ONNX: python -m pip install '.[onnx]' onnxruntime")

import onnx
import onnxruntime
import skl2onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType

from maxdisc.adapters.onnx import to_onnx
from maxdisc.fitting.documents import as_pipeline

#: What is said to hold; with doubles it holds to the last digits.
SINGLE, DOUBLE = 1e-5, 1e-10
CLOSED_FORM = sorted(set(FAMILIES) - {"categorical"})


def session(graph):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # runs are refused on purpose
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, ["CPUExecutionProvider"])


def answers(graph, X):
    """Labels and probabilities; X is a matrix, documents, or a frame, whose columns are inputs."""
    if isinstance(X, pd.DataFrame):
        given = {name: _cells(X[name]) for name in X}
    elif isinstance(X, list):
        given = {"X": np.array(X, dtype=object)}
    else:
        given = {"X": X}
    return session(graph).run(None, given)


def _cells(series):
    """A column as a runtime takes it: numbers, or strings, where an empty one is a missing cell."""
    if pd.api.types.is_float_dtype(series):
        return series.to_numpy()[:, None]
    held = series.dropna()
    if len(held) and all(isinstance(value, bool | float | int) for value in held):
        return series.astype(float).to_numpy()[:, None]
    return series.astype(object).where(series.notna(), "").to_numpy(dtype=object)[:, None]


def check_same(model, graph, X, tolerance=DOUBLE, reference=None):
    """The graph's answers for X are those of the model for the reference, by default X itself."""
    reference = X if reference is None else reference
    labels, probabilities = answers(graph, X)
    expected = model.predict_proba(reference)
    assert labels.shape == (len(expected),)
    assert probabilities.shape == expected.shape
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=tolerance)
    # Where two classes are equally probable to the last digits, rounding decides which comes first.
    best = np.sort(expected, axis=1)
    clear = best[:, -1] - best[:, -2] > 10 * tolerance
    assert clear.any()
    np.testing.assert_array_equal(labels[clear], model.predict(reference)[clear])


def rows_of(family, n=120, width=6, seed=0, gaps=0.0):
    """Rows that a family takes, of three classes that differ."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    level = 0.5 + 0.5 * codes[:, None] + rng.random(width)
    if family == "gaussian":
        X = rng.normal(level, 1.0)
    elif family == "bernoulli":
        X = (rng.random((n, width)) < level / 4).astype(float)
    elif family in ("poisson", "geometric"):
        X = rng.poisson(level).astype(float)
    elif family == "beta":
        X = np.clip(rng.beta(level, 1.0, (n, width)), 1e-12, 1 - 1e-6)
    elif family == "hurdle":
        X = rng.exponential(level) * (rng.random((n, width)) < 0.6)
    else:
        X = np.maximum(rng.gamma(level, 2.0), 1e-12)
    if gaps:
        X[rng.random(X.shape) < gaps] = np.nan
    return X, codes


# ------------------------------------------------------------------ families, evidence, structure


@pytest.mark.parametrize("evidence", ["raw", "calibrated", "refined"])
@pytest.mark.parametrize("family", CLOSED_FORM)
def test_every_family_with_every_kind_of_evidence(family, evidence):
    X, codes = rows_of(family)
    labels = np.array(["première", "b", "c"])[codes]
    model = MaxDiscClassifier(family=family, evidence=evidence, cv=3).fit(X, labels)
    assert isinstance(model.decision_, LinearDecision)
    check_same(model, to_onnx(model), X)
    single = X.astype(np.float32)
    check_same(model, to_onnx(model, single), single, SINGLE)


@pytest.mark.parametrize("family", CLOSED_FORM)
def test_a_missing_cell_takes_its_normaliser_with_it(family):
    X, codes = rows_of(family, gaps=0.3)
    model = MaxDiscClassifier(family=family, evidence="raw", n_features="all").fit(X, codes)
    X[0] = np.nan  # such a row has the prior
    check_same(model, to_onnx(model), X)
    np.testing.assert_allclose(answers(to_onnx(model), X)[1][0], model.class_prior_)


@pytest.mark.parametrize("evidence", ["raw", "calibrated", "refined"])
@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_joint_densities(covariance, evidence):
    X, codes = rows_of("gaussian", n=150, seed=3)
    X[:, 1] += X[:, 0]
    model = MaxDiscClassifier(structure=Joint(covariance=covariance), evidence=evidence, cv=3).fit(X, codes)
    kind = JointDecision if evidence == "raw" else AveragedDecision
    assert isinstance(model.decision_, kind)
    check_same(model, to_onnx(model), X)
    single = X.astype(np.float32)
    check_same(model, to_onnx(model, single), single, SINGLE)


@pytest.mark.parametrize("transform", ["log", None])
@pytest.mark.parametrize("n_features", [1, "all"])
def test_transformed_joint_densities(transform, n_features):
    X, codes = rows_of("gamma", seed=1)
    X -= 1.0  # on both sides of 0
    X[0, 0] = 0.0
    joint = Joint(transform=transform, shrinkage=0.3)
    model = MaxDiscClassifier(structure=joint, evidence="raw", n_features=n_features).fit(X, codes)
    check_same(model, to_onnx(model), X)


def test_a_joint_density_whose_classes_are_far_apart():
    X, codes = rows_of("gaussian", seed=5)
    X += 1e6 * codes[:, None]
    joint = Joint(transform=None, shrinkage=0.5)
    model = MaxDiscClassifier(structure=joint, evidence="raw", n_features="all").fit(X, codes)
    assert not model.decision_.linear
    check_same(model, to_onnx(model), X)


def test_a_prior_that_was_given_and_a_class_that_cannot_be():
    X, codes = rows_of("gaussian")
    for structure in ("independent", "joint"):
        model = MaxDiscClassifier(structure=structure, prior=[0.9, 0.1, 0.0], cv=3).fit(X, codes)
        check_same(model, to_onnx(model), X)
        assert not answers(to_onnx(model), X)[1][:, 2].any()


# ------------------------------------------------------------------ numbers of all sizes


@settings(examples(25), suppress_health_check=list(HealthCheck))
@given(
    family=st.sampled_from(CLOSED_FORM),
    seed=st.integers(0, 10_000),
    gaps=st.sampled_from([0.0, 0.0, 0.2]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    evidence=st.sampled_from(["raw", "calibrated"]),
)
def test_random_rows(family, seed, gaps, scale, evidence):
    X, codes = rows_of(family, n=60, width=4, seed=seed, gaps=gaps)
    if family not in ("bernoulli", "beta"):
        X = X * scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = MaxDiscClassifier(family=family, evidence=evidence, cv=3).fit(X, codes)
    check_same(model, to_onnx(model), X, 1e-7)


@pytest.mark.parametrize("evidence", ["raw", "calibrated", "refined"])
@pytest.mark.parametrize("apart", [0.0, 1e3])
def test_a_mean_of_a_million_deviations(apart, evidence):
    """Centred before it is squared; classes far apart are scored by their distances."""
    X, codes = rows_of("gaussian", n=200, seed=7)
    X = 1e6 + X
    X[:, :2] += apart * codes[:, None]
    X[5, 0] = X[6, 3] = np.nan
    given = {"structure": "independent", "evidence": evidence, "n_features": "all"}
    model = MaxDiscClassifier(cv=3, **given).fit(X, codes)
    assert model.decision_.apart(sparse=False).any() == (apart > 0)
    check_same(model, to_onnx(model), X)


def test_values_far_from_all_that_was_seen():
    X, codes = rows_of("gaussian")
    model = MaxDiscClassifier(n_features="all", evidence="raw").fit(X, codes)
    graph = to_onnx(model)
    far = np.array([[1e100] * 6, [-1e50] * 6, [0.0] * 6])
    labels, probabilities = answers(graph, far)
    np.testing.assert_allclose(probabilities, model.predict_proba(far))
    np.testing.assert_array_equal(labels, model.predict(far))


def test_single_precision_is_of_the_input_only():
    """Evidence of 2,000 features, all but cancelled: sums of floats would be off in the third digit."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 100)
    X = rng.normal(0.02 * codes[:, None], 1.0, (100, 2000)).astype(np.float32) + np.float32(300)
    model = MaxDiscClassifier(evidence="raw", n_features="all").fit(X, codes)
    check_same(model, to_onnx(model, X), X, SINGLE)


# ------------------------------------------------------------------ numeric families


@pytest.mark.parametrize(
    ("support", "functions"),
    [
        (Support(), moments(4)),
        (Support(0.0, 1.0), (LogAbove(), LogBelow())),
        (Support(-1.0, 3.0), (LogAbove(-1.0), LogBelow(3.0), Power(1))),
        (Support(0.0, 1.0), (Power(1), Spline(0.5, 2), Deviation(0.25))),
        (Support(0.0, 1.0), (Indicator(0.2, 0.5), Cosine(1, 1.0), Sine(2, 1.0))),
        (Support(0.0, 4.0, lattice=True), (Power(1), Table(0.0, (0.0, 3.0, 1.0, 2.0, 0.5)))),
    ],
    ids=lambda value: "" if isinstance(value, tuple) else repr(value),
)
def test_functions_that_have_a_name(support, functions):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 60)
    X = rng.beta(1.5 + codes[:, None], 2.0, (60, 1))
    if support.lattice:
        X = np.rint(4 * X)
    elif np.isfinite(support.low):
        X = support.low + (support.high - support.low) * np.clip(X, 1e-6, 1 - 1e-6)
    else:
        X = 50 + X
    family = NumericFamily(support, functions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every sample has a density of the family
        given = {"evidence": "raw", "n_features": "all", "smoothing": 1.0}
        model = MaxDiscClassifier(family=family, **given).fit(X, codes)
    assert model.decision_.weights.any()
    X[0, 0] = np.nan  # such a row has the prior
    check_same(model, to_onnx(model), X, 1e-8)


def test_a_function_of_ones_own_is_refused():
    def wave(x):
        return np.sin(np.asarray(x))

    X, codes = rows_of("gaussian")
    family = NumericFamily(Support(-20.0, 20.0), (Power(1), Power(2), wave))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"evidence": "raw", "n_features": "all", "smoothing": 1.0}
        model = MaxDiscClassifier(family=family, **given).fit(X[:, :1], codes)
    with pytest.raises(ValueError, match=r"the function wave of the numeric family has no ONNX operators"):
        to_onnx(model)


def test_a_family_of_ones_own_is_refused():
    class Mine(type(FAMILIES["gaussian"])):
        name = "mine"

    X, codes = rows_of("gaussian")
    model = MaxDiscClassifier(family=Mine(), evidence="raw", n_features=2).fit(X, codes)
    with pytest.raises(ValueError, match=r"the family mine \(Mine\) has no ONNX operators"):
        to_onnx(model)


# ------------------------------------------------------------------ what the library refuses


@pytest.mark.parametrize(
    ("family", "wrong"),
    [
        ("poisson", -1.0),
        ("geometric", -0.5),
        ("exponential", -1e-9),
        ("hurdle", -2.0),
        ("gamma", 0.0),
        ("beta", 0.0),
        ("beta", 1.0),
        ("bernoulli", 0.5),
        ("bernoulli", 2.0),
        ("gaussian", np.inf),
        ("gaussian", -np.inf),
        ("gaussian", 1e150),
    ],
)
def test_a_value_outside_the_support_ends_the_run(family, wrong):
    X, codes = rows_of(family)
    model = MaxDiscClassifier(family=family, evidence="raw", n_features=1).fit(X, codes)
    graph = to_onnx(model)
    # Also in a column that is not kept: the library looks at all of them.
    for column in (model.ranking_[0], model.ranking_[-1]):
        bad = X.copy()
        bad[7, column] = wrong
        with pytest.raises(ValueError, match="takes"):
            model.predict(bad)
        with pytest.raises(Exception, match="maxdisc_cannot_score_a_row_with_such_a_value"):
            answers(graph, bad)
    check_same(model, graph, X)


def test_a_missing_cell_of_a_joint_density_ends_the_run():
    X, codes = rows_of("gaussian")
    model = MaxDiscClassifier(structure="joint", n_features=2, cv=3).fit(X, codes)
    bad = X.copy()
    bad[3, model.ranking_[0]] = np.nan
    with pytest.raises(Exception, match="or_a_missing_cell"):
        answers(to_onnx(model), bad)
    unkept = X.copy()
    unkept[3, np.setdiff1d(np.arange(6), model.decision_.columns)] = np.nan
    check_same(model, to_onnx(model), unkept)


def test_the_guard_can_be_seen_by_other_evaluators():
    """That an index out of bounds is an error is said by ONNX, not by one runtime."""
    from onnx.reference import ReferenceEvaluator

    X, codes = rows_of("poisson")
    model = MaxDiscClassifier(family="poisson").fit(X, codes)
    evaluator = ReferenceEvaluator(to_onnx(model))
    np.testing.assert_allclose(evaluator.run(None, {"X": X})[1], model.predict_proba(X), atol=DOUBLE)
    X[0, 0] = -1.0
    with pytest.raises(IndexError):
        evaluator.run(None, {"X": X})


# ------------------------------------------------------------------ real data, batches, labels


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer()
    model = MaxDiscClassifier(evidence="refined").fit(data.data, data.target_names[data.target])
    return model, to_onnx(model), data.data


def test_real_measurements(cancer):
    model, graph, X = cancer
    onnx.checker.check_model(graph, full_check=True)
    check_same(model, graph, X)
    check_same(model, graph, np.asfortranarray(X))


def test_batches_of_any_size(cancer):
    model, graph, X = cancer
    running = session(graph)
    whole = running.run(None, {"X": X})
    for start, stop in ((0, 1), (1, 8), (8, 8), (8, 300)):
        labels, probabilities = running.run(None, {"X": X[start:stop]})
        np.testing.assert_array_equal(labels, whole[0][start:stop])
        np.testing.assert_allclose(probabilities, whole[1][start:stop], atol=1e-14)
    assert [value.shape for value in running.get_inputs()] == [[None, 30]]
    assert model.predict(X[:1]).shape == (1,)


@pytest.mark.parametrize(
    "labels",
    [["a", "ß", "日本"], [3, -7, 10**12], [0.0, 1.0, 2.0], np.array(["x", "y", "z"], dtype=object)],
    ids=str,
)
def test_labels_of_every_kind(labels):
    X, codes = rows_of("gaussian")
    model = MaxDiscClassifier(cv=3).fit(X, np.asarray(labels)[codes])
    check_same(model, to_onnx(model), X)


def test_truth_values_are_0_and_1():
    X, codes = rows_of("gaussian")
    model = MaxDiscClassifier(cv=3).fit(X, codes > 0)
    labels, _ = answers(to_onnx(model), X)
    np.testing.assert_array_equal(labels, model.predict(X).astype(int))


def test_labels_that_onnx_does_not_have():
    X, codes = rows_of("gaussian")
    model = MaxDiscClassifier(cv=3).fit(X, np.array([b"a", b"b", b"c"])[codes])
    with pytest.raises(ValueError, match=r"strings or integers, and this model has b'a'"):
        to_onnx(model)


def test_a_model_of_sparse_rows():
    X, codes = rows_of("poisson", width=30)
    model = MaxDiscClassifier(cv=3).fit(sp.csr_array(X), codes)
    check_same(model, to_onnx(model), X, reference=sp.csr_array(X))


def test_a_model_that_goes_on_learning_is_exported_as_it_is_now():
    X, codes = rows_of("gaussian")
    model = MaxDiscClassifier(evidence="raw").partial_fit(X[:60], codes[:60], classes=[0, 1, 2])
    before = to_onnx(model)
    model.partial_fit(X[60:], codes[60:])
    check_same(model, to_onnx(model), X)
    with pytest.raises(AssertionError):
        check_same(model, before, X)


# ------------------------------------------------------------------ pipelines


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_behind_a_standard_scaler(dtype):
    data = load_breast_cancer()
    model = make_pipeline(StandardScaler(), MaxDiscClassifier()).fit(data.data, data.target)
    X = data.data.astype(dtype)
    check_same(model, to_onnx(model, X[:1]), X, SINGLE, reference=data.data)
    check_same(model, to_onnx(model, dtype=dtype), X, SINGLE, reference=data.data)


def test_through_skl2onnx_itself():
    X, codes = rows_of("gaussian")
    model = make_pipeline(StandardScaler(), MaxDiscClassifier(cv=3)).fit(X, np.array(list("abc"))[codes])
    single = X.astype(np.float32)
    for graph in (
        skl2onnx.to_onnx(model, single[:1], options={"zipmap": False}),
        skl2onnx.convert_sklearn(
            model,
            initial_types=[("X", FloatTensorType([None, 6]))],
            options={MaxDiscClassifier: {"zipmap": False}},
        ),
    ):
        check_same(model, graph, single, SINGLE)
    # As skl2onnx does where nothing is said: a dictionary for each row.
    labels, maps = answers(skl2onnx.to_onnx(model, X[:1]), X)
    expected = model.predict_proba(X)
    assert [sorted(row) for row in maps] == [["a", "b", "c"]] * len(X)
    np.testing.assert_allclose([[row[c] for c in "abc"] for row in maps], expected, atol=SINGLE)
    np.testing.assert_array_equal(labels, model.predict(X))


@pytest.mark.parametrize("target_opset", [13, 17, {"": 18, "ai.onnx.ml": 3}])
def test_older_versions_of_the_operators(target_opset):
    frame, y = table()
    model = MaxDiscClassifier(n_features="all", cv=3).fit(frame, y)
    check_same(model, to_onnx(model, target_opset=target_opset), frame)
    texts = ["a rocket to the moon", "butter and salt", "salt in the oven", "an orbit of the moon"] * 5
    words = TermFrequencyVectorizer(ngram_range=(1, 2))
    model = make_pipeline(words, MaxDiscClassifier(cv=3)).fit(texts, [0, 1, 1, 0] * 5)
    check_same(model, to_onnx(model, target_opset=target_opset), texts)


def test_options():
    X, codes = rows_of("gaussian")
    model = MaxDiscClassifier(cv=3).fit(X, np.array(list("abc"))[codes])
    scores = answers(to_onnx(model, options={"raw_scores": True}), X)[1]
    np.testing.assert_allclose(scores, model.predict_joint_log_proba(X), atol=DOUBLE)
    labels = answers(to_onnx(model, options={"nocl": True}), X)[0]
    np.testing.assert_array_equal(model.classes_[labels], model.predict(X))
    columns = session(to_onnx(model, options={"zipmap": "columns"}))
    assert len(columns.get_outputs()) == 4
    with_labels = answers(to_onnx(model, options={"output_class_labels": True}), X)
    assert with_labels[2].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("scale", ["length", "log", "frequency", None])
def test_scaled_counts(scale, dtype):
    X, codes = rows_of("poisson")
    X[0] = 0.0
    model = make_pipeline(CountScaler(scale), MaxDiscClassifier(family="poisson", cv=3)).fit(X, codes)
    check_same(model, to_onnx(model, X.astype(dtype)), X.astype(dtype), SINGLE, reference=X)
    if dtype == np.float64:
        for wrong in (-1.0, np.nan, np.inf):
            bad = X.copy()
            bad[2, 1] = wrong
            with pytest.raises(Exception, match="maxdisc_counts_must_not_be_negative_or_missing"):
                answers(to_onnx(model), bad)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_discriminative_model(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], np.array(["setosa", "versicolor", "virginica"])[y[y < n_classes]]
    model = DiscriminativeMaxEnt().fit(X, y)
    check_same(model, to_onnx(model), X)
    pipeline = make_pipeline(StandardScaler(), DiscriminativeMaxEnt()).fit(X, y)
    check_same(pipeline, to_onnx(pipeline), X)
    X[0, 0] = np.nan
    with pytest.raises(Exception, match="maxdisc_cannot_score"):
        answers(to_onnx(model), X)


def test_the_best_model_of_a_search():
    X, y = load_iris(return_X_y=True)
    search = MaxDiscSearchCV([{"evidence": "raw"}, {"evidence": "calibrated"}], cv=3).fit(X, y)
    check_same(search, to_onnx(search), X)
    counts, codes = rows_of("poisson")
    search = MaxDiscSearchCV([{"scale": "log", "family": "poisson"}], cv=3).fit(counts, codes)
    check_same(search, to_onnx(search), counts)
    behind = make_pipeline(StandardScaler(), MaxDiscSearchCV([{"evidence": "raw"}], cv=3)).fit(X, y)
    check_same(behind, to_onnx(behind), X)


# ------------------------------------------------------------------ text


@pytest.fixture(scope="module")
def documents():
    data = load_docstrings()
    texts, labels = list(data.data)[::8], [name.split(".")[0] for name in np.asarray(data.target)[::8]]
    return (
        texts[:500],
        labels[:500],
        [*texts[500:700], "", " . ", "Ünïcode ÄÖ ГОРОД ЖУК", "\n\tparameters\r\nreturns"],
    )


@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"scale": "log"},
        {"scale": "frequency"},
        {"scale": None},
        {"lowercase": False},
        {"stop_words": "english"},
        {"ngram_range": (1, 2), "min_df": 2},
        {"ngram_range": (2, 3), "min_df": 3},
        {"token_pattern": r"\w{3,}"},
        {"token_pattern": r"(?u)\b\w+\b"},
        {"vocabulary": ["values", "return", "never seen words", "array"], "ngram_range": (1, 2)},
    ],
    ids=str,
)
def test_documents(documents, settings_):
    texts, labels, test = documents
    model = make_pipeline(
        TermFrequencyVectorizer(**settings_), MaxDiscClassifier(n_features=200, evidence="raw")
    )
    if "vocabulary" in settings_:
        model.set_params(maxdiscclassifier__n_features="all")
    model.fit(texts, labels)
    graph = to_onnx(model)
    check_same(model, graph, test)
    check_same(model, graph, test[:1])
    # No document of a batch has a word.
    np.testing.assert_allclose(answers(graph, ["", "!"])[1], model.predict_proba(["", "!"]), atol=DOUBLE)


@pytest.mark.filterwarnings("ignore:class .* has a single row")
def test_documents_with_all_that_is_usual(documents):
    texts, labels, test = documents
    model = make_pipeline(TermFrequencyVectorizer(), MaxDiscClassifier(cv=3)).fit(texts, labels)
    check_same(model, to_onnx(model, texts), test)
    graph = skl2onnx.to_onnx(
        model, initial_types=[("X", StringTensorType([None, 1]))], options={"zipmap": False}
    )
    running = session(graph)
    labels, probabilities = running.run(None, {"X": np.array(test, dtype=object)[:, None]})
    np.testing.assert_allclose(probabilities, model.predict_proba(test), atol=DOUBLE)
    search = MaxDiscSearchCV(cv=3).fit(texts[:200], model.predict(texts[:200]))
    check_same(search, to_onnx(search), test)


def test_a_classifier_of_documents_has_the_graph_of_its_pipeline(documents):
    texts, labels, test = documents
    model = MaxDiscClassifier(cv=3, vectorizer=TermFrequencyVectorizer(min_df=2)).fit(texts, labels)
    graph = to_onnx(model)
    check_same(model, graph, test)
    assert graph.SerializeToString() == to_onnx(as_pipeline(model)).SerializeToString()
    assert graph.SerializeToString() == to_onnx(make_pipeline(model), texts).SerializeToString()
    with pytest.raises(ValueError, match="this model takes documents: export it with maxdisc"):
        skl2onnx.to_onnx(model, initial_types=[("X", StringTensorType([None, 1]))])


def test_letters_digits_and_case_are_those_of_python():
    """Of every character that is assigned: is it part of a word, and what is its lower case?"""
    kinds = ("Cn", "Cs", "Co", "Cc")
    assigned = [chr(c) for c in range(33, 0x110000) if unicodedata.category(chr(c)) not in kinds]
    words = TermFrequencyVectorizer(token_pattern=r"\w+").fit(["a"])
    graph = skl2onnx.to_onnx(words, initial_types=[("X", StringTensorType([None]))])
    (found,) = (node.output[0] for node in graph.graph.node if node.op_type == "Tokenizer")
    del graph.graph.output[:]
    graph.graph.output.append(
        onnx.helper.make_tensor_value_info(found, onnx.TensorProto.STRING, [None, None])
    )
    tokens = session(graph).run(None, {"X": np.array(assigned, dtype=object)})[0]
    rule = words._checked_rule()
    different = [
        c for c, row in zip(assigned, tokens, strict=True) if [t for t in row if t != "#"] != rule.terms(c)
    ]
    # None here; the runtime's tables may be of another year than Python's.
    assert len(different) <= 20, different


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"token_pattern": r"[a-z]+"}, r"token_pattern='\[a-z\]\+' cannot be exported to ONNX"),
        (
            {"stop_words": ["of"], "ngram_range": (1, 2)},
            "stop_words cannot be exported to ONNX together with",
        ),
        (
            {"stop_words": ["of"], "vocabulary": ["of", "array"]},
            "the vocabulary has 'of', which is a stop word",
        ),
        ({"vocabulary": ["one two", "array"], "ngram_range": (3, 3)}, "no term of the vocabulary"),
    ],
)
def test_words_that_no_operator_finds(settings_, message):
    words = TermFrequencyVectorizer(**settings_).fit(["an array of values", "one two three"])
    with pytest.raises(ValueError, match=message):
        skl2onnx.to_onnx(words, initial_types=[("X", StringTensorType([None]))])


def test_columns_have_names():
    rows = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "": list("xyxy")})
    model = MaxDiscClassifier(n_features="all", smoothing=1.0, evidence="raw").fit(rows, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="a column has an empty one: rename it"):
        to_onnx(model)


def test_documents_are_strings():
    words = TermFrequencyVectorizer().fit(["an array of values"])
    with pytest.raises(ValueError, match="reads documents: its input to the graph must have strings"):
        skl2onnx.to_onnx(words, initial_types=[("X", FloatTensorType([None, 2]))])


def test_the_page_runs_as_it_is_written(tmp_path, monkeypatch):
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "onnx.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for example in examples[:2]:
        exec(example, names)
    assert names["labels"].tolist() == ["malignant"] * 3
    for example in examples[2:]:
        exec(example, names)
    assert names["labels"].tolist() == ["space", "cooking"]


# ------------------------------------------------------------------ tables of mixed columns


def table(n=200, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    colours = np.array(["red", "grün", "blue", "grey"], dtype=object)
    share = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.2, 0.2, 0.5, 0.1]])
    frame = pd.DataFrame(
        {
            "weight": rng.normal(y, 1.5),
            "visits": rng.poisson(1 + y).astype(float),
            "the colour": [rng.choice(colours, p=share[c]) for c in y],
            "smokes": rng.random(n) < 0.2 + 0.25 * y,
            "income": rng.gamma(2 + y, 1.0),
        }
    )
    if gaps:
        frame = frame.mask(rng.random(frame.shape) < gaps)
        frame["smokes"] = frame["smokes"].astype(object)
    return frame, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("gaps", [0.0, 0.15])
@pytest.mark.parametrize("missing", ["ignore", "informative"])
@pytest.mark.parametrize("evidence", ["raw", "calibrated"])
def test_mixed_tables(evidence, missing, gaps):
    frame, y = table(gaps=gaps)
    model = MaxDiscClassifier(evidence=evidence, missing=missing, n_features="all", cv=3).fit(frame, y)
    new, _ = table(seed=1, gaps=gaps)
    check_same(model, to_onnx(model), new)
    check_same(model, to_onnx(model, frame), new)


def test_levels_that_were_never_seen_and_values_that_a_chosen_family_cannot_have():
    frame, y = table()
    model = MaxDiscClassifier(n_features="all", cv=3).fit(frame, y)
    assert model._schema.automatic.size
    new, _ = table(seed=2)
    new.loc[:20, "the colour"] = "never seen"
    new.loc[10:30, "visits"] = -1.0
    new.loc[25:40, "income"] = -5.0
    check_same(model, to_onnx(model), new)
    new.loc[3, "weight"] = np.inf
    with pytest.raises(Exception, match="maxdisc_cannot_score"):
        answers(to_onnx(model), new)


def test_a_family_that_was_given_refuses_what_it_cannot_have():
    frame, y = table()
    model = MaxDiscClassifier(family={"visits": "poisson"}, n_features="all", cv=3).fit(frame, y)
    frame.loc[0, "visits"] = -1.0
    with pytest.raises(ValueError, match="visits"):
        model.predict(frame)
    with pytest.raises(Exception, match="maxdisc_cannot_score"):
        answers(to_onnx(model), frame)


def test_numbers_that_are_categories():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    X = np.stack(
        [rng.choice([1.0, 2.5, -3.0], 150), y + rng.normal(size=150), rng.integers(0, 4, 150) + y], axis=1
    )
    model = MaxDiscClassifier(categorical_features=[0, 2], n_features="all", cv=3).fit(X, y)
    X[:5, 0], X[5:9, 2], X[9, 1] = 7.0, np.nan, np.nan
    check_same(model, to_onnx(model), X)


def test_frames_of_numbers_are_a_matrix_or_columns():
    data = load_iris(as_frame=True)
    model = MaxDiscClassifier(cv=3).fit(data.data, data.target)
    probabilities = answers(to_onnx(model), data.data.to_numpy())[1]
    np.testing.assert_allclose(probabilities, model.predict_proba(data.data), atol=DOUBLE)
    check_same(model, to_onnx(model, data.data), data.data)
    single = data.data.astype(np.float32)
    check_same(model, to_onnx(model, single), single, SINGLE)


def test_columns_of_another_kind_are_refused():
    frame, y = table()
    model = MaxDiscClassifier(n_features="all", cv=3).fit(frame, y)
    texts = frame.assign(weight="heavy")
    with pytest.raises(ValueError, match=r"'weight' held numbers when the model was fitted"):
        to_onnx(model, texts)
    numbers = frame.assign(**{"the colour": 1.0})
    with pytest.raises(ValueError, match=r"'the colour' held categories when the model was fitted"):
        to_onnx(model, numbers)
    with pytest.raises(ValueError, match="was fitted on 5 columns, and the inputs of the graph have 4"):
        to_onnx(model, frame.iloc[:, :4])


# ------------------------------------------------------------------ refusals of to_onnx


def test_what_is_no_classifier_is_refused():
    X, codes = rows_of("gaussian")
    with pytest.raises(ValueError, match="pipeline that ends in one, got CountScaler"):
        to_onnx(CountScaler().fit(np.abs(X)))
    selecting = make_pipeline(MaxDiscClassifier(cv=3), LogisticRegression()).fit(X, codes)
    with pytest.raises(ValueError, match="only chooses features for another model"):
        to_onnx(selecting)
    with pytest.raises(ValueError, match="not fitted yet"):
        to_onnx(MaxDiscClassifier())
    with pytest.raises(ValueError, match="dtype must be float64 or float32, got float16"):
        to_onnx(MaxDiscClassifier(cv=3).fit(X, codes), dtype=np.float16)
    with pytest.raises(ValueError, match="the graph would have"):
        _too_large(MaxDiscClassifier(cv=3).fit(X, codes))


def _too_large(model):
    from maxdisc.adapters.onnx import exporting

    before, exporting.LARGEST = exporting.LARGEST, 1000
    try:
        to_onnx(model)
    finally:
        exporting.LARGEST = before


# ------------------------------------------------------------------ the command


def test_the_command_writes_a_graph(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    model = MaxDiscClassifier(cv=3).fit(X, y)
    save(model, tmp_path / "iris.maxdisc")
    assert main(["export", str(tmp_path / "iris.maxdisc"), "-o", str(tmp_path / "iris.onnx")]) == 0
    assert "150" not in capsys.readouterr().err
    check_same(model, onnx.load(tmp_path / "iris.onnx"), X)
    assert main(["export", str(tmp_path / "iris.maxdisc"), "-o", str(tmp_path / "iris.onnx")]) == 2
    assert "exists: replace it with --force" in capsys.readouterr().err
    again = [
        "export",
        str(tmp_path / "iris.maxdisc"),
        "-o",
        str(tmp_path / "iris.onnx"),
        "--force",
        "--float32",
    ]
    assert main(again) == 0
    check_same(model, onnx.load(tmp_path / "iris.onnx"), X.astype(np.float32), SINGLE)


def test_the_command_refuses_in_one_line_and_writes_nothing(tmp_path, capsys):
    words = TermFrequencyVectorizer(token_pattern="[a-z]+")
    model = make_pipeline(words, MaxDiscClassifier(evidence="raw", n_features="all"))
    save(model.fit(["a b", "c d"], ["x", "y"]), tmp_path / "words.maxdisc")
    assert main(["export", str(tmp_path / "words.maxdisc"), "-o", str(tmp_path / "words.onnx")]) == 2
    told = capsys.readouterr().err
    assert "cannot be exported to ONNX" in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["words.maxdisc"]
    assert main(["export", str(tmp_path / "none.maxdisc"), "-o", str(tmp_path / "words.onnx")]) == 2
