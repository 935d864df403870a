"""A model comes back from its file as it was."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxdisc import (
    DiscriminativeMaxEnt,
    MaxDiscClassifier,
    ModelFileError,
    Smoothing,
    TermFrequencyVectorizer,
    load,
    save,
)
from maxdisc.divergences import js_gm
from maxdisc.divergences.class_divergences import DIVERGENCES
from maxdisc.families import FAMILIES, Gaussian, Poisson
from maxdisc.model_file import describe
from maxdisc.model_file.fields import FIELDS
from maxdisc.model_file.values import decoded, decoded_strings, encoded, encoded_strings
from maxdisc.testing import random_data
from tests.conftest import examples

TEXTS = [
    "the cat sat",
    "a dog ran far",
    "the cat ran",
    "dogs and cats ran",
    "a cat sat down",
    "the dog sat",
] * 4
TOPICS = np.array(["cat", "dog", "cat", "dog", "cat", "dog"] * 4)


def table(labels=("no", "yes", "perhaps")):
    X, y = random_data("gaussian", 60, 3, 7, seed=3)
    X[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=["height", "weight", "größe", "x y", "5", "", "z"])
    return frame, np.array(labels)[y]


def a_table():
    X, y = table()
    return MaxDiscClassifier(prior=[0.2, 0.3, 0.5], rule="one_se").fit(X, y), X


def of_counts():
    X, y = random_data("poisson", 50, 2, 30, seed=1)
    return MaxDiscClassifier().fit(sp.csr_array(X), y.astype(np.int32)), sp.csr_array(X)


def of_few_features():
    X, y = random_data("gaussian", 90, 12, 40, seed=5)
    return MaxDiscClassifier(n_features=5, smoothing=Smoothing(2.0)).fit(X, y), X


def of_batches():
    X, y = random_data("hurdle", 40, 3, 6, seed=2)
    model = MaxDiscClassifier("hurdle").partial_fit(X[:20], y[:20], classes=[0, 1, 2, 9])
    return model.partial_fit(X[20:], y[20:]), X


def of_text():
    model = make_pipeline(TermFrequencyVectorizer(ngram_range=(1, 2), stop_words=["a"]), MaxDiscClassifier())
    return model.fit(TEXTS, TOPICS), TEXTS


def of_selected_features():
    X, y = random_data("gaussian", 60, 2, 9, seed=4)
    return make_pipeline(MaxDiscClassifier(n_features=4), MaxDiscClassifier(n_features=2)).fit(X, y), X


def by_family(name):
    def made():
        X, y = random_data(name, 60, 3, 8, seed=6)
        return MaxDiscClassifier(name, n_features=6).fit(X, y), X

    return made


MODELS = {
    f.__name__: f for f in (a_table, of_counts, of_few_features, of_batches, of_text, of_selected_features)
} | {name: by_family(name) for name in FAMILIES}


def saved(model, path, moments=True, **options):
    save(model, path, moments=moments, **options)
    return load(path, functions=options.get("functions"))


def classifier_of(model):
    return model if isinstance(model, MaxDiscClassifier | DiscriminativeMaxEnt) else model[-1]


def same(a, b):
    """Equal to the last bit, NaN included."""
    a, b = np.asarray(a), np.asarray(b)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


def same_values(a, b):
    assert type(a) is type(b)
    for name in FIELDS.get(type(a), {}):
        if getattr(a, name) is None:
            assert getattr(b, name) is None
        else:
            same(getattr(a, name), getattr(b, name))


@pytest.fixture(params=MODELS)
def pair(request, tmp_path):
    model, X = MODELS[request.param]()
    return model, saved(model, tmp_path / "m.maxdisc"), X


def test_a_model_comes_back_as_it_was(pair):
    model, again, X = pair
    same(again.predict_log_proba(X), model.predict_log_proba(X))
    same(again.predict(X), model.predict(X))
    mine, theirs = classifier_of(again), classifier_of(model)
    for name in ("classes_", "class_prior_", "scores_", "ranking_", "feature_importances_", "n_features_in_"):
        same(getattr(mine, name), getattr(theirs, name))
    for name in ("path_", "moments_", "decision_"):
        same_values(getattr(mine, name), getattr(theirs, name))
    assert (mine.n_selected_, mine.smoothing_) == (theirs.n_selected_, theirs.smoothing_)
    assert mine.families_ == theirs.families_
    assert repr(mine.path_) == repr(theirs.path_)
    assert vars(mine).keys() == vars(theirs).keys()
    assert repr(again.get_params()) == repr(model.get_params())
    assert repr(clone(again)) == repr(clone(model))


def test_a_table_keeps_names_explanations_and_samples(tmp_path):
    model, X = a_table()
    model.set_params(random_state=7)
    again = saved(model, tmp_path / "m")
    same(again.feature_names_in_, model.feature_names_in_)
    assert again.explain(X[:3]).top(0) == model.explain(X[:3]).top(0)
    for mine, theirs in zip(again.sample(20), model.sample(20), strict=True):
        same(mine, theirs)
    same(again.score_samples(X), model.score_samples(X))
    same(again.transform(X), model.transform(X))
    same(again.get_feature_names_out(), model.get_feature_names_out())
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X[X.columns[::-1]])


@pytest.mark.parametrize("name", ["a_table", "of_counts", "of_few_features", "of_batches"])
def test_learning_goes_on_as_if_nothing_had_happened(tmp_path, name):
    model, X = MODELS[name]()
    again = saved(model, tmp_path / "m")
    labels = np.resize(model.classes_[::-1], X.shape[0])
    if labels.dtype.kind == "i":
        labels[3] = 100  # a class never seen
    for _ in range(2):
        for estimator in (model, again):
            estimator.partial_fit(X, labels)
        again = saved(again, tmp_path / "m")
        same(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
        same_values(again.moments_, model.moments_)
    for estimator in (model, again):
        estimator.choose_n_features(X, labels)
    same(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    same_values(again.path_, model.path_)


def test_settings_at_fit_count_not_those_set_since(tmp_path):
    model, _ = a_table()
    model.set_params(prior=None, divergence="kl")
    again = saved(model, tmp_path / "m")
    assert again.get_params()["divergence"] == "kl"
    same(again.scores_, model.scores_)
    assert again._learnt.divergence is js_gm
    same(again._learnt.prior, np.array([0.2, 0.3, 0.5]))


def test_every_array_of_a_model_is_stored_as_it_lies_in_memory():
    """Sums over another layout may round differently: then bits would not survive the file."""
    for make in MODELS.values():
        model = classifier_of(make()[0])
        for value in (model.moments_, model.decision_, *model._model, model.path_):
            for name in FIELDS.get(type(value), {}):
                array = getattr(value, name)
                assert array is None or array.flags.c_contiguous, (type(value), name)


LABELS = {
    "int64": np.array([-3, 0, 5]),
    "int32": np.array([1, 2, 3], dtype=np.int32),
    "uint8": np.array([1, 2, 200], dtype=np.uint8),
    "big-endian": np.array([1, 2, 300], dtype=">i4"),
    "bool": np.array([False, True]),
    "float": np.array([0.0, 1.0, 7.0]),
    "str": np.array(["a", "b", "ß🙂"]),
    "wide str": np.array(["a", "b", "c"], dtype="<U40"),
    "empty str": np.array(["", "b\n", "c\x00d"]),
    "object": np.array(["a", "bcd", "e"], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_keep_their_type(tmp_path, name):
    X, y = random_data("gaussian", 30, len(LABELS[name]), 2, seed=0)
    model = MaxDiscClassifier().fit(X, LABELS[name][y])
    again = saved(model, tmp_path / "m")
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == model.classes_.tolist()
    same(again.predict(X), model.predict(X))
    assert describe(tmp_path / "m")["steps"][0]["classes"] == model.classes_.tolist()


@pytest.mark.parametrize(
    "labels",
    [np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), np.array([b"a", b"b"]),
     np.array([1, 2], dtype=object), np.array([1, 2], dtype=np.longdouble)],
    ids=["dates", "bytes", "objects", "long doubles"],
)  # fmt: skip
def test_other_labels_are_refused(tmp_path, labels):
    model, _ = of_counts()
    model.classes_ = labels
    with pytest.raises(ModelFileError, match=r"^labels of type .* cannot be saved: use strings"):
        save(model, tmp_path / "m")
    assert not os.listdir(tmp_path)


def test_str_labels_that_would_take_much_room_come_back_as_objects(tmp_path):
    model, X = of_counts()
    model.classes_ = np.array(["a", "b" * 2**20])
    again = saved(model, tmp_path / "m")
    assert again.classes_.dtype == object
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_without_moments_a_model_predicts_but_does_not_learn(tmp_path):
    model, X = a_table()
    y = model.predict(X)
    save(model, tmp_path / "all", moments=True)
    again = saved(model, tmp_path / "m", moments=False)
    assert os.path.getsize(tmp_path / "m") < os.path.getsize(tmp_path / "all")
    same(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    assert again.explain(X).top(0) == model.explain(X).top(0)
    before = pickle.dumps(again)
    for learn in (
        lambda: again.partial_fit(X, y),
        lambda: again.choose_n_features(X, y),
        lambda: again.sample(3),
        lambda: again.moments_,
        lambda: save(again, tmp_path / "m", moments=True),
    ):
        with pytest.raises(NotFittedError, match=r"^this model was saved without its moments: [^\n]*$"):
            learn()
    assert pickle.dumps(again) == before
    same_values(saved(again, tmp_path / "m", moments=False).decision_, model.decision_)
    same(again.fit(X, y).moments_.sums, clone(model).fit(X, y).moments_.sums)


def test_a_vectorizer_alone(tmp_path):
    vectorizer = TermFrequencyVectorizer(vocabulary={"dog": 1, "cat": 0}, max_df=0.9).fit(TEXTS)
    again = saved(vectorizer, tmp_path / "m")
    same(again.transform(TEXTS).toarray(), vectorizer.transform(TEXTS).toarray())
    same(again.terms_, vectorizer.terms_)
    assert again.vocabulary_ == vectorizer.vocabulary_
    assert again.get_params() == vectorizer.get_params()


def test_step_names_come_back(tmp_path):
    model, _ = of_text()
    model.steps = [("wörter ☃", model[0]), ("0.", model[1])]
    model.set_params(verbose=True)
    again = saved(model, tmp_path / "m")
    assert [name for name, _ in again.steps] == ["wörter ☃", "0."]
    assert again.verbose is True


PARAMETERS = {
    "splitter": ({"cv": KFold(3)}, {"cv": 3}),
    "splitter without a number": ({"cv": LeaveOneOut()}, {"cv": 5}),
    "one split": ({"cv": ShuffleSplit(1)}, {"cv": 2}),
    "splits": ({"cv": [([0, 1], [2])]}, {"cv": 5}),
    "generator": ({"random_state": np.random.RandomState(0)}, {"random_state": None}),
    "numpy numbers": ({"cv": np.int64(4), "n_features": np.float32(0.5)}, {"cv": 4, "n_features": 0.5}),
    "smoothing": ({"smoothing": Smoothing(1.5, "flat")}, {"smoothing": Smoothing(1.5, "flat")}),
    "family": ({"family": Poisson()}, {"family": Poisson()}),
    "divergence": ({"divergence": js_gm}, {"divergence": js_gm}),
    "tuple": ({"prior": (0.25, 0.75)}, {"prior": (0.25, 0.75)}),
    "n_jobs": ({"n_jobs": -1, "verbose": 2}, {"n_jobs": None, "verbose": 2}),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_come_back_or_have_a_stand_in(tmp_path, name):
    model, _ = of_counts()
    given_, kept = PARAMETERS[name]
    again = saved(model.set_params(**given_), tmp_path / "m")
    assert {key: again.get_params()[key] for key in kept} == kept


def test_an_array_of_probabilities_comes_back(tmp_path):
    model, _ = of_counts()
    again = saved(model.set_params(prior=np.array([0.1, 0.9])), tmp_path / "m")
    same(again.prior, np.array([0.1, 0.9]))


class Shifted(Gaussian):
    name = "shifted"


def my_divergence(densities):
    return js_gm(densities) * 2


def test_functions_are_saved_by_name(tmp_path):
    X, y = random_data("gaussian", 40, 2, 5, seed=0)
    model = MaxDiscClassifier(Shifted(), divergence=my_divergence).fit(X, y)
    with pytest.raises(ModelFileError, match=r"family=Shifted\(\) cannot be saved: pass functions="):
        save(model, tmp_path / "m", functions={"twice": my_divergence})
    with pytest.raises(ModelFileError, match=r"divergence=my_divergence cannot be saved: pass functions="):
        save(model, tmp_path / "m", functions={"shift": Shifted()})
    functions = {"shift": Shifted(), "twice": my_divergence}
    again = saved(model, tmp_path / "m", functions=functions)
    same(again.predict_proba(X), model.predict_proba(X))
    same(again.partial_fit(X, y).scores_, model.partial_fit(X, y).scores_)
    with pytest.raises(ModelFileError, match=r"a function called 'twice': pass functions=\{'twice'"):
        load(tmp_path / "m", functions={"shift": Shifted()})
    with pytest.raises(ModelFileError, match=r"its family is .*which is invalid"):
        load(tmp_path / "m", functions={**functions, "shift": my_divergence})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: StandardScaler().fit([[1.0]]),
            "a StandardScaler cannot be saved: .*MaxDiscClassifier, a Disc.*, a Term",
        ),
        (
            lambda: make_pipeline(CountVectorizer(), MaxDiscClassifier()).fit(TEXTS, TOPICS),
            "a CountVectorizer",
        ),
        (lambda: make_pipeline("passthrough", of_counts()[0]), "a str cannot be saved"),
        (lambda: make_pipeline(of_text()[0]), "a Pipeline cannot be saved"),
        (lambda: MaxDiscClassifier(), "not fitted"),
        (
            lambda: of_counts()[0].set_params(smoothing=float("nan")),
            "parameters are invalid: smoothing must be at least 0",
        ),
        (
            lambda: of_text()[0].set_params(maxdiscclassifier__verbose=object()),
            "parameters are invalid: verbose must be a number",
        ),
    ],
)
def test_what_cannot_be_saved_is_said_in_one_line(tmp_path, make, words):
    model = make()
    with pytest.raises(ValueError, match=words) as caught:
        save(model, tmp_path / "m")
    assert "\n" not in str(caught.value)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("about", [{"x": object()}, {"x": float("inf")}, [1]])
def test_about_is_plain(tmp_path, about):
    with pytest.raises(ModelFileError, match=r"^[^\n]*$"):
        save(of_counts()[0], tmp_path / "m", about=about)


def test_a_header_too_long_to_be_read_is_not_written(tmp_path):
    with pytest.raises(ModelFileError, match="more than 16 MiB"):
        save(of_counts()[0], tmp_path / "m", about={"x": "x" * 2**24})


def test_names_that_are_no_unicode_are_refused(tmp_path):
    model, _ = of_counts()
    model.classes_ = np.array(["a", "\ud800"])
    with pytest.raises(ModelFileError, match="no valid Unicode"):
        save(model, tmp_path / "m")


def test_describe(tmp_path):
    model, _ = of_text()
    about = {"text": "body", "rows": 24, "features": ["ä"]}
    save(model, tmp_path / "m", about=about, moments=True)
    facts = describe(tmp_path / "m")
    assert (facts["format"], facts["about"], facts["bytes"]) == (3, about, os.path.getsize(tmp_path / "m"))
    assert facts["kind"] == "pipeline"
    first, second = facts["steps"]
    assert (first["name"], first["kind"], first["n_features"]) == (
        "termfrequencyvectorizer", "vectorizer", len(model[0].terms_)
    )  # fmt: skip
    assert first["parameters"]["stop_words"] == ["a"]
    assert (second["classes"], second["n_selected"]) == (["cat", "dog"], model[-1].n_selected_)
    assert second["moments"] is True
    assert sum(t["bytes"] for t in facts["tensors"].values()) < facts["bytes"]
    json.dumps(facts)


def test_equal_models_give_equal_files_that_any_safetensors_library_reads(tmp_path):
    for name in "ab":
        save(a_table()[0], tmp_path / name, moments=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with safetensors.safe_open(tmp_path / "a", framework="np") as file:
        # What is stored is the generative decision, and beside it how much its evidence counts.
        same(file.get_tensor("decision.weights"), a_table()[0]._model[1].weights)
        assert json.loads(file.metadata()["maxdisc"])["format"] == 3


def test_a_loaded_model_is_a_model_like_any_other(tmp_path):
    model, X = a_table()
    path = tmp_path / "m"
    again = saved(model, path)
    other, _ = of_counts()
    save(other, path, moments=True)  # replaced: the model goes on with what it read
    same(again.predict_proba(X), model.predict_proba(X))
    path.unlink()
    joblib.dump(again, tmp_path / "j")
    for twin in (copy.deepcopy(again), pickle.loads(pickle.dumps(again)), joblib.load(tmp_path / "j")):
        same(twin.predict_proba(X), model.predict_proba(X))
    results = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(again.predict_proba)(X) for _ in range(2)
    )
    same(results[0], results[1])


def test_writing_into_a_loaded_model_does_not_write_into_its_file(tmp_path):
    model, _ = a_table()
    again = saved(model, tmp_path / "m")
    again.decision_.weights[:] = 0.0
    again.moments_.sums[:] = 0.0
    same_values(load(tmp_path / "m").decision_, model.decision_)


def test_loading_does_not_copy_the_file(tmp_path):
    X = sp.random_array((60, 50_000), density=0.01, rng=np.random.default_rng(0), format="csr")
    model = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, np.arange(60) % 20)
    save(model, tmp_path / "m", moments=True)
    size = os.path.getsize(tmp_path / "m")
    load(tmp_path / "m")
    tracemalloc.start()
    again = load(tmp_path / "m")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 24e6
    assert peak < size / 4
    same(again.predict_joint_log_proba(X[:5]), model.predict_joint_log_proba(X[:5]))


@pytest.mark.skipif(os.name != "posix", reason="needs fork and kill -9")
def test_a_kill_during_save_leaves_the_old_file(tmp_path):
    """Processes that save one of two models over and over are killed at any time: one of them is there."""
    code = """
