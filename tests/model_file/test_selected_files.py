"""Files without moments, as ``save`` writes them by default: they hold what the selected features need."""

from __future__ import annotations

import io
import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from maxdisc import Joint, MaxDiscClassifier, ModelFileError, TermFrequencyVectorizer, load, save
from maxdisc.inspection.curves import density_curves
from maxdisc.inspection.ranking import ranking_table
from maxdisc.model_file import container as containers
from maxdisc.model_file import describe
from maxdisc.model_file.container import Container, write
from maxdisc.model_file.persistence import from_bytes, to_bytes
from maxdisc.testing import random_data
from tests.conftest import examples

WORDS = np.array([a + b + c for a in "bdfgk" for b in "aeiou" for c in "lmnrst"])


def documents(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    share = rng.dirichlet(np.full(len(WORDS), 0.3), 3)
    texts = [" ".join(rng.choice(WORDS, 30, p=0.7 * share[c] + 0.3 / len(WORDS))) for c in y]
    return texts, np.array(["hockey", "space", "cars"])[y]


def frame(n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    columns = {f"x{j}": rng.normal(y * (j < 3), 1.0) for j in range(6)}
    columns |= {"colour": np.array(["red", "green", "blue"])[(y + (rng.random(n) < 0.3)) % 3]}
    columns |= {"amount": rng.gamma(1.0 + y), "noise": rng.choice(list("abcdef"), n)}
    table = pd.DataFrame(columns)
    table.loc[::7, "x1"] = np.nan
    return table, np.array(["a", "b", "c"])[y]


def plain(family, sparse=False, **parameters):
    X, y = random_data(family, 90, 3, 12, seed=3)
    X = sp.csr_array(X) if sparse else X
    return MaxDiscClassifier(family=family, **{"n_features": 4, **parameters}).fit(X, y), X, y


def text(scale, **parameters):
    X, y = documents()
    model = make_pipeline(TermFrequencyVectorizer(scale=scale), MaxDiscClassifier(n_features=9, **parameters))
    return model.fit(X, y), X, y


def table(**parameters):
    X, y = frame()
    return MaxDiscClassifier(**parameters).fit(X, y), X, y


MODELS = {
    **{name: lambda name=name: plain(name) for name in ("gaussian", "poisson", "gamma", "bernoulli", "beta")},
    "sparse counts": lambda: plain("poisson", sparse=True),
    "flat smoothing": lambda: plain("poisson", sparse=True, smoothing="auto", evidence="raw"),
    "raw": lambda: plain("gaussian", evidence="raw"),
    "refined": lambda: plain("gaussian", evidence="refined"),
    "all features": lambda: plain("gaussian", n_features="all"),
    "redundancy": lambda: plain("gaussian", redundancy=0.5),
    "joint": lambda: plain("gaussian", structure=Joint(), evidence="raw"),
    "averaged": lambda: plain("gaussian", structure="joint"),
    "text": lambda: text("length"),
    "text of counts": lambda: text(None),
    "text of logs": lambda: text("log"),
    "mixed": lambda: table(n_features=4),
    "missing counts": lambda: table(n_features=5, missing="informative"),
    "one column": lambda: table(n_features=1),
}


def classifier_of(model):
    return model if isinstance(model, MaxDiscClassifier) else model[-1]


def rows_of(model, X):
    return X if isinstance(model, MaxDiscClassifier) else model[:-1].transform(X)


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    model, X, y = MODELS[request.param]()
    path = tmp_path_factory.mktemp("files") / "m"
    save(model, path)
    return model, load(path), X, y, path


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_what_is_said_of_rows_is_the_same(pair):
    model, again, X, _, _ = pair
    same(again.predict(X), model.predict(X))
    same(again.predict_proba(X), model.predict_proba(X))
    one, other = classifier_of(model), classifier_of(again)
    rows, loaded = rows_of(model, X), rows_of(again, X)
    same(other.predict_joint_log_proba(loaded), one.predict_joint_log_proba(rows))
    same(other.score_samples(loaded), one.score_samples(rows))
    few = slice(0, 5)
    mine, theirs = one.explain(rows[few]), other.explain(loaded[few])
    same(theirs.contributions, mine.contributions)
    assert theirs.top(0) == mine.top(0) or model is not one  # names are those of the vectorizer, or the same
    if one._learnt.novelty is not None:
        same(other.novelty(loaded), one.novelty(rows))
    same(other.unseen_categories(loaded), one.unseen_categories(rows))


def test_what_was_selected_is_the_same(pair):
    model, again, X, _, _ = pair
    one, other = classifier_of(model), classifier_of(again)
    size, columns = one.n_selected_, one.decision_.columns
    assert (other.n_selected_, other.n_features_in_) == (size, one.n_features_in_)
    same(other.get_support(), one.get_support())
    same(other.ranking_, one.ranking_[:size])
    same(other.scores_[columns], one.scores_[columns])
    assert np.isnan(np.delete(other.scores_, columns)).all()
    same(other.feature_importances_, one.feature_importances_)
    if one.stability_ is None:
        assert other.stability_ is None
    else:
        same(other.stability_[columns], one.stability_[columns])
    if one.joint_ is None and isinstance(X, list | np.ndarray):
        mine, theirs = (c.transform(rows_of(m, X)) for c, m in ((one, model), (other, again)))
        same(*(t.toarray() if sp.issparse(t) else t for t in (mine, theirs)))


def test_what_is_shown_of_features_is_the_same(pair):
    model, again, _, _, _ = pair
    mine, theirs = ranking_table(model), ranking_table(again)
    whole = classifier_of(model).get_support().all()  # then all p-values are known, and so are q-values
    for a, b in zip(mine, theirs, strict=True):
        assert (a.feature, a.label, a.direction, a.by) == (b.feature, b.label, b.direction, b.by)
        assert (a.score, a.p) == pytest.approx((b.score, b.p), rel=1e-9, nan_ok=True)
        assert b.q == pytest.approx(a.q if whole else np.nan, rel=1e-9, nan_ok=True)
    label = classifier_of(model).classes_[0]
    assert [f.by for f in mine.rows_of_class(label)] == [f.by for f in theirs.rows_of_class(label)]
    columns = classifier_of(model).decision_.columns[:3]
    for a, b in zip(density_curves(model, columns), density_curves(again, columns), strict=True):
        assert (a.feature, a.kind, a.levels) == (b.feature, b.kind, b.levels)
        for x, y in zip([*a.x, *a.height], [*b.x, *b.height], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9)


def test_what_needs_moments_says_so(pair, tmp_path):
    _, again, X, y, _ = pair
    one, rows = classifier_of(again), rows_of(again, X)
    adds = one.joint_ is None and not one.redundancy
    learning = [lambda: one.partial_fit(rows, y)] if adds else []  # others have one line of their own
    unselected = np.setdiff1d(np.arange(one.n_features_in_), one.decision_.columns)
    if len(unselected):
        learning.append(lambda: density_curves(again, unselected[:1]))
    for need in (
        *learning,
        lambda: one.choose_n_features(rows, y),
        lambda: one.sample(3),
        lambda: one.ranking_table(),
        lambda: one.moments_,
        lambda: save(again, tmp_path / "m", moments=True),
        *([lambda: ranking_table(again, q=0.1)] if len(unselected) else []),
    ):
        with pytest.raises(
            (NotFittedError, ValueError), match=r"^[^\n]*moments=True[^\n]*--keep-moments[^\n]*$"
        ):
            need()


def test_a_loaded_model_is_saved_as_it_is(pair):
    _, again, _, _, path = pair
    assert to_bytes(again) == path.read_bytes()


def test_files_are_of_the_fourth_format_which_older_versions_refuse(pair, monkeypatch):
    path = pair[-1]
    assert describe(path)["format"] == 4
    monkeypatch.setattr(containers, "FORMAT", 3)
    with pytest.raises(ModelFileError, match=r"newer maxdisc \(format 4\); this one reads up to 3: install"):
        load(path)


def test_the_header_tells_how_many_features_there_were(pair):
    model, _, _, _, path = pair
    step, one = describe(path)["steps"][-1], classifier_of(model)
    assert (step["n_features"], step["n_selected"]) == (one.n_features_in_, one.n_selected_)
    assert step["moments"] is False


def test_files_do_not_grow_with_features_that_are_not_selected():
    def size(n_features, **parameters):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(60, n_features)), np.arange(60) % 2
        X[:, :5] += 3.0 * y[:, None]
        return len(to_bytes(MaxDiscClassifier(n_features=5, **parameters).fit(X, y)))

    for parameters in ({}, {"evidence": "raw"}, {"structure": Joint()}):
        # Numbers take more or fewer digits: in the header, and deflated, as the table of p-values is.
        assert abs(size(4000, **parameters) - size(40, **parameters)) < 500


def test_words_that_are_not_selected_are_left_out_where_no_length_counts_them(tmp_path):
    for scale in ("length", "log", "frequency", None):
        model, X, _ = text(scale)
        save(model, tmp_path / "m")
        again = load(tmp_path / "m")
        selected = np.sort(model[-1].decision_.columns)
        terms = model[0].terms_ if scale else model[0].terms_[selected]
        same(again[0].terms_, terms)
        assert describe(tmp_path / "m")["steps"][0]["n_features"] == len(model[0].terms_)
        same(again[0].get_feature_names_out()[selected], model[0].terms_[selected])
        same(again[0].transform(X)[:, selected].toarray(), model[0].transform(X)[:, selected].toarray())
        assert again[0].transform(X).shape == model[0].transform(X).shape
        for found, due in zip(again[0].inverse_transform(again[0].transform(X)), X, strict=True):
            assert set(found) <= set(due.split())


def test_a_vectorizer_learns_anew_all_its_terms(tmp_path):
    model, X, _ = text(None)
    save(model, tmp_path / "m")
    same(load(tmp_path / "m")[0].fit(X).terms_, model[0].terms_)


def test_large_tensors_are_deflated_and_come_back_to_the_last_bit():
    rng = np.random.default_rng(0)
    tensors = {
        "integers": np.arange(5000, dtype=np.int64),
        "any": rng.integers(-(2**62), 2**62, 900),
        "ends": np.tile(np.array([-(2**63), 2**63 - 1]), 300),
        "floats": np.repeat([0.1, -0.0, np.nan, 1e-300], 400).reshape(2, 20, 40),
        "bytes": np.frombuffer(b"words " * 900, dtype=np.uint8),
        "flags": np.zeros(3000, dtype=np.bool_),
        "small": np.zeros(3),
        "random": rng.random(1000),
    }
    file = io.BytesIO()
    write(file, tensors, {"format": 1}, deflate=True)
    found = Container.of(bytearray(file.getvalue()))
    assert found.document == {"format": 4}
    assert {name for name, entry in found.entries.items() if entry.is_deflated} == {
        "integers", "ends", "floats", "bytes", "flags",
    }  # fmt: skip
    for name, tensor in found.tensors().items():
        assert (tensor.dtype, tensor.shape) == (tensors[name].dtype, tensors[name].shape)
        assert tensor.tobytes() == tensors[name].tobytes()
        assert tensor.flags.writeable
    assert len(file.getvalue()) < sum(t.nbytes for t in tensors.values()) / 2


def test_no_file_asks_for_much_more_memory_than_it_has_bytes():
    file = io.BytesIO()
    write(file, {"zeros": np.zeros(10**6), "few": np.zeros(10**4)}, {"format": 1}, deflate=True)
    content = file.getvalue()
    assert len(content) > 8 * 10**6  # so many zeros would be a bomb: they stay as they are
    Container.of(content)


TERMS = "0.terms.bytes"


def rewritten(content, change):
    """Return a file with another document, tensors as they are."""
    packed = Container.of(content)
    kept = {name: entry for name, entry in packed.entries.items() if entry.is_deflated}
    called = {"f8": "F64", "f4": "F32", "i8": "I64", "u1": "U8"}
    listed = {name: [called[entry.dtype.str[1:]], list(entry.shape)] for name, entry in kept.items()}
    document, raw = {**packed.document, "deflated": listed}, packed.tensors()
    raw |= {name: np.frombuffer(content[e.begin : e.end], dtype=np.uint8) for name, e in kept.items()}
    change(listed, raw, document)
    file = io.BytesIO()
    write(file, raw, document)
    return file.getvalue()


@pytest.fixture(scope="module")
def deflated():
    X, y = documents()
    model = make_pipeline(TermFrequencyVectorizer(ngram_range=(1, 2)), MaxDiscClassifier(n_features="all"))
    content = to_bytes(model.fit(X, y))
    from_bytes(rewritten(content, lambda *_: None))  # as it is, it is sound
    assert TERMS in {n for n, e in Container.of(content).entries.items() if e.is_deflated}
    return content


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d, _, __: d.update(nothing=["F64", [3]]), "wrong about its deflated tensor"),
        (lambda d, _, __: d.update({TERMS: ["F63", [3]]}), "wrong about its deflated tensor"),
        (lambda d, _, __: d.update({TERMS: ["U8", [-1]]}), "wrong about its deflated tensor"),
        (lambda d, _, __: d.update({TERMS: ["U8", []]}), "wrong about its deflated tensor"),
        (lambda d, _, __: d.update({TERMS: "U8"}), "wrong about its deflated tensor"),
        (lambda d, _, __: d.update({"1.decision.log_prior": ["F64", [3]]}), "wrong about its deflated"),
        (lambda d, _, __: d.update({TERMS: ["U8", [2**40]]}), "far more memory"),
        (lambda d, _, __: d.update({TERMS: ["U8", [10]]}), "does not inflate"),
        (lambda d, _, __: d.update({TERMS: ["U8", [d[TERMS][1][0] + 1]]}), "does not inflate"),
        (lambda _, t, __: t.update({TERMS: t[TERMS][:-5]}), "does not inflate"),
        (lambda _, t, __: t.update({TERMS: np.append(t[TERMS], t[TERMS][:9])}), "does not inflate"),
        (lambda _, t, __: t.update({TERMS: t[TERMS][::-1]}), "does not inflate"),
        (lambda _, __, o: o.update(deflated=[1]), "wrong about its deflated tensor"),
        (lambda _, __, o: o.update(format=3), "entries"),
    ],
)
def test_deflated_tensors_that_are_wrong_are_refused(deflated, change, says):
    with pytest.raises(ModelFileError, match=rf"^[^\n]*{says}[^\n]*$"):
        from_bytes(rewritten(deflated, change))


