"""Files of weighed evidence, of scalers and of searches: they come back as they were, or are refused."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, MaxDiscSearchCV, ModelFileError, TermFrequencyVectorizer, load, save
from maxdisc.calibration.evidence import Evidence
from maxdisc.model_file import describe
from maxdisc.model_file.container import Container, write
from maxdisc.model_file.fields import FIELDS
from maxdisc.testing import random_data
from maxdisc.words import CountScaler
from maxdisc.words.scaling import SCALES

FIXTURES = Path(__file__).parent / "fixtures"
REFINED = (FIXTURES / "weighed-refined.maxdisc").read_bytes()
SCALED = (FIXTURES / "weighed-scaled.maxdisc").read_bytes()


def parts(content):
    container = Container.of(content)
    return container.document, {name: t.copy() for name, t in container.tensors().items()}


def refused(path, document, tensors, words):
    file = io.BytesIO()
    write(file, tensors, document)
    path.write_bytes(file.getvalue())
    with pytest.raises(ModelFileError, match=words) as error:
        load(path)
    assert "\n" not in str(error.value)
    try:
        describe(path)
    except ModelFileError as told:
        assert "\n" not in str(told)  # it may be told, but in one line


def paired(n=200):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    shared = 2 * rng.normal(size=(n, 3))
    return np.hstack([shared + 0.5 * y[:, None] + 0.1 * rng.normal(size=(n, 3)), shared]), y


def made(kind):
    if kind == "refined":
        X, y = paired()
        return MaxDiscClassifier(evidence="refined", n_features=5).fit(X, y), X
    if kind == "calibrated":
        X, y = random_data("gaussian", 120, 3, 9, seed=1)
        X[::9, 2] = np.nan
        return MaxDiscClassifier(prior=[0.2, 0.3, 0.5]).fit(X, y), X
    if kind == "going on":
        X, y = random_data("poisson", 120, 3, 9, seed=1)
        return MaxDiscClassifier("poisson").fit(X[y < 2], y[y < 2]).partial_fit(X[y == 2], y[y == 2]), X
    X, y = random_data("poisson", 120, 3, 30, seed=2)
    return MaxDiscClassifier(evidence="refined").fit(sp.csr_array(X), y), sp.csr_array(X)


@pytest.mark.parametrize("moments", [True, False])
@pytest.mark.parametrize("kind", ["calibrated", "refined", "going on", "counts"])
def test_weighed_evidence_comes_back_as_it_was(tmp_path, kind, moments):
    model, X = made(kind)
    assert (model.evidence_.correction is not None) or kind != "refined"
    save(model, tmp_path / "m", moments=moments)
    again = load(tmp_path / "m")
    assert again.predict_log_proba(X).tobytes() == model.predict_log_proba(X).tobytes()
    np.testing.assert_array_equal(again.explain(X[:5]).contributions, model.explain(X[:5]).contributions)
    for name in FIELDS[Evidence]:
        a, b = getattr(again.evidence_, name), getattr(model.evidence_, name)
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)
    for name in ("log_loss", "accuracy", "n_rows", "ridge"):
        assert getattr(again.evidence_, name) == getattr(model.evidence_, name)
    if moments:
        y = model.predict(X)
        again.partial_fit(X, y), model.partial_fit(X, y)
        assert again.predict_log_proba(X).tobytes() == model.predict_log_proba(X).tobytes()
    facts = describe(tmp_path / "m")
    assert (facts["format"], facts["kind"]) == (3 if moments else 4, "weighed")
    told = facts["steps"][0]["evidence"]
    assert told["weights"] == again.evidence_.weights.tolist()
    assert told["edges"][-1] == again.n_selected_
    assert told["corrected"] == (0 if again.evidence_.columns is None else len(again.evidence_.columns))


def test_a_file_without_moments_is_of_the_fourth_format(tmp_path):
    X, y = random_data("gaussian", 60, 2, 4)
    model = MaxDiscClassifier(evidence="raw", n_features="all", smoothing=1.0).fit(X, y)
    save(model, tmp_path / "m", moments=False)
    assert (describe(tmp_path / "m")["format"], describe(tmp_path / "m")["kind"]) == (4, "classifier")


TENSORS = {
    "edges that do not grow": ("evidence.edges", lambda t: t[::-1], "weights of its evidence"),
    "an edge twice": ("evidence.edges", lambda t: np.full_like(t, t[-1]), "weights of its evidence"),
    "an edge of 0": ("evidence.edges", lambda t: t - t[0], "weights of its evidence"),
    "edges too low": ("evidence.edges", lambda t: t - 1, "weights of its evidence"),
    "edges too high": ("evidence.edges", lambda t: t + 10**9, "weights of its evidence"),
    "edges of floats": ("evidence.edges", lambda t: t.astype(float), "not int64"),
    "no edges": ("evidence.edges", lambda t: t[:0], "of shape"),
    "a negative weight": ("evidence.weights", lambda t: -1 - t, "weights of its evidence"),
    "a weight less": ("evidence.weights", lambda t: t[1:], "of shape"),
    "a weight of NaN": ("evidence.weights", lambda t: t * np.nan, "NaN or an infinity"),
    "a bias more": ("evidence.bias", lambda t: np.append(t, 0.0), "of shape"),
    "an infinite bias": ("evidence.bias", lambda t: t + np.inf, "NaN or an infinity"),
    "columns too high": ("evidence.columns", lambda t: t + 100, "weights of its evidence"),
    "columns too low": ("evidence.columns", lambda t: t - 100, "weights of its evidence"),
    "columns twice": ("evidence.columns", lambda t: t * 0, "weights of its evidence"),
    "a correction of the wrong shape": ("evidence.correction", lambda t: t[:, 1:], "of shape"),
    "a correction of another class": ("evidence.correction", lambda t: np.vstack([t, t]), "of shape"),
    "a flat correction": ("evidence.correction", lambda t: t.ravel(), "of shape"),
    "a correction of NaN": ("evidence.correction", lambda t: t * np.nan, "NaN or an infinity"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_wrong_weights_are_refused(tmp_path, name):
    tensor, change, words = TENSORS[name]
    document, tensors = parts(REFINED)
    tensors[tensor] = np.ascontiguousarray(change(tensors[tensor]))
    refused(tmp_path / "m", document, tensors, words)


def test_parts_of_corrections_go_together(tmp_path):
    for gone in ("evidence.columns", "evidence.correction"):
        document, tensors = parts(REFINED)
        del tensors[gone]
        refused(tmp_path / "m", document, tensors, "weights of its evidence")
    for gone in ("evidence.edges", "evidence.weights", "evidence.bias"):
        document, tensors = parts(REFINED)
        del tensors[gone]
        refused(tmp_path / "m", document, tensors, "is missing")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_loss": -1.0}, "weights of its evidence"),
        ({"accuracy": 1.5}, "weights of its evidence"),
        ({"n_rows": -1.0}, "weights of its evidence"),
        ({"ridge": -1.0}, "weights of its evidence"),
        ({"ridge": 1}, "its evidence is"),
        ({"ridge": "1"}, "its evidence is"),
        ({"log_loss": None}, "its evidence is"),
        ({"accuracy": [0.5]}, "its evidence is"),
        ({"more": 1.0}, "are due"),
    ],
)
def test_wrong_figures_are_refused(tmp_path, change, words):
    document, tensors = parts(REFINED)
    document["model"]["fitted"]["evidence"] |= change
    refused(tmp_path / "m", document, tensors, words)


def test_what_is_no_evidence_is_refused(tmp_path):
    for wrong in (None, [], 7, "calibrated"):
        document, tensors = parts(REFINED)
        document["model"]["fitted"]["evidence"] = wrong
        refused(tmp_path / "m", document, tensors, "are due")
    document, tensors = parts(REFINED)
    document["format"] = 1
    refused(tmp_path / "m", document, tensors, "only files of format 2 have")
    document, tensors = parts(REFINED)
    document["model"]["kind"] = "classifier"
    refused(tmp_path / "m", document, tensors, "are due")


# ------------------------------------------------------------------ scalers


@pytest.mark.parametrize("scale", SCALES)
def test_a_scaler_comes_back_as_it_was(tmp_path, scale):
    frame = pd.DataFrame(np.arange(12).reshape(4, 3), columns=["a", "größe", ""])
    for X in (frame, frame.to_numpy(), sp.csr_array(frame.to_numpy())):
        scaler = CountScaler(scale).fit(X)
        save(scaler, tmp_path / "m")
        again = load(tmp_path / "m")
        assert again.transform(X).toarray().tobytes() == scaler.transform(X).toarray().tobytes()
        assert again.get_feature_names_out().tolist() == scaler.get_feature_names_out().tolist()
        assert again.scale == scale
        facts = describe(tmp_path / "m")
        assert (facts["format"], facts["kind"], facts["steps"][0]["n_features"]) == (2, "scaler", 3)


def test_a_scaler_before_a_classifier(tmp_path):
    X, y = random_data("poisson", 90, 3, 12)
    model = make_pipeline(CountScaler("log"), MaxDiscClassifier()).fit(X, y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert [step["kind"] for step in describe(tmp_path / "m")["steps"]] == ["scaler", "weighed"]
    words = make_pipeline(
        TermFrequencyVectorizer(scale=None), CountScaler("log"), MaxDiscClassifier("poisson")
    )
    texts = ["a cat", "the dog ran", "cats", "a dog dog"] * 10
    words.fit(texts, [0, 1] * 20)
    save(words, tmp_path / "m")
    assert load(tmp_path / "m").predict_proba(texts).tobytes() == words.predict_proba(texts).tobytes()


def test_what_is_not_fitted_is_not_saved(tmp_path):
    for model in (CountScaler(), MaxDiscSearchCV()):
        with pytest.raises(NotFittedError):
            save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("fitted", {"mean_length": -1.0}, "mean length"),
        ("fitted", {"mean_length": 3}, "mean length"),
        ("fitted", {"mean_length": "3"}, "mean length"),
        ("fitted", {"n_features": 0}, "features of its scaler"),
        ("fitted", {"n_features": 8.0}, "features of its scaler"),
        ("fitted", {"n_features": True}, "features of its scaler"),
        ("fitted", {"n_features": 10**30}, "features of its scaler"),
        ("fitted", {"n_features": 7}, "do not fit each other"),
        ("fitted", {"more": 1}, "are due"),
        ("parameters", {"scale": "loud"}, "parameters of its scaler"),
        ("parameters", {"scale": 7}, "parameters of its scaler"),
        ("parameters", {"scale": ["log"]}, "parameters of its scaler"),
        ("parameters", {"scale": {"array": [1.0, 2.0]}}, "parameters of its scaler"),
        ("parameters", {"loud": True}, "does not know"),
    ],
)
def test_wrong_scalers_are_refused(tmp_path, part, change, words):
    document, tensors = parts(SCALED)
    document["model"]["steps"][0][1][part] |= change
    refused(tmp_path / "m", document, tensors, words)


def test_scalers_with_wrong_names_or_tensors_are_refused(tmp_path):
    document, tensors = parts(SCALED)
    tensors |= {"0.names.bytes": np.frombuffer(b"ab", np.uint8), "0.names.offsets": np.array([0, 1, 2])}
    refused(tmp_path / "m", document, tensors, "2 names for 8 features")
    document, tensors = parts(SCALED)
    tensors["0.mean"] = np.zeros(3)
    refused(tmp_path / "m", document, tensors, "tensors that no model has")
    document, tensors = parts(SCALED)
    document["format"] = 1
    refused(tmp_path / "m", document, tensors, "only files of format 2 have")


# ------------------------------------------------------------------ searches


def test_of_a_search_the_best_is_saved(tmp_path):
    X, y = random_data("poisson", 90, 3, 12)
    for rows in (X, sp.csr_array(X)):
        search = MaxDiscSearchCV([{"scale": "log", "smoothing": 1.0}, {"scale": "length"}]).fit(rows, y)
        save(search, tmp_path / "m")
        again = load(tmp_path / "m")
        assert type(again) is type(search.best_estimator_)
        assert again.predict_proba(rows).tobytes() == search.predict_proba(rows).tobytes()
    texts = ["a cat", "the dog ran", "cats", "a dog dog"] * 10
    search = MaxDiscSearchCV().fit(texts, [0, 1] * 20)
    save(search, tmp_path / "m")
    assert load(tmp_path / "m").predict_proba(texts).tobytes() == search.predict_proba(texts).tobytes()
