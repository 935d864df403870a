"""BLAS takes no more threads than a fit may, while it lasts."""

import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from threadpoolctl import ThreadpoolController, threadpool_limits

from maxdisc import MaxDiscClassifier
from maxdisc.numerics.blas_threads import limited_blas
from maxdisc.testing import taking

BLAS = ThreadpoolController().select(user_api="blas")


def blas_threads():
    """The numbers of threads of all BLAS libraries."""
    return {library.num_threads for library in BLAS.lib_controllers}


def fitted(watch, **given):
    """A model whose divergence calls ``watch``, in the middle of the fit."""

    def divergence(densities):
        watch()
        return np.arange(densities.natural.shape[2], dtype=np.float64)

    X, y = load_iris(return_X_y=True)
    return MaxDiscClassifier("gaussian", divergence, structure="independent", **given).fit(X, y)


@pytest.fixture
def three_threads():
    """BLAS has three threads, whatever the machine."""
    with threadpool_limits(3, user_api="blas"):
        yield


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize(("n_jobs", "expected"), [(1, 1), (2, 2), (9, 3), (None, 1)])
def test_a_fit_bounds_blas_and_leaves_it_as_it_was(n_jobs, expected, monkeypatch):
    monkeypatch.delenv("MAXDISC_NUM_THREADS", raising=False)
    seen = []
    fitted(lambda: seen.append(blas_threads()), n_jobs=n_jobs)
    assert seen
    assert all(threads == {expected} for threads in seen)
    assert blas_threads() == {3}


def test_a_prediction_leaves_blas_alone(monkeypatch):
    model, X, limits = MaxDiscClassifier(n_jobs=1), load_iris().data, []
    for library in BLAS.lib_controllers:
        monkeypatch.setattr(type(library), "set_num_threads", lambda _, n: limits.append(n))
    model.fit(X, load_iris().target)
    assert limits
    limits.clear()
    model.predict_proba(X)
    model.novelty(X)
    model.explain(X[:2])
    assert not limits


@pytest.mark.usefixtures("three_threads")
def test_the_environment_bounds_blas(monkeypatch):
    monkeypatch.setenv("MAXDISC_NUM_THREADS", "2")
    seen = []
    fitted(lambda: seen.append(blas_threads()))
    assert set().union(*seen) == {2}


@pytest.mark.usefixtures("three_threads")
def test_a_failed_fit_leaves_blas_as_it_was():
    def fail():
        assert blas_threads() == {1}
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        fitted(fail, n_jobs=1)
    assert blas_threads() == {3}


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("first_to_end", [0, 1])
def test_fits_side_by_side_have_the_least_limit_and_leave_none_behind(first_to_end):
    jobs, both_inside, may_end = (1, 2), threading.Barrier(3), [threading.Event(), threading.Event()]

    def fit(number):
        first = threading.Lock()

        def watch():
            if first.acquire(blocking=False):
                both_inside.wait(timeout=60)
                assert may_end[number].wait(timeout=60)

        fitted(watch, n_jobs=jobs[number])

    fits = [threading.Thread(target=fit, args=(number,)) for number in (0, 1)]
    for thread in fits:
        thread.start()
    both_inside.wait(timeout=60)
    assert blas_threads() == {1}
    may_end[first_to_end].set()
    fits[first_to_end].join()
    # The other one goes on with its own limit.
    assert blas_threads() == {jobs[1 - first_to_end]}
    may_end[1 - first_to_end].set()
    fits[1 - first_to_end].join()
    assert blas_threads() == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.usefixtures("three_threads")
def test_a_child_of_the_process_forgets_the_limits_of_others():
    reader, writer = os.pipe()
    with limited_blas(1):
        child = os.fork()
        if not child:
            os.write(writer, bytes(blas_threads()))
            with limited_blas(2):
                os.write(writer, bytes(blas_threads()))
            os._exit(0)
    os.close(writer)  # or a child that died would be waited for
    os.waitpid(child, 0)
    assert os.read(reader, 2) == bytes([3, 2])
    assert blas_threads() == {3}


def table(kind):
    """Rows of four classes."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    if kind == "counts":
        return sp.csr_array(rng.poisson(0.3 + (rng.random((4, 150)) < 0.1)[y]).astype(np.float64)), y
    n_features = 100 if kind == "wide" else 20
    return rng.normal(size=(80, n_features)) + rng.normal(size=(4, n_features))[y], y


@pytest.mark.parametrize("kind", ["wide", "narrow", "counts"])
def test_with_one_blas_thread_results_are_those_of_any_number_of_jobs(kind):
    X, y = table(kind)
    with taking("compiled"):
        with threadpool_limits(1, user_api="blas"):
            one, *others = (MaxDiscClassifier(n_jobs=n).fit(X, y).predict_proba(X) for n in (1, 2, 3))
        for other in others:
            np.testing.assert_array_equal(one, other)
        with threadpool_limits(2, user_api="blas"):
            again = MaxDiscClassifier(n_jobs=2).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(one, again, rtol=0, atol=1e-10)
