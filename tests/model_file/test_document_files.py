"""Files of a classifier of documents: its vectorizer and the classifier of counts, and that they are one."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline, make_pipeline

from maxdisc import MaxDiscClassifier, ModelFileError, TermFrequencyVectorizer, load, save
from maxdisc.fitting.documents import as_pipeline
from maxdisc.model_file import describe
from maxdisc.model_file.container import Container, write
from tests.fitting.test_document_fits import NEW, ROWS, TEXTS, Y, both, check_same

VECTORIZERS = {
    "default": None,
    "given": TermFrequencyVectorizer(ngram_range=(1, 2), stop_words=["w00"], min_df=2),
    "vocabulary": TermFrequencyVectorizer(vocabulary=["w01", "w05", "w20", "w39"]),
}


@pytest.mark.parametrize("evidence", ["raw", "calibrated", "refined"])
@pytest.mark.parametrize("name", VECTORIZERS)
def test_a_classifier_of_documents_comes_back_as_it_was(tmp_path, name, evidence):
    model, _ = both(VECTORIZERS[name], evidence=evidence)
    model.fit(TEXTS, Y)
    pipeline = as_pipeline(model)
    save(model, tmp_path / "m", moments=True)
    again = load(tmp_path / "m")
    assert type(again) is MaxDiscClassifier
    check_same(again, pipeline, NEW)
    assert vars(again).keys() == vars(model).keys()
    assert repr(again) == repr(model)
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    save(again, tmp_path / "again", moments=True)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    check_same(again.fit(TEXTS, Y), pipeline, NEW)


def test_a_loaded_model_goes_on_learning(tmp_path):
    model = MaxDiscClassifier().partial_fit(TEXTS[:60], Y[:60])
    save(model, tmp_path / "m", moments=True)
    again = load(tmp_path / "m").partial_fit(TEXTS[60:], Y[60:])
    model.partial_fit(TEXTS[60:], Y[60:])
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def parts(path):
    container = Container.of(path.read_bytes())
    return container.document, {name: tensor.copy() for name, tensor in container.tensors().items()}


def test_the_file_is_that_of_the_pipeline_but_for_the_note(tmp_path):
    model, pipeline = both(TermFrequencyVectorizer(min_df=2))
    save(model.fit(TEXTS, Y), tmp_path / "one")
    steps = [("vectorizer", pipeline[0]), ("classifier", pipeline[1])]
    save(Pipeline(steps).fit(TEXTS, Y), tmp_path / "two")
    (one, of_one), (two, of_two) = parts(tmp_path / "one"), parts(tmp_path / "two")
    assert (one["format"], two["format"]) == (4, 4)
    assert one["model"].pop("kind") == "documents"
    assert one["model"].pop("default") is False
    assert one["model"]["steps"] == two["model"]["steps"]
    assert of_one.keys() == of_two.keys()
    for name, tensor in of_one.items():
        np.testing.assert_array_equal(tensor, of_two[name])
    assert describe(tmp_path / "one")["kind"] == "documents"
    assert describe(tmp_path / "one")["steps"] == describe(tmp_path / "two")["steps"]


def test_a_vectorizer_without_use_is_not_written(tmp_path):
    save(MaxDiscClassifier(vectorizer=CountVectorizer()).fit(ROWS, Y), tmp_path / "m")
    save(MaxDiscClassifier().fit(ROWS, Y), tmp_path / "plain")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "plain").read_bytes()
    assert "vectorizer" not in json.dumps(parts(tmp_path / "plain")[0])


def test_a_pipeline_around_it_comes_back_as_a_longer_one(tmp_path):
    model = MaxDiscClassifier().fit(TEXTS, Y)
    save(make_pipeline(model), tmp_path / "m")
    again = load(tmp_path / "m")
    assert [type(step) for _, step in again.steps] == [TermFrequencyVectorizer, MaxDiscClassifier]
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def test_one_that_selects_words_for_another_is_refused(tmp_path):
    selecting = make_pipeline(MaxDiscClassifier(n_features=9), MaxDiscClassifier()).fit(TEXTS, Y)
    with pytest.raises(ModelFileError, match="put a TermFrequencyVectorizer before"):
        save(selecting, tmp_path / "m")


def test_other_vectorizers_cannot_be_saved(tmp_path):
    model = MaxDiscClassifier(vectorizer=CountVectorizer()).fit(TEXTS, Y)
    with pytest.raises(ModelFileError, match="a CountVectorizer cannot be saved"):
        save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


WRONG = {
    "older": (lambda d: d.update(format=3), "only files of format 4"),
    "no note": (lambda d: d["model"].pop("default"), "where entries"),
    "note of another type": (lambda d: d["model"].update(default=1), "not described as pipelines are"),
    "note of a pipeline": (lambda d: d["model"].update(kind="pipeline"), "where entries"),
    "other kind": (lambda d: d["model"].update(kind=["documents"]), "where entries"),
    "other order": (lambda d: d["model"]["steps"].reverse(), "is missing"),
    "parameter": (
        lambda d: d["model"]["steps"][0][1]["parameters"].update(ngram_range={"tuple": [2, 1]}),
        "parameters of its vectorizer",
    ),
}


@pytest.mark.parametrize(("change", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_note_is_refused(tmp_path, change, says):
    save(MaxDiscClassifier().fit(TEXTS, Y), tmp_path / "m")
    document, tensors = parts(tmp_path / "m")
    change(document)
    file = io.BytesIO()
    write(file, tensors, document)
    (tmp_path / "m").write_bytes(file.getvalue())
    with pytest.raises(ModelFileError, match=says) as caught:
        load(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_two_classifiers_are_no_model_of_documents(tmp_path):
    first = MaxDiscClassifier(evidence="raw", n_features="all").fit(ROWS, Y)
    save(Pipeline([("vectorizer", first), ("classifier", first)]), tmp_path / "m")
    document, tensors = parts(tmp_path / "m")
    document["format"] = 4
    document["model"] = {"kind": "documents", "default": True, "steps": document["model"]["steps"]}
    file = io.BytesIO()
    write(file, tensors, document)
    (tmp_path / "m").write_bytes(file.getvalue())
    with pytest.raises(ModelFileError, match="no vectorizer or no classifier"):
        load(tmp_path / "m")
