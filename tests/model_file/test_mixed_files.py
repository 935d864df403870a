"""Model files of mixed columns: what comes back is the same model, and nothing else is taken for one."""

from __future__ import annotations

import io

import numpy as np
import pytest

from maxdisc import MaxDiscClassifier, ModelFileError, load, save
from maxdisc.model_file import describe
from maxdisc.model_file.container import Container, write
from maxdisc.model_file.persistence import from_bytes, to_bytes
from tests.fitting.test_mixed_columns import table

FRAME, LABELS = table(120, gaps=0.1)
SETTINGS = {
    "raw": {"evidence": "raw"},
    "weighed": {},
    "informative": {"missing": "informative", "n_features": 4},
    "given": {"family": {"visits": "geometric", "smokes": "categorical"}, "categorical_features": ["noise"]},
}


@pytest.fixture(scope="module")
def content():
    model = MaxDiscClassifier(missing="informative", n_features=5).fit(FRAME, LABELS)
    return to_bytes(model, moments=True)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_model_comes_back(tmp_path, name):
    model = MaxDiscClassifier(**SETTINGS[name]).fit(FRAME, LABELS)
    for moments in (True, False):
        save(model, tmp_path / "m", moments=moments)
        again = load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))
        np.testing.assert_array_equal(again.score_samples(FRAME), model.score_samples(FRAME))
        assert repr(again.families_) == repr(model.families_)
        assert again.get_params() == model.get_params()
        assert to_bytes(again, moments=moments) == (tmp_path / "m").read_bytes()
    facts = describe(tmp_path / "m")
    assert (facts["format"], facts["kind"], facts["steps"][0]["n_features"]) == (4, "mixed", 6)


def test_a_stream_goes_on():
    model = MaxDiscClassifier().fit(FRAME[:60], LABELS[:60])
    again = from_bytes(to_bytes(model, moments=True))
    more = FRAME[60:].assign(colour="violet")
    for m in (model, again):
        m.partial_fit(more, LABELS[60:])
    np.testing.assert_allclose(again.predict_proba(FRAME), model.predict_proba(FRAME), rtol=1e-12)


def changed(content, name, change):
    container = Container.of(content)
    tensors = {key: tensor.copy() for key, tensor in container.tensors().items()}
    tensors[name] = change(tensors[name])
    file = io.BytesIO()
    write(file, tensors, container.document)
    return file.getvalue()


def test_wrong_tensors_are_refused_or_make_a_sound_model(content, tmp_path):
    names = [
        n for n in Container.of(content).tensors() if n.startswith(("schema", "block", "decision", "mom"))
    ]
    assert len(names) > 30
    refused = 0
    for name in names:
        for change in (
            lambda t: np.concatenate([t, t], axis=-1),
            lambda t: np.flip(t, axis=-1).copy(),
            lambda t: t + t.dtype.type(1),
            lambda t: np.zeros_like(t),
            lambda t: (t * 0 - 1).astype(t.dtype),
        ):
            (tmp_path / "m").write_bytes(changed(content, name, change))
            try:
                model = load(tmp_path / "m")
            except ModelFileError as error:
                refused += 1
                assert "\n" not in str(error)
                continue
            try:
                found = model.predict_proba(FRAME)
            except ValueError as error:  # rows that another model would take
                assert "\n" not in str(error)
                continue
            assert np.isfinite(found).all()
            np.testing.assert_allclose(found.sum(axis=1), 1)
    assert refused > 2.5 * len(names)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("schema.kinds", lambda t: t + 9, "columns are not described as columns are"),
        ("schema.keys", lambda t: t[::-1].copy(), "columns are not described as columns are"),
        ("schema.categories", lambda t: t + 50, "columns are not described as columns are"),
        ("decision.columns", lambda t: t[::-1].copy(), "do not fit its columns"),
        ("block0.places", lambda t: t + 1, "do not fit its columns"),
        ("moments0.weight", lambda t: t + 1, "not of the same rows"),
        ("moments0.sums", lambda t: np.concatenate([t, t], axis=2), "moments0.sums is"),
    ],
)
def test_what_is_wrong_is_said(content, tmp_path, name, change, words):
    (tmp_path / "m").write_bytes(changed(content, name, change))
    with pytest.raises(ModelFileError, match=words):
        load(tmp_path / "m")