SMALL = {
    name: to_bytes(MODELS[name]()[0]) for name in ("poisson", "text of counts", "missing counts", "joint")
}


@given(st.data())
@examples(60)
def test_wrong_tensors_are_refused_in_one_line_or_make_a_sound_model(data):
    name = data.draw(st.sampled_from(sorted(SMALL)))
    packed = Container.of(SMALL[name])
    tensors = {key: tensor.copy() for key, tensor in packed.tensors().items()}
    which = data.draw(
        st.sampled_from([n for n in tensors if "selected" in n or "moments" in n or "columns" in n])
    )
    change = data.draw(
        st.sampled_from(
            [
                lambda t: np.concatenate([t, t], axis=-1),
                lambda t: np.flip(t, axis=-1).copy(),
                lambda t: t + t.dtype.type(1),
                lambda t: np.zeros_like(t),
                lambda t: (t * 0 - 1).astype(t.dtype),
                lambda t: (t + 10**9).astype(t.dtype),
                lambda _: None,
            ]
        )
    )
    tensors[which] = change(tensors[which])
    file = io.BytesIO()
    write(file, {k: t for k, t in tensors.items() if t is not None}, packed.document)
    try:
        again = from_bytes(file.getvalue())
    except ModelFileError as error:
        assert "\n" not in str(error)
        return
    _, X, _ = MODELS[name]()
    assert len(again.predict(X)) == (X.shape[0] if hasattr(X, "shape") else len(X))
    _ = classifier_of(again).scores_, classifier_of(again).stability_


@pytest.mark.parametrize("n_features", [0, -1, 2.0, True, None, 2**40, "4"])
def test_a_number_of_features_that_is_none_is_refused(n_features):
    for name in ("poisson", "text of counts"):
        packed = Container.of(SMALL[name])
        model = packed.document["model"]
        fitted = (model["steps"][0][1] if "steps" in model else model)["fitted"]
        fitted["n_features"] = n_features
        file = io.BytesIO()
        write(file, packed.tensors(), packed.document)
        with pytest.raises(
            ModelFileError, match=r"^these bytes: the number of features of its model is [^\n]*$"
        ):
            from_bytes(file.getvalue())


def test_a_search_and_bytes_are_written_the_same_way(tmp_path):
    model, _, _ = plain("gaussian")
    save(model, tmp_path / "m")
    assert to_bytes(model) == (tmp_path / "m").read_bytes()
    assert os.path.getsize(tmp_path / "m") < len(to_bytes(model, moments=True)) + 2000
