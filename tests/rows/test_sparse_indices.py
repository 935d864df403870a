"""Sparse rows whose arrays do not fit each other are refused in one line, before compiled code sees them."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import (
    DiscriminativeMaxEnt,
    MaxDiscClassifier,
    MaxDiscSearchCV,
    TermFrequencyVectorizer,
)
from maxdisc.engines import LabelledStream
from maxdisc.numerics.matrices import canonical, require_indices
from maxdisc.report import evaluate
from maxdisc.rows import BatchRows
from maxdisc.words import CountScaler

N, D = 48, 30
Y = np.arange(N) % 3
COUNTS = np.random.default_rng(0).poisson(0.4 + (Y[:, None] == np.arange(D) % 3), size=(N, D)).astype(float)
#: The row (or column) that is broken.
LINE = 7


def put(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


def first(X):
    """Where the cells of the broken row begin."""
    return X.indptr[LINE]


BROKEN = {
    "too large": lambda X: setattr(X, "indices", put(X.indices, first(X), max(X.shape))),
    "negative": lambda X: setattr(X, "indices", put(X.indices, first(X), -1)),
    "far below": lambda X: setattr(X, "indices", put(X.indices, first(X), np.iinfo(np.int32).min)),
    "wraps around": lambda X: setattr(X, "indices", put(X.indices.astype(np.int64), first(X), 2**32)),
    "in place": lambda X: X.indices.__setitem__(first(X), 10**6),
    "backwards": lambda X: setattr(X, "indptr", put(X.indptr, LINE + 1, first(X) - 1)),
    "negative pointer": lambda X: setattr(X, "indptr", put(X.indptr, LINE + 1, -5)),
    "no first cell": lambda X: setattr(X, "indptr", put(X.indptr, 0, 1)),
    "before the first cell": lambda X: setattr(X, "indptr", put(X.indptr, 0, -1)),
    "past the end": lambda X: setattr(X, "indptr", put(X.indptr, -1, 10**6)),
    "before the end": lambda X: setattr(X, "indptr", put(X.indptr, -1, X.indptr[-1] - 1)),
    "short data": lambda X: setattr(X, "data", X.data[: first(X) + 1]),
    "no data": lambda X: setattr(X, "data", X.data[:0]),
    "long data": lambda X: setattr(X, "data", np.append(X.data, 1.0)),
    "short indices": lambda X: setattr(X, "indices", X.indices[: first(X) + 1]),
    "few pointers": lambda X: setattr(X, "indptr", X.indptr[: LINE + 1]),
    "many pointers": lambda X: setattr(X, "indptr", np.append(X.indptr, X.indptr[-1])),
    "no pointers": lambda X: setattr(X, "indptr", X.indptr[:0]),
}
#: What is said of arrays as a whole.
SHAPELESS = {
    "floats": lambda X: setattr(X, "indices", X.indices + 0.5),
    "a list": lambda X: setattr(X, "indptr", X.indptr.tolist()),
    "a table": lambda X: setattr(X, "indices", X.indices[None]),
    "unsigned": lambda X: setattr(X, "indices", X.indices.astype(np.uint64)),
    "other end first": lambda X: setattr(X, "indices", X.indices.astype(">i4")),
    "blocks": lambda X: setattr(X, "data", X.data[:, None]),
}
FORMATS = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)


def broken(how, make=sp.csr_array):
    X = make(COUNTS)
    X.has_canonical_format  # noqa: B018  # is remembered
    {**BROKEN, **SHAPELESS}[how](X)
    return X


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize("how", BROKEN)
def test_what_is_broken_is_named(make, how):
    with pytest.raises(
        ValueError, match=r"^(row|column) \d+ of X |^X has \d+ \w+, but (row|column) \d"
    ) as said:
        require_indices(broken(how, make))
    line = "column" if make.__name__.startswith("csc") else "row"
    assert str(said.value).count("\n") == 0
    assert f"{line} " in str(said.value)
    if how in (
        "too large",
        "negative",
        "wraps around",
        "in place",
        "backwards",
        "short data",
        "short indices",
    ):
        assert str(said.value).startswith(f"{line} {LINE} of X ")


@pytest.mark.parametrize("how", SHAPELESS)
def test_arrays_that_are_none_are_refused(how):
    with pytest.raises(ValueError, match=r"^X\.(data|indices|indptr) .*build X again"):
        require_indices(broken(how))


@given(st.integers(0, 10**6), st.sampled_from(["indptr", "indices"]), st.sampled_from(FORMATS))
def test_only_what_scipy_would_accept_is_accepted(seed, name, make):
    """Its full check is the oracle; it lets arrays be too long, which it then cuts."""
    rng = np.random.default_rng(seed)
    X = make(sp.random_array((5, 4), density=0.5, rng=rng, format="csr"))
    array = getattr(X, name)
    if len(array):
        array[rng.integers(len(array))] = rng.choice([-(2**31), -1, 0, 1, 3, 4, 5, 10, 11, 2**31 - 1])
    try:
        sound = len(X.data) == len(X.indices) == X.indptr[-1]
        X.copy().check_format(full_check=True)
    except ValueError:
        sound = False
    try:
        require_indices(X)
    except ValueError:
        assert not sound
    else:
        assert sound


@pytest.mark.parametrize(
    "make", [*FORMATS, sp.coo_array, sp.bsr_array, sp.lil_array, sp.dok_array, sp.dia_array]
)
def test_what_is_sound_is_accepted(make):
    for X in (COUNTS, np.zeros((3, 4)), np.zeros((0, 4)), np.zeros((3, 0)), COUNTS[:0]):
        if 0 in X.shape and make in (sp.lil_array, sp.bsr_array):
            continue
        require_indices(make(X))
        np.testing.assert_array_equal(canonical(make(X)).toarray(), X)
    require_indices(COUNTS)
    require_indices(sp.csr_array(COUNTS)[:, 3:])


def other_formats():
    coo, blocks, diagonals = (
        sp.coo_array(COUNTS),
        sp.bsr_array(COUNTS, blocksize=(2, 3)),
        sp.dia_array(COUNTS),
    )
    lists, far = sp.lil_array(COUNTS), sp.coo_array(COUNTS)
    coo.coords = (put(coo.coords[0], 3, -1), coo.coords[1])
    far.coords = (far.coords[0], put(far.coords[1], 3, 99))
    blocks.indices = put(blocks.indices, 5, 10)
    diagonals.offsets = diagonals.offsets[:2]
    lists.rows[LINE][0] = 99
    cut = sp.coo_array(COUNTS)
    cut.data = cut.data[:5]
    return {"coo": coo, "coo, far": far, "coo, cut": cut, "bsr": blocks, "dia": diagonals, "lil": lists}


@pytest.mark.parametrize("name", other_formats())
def test_other_formats_are_looked_at_too(name):
    X = other_formats()[name]
    for use in (require_indices, canonical, lambda X: MaxDiscClassifier().fit(X, Y)):
        with pytest.raises(ValueError, match=r"X.*build X again") as said:
            use(X)
        assert "\n" not in str(said.value)


# ------------------------------------------------------------------ wherever rows enter

WORDS = TermFrequencyVectorizer().fit([" ".join(f"word{j}" for j in range(D))])
MODELS = {
    "classifier": MaxDiscClassifier(),
    "batches": MaxDiscClassifier("poisson", evidence="raw"),
    "refined": MaxDiscClassifier(evidence="refined"),
    "joint": MaxDiscClassifier("gaussian", structure="joint", evidence="raw"),
    "conditional": DiscriminativeMaxEnt(),
    "search": MaxDiscSearchCV([{"evidence": "raw"}, {"evidence": "raw", "scale": "log"}]),
    "scaler": CountScaler(),
}


@cache
def fitted(name):
    return MODELS[name].fit(sp.csr_array(COUNTS), Y)


def stream_of(X):
    return LabelledStream(lambda done: iter([(sp.csr_array(COUNTS), Y), (X, Y)][done:]))


FITS = {
    "fit": lambda X: MaxDiscClassifier().fit(X, Y),
    "refined": lambda X: MaxDiscClassifier(evidence="refined", cv="hash").fit(X, Y),
    "without some labels": lambda X: MaxDiscClassifier(unlabelled=0).fit(X, Y),
    "joint": lambda X: MaxDiscClassifier("gaussian", structure="joint").fit(X, Y),
    "weights": lambda X: MaxDiscClassifier().fit(X, Y, Y),
    "partial_fit": lambda X: MaxDiscClassifier("poisson").partial_fit(X, Y),
    "further partial_fit": lambda X: deepcopy(fitted("batches")).partial_fit(X, Y),
    "choose_n_features": lambda X: deepcopy(fitted("batches")).choose_n_features(X, Y),
    "ranking_table": lambda X: fitted("batches").ranking_table(X, Y, n_permutations=3),
    "fit_rows": lambda X: MaxDiscClassifier("poisson").fit_rows(BatchRows(lambda: [(X, Y)], 3), [0, 1, 2]),
    "stream": lambda X: stream_of(X).fit(MaxDiscClassifier("poisson", cv="hash")),
    "conditional": lambda X: DiscriminativeMaxEnt().fit(X, Y),
    "conditional dual": lambda X: DiscriminativeMaxEnt("dual").fit(X, Y),
    "search": lambda X: MaxDiscSearchCV([{"evidence": "raw"}]).fit(X, Y),
    "search of scales": lambda X: MaxDiscSearchCV([{"scale": "log", "evidence": "raw"}]).fit(X, Y),
    "scaler": lambda X: CountScaler().fit(X),
    "words": lambda X: WORDS.inverse_transform(X),
}
#: Some of each kind; which there are is for the tests above.
SOME = ("too large", "negative", "wraps around", "backwards", "past the end", "short data")


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("name", FITS)
def test_no_fit_takes_broken_rows(name, make):
    for how in SOME:
        with pytest.raises(ValueError, match=r"(row|column) \d+ of X .*build X again") as said:
            FITS[name](broken(how, make))
        assert "\n" not in str(said.value)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("model", MODELS)
def test_no_method_takes_broken_rows(model, make):
    uses = {name: getattr(fitted(model), name, None) for name in (
        "predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function",
        "score_samples", "novelty", "explain", "transform", "inverse_transform",
    )}  # fmt: skip
    if isinstance(fitted(model), MaxDiscClassifier):
        uses["evaluate"] = lambda X: evaluate(fitted(model), X, Y)
    known = {name: use for name, use in uses.items() if use is not None}
    assert known.keys() >= ({"transform"} if model == "scaler" else {"predict", "explain"})
    for name, use in known.items():
        if name != "novelty" or model in ("classifier", "refined"):  # others have no rows to compare with
            use(make(COUNTS if name != "inverse_transform" else COUNTS[:, fitted(model).get_support()]))
        for how in SOME:
            with pytest.raises(ValueError, match=r"(row|column) \d+ of X .*build X again") as said:
                use(broken(how, make))
            assert "\n" not in str(said.value), name


def test_a_refused_batch_leaves_the_model_as_it_was():
    model = deepcopy(fitted("batches"))
    before = model.predict_proba(COUNTS)
    with pytest.raises(ValueError, match="row 7 of X"):
        model.partial_fit(broken("negative"), Y)
    np.testing.assert_array_equal(model.predict_proba(COUNTS), before)