import itertools, os, signal, sys, time, warnings
import numpy as np
from maxdisc import MaxDiscClassifier, load, save
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
models = [MaxDiscClassifier(n_features="all", smoothing=1.0).fit(rng.normal(size=(20, 20_000)), [k, 9] * 10)
          for k in (0, 1)]
path = sys.argv[1]
save(models[0], path, moments=True)
seen = set()
# A slow machine needs more rounds until some are killed in the middle, as their traces tell.
for round in range(400):
    traces = any(name.startswith(".maxdisc-") for name in os.listdir(os.path.dirname(path)))
    if round >= 25 and traces and seen == {0, 1}:
        print("seen enough")
        break
    child = os.fork()
    if child == 0:
        for model in itertools.cycle(models[::-1]):
            save(model, path, moments=True)
    time.sleep(rng.uniform(0, 0.05))
    seen.add(int(load(path).classes_[0]))  # while it is being replaced
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    seen.add(int(load(path).classes_[0]))
"""
    path = tmp_path / "m.maxdisc"
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[0] == "seen enough"


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    model, X = a_table()
    path = tmp_path / "m"
    save(model, path, moments=True)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("maxdisc.model_file.persistence.write", full)
    with pytest.raises(OSError, match="No space left"):
        save(of_counts()[0], path, moments=True)
    same(load(path).predict_proba(X), model.predict_proba(X))
    assert os.listdir(tmp_path) == ["m"]


def discriminative_table():
    X, y = table()
    X = X.fillna(0.0)
    return DiscriminativeMaxEnt("gis", penalty=np.float32(32.0), tol=1e-2, max_iter=9000).fit(X, y), X


def discriminative_of_two():
    X, y = random_data("poisson", 50, 2, 30, seed=1)
    generator = np.random.RandomState(0)
    return DiscriminativeMaxEnt(random_state=generator).fit(sp.csr_array(X), y.astype(np.int32)), X


def discriminative_text():
    return make_pipeline(TermFrequencyVectorizer(), DiscriminativeMaxEnt()).fit(TEXTS, TOPICS), TEXTS


def discriminative_by_the_dual():
    X, y = random_data("poisson", 100, 3, 200, seed=2)
    X = sp.csr_array(np.where(np.random.default_rng(0).random(X.shape) < 0.1, X + 1.0, 0.0))
    return DiscriminativeMaxEnt("dual").fit(X, y), X


def discriminative_of_selected_features():
    X, y = random_data("gaussian", 60, 3, 9, seed=4)
    return make_pipeline(MaxDiscClassifier(n_features=4), DiscriminativeMaxEnt()).fit(X, y), X


@pytest.mark.parametrize(
    "made",
    [
        discriminative_table,
        discriminative_of_two,
        discriminative_text,
        discriminative_by_the_dual,
        discriminative_of_selected_features,
    ],
)
def test_a_discriminative_model_comes_back_as_it_was(tmp_path, made):
    model, X = made()
    again = saved(model, tmp_path / "m", about={"rows": 3})
    for method in ("predict", "predict_log_proba", "decision_function"):
        same(getattr(again, method)(X), getattr(model, method)(X))
    mine, theirs = classifier_of(again), classifier_of(model)
    assert vars(mine).keys() == vars(theirs).keys()
    for name in ("classes_", "coef_", "intercept_", "objective_path_", "n_features_in_", "n_iter_", "gap_"):
        same(getattr(mine, name), getattr(theirs, name))
    assert mine.solver_ == theirs.solver_
    assert mine.converged_ is theirs.converged_
    facts = describe(tmp_path / "m")
    # One that is given selected features has their ranking before it.
    third = facts["steps"][0]["kind"] == "weighed" or theirs.solver_ == "dual"
    assert facts["format"] == (3 if third else 2)
    assert facts["steps"][-1]["classes"] == theirs.classes_.tolist()
    assert facts["steps"][-1]["n_features"] == theirs.n_features_in_
    save(again, tmp_path / "again", about={"rows": 3}, moments=True)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    again.fit(X, model.predict(X))


FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.maxdisc"))


SINCE_2 = {
    "redundancy", "discriminative-table", "discriminative-text", "joint-shared", "joint-per-class", "numeric",
    "averaged-refined", "averaged-per-class", "weighed-refined", "weighed-scaled",
}  # fmt: skip
SINCE_3 = {"mixed-table", "mixed-without-moments", "few-labels", "novelty"}
SINCE_4 = {"documents", "documents-without-moments"}
SINCE = {**dict.fromkeys(SINCE_2, 2), **dict.fromkeys(SINCE_3, 3), **dict.fromkeys(SINCE_4, 4)}


def test_there_are_files_of_earlier_versions():
    first = {"text", "table", "presence", "without-moments"}
    assert {path.stem for path in FIXTURES} >= first | SINCE.keys()


def test_a_file_is_written_for_the_oldest_version_that_can_read_it(tmp_path):
    X, y = random_data("gaussian", 40, 2, 5, seed=0)
    formats = {}
    for name, parameters in {
        "plain": {},
        "calibrated": {"evidence": "calibrated"},
        "redundancy": {"redundancy": 0.5},
        "divergence": {"divergence": "jensen_shannon"},
        "function": {"divergence": DIVERGENCES["jensen_shannon"]},
    }.items():
        settled = {"evidence": "raw", "n_features": "all", "smoothing": 1.0}
        model = MaxDiscClassifier(**{**settled, **parameters}).fit(X, y)
        again = saved(model, tmp_path / "m")
        # Moments know the squares of weights, since the third; without moments it is the fourth.
        whole = describe(tmp_path / "m")["format"]
        save(model, tmp_path / "m")
        formats[name] = whole, describe(tmp_path / "m")["format"]
        same(again.ranking_, model.ranking_)
        same(again.scores_, model.scores_)
        same(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    assert set(formats.values()) == {(3, 4)}
    save(TermFrequencyVectorizer().fit(TEXTS), tmp_path / "m")
    assert describe(tmp_path / "m")["format"] == 1
    assert not hasattr(saved(MaxDiscClassifier(redundancy=0.5).fit(X, y), tmp_path / "m"), "partial_fit")
    model = MaxDiscClassifier(divergence="jensen_shannon").fit(X, y)
    again = saved(model, tmp_path / "m")
    same(again.partial_fit(X, y).scores_, model.partial_fit(X, y).scores_)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_files_of_earlier_versions_predict_as_they_did(path):
    stored = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    model = load(path)
    X = stored["X"]
    if path.stem.startswith("mixed"):
        X = pd.DataFrame(X)
    elif isinstance(X, dict):
        X = pd.DataFrame({name: np.array(column, dtype=float) for name, column in X.items()})
    elif path.stem.startswith("averaged"):
        X = np.array(X, dtype=float)  # None is a missing cell
    assert model.predict(X).tolist() == stored["predicted"]
    assert describe(path)["format"] == SINCE.get(path.stem, 1)
    if "log_proba" in stored:
        np.testing.assert_allclose(model.predict_log_proba(X), stored["log_proba"], rtol=1e-12)
        return
    rows = X if isinstance(model, MaxDiscClassifier) else model[:-1].transform(X)
    np.testing.assert_allclose(
        classifier_of(model).predict_joint_log_proba(rows), stored["joint_log_proba"], rtol=1e-12
    )
    if "novelty" in stored:
        np.testing.assert_allclose(model.novelty(X), stored["novelty"], rtol=1e-12)
    assert [classifier_of(model).n_iter_, classifier_of(model).unlabelled_weight_] == stored.get(
        "unlabelled", [0, 0.0]
    )
    alone = path.stem.split("-")[0] not in ("redundancy", "joint", "averaged")
    if alone and not path.stem.endswith("without-moments"):
        before = classifier_of(model).moments_.weight.sum()
        classifier_of(model).partial_fit(rows, model.predict(X))
        assert classifier_of(model).moments_.weight.sum() == pytest.approx(before + len(stored["predicted"]))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
)


@examples(40)
@given(plain)
def test_plain_values_come_back(value):
    again = decoded(json.loads(json.dumps(encoded(value, {}, "x"))), {})
    assert again == value
    assert repr(again) == repr(value)


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: (v,), lambda v: {"a": v}])
def test_what_is_not_too_deep_to_be_written_is_not_too_deep_to_be_read(wrap):
    value, depth = 1, 0
    while depth < 100:
        try:
            written = encoded(value, {}, "x")
        except ModelFileError:
            break
        assert decoded(written, {}) == value
        value, depth = wrap(value), depth + 1
    assert 10 < depth < 100


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_strings_come_back(values):
    parts = encoded_strings(values, "x")
    assert decoded_strings(parts["bytes"], parts["offsets"], "x") == values
