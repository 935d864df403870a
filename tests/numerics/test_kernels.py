"""Compiled code: where it cannot be had, in threads, after a fork, and as many threads as are allowed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from maxdisc import MaxDiscClassifier
from maxdisc.families import FAMILIES, Support
from maxdisc.numerics.threads import in_threads, limited_threads, n_threads
from maxdisc.rows.row_sources import ArrayRows, FixedFolds
from maxdisc.selection import sparse_fold_models as sparse_folds
from maxdisc.testing import batches_of, taking

# What a script below would load where numba works.
KERNELS = {"cells", "parameters", "scores", "sums", "sweep", "words"}
FIT = """
import sys, warnings
import numpy as np, scipy.sparse as sp
{before}
from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.testing import taking
rng = np.random.default_rng(0)
y = np.arange(400) % 4
X = sp.random_array((400, 2_000), density=0.09, rng=rng, format="csr")
X.data[:] = np.ceil(3 * X.data)
documents = [" ".join(f"w{{(7 * i + j) % 3000}}" for j in range(500)) for i in range(20)]
with warnings.catch_warnings(record=True) as caught, taking("compiled"):
    warnings.simplefilter("always")
    # Refined evidence stops at a gap, compiled or not, and has fewer digits in common.
    model = MaxDiscClassifier(evidence="calibrated").fit(X, y)
    gaussian = MaxDiscClassifier("gaussian", n_features=50, smoothing=1.0, evidence="raw").fit(X, y)
    words = TermFrequencyVectorizer().fit_transform(documents)
    found = {{"p": model.predict_proba(X), "gaussian": gaussian.predict_proba(X)}}
said = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
print(len(said), *said, sep="\\n")
print(*(name.partition(".compiled_")[2] for name in sys.modules if ".compiled_" in name))
found |= {{"k": model.n_selected_, "words": words.shape, "n": words.sum()}}
np.savez(sys.argv[1], **found)
"""


def fitted(folder, name, before="", **environment):
    script, out = folder / f"{name}.py", folder / f"{name}.npz"
    script.write_text(FIT.format(before=before))
    found = subprocess.run(
        [sys.executable, script, out],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **environment},
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines(), dict(np.load(out))


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    (count, loaded), model = fitted(tmp_path_factory.mktemp("usual"), "usual")
    assert count == "0"
    assert set(loaded.split()) >= KERNELS
    return model


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("sys.modules['numba'] = None", "import of numba halted; None in sys.modules"),
        (
            "class Broken:\n    def find_spec(self, name, *_):\n        if name == 'numba':\n"
            "            raise SystemError('initialization\\n of _internal failed')\n"
            "sys.meta_path.insert(0, Broken())",
            "initialization of _internal failed",
        ),
    ],
    ids=["missing", "broken"],
)
def test_without_numba_slower_code_does_the_same_and_says_so_once(before, reason, usual, tmp_path):
    (count, *said, loaded), model = fitted(tmp_path, "without", before)
    assert count == "1"
    assert said == [
        f"numba cannot be used ({reason}), so slower code is used: reinstall numba to use compiled code."
    ]
    assert loaded == ""
    assert model["k"] == usual["k"]
    np.testing.assert_allclose(model["p"], usual["p"], atol=1e-8)
    np.testing.assert_allclose(model["gaussian"], usual["gaussian"], atol=1e-8)
    np.testing.assert_array_equal(model["words"], usual["words"])
    assert model["n"] == usual["n"]


@pytest.mark.whole
def test_where_nothing_can_be_written_kernels_are_compiled_all_the_same(usual, tmp_path):
    nowhere = tmp_path / "nowhere"
    nowhere.touch()  # a file, so no folder can be made there
    before = "import numba.core.config as c"
    (count, loaded), model = fitted(tmp_path, "unwritten", before, NUMBA_CACHE_DIR=str(nowhere / "in"))
    assert count == "0"
    assert set(loaded.split()) >= KERNELS
    for name, found in model.items():
        np.testing.assert_array_equal(found, usual[name])


def counts(n=300, d=20_000, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    return sp.csr_array(rng.poisson(rng.gamma(0.1, 1.0, (4, d))[y]).astype(float)), y


def test_several_threads_fit_at_once():
    X, y = counts()
    with taking("compiled"), ThreadPoolExecutor(4) as pool:
        alone = MaxDiscClassifier().fit(X, y).predict_proba(X)
        found = list(pool.map(lambda _: MaxDiscClassifier().fit(X, y).predict_proba(X), range(6)))
    for one in found:
        np.testing.assert_array_equal(one, alone)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_that_was_forked_fits_too():
    X, y = counts()
    with taking("compiled"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that threads may be running
        alone = MaxDiscClassifier().fit(X, y).predict_proba(X)
        child = os.fork()
        if child == 0:
            same = False
            try:
                same = np.array_equal(MaxDiscClassifier().fit(X, y).predict_proba(X), alone)
            finally:
                os._exit(0 if same else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize(("n_jobs", "most"), [(1, 1), (2, 2), (3, 3)])
def test_no_more_threads_than_are_allowed(n_jobs, most):
    busy, lock, seen = set(), threading.Lock(), []
    barrier = threading.Barrier(most)

    def inner(_):
        return n_threads()

    def work(_):
        with lock:
            busy.add(threading.get_ident())
        barrier.wait(timeout=10)
        seen.extend(in_threads(inner, [1, 2]))

    with limited_threads(n_jobs):
        assert n_threads() == n_jobs
        in_threads(work, range(most))
    assert len(busy) == most
    assert set(seen) == {n_jobs}


def test_the_number_of_jobs_changes_nothing_but_the_threads(monkeypatch):
    X, y = counts()
    asked = []

    def watched(function, items, _=None):
        asked.append(n_threads())
        return [function(item) for item in items]

    monkeypatch.setattr(sparse_folds, "in_threads", watched)
    with taking("compiled"):
        one, two = (MaxDiscClassifier(n_jobs=n).fit(X, y) for n in (1, 2))
        assert set(asked) == {1, 2}
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    cores = n_threads()
    with limited_threads(-1):
        assert n_threads() >= cores or "OMP_NUM_THREADS" in os.environ
    with limited_threads(-1000):
        assert n_threads() == 1


@pytest.mark.parametrize("bad", [0, 1.5, "all", True])
def test_a_number_of_jobs_that_is_none(bad):
    X, y = counts(40, 10)
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
        MaxDiscClassifier(n_jobs=bad).fit(X, y)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("family", ["poisson", "gaussian", "bernoulli"])
def test_compiled_sums_are_those_of_products(threads, indices, family):
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.4, size=(300, 40)).astype(float)
    dense = np.minimum(dense, 1.0) if family == "bernoulli" else dense
    X = sp.csr_array(dense)
    X.data[:5] = 0.0  # stored all the same
    X = sp.csr_array((X.data, X.indices.astype(indices), X.indptr.astype(indices)), shape=X.shape)
    codes, fold = rng.integers(0, 4, 300), rng.integers(-1, 3, 300)
    codes[codes == 2] = 3  # a class without rows
    rows = ArrayRows(X, codes, 4, rng.integers(0, 3, 300).astype(float))
    folds = FixedFolds(fold, 3)
    with taking("plain"):
        plain = rows.moments(FAMILIES[family], folds)
    with taking("compiled"), limited_threads(threads):
        compiled = rows.moments(FAMILIES[family], folds)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(one.sums, other.sums)  # integers: to the last bit
        np.testing.assert_array_equal(one.weight, other.weight)
        if one.nonzero is not None:
            np.testing.assert_array_equal(one.nonzero, other.nonzero)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_powers_are_taken_about_means_where_they_cancel(dtype):
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.4, size=(300, 8)).astype(dtype)
    dense[:, 3] = 10_000 + rng.normal(size=300)  # hardly any zeros, far away
    dense[:5, 3] = 0
    dense[:, 5] = 7
    rows = ArrayRows(sp.csr_array(dense), rng.integers(0, 3, 300), 3)
    with taking("plain"):
        (plain,) = rows.moments(FAMILIES["gaussian"])
    with taking("compiled"):
        (compiled,) = rows.moments(FAMILIES["gaussian"])
    assert compiled.origin is not None
    np.testing.assert_array_equal(plain.origin != 0, compiled.origin != 0)
    for one, other in zip(plain.centred(), compiled.centred(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    for c in range(3):
        mine = dense[rows.labels == c].astype(np.float64)
        np.testing.assert_allclose(
            compiled.centred()[1][1, c], ((mine - mine.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-9, atol=1e-9
        )


def test_compiled_sums_of_no_rows_and_of_responsibilities():
    rng = np.random.default_rng(0)
    X, shares = sp.csr_array(rng.poisson(1.0, size=(50, 6)).astype(float)), rng.dirichlet(np.ones(3), 50)
    with taking("compiled"):
        (found,) = ArrayRows(X, shares, 3).moments(FAMILIES["poisson"])[:1]
        (none,) = ArrayRows(X[:0], np.zeros(0, dtype=int), 3).moments(FAMILIES["poisson"])[:1]
    np.testing.assert_allclose(found.sums[0], shares.T @ X.toarray(), rtol=1e-12)
    assert not none.sums.any()
    assert none.sums.shape == (1, 3, 6)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_tiles_of_dense_tables_have_the_sums_of_blocks(threads, dtype, gaps):
    rng = np.random.default_rng(0)
    X = (1e4 * rng.normal(size=23) + rng.normal(size=(300, 23))).astype(dtype)
    X[rng.random(X.shape) < gaps] = np.nan
    codes, weights = rng.integers(0, 4, 300), rng.uniform(0, 2, 300)
    X[codes == 1, 3] = np.nan if gaps else 5.0
    rows, folds = ArrayRows(X, codes, 4, weights), FixedFolds(rng.integers(-1, 3, 300), 3)
    with taking("plain"):
        blocks = rows.moments(FAMILIES["gaussian"], folds)
    with taking("compiled"), batches_of(7), limited_threads(threads):
        tiles = rows.moments(FAMILIES["gaussian"], folds)
    exact = X.astype(np.float64)
    for f, (one, other) in enumerate(zip(blocks, tiles, strict=True)):
        assert (one.observed is None) == (other.observed is None)
        for found, due in zip(other.centred(), one.centred(), strict=True):
            np.testing.assert_allclose(found, due, rtol=1e-10, atol=1e-9)
        held = folds.assignment == (f if f < 3 else -1)
        for c in range(4):
            some = held & (codes == c)
            seen = ~np.isnan(exact[some])
            total = weights[some] @ seen
            mean = np.where(total > 0, weights[some] @ np.nan_to_num(exact[some]), 0) / np.maximum(
                total, 1e-9
            )
            squares = weights[some] @ np.where(seen, exact[some] - mean, 0.0) ** 2
            np.testing.assert_allclose(other.centred()[1][1, c], squares, rtol=1e-9, atol=1e-9)


def test_a_table_in_another_order_takes_the_other_way():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(60, 5)), np.arange(60) % 2
    with taking("compiled"):
        whole, *others = (
            ArrayRows(table, codes, 2).moments(FAMILIES["gaussian"])[0].centred()
            for table in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2])
        )
    for other in others:
        for found, due in zip(other, whole, strict=True):
            np.testing.assert_allclose(found, due, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("way", ["plain", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, 3e200, -1.001e140])
def test_what_is_out_of_range_is_found_in_the_sums_and_said_as_ever(way, dtype, bad):
    if dtype == np.float32:
        bad = np.copysign(np.inf, bad)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[40, 3], X[60, 1] = bad, bad
    names = list("abcde")
    with pytest.raises(ValueError, match="gaussian family") as due:
        FAMILIES["gaussian"].require(X, names, 7)
    assert "'d'" in str(due.value)
    assert "in row 47" in str(due.value)
    weights = rng.uniform(1e-9, 2, 90)
    plans = [None, FixedFolds(rng.integers(-1, 3, 97), 3)]
    weightless, left_out = weights.copy(), rng.integers(0, 3, 97)
    weightless[[40, 60]], left_out[[47, 67]] = 0.0, -2
    plans.append(FixedFolds(left_out, 3))
    for given, folds in [*((weights, plan) for plan in plans), (weightless, None)]:
        rows = ArrayRows(X, np.arange(90) % 3, 3, given, names, start=7)
        with taking(way), pytest.raises(ValueError, match="gaussian family") as found:
            rows.moments(FAMILIES["gaussian"], folds)
        assert str(found.value) == str(due.value)


@pytest.mark.parametrize("way", ["plain", "compiled"])
def test_a_column_out_of_range_that_does_not_vary_is_found(way):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:, 1] = 2.0**470  # its square is a number, and it has no variance
    said = r"at most 1e\+140, but column 1 has .* in row 0"
    with taking(way), pytest.raises(ValueError, match=said):
        ArrayRows(X, np.arange(40) % 2, 2).moments(FAMILIES["gaussian"])


def test_a_dense_table_on_the_line_is_not_read_just_to_look(monkeypatch):
    looked = []
    monkeypatch.setattr(Support, "contains", lambda *_: looked.append(1))
    X = np.random.default_rng(0).normal(1e100, 1e90, size=(60, 4))
    ArrayRows(X, np.arange(60) % 2, 2).moments(FAMILIES["gaussian"])
    assert not looked


@pytest.mark.parametrize("weights", [None, "rising", "falling", "light at first"])
def test_tiles_keep_the_digits_of_variances_wherever_the_first_rows_are(weights):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    X[:4, 0] += 1e7  # the first block
    X[:, 1] += 1e7
    X[:200, 2] += 1e7
    X[:3, 3], X[3, 3] = np.nan, 1e7
    w = {
        "rising": np.logspace(-9, 0, 400),
        "falling": np.logspace(0, -9, 400),
        "light at first": np.where(np.arange(400) < 8, 1e-12, 1.0),
    }.get(weights, np.ones(400))
    with taking("compiled"):
        (moments,) = ArrayRows(X, np.zeros(400, dtype=int), 1, w).moments(FAMILIES["gaussian"])
    found = moments.centred()[1][1, 0]
    for j, squares in enumerate(found):
        seen = ~np.isnan(X[:, j])
        exact, heavy = X[seen, j].astype(np.longdouble), w[seen].astype(np.longdouble)
        due = heavy @ (exact - heavy @ exact / heavy.sum()) ** 2
        np.testing.assert_allclose(squares, float(due), rtol=1e-9)
